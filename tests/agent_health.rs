//! Health checks between runs: what they trigger, what they do not, and what they tell.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    agent::get,
    support::{Agent, World, nats::NatsServer, wait_until},
};

/// A command that counts its runs, and a check that ends with the code in `health` and counts its own.
const CHECKED: &str = "
- exec:
    - count:
        command: \"sh -c 'echo run >>$W/runs'\"
        health_checks: [{ name: state, command: \"sh -c 'echo check >>$W/checks; exit $(cat $W/health)'\", tries: 1 }]
";

/// How many lines a file of the world has.
fn lines(world: &World, name: &str) -> usize {
    fs::read_to_string(world.path(name)).map(|text| text.lines().count()).unwrap_or_default()
}

/// Waits until the check was made a few times more.
fn checked_again(agent: &Agent, world: &World) {
    let before = lines(world, "checks");
    agent.until("more checks", || lines(world, "checks") > before + 3);
}

fn set(world: &World, code: &str) {
    // A check never reads half of it.
    fs::write(world.path("new"), code).unwrap();
    fs::rename(world.path("new"), world.path("health")).unwrap();
}

#[test]
fn a_critical_check_has_its_manifest_applied_again_and_again_but_ever_less_often() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "manifests: [site.yaml, other.yaml]\ninterval: 1h\nhealth_check_interval: 100ms\nmetrics: 127.0.0.1:{port}\n"
    );
    let world = World::new().manifest(CHECKED).file("health", "0").beside("agent.yaml", config);
    let other = world.fill("- exec:\n    - \"sh -c 'echo run >>$W/others'\": {}\n");
    let world = world.beside("other.yaml", other);
    let agent = Agent::start(&world);
    agent.says("msg=applied", 2);
    checked_again(&agent, &world);
    // Only checks are made: no resource has a turn.
    assert_eq!((lines(&world, "runs"), lines(&world, "others")), (1, 1));
    for (code, word) in [("1", "WARNING"), ("3", "UNKNOWN")] {
        set(&world, code);
        agent.says(&format!("check=state state={word}"), 1);
        checked_again(&agent, &world);
        assert_eq!((lines(&world, "runs"), agent.count(&format!("state={word}"))), (1, 1), "{}", agent.log());
        agent.tells("/manifests/0/health", word);
    }
    let begun = Instant::now();
    set(&world, "2");
    // The first is at once, and each of the others waits twice as long as the one before it. The original applies at
    // every check: 30 times a minute where it checks every 2 s.
    agent.says("cause=health resources=1", 4);
    checked_again(&agent, &world);
    let remedies = u32::try_from(agent.count("a health check is critical")).unwrap();
    let waited = begun.elapsed().as_secs_f64();
    assert!(waited >= 0.1 * (2_f64.powi(remedies.cast_signed() - 1) - 1.0), "{remedies} in {waited} s");
    assert_eq!(lines(&world, "others"), 1, "the other manifest is well");
    let text = get(port, "/metrics");
    for expected in [
        "choria_ccm_healthcheck_status_count{type=\"exec\",name=\"count\",check=\"state\",status=\"CRITICAL\"}",
        "choria_ccm_healthcheck_duration_seconds_count{type=\"exec\",name=\"count\",check=\"state\"}",
        "choria_ccm_healthcheck_status{type=\"exec\",name=\"count\",check=\"state\"} 2\n",
        "choria_ccm_agent_healthcheck_duration_seconds_count{manifests=",
        "choria_ccm_agent_healthcheck_remediations_count{manifest=",
        "choria_ccm_facts_gather_duration_seconds_count ",
        "choria_ccm_agent_facts_resolve_duration_seconds_count ",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Well again, it is tried at once the next time.
    set(&world, "0");
    agent.says("check=state state=OK", 1);
    let remedies = agent.count("a health check is critical");
    set(&world, "2");
    agent.says("a health check is critical", remedies + 1);
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn a_check_whose_program_is_missing_is_unknown_and_nothing_else() {
    let world = World::new()
        .files("- $W/a: { content: one, health_checks: [{ name: gone, command: /nowhere/check, tries: 1 }] }")
        .beside("agent.yaml", "manifests: [site.yaml]\ninterval: 1h\nhealth_check_interval: 50ms\n");
    let agent = Agent::start(&world);
    // The original crashes.
    agent.says("check=gone state=UNKNOWN", 1);
    fs::write(world.path("a"), "drift").unwrap();
    agent.makes("a", "one");
    assert_eq!(agent.count("cause=health"), 0, "{}", agent.log());
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn who_is_not_well_is_not_registered_until_it_is() {
    let world = World::new();
    let Some(server) = NatsServer::start(&world) else { return };
    world.ccm(["registration", "init", "--max-age", "2s"]).run().exits(0);
    let entry = |service: &str| {
        format!("[{{ cluster: prod, service: {service}, protocol: http, address: 10.0.0.1, port: 80 }}]")
    };
    let manifest = format!(
        "- exec:\n    - web: {{ command: \"true\", register_when_stable: {}, health_checks: [{{ name: state, \
         command: \"sh -c 'echo check >>$W/checks; exit $(cat $W/health)'\", tries: 1 }}] }}\n    \
         - other: {{ command: \"true\", register_when_stable: {} }}\n    \
         - needy: {{ command: \"true\", require: \"exec#web\", register_when_stable: {} }}\n    \
         - passed: {{ command: \"true\", control: {{ if: \"false\" }}, register_when_stable: {} }}\n",
        entry("web"),
        entry("other"),
        entry("needy"),
        entry("passed"),
    );
    let world = world.manifest(&manifest).file("health", "0").beside(
        "agent.yaml",
        "manifests: [site.yaml]\ninterval: 1h\nhealth_check_interval: 100ms\nregistration: jetstream\n",
    );
    let agent = Agent::start(&world);
    let services = || -> Vec<String> {
        let entries = world.ccm(["registration", "query", "--json"]).run().json();
        let name = |entry: &Value| entry["service"].as_str().unwrap().to_owned();
        let mut names: Vec<String> = entries.as_array().unwrap().iter().map(name).collect();
        names.sort();
        names
    };
    wait_until("all that is well is registered", || services() == ["needy", "other", "web"]);
    // UNKNOWN triggers nothing: only the checks say that it is not well.
    set(&world, "3");
    wait_until("who is not well expires", || services() == ["other"]);
    assert_eq!(agent.count("msg=applied"), 1, "{}", agent.log());
    set(&world, "1");
    wait_until("a warning is well enough", || services() == ["needy", "other", "web"]);
    let stream = server.client().api("STREAM.INFO.REGISTRATION", &json!({}));
    assert_eq!(stream["config"]["max_msgs_per_subject"], 1);
    assert_eq!(agent.end().0, Some(0));
}
