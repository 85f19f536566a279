//! Undo of users in the lab, where the search for their files is short.

use crate::lab::Site;

/// A manifest, a state directory, and a user that no other test has.
struct Account {
    site: Site,
    user: &'static str,
}

impl Account {
    fn new(user: &'static str) -> Option<Self> {
        Some(Self { site: Site::new(&format!("undo-{user}"))?, user })
    }

    /// Runs a script with the name of the user in `$user` and a state directory of its own.
    #[track_caller]
    fn sh(&self, script: &str) -> String {
        let Self { site, user } = self;
        site.lab.sh(&format!(
            "user={user}; export CCM_STATE_DIR=/tmp/undo-$user CCM_UNDO=/tmp/undo-$user.log\n{script}"
        ))
    }

    /// Applies a manifest with properties of the user.
    #[track_caller]
    fn apply(&self, properties: &str) {
        self.sh(&format!(
            "printf -- '- user:\\n    - %s: {{ {properties} }}\\n' $user >/tmp/undo-$user.yaml; ccm apply /tmp/undo-$user.yaml"
        ));
    }

    /// Undoes a run that must exit with this status, and returns the output.
    #[track_caller]
    fn undo(&self, run: &str, status: u8) -> String {
        let printed =
            self.sh(&format!("ccm undo {run} >$CCM_UNDO 2>&1 || echo $? >>$CCM_UNDO; cat $CCM_UNDO"));
        let last = printed.trim_end().lines().last().unwrap_or_default();
        let found: u8 = last.parse().unwrap_or_default();
        assert_eq!(found, status, "{printed}");
        printed
    }

    #[track_caller]
    fn last(&self) -> String {
        self.sh("ccm history --json | head -n 1 | sed 's/^{\"run\":\"\\([^\"]*\\)\".*/\\1/'")
            .trim()
            .to_owned()
    }
}

/// Properties of a created user, whose number no other test has.
fn created(uid: u32) -> String {
    format!("uid: {uid}, manage_home: true, shell: /bin/sh")
}

#[test]
fn created_user_goes_with_its_home() {
    let Some(account) = Account::new("undone-ann") else { return };
    account.apply(&created(4101));
    account.sh("test -e /home/$user/.bashrc");
    account.undo("last", 0);
    account.sh("! getent passwd $user; ! getent group $user; ! test -e /home/$user");
    account.undo("last", 0);
    account.sh("getent passwd $user; test -e /home/$user/.bashrc");
}

#[test]
fn home_with_new_files_stays() {
    let Some(account) = Account::new("undone-bob") else { return };
    account.apply(&created(4102));
    account.sh("echo dear >/home/$user/letter");
    let printed = account.undo("last", 1);
    assert!(printed.contains("`/home/undone-bob` was changed since the run"), "{printed}");
    account.sh("! getent passwd $user; grep -qx dear /home/$user/letter");
}

#[test]
fn created_user_stays_while_it_owns_other_files_or_runs_processes() {
    let Some(account) = Account::new("undone-cat") else { return };
    account.apply(&created(4103));
    let run = account.last();
    account.sh("touch \"/srv/of $user\"; chown $user \"/srv/of $user\"");
    let printed = account.undo(&run, 1);
    assert!(printed.contains("it owns /srv/of undone-cat"), "{printed}");
    let summary = account.sh(&format!("ccm undo {run} --json | tail -n 1 || true"));
    assert!(
        summary.contains(r#""not_undone":[{"resource":"user#undone-cat","reason":"changed"}]"#),
        "{summary}"
    );
    account.sh("rm \"/srv/of $user\"; getent passwd $user");
    account.sh("setpriv --reuid=$user --regid=$user --clear-groups sleep 1000 >/dev/null 2>&1 & echo $! >/tmp/$user.pid");
    let printed = account.undo(&run, 1);
    assert!(printed.contains("runs as it"), "{printed}");
    account.sh("kill $(cat /tmp/$user.pid)");
    account.site.lab.wait_until("! test -d /proc/$(cat /tmp/undone-cat.pid)");
    account.undo(&run, 0);
    account.sh("! getent passwd $user");
}

#[test]
fn removed_user_comes_back_with_its_home_and_password() {
    let Some(account) = Account::new("undone-dan") else { return };
    account.sh("groupadd --gid 4321 $user; useradd --uid 4000 --gid $user --create-home --groups audio --shell /bin/sh $user");
    account.sh("echo \"$user:\\$6\\$salt\\$canary\" | chpasswd --encrypted; echo dear >/home/$user/letter; chmod 600 /home/$user/letter");
    let look = "getent passwd $user; getent group $user; id -Gn $user; grep ^$user: /etc/shadow | cut -d: -f1,2; \
                find /home/$user -printf '%p %m %U %G\\n' | sort; cat /home/$user/letter";
    let before = account.sh(look);
    assert!(before.contains("$6$salt$canary"), "{before}");
    account.apply("ensure: absent, manage_home: true, force: true");
    account
        .sh("! getent passwd $user; ! test -e /home/$user; ! grep -r 'salt.canary' $CCM_STATE_DIR/history");
    account.undo("last", 0);
    assert_eq!(account.sh(look), before);
}
