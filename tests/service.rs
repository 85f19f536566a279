//! Services in the lab: what is started, stopped, enabled and disabled, and what is left alone.

use crate::lab::Site;

const SLEEP: &str = "ExecStart=/bin/sleep infinity";

/// Whether systemctl was only asked, never told.
#[track_caller]
fn only_asked(site: &Site) {
    let told = |call: &String| !call.starts_with("show ") && !call.starts_with("is-enabled ");
    let calls = site.calls();
    assert!(!calls.iter().any(told), "{calls:#?}");
}

#[test]
fn running_and_enabled_are_brought_about_apart_and_only_once() {
    let Some(site) = Site::new("combinations") else { return };
    site.unit("combi", SLEEP);
    for (ensure, active) in [("running", "active"), ("stopped", "inactive")] {
        for (enable, enabled) in
            [("enable: true", Some("enabled")), ("enable: false", Some("disabled")), ("", None)]
        {
            for (run, boot) in
                [("start", "enable"), ("start", "disable"), ("stop", "enable"), ("stop", "disable")]
            {
                site.lab.sh(&format!("systemctl --quiet {run} combi; systemctl --quiet {boot} combi"));
                let before = site.enabled("combi");
                let manifest =
                    format!("- service:\n    - combi: {{ ensure: {ensure}, settle: 0s, {enable} }}\n");

                let noop = site.apply_with(&manifest, &["--noop", "--json"]);
                only_asked(&site);
                let real = site.apply_with(&manifest, &["--json"]);
                real.exits(0);
                let case = format!("{ensure}, {enable} after {run}, {boot}");
                assert_eq!(site.active("combi"), active, "{case}");
                assert_eq!(site.enabled("combi"), enabled.unwrap_or(&before), "{case}");
                assert_eq!(real.event("combi")["changed"], noop.event("combi")["changed"], "{case}");

                site.apply(&manifest).exits(0).counts([0, 1, 0, 0]);
                only_asked(&site);
            }
        }
    }
}

#[test]
fn a_dry_run_says_everything_that_a_real_one_would_do() {
    let Some(site) = Site::new("foretold") else { return };
    site.unit("foretold", SLEEP);
    let manifest = "- service:\n    - foretold: { enable: true, settle: 0s }\n";
    let event = site.apply_with(manifest, &["--noop", "--json"]).event("foretold");
    assert_eq!(event["noop_message"], "Would have started. Would have enabled");
    assert_eq!(event["changed"], true);
    assert_eq!(event["status"]["metadata"]["running"], false);
    only_asked(&site);

    site.apply(manifest).reports("service#foretold", "started, enabled");
    let away = "- service:\n    - foretold: { ensure: stopped, enable: false }\n";
    let event = site.apply_with(away, &["--noop", "--json"]).event("foretold");
    assert_eq!(event["noop_message"], "Would have stopped. Would have disabled");
    assert_eq!(site.active("foretold"), "active");
}

#[test]
fn the_state_has_the_words_of_systemd_beside_its_own() {
    let Some(site) = Site::new("status") else { return };
    site.unit("status-quo", SLEEP);
    site.lab.sh("systemctl start status-quo");
    let state = site.ccm(&["status", "service", "status-quo", "--json"]).exits(0).json();
    only_asked(&site);
    assert_eq!(state["protocol"], "io.choria.ccm.v1.resource.service.state");
    assert_eq!(state["ensure"], "running");
    let metadata = serde_json::json!({
        "name": "status-quo", "provider": "systemd", "enabled": false, "running": true,
        "unit": "status-quo.service", "active_state": "active", "unit_file_state": "disabled",
    });
    assert_eq!(state["metadata"], metadata);
    site.ccm(&["ensure", "service", "status-quo", "stopped", "--enable"]).exits(0);
    assert_eq!(
        (site.active("status-quo"), site.enabled("status-quo")),
        ("inactive".into(), "enabled".into())
    );
}

#[test]
fn one_service_that_pulls_another_along_does_so_in_time() {
    let Some(site) = Site::new("pulled") else { return };
    site.unit("pulled-along", SLEEP);
    site.write(
        "/etc/systemd/system/pulling.service",
        &format!("[Unit]\nRequires=pulled-along.service\n[Service]\n{SLEEP}\n"),
    );
    let manifest = "- service:\n    - defaults: { settle: 0s }\n    - pulling:\n    - pulled-along:\n";
    let run = site.apply(manifest);
    run.exits(0).counts([1, 1, 0, 0]).reports("service#pulled-along", "unchanged");
}

#[test]
fn one_service_that_enables_another_along_does_so_in_time() {
    let Some(site) = Site::new("along") else { return };
    site.unit("enabled-along", SLEEP);
    site.unit("enabling-along", &format!("{SLEEP}\n[Install]\nAlso=enabled-along.service"));
    let manifest = "\
- service:
    - defaults: { ensure: stopped, enable: true }
    - enabling-along:
    - enabled-along:
";
    let run = site.apply(manifest);
    run.exits(0).counts([1, 1, 0, 0]).reports("service#enabled-along", "unchanged");
}

#[test]
fn a_link_removed_by_hand_is_noticed() {
    let Some(site) = Site::new("by-hand") else { return };
    site.unit("by-hand", SLEEP);
    let manifest = "- service:\n    - by-hand: { enable: true, settle: 0s }\n";
    site.apply(manifest).exits(0);
    site.lab.sh("rm /etc/systemd/system/multi-user.target.wants/by-hand.service");
    site.apply(manifest).exits(0).reports("service#by-hand", "enabled");
    assert_eq!(site.enabled("by-hand"), "enabled");
}

#[test]
fn units_that_cannot_be_disabled_are_stable_with_a_warning() {
    let Some(site) = Site::new("fixed") else { return };
    let sleep = format!("[Service]\n{SLEEP}\n");
    site.write("/etc/systemd/system/fixed-static.service", &sleep);
    site.unit("fixed-real", SLEEP);
    site.lab.sh("ln -s fixed-real.service /etc/systemd/system/fixed-alias.service");
    site.write(
        "/etc/systemd/system/fixed-indirect.service",
        &format!("{sleep}[Install]\nAlso=fixed-real.service\n"),
    );
    site.write(
        "/etc/init.d/fixed-generated",
        "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: fixed-generated\n# Required-Start:\n# Required-Stop:\n\
         # Default-Start: 2\n# Default-Stop: 0\n### END INIT INFO\nexit 0\n",
    );
    site.lab.sh("chmod +x /etc/init.d/fixed-generated; systemctl daemon-reload
         systemd-run --quiet --unit=fixed-transient sleep infinity
         systemctl start fixed-static fixed-alias fixed-indirect fixed-generated");
    for word in ["static", "alias", "indirect", "generated", "transient"] {
        let name = format!("fixed-{word}");
        let run = |enable: &str| {
            site.apply_with(&format!("- service:\n    - {name}: {{ enable: {enable} }}\n"), &["--json"])
        };
        let event = run("true").exits(0).event(&name);
        assert_eq!(event["changed"], false, "{event:#}");
        assert_eq!(event["status"]["metadata"]["unit_file_state"], word);
        assert_eq!(event["status"]["metadata"]["enabled"], true);
        let event = run("false").exits(0).event(&name);
        assert_eq!(event["changed"], false, "{event:#}");
        let warning =
            if word == "alias" { "is another name of fixed-real.service" } else { "it cannot be disabled" };
        let manifest = format!("- service:\n    - {name}: {{ enable: false }}\n");
        site.apply(&manifest).exits(0).says(warning);
        only_asked(&site);
    }
}

#[test]
fn what_is_enabled_until_the_next_boot_can_be_disabled() {
    let Some(site) = Site::new("runtime") else { return };
    site.unit("for-now", SLEEP);
    site.lab.sh("systemctl enable --quiet --runtime for-now");
    let manifest = |enable| format!("- service:\n    - for-now: {{ ensure: stopped, enable: {enable} }}\n");
    site.apply(&manifest(true)).exits(0).counts([0, 1, 0, 0]);
    site.apply(&manifest(false)).exits(0).counts([1, 0, 0, 0]);
    assert_eq!(site.enabled("for-now"), "disabled");
    site.apply(&manifest(false)).exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn what_is_enabled_for_now_and_for_ever_is_disabled_in_one_run() {
    let Some(site) = Site::new("both") else { return };
    site.unit("both", SLEEP);
    site.lab.sh("systemctl enable --quiet both; systemctl enable --quiet --runtime both");
    let manifest = "- service:\n    - both: { ensure: stopped, enable: false }\n";
    site.apply(manifest)
        .exits(0)
        .counts([1, 0, 0, 0])
        .reports("service#both", "disabled (enable true -> false)");
    assert_eq!(site.enabled("both"), "disabled");
    site.apply(manifest).exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn a_linked_unit_counts_as_disabled() {
    let Some(site) = Site::new("linked") else { return };
    site.write(
        "/opt/linked.service",
        &format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\n"),
    );
    site.lab.sh("systemctl link --quiet /opt/linked.service");
    let manifest = "- service:\n    - linked: { ensure: stopped, enable: true }\n";
    let event =
        site.apply_with("- service:\n    - linked: { ensure: stopped }\n", &["--json"]).event("linked");
    assert_eq!(event["status"]["metadata"]["unit_file_state"], "linked");
    assert_eq!(event["status"]["metadata"]["enabled"], false);
    site.apply(manifest).exits(0).counts([1, 0, 0, 0]);
    assert_eq!(site.enabled("linked"), "enabled");
}

#[test]
fn names_with_unusual_signs_and_other_kinds_of_units_work() {
    let Some(site) = Site::new("names") else { return };
    site.write("/etc/systemd/system/odd\\x2bname\\x7e1.service", &format!("[Service]\n{SLEEP}\n"));
    site.write(
        "/etc/systemd/system/odd.timer",
        "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n",
    );
    site.unit("odd", SLEEP);
    let manifest =
        "- service:\n    - odd+name~1: { settle: 0s }\n    - odd.timer: { enable: true, settle: 0s }\n";
    site.apply(manifest).exits(0).counts([2, 0, 0, 0]);
    site.apply(manifest).exits(0).counts([0, 2, 0, 0]);
    assert_eq!((site.active("odd.timer"), site.active("odd.service")), ("active".into(), "inactive".into()));
}

#[test]
fn an_instance_is_named_by_its_unit() {
    let Some(site) = Site::new("instance") else { return };
    site.write(
        "/etc/systemd/system/inst@.service",
        &format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\n"),
    );
    let manifest = "- service:\n    - vpn: { unit: inst@wg0, enable: true, settle: 0s }\n";
    site.apply_with(manifest, &["--noop"]).exits(0).says("Would have started");
    site.apply(manifest).exits(0).reports("service#vpn", "started, enabled");
    assert_eq!((site.active("inst@wg0"), site.enabled("inst@wg0")), ("active".into(), "enabled".into()));
    site.apply(manifest).exits(0).counts([0, 1, 0, 0]);
    site.apply("- service:\n    - vpn@wg0: {}\n").exits(2).complains("dangerous characters");
    for (unit, message) in
        [("'@wg0'", "is an instance of no template"), ("'a b'", "is not the name of a unit")]
    {
        site.apply(&format!("- service:\n    - vpn: {{ unit: {unit} }}\n")).exits(2).complains(message);
    }
}

#[test]
fn a_unit_is_masked_and_unmasked() {
    let Some(site) = Site::new("masking") else { return };
    site.write(
        "/usr/lib/systemd/system/masking.service",
        &format!("[Service]\n{SLEEP}\n[Install]\nWantedBy=multi-user.target\n"),
    );
    site.lab.sh("systemctl daemon-reload; systemctl --quiet enable --now masking");
    let masked = "- service:\n    - masking: { ensure: stopped, enable: false, masked: true }\n";
    let noop = site.apply_with(masked, &["--noop"]);
    noop.exits(0).says("Would have stopped. Would have disabled. Would have masked");
    assert_eq!(site.active("masking"), "active");
    site.apply(masked).exits(0).reports("service#masking", "stopped, disabled, masked");
    assert_eq!((site.active("masking"), site.enabled("masking")), ("inactive".into(), "masked".into()));
    site.apply(masked).exits(0).counts([0, 1, 0, 0]);
    let unmasked = "- service:\n    - masking: { masked: false, enable: true, settle: 0s }\n";
    site.apply(unmasked).exits(0).reports("service#masking", "unmasked, started, enabled");
    assert_eq!((site.active("masking"), site.enabled("masking")), ("active".into(), "enabled".into()));
    site.apply(unmasked).exits(0).counts([0, 1, 0, 0]);
    let both = "- service:\n    - masking: { masked: true }\n";
    site.apply(both).exits(2).complains("`masked: true` and `ensure: running` contradict each other");
}
