//! Services in the lab: units that come and go, and those that are on their way up when they shall not run.

use crate::lab::Site;

const SLEEP: &str = "ExecStart=/bin/sleep infinity";

fn service(name: &str, properties: &str) -> String {
    format!("- service:\n    - {name}: {{ {properties} }}\n")
}

/// Applies it dry and for real: both say that this is done, and it is.
#[track_caller]
fn comes_about(site: &Site, name: &str, properties: &str, done: &str) {
    let manifest = service(name, properties);
    let noop = site.apply_with(&manifest, &["--noop", "--json"]);
    assert_eq!(noop.exits(0).event(name)["noop_message"], format!("Would have {done}"), "{noop}");
    site.apply(&manifest).exits(0).reports(&format!("service#{name}"), done);
}

#[test]
fn a_running_unit_whose_file_is_gone_can_be_stopped() {
    let Some(site) = Site::new("gone") else { return };
    site.unit("gone", SLEEP);
    site.lab.sh("systemctl daemon-reload; systemctl start gone; rm /etc/systemd/system/gone.service");
    let status = site.ccm(&["status", "service", "gone", "--json"]).exits(0).json();
    // The word of newer versions of systemd; older ones have only a message.
    assert_eq!(status["metadata"]["unit_file_state"], "not-found");
    assert_eq!(status["metadata"]["enabled"], false);
    let refused = site.apply(&service("gone", "enable: true"));
    refused.exits(1).says("gone.service runs without a unit file: it cannot be enabled").says("(enable)");
    site.apply(&service("gone", "enable: false")).exits(0).counts([0, 1, 0, 0]);
    comes_about(&site, "gone", "ensure: stopped, enable: false", "stopped");
    assert_eq!(site.active("gone"), "inactive");
    site.apply(&service("gone", "ensure: stopped")).exits(1).says("service not found");
}

#[test]
fn a_running_unit_whose_file_is_gone_goes_on_running() {
    let Some(site) = Site::new("goes-on") else { return };
    site.unit("goes-on", SLEEP);
    site.lab.sh("systemctl daemon-reload; systemctl start goes-on; rm /etc/systemd/system/goes-on.service");
    site.apply(&service("goes-on", "")).exits(0).counts([0, 1, 0, 0]);
    site.lab.sh("systemctl daemon-reload");
    site.apply(&service("goes-on", "")).exits(0).counts([0, 1, 0, 0]);
    site.lab.sh("systemctl stop goes-on");
}

#[test]
fn a_unit_that_vanishes_when_it_is_stopped_was_stopped() {
    let Some(site) = Site::new("transient") else { return };
    site.lab.sh("systemd-run --quiet --unit=passing sleep infinity");
    let run = site.apply_with(&service("passing", "ensure: stopped"), &["--json"]);
    let event = run.exits(0).event("passing");
    assert_eq!((&event["changed"], &event["final_ensure"]), (&true.into(), &"stopped".into()), "{run}");
    assert_eq!(event["status"]["metadata"]["enabled"], false, "{run}");
    assert_eq!(site.active("passing"), "inactive");
}

#[test]
fn a_unit_that_vanishes_when_it_is_disabled_was_disabled() {
    let Some(site) = Site::new("unlinked") else { return };
    let unit = format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\n");
    site.write("/opt/unlinked.service", &unit);
    for (command, properties, done) in [
        ("enable", "ensure: stopped, enable: false", "disabled"),
        ("enable --now", "ensure: stopped, enable: false", "stopped. disabled"),
        ("enable --now", "ensure: running, enable: false", "disabled"),
    ] {
        site.lab.sh(&format!(
            "systemctl link --quiet /opt/unlinked.service; systemctl {command} --quiet unlinked"
        ));
        let manifest = service("unlinked", properties);
        let event = site.apply_with(&manifest, &["--noop", "--json"]).exits(0).event("unlinked");
        let foretold =
            done.split(". ").map(|deed| format!("Would have {deed}")).collect::<Vec<_>>().join(". ");
        assert_eq!(event["noop_message"], foretold);
        site.apply(&manifest).exits(0).reports("service#unlinked", &done.replace(". ", ", "));
    }
    // It runs on without a file.
    site.apply(&service("unlinked", "enable: false")).exits(0).counts([0, 1, 0, 0]);
    site.lab.sh("systemctl stop unlinked");
}

#[test]
fn a_unit_on_its_way_up_is_stopped_when_it_shall_not_run() {
    let Some(site) = Site::new("coming-up") else { return };
    site.unit("coming-up", "Type=notify\nExecStart=/bin/sleep infinity\nTimeoutStartSec=infinity");
    site.unit("dies-again", "ExecStart=/bin/false\nRestart=always\nRestartSec=1h");
    site.lab.sh("systemctl daemon-reload; systemctl start --no-block coming-up dies-again");
    site.lab.wait_until("systemctl show --property=SubState dies-again | grep auto-restart");
    for name in ["coming-up", "dies-again"] {
        site.lab.wait_until(&format!("[ $(systemctl is-active {name}) = activating ]"));
        let state = site.ccm(&["status", "service", name, "--json"]).exits(0).json();
        assert_eq!((&state["ensure"], &state["metadata"]["running"]), (&"stopped".into(), &false.into()));
        comes_about(&site, name, "ensure: stopped", "stopped");
        assert_ne!(site.active(name), "activating");
        site.apply(&service(name, "ensure: stopped")).exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn a_unit_whose_file_goes_in_the_same_run_is_foreseen_to_be_gone() {
    let Some(site) = Site::new("removed") else { return };
    let removal = |name| format!("- file:\n    - /etc/systemd/system/{name}.service: {{ ensure: absent }}\n");
    for (name, command, stopped) in
        [("removed-running", "systemctl start", true), ("removed-idle", "systemctl is-enabled", false)]
    {
        site.unit(name, SLEEP);
        site.lab.sh(&format!("systemctl daemon-reload; {command} {name} || true"));
        let manifest = removal(name) + &service(name, "ensure: stopped");
        let run = |flags: &[&str]| {
            let run = site.apply_with(&manifest, &[&["--json"], flags].concat());
            let event = run.event(name);
            (run.code, event["failed"].clone(), event["changed"].clone(), event["error"].clone())
        };
        let (predicted, real) = (run(&["--noop"]), run(&[]));
        assert_eq!(predicted, real, "{name}");
        assert_eq!((real.0, real.2), (i32::from(!stopped), stopped.into()), "{name}: {}", real.3);
    }
    // One that another directory has as well stays.
    let unit = format!("[Service]\n{SLEEP}\n");
    for directory in ["/etc/systemd/system", "/usr/local/lib/systemd/system"] {
        site.write(&format!("{directory}/removed-once.service"), &unit);
    }
    let manifest = removal("removed-once") + &service("removed-once", "ensure: stopped");
    site.apply_with(&manifest, &["--noop"]).exits(0).counts([1, 1, 0, 0]);
    site.apply(&manifest).exits(0).counts([1, 1, 0, 0]);
}

#[test]
fn guide_removes_a_service() {
    let Some(site) = Site::new("away") else { return };
    let (_, page) = include_str!("../docs/guide/services.md").split_once("## Remove a service").unwrap();
    let example = page.split("```").nth(1).and_then(|block| block.strip_prefix("yaml\n")).unwrap();
    let manifest = example.replace("app.service", "put-away.service");
    site.unit("put-away", SLEEP);
    site.lab.sh("systemctl enable --quiet --now put-away");
    site.apply_with(&manifest, &["--noop"]).exits(0).counts([3, 0, 0, 0]);
    site.apply(&manifest).exits(0).counts([3, 0, 0, 0]);
    site.apply(&manifest).exits(0).counts([0, 3, 0, 0]);
    assert_eq!(site.active("put-away"), "inactive");
    site.ccm(&["status", "service", "put-away"]).exits(1).complains("service not found");
}
