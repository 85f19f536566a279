//! Services in the lab: how many processes they cost.

use std::fmt::Write;

use crate::lab::Site;

const STAYS: &str = "Type=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true";

/// As many services with a unit each, and a manifest of them. Nothing is to be changed before `bring_about`.
struct Crowd<'a> {
    site: &'a Site,
    name: &'a str,
    count: usize,
}

impl Crowd<'_> {
    fn write_units(&self) {
        for number in 1..=self.count {
            self.site.unit(&format!("{}-{number}", self.name), STAYS);
        }
        self.site.lab.sh("systemctl daemon-reload");
    }

    fn manifest(&self) -> String {
        let mut manifest = "- service:\n    - defaults: { enable: true, settle: 0s }\n".to_owned();
        for number in 1..=self.count {
            writeln!(manifest, "    - {}-{number}:", self.name).unwrap();
        }
        manifest
    }

    fn all(&self) -> String {
        format!("$(seq -f {}-%g {})", self.name, self.count)
    }

    fn bring_about(&self) {
        self.write_units();
        self.site.lab.sh(&format!("systemctl enable --quiet --now {}", self.all()));
    }

    fn take_away(&self) {
        self.site.lab.sh(&format!("systemctl disable --quiet --now {}", self.all()));
    }
}

/// At most so many calls.
#[track_caller]
fn at_most(site: &Site, calls: usize) {
    assert!(site.calls().len() <= calls, "{} calls: {:#?}", site.calls().len(), site.calls());
}

#[test]
fn unchanged_services_cost_two_calls() {
    let Some(site) = Site::alone("unchanged") else { return };
    let crowd = Crowd { site: &site, name: "unchanged", count: 40 };
    crowd.bring_about();
    for flags in [&[][..], &["--noop"]] {
        site.apply_with(&crowd.manifest(), flags).exits(0).counts([0, 40, 0, 0]);
        at_most(&site, 2);
    }
    crowd.take_away();
}

#[test]
fn one_service_that_changes_costs_a_few_more() {
    let Some(site) = Site::alone("one-changes") else { return };
    let crowd = Crowd { site: &site, name: "one-changes", count: 40 };
    crowd.bring_about();
    site.lab.sh("systemctl stop one-changes-2");
    site.apply(&crowd.manifest()).exits(0).counts([1, 39, 0, 0]);
    at_most(&site, 15);
    crowd.take_away();
}

#[test]
fn services_that_all_change_cost_the_same_each() {
    let Some(site) = Site::alone("all-change") else { return };
    let crowd = Crowd { site: &site, name: "all-change", count: 20 };
    crowd.write_units();
    site.apply(&crowd.manifest()).exits(0).counts([20, 0, 0, 0]);
    // Each of two verbs, and what it was before and is afterwards; and three calls for all of them.
    at_most(&site, 6 * 20 + 3);
    let named = |call: &String| call.matches(" all-change-").count();
    let crowded = site.calls().iter().filter(|call| named(call) > 1).count();
    assert!(crowded <= 2, "a verb on one is no reason to ask about all: {:#?}", site.calls());
    site.apply(&crowd.manifest()).exits(0).counts([0, 20, 0, 0]);
    at_most(&site, 2);
    crowd.take_away();
}

#[test]
fn a_unit_that_cannot_be_read_costs_the_others_nothing() {
    let Some(site) = Site::alone("unreadable") else { return };
    let crowd = Crowd { site: &site, name: "unreadable", count: 20 };
    crowd.bring_about();
    for name in ["unreadable-a", "unreadable-b"] {
        site.write(&format!("/etc/systemd/system/{name}.service"), "no unit\n[Service\nExecStart=");
    }
    site.lab.sh("systemctl daemon-reload");
    let service = "    - unreadable-a:\n";
    let manifest =
        crowd.manifest().replacen("    - unreadable-10:\n", &format!("{service}    - unreadable-10:\n"), 1)
            + &service.replace("-a", "-b");
    let run = site.apply(&manifest);
    run.exits(1).counts([0, 20, 2, 0]).says("unreadable-a.service").says("unreadable-b.service");
    at_most(&site, 6);
    site.lab.sh("rm /etc/systemd/system/unreadable-?.service");
    crowd.take_away();
}

#[test]
fn services_that_nobody_knows_cost_no_call_each() {
    let Some(site) = Site::alone("nobody-knows") else { return };
    let crowd = Crowd { site: &site, name: "nobody-knows", count: 20 };
    let run = site.apply(&crowd.manifest());
    run.exits(1).counts([0, 0, 20, 0]).says("service not found");
    at_most(&site, 3);
}

#[test]
fn commands_between_services_cause_no_reload_each() {
    let Some(site) = Site::alone("between") else { return };
    let crowd = Crowd { site: &site, name: "between", count: 5 };
    crowd.bring_about();
    let manifest: String = (1..=5)
        .map(|number| {
            format!(
                "\
- exec:
    - echo {number}:
        path: /bin
- service:
    - between-{number}: {{ enable: true }}
"
            )
        })
        .collect();
    site.apply(&manifest).exits(0).counts([5, 5, 0, 0]);
    assert_eq!(site.count("daemon-reload"), 1, "{:#?}", site.calls());
    at_most(&site, 2 + 1 + 2 * 5);
    crowd.take_away();
}
