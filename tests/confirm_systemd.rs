//! Confirmed runs under a real systemd: the guard is a service, and the unit of the packages works after a boot.

use std::{fmt::Write, fs};

use crate::lab::Site;

/// A service that copies its configuration when it starts, and a manifest that changes the configuration.
fn install(site: &Site, name: &str) -> String {
    let folder = format!("/tmp/confirm-{name}");
    let lab = site.lab;
    lab.sh(&format!("mkdir -m 755 {folder}; echo old >{folder}/conf"));
    let unit = format!(
        "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'cat {folder}/conf >>{folder}/loaded'\n"
    );
    fs::write(lab.path(&format!("/run/systemd/system/confirm-{name}.service")), unit).unwrap();
    lab.sh(&format!("systemctl daemon-reload; systemctl start confirm-{name}"));
    let manifest = format!(
        "- file:\n    - {folder}/conf: {{ content: \"new\\n\", owner: root, group: root, mode: '0644' }}\n\
         - service:\n    - confirm-{name}: {{ subscribe: [\"file#{folder}/conf\"] }}\n"
    );
    fs::write(lab.path(&format!("{folder}/site.yaml")), manifest).unwrap();
    folder
}

fn apply(site: &Site, folder: &str, time: &str) -> String {
    let command = format!("ccm apply {folder}/site.yaml --state-dir {folder}/state --confirm {time} --json");
    let printed = site.lab.sh(&command);
    let summary: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert!(summary["confirm_deadline"].is_string(), "{printed}");
    summary["run"].as_str().unwrap().to_owned()
}

fn is_undone(folder: &str) -> String {
    format!(
        "grep -qx old {folder}/conf; test \"$(tail -n 1 {folder}/loaded)\" = old; \
         ccm confirm --status --json --state-dir {folder}/state | grep -q false"
    )
}

#[test]
fn guard_is_a_service_that_is_restarted_and_undoes_the_run() {
    let Some(site) = Site::new("confirm-guard") else { return };
    let lab = site.lab;
    let folder = install(&site, "guard");
    let run = apply(&site, &folder, "1h");
    assert_eq!(lab.sh(&format!("cat {folder}/loaded")), "old\nnew\n");
    let unit = format!("ccm-confirm-{run}.service");
    assert_eq!(lab.sh(&format!("systemctl is-active {unit}")).trim(), "active");
    for signal in ["KILL", "TERM"] {
        let restarts = lab.sh(&format!("systemctl show -p NRestarts --value {unit}"));
        lab.sh(&format!("systemctl kill --kill-who=main --signal={signal} {unit}"));
        lab.wait_until(&format!(
            "test \"$(systemctl show -p NRestarts --value {unit})\" -gt {}; systemctl is-active --quiet {unit}",
            restarts.trim()
        ));
    }
    lab.sh(&format!("ccm confirm {run} --state-dir {folder}/state"));
    lab.wait_until(&format!("! systemctl is-active --quiet {unit}"));
    assert_eq!(lab.sh(&format!("cat {folder}/conf")), "new\n");
    lab.sh(&format!("ccm undo {run} --state-dir {folder}/state"));
    apply(&site, &folder, "10s");
    lab.wait_until(&is_undone(&folder));
}

#[test]
fn unit_of_the_packages_undoes_the_run_after_a_boot() {
    let Some(site) = Site::new("confirm-boot") else { return };
    let lab = site.lab;
    let folder = install(&site, "boot");
    let run = apply(&site, &folder, "1h");
    // As after a boot: the guard is gone, and the record is of an earlier one.
    lab.sh(&format!("systemctl stop ccm-confirm-{run}.service"));
    lab.sh(&format!(
        "sed -i 's/\"boot\":\"[^\"]*\"/\"boot\":\"earlier\"/' {folder}/state/confirm/pending.json; grep -q earlier {folder}/state/confirm/pending.json"
    ));
    let unit =
        include_str!("../packaging/ccm-confirm.service").replace("/var/lib/ccm", &format!("{folder}/state"));
    fs::write(lab.path("/run/systemd/system/ccm-confirm-boot.service"), unit).unwrap();
    lab.sh("systemctl daemon-reload; systemctl start ccm-confirm-boot");
    lab.wait_until(&is_undone(&folder));
    lab.wait_until("! systemctl is-active --quiet ccm-confirm-boot");
    // Without a run that awaits confirmation, the unit does nothing.
    lab.sh("systemctl start ccm-confirm-boot; systemctl show -p ConditionResult --value ccm-confirm-boot | grep -qx no");
}

/// Real services stop working when their configuration is broken, and the run that broke them is not confirmed.
#[test]
fn broken_network_sshd_and_nginx_come_back_by_themselves() {
    let Some(site) = Site::new("confirm-broken") else { return };
    let lab = site.lab;
    let folder = "/tmp/confirm-broken";
    lab.sh(&format!("mkdir -m 755 {folder}"));
    // No service works without its configuration: an address or a port.
    lab.sh(&format!(
        "echo 'ip link add dummy7 type dummy; ip address add 192.0.2.7/32 dev dummy7' >{folder}/network; \
         echo 2207 >{folder}/sshd; echo 8007 >{folder}/nginx"
    ));
    let unit = |name: &str, start: &str| {
        let unit = format!("[Service]\nExecStart=/bin/sh -c '{start}'\nTimeoutStopSec=1\n");
        fs::write(lab.path(&format!("/run/systemd/system/broken-{name}.service")), unit).unwrap();
    };
    unit("network", &format!("test -s {folder}/network && exec sleep 100000"));
    for name in ["sshd", "nginx"] {
        unit(name, &format!("test $(cat {folder}/{name}) -gt 0 && exec sleep 100000"));
    }
    lab.sh("systemctl daemon-reload; systemctl start broken-network broken-sshd broken-nginx");
    let mut manifest = "- file:\n    - defaults: { owner: root, group: root, mode: '0644' }\n".to_owned();
    for (name, broken) in [("network", ""), ("sshd", "none"), ("nginx", "0")] {
        writeln!(manifest, "    - {folder}/{name}: {{ content: \"{broken}\" }}").unwrap();
    }
    for name in ["network", "sshd", "nginx"] {
        writeln!(
            manifest,
            "- exec:\n    - systemctl restart broken-{name}: {{ refresh_only: true, subscribe: [\"file#{folder}/{name}\"] }}"
        )
        .unwrap();
    }
    fs::write(lab.path(&format!("{folder}/site.yaml")), manifest).unwrap();
    apply(&site, folder, "5s");
    lab.wait_until("! systemctl is-active broken-network broken-sshd broken-nginx | grep -qx active");
    lab.wait_until(&format!(
        "test $(cat {folder}/sshd) = 2207; test $(cat {folder}/nginx) = 8007; grep -q 192.0.2.7 {folder}/network; \
         systemctl is-active --quiet broken-network && systemctl is-active --quiet broken-sshd && \
         systemctl is-active --quiet broken-nginx"
    ));
}

#[test]
fn changed_run_is_one_entry_in_the_journal() {
    let Some(site) = Site::new("journal-entry") else { return };
    let lab = site.lab;
    let ran = "mkdir -p /tmp/journal-entry; cd /tmp/journal-entry; export CCM_STATE_DIR=$PWD/state; \
               ccm ensure file $PWD/file --content x --owner root --group root --mode 0644; \
               ccm ensure file $PWD/file --content x --owner root --group root --mode 0644; \
               ccm history --json | tail -n 1";
    let first: serde_json::Value = serde_json::from_str(lab.sh(ran).lines().last().unwrap()).unwrap();
    let run = first["run"].as_str().unwrap();
    lab.wait_until(&format!("journalctl -o json SYSLOG_IDENTIFIER=ccm CCM_RUN={run} | grep -q MESSAGE"));
    let entries = lab.sh("journalctl -o json SYSLOG_IDENTIFIER=ccm");
    let own: Vec<serde_json::Value> = entries
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|entry| entry["CCM_RUN"] == run)
        .collect();
    assert_eq!(own.len(), 1, "{entries}");
    assert_eq!((&own[0]["CCM_CHANGED"], &own[0]["CCM_FAILED"]), (&"1".into(), &"0".into()));
}
