//! Encrypted data that only the controller can open.

use std::fs;

use super::{documents, lab::Lab, only};
use crate::support::{has, sh, wait_until};

/// A manifest with encrypted data, and an identity that only the controller has.
fn encrypted() -> Option<Lab> {
    if !has("age-keygen") {
        return None;
    }
    let lab = Lab::start(1)?;
    let ccm = env!("CARGO_BIN_EXE_ccm");
    lab.write(
        "site.yaml",
        "hierarchy: { directory: data, order: [\"host:{{ Facts.inventory.name }}\"] }\ndata: { password: none }\nccm:\n  \
         resources:\n    - file:\n        - defaults: { owner: root, group: root, mode: \"0600\" }\n        - /opt/one: { content: \"{{ \
         Data.password }}\" }\n        - /opt/whole: { source: whole.age }\n    - exec:\n        - touch /opt/begun: {}\n        - \
         sh -c \"until test -e /opt/go; do sleep 0.1; done\": { timeout: 10m, environment: [\"P={{ Data.password }}\"] }\n",
    );
    let script = format!(
        "age-keygen -o identity 2>/dev/null; key=$(age-keygen -y identity); mkdir -p data/host; \
         printf 'creation_rules:\\n  - age: %s\\n' \"$key\" > .sops.yaml; \
         printf S3CRET-ONE | {ccm} secret set data/host/10.9.0.1.yaml password; \
         printf S3CRET-OTHER | {ccm} secret set data/host/10.9.0.2.yaml password; \
         printf S3CRET-WHOLE | age -r \"$key\" -o whole.age"
    );
    sh(&script, lab.directory());
    Some(lab)
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn controller_opens_data_that_the_host_cannot_open() {
    let Some(lab) = encrypted() else { return };
    let refused = lab.run("apply site.yaml --on $ALL --json");
    refused.exits(1);
    let (result, reason) = only(&refused);
    assert!(result == "refused" && reason.contains("no identity opens"), "{refused}");

    let push = lab.spawn("apply site.yaml --on $ALL --json --identity identity");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    let found = "grep -rlE S3CRET /var/lib/ccm /root /usr/local/lib /run /tmp/ccm-ask* || true";
    assert_eq!(lab.on(1, found), "", "a file of the host has a secret");
    let processes = lab.processes(1, "remote");
    assert!(processes.contains("remote") && !processes.contains("S3CRET"), "{processes}");
    let script = "for p in /proc/[0-9]*; do case $(cat $p/comm 2>/dev/null) in ccm) cat $p/cmdline $p/environ 2>/dev/null;; esac; done | \
                  grep -ca S3CRET-[OW] || true";
    assert_eq!(sh(script, lab.directory()).trim(), "0", "an argument or variable of ccm has a secret");
    lab.on(1, "touch /opt/go");
    let outcome = crate::support::Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    outcome.exits(0).never_says("S3CRET");
    assert_eq!(documents(&outcome, ".transaction.event").len(), 4);
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/one")).unwrap(), "S3CRET-ONE");
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/whole")).unwrap(), "S3CRET-WHOLE");
    assert_eq!(lab.on(1, found), "", "a file of the host has a secret");
    let left = sh("grep -rlE S3CRET state home .sops.yaml data || true", lab.directory());
    assert_eq!(left, "", "a file of the controller has a secret");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn controller_opens_only_data_that_it_sent_to_the_host() {
    let Some(lab) = encrypted() else { return };
    let push = lab.spawn("apply site.yaml --on $ALL --identity identity");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    let sent = lab.on(1, "find /run/ccm-push-0 -name \"10.9*\" | sed s,.*/,,");
    assert_eq!(sent, "10.9.0.1.yaml\n", "data of another host stays on the controller");
    lab.on(1, "touch /opt/go");
    assert!(push.wait_with_output().unwrap().status.success());
}
