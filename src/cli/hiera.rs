//! `ccm hiera`

use std::{collections::BTreeMap, env, path::Path};

use ccm_expr::{Path as ValuePath, Value};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    Exit,
    eval::print,
    facts,
    failure::{Failure, heed, warn},
    host, load_inputs, memory_to_look_at,
    output::Output,
    state_argument, switch,
};
use crate::manifest::LoadInputs;

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
        .arg(switch(
            "env",
            "Print shell variables, named HIERA_ and the path of the value: letters in upper case, and _ for \
             whatever is not a letter or digit of ASCII",
        ))
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
    let (host, memory) = (host(&output.progress)?, memory_to_look_at(matches));
    let load_inputs = LoadInputs {
        facts: facts::value(matches, more, &host.interrupt)?,
        environ: load_inputs::environ(),
        hiera: None,
        data: Vec::new(),
        limits: facts::limits(matches),
        expression_memory: load_inputs::expression_memory()?,
    };
    let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let file = matches.get_one::<String>("file").map_or("-", String::as_str);
    let mut data = heed(load_inputs.data_of(&load_inputs::location(file)?, &folder, &host, &memory)?);
    if let Some(query) = matches.get_one::<String>("query") {
        let path = ValuePath::parse(query).map_err(|error| Failure::new(format!("--query: {error}")))?;
        data = path.require(&data).map_err(|error| {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            Failure::new(format!("{}{help}", error.kind))
        })?;
    }
    if matches.get_flag("env") {
        print_variables(matches.get_one::<String>("query").map_or("", String::as_str), &data, output);
    } else if matches.get_flag("yaml") {
        let text = serde_saphyr::to_string(&data).map_err(|error| Failure::new(error.to_string()))?;
        output.line(text.trim_end());
    } else {
        print(&data, output)?;
    }
    Ok(Exit::Success)
}

/// Prints assignments that a shell can evaluate, and warns where one would undo another.
fn print_variables(path: &str, data: &Value, output: &mut Output) {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, value) in leaves(path, data) {
        let name = variable(&path);
        output.line(&format!("{name}={}", shell_words::quote(&value)));
        paths.entry(name).or_default().push(format!("`{path}`"));
    }
    for (name, paths) in paths.iter().filter(|(_, paths)| paths.len() > 1) {
        warn(&format!("{} are all printed as {name}: the last one counts", paths.join(", ")));
    }
}

/// Each value that is not a map, as text, with its path.
fn leaves(path: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Map(entries) => {
            let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            entries.iter().flat_map(|(key, value)| leaves(&below(key), value)).collect()
        }
        Value::Null => vec![(path.to_owned(), String::new())],
        other => vec![(path.to_owned(), other.to_text())],
    }
}

fn variable(path: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("HIERA_{}", path.chars().map(letter).collect::<String>())
}
