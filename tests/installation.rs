//! The packages, on machines that have never seen ccm. `make try-packages` builds them and runs this.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    lab::{Machine, Site},
    readme::{end_the_tour, take_the_tour, use_repository},
    support::skip,
};

/// What a package brings, besides the program.
const BROUGHT: [&str; 10] = [
    "/etc/ccm/agent.yaml",
    "/etc/ccm/manifest.yaml",
    "/usr/share/man/man1/ccm-apply.1.gz",
    "/usr/share/man/man5/ccm-manifest.5.gz",
    "/usr/share/man/man5/ccm-agent.yaml.5.gz",
    "/usr/share/man/man7/ccm-functions.7.gz",
    "/usr/share/bash-completion/completions/ccm",
    "/usr/share/fish/vendor_completions.d/ccm.fish",
    "/usr/share/ccm/manifest.schema.json",
    "/usr/share/doc/ccm/THIRD-PARTY-NOTICES",
];

/// Returns the package for this machine with this ending that was built into a folder, if one was.
fn package(folder: &str, ending: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(folder);
    let architecture = match (ending, std::env::consts::ARCH) {
        (".deb", "x86_64") => "amd64",
        (".deb", "aarch64") => "arm64",
        (_, known) => known,
    };
    let is_one = |path: &PathBuf| path.to_string_lossy().ends_with(&format!("{architecture}{ending}"));
    let found = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).find(is_one);
    if found.is_none() {
        skip("needs packages: make try-packages");
    }
    found
}

/// Puts the older and the newer package on a machine.
fn bring(machine: &Machine, ending: &str) -> Option<()> {
    for (folder, name) in [("packages/older", "older"), ("packages", "newer")] {
        fs::copy(package(folder, ending)?, machine.path(&format!("/srv/{name}{ending}"))).unwrap();
    }
    Some(())
}

/// What must be so after each installation: the files are there, and the program does its work.
fn check(machine: &Machine) {
    for path in BROUGHT {
        assert!(machine.exists(path), "{path} is not there");
    }
    machine.sh("/usr/bin/ccm --version | grep -q '^ccm '; /usr/bin/ccm validate /etc/ccm");
    let unit =
        ["/usr/lib/systemd/system", "/lib/systemd/system"].map(|folder| format!("{folder}/ccm-apply.timer"));
    assert!(unit.iter().any(|unit| machine.exists(unit)), "no timer");
    let wants = machine.read("/usr/lib/systemd/system/multi-user.target.d/ccm-confirm.conf");
    assert!(wants.contains("Wants=ccm-confirm.service"), "{wants}");
    assert!(
        !machine.exists("/etc/systemd/system/timers.target.wants/ccm-apply.timer"),
        "the timer is enabled"
    );
}

/// What a user wrote into the configuration outlives an upgrade.
const OWN: &str = "- file: [{ /srv/own: { content: mine, owner: root, group: root, mode: '0644' } }]\n";

#[test]
#[ignore = "needs packages: make try-packages"]
fn apt_installs_upgrades_and_removes_the_package() {
    let Some(machine) = Machine::apt() else { return };
    let Some(()) = bring(&machine, ".deb") else { return };
    machine.sh("apt-get install -y /srv/older.deb");
    check(&machine);
    machine.write("/etc/ccm/manifest.yaml", OWN);
    machine
        .sh("apt-get install -y /srv/newer.deb && dpkg --verify ccm | grep -v manifest.yaml | { ! grep .; }");
    check(&machine);
    assert_eq!(machine.read("/etc/ccm/manifest.yaml"), OWN);
    machine.sh("/usr/bin/ccm apply /etc/ccm && grep -q mine /srv/own");
    machine.sh("apt-get remove -y ccm");
    assert!(!machine.exists("/usr/bin/ccm") && machine.exists("/etc/ccm/manifest.yaml"));
    machine.sh("dpkg --purge ccm");
    assert!(!machine.exists("/etc/ccm/manifest.yaml") && !machine.exists("/var/lib/ccm"));
}

#[test]
#[ignore = "needs packages: make try-packages"]
fn dnf_installs_upgrades_and_removes_the_package() {
    let Some(machine) = Machine::dnf() else { return };
    let Some(()) = bring(&machine, ".rpm") else { return };
    machine.sh("dnf install -y --nogpgcheck /srv/older.rpm");
    check(&machine);
    machine.write("/etc/ccm/manifest.yaml", OWN);
    machine.sh("dnf upgrade -y --nogpgcheck /srv/newer.rpm");
    check(&machine);
    assert_eq!(machine.read("/etc/ccm/manifest.yaml"), OWN);
    machine.sh("/usr/bin/ccm apply /etc/ccm && grep -q mine /srv/own");
    machine.sh("dnf remove -y ccm");
    assert!(!machine.exists("/usr/bin/ccm"));
}

#[test]
#[ignore = "needs packages: make try-packages"]
fn a_fresh_debian_goes_from_the_package_through_the_tour() {
    let Some(site) = Site::with_packages("tour") else { return };
    let Some(deb) = package("packages", ".deb") else { return };
    fs::copy(deb, site.lab.path("/srv/ccm.deb")).unwrap();
    site.lab.sh("dpkg --install /srv/ccm.deb");
    let search_path = "/usr/bin:/usr/sbin:/bin:/sbin";
    use_repository(&site, "tour");
    take_the_tour(&site, search_path, &[]);
    end_the_tour(&site, search_path);
    site.lab.sh("systemctl is-active ccm-apply.timer; systemctl start ccm-apply.service");
    site.lab.sh("dpkg --purge ccm; rm -f /srv/ccm.deb");
}

#[test]
#[ignore = "needs packages: make try-packages"]
fn a_machine_with_dnf_goes_from_the_package_through_the_tour() {
    let Some(site) = Site::with_dnf("tour") else { return };
    let Some(rpm) = package("packages", ".rpm") else { return };
    fs::copy(rpm, site.lab.path("/srv/ccm.rpm")).unwrap();
    site.lab.sh("dnf install -y --nogpgcheck /srv/ccm.rpm");
    let search_path = "/usr/bin:/usr/sbin:/bin:/sbin";
    take_the_tour(&site, search_path, &[("\"debian\"", "\"fedora\"")]);
    end_the_tour(&site, search_path);
    site.lab.sh("systemctl is-active ccm-apply.timer; systemctl start ccm-apply.service");
}
