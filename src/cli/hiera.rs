//! `ccm hiera`

use std::{env, path::Path};

use ccm_expr::{Map, Path as ValuePath, Value};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    Exit,
    eval::print,
    facts,
    failure::{Failure, warn},
    host,
    output::Output,
    state_argument, state_directory, surroundings, switch,
};
use crate::manifest::{self, Surroundings};

pub(super) fn command() -> Command {
    let parse = Command::new("parse")
        .about("Shows the data of a file as it is on this machine")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .help("A file with data, hierarchy and overrides"),
        )
        .arg(
            Arg::new("set")
                .value_name("FACT=VALUE")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("Facts over those of the machine"),
        )
        .arg(Arg::new("query").long("query").value_name("PATH").help("Only what this path leads to"))
        .arg(switch("yaml", "Print YAML instead of JSON").conflicts_with("env"))
        .arg(switch("env", "Print shell variables, named HIERA_ and the key"))
        .args(facts::arguments())
        .arg(state_argument());
    Command::new("hiera")
        .about("Works with hierarchical data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(parse)
}

pub(super) fn run(matches: &ArgMatches, output: &mut Output) -> Result<Exit, Failure> {
    let Some(("parse", matches)) = matches.subcommand() else {
        return Err(Failure::new("no command was given"));
    };
    let more = matches.get_many::<String>("set").into_iter().flatten();
    let surroundings = Surroundings {
        facts: facts::value(matches, more)?,
        environ: surroundings::environ(),
        hiera: None,
        data: Map::new().into(),
    };
    let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let file = matches.get_one::<String>("file").map_or("-", String::as_str);
    let host = host(state_directory(matches)?, &output.progress)?;
    let scope = surroundings.without_manifest(&folder, &host)?;
    let mut data = manifest::data(&surroundings::location(file)?, &scope, &host)?;
    if let Some(query) = matches.get_one::<String>("query") {
        let path =
            ValuePath::parse(query).map_err(|error| Failure::new(format!("--query: {}", error.message)))?;
        data = match path.require(&data) {
            Ok(value) => value,
            Err(error) => {
                let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
                warn(&format!("{}{help}", error.message));
                return Ok(Exit::Failed);
            }
        };
    }
    if matches.get_flag("env") {
        for line in variables("HIERA", &data) {
            output.line(&line);
        }
    } else if matches.get_flag("yaml") {
        let text = serde_saphyr::to_string(&data).map_err(|error| Failure::new(error.to_string()))?;
        output.line(text.trim_end());
    } else {
        print(&data, output)?;
    }
    Ok(Exit::AsAsked)
}

/// Assignments that a shell can evaluate: one for each value that is not a map.
fn variables(name: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Map(entries) => {
            entries.iter().flat_map(|(key, value)| variables(&variable(name, key), value)).collect()
        }
        Value::Null => vec![format!("{name}=''")],
        other => vec![format!("{name}={}", shell_words::quote(&other.to_text()))],
    }
}

fn variable(prefix: &str, key: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{prefix}_{}", key.chars().map(letter).collect::<String>())
}
