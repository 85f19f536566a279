//! The command line for a target: the controller's, without options for the controller.

use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};

use super::super::failure::Failure;
use crate::host::input;

/// Larger files are not sent.
const LARGEST: u64 = 64 << 20;

/// Options that the controller handles, and arguments that it reads.
const OWN: [&str; 33] = [
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
    "sign",
    "allowed-signers",
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
        if name == "format" && command.get_name() == "check" && is_json(matches) {
            continue;
        }
        if REJECTED.contains(&name) {
            return Err(Failure::new(format!("--{name} conflicts with --on")));
        }
        if id == "manifest" || id == "file" && command.get_name() == "check" {
            positionals.extend(std::iter::repeat_n("-".to_owned(), values(argument, matches)?.len()));
        } else if name == "output" {
            // The controller writes the plan.
            words.push("--output=plan".to_owned());
        } else if OWN.contains(&name) {
        } else if argument.is_positional() {
            positionals.extend(values(argument, matches)?);
        } else {
            option(argument, matches, &mut words)?;
        }
    }
    let is_text = match command.get_name() {
        "check" => !is_json(matches),
        "confirm" => !matches.get_flag("status"),
        _ => false,
    };
    if !is_text && command.get_arguments().any(|argument| argument.get_long() == Some("json")) {
        words.push("--json".to_owned());
    }
    if !positionals.is_empty() {
        words.push("--".to_owned());
        words.extend(positionals);
    }
    Ok(words)
}

/// Returns whether a command line asks for JSON.
pub(super) fn is_json(matches: &ArgMatches) -> bool {
    let flag = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default();
    let formats = matches.try_get_raw("format").ok().flatten().into_iter().flatten();
    flag || formats.into_iter().any(|format| format == "json")
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
        // The controller reads the file.
        _ if name == "--content-file" => {
            for file in values(argument, matches)? {
                words.push(format!("--content={}", text_of(Path::new(&file))?));
            }
        }
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

fn text_of(file: &Path) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", file.display()));
    let bytes = input::read_file(file, LARGEST).map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|_| failed(&"not UTF-8 text"))
}

fn values(argument: &Arg, matches: &ArgMatches) -> Result<Vec<String>, Failure> {
    let id = argument.get_id().as_str();
    let raw = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
    let text = |value: &std::ffi::OsStr| value.to_str().map(str::to_owned);
    raw.map(|value| text(value).ok_or_else(|| Failure::new(format!("the value of `{id}` is not UTF-8 text"))))
        .collect()
}
