//! Packages in the lab: what only apt and dpkg have.

use std::process::Stdio;

use crate::{lab::Machine, support::with_time_enough};

/// Holds a lock of the package system until the file at `/run/free` is there.
const HOLD: &str = "import fcntl, os, sys, time\n\
                    lock = open(sys.argv[1], 'w')\n\
                    fcntl.lockf(lock, fcntl.LOCK_EX)\n\
                    open('/run/held', 'w').close()\n\
                    while not os.path.exists('/run/free'): time.sleep(0.02)\n";

const FRONTEND: &str = "/var/lib/dpkg/lock-frontend";

#[test]
fn a_lock_is_waited_for_and_its_holder_is_named() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    machine.write("/run/hold.py", HOLD);
    let holder =
        machine.command(&["python3", "/run/hold.py", FRONTEND]).stdout(Stdio::null()).spawn().unwrap();
    machine.wait_for("/run/held");

    with_time_enough(|limit| {
        let given_up = machine.apply(&format!("- package:\n    - two: {{ timeout: {limit} }}\n"));
        assert!(machine.calls_of("apt-get", "install").is_empty(), "{:#?}", machine.calls());
        let said = format!("gave up after {limit}: still python3 (");
        let came_to_the_lock = given_up.exits(1).stdout.contains(&said);
        came_to_the_lock.then(|| given_up.says("holds /var/lib/dpkg/lock-frontend").code)
    });

    let run = machine.begin("- package:\n    - two:\n", &[]);
    run.says("waiting: python3 (");
    machine.write("/run/free", "");
    run.finish().exits(0).counts([1, 0, 0, 0]);
    let _ = holder.wait_with_output();
}

#[test]
fn a_package_that_was_left_half_configured_is_finished() {
    let Some(machine) = Machine::apt() else { return };
    let manifest = "- package:\n    - stubborn:\n";
    let failed = machine.apply_with(manifest, &["--json"]);
    let event = failed.exits(1).event("stubborn");
    assert_eq!(event["final_ensure"], "absent", "only what is installed counts\n{failed}");
    assert_eq!(event["status"]["metadata"]["extended"]["status"], "half-configured");
    assert!(event["error"].to_string().contains("not before /run/stubborn-may is there"), "{failed}");

    // Another package is installed all the same, and the trouble is told.
    let other = machine.apply("- package:\n    - one:\n");
    other.exits(0).counts([1, 0, 0, 0]).says("stubborn");

    machine.write("/run/stubborn-may", "");
    let repaired = machine.apply_with(manifest, &["--json"]);
    assert_eq!(repaired.exits(0).event("stubborn")["final_ensure"], "1.0", "{repaired}");
    assert_eq!(machine.calls_of("dpkg", "--configure").len(), 1, "{:#?}", machine.calls());
    machine.apply(manifest).exits(0).counts([0, 1, 0, 0]);
    assert!(machine.calls_of("dpkg", "--configure").is_empty());
}

#[test]
fn half_of_a_package_is_removed_when_it_has_to_go() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - stubborn:\n").exits(1);
    let gone = machine.apply("- package:\n    - stubborn: { ensure: absent }\n");
    gone.exits(0).counts([1, 0, 0, 0]);
    assert!(!machine.exists("/usr/share/stubborn"));
}

#[test]
fn absent_leaves_the_configuration_and_purged_does_not() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - configured:\n").exits(0);
    let status = |ensure: &str| {
        let run = machine
            .apply_with(&format!("- package:\n    - configured: {{ ensure: {ensure} }}\n"), &["--json"]);
        let event = run.exits(0).event("configured");
        (event["changed"].clone(), event["status"]["metadata"]["extended"]["status"].clone())
    };
    assert_eq!(status("absent"), (true.into(), "config-files".into()));
    assert!(machine.exists("/etc/configured.conf"));
    assert_eq!(status("absent"), (false.into(), "config-files".into()));
    let noop =
        machine.apply_with("- package:\n    - configured: { ensure: purged }\n", &["--noop", "--json"]);
    assert_eq!(noop.event("configured")["noop_message"], "Would have purged");
    assert_eq!(status("purged"), (true.into(), "not-installed".into()));
    assert!(!machine.exists("/etc/configured.conf"));
    assert_eq!(status("purged"), (false.into(), "not-installed".into()));
}

#[test]
fn nothing_is_ever_asked() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - curious:\n").exits(0).counts([1, 0, 0, 0]);
}

#[test]
fn a_virtual_package_and_an_unknown_one_are_two_things() {
    let Some(machine) = Machine::apt() else { return };
    let run = machine.apply("- package:\n    - virtual:\n    - nosuch:\n");
    run.exits(1).says("`virtual` is known, but no apt repository offers a version that can be installed");
    run.says("no apt repository offers a package `nosuch`");
    assert!(machine.calls_of("apt-get", "install").is_empty());
}

#[test]
fn an_architecture_can_be_named() {
    let Some(machine) = Machine::apt() else { return };
    let native = machine.sh("dpkg --print-architecture").trim().to_owned();
    let manifest = format!("- package:\n    - arched:{native}:\n    - \"tool:{native}\":\n");
    machine.apply(&manifest).exits(0).counts([2, 0, 0, 0]);
    machine.apply(&manifest).exits(0).counts([0, 2, 0, 0]);
    machine.apply("- package:\n    - arched:\n    - tool:\n").exits(0).counts([0, 2, 0, 0]);
    machine
        .apply("- package:\n    - arched:riscv64: { refresh: never }\n")
        .exits(1)
        .says("is not in the package index");
}

#[test]
fn a_name_that_apt_would_take_for_a_pattern_or_for_the_opposite_does_nothing() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    // To apt-get, `one-` is "remove one" and `on.` any package that is like it.
    machine.apply("- package:\n    - one-:\n").exits(1).says("is not the name of a Debian package");
    machine.apply("- package:\n    - on.:\n").exits(1).says("no apt repository offers a package `on.`");
    machine.apply("- package:\n    - one+: { ensure: absent }\n").exits(0).counts([0, 1, 0, 0]);
    machine.sh("dpkg -s one");
}

#[test]
fn options_stand_before_the_names() {
    let Some(machine) = Machine::apt() else { return };
    let manifest = "- package:\n    - one: { options: [\"--no-install-recommends\"] }\n    - two:\n";
    machine.apply(manifest).exits(0);
    let calls = machine.calls_of("apt-get", "install");
    assert_eq!(calls.len(), 2, "one for each set of options");
    assert!(calls[0].ends_with("install --no-install-recommends -- one"), "{calls:#?}");
    assert!(calls[1].ends_with("install -- two"), "{calls:#?}");
}

#[test]
fn the_lists_are_brought_up_to_date_when_there_is_a_reason_and_once() {
    let Some(machine) = Machine::apt() else { return };
    let updates = || machine.calls_of("apt-get", "update").len();
    let noop = machine.apply_with("- package:\n    - one:\n    - two:\n", &["--noop"]);
    noop.exits(0).says("Would have installed").says("a real run would refresh the package index first");
    assert_eq!(updates(), 0, "a dry run never does");

    machine.apply("- package:\n    - one:\n    - two: { refresh: always }\n").exits(0).counts([2, 0, 0, 0]);
    assert_eq!(updates(), 1, "there were none");
    machine.apply("- package:\n    - three:\n    - tool: { ensure: latest }\n").exits(0);
    assert_eq!(updates(), 0, "they are new");
    machine
        .apply("- package:\n    - three: { refresh: always }\n    - plain: { refresh: always }\n")
        .exits(0);
    assert_eq!(updates(), 1, "only for what has to be installed, and then always");
    machine
        .sh("touch -d '2 days ago' /var/lib/apt/lists /var/lib/apt/lists/partial /etc/apt/sources.list.d \
                /etc/apt/sources.list.d/*");
    machine.apply("- package:\n    - tool: { ensure: latest, refresh: never }\n").exits(0);
    assert_eq!(updates(), 0);
    machine.apply("- package:\n    - tool: { ensure: latest, refresh: 3d }\n").exits(0);
    assert_eq!(updates(), 0);
    machine.apply("- package:\n    - tool: { ensure: latest }\n").exits(0);
    assert_eq!(updates(), 1, "older than a day");

    // A source that the run itself brings is known to the next package.
    let brings = "- file:\n    - /etc/apt/sources.list.d/late.list:\n        content: \"deb [trusted=yes] file:/repositories/late ./\\n\"\n        \
                  owner: root\n        group: root\n        mode: \"0644\"\n- package:\n    - late:\n";
    machine.apply_with(brings, &["--noop"]).exits(0).says("a real run would");
    assert_eq!(updates(), 0);
    machine.apply(brings).exits(0).counts([2, 0, 0, 0]);
    assert_eq!(updates(), 1);
}

#[test]
fn package_index_that_cannot_be_refreshed_is_a_warning_and_the_reason_why_a_package_is_missing() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    // Nothing listens on this port. `apt-get update` alone exits with 0 here.
    let broken = "deb [trusted=yes] http://127.0.0.1:9/debian ./\n";
    machine.write("/etc/apt/sources.list.d/broken.list", broken);
    let run = machine.apply("- package:\n    - two:\n    - nosuch:\n    - tool: { ensure: \"9.9\" }\n");
    run.exits(1).counts([1, 0, 2, 0]);
    let reason = "the package index could not be refreshed: apt-get update failed with exit status 100:\n";
    assert_eq!(run.stdout.matches(reason).count() + run.stderr.matches(reason).count(), 3, "{run}");
    run.says("E: Failed to fetch http://127.0.0.1:9/debian/./InRelease  Could not connect to 127.0.0.1:9");
    run.says("help: check the network and the repositories in /etc/apt/sources.list.d; `nosuch` is not in the present index");
    run.says("version 9.9 of `tool` is not in the present index").never_says("no apt repository offers");
    assert_eq!(machine.calls_of("apt-get", "update").len(), 1);

    machine.sh("rm /etc/apt/sources.list.d/broken.list");
    machine.apply("- package:\n    - nosuch:\n").exits(1).says("no apt repository offers a package `nosuch`");
}

#[test]
fn machine_without_network_names_the_package_index_and_not_the_repositories() {
    let Some(machine) = Machine::apt() else { return };
    machine.sh("rm -r /var/lib/apt/lists");
    machine.write("/etc/apt/sources.list.d/lab.list", "deb [trusted=yes] http://127.0.0.1:9/debian ./\n");
    let run = machine.apply("- package:\n    - cowsay:\n");
    run.exits(1)
        .says("the package index could not be refreshed: apt-get update failed with exit status 100:")
        .says("Connection refused")
        .never_says("no apt repository offers");
}
