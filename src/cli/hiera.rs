//! `ccm hiera`

use std::{collections::BTreeMap, env, path::Path};

use ccm_expr::{Path as ValuePath, Value};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    Exit,
    eval::print,
    failure::{Failure, heed, warn},
    host,
    load_inputs::{self, InputFlags},
    output::Output,
    required, switch,
};
use crate::manifest::Location;

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
        ));
    let parse = load_inputs::arguments(parse);
    Command::new("hiera")
        .about("Works with hierarchical data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(parse)
}

/// What `ccm hiera parse` is asked.
pub(super) struct Arguments {
    file: Location,
    inputs: InputFlags,
    query: Option<Query>,
    format: Format,
}

/// A path into the data, and its text.
struct Query {
    text: String,
    path: ValuePath,
}

impl Query {
    fn parse(text: &str) -> Result<Self, Failure> {
        let path = ValuePath::parse(text).map_err(|error| Failure::new(format!("--query: {error}")))?;
        Ok(Self { text: text.to_owned(), path })
    }
}

enum Format {
    Json,
    Yaml,
    Variables,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let Some(("parse", matches)) = matches.subcommand() else {
            return Err(Failure::new("no command was given; see `ccm hiera --help`"));
        };
        let mut inputs = InputFlags::from_matches(matches)?;
        inputs.facts.extend(load_inputs::pairs(matches, "set", "fact")?);
        Ok(Self {
            file: load_inputs::location(&required::<String>(matches, "file")?)?,
            inputs,
            query: matches.get_one::<String>("query").map(|text| Query::parse(text)).transpose()?,
            format: match (matches.get_flag("env"), matches.get_flag("yaml")) {
                (true, _) => Format::Variables,
                (_, true) => Format::Yaml,
                _ => Format::Json,
            },
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (host, memory) =
        (host(&output.progress, &arguments.inputs.nats)?, arguments.inputs.state.memory_to_look_at());
    let load_inputs = arguments.inputs.read(&host)?;
    let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let mut data = heed(load_inputs.data_of(&arguments.file, &folder, &host, &memory)?);
    if let Some(Query { path, .. }) = &arguments.query {
        data = path.require(&data).map_err(|error| {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            Failure::new(format!("{}{help}", error.kind))
        })?;
    }
    match arguments.format {
        Format::Variables => {
            print_variables(arguments.query.as_ref().map_or("", |query| &query.text), &data, output);
        }
        Format::Yaml => {
            let text = serde_saphyr::to_string(&data).map_err(|error| Failure::new(error.to_string()))?;
            output.line(text.trim_end());
        }
        Format::Json => print(&data, output)?,
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
