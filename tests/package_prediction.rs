//! What a dry run makes of what a package would bring.

use crate::lab::{Machine, Site};

const BELOW_A_NEW_DIRECTORY: &str = "\
- file:
    - /etc/nginx/conf.d/site.conf: { content: \"x\\n\", owner: www, group: www, mode: \"0644\" }
";

#[test]
fn what_a_package_may_bring_is_a_warning_in_a_dry_run_and_not_a_failure() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - one:\n").exits(0);
    machine.apply_with(BELOW_A_NEW_DIRECTORY, &["--noop"]).exits(1);
    let noop = machine.apply_with(&format!("- package:\n    - nginx:\n{BELOW_A_NEW_DIRECTORY}"), &["--noop"]);
    noop.exits(0).counts([2, 0, 0, 0]);
    for warning in ["user `www` does not exist", "group `www` does not exist", "/etc/nginx does not exist"] {
        noop.says(&format!("warning: {warning}; assuming package#nginx creates it\n"));
    }
    assert!(machine.calls_of("apt-get", "install").is_empty());
}

#[test]
fn a_service_that_a_package_would_bring_is_predicted_to_be_started() {
    let Some(site) = Site::new("package-prediction") else { return };
    let service = "- service:\n    - brought: { enable: true }\n";
    site.apply_with(service, &["--noop"]).exits(1).says("service not found");
    // No list of this lab has it, so a real run would look again.
    let noop = site.apply_with(&format!("- package:\n    - brings-a-service:\n{service}"), &["--noop"]);
    noop.exits(0).says("warning: a real run would refresh the package index first");
    noop.says("warning: brought.service does not exist; assuming package#brings-a-service installs it\n")
        .counts([2, 0, 0, 0]);
}

#[test]
fn a_removed_package_is_predicted_to_be_gone() {
    let Some(machine) = Machine::apt() else { return };
    machine.apply("- package:\n    - tool: { ensure: \"1.0-1\" }\n").exits(0);
    let request = |ensure: &str| {
        let properties = serde_json::json!({ "name": "tool", "ensure": ensure });
        let protocol = "io.choria.ccm.v1.resource.ensure.request";
        format!(
            "{}\n",
            serde_json::json!({ "protocol": protocol, "type": "package", "properties": properties })
        )
    };
    let requests: String = ["absent", "absent", "2.0-1", "1.5-1"].into_iter().map(request).collect();
    machine.write("/srv/test/requests", &requests);
    let answers = machine.sh("ccm ensure api serve --noop --state-dir /srv/test/state </srv/test/requests");
    let messages: Vec<String> = answers
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["state"]["noop_message"].to_string()
        })
        .collect();
    assert_eq!(
        messages,
        [
            "\"Would have uninstalled\"",
            "null",
            "\"Would have installed version 2.0-1\"",
            "\"Would have downgraded to 1.5-1\""
        ],
        "{answers}"
    );
}
