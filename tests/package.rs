//! Packages in the lab, from their installation to their removal, the same with apt and with dnf.

use crate::{
    lab::Machine,
    support::{Outcome, wait_until},
};

/// A package system, and how it writes the versions that the lab has.
struct System {
    machine: Machine,
    provider: &'static str,
    old: &'static str,
    /// Above all others by its epoch.
    newest: &'static str,
    /// The newest as events show it.
    newest_shown: &'static str,
    /// The highest without the epoch.
    high: &'static str,
}

impl System {
    fn apt() -> Option<Self> {
        let (newest, newest_shown) = ("1:0.9-1", "1:0.9-1");
        let provider = "apt";
        Some(System { machine: Machine::apt()?, provider, old: "1.0-1", newest, newest_shown, high: "2.0-1" })
    }

    fn dnf() -> Option<Self> {
        let (newest, newest_shown) = ("1:0.9-1", "0.9-1");
        let provider = "dnf";
        Some(System { machine: Machine::dnf()?, provider, old: "1.0-1", newest, newest_shown, high: "2.0-1" })
    }

    fn both() -> Vec<Self> {
        Self::apt().into_iter().chain(Self::dnf()).collect()
    }

    /// What the package system itself says about a package.
    fn version(&self, name: &str) -> String {
        let apt = format!("dpkg-query -W -f '${{Version}} ${{db:Status-Status}}' {name} 2>/dev/null || true");
        let dnf = format!("rpm -q --qf '%{{VERSION}}-%{{RELEASE}} installed' {name} || true");
        self.machine.sh(if self.provider == "apt" { &apt } else { &dnf }).trim().to_owned()
    }

    /// How often the package system was told to change something.
    fn changes(&self) -> usize {
        let verbs = ["install", "remove", "purge", "downgrade"];
        verbs
            .iter()
            .map(|verb| {
                self.machine.calls_of(if self.provider == "apt" { "apt-get" } else { "dnf" }, verb).len()
            })
            .sum()
    }

    /// Brings `tool` to a state, first in a dry run, which must say the same, and shows that once is enough.
    #[track_caller]
    fn bring(&self, ensure: &str, message: &str, final_ensure: &str) {
        let manifest = format!("- package:\n    - tool: {{ ensure: \"{ensure}\" }}\n");
        let before = self.version("tool");
        let noop = self.machine.apply_with(&manifest, &["--noop", "--json"]);
        let event = noop.exits(0).event("tool");
        assert_eq!(event["noop_message"], format!("Would have {message}"), "{noop}");
        assert_eq!(self.version("tool"), before, "a dry run changes nothing");
        assert_eq!(self.changes(), 0);

        let real = self.machine.apply_with(&manifest, &["--json"]);
        let event = real.exits(0).event("tool");
        assert_eq!((&event["changed"], &event["failed"]), (&true.into(), &false.into()), "{real}");
        assert_eq!(event["final_ensure"], final_ensure, "{real}");
        assert_eq!((&event["provider"], &event["requested_ensure"]), (&self.provider.into(), &ensure.into()));
        assert_eq!(self.changes(), 1, "{:#?}", self.machine.calls());

        self.stable(ensure);
    }

    #[track_caller]
    fn stable(&self, ensure: &str) {
        let manifest = format!("- package:\n    - tool: {{ ensure: \"{ensure}\" }}\n");
        for flags in [&["--json"][..], &["--json", "--noop"]] {
            let again = self.machine.apply_with(&manifest, flags);
            assert_eq!(again.exits(0).event("tool")["changed"], false, "{ensure} {flags:?}\n{again}");
            assert_eq!(self.changes(), 0);
        }
    }
}

/// Takes a package through all its states, each of which is reached once.
fn go_through_all_states(system: &System) {
    let System { old, newest, newest_shown, high, .. } = *system;
    system.bring(old, &format!("installed version {old}"), old);
    system.stable("present");
    system.bring("1.5-1", "upgraded to 1.5-1", "1.5-1");
    system.bring("latest", "upgraded to latest", newest_shown);
    system.stable("present");
    system.stable(newest);
    system.bring(high, &format!("downgraded to {high}"), high);
    system.bring("1.5~rc1-1", "downgraded to 1.5~rc1-1", "1.5~rc1-1");
    system.bring(newest, &format!("upgraded to {newest}"), newest_shown);
    system.bring("absent", "uninstalled", "absent");
    system.bring("present", "installed", newest_shown);
    system.bring("purged", "uninstalled. Would have purged", "absent");
    system.bring("latest", "installed latest", newest_shown);
}

#[test]
fn a_package_of_apt_goes_through_all_its_states_and_each_is_reached_once() {
    if let Some(system) = System::apt() {
        go_through_all_states(&system);
    }
}

#[test]
fn a_package_of_dnf_goes_through_all_its_states_and_each_is_reached_once() {
    if let Some(system) = System::dnf() {
        go_through_all_states(&system);
    }
}

#[test]
fn the_state_tells_what_the_system_knows() {
    for system in System::both() {
        let manifest = "- package:\n    - tool: { ensure: latest, hold: true }\n";
        let event = system.machine.apply_with(manifest, &["--json"]).exits(0).event("tool");
        let metadata = &event["status"]["metadata"];
        assert_eq!(event["status"]["ensure"], system.newest_shown);
        assert_eq!((&metadata["name"], &metadata["provider"]), (&"tool".into(), &system.provider.into()));
        assert_eq!(metadata["version"], system.newest_shown);
        assert_eq!(metadata["arch"], if system.provider == "apt" { "all" } else { "noarch" });
        let extended = &metadata["extended"];
        assert_eq!((&extended["epoch"], &extended["release"]), (&"1".into(), &"1".into()));
        assert_eq!((&extended["status"], &extended["hold"]), (&"installed".into(), &true.into()));
        assert_eq!(extended["candidate"], system.newest_shown);
        let absent = system
            .machine
            .apply_with("- package:\n    - plain: { ensure: absent }\n", &["--json"])
            .event("plain");
        assert_eq!(absent["status"]["ensure"], "absent");
        assert_eq!(absent["status"]["metadata"]["extended"]["status"], "not-installed");
        assert!(absent["status"]["metadata"].get("version").is_none());
    }
}

#[test]
fn packages_that_follow_each_other_share_a_transaction_and_have_their_own_events() {
    for system in System::both() {
        let manifest = "- package:\n    - one:\n    - two: { ensure: latest }\n    - three:\n    - tool: { ensure: \"1.0-1\" }\n";
        let run = system.machine.apply_with(manifest, &["--json"]);
        run.exits(0);
        assert_eq!(system.changes(), 1, "{:#?}", system.machine.calls());
        for (name, version) in [("one", "1.0"), ("two", "1.0"), ("three", "1.0"), ("tool", "1.0-1")] {
            let event = run.event(name);
            assert_eq!(event["changed"], true, "{run}");
            assert!(event["final_ensure"].as_str().unwrap().starts_with(version), "{run}");
        }
        let gone = "- package:\n    - defaults: { ensure: absent }\n    - one:\n    - two:\n    - tool: { ensure: present }\n    - three:\n";
        system.machine.apply(gone).exits(0).counts([3, 1, 0, 0]);
        assert_eq!(system.changes(), 1, "{:#?}", system.machine.calls());
        assert!(
            !system.version("one").contains("installed") || system.version("one").contains("not installed")
        );
        system.machine.apply(gone).exits(0).counts([0, 4, 0, 0]);
    }
}

#[test]
fn one_bad_package_does_not_fail_its_neighbours() {
    for system in System::both() {
        let manifest = "- package:\n    - one:\n    - nosuch:\n    - stubborn:\n    - two:\n";
        let run = system.machine.apply_with(manifest, &["--json"]);
        run.exits(1);
        for name in ["one", "two"] {
            let event = run.event(name);
            assert_eq!((&event["changed"], &event["failed"]), (&true.into(), &false.into()), "{run}");
        }
        let reasons = |name: &str| run.event(name)["error"].to_string();
        assert!(
            reasons("nosuch").contains(&format!("no {} repository offers a package", system.provider)),
            "{run}"
        );
        assert!(reasons("stubborn").contains("stubborn"), "{run}");
        assert!(reasons("stubborn").contains("not before /run/stubborn-may is there"), "{run}");
        system.machine.apply("- package:\n    - one:\n    - two:\n").counts([0, 2, 0, 0]);
    }
}

#[test]
fn what_no_source_has_is_said_in_a_dry_run_too_once_the_lists_are_known() {
    for system in System::both() {
        let missing = "- package:\n    - nosuch:\n";
        system.machine.apply("- package:\n    - one:\n").exits(0);
        for flags in [&[][..], &["--noop"]] {
            let unknown = system.machine.apply_with("- package:\n    - nosuch: { refresh: never }\n", flags);
            unknown
                .exits(1)
                .says("`nosuch` is not in the package index, and `refresh: never` forbids to refresh it");
            let version = "- package:\n    - tool: { ensure: \"9.9-1\", refresh: never }\n";
            let version = system.machine.apply_with(version, flags);
            version.exits(1).says("version 9.9-1 of `tool` is not in the package index").says("2.0-1");
        }
        system.machine.apply(missing).exits(1).says("offers a package `nosuch`");
        assert_eq!(system.changes(), 0);
    }
}

#[test]
fn a_version_stays_on_hold_and_changes_only_when_the_manifest_says_so() {
    for system in System::both() {
        let held = |ensure: &str, hold: &str| {
            let manifest = format!("- package:\n    - tool: {{ ensure: \"{ensure}\"{hold} }}\n");
            system.machine.apply_with(&manifest, &["--json"])
        };
        let changed = |run: Outcome| run.exits(0).event("tool")["changed"].clone();
        assert_eq!(changed(held("1.0-1", ", hold: true")), true);
        assert_eq!(changed(held("1.0-1", ", hold: true")), false);
        assert_eq!(changed(held("1.0-1", "")), false, "left alone when not given");
        held("latest", "").exits(1).says("is on hold and would have to change");
        held("absent", "").exits(1).says("is on hold and would have to change");
        assert_eq!(changed(held("2.0-1", ", hold: true")), true);
        assert_eq!(changed(held("2.0-1", ", hold: true")), false, "still on hold");
        held("latest", "").exits(1).says("is on hold");
        assert_eq!(changed(held("latest", ", hold: false")), true);
        assert_eq!(changed(held("latest", ", hold: false")), false);
        assert_eq!(changed(held("1.0-1", "")), true, "no longer on hold");
    }
}

#[test]
fn a_changed_configuration_file_stays_and_nobody_is_asked() {
    for system in System::both() {
        system.machine.apply("- package:\n    - configured: { ensure: \"1.0\" }\n").exits(0);
        system.machine.write("/etc/configured.conf", "setting of mine\n");
        system
            .machine
            .apply("- package:\n    - configured: { ensure: latest }\n")
            .exits(0)
            .counts([1, 0, 0, 0]);
        assert_eq!(system.machine.read("/etc/configured.conf"), "setting of mine\n");
    }
}

#[test]
fn any_number_of_unchanged_packages_costs_one_query() {
    for system in System::both() {
        let names = if system.provider == "apt" {
            // Books with many packages in them, as dpkg writes them.
            let stanza = "Package: many-$i\nStatus: install ok installed\nArchitecture: all\nVersion: 1.0-$i\nMaintainer: lab\n\
                          Description: one of many\n";
            system.machine.sh(&format!(
                "for i in $(seq 500); do printf '%s\\n' \"\n{stanza}\"; done >>/var/lib/dpkg/status"
            ));
            system.machine.sh("dpkg-query -W many-500");
            (1..=500)
                .map(|number| format!("    - many-{number}: {{ ensure: \"1.0-{number}\" }}\n"))
                .collect::<String>()
        } else {
            system
                .machine
                .apply("- package:\n    - one:\n    - two:\n    - three:\n    - tool: { ensure: \"1.0\" }\n")
                .exits(0);
            "    - one:\n    - two:\n    - three:\n    - tool: { ensure: \"1.0\" }\n".to_owned()
        };
        let gone: String =
            (1..=50).map(|number| format!("    - gone{number}: {{ ensure: absent }}\n")).collect();
        system.machine.apply(&format!("- package:\n{names}{gone}")).exits(0);
        let calls = system.machine.calls();
        assert_eq!(calls.len(), 1, "{calls:#?}");
    }
}

#[test]
fn the_books_are_read_again_only_after_a_change() {
    for system in System::both() {
        let reads = || {
            let (program, verb) =
                if system.provider == "apt" { ("dpkg-query", "--show") } else { ("rpm", "--query") };
            system.machine.calls_of(program, verb).len()
        };
        system.machine.apply("- package:\n    - one:\n    - two:\n").exits(0);
        let quiet = "- package:\n    - one:\n    - two:\n- file:\n    - /etc/x: { content: x, owner: root, group: root, mode: \"0644\" }\n\
                     - package:\n    - plain: { ensure: absent }\n";
        system.machine.apply(quiet).exits(0);
        assert_eq!(reads(), 1, "{:#?}", system.machine.calls());
        // A command could have done anything to them.
        let by_hand = if system.provider == "apt" { "apt-get -y remove two" } else { "dnf -y remove two" };
        let moved = format!("- package:\n    - one:\n- exec:\n    - {by_hand}:\n- package:\n    - two:\n");
        system.machine.apply(&moved).exits(0).counts([2, 1, 0, 0]);
        assert!(!system.version("two").contains("not installed"));
    }
}

#[test]
fn a_package_manager_at_work_is_not_ended_by_a_signal() {
    for system in System::both() {
        let run = system.machine.begin(
            "- package:\n    - slow:\n- package:\n    - plain: { require: [\"package#slow\"] }\n",
            &["--json"],
        );
        system.machine.wait_for("/run/slow-begun");
        run.terminate();
        // Long enough to be ended by it.
        std::thread::sleep(std::time::Duration::from_millis(500));
        system.machine.write("/run/slow-may", "");
        let run = run.finish();
        let event = run.event("slow");
        assert_eq!((&event["changed"], &event["failed"]), (&true.into(), &false.into()), "{run}");
        assert!(system.version("slow").ends_with(" installed"), "{}", system.version("slow"));
        assert!(!system.version("plain").starts_with("2.0"), "the run ended after it\n{run}");
        if system.provider == "apt" {
            system.machine.sh("test -z \"$(dpkg --audit)\"");
        }
    }
}

#[test]
fn a_package_manager_at_work_is_not_ended_by_a_timeout() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    for limit in [3, 15, 75] {
        let mut run = machine.begin(&format!("- package:\n    - slow: {{ timeout: {limit}s }}\n"), &[]);
        wait_until("it is at work, or had no time to come to it", || {
            machine.exists("/run/slow-begun") || run.has_ended()
        });
        if !machine.exists("/run/slow-begun") {
            continue;
        }
        // Its time was running before.
        std::thread::sleep(std::time::Duration::from_secs(limit));
        machine.write("/run/slow-may", "");
        let run = run.finish();
        run.exits(0)
            .counts([1, 0, 0, 0])
            .says("apt-get took longer than `timeout`: it was at work, and was waited for");
        machine.sh("dpkg -s slow; test -z \"$(dpkg --audit)\"");
        return;
    }
    panic!("it never came to its work");
}
