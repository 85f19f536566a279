//! The examples in help, and so in the manual pages, do what they say: each is run as it is written.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::json;

use crate::support::{Agent, Outcome, World, finish, has, nats::NatsServer, sh, wait_until};

/// Examples that need systemd, or an earlier run; other tests run them.
const ELSEWHERE: [&str; 5] =
    ["ccm ensure service nginx running", "ccm blame", "ccm history show", "ccm undo", "ccm secret"];

/// Commands that talk to an agent or a server, which tests of their own start.
const TO_OTHERS: [&str; 3] = ["agent status", "agent run", "registration"];

/// Returns the commands among the examples of a help text.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| !matches!(*line, "Examples:" | "Example:")).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("  "));
    lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# ")).collect()
}

/// A folder with the files that examples name.
fn world() -> World {
    let site = "\
data: { port: 8080 }
ccm:
  resources:
    - file:
        - ${ Environ.PWD }/app.conf:
            content: 'port = ${ Data.port }'
            owner: '${ Environ.ME }'
            group: '${ Environ.MY_GROUP }'
            mode: '0644'
            tags: [web]
";
    let request = r#"{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec", "properties": {"name": "true"}}"#;
    let data = "data: { port: 80 }\nhierarchy: { order: ['role:${ Facts.role }'] }\noverrides: { 'role:web': { port: 8080 } }\n";
    let world = World::new()
        .file("site.yaml", site)
        .dir("site")
        .file("site/manifest.yaml", "ccm: { resources: [] }\n")
        .file("goss.yaml", "file:\n  /etc/passwd: { exists: true }\n")
        .file("data.yaml", data)
        .file("hosts.ini", "[web]\nweb[1:3]\n[prod:children]\nweb\n")
        .file("request.json", request)
        .file("requests.jsonl", format!("{request}\n"));
    let agent = world.fill("manifests: [$W/site]\n");
    fs::write(world.path("agent.yaml"), agent).unwrap();
    world
}

/// Returns the examples of a command, as a script.
fn script(world: &World, words: &str) -> String {
    let help = world.ccm(words.split(' ').chain(["--help"])).run().exits(0).stdout.clone();
    let script: String = examples(&help).iter().map(|line| format!("{line}\n")).collect();
    assert!(script.starts_with(&format!("ccm {words}")), "{help}");
    script
}

/// Runs a script as somebody does who pastes it into a shell in the world's folder.
fn paste(world: &World, script: &str) -> Outcome {
    finish(shell(world, script).spawn().unwrap(), script.to_owned())
}

fn shell(world: &World, script: &str) -> Command {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_ccm")).parent().unwrap();
    let names = sh("id -un; id -gn", world.base());
    let mut names = names.lines();
    let mut shell = Command::new("bash");
    shell
        .args(["-ec", script])
        .current_dir(world.path(""))
        .env_clear()
        .env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()))
        .env("HOME", world.base().join("home"))
        .env("TMPDIR", world.base().join("home"))
        .env("CCM_STATE_DIR", world.state())
        .env("PWD", world.path(""))
        .env("ME", names.next().unwrap())
        .env("MY_GROUP", names.next().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell
}

/// Returns the words of every command that has a manual page, except those that bring about one resource: their
/// examples are those of the reference.
fn commands(world: &World) -> Vec<Vec<String>> {
    let pages = world.base().join("pages");
    fs::create_dir(&pages).unwrap();
    world.ccm(["man", pages.to_str().unwrap()]).run().exits(0);
    let names = sh("ls *.1", &pages);
    let words = |name: &str| name.trim_end_matches(".1").split('-').skip(1).map(str::to_owned).collect();
    let all = names.lines().map(words);
    all.filter(|words: &Vec<String>| words.len() != 2 || words[0] != "ensure" || words[1] == "api").collect()
}

#[test]
fn every_example_in_help_runs_as_it_is_written() {
    if !has("bash") || !has("ssh-keygen") {
        return;
    }
    let world = world();
    sh("mkdir -p home/.ssh && ssh-keygen -q -t ed25519 -N '' -f home/.ssh/id_ed25519", world.base());
    let key = fs::read_to_string(world.base().join("home/.ssh/id_ed25519.pub")).unwrap();
    let world = world.file("allowed_signers", format!("ops {key}"));
    let mut ran = 0;
    let is_to_others = |words: &Vec<String>| TO_OTHERS.iter().any(|to| words.join(" ").starts_with(to));
    for words in commands(&world).into_iter().filter(|words| !is_to_others(words)) {
        let help =
            world.ccm(words.iter().map(String::as_str).chain(["--help"])).run().exits(0).stdout.clone();
        let script: Vec<&str> = examples(&help)
            .into_iter()
            .filter(|line| !ELSEWHERE.iter().any(|there| line.starts_with(there)))
            .collect();
        let is_leaf = !help.contains("\nCommands:\n");
        assert!(!is_leaf || !examples(&help).is_empty(), "`ccm {}` has no example\n{help}", words.join(" "));
        ran += script.len();
        // One that tells what changed may end with 3.
        let script: String = script.iter().map(|line| format!("{line} || [ $? = 3 ]\n")).collect();
        let outcome = paste(&world, &script);
        assert_eq!(outcome.code, 0, "`ccm {}`\n{script}\n{outcome}", words.join(" "));
    }
    assert!(ran > 20, "{ran}");
}

#[test]
fn examples_that_talk_to_a_server_run_as_they_are_written() {
    if !has("bash") {
        return;
    }
    let world = world();
    let Some(server) = NatsServer::start(&world) else { return };
    paste(&world, &script(&world, "registration init")).exits(0);
    let mut watch = shell(&world, &script(&world, "registration watch")).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    wait_until("it watches", || {
        server.client().api("STREAM.INFO.REGISTRATION", &json!({}))["state"]["consumer_count"] == 1
    });
    paste(&world, &script(&world, "registration create")).exits(0);
    let told = lines.next().unwrap().unwrap();
    assert!(told.contains("192.0.2.7"), "{told}");
    paste(&world, &script(&world, "registration query")).exits(0).says("192.0.2.7");
    paste(&world, &script(&world, "registration rm")).exits(0);
    let told = lines.next().unwrap().unwrap();
    assert!(told.contains("remove"), "{told}");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn examples_that_talk_to_an_agent_run_as_they_are_written() {
    if !has("bash") {
        return;
    }
    let world = world();
    fs::copy(world.path("agent.yaml"), world.base().join("agent.yaml")).unwrap();
    let agent = Agent::start(&world);
    agent.says("msg=applied", 1);
    paste(&world, &script(&world, "agent run")).exits(0).says("0 resources");
    let status = paste(&world, &script(&world, "agent status"));
    assert!(status.exits(0).json().is_object(), "{status}");
}

#[test]
fn help_of_a_type_lists_properties_before_options() {
    let world = World::new();
    let help = world.ccm(["help", "file"]).run().exits(0).stdout.clone();
    assert_eq!(help, world.ccm(["ensure", "file", "--help"]).run().exits(0).stdout);
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text:?}\n{help}"));
    let order = ["\nProperties:\n", "--content ", "\nOptions:\n", "--noop", "\nOther machines:\n", "--color"];
    assert!(order.map(at).is_sorted(), "{help}");
    let command = world.ccm(["help", "apply"]).run().exits(0).stdout.clone();
    assert!(command.contains("Usage: ccm apply [OPTIONS]"), "{command}");
}

#[test]
fn usage_leaves_out_flags_that_variables_set() {
    let world = World::new();
    let outcome = world.ccm(["apply"]).env("CCM_STATE_DIR", world.path("state").display().to_string()).run();
    outcome.exits(2).complains("Usage: ccm apply [OPTIONS] <MANIFEST>...\n");
    let outcome =
        world.ccm(["ensure", "file"]).env("CCM_STATE_DIR", world.path("state").display().to_string()).run();
    outcome.exits(2).complains("Usage: ccm ensure file [OPTIONS] <NAME> [ENSURE]\n");
}
