//! The command line for a target: the controller's, without options for the controller.

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

use super::super::failure::Failure;

/// Options that the controller handles, and arguments that it reads.
const OWN: [&str; 31] = [
    "on",
    "inventory",
    "limit",
    "parallel",
    "sudo",
    "become",
    "ask-password",
    "ssh",
    "ssh-option",
    "connect-timeout",
    "target-binary",
    "batch",
    "max-fail",
    "max-unreachable",
    "pause",
    "spread",
    "shuffle",
    "resume",
    "hiera",
    "facts",
    "state-dir",
    "json",
    "verbose",
    "quiet",
    "color",
    "manifest",
    "identity",
    "yaml",
    "detailed-exitcode",
    "no-report",
    "report",
];

/// Options that make no sense on another machine.
const REJECTED: [&str; 6] = ["render", "metrics-file", "format", "session", "read-env", "stream"];

/// Returns the words of a command line for targets.
pub(super) fn words(mut command: Command, root: &ArgMatches) -> Result<Vec<String>, Failure> {
    command.build();
    let (mut command, mut matches) = (&command, root);
    let mut words = Vec::new();
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        words.push(name.to_owned());
        (command, matches) = (found, inner);
    }
    let mut positionals = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        if !is_given {
            continue;
        }
        let name = argument.get_long().unwrap_or(id);
        if name == "format" && command.get_name() == "check" {
            continue;
        }
        if REJECTED.contains(&name) {
            return Err(Failure::new(format!("--{name} conflicts with --on")));
        }
        if id == "manifest" || id == "file" && command.get_name() == "check" {
            positionals.extend(std::iter::repeat_n("-".to_owned(), values(argument, matches)?.len()));
        } else if OWN.contains(&name) {
        } else if argument.is_positional() {
            positionals.extend(values(argument, matches)?);
        } else {
            option(argument, matches, &mut words)?;
        }
    }
    if command.get_arguments().any(|argument| argument.get_long() == Some("json")) {
        words.push("--json".to_owned());
    }
    if command.get_name() == "check" {
        words.push("--format=json".to_owned());
    }
    if !positionals.is_empty() {
        words.push("--".to_owned());
        words.extend(positionals);
    }
    Ok(words)
}

fn option(argument: &Arg, matches: &ArgMatches, words: &mut Vec<String>) -> Result<(), Failure> {
    let id = argument.get_id().as_str();
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => return Ok(()),
    };
    match argument.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse => words.push(name),
        ArgAction::Count => words.extend(std::iter::repeat_n(name, usize::from(matches.get_count(id)))),
        _ => {
            for value in values(argument, matches)? {
                words.push(if name.starts_with("--") {
                    format!("{name}={value}")
                } else {
                    format!("{name}{value}")
                });
            }
        }
    }
    Ok(())
}

fn values(argument: &Arg, matches: &ArgMatches) -> Result<Vec<String>, Failure> {
    let id = argument.get_id().as_str();
    let raw = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    raw.map(|value| text(value).ok_or_else(|| Failure::new(format!("the value of `{id}` is not UTF-8 text"))))
        .collect()
}
