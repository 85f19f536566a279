//! Entries of cron, with the real `crontab` on tables of the test's own.

use std::{fs, os::unix::fs::MetadataExt};

use crate::support::{Machine, World, has};

fn machine() -> Option<Machine> {
    if !has("crontab") {
        return None;
    }
    let prepare = "mount -t overlay -o lowerdir=/etc,upperdir=$W/etc,workdir=$W/work overlay /etc
            mount --bind $W/cron.d /etc/cron.d
            chmod 1730 $W/spool && mount --bind $W/spool /var/spool/cron/crontabs";
    Machine::new(World::new().dir("cron.d").dir("spool").dir("etc").dir("work"), prepare)
}

fn file(machine: &Machine, name: &str) -> Option<String> {
    fs::read_to_string(machine.world.path("cron.d").join(name)).ok()
}

fn crontab(machine: &Machine, user: &str) -> String {
    machine.namespace.sh(&format!("crontab -l -u {user} 2>/dev/null || true"))
}

#[test]
fn file_has_the_entry_with_escaped_percent_signs_and_a_last_newline() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares(
        "cron",
        "    - backup: { schedule: '0  3 * * *', command: date +%F, environment: { MAILTO: '', LANG: C } }\n",
    );
    machine.noop().exits(0).says("Would have created /etc/cron.d/backup").says("+0 3 * * * root date +\\%F");
    assert_eq!(file(&machine, "backup"), None);
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    let text = "LANG=C\nMAILTO=\"\"\n0 3 * * * root date +\\%F\n";
    assert_eq!(file(&machine, "backup").as_deref(), Some(text));
    let metadata = fs::metadata(machine.world.path("cron.d/backup")).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (0, 0, 0o644));
    machine.apply().exits(0).counts([0, 1, 0, 0]);

    // cron ignores a file that others can write to.
    machine.namespace.sh("chmod 666 /etc/cron.d/backup");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    let metadata = fs::metadata(machine.world.path("cron.d/backup")).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o644);

    let machine = machine.declares("cron", "    - backup: { ensure: absent }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(file(&machine, "backup"), None);
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn existing_entry_with_comments_is_adopted() {
    let Some(machine) = machine() else { return };
    let text = "# by hand\n\nPATH=/bin\n0\t3 * * * root date +\\%F\n";
    machine.namespace.sh(&format!("printf %s '{text}' > /etc/cron.d/backup"));
    let machine = machine.declares(
        "cron",
        "    - backup: { schedule: 0 3 * * *, command: date +%F, environment: { PATH: /bin } }\n",
    );
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(file(&machine, "backup").as_deref(), Some(text));
    // Without a last newline, cron ignores the entry.
    machine.namespace.sh("printf '# x\n0 3 * * * root date' > /etc/cron.d/other");
    let machine = machine.declares("cron", "    - other: { schedule: 0 3 * * *, command: date }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(file(&machine, "other").as_deref(), Some("# x\n0 3 * * * root date\n"));
}

#[test]
fn entry_of_a_crontab_leaves_the_other_lines() {
    let Some(machine) = machine() else { return };
    machine.namespace.sh("printf '# mine\nA=1\n5 4 * * * other\n*/5  * * * *  poll\n' | crontab -u nobody -");
    let machine = machine.declares("cron", 
        "    - poll: { schedule: '*/5 * * * *', command: poll, user: nobody, target: crontab }\n    - news: { schedule: '@hourly', \
         command: 'a | b', user: nobody, target: crontab, environment: { LANG: C } }\n",
    );
    machine.noop().exits(0).says("Would have added the entry to the crontab of nobody");
    machine.apply().exits(0).counts([2, 0, 0, 0]);
    let text = "# mine\nA=1\n5 4 * * * other\n# ccm: poll\n*/5 * * * * poll\n# ccm: news\n@hourly env LANG=C /bin/sh -c 'a | b'\n";
    assert_eq!(crontab(&machine, "nobody"), text);
    machine.apply().exits(0).counts([0, 2, 0, 0]);
    let machine =
        machine.declares("cron", "    - news: { ensure: absent, user: nobody, target: crontab }\n    - poll: { schedule: '@daily', command: poll, user: nobody, target: crontab }\n");
    machine.apply().exits(0).counts([2, 0, 0, 0]);
    assert_eq!(crontab(&machine, "nobody"), "# mine\nA=1\n5 4 * * * other\n# ccm: poll\n@daily poll\n");
}

#[test]
fn undo_restores_files_and_crontabs() {
    let Some(machine) = machine() else { return };
    machine.namespace.sh("printf '1 1 * * * root old\n' > /etc/cron.d/backup; printf '*/5  * * * *  poll' > p; echo >> p; crontab -u nobody p");
    let before = crontab(&machine, "nobody");
    let machine = machine.declares("cron", 
        "    - backup: { schedule: 0 3 * * *, command: new }\n    - poll: { schedule: '*/5 * * * *', command: poll, user: nobody, \
         target: crontab }\n",
    );
    machine.apply().exits(0).counts([2, 0, 0, 0]);
    machine.call(&["undo", "last"]).run().exits(0);
    assert_eq!(file(&machine, "backup").as_deref(), Some("1 1 * * * root old\n"));
    assert_eq!(crontab(&machine, "nobody"), before);
}

#[test]
fn crontab_that_cannot_be_read_is_never_written() {
    let Some(machine) = machine() else { return };
    machine.namespace.sh("printf '1 1 * * * keep\n' | crontab -u nobody -");
    let program =
        "#!/bin/sh\ncase $* in *-l*) echo 'the disk is broken' >&2; exit 1;; *) cat > /dev/null;; esac\n";
    fs::write(machine.world.path("crontab"), program).unwrap();
    machine.namespace.sh(&format!(
        "chmod 755 {0} && mount --bind {0} $(command -v crontab)",
        machine.world.path("crontab").display()
    ));
    let machine = machine
        .declares("cron", "    - a: { schedule: '@daily', command: a, user: nobody, target: crontab }\n");
    machine.apply().exits(1).says("cannot read the crontab of nobody").says("the disk is broken");
    let kept = machine.namespace.sh("cat /var/spool/cron/crontabs/nobody");
    assert!(kept.ends_with("1 1 * * * keep\n"), "{kept}");
}

#[test]
fn user_must_exist_and_be_permitted() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("cron", "    - a: { schedule: '@daily', command: a, user: nosuchuser }\n");
    machine.apply().exits(1).says("nosuchuser");
    assert_eq!(file(&machine, "a"), None);
    machine.namespace.sh("echo someone > /etc/cron.allow");
    let machine = machine.declares("cron", "    - a: { schedule: '@daily', command: a, user: nobody, target: crontab }\n    - b: { schedule: '@daily', command: b, user: nobody }\n");
    machine.apply().exits(1).counts([1, 0, 1, 0]).says("/etc/cron.allow does not list the user");
}

#[test]
fn bad_declarations_are_rejected_at_their_line() {
    for (item, message) in [
        ("a: { schedule: 61 * * * *, command: x }", "minute \"61\": use a number from 0 to 59"),
        ("a: { schedule: 0 3 * *, command: x }", "has 4 fields instead of five"),
        ("a: { schedule: '@often', command: x }", "\"@often\" is not a schedule"),
        ("a: { schedule: '@daily' }", "an entry needs a command"),
        ("a: { command: x }", "an entry needs a schedule"),
        ("a: { schedule: '@daily', command: \"a\\nb\" }", "line break"),
        ("a.b: { schedule: '@daily', command: x }", "cron ignores files with a dot"),
        (
            "a: { schedule: '@daily', command: x, environment: { 'A B': c } }",
            "is not the name of an environment variable",
        ),
        ("a: { schedule: '@daily', command: x, target: spool }", "spool"),
    ] {
        let world = World::new().manifest(&format!("- cron:\n    - {item}\n"));
        let run = world.ccm(["validate", "site.yaml"]).run();
        assert_eq!(run.code, 2, "{item}\n{}", run.stderr);
        run.complains(message).complains("site.yaml:2:");
    }
    let world = World::new().manifest("- cron:\n    - a: { schedule: '@daily', command: 'date +\\%F' }\n");
    world.ccm(["validate", "site.yaml"]).run().exits(0).complains("escaped-percent");
}
