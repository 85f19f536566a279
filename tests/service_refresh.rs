//! Services in the lab: unit files of the same manifest, restarts on change, and restarts that are owed.

use crate::lab::Site;

/// A unit and the service it makes, which tells in a file how often it was started and reloaded, and with what. It has
/// told so before systemd says that it runs.
fn counting(name: &str, value: &str) -> String {
    format!(
        r#"
- file:
    - /etc/systemd/system/{name}.service:
        owner: root
        group: root
        mode: "0644"
        content: |
          [Service]
          ExecStartPre=/bin/sh -c 'echo "started {value}" >>/run/{name}'
          ExecStart=/bin/sleep infinity
          ExecReload=/bin/sh -c 'echo "reloaded {value}" >>/run/{name}'
          [Install]
          WantedBy=multi-user.target
"#
    )
}

fn service(name: &str, properties: &str) -> String {
    format!("- service:\n    - {name}: {{ {properties} }}\n")
}

fn subscribed(name: &str) -> String {
    format!("settle: 100ms, subscribe: [file#/etc/systemd/system/{name}.service]")
}

fn told(site: &Site, name: &str) -> Vec<String> {
    let text = site.lab.sh(&format!("cat /run/{name} 2>/dev/null || true"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_unit_written_in_the_same_manifest_is_started_and_a_changed_one_restarted_with_what_is_new() {
    let Some(site) = Site::new("written") else { return };
    let manifest = |value: &str| {
        counting("written", value) + &service("written", &format!("enable: true, {}", subscribed("written")))
    };
    let noop = site.apply_with(&manifest("one"), &["--noop", "--json"]);
    assert_eq!(noop.event("written")["noop_message"], "Would have started. Would have enabled");
    assert_eq!(site.count("daemon-reload"), 0);

    site.apply(&manifest("one")).exits(0).counts([2, 0, 0, 0]);
    assert_eq!(site.count("daemon-reload"), 1, "{:#?}", site.calls());
    assert_eq!(told(&site, "written"), ["started one"]);
    site.apply(&manifest("one")).exits(0).counts([0, 2, 0, 0]);
    assert_eq!(site.count("daemon-reload"), 0);

    let noop = site.apply_with(&manifest("two"), &["--noop", "--json"]);
    assert_eq!(noop.event("written")["noop_message"], "Would have restarted");
    assert_eq!(site.count("daemon-reload"), 0);
    assert_eq!(told(&site, "written"), ["started one"]);

    let run = site.apply_with(&manifest("two"), &["--json"]);
    assert_eq!(run.exits(0).event("written")["refreshed"], true);
    assert_eq!(run.summary()["refreshed_count"], 1);
    assert_eq!((site.count("daemon-reload"), site.count("restart")), (1, 1), "{:#?}", site.calls());
    assert_eq!(told(&site, "written"), ["started one", "started two"]);
    site.apply(&manifest("two")).exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn the_first_drop_in_of_a_unit_is_in_force_after_the_restart() {
    let Some(site) = Site::new("drop-in") else { return };
    site.unit(
        "dropped",
        "ExecStartPre=/bin/sh -c 'echo \"started $VALUE\" >>/run/dropped'\nExecStart=/bin/sleep infinity",
    );
    site.lab.sh("systemctl daemon-reload; systemctl start dropped");
    let manifest = r#"
- file:
    - defaults: { owner: root, group: root, mode: "0644" }
    - /etc/systemd/system/dropped.service.d: { ensure: directory, mode: "0755" }
    - /etc/systemd/system/dropped.service.d/value.conf: { content: "[Service]\nEnvironment=VALUE=new\n" }
- service:
    - dropped:
        settle: 100ms
        subscribe: ["file#/etc/systemd/system/dropped.service.d/value.conf"]
"#;
    site.apply(manifest).exits(0);
    assert_eq!(told(&site, "dropped"), ["started ", "started new"]);
    assert_eq!(site.count("daemon-reload"), 1);
}

#[test]
fn an_installation_section_that_is_new_is_judged_as_it_is_on_disk() {
    let Some(site) = Site::new("install") else { return };
    site.write("/etc/systemd/system/install.service", "[Service]\nExecStart=/bin/sleep infinity\n");
    let service = service("install", "enable: true, settle: 0s");
    site.apply(&service).exits(0);
    assert_eq!(site.enabled("install"), "static");
    site.apply(&(counting("install", "one") + &service)).exits(0).counts([2, 0, 0, 0]);
    assert_eq!(site.enabled("install"), "enabled");
    site.apply(&(counting("install", "one") + &service)).exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn a_dry_run_foresees_whether_a_unit_can_be_enabled() {
    let Some(site) = Site::new("enabling") else { return };
    let unit = |name: &str, install: &str| {
        format!(
            "\
- file:
    - /etc/systemd/system/{name}.service:
        owner: root
        group: root
        mode: \"0644\"
        content: |
          [Service]
          ExecStart=/bin/sleep infinity
{install}
"
        )
    };
    let wanted = "          [Install]\n          # nothing yet\n          WantedBy = multi-user.target";
    let along = "          [Install]\n          Also=dbus.service";
    // The same unit is written anew each time.
    for (name, install, boot) in [
        ("enabling-a", "", "static"),
        ("enabling-a", wanted, "enabled"),
        ("enabling-b", along, "indirect"),
        ("enabling-b", "          [Install]", "static"),
        ("enabling-b", wanted, "enabled"),
        ("enabling-b", "", "enabled"),
    ] {
        let manifest = unit(name, install) + &service(name, "enable: true, settle: 0s");
        let noop = site.apply_with(&manifest, &["--noop", "--json"]);
        let real = site.apply_with(&manifest, &["--json"]);
        let case = format!("{name} {install}\n{noop}\n{real}");
        assert_eq!(site.enabled(name), boot, "{case}");
        let foretold = noop.exits(0).event(name);
        assert_eq!(foretold["changed"], real.exits(0).event(name)["changed"], "{case}");
        let enables = foretold["noop_message"].as_str().is_some_and(|message| message.contains("enabled"));
        assert_eq!(enables, install == wanted, "{case}");
    }
}

#[test]
fn a_unit_changed_by_a_command_is_read_again() {
    let Some(site) = Site::alone("by-command") else { return };
    site.unit(
        "by-command",
        "ExecStartPre=/bin/sh -c 'echo \"$VALUE\" >>/run/by-command'\nExecStart=/bin/sleep infinity",
    );
    site.lab.sh("systemctl daemon-reload; systemctl start by-command");
    let manifest = r"
- service:
    - by-command:
- exec:
    - drop:
        command: mkdir /etc/systemd/system/by-command.service.d; cp /srv/by-command/value /etc/systemd/system/by-command.service.d/value.conf
        provider: shell
        creates: /etc/systemd/system/by-command.service.d/value.conf
- service:
    - by-command.service: { settle: 100ms, subscribe: [exec#drop] }
";
    site.write("/srv/by-command/value", "[Service]\nEnvironment=VALUE=new\n");
    site.apply(manifest).exits(0).counts([2, 1, 0, 0]);
    assert_eq!(told(&site, "by-command"), ["", "new"]);
    assert_eq!(site.count("daemon-reload"), 1, "{:#?}", site.calls());
    site.apply(manifest).exits(0).counts([0, 3, 0, 0]);
    assert_eq!(site.count("daemon-reload"), 0, "{:#?}", site.calls());
}

#[test]
fn a_unit_changed_by_others_is_read_again_before_it_is_judged_or_started() {
    let Some(site) = Site::alone("others") else { return };
    let unit = |word: &str| {
        let tell = format!("ExecStartPre=/bin/sh -c 'echo {word} >>/run/by-others'");
        site.unit("by-others", &format!("{tell}\nExecStart=/bin/sleep infinity"));
    };
    unit("old");
    site.lab.sh("systemctl daemon-reload; systemctl show by-others >/dev/null");
    unit("new");
    site.apply(&service("by-others", "settle: 100ms")).exits(0);
    assert_eq!(told(&site, "by-others"), ["new"]);
    assert_eq!(site.count("daemon-reload"), 1);
}

#[test]
fn a_running_unit_that_is_stale_is_read_again_although_nothing_else_is_to_be_done() {
    let Some(site) = Site::alone("stale") else { return };
    site.unit("stale", "ExecStart=/bin/sleep infinity");
    site.lab.sh("systemctl daemon-reload; systemctl start stale");
    site.unit("stale", "ExecStart=/bin/sleep infinity\nNice=1");
    let needs_reload =
        || site.lab.sh("systemctl show --property=NeedDaemonReload --value stale").trim().to_owned();
    assert_eq!(needs_reload(), "yes");
    site.apply_with(&service("stale", ""), &["--noop"]).exits(0).counts([0, 1, 0, 0]);
    assert_eq!((site.count("daemon-reload"), needs_reload().as_str()), (0, "yes"));
    site.apply(&service("stale", "")).exits(0).counts([0, 1, 0, 0]);
    assert_eq!((site.count("daemon-reload"), needs_reload().as_str()), (1, "no"));
    site.apply(&service("stale", "")).exits(0).counts([0, 1, 0, 0]);
    assert_eq!(site.count("daemon-reload"), 0);
    site.lab.sh("systemctl stop stale");
}

#[test]
fn a_change_starts_what_does_not_run_and_leaves_what_shall_not() {
    let Some(site) = Site::new("not-running") else { return };
    let (running, stopped) = (subscribed("idle"), format!("ensure: stopped, {}", subscribed("idle")));
    let run = site.apply_with(&(counting("idle", "one") + &service("idle", &running)), &["--json"]);
    let event = run.exits(0).event("idle");
    assert_eq!((&event["changed"], &event["refreshed"]), (&true.into(), &false.into()));
    assert_eq!((site.count("start"), site.count("restart")), (1, 0));

    site.lab.sh("systemctl stop idle");
    site.apply(&(counting("idle", "two") + &service("idle", &stopped))).exits(0).counts([1, 1, 0, 0]);
    assert_eq!(site.active("idle"), "inactive");
    site.lab.sh("systemctl start idle");
    site.apply(&(counting("idle", "three") + &service("idle", &stopped))).exits(0).counts([2, 0, 0, 0]);
    assert_eq!((site.count("restart"), site.active("idle")), (0, "inactive".to_owned()));
    assert_eq!(told(&site, "idle"), ["started one", "started two"]);
}

#[test]
fn a_service_can_reload_instead_of_being_restarted() {
    let Some(site) = Site::new("reload") else { return };
    let manifest = |value: &str| {
        counting("reloaded", value)
            + &service("reloaded", &format!("restart: reload, {}", subscribed("reloaded")))
    };
    site.apply(&manifest("one")).exits(0);
    let noop = site.apply_with(&manifest("two"), &["--noop", "--json"]);
    assert_eq!(noop.event("reloaded")["noop_message"], "Would have reloaded");
    let run = site.apply_with(&manifest("two"), &["--json"]);
    assert_eq!(run.exits(0).event("reloaded")["refreshed"], true);
    assert_eq!(told(&site, "reloaded"), ["started one", "reloaded two"]);

    // One that cannot reload is restarted.
    site.unit(
        "unreloadable",
        "ExecStartPre=/bin/sh -c 'echo x >>/run/unreloadable'\nExecStart=/bin/sleep infinity",
    );
    site.lab.sh("systemctl daemon-reload; systemctl start unreloadable");
    let manifest = r#"
- file:
    - /srv/reload/config: { content: "new", owner: root, group: root, mode: "0644" }
- service:
    - unreloadable: { restart: reload, settle: 100ms, subscribe: ["file#/srv/reload/config"] }
"#;
    site.apply(manifest).exits(0).counts([2, 0, 0, 0]);
    assert_eq!(told(&site, "unreloadable").len(), 2);
}

#[test]
fn a_restart_that_a_kill_prevented_is_done_by_the_next_run_exactly_once() {
    let Some(site) = Site::new("killed") else { return };
    let manifest = |value: &str| counting("killed", value) + &service("killed", &subscribed("killed"));
    site.apply(&manifest("one")).exits(0);

    site.before("restart", "kill -KILL $PPID; exit 1");
    assert_ne!(site.apply(&manifest("two")).code, 0);
    site.before_no_more("restart");
    assert_eq!(told(&site, "killed"), ["started one"], "it was killed before the restart");

    let run = site.apply_with(&manifest("two"), &["--json"]);
    run.exits(0);
    assert_eq!(run.event("killed.service")["changed"], false, "the file was done");
    assert_eq!(run.event("killed")["refreshed"], true);
    assert_eq!(told(&site, "killed"), ["started one", "started two"]);
    site.apply(&manifest("two")).exits(0).counts([0, 2, 0, 0]);
    assert_eq!(told(&site, "killed").len(), 2);
}

#[test]
fn a_restart_that_failed_is_owed_until_it_succeeds() {
    let Some(site) = Site::new("owed") else { return };
    let manifest = |value: &str| counting("owed", value) + &service("owed", &subscribed("owed"));
    site.apply(&manifest("one")).exits(0);

    site.before("restart", "echo 'no restart today' >&2; exit 7");
    for counts in [[1, 0, 1, 0], [0, 1, 1, 0]] {
        site.apply(&manifest("two"))
            .exits(1)
            .counts(counts)
            .says("systemctl restart owed failed: no restart today");
    }
    site.before_no_more("restart");
    site.apply(&manifest("two")).exits(0).counts([1, 1, 0, 0]);
    assert_eq!(told(&site, "owed"), ["started one", "started two"]);
    site.apply(&manifest("two")).exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn the_example_does_its_work_once_and_restarts_on_a_change() {
    let Some(site) = Site::new("example") else { return };
    let example = include_str!("../examples/service.yaml");
    site.apply(example).exits(0).counts([5, 0, 0, 0]);
    site.apply(example).exits(0).counts([0, 5, 0, 0]);
    let changed = site.apply(&example.replace("greeting: hello", "greeting: welcome"));
    changed.exits(0).counts([2, 3, 0, 0]).reports("service#ccm-example", "restarted");
}
