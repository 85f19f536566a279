//! Undo of packages in the lab.

use crate::{lab::Machine, support::Outcome};

/// Runs a command of ccm on the machine.
fn ccm(machine: &Machine, arguments: &[&str]) -> Outcome {
    let words = [&["ccm"], arguments, &["--state-dir", "/srv/test/state"]].concat();
    Outcome::new(words.join(" "), machine.command(&words).output().unwrap())
}

fn undo(machine: &Machine, run: &str) -> Outcome {
    ccm(machine, &["undo", run])
}

/// Applies a manifest and returns the id of the run.
fn apply(machine: &Machine, manifest: &str) -> String {
    let outcome = machine.apply_with(manifest, &["--json"]);
    let run = outcome.exits(0).summary()["run"].clone();
    run.as_str().unwrap().to_owned()
}

fn both() -> impl Iterator<Item = (Machine, &'static str)> {
    let apt = Machine::apt().map(|machine| (machine, "apt"));
    apt.into_iter().chain(Machine::dnf().map(|machine| (machine, "dnf")))
}

/// Whether a package is installed.
fn has(machine: &Machine, system: &str, name: &str) -> bool {
    let query = match system {
        "apt" => format!("dpkg-query -W -f '${{db:Status-Status}}' {name} 2>/dev/null || true"),
        _ => format!("rpm -q --qf 'installed' {name} || true"),
    };
    machine.sh(&query).trim() == "installed"
}

#[test]
fn package_goes_with_the_packages_that_came_along() {
    for (machine, system) in both() {
        apply(&machine, "- package:\n    - needy:\n");
        assert!(has(&machine, system, "helper"), "{system}");
        undo(&machine, "last").exits(0);
        assert!(!has(&machine, system, "needy") && !has(&machine, system, "helper"), "{system}");
        undo(&machine, "last").exits(0);
        assert!(has(&machine, system, "needy") && has(&machine, system, "helper"), "{system}");
    }
}

#[test]
fn package_that_came_along_stays_if_another_package_needs_it() {
    for (machine, system) in both() {
        let first = apply(&machine, "- package:\n    - needy:\n");
        apply(&machine, "- package:\n    - rival:\n");
        undo(&machine, &first).exits(0);
        assert!(!has(&machine, system, "needy") && has(&machine, system, "helper"), "{system}");
    }
}

#[test]
fn package_that_another_package_needs_is_not_removed() {
    for (machine, system) in both() {
        let first = apply(&machine, "- package:\n    - helper:\n");
        apply(&machine, "- package:\n    - needy:\n");
        undo(&machine, &first).exits(1).says("the package `needy` needs it");
        assert!(has(&machine, system, "needy") && has(&machine, system, "helper"), "{system}");
    }
}

#[test]
fn earlier_version_comes_from_the_repository_or_the_cache() {
    for (machine, system) in both() {
        let version = || match system {
            "apt" => machine.sh("dpkg-query -W -f '${Version}' plain"),
            _ => machine.sh("rpm -q --qf '%{VERSION}' plain"),
        };
        apply(&machine, "- package:\n    - plain: { ensure: \"1.0\" }\n");
        let run = apply(&machine, "- package:\n    - plain: { ensure: \"2.0\" }\n");
        undo(&machine, &run).exits(0);
        assert_eq!(version(), "1.0", "{system}");
        let run = apply(&machine, "- package:\n    - plain: { ensure: \"2.0\" }\n");
        machine.sh(match system {
            "apt" => {
                "rm -r /var/lib/apt/lists; mkdir /etc/apt/old; mv /etc/apt/sources.list.d/* /etc/apt/old"
            }
            _ => "echo excludepkgs=plain >>/etc/yum.repos.d/lab.repo",
        });
        undo(&machine, &run).exits(1).says("the earlier state of `package#plain` was not kept");
        assert_eq!(version(), "2.0", "{system}");
        machine.sh(match system {
            "apt" => "cp /repositories/apt/plain_1.0_all.deb /var/cache/apt/archives/",
            _ => {
                "mkdir -p /var/cache/dnf/lab/packages; \
                 cp $(find /repositories/dnf -name 'plain-1.0-1.noarch.rpm') /var/cache/dnf/lab/packages/"
            }
        });
        undo(&machine, &run).exits(0);
        assert_eq!(version(), "1.0", "{system}");
    }
}

#[test]
fn removed_configuration_comes_back_with_the_package() {
    for (machine, system) in both() {
        apply(&machine, "- package:\n    - configured: { ensure: \"1.0\" }\n");
        machine.write("/etc/configured.conf", "setting of mine\n");
        machine.sh("chmod 600 /etc/configured.conf");
        apply(&machine, "- package:\n    - configured: { ensure: purged }\n");
        assert!(!machine.exists("/etc/configured.conf"), "{system}");
        undo(&machine, "last").exits(0);
        assert!(has(&machine, system, "configured"), "{system}");
        assert_eq!(machine.read("/etc/configured.conf"), "setting of mine\n", "{system}");
        assert_eq!(machine.sh("stat -c %a /etc/configured.conf"), "600\n", "{system}");
    }
}

#[test]
fn planned_undo_of_a_package_is_applied() {
    for (machine, system) in both() {
        apply(&machine, "- package:\n    - needy:\n");
        ccm(&machine, &["undo", "last", "-o", "/srv/test/undo.plan", "--allow-opaque"]).exits(0);
        ccm(&machine, &["apply", "/srv/test/undo.plan"]).exits(0);
        assert!(!has(&machine, system, "needy") && !has(&machine, system, "helper"), "{system}");
    }
}
