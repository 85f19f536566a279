//! `ccm hiera`

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use ccm_expr::{Path as ValuePath, Value};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{
    Exit,
    aliases::with_aliases,
    eval::print,
    facts,
    failure::{Failure, heed, warn},
    load_inputs::{self, InputFlags},
    or_variable,
    output::Output,
    required, switch,
};
use crate::{
    document::pair,
    hiera::{MERGE_ADVICE, deep},
    manifest::Location,
    run::Environment,
};

pub(super) fn command() -> Command {
    Command::new("hiera")
        .about("Works with hierarchical data")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .defer(|command| {
            let facts = facts::command().hide(true);
            with_aliases(command.subcommand(parse_command()).subcommand(facts), "hiera")
        })
}

const EXAMPLES: &str = "\
Examples:
  # The data of a machine with this role
  ccm hiera parse data.yaml role=web

  # One value, and all of them as variables of a shell
  ccm hiera parse data.yaml --query port
  eval \"$(ccm hiera parse data.yaml --env)\"";

fn parse_command() -> Command {
    let parse = Command::new("parse")
        .about("Shows the data of a file as it is on this machine")
        .after_help(EXAMPLES)
        .arg(or_variable(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_hint(ValueHint::FilePath)
                .help("A file with data, hierarchy and overrides"),
            "HIERA_INPUT",
        ))
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
             whatever is not a letter or digit of ASCII; a map also as one variable in JSON",
        ))
        .arg(
            Arg::new("env-prefix")
                .long("env-prefix")
                .value_name("WORD")
                .default_value("HIERA")
                .requires("env")
                .help("What the names of variables begin with"),
        )
        .arg(
            Arg::new("data-file")
                .long("data-file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .action(ArgAction::Append)
                .help("A YAML or JSON file with values that go over the result"),
        )
        .arg(switch("env-facts", "Take the environment as facts, under those that are given").short('E'));
    with_aliases(load_inputs::arguments(parse), "hiera parse")
}

/// What `ccm hiera parse` is asked.
pub(super) struct Arguments {
    file: Location,
    inputs: InputFlags,
    query: Option<Query>,
    /// Files with values over the result.
    over: Vec<PathBuf>,
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
    /// Assignments for a shell; the names begin with this.
    Variables(String),
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let Some(("parse", matches)) = matches.subcommand() else {
            return Err(Failure::new("no command was given; see `ccm hiera --help`"));
        };
        let mut inputs = InputFlags::from_matches(matches)?;
        // A first word that sets a fact is none that names a file: the variable names it.
        let mut file: String = required(matches, "file")?;
        let mut set = load_inputs::pairs(matches, "set", "fact")?;
        if let Ok(variable) = env::var("HIERA_INPUT")
            && !variable.is_empty()
            && file.contains('=')
            && !Path::new(&file).exists()
        {
            let text = std::mem::replace(&mut file, variable);
            set.insert(0, pair(&text).map_err(|error| Failure::new(format!("fact: {error}")))?);
        }
        if matches.get_flag("env-facts") {
            inputs.facts.put_below(&Environment::of_process().variables());
        }
        inputs.facts.extend(set);
        Ok(Self {
            file: load_inputs::location(&file)?,
            inputs,
            query: matches.get_one::<String>("query").map(|text| Query::parse(text)).transpose()?,
            over: matches.get_many::<String>("data-file").into_iter().flatten().map(PathBuf::from).collect(),
            format: match (matches.get_flag("env"), matches.get_flag("yaml")) {
                (true, _) => Format::Variables(required(matches, "env-prefix")?),
                (_, true) => Format::Yaml,
                _ => Format::Json,
            },
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let machine = arguments.inputs.machine_read_only(output)?;
    let load_inputs = arguments.inputs.read(&machine)?;
    let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let mut data = heed(load_inputs.data_of(&arguments.file, &folder, &machine.host, &machine.state)?);
    for file in &arguments.over {
        let over = crate::facts::in_file(file, load_inputs.limits.data, &machine.host.interrupt)?.into();
        data = deep(data, &over).map_err(|conflict| {
            let place = format!("`{}`", file.display());
            Failure::new(format!("{} ({MERGE_ADVICE})", conflict.message("the data below it", &place)))
        })?;
    }
    if let Some(Query { path, .. }) = &arguments.query {
        data = path.require(&data).map_err(|error| {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            Failure::new(format!("{}{help}", error.kind))
        })?;
    }
    match arguments.format {
        Format::Variables(prefix) => {
            print_variables(&prefix, arguments.query.as_ref().map_or("", |query| &query.text), &data, output);
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
fn print_variables(prefix: &str, path: &str, data: &Value, output: &mut Output) {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, value) in values(path, data) {
        let name = variable(prefix, &path);
        output.line(&format!("{name}={}", shell_words::quote(&value)));
        paths.entry(name).or_default().push(format!("`{path}`"));
    }
    for (name, paths) in paths.iter().filter(|(_, paths)| paths.len() > 1) {
        warn(&format!("{} are all printed as {name}: the last one counts", paths.join(", ")));
    }
}

/// Each value below a path as text, with its path: a map as JSON, and then what is in it.
fn values(path: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Map(entries) => {
            let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            let whole = (!path.is_empty()).then(|| (path.to_owned(), value.to_text()));
            let parts = entries.iter().flat_map(|(key, value)| values(&below(key), value));
            whole.into_iter().chain(parts).collect()
        }
        Value::Null => vec![(path.to_owned(), String::new())],
        other => vec![(path.to_owned(), other.to_text())],
    }
}

fn variable(prefix: &str, path: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{prefix}_{}", path.chars().map(letter).collect::<String>())
}
