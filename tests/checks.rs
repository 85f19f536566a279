//! Health checks: plugins, rules and probes, and what follows from them.

mod alone;
mod following;
mod nginx;
mod plugins;
mod rules;
mod servers;

use serde_json::Value;

use crate::support::{Outcome, World};

/// A file that is as it should be, with these checks as a list in one line.
fn checked(world: World, checks: &str) -> World {
    world.file("f", "x").manifest(&format!(
        "- file:\n    - $W/f: {{ content: x, $OWN, mode: '0644', health_checks: {checks} }}\n"
    ))
}

/// The first check of the event of a run.
#[track_caller]
fn first(outcome: &Outcome) -> Value {
    outcome.event("f")["health_check"][0].clone()
}

/// Applies one check to a file, and gives what came of it.
#[track_caller]
fn check(checks: &str) -> (Outcome, Value) {
    let world = checked(World::new(), checks);
    let outcome = world.apply_with(&["--json"]);
    let first = first(&outcome);
    (outcome, first)
}

/// Checks rules alone, and gives the state and the counts.
#[track_caller]
fn judged(rules: &str) -> (String, String) {
    let world = World::new().file("f", "one\n/etc/x\n").beside("rules.yaml", "");
    judged_in(&world, rules)
}

#[track_caller]
fn judged_in(world: &World, rules: &str) -> (String, String) {
    std::fs::write(world.base().join("rules.yaml"), world.fill(rules)).unwrap();
    let outcome = world.ccm(["check", "rules.yaml", "--format", "json"]).run();
    let json = outcome.json();
    let counts =
        json["health_check"][0]["output"].as_str().unwrap().split(", Duration").next().unwrap().to_owned();
    (json["state"].as_str().unwrap().to_owned(), counts)
}
