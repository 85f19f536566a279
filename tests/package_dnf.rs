//! Packages in the lab: what only dnf and rpm have.

use crate::lab::Machine;

#[test]
fn a_version_without_a_release_is_any_release_of_it() {
    let Some(machine) = Machine::dnf() else { return };
    let event = |ensure: &str| {
        let manifest = format!("- package:\n    - tool: {{ ensure: \"{ensure}\" }}\n");
        machine.apply_with(&manifest, &["--json"]).exits(0).event("tool")
    };
    assert_eq!(event("1.5")["final_ensure"], "1.5-2", "the newest release");
    assert_eq!(event("1.5")["changed"], false);
    assert_eq!(event("1.5-1")["final_ensure"], "1.5-1");
    assert_eq!(event("1.5")["changed"], false);
    assert_eq!(event("0:1.5")["changed"], false);
    let crossed = event("0.9");
    assert_eq!((&crossed["final_ensure"], &crossed["changed"]), (&"0.9-1".into(), &true.into()));
    assert_eq!(event("1:0.9-1")["changed"], false);
    assert_eq!(event("2.0")["final_ensure"], "2.0-1", "down across the epoch");
}

#[test]
fn several_versions_of_one_package_are_understood() {
    let Some(machine) = Machine::dnf() else { return };
    let event = |ensure: &str| {
        let manifest = format!("- package:\n    - core: {{ ensure: \"{ensure}\" }}\n");
        machine.apply_with(&manifest, &["--json"]).exits(0).event("core")
    };
    assert_eq!(event("1.0")["final_ensure"], "1.0-1");
    assert_eq!(event("2.0")["final_ensure"], "2.0-1");
    assert_eq!(machine.sh("rpm -q core"), "core-1.0-1.noarch\ncore-2.0-1.noarch\n");
    let old = event("1.0");
    assert_eq!((&old["changed"], &old["final_ensure"]), (&false.into(), &"1.0-1".into()));
    let versions = &old["status"]["metadata"]["extended"]["versions"];
    assert_eq!(*versions, serde_json::json!(["1.0-1", "2.0-1"]));
    assert_eq!(event("latest")["final_ensure"], "3.0-1");
    assert_eq!(event("latest")["changed"], false);
    assert_eq!(event("absent")["final_ensure"], "absent");
    machine.sh("! rpm -q core");
}

#[test]
fn rules_ask_rpm_for_its_packages_and_compare_versions_its_way() {
    let Some(machine) = Machine::dnf() else { return };
    machine.apply("- package:\n    - tool: { ensure: \"1.5-1\" }\n").exits(0);
    for (rule, state) in [
        ("tool: { installed: true, versions: ['1.5-1'], version: '>=1.5' }", "OK"),
        ("tool: { installed: true, version: '<1.5' }", "CRITICAL"),
        // Whatever the numbers say, an epoch goes before.
        ("tool: { installed: true, version: '<1:0.1' }", "OK"),
        ("no-such-package: { installed: false }", "OK"),
        ("no-such-package: { installed: true }", "CRITICAL"),
    ] {
        let manifest = format!(
            "- exec:\n    - \"true\": {{ health_checks: [{{ goss_rules: {{ package: {{ {rule} }} }} }}] }}\n"
        );
        let outcome = machine.apply_with(&manifest, &["--json"]);
        assert_eq!(outcome.event("true")["health_check"][0]["state"], state, "{rule}\n{outcome}");
    }
}

#[test]
fn the_family_of_the_machine_decides_where_both_are_installed_and_provider_decides_over_it() {
    let Some(machine) = Machine::dnf() else { return };
    let provider = |properties: &str| {
        let manifest = format!("- package:\n    - nosuch: {{ ensure: absent{properties} }}\n");
        machine.apply_with(&manifest, &["--json"]).exits(0).event("nosuch")["provider"].clone()
    };
    assert_eq!(provider(""), "dnf");
    assert_eq!(provider(", provider: apt"), "apt");
    machine.write("/etc/os-release", "ID=rocky\nID_LIKE=\"rhel centos fedora\"\n");
    assert_eq!(provider(""), "dnf");
    machine.write("/etc/os-release", "ID=debian\n");
    assert_eq!(provider(""), "apt");
    assert_eq!(provider(", provider: dnf"), "dnf");
}

#[test]
fn an_excluded_package_and_an_unknown_one_are_two_things() {
    let Some(machine) = Machine::dnf() else { return };
    machine.sh("echo excludepkgs=one >>/etc/yum.repos.d/lab.repo");
    let run = machine.apply("- package:\n    - one:\n    - nosuch:\n");
    run.exits(1).says("`one` is known, but no dnf repository offers a version that can be installed");
    run.says("no dnf repository offers a package `nosuch`");
}

#[test]
fn the_repositories_are_asked_again_when_there_is_a_reason_and_once() {
    let Some(machine) = Machine::dnf() else { return };
    let refreshes = || machine.calls_of("dnf", "makecache").len();
    machine
        .apply_with("- package:\n    - one:\n", &["--noop"])
        .exits(0)
        .says("a real run would refresh the package index");
    assert_eq!(refreshes(), 0);
    machine.sh("! ls /var/cache/dnf/*/repodata/repomd.xml");
    machine.apply("- package:\n    - one:\n    - two:\n").exits(0).counts([2, 0, 0, 0]);
    assert_eq!(refreshes(), 1);
    machine.apply("- package:\n    - three:\n    - tool: { ensure: latest }\n").exits(0);
    assert_eq!(refreshes(), 0);
    machine.sh("touch -d '2 days ago' /var/cache/dnf/*/repodata/* /etc/yum.repos.d /etc/yum.repos.d/* /etc/dnf/dnf.conf");
    machine.apply("- package:\n    - plain: { ensure: latest }\n").exits(0);
    assert_eq!(refreshes(), 1);
}

#[test]
fn a_dnf_at_work_is_waited_for_and_named() {
    let Some(machine) = Machine::dnf() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    let slow = machine.begin("- package:\n    - slow:\n", &["--state-dir", "/srv/test/other"]);
    machine.wait_for("/run/slow-begun");
    let waiting = machine.begin("- package:\n    - two:\n", &[]);
    waiting.says("waiting: dnf (");
    machine.write("/run/slow-may", "");
    slow.finish().exits(0);
    waiting.finish().exits(0).says("holds /").counts([1, 0, 0, 0]);
}
