//! `ccm hiera`

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

use ccm_expr::{Path as ValuePath, Value};
use clap::{Args, Subcommand, ValueHint};

use super::{
    Exit,
    aliases::with_aliases,
    facts,
    failure::{Failure, heed, warn},
    load_inputs::{self, InputFlags},
    or_variable,
    output::Output,
};
use crate::{
    hiera::{MERGE_ADVICE, deep},
    run::Environment,
};

/// Arguments of `ccm hiera`.
#[derive(Args)]
#[command(mut_subcommand("parse", |parse| with_aliases(parse, "hiera parse")))]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Shows the data of a file as it is on this machine
    Parse(Box<ParseArguments>),
    #[command(hide = true)]
    Facts(Box<HieraFacts>),
}

/// Arguments of `ccm hiera facts`, as in the Go original.
#[derive(Args)]
struct HieraFacts {
    /// Facts that override those of the machine, or a query
    #[arg(value_name = "FACT=VALUE", num_args = 0..)]
    words: Vec<String>,
    /// Print only the value at this path
    #[arg(long, value_name = "PATH")]
    query: Option<String>,
    /// Print YAML instead of JSON
    #[arg(long)]
    yaml: bool,
    /// Take the environment as facts, under those that are given
    #[arg(short = 'E', long)]
    env_facts: bool,
    #[command(flatten)]
    facts: load_inputs::FactFlags,
    #[command(flatten)]
    system: facts::SystemFacts,
}

impl HieraFacts {
    fn run(mut self, output: &mut Output) -> Result<Exit, Failure> {
        if self.env_facts {
            self.facts.put_below(&Environment::of_process().variables());
        }
        let Self { words, query, yaml, facts, system, .. } = self;
        facts::run(facts::Arguments::of_hiera(words, query, yaml, facts, system)?, output)
    }
}

const EXAMPLES: &str = "\
Examples:
  # The data of a machine with this role
  ccm hiera parse data.yaml role=web

  # One value, and all of them as variables of a shell
  ccm hiera parse data.yaml --query port
  eval \"$(ccm hiera parse data.yaml --env)\"";

/// Arguments of `ccm hiera parse`.
#[derive(Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("file", |argument| or_variable(argument, "HIERA_INPUT")),
    // Keeps its position after `file`.
    mut_arg("set", |argument| argument),
)]
struct ParseArguments {
    /// File with data, hierarchy and overrides
    #[arg(value_hint = ValueHint::FilePath)]
    file: String,
    /// Facts that override those of the machine
    #[arg(value_name = "FACT=VALUE", num_args = 0..)]
    set: Vec<String>,
    /// Print only the value at this path
    #[arg(long, value_name = "PATH")]
    query: Option<String>,
    /// Print YAML instead of JSON
    #[arg(long, conflicts_with = "env")]
    yaml: bool,
    /// Print shell variables, named HIERA_ and the path of the value: letters in upper case, and _ for whatever is not a letter
    /// or digit of ASCII; a map also as one variable in JSON
    #[arg(long)]
    env: bool,
    /// Prefix of the variable names
    #[arg(long, value_name = "WORD", default_value = "HIERA", requires = "env")]
    env_prefix: String,
    /// YAML or JSON file with values that override the result
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    data_file: Vec<PathBuf>,
    /// Take the environment as facts, under those that are given
    #[arg(short = 'E', long)]
    env_facts: bool,
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    system: facts::SystemFacts,
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

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.action {
        Action::Parse(arguments) => parse(*arguments, output),
        Action::Facts(arguments) => arguments.run(output),
    }
}

fn parse(arguments: ParseArguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.system.heed();
    let ParseArguments { mut file, mut set, mut inputs, .. } = arguments;
    // A first word that sets a fact is none that names a file: the variable names it.
    if let Ok(variable) = env::var("HIERA_INPUT")
        && !variable.is_empty()
        && (file.contains('=') || file.contains(':') && !file.contains("://"))
        && !Path::new(&file).exists()
    {
        set.insert(0, std::mem::replace(&mut file, variable));
    }
    if arguments.env_facts {
        inputs.facts.put_below(&Environment::of_process().variables());
    }
    inputs.facts.extend(set);
    let file = load_inputs::location(&file)?;
    let query = arguments.query.as_deref().map(Query::parse).transpose()?;
    let machine = inputs.machine_read_only(output)?;
    let load_inputs = inputs.read(&machine)?;
    let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let mut data = heed(load_inputs.data_of(&file, &folder, &machine.host, &machine.state)?);
    for file in &arguments.data_file {
        let over = crate::facts::in_file(file, load_inputs.limits.data, &machine.host.interrupt)?.into();
        data = deep(data, &over).map_err(|conflict| {
            let place = format!("`{}`", file.display());
            Failure::new(format!("{} ({MERGE_ADVICE})", conflict.message("the data below it", &place)))
        })?;
    }
    if let Some(Query { path, .. }) = &query {
        data = path.require(&data).map_err(|error| {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            Failure::new(format!("{}{help}", error.kind))
        })?;
    }
    if arguments.env {
        let query = query.as_ref().map_or("", |query| &query.text);
        print_variables(&arguments.env_prefix, query, &data, output);
    } else if arguments.yaml {
        output.yaml(&data)?;
    } else {
        output.json(&data)?;
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
