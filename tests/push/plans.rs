//! Plans that are made on hosts and applied there later.

use std::fs;

use serde_json::Value;

use super::{MOTD, documents, lab::Lab, only, results};

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn plans_of_hosts_are_made_and_applied() {
    let Some(lab) = Lab::start(3) else { return };
    lab.write("site.yaml", MOTD);
    let planned = lab.run("plan site.yaml --on root@10.9.0.1,root@10.9.0.2 -o plans");
    planned.exits(0).says("+managed").says("plans written to");
    assert!(!lab.file(1, "/opt/motd").exists());
    let mode = |name: &str| {
        let metadata = fs::metadata(lab.directory().join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
    };
    assert_eq!((mode("plans"), mode("plans/10.9.0.1.plan")), (0o700, 0o600));
    let index = fs::read_to_string(lab.directory().join("plans/fleet-plan.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(index["hosts"][1]["host"], "10.9.0.2");
    assert_eq!(index["hosts"][1]["file"], "10.9.0.2.plan");

    lab.write("site.yaml", "[]");
    lab.on(2, "echo other > /opt/motd");
    let applied = lab.run("apply plans --on $ALL --json");
    applied.exits(1);
    let expected = [("10.9.0.1", "ok"), ("10.9.0.2", "refused"), ("10.9.0.3", "refused")];
    assert_eq!(results(&applied), expected.map(|(host, result)| (host.to_owned(), result.to_owned())));
    applied.says("the machine differs from the plan").says("plans has no plan for it");
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/motd")).unwrap(), "managed\n");
    assert_eq!(fs::read_to_string(lab.file(2, "/opt/motd")).unwrap(), "other\n");
    lab.run("apply plans --on root@10.9.0.1 --detailed-exitcode").exits(0).says("10.9.0.1: unchanged");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn plans_are_applied_as_they_were_made() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", "- exec:\n    - touch /opt/done: {}\n");
    let opaque = lab.run("plan site.yaml --on $ALL -o plans --json");
    opaque.exits(1).says("effects of some steps are unknown");
    assert!(!lab.directory().join("plans").exists());
    lab.run("plan site.yaml --on $ALL -o plans --allow-opaque --sign key").exits(0);
    for (options, complaint) in [
        ("plans --on $ALL --data a=b", "`--data` would change what they do"),
        ("plans/10.9.0.1.plan --on $ALL", "is the plan of one machine"),
        ("plans plans --on $ALL", "apply it alone"),
    ] {
        lab.run(&format!("apply {options}")).exits(2).complains(complaint);
    }
    let without_hosts = lab.command("apply plans").output().unwrap();
    assert_eq!(without_hosts.status.code(), Some(2), "{without_hosts:?}");
    for (user, reason) in [("root", "the plan was made without sudo"), ("app", "the plan was made as `root`")]
    {
        let refused = lab.run(&format!("apply plans --on {user}@10.9.0.1 --sudo --json"));
        let (result, found) = only(&refused);
        assert!(result == "refused" && found.contains(reason), "{refused}");
    }
    let key = fs::read_to_string(lab.directory().join("key.pub")).unwrap();
    lab.write(
        "others",
        &fs::read_to_string(lab.directory().join("hostkey.pub")).unwrap().replace("ssh-", "ann ssh-"),
    );
    lab.write("signers", &format!("ann {key}"));
    let unsigned = lab.run("apply plans --on $ALL --allowed-signers others --json");
    assert_eq!(only(&unsigned).0, "refused", "{unsigned}");
    lab.run("apply plans --on $ALL --allowed-signers signers").exits(0).says("exec#touch /opt/done executed");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn undo_of_a_push_is_made_as_plans() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write("site.yaml", MOTD);
    let pushed = lab.run("apply site.yaml --on root@10.9.0.1 --json");
    let run = documents(&pushed, ".push.summary")[0]["run"].as_str().unwrap().to_owned();
    lab.run(&format!("undo {run} --on root@10.9.0.1 -o undo")).exits(0);
    assert!(lab.file(1, "/opt/motd").exists() && !lab.file(1, "/root/undo").exists());
    lab.run("apply undo --on root@10.9.0.1").exits(0);
    assert!(!lab.file(1, "/opt/motd").exists());

    // The push did not reach the second host.
    lab.run("apply site.yaml --on $ALL").exits(0);
    let undone = lab.run(&format!("undo {run} --on $ALL --force --json"));
    let expected = [("10.9.0.1", "ok"), ("10.9.0.2", "untouched")];
    assert_eq!(results(&undone), expected.map(|(host, result)| (host.to_owned(), result.to_owned())));
    assert!(lab.file(2, "/opt/motd").exists());
    lab.run(&format!("undo {run} --on root@10.9.0.2")).exits(2).complains("has no run on the selected hosts");
}
