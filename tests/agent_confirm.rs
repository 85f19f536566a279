//! The agent, confirmations and undone runs.

use std::fs;

use crate::support::{Agent, World};

const MANIFEST: &str = "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
";

fn world(config: &str, manifest: &str) -> World {
    World::new().file("file", "old\n").file("health", "0").manifest(manifest).beside("agent.yaml", config)
}

fn set_health(world: &World, code: &str) {
    // A check never reads half of it.
    fs::write(world.path("new"), code).unwrap();
    fs::rename(world.path("new"), world.path("health")).unwrap();
}

const CONFIG: &str = "manifests: [site.yaml]\ninterval: 1h\n";

#[test]
fn manifest_whose_run_was_undone_is_not_applied_again() {
    let world = world(CONFIG, MANIFEST);
    let agent = Agent::start(&world);
    agent.makes("file", "new\n");
    agent.says("msg=applied", 1);
    world.ccm(["undo", "last"]).run().exits(0);
    agent.says("was undone", 1);
    // Drift does not change that.
    fs::write(world.path("file"), "mine\n").unwrap();
    agent.says("was undone", 2);
    assert_eq!(world.read("file"), "mine\n", "{}", agent.log());
    let error = agent.status()["manifests"][0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("was undone"), "{error}");
    // On request it is applied, and so is another manifest.
    world.ccm(["agent", "run"]).run().exits(0);
    assert_eq!(world.read("file"), "new\n", "{}", agent.log());
    world.ccm(["undo", "last"]).run().exits(0);
    agent.makes("file", "mine\n");
    fs::write(world.base().join("site.yaml"), world.fill(&MANIFEST.replace("new", "newer"))).unwrap();
    agent.makes("file", "newer\n");
}

#[test]
fn manifest_that_undoes_itself_is_not_applied_again() {
    let manifest = "\
ccm:
  on_failure: undo
  resources:
    - file:
        - $W/file: { content: \"new\\n\", $OWN, mode: '0644' }
    - exec:
        - \"sh -c 'echo run >> $W/runs; false'\": {}
";
    let world = world(CONFIG, manifest);
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    assert_eq!(world.read("file"), "old\n", "{}", agent.log());
    fs::write(world.path("file"), "mine\n").unwrap();
    agent.says("was undone", 1);
    assert_eq!(world.read("runs"), "run\n", "{}", agent.log());
}

const CONFIRMED: &str = "\
ccm:
  confirm: TIME
  resources:
    - file:
        - $W/file:
            content: \"new\\n\"
            owner: \"$UID\"
            group: \"$GID\"
            mode: '0644'
            health_checks: [{ command: \"sh -c 'exit $(cat $W/health)'\", tries: 1 }]
";

#[test]
fn agent_confirms_its_run_if_all_health_checks_pass() {
    let world = world("manifests: [site.yaml]\ninterval: 1h\n", &CONFIRMED.replace("TIME", "2s"));
    let agent = Agent::start(&world);
    agent.says("the run awaits confirmation", 1);
    agent.says("the run is confirmed", 1);
    assert_eq!(world.read("file"), "new\n");
    assert_eq!(world.ccm(["confirm", "--status", "--json"]).run().json()["pending"], false);
}

#[test]
fn agent_undoes_its_run_if_a_health_check_fails() {
    let config = "manifests: [site.yaml]\ninterval: 1h\nhealth_check_interval: 1s\n";
    let world = world(config, &CONFIRMED.replace("TIME", "1h"));
    let agent = Agent::start(&world);
    agent.says("the run awaits confirmation", 1);
    set_health(&world, "2");
    agent.makes("file", "old\n");
    agent.says("a health check failed: the run was undone", 1);
}

#[test]
fn agent_applies_nothing_while_a_run_awaits_confirmation() {
    let world = world("manifests: [other.yaml]\ninterval: 1h\n", MANIFEST);
    let other = world.fill("- file:\n    - $W/other: { content: x, $OWN, mode: '0644' }\n");
    let world = world.beside("other.yaml", other);
    world.apply_with(&["--confirm", "1h"]).exits(0);
    let agent = Agent::start(&world);
    agent.says("awaits confirmation", 1);
    assert!(!world.path("other").exists());
    world.ccm(["confirm"]).run().exits(0);
    world.ccm(["agent", "run"]).run().exits(0);
    assert_eq!(world.read("other"), "x");
}
