//! Users and groups, with the real tools on account files of the test's own.
//!
//! Each run sees an `/etc` and a `/home` of its own through a mount namespace, so that the machine's own accounts are left
//! alone.

use std::{fs, os::unix::fs::MetadataExt, path::Path, process::Command};

use crate::support::{Outcome, World, has, is_root, sh};

/// What the tools, and programs in general, look at in `/etc`. All of it would be copied a hundred times.
const READ: &str = "passwd group shadow gshadow subuid subgid shells login.defs default pam.conf pam.d security nsswitch.conf \
    ld.so.cache localtime os-release";

/// A machine whose account files are its own.
pub(crate) struct Machine {
    pub(crate) world: World,
}

impl Machine {
    /// Makes one; nothing where the test cannot act as root.
    pub(crate) fn new() -> Option<Self> {
        Self::of(World::new)
    }

    /// As [`Machine::new`], with more in its world.
    pub(crate) fn of(world: impl FnOnce() -> World) -> Option<Self> {
        if !is_root() || !has("useradd") || !has("unshare") {
            return None;
        }
        let world = world().dir("etc").dir("home");
        let etc = world.path("etc");
        sh(&format!("into=$PWD/etc; cd /etc; cp -a $(ls -d {READ} 2>/dev/null) \"$into\""), &world.path(""));
        sh("mkdir -p etc/skel && echo hello > etc/skel/.greeting", &world.path(""));
        assert!(etc.join("passwd").is_file());
        Some(Self { world })
    }

    /// Makes another one that is as this one is now.
    pub(crate) fn copy(&self) -> Self {
        let world = World::new();
        sh(&format!("cp -a {}/. .", self.world.base().display()), world.base());
        Self { world }
    }

    /// Runs a shell command on the machine; `ccm` is the program.
    pub(crate) fn run(&self, command: &str) -> Outcome {
        let world = &self.world;
        let script = format!(
            "mount --bind {etc} /etc && mount --bind {home} /home || exit 9\nccm() {{ {ccm} \"$@\"; }}\n{command}",
            etc = world.path("etc").display(),
            home = world.path("home").display(),
            ccm = env!("CARGO_BIN_EXE_ccm"),
        );
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", &script])
            .current_dir(world.base())
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CCM_STATE_DIR", world.state())
            .env("HASH", HASH)
            .env("CCM", env!("CARGO_BIN_EXE_ccm"))
            .output()
            .expect("unshare");
        Outcome::new(command.to_owned(), output)
    }

    /// Applies a manifest.
    pub(crate) fn apply(&self, manifest: &str, arguments: &str) -> Outcome {
        fs::write(self.world.base().join("site.yaml"), manifest).unwrap();
        self.run(&format!("ccm apply site.yaml {arguments}"))
    }

    /// Applies a manifest as a dry run, for real and again: the second real run changes nothing.
    #[track_caller]
    fn converges(&self, manifest: &str, changes: usize) -> Outcome {
        let before = self.tree();
        self.apply(manifest, "--noop").exits(0).says(&format!("{changes} changed"));
        assert_eq!(self.tree(), before, "a dry run changes nothing");
        let outcome = self.apply(manifest, "");
        outcome.exits(0).says(&format!("{changes} changed"));
        self.apply(manifest, "").exits(0).never_says(" changed");
        outcome
    }

    fn tree(&self) -> Vec<String> {
        ["passwd", "group", "shadow"].iter().map(|name| self.read(&format!("etc/{name}"))).collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.world.path(name)).expect(name)
    }

    /// The line of an account in one of the files.
    #[track_caller]
    pub(crate) fn line(&self, file: &str, name: &str) -> Option<String> {
        let text = self.read(&format!("etc/{file}"));
        text.lines().find(|line| line.split(':').next() == Some(name)).map(str::to_owned)
    }
}

pub(crate) const HASH: &str =
    "$6$salt$QxFtjQJrZoE4WZpYQ9rZ7dvkC6LUd7SNQUtqrGwY2Kx0T8Vg6xJ9Yq6y1f0mH3kzj0o0mZxg5n9i6k8m7s4L1.";
pub(crate) const ANN: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPWOQ2r2JxPnzWQe9eDVvXFSmvhpbb9oBMk8mF6cnVv ann@laptop";
const BOB: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA bob@desk";

#[test]
fn a_user_and_its_group_live_and_die() {
    let Some(machine) = Machine::new() else { return };
    let manifest = "
- group:
    - crew: { gid: 4100 }
    - extra:
- user:
    - ccm-ann:
        uid: 4200
        group: crew
        groups: [extra]
        shell: /bin/sh
        comment: Ann Example
        manage_home: true
        expires: 2035-01-31
        password: \"{{ Environ.HASH }}\"
- file:
    - /home/ccm-ann/note: { content: x, owner: ccm-ann, group: crew, mode: '0600' }
";
    machine.converges(manifest, 4).never_says("salt");
    assert_eq!(
        machine.line("passwd", "ccm-ann").unwrap(),
        "ccm-ann:x:4200:4100:Ann Example:/home/ccm-ann:/bin/sh"
    );
    let shadow = machine.line("shadow", "ccm-ann").unwrap();
    assert!(shadow.starts_with(&format!("ccm-ann:{HASH}:")) && shadow.ends_with(":23771:"), "{shadow}");
    assert!(machine.line("group", "extra").unwrap().ends_with(":ccm-ann"));
    assert_eq!(machine.read("home/ccm-ann/.greeting"), "hello\n");

    let changed =
        manifest.replace("Ann Example", "Ann").replace("/bin/sh", "/bin/bash").replace("[extra]", "[]");
    machine.converges(&changed, 1);
    assert!(machine.line("group", "extra").unwrap().ends_with(":ccm-ann"), "at least these groups");
    let exact = changed.replace("groups: []", "groups: []\n        membership: exact\n        locked: true");
    machine.converges(&exact, 1);
    assert!(machine.line("group", "extra").unwrap().ends_with(':'));
    assert!(machine.line("shadow", "ccm-ann").unwrap().starts_with(&format!("ccm-ann:!{HASH}:")));
    let moved = exact.split("- file:").next().unwrap();
    let moved = moved.replace("manage_home: true", "manage_home: true\n        home: /home/moved");
    machine.converges(&moved, 1);
    assert!(
        machine.world.path("home/moved/.greeting").exists() && !machine.world.path("home/ccm-ann").exists()
    );

    machine
        .apply("- group: [{crew: {ensure: absent}}]", "")
        .exits(1)
        .says("it is the first group of the user \"ccm-ann\"");
    machine.converges(
        "- user: [{ccm-ann: {ensure: absent, manage_home: true}}]\n- group: [{crew: {ensure: absent}}]",
        2,
    );
    assert!(machine.line("passwd", "ccm-ann").is_none() && machine.line("group", "crew").is_none());
    assert!(machine.world.path("home/moved").exists(), "a home is removed only with force");
}

#[test]
fn a_home_goes_only_with_force_and_comes_back_when_it_is_missing() {
    let Some(machine) = Machine::new() else { return };
    let manifest = "- user: [{ccm-eve: {manage_home: true}}]";
    machine.converges(manifest, 1);
    fs::remove_dir_all(machine.world.path("home/ccm-eve")).unwrap();
    machine.converges(manifest, 1);
    assert_eq!(machine.read("home/ccm-eve/.greeting"), "hello\n");
    machine.converges("- user: [{ccm-eve: {ensure: absent, manage_home: true, force: true}}]", 1);
    assert!(!machine.world.path("home/ccm-eve").exists());
}

#[test]
fn keys_are_added_kept_and_removed() {
    let Some(machine) = Machine::new() else { return };
    let manifest = |keys: &str, only: &str| {
        format!("- user: [{{ccm-ann: {{manage_home: true, authorized_keys: [{keys}]{only}}}}}]")
    };
    machine.converges(&manifest(&format!("'{ANN}'"), ""), 1);
    let file = "home/ccm-ann/.ssh/authorized_keys";
    assert_eq!(machine.read(file), format!("{ANN}\n"));
    fs::write(machine.world.path(file), format!("# mine\n{BOB}\n{ANN}\n")).unwrap();
    machine.apply(&manifest(&format!("'{ANN}'"), ""), "").exits(0).never_says(" changed");
    machine.converges(&manifest(&format!("'{ANN}'"), ", authorized_keys_only: true"), 1);
    assert_eq!(machine.read(file), format!("# mine\n{ANN}\n"));
    let who = machine.run("stat -c '%U %a' /home/ccm-ann/.ssh /home/ccm-ann/.ssh/authorized_keys");
    assert_eq!(who.stdout, "ccm-ann 700\nccm-ann 600\n");
    machine.converges(&manifest("", ", authorized_keys_only: true"), 1);
    assert_eq!(machine.read(file), "# mine\n");
    machine.apply(&manifest("'ssh-ed25519 nonsense!'", ""), "").exits(2).complains("is not base64");
}

#[test]
fn keys_that_others_could_read_or_write_are_protected_again() {
    let Some(machine) = Machine::new() else { return };
    let manifest = format!("- user: [{{ccm-ann: {{manage_home: true, authorized_keys: ['{ANN}']}}}}]");
    machine.converges(&manifest, 1);
    for command in [
        "chmod 0644 /home/ccm-ann/.ssh/authorized_keys",
        "chown root /home/ccm-ann/.ssh/authorized_keys",
        "chmod 0755 /home/ccm-ann/.ssh",
    ] {
        machine.run(command).exits(0);
        machine.converges(&manifest, 1).says("(authorized_keys)");
        let who = machine.run("stat -c '%U %a' /home/ccm-ann/.ssh /home/ccm-ann/.ssh/authorized_keys");
        assert_eq!(who.stdout, "ccm-ann 700\nccm-ann 600\n", "{command}");
    }
}

#[test]
fn a_home_is_made_of_the_skeleton_and_never_over_another() {
    let Some(machine) = Machine::new() else { return };
    machine.run("mkdir -p /etc/skel/.config/deep && echo x > /etc/skel/.config/deep/x && chmod 0750 /etc/skel/.config && ln -s .greeting /etc/skel/link").exits(0);
    machine.converges("- user: [{ccm-ann: {manage_home: true, home: /home/far/away}}]", 1);
    let found = machine.run("cd /home/far/away && stat -c '%n %U:%G %a' .config .config/deep/x link && readlink link && cat .greeting");
    assert_eq!(
        found.stdout,
        ".config ccm-ann:ccm-ann 750\n.config/deep/x ccm-ann:ccm-ann 644\nlink ccm-ann:ccm-ann 777\n.greeting\nhello\n"
    );
    machine.run("mkdir /home/taken && touch /home/taken/x").exits(0);
    for mode in ["--noop", ""] {
        let refused = machine.apply("- user: [{ccm-ann: {manage_home: true, home: /home/taken}}]", mode);
        refused.exits(1).says("/home/far/away cannot be moved to /home/taken: something is there");
    }
    machine.run("usermod --home /home ccm-ann").exits(0);
    let gone = "- user: [{ccm-ann: {ensure: absent, manage_home: true, force: true}}]";
    machine.apply(gone, "").exits(1).says("the home directory /home is not removed");
    assert!(machine.line("passwd", "ccm-ann").is_some(), "nothing was done");
}

#[test]
fn a_user_that_only_the_name_service_knows_is_left_to_it() {
    let Some(machine) = Machine::new() else { return };
    let answer =
        "#!/bin/sh\n[ \"$1 $2\" = 'passwd ccm-far' ] && echo 'ccm-far:*:7000:7000:Far:/home/far:/bin/sh'\n";
    fs::create_dir(machine.world.base().join("fake")).unwrap();
    fs::write(machine.world.base().join("fake/getent"), answer).unwrap();
    sh("chmod +x fake/getent", machine.world.base());
    let before = machine.tree();
    for (properties, code, said) in [
        ("{}", 0, "1 unchanged"),
        ("{uid: 7000}", 0, "1 unchanged"),
        ("{uid: 7001}", 1, "the user \"ccm-far\" is not local: only the name service knows it"),
        ("{ensure: absent}", 1, "the user \"ccm-far\" is not local: only the name service knows it"),
        ("{groups: [daemon]}", 1, "the user \"ccm-far\" is not local"),
    ] {
        fs::write(machine.world.base().join("site.yaml"), format!("- user: [{{ccm-far: {properties}}}]"))
            .unwrap();
        for mode in ["--noop", ""] {
            let run = machine.run(&format!("PATH=$PWD/fake:$PATH; ccm apply site.yaml {mode}"));
            run.exits(code).says(said);
        }
    }
    assert_eq!(machine.tree(), before);
}

#[test]
fn what_is_in_the_way_is_said_before_anything_is_done() {
    let Some(machine) = Machine::new() else { return };
    machine.apply("- user: [{ccm-ann: {uid: 4300}}]", "").exits(0);
    let before = machine.tree();
    for (manifest, words) in [
        ("- user: [{ccm-bob: {uid: 4300}}]", "the number 4300 belongs to the user \"ccm-ann\""),
        (
            "- user: [{ccm-bob: {group: no-such-group}}]",
            "group \"no-such-group\" does not exist on this machine",
        ),
        (
            "- user: [{ccm-bob: {groups: [no-such-group]}}]",
            "group \"no-such-group\" does not exist on this machine",
        ),
        ("- group: [{ccm-crew: {gid: 0}}]", "the number 0 belongs to the group \"root\""),
        ("- user: [{ccm-ann: {locked: false}}]", "there is no password that could be unlocked"),
    ] {
        for mode in ["--noop", ""] {
            machine.apply(manifest, mode).exits(1).says(words);
        }
    }
    for (manifest, words) in [
        ("- user: [{-bob: {}}]", "it begins with '-'"),
        ("- user: [{'a:b': {}}]", "it contains ':'"),
        ("- user: [{'1000': {}}]", "is a number"),
        ("- user: [{root: {ensure: absent}}]", "the user root cannot be removed"),
        ("- user: [{ccm-bob: {password: hunter2}}]", "is not a hash of crypt"),
        ("- user: [{ccm-bob: {expires: soon}}]", "is not a day such as"),
        ("- user: [{ccm-bob: {authorized_keys_only: true}}]", "needs `authorized_keys`"),
    ] {
        machine.apply(manifest, "").exits(2).complains(words).never_says("hunter2");
    }
    assert_eq!(machine.tree(), before);
    let busy = machine.run(
        "setpriv --reuid 4300 --clear-groups sleep 10000 & until grep -qs sleep /proc/$!/comm; do sleep 0.01; done; ccm ensure user ccm-ann absent; status=$?; kill $!; exit $status",
    );
    busy.exits(1).says("the user is in use: process");
}

#[test]
fn a_dry_run_knows_the_accounts_that_earlier_resources_make() {
    let Some(machine) = Machine::new() else { return };
    let manifest = "
- group: [{ccm-crew: {}}]
- user: [{ccm-ann: {group: ccm-crew, groups: [ccm-crew], manage_home: true}}]
- file:
    - /home/ccm-ann/.profile: { content: x, owner: ccm-ann, group: ccm-crew, mode: '0600' }
- exec:
    - /bin/true: { user: ccm-ann }
";
    machine.apply(manifest, "--noop").exits(0).says("4 changed");
    machine.apply(manifest, "").exits(0).says("4 changed");
    let events = machine.apply(manifest, "--json");
    assert_eq!(events.event("ccm-ann")["final_ensure"], "present");
}

#[test]
fn what_a_command_makes_of_an_account_is_known_to_what_comes_behind_it() {
    let Some(machine) = Machine::new() else { return };
    machine.run("useradd --uid 4301 ccm-ann").exits(0);
    let folder = machine.world.base();
    let file = |name: &str| {
        let path = folder.join(name);
        format!("- file: [{{{path:?}: {{ content: x, owner: ccm-ann, group: root, mode: '0600' }}}}]\n")
    };
    machine.apply(&file("early"), "").exits(0);
    // The first asks who that is and changes nothing.
    let exec = "- exec: [{usermod --uid 4302 ccm-ann: {}}]\n".to_owned();
    machine.apply(&(file("early") + &exec + &file("late")), "").exits(0).says("2 changed, 1 unchanged");
    let owner = |name: &str| fs::metadata(folder.join(name)).unwrap().uid();
    assert_eq!((owner("early"), owner("late")), (4301, 4302));
}

#[test]
fn a_password_is_in_no_argument_and_no_output() {
    let Some(machine) = Machine::new() else { return };
    let world = &machine.world;
    let spy =
        "#!/bin/sh\nfor a; do echo \"$a\" >> \"$SPY\"; done\nexec /usr/sbin/$(basename \"$0\") \"$@\"\n";
    fs::create_dir(world.base().join("spy")).unwrap();
    for tool in ["useradd", "usermod", "chpasswd"] {
        fs::write(world.base().join("spy").join(tool), spy).unwrap();
    }
    sh("chmod +x spy/*", world.base());
    fs::write(world.base().join("site.yaml"), "- user: [{ccm-ann: {password: '{{ Environ.HASH }}'}}]")
        .unwrap();
    let outcome = machine.run("export SPY=$PWD/seen PATH=$PWD/spy:$PATH; ccm apply site.yaml --json --diff");
    outcome.exits(0).never_says("salt");
    let seen = fs::read_to_string(world.base().join("seen")).unwrap();
    assert!(seen.contains("--encrypted") && !seen.contains("salt"), "{seen}");
    assert!(!Path::new("/etc/ccm-ann").exists());
    assert!(machine.line("shadow", "ccm-ann").unwrap().contains(HASH));
}
