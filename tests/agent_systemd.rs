//! The agent under a real systemd: the unit that packages install.

use std::fs;

use crate::{lab::Site, support::wait_until};

/// Installs the unit with the program where the lab has it, and with a watchdog that waits so many seconds.
fn install(site: &Site, name: &str, watchdog: u32, manifest: &str) {
    let lab = site.lab;
    let unit = include_str!("../packaging/ccm-agent.service");
    let folder = format!("/tmp/agent-{name}");
    let unit = unit
        .replace(
            "/usr/bin/ccm agent",
            &format!("/usr/local/bin/ccm agent --config {folder}/agent.yaml --state-dir {folder}/state"),
        )
        .replace("WatchdogSec=60", &format!("WatchdogSec={watchdog}"))
        .replace("RestartSec=5", "RestartSec=100ms");
    assert!(unit.contains(&format!("WatchdogSec={watchdog}\n")) && unit.contains(&folder), "{unit}");
    lab.sh(&format!("mkdir -p {folder}"));
    fs::write(lab.path(&format!("{folder}/site.yaml")), manifest).unwrap();
    fs::write(lab.path(&format!("{folder}/agent.yaml")), "manifests: [site.yaml]\ninterval: 1h\n").unwrap();
    fs::write(lab.path(&format!("/run/systemd/system/ccm-{name}.service")), unit).unwrap();
    lab.sh("systemctl daemon-reload");
}

#[test]
fn systemd_hears_that_it_is_ready_alive_and_what_it_does() {
    let Some(site) = Site::new("agent-notify") else { return };
    let manifest = "
- exec:
    - long: { command: \"sh -c 'until [ -e /tmp/agent-notify/go ]; do sleep 0.05; done'\", creates: /tmp/agent-notify/made }
- file:
    - /tmp/agent-notify/made: { content: \"x\\n\", owner: root, group: root, mode: '0644' }
";
    // It tells that it is alive after half of that: even a busy machine lets it do so in time.
    install(&site, "notify", 20, manifest);
    let lab = site.lab;
    lab.sh("systemctl start ccm-notify");
    assert_eq!(lab.sh("systemctl is-active ccm-notify").trim(), "active");
    // It goes on telling while a command runs.
    let told = || lab.sh("systemctl show -p WatchdogTimestampMonotonic --value ccm-notify");
    let first = told();
    wait_until("it tells that it is alive", || told() != first);
    lab.sh("test ! -e /tmp/agent-notify/made; touch /tmp/agent-notify/go");
    lab.wait_until("test -e /tmp/agent-notify/made");
    lab.wait_until("systemctl show -p StatusText ccm-notify | grep -q '1 manifests, 0 resources failed'");
    assert_eq!(lab.sh("systemctl show -p NRestarts --value ccm-notify").trim(), "0");
    lab.sh("echo drift >/tmp/agent-notify/made");
    lab.wait_until("grep -qx x /tmp/agent-notify/made");
    lab.sh("systemctl reload ccm-notify");
    lab.wait_until(
        "journalctl -u ccm-notify 2>/dev/null | grep -q 'read again' || test ! -d /run/log/journal",
    );
    lab.sh("systemctl stop ccm-notify");
    assert_eq!(lab.sh("systemctl show -p Result --value ccm-notify").trim(), "success");
}

#[test]
fn one_that_hangs_is_ended_and_started_again() {
    let Some(site) = Site::new("agent-hangs") else { return };
    install(&site, "hangs", 2, "- file: []\n");
    let lab = site.lab;
    lab.sh("systemctl start ccm-hangs");
    let first = lab.sh("systemctl show -p MainPID --value ccm-hangs");
    // A busy machine may take it for one that hangs before.
    lab.sh(&format!("kill -STOP {} || true", first.trim()));
    lab.wait_until("test \"$(systemctl show -p NRestarts --value ccm-hangs)\" -ge 1");
    lab.wait_until("systemctl is-active --quiet ccm-hangs");
    assert_ne!(lab.sh("systemctl show -p MainPID --value ccm-hangs"), first);
    lab.sh("systemctl stop ccm-hangs");
}

#[test]
fn asked_to_stop_it_ends_well_while_a_command_runs() {
    let Some(site) = Site::new("agent-stop") else { return };
    let manifest = "
- exec:
    - slow: { command: \"sh -c 'touch /tmp/agent-stop/begun; until [ -e /tmp/agent-stop/go ]; do sleep 0.05; done; touch /tmp/agent-stop/done'\" }
    - never: { command: touch /tmp/agent-stop/never }
";
    install(&site, "stop", 60, manifest);
    let lab = site.lab;
    lab.sh("systemctl start ccm-stop");
    lab.wait_until("test -e /tmp/agent-stop/begun");
    lab.sh("systemctl stop --no-block ccm-stop");
    // It has been asked before the command comes to its end.
    lab.wait_until("[ $(systemctl is-active ccm-stop) = deactivating ]");
    lab.sh("touch /tmp/agent-stop/go");
    lab.wait_until("[ $(systemctl is-active ccm-stop) = inactive ]");
    assert_eq!(lab.sh("systemctl show -p Result --value ccm-stop").trim(), "success");
    lab.sh("test -e /tmp/agent-stop/done; test ! -e /tmp/agent-stop/never");
}

#[test]
fn a_unit_that_somebody_stops_is_started_again_when_it_happens() {
    let Some(site) = Site::new("agent-unit") else { return };
    site.unit("kept", "ExecStart=/bin/sleep infinity");
    install(&site, "unit", 60, "- service:\n    - kept: { enable: true, settle: 0s }\n");
    let lab = site.lab;
    lab.sh("systemctl start ccm-unit");
    lab.wait_until("systemctl is-active --quiet kept");
    lab.wait_until("test -S /tmp/agent-unit/state/agent.sock");
    lab.wait_until(
        "/usr/local/bin/ccm agent status --state-dir /tmp/agent-unit/state --json | grep -q last_run.*20",
    );
    lab.sh("systemctl stop kept");
    lab.wait_until("systemctl is-active --quiet kept");
    lab.sh("systemctl disable --quiet kept");
    lab.wait_until("systemctl is-enabled --quiet kept");
    lab.sh("systemctl stop ccm-unit");
}
