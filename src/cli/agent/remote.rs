//! `ccm agent status` and `ccm agent run`: what a running agent is asked.

use std::io;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::{
    agent,
    cli::{Exit, failure::Failure, machine::StateFolder, output::Output, push::WithHosts},
    run::Environment,
};

/// A request to a running agent.
#[derive(Subcommand)]
pub(super) enum Request {
    /// Shows how the running agent is doing
    #[command(after_help = "Example:\n  ccm agent status --json")]
    Status(WithHosts<Arguments>),
    /// Has the running agent apply everything now, and waits for the end
    #[command(after_help = "Example:\n  ccm agent run")]
    Run(Arguments),
}

/// Arguments of a request.
#[derive(Args)]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateFolder,
}

pub(super) fn run(request: &Request, output: &mut Output) -> Result<Exit, Failure> {
    let (command, arguments) = match request {
        Request::Status(WithHosts(arguments)) => (agent::Command::Status, arguments),
        Request::Run(arguments) => (agent::Command::Run, arguments),
    };
    let directory = arguments.state.directory(&Environment::of_process())?;
    let socket = directory.agent_socket().map_err(|error| Failure::new(error.to_string()))?;
    let answer = agent::call(&socket, command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::new(format!("no agent is running: nobody listens at {}", socket.display()))
        }
        io::ErrorKind::PermissionDenied => Failure::new(format!(
            "permission denied: only the user of the agent can talk to it ({})",
            socket.display()
        )),
        _ => Failure::new(format!("the agent does not answer at {}: {error}", socket.display())),
    })?;
    if let Some(error) = answer["error"].as_str() {
        return Err(Failure::new(error));
    }
    let failed = match command {
        agent::Command::Status => false,
        agent::Command::Run => answer["failed"] != 0 || answer["not_applied"] != 0,
    };
    if arguments.json {
        output.json(&answer)?;
    } else {
        match command {
            agent::Command::Status => status(&answer, output),
            agent::Command::Run => outcome(&answer, output),
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Success })
}

fn outcome(answer: &Value, output: &mut Output) {
    let count = |key: &str| answer[key].as_u64().unwrap_or_default();
    output.line(&format!(
        "{} resources: {} changed, {} failed; {} manifests not applied",
        count("resources"),
        count("changed"),
        count("failed"),
        count("not_applied")
    ));
}

fn status(answer: &Value, output: &mut Output) {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    output.line(&format!(
        "agent {} (process {}), since {}",
        text(&answer["version"]),
        answer["pid"],
        text(&answer["started"])
    ));
    output.line(&format!("configuration {}", text(&answer["config"])));
    for (kind, source) in sources(answer) {
        let digest = source["digest"].as_str().map_or("-", |digest| &digest[..digest.len().min(12)]);
        output.line(&format!("{kind} {} {digest}", text(&source["source"])));
        output.line(&format!(
            "  fetched {}, last run {}, {} failed",
            text(&source["fetched"]),
            text(&source["last_run"]),
            source["failed"]
        ));
        for (what, key) in [("stale", "problem"), ("not applied", "error")] {
            if let Some(problem) = source[key].as_str() {
                output.line(&format!("  {what}: {problem}"));
            }
        }
    }
    for pause in answer["pauses"].as_array().into_iter().flatten() {
        output.line(&format!("left alone until {}: {}", text(&pause["until"]), text(&pause["resource"])));
    }
    output.line(&format!(
        "{} directories watched, next run {}",
        answer["watching"],
        text(&answer["next_run"])
    ));
}

fn sources(answer: &Value) -> Vec<(&'static str, &Value)> {
    let data = answer.get("data").into_iter().map(|data| ("data", data));
    let manifests = answer["manifests"].as_array().into_iter().flatten();
    data.chain(manifests.map(|manifest| ("manifest", manifest))).collect()
}
