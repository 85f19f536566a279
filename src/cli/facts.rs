//! `ccm facts`, and the flags that add facts to those of the machine.

use std::{path::PathBuf, sync::Arc};

use ccm_expr::{Map, Path, Value};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use super::{
    Exit,
    failure::{Failure, show},
    interrupt,
    load_inputs::pairs,
    or_variable,
    output::Output,
    switch,
};
use crate::{
    document::Pair,
    facts::{self, FactsError},
    host::{input::Limits, interrupt::Interrupt},
    run::Environment,
    vocabulary::Size,
};

const EXAMPLES: &str = "\
Examples:
  ccm facts host.info.platformFamily
  ccm facts network --yaml";

pub(super) fn command() -> Command {
    Command::new("facts")
        .about("Shows what ccm knows about this machine")
        .long_about(
            "Shows what ccm knows about this machine.\n\nOnly what the query refers to is gathered, without running \
             programs and without the network. Network file systems, those of user-space programs and those that \
             only show something of the kernel are not listed under `partition`.",
        )
        .arg(Arg::new("query").value_name("QUERY").help("A GJSON path such as `host.info.platformFamily`"))
        .arg(switch("yaml", "Print YAML instead of JSON"))
        .args(arguments())
        .after_help(EXAMPLES)
        .defer(|command| command.after_long_help(format!("{EXAMPLES}\n\n{}", facts::help())))
}

/// The flags that add facts.
pub(super) fn arguments() -> [Arg; 3] {
    let size = Arg::new("max-input-size")
        .long("max-input-size")
        .value_name("SIZE")
        .value_parser(|text: &str| text.parse::<Size>().map_err(|error| error.to_string()))
        .help("How large each document may be [default: 64MiB for manifests and facts, 256MiB for data]");
    [
        or_variable(size, "CCM_MAX_INPUT_SIZE"),
        Arg::new("facts")
            .long("facts")
            .value_name("FILE")
            .value_hint(ValueHint::FilePath)
            .action(ArgAction::Append)
            .value_parser(value_parser!(PathBuf))
            .help("A YAML or JSON file with facts that go over those of the machine"),
        Arg::new("fact").long("fact").value_name("KEY=VALUE").action(ArgAction::Append).help(
            "A fact that goes over all others; dots in KEY make maps, VALUE has the type it has in YAML",
        ),
    ]
}

/// The facts that flags add, and how large documents may be.
pub(super) struct FactFlags {
    below: Option<Map>,
    files: Vec<PathBuf>,
    facts: Vec<Pair>,
    pub(super) limits: Limits,
}

impl FactFlags {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let size = matches.get_one::<Size>("max-input-size");
        Ok(Self {
            below: None,
            files: matches.get_many("facts").into_iter().flatten().cloned().collect(),
            facts: pairs(matches, "fact", "fact")?,
            limits: size.map_or_else(Limits::default, |size| Limits::of(size.bytes())),
        })
    }

    /// Adds facts under all others that are given.
    pub(super) fn put_below(&mut self, facts: &Value) {
        self.below = facts.as_map().cloned();
    }

    /// Adds facts over all others.
    pub(super) fn extend(&mut self, facts: Vec<Pair>) {
        self.facts.extend(facts);
    }

    /// Returns the facts that the flags add, later ones over earlier ones.
    pub(super) fn given(self, interrupt: &Interrupt) -> Result<Vec<Map>, Failure> {
        let limit = self.limits.document;
        let mut given: Vec<Map> = self.below.into_iter().collect();
        for path in &self.files {
            given.push(facts::in_file(path, limit, interrupt)?);
        }
        given.extend(self.facts.into_iter().filter_map(|pair| pair.nested().as_map().cloned()));
        Ok(given)
    }
}

/// What `ccm facts` is asked.
pub(super) struct Arguments {
    facts: FactFlags,
    query: Option<Path>,
    yaml: bool,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let query = matches.get_one::<String>("query").map(|query| Path::parse(query)).transpose();
        Ok(Self {
            facts: FactFlags::from_matches(matches)?,
            query: query.map_err(|error| Failure::new(described(&error)))?,
            yaml: matches.get_flag("yaml"),
        })
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (interrupt, limit) = (interrupt()?, arguments.facts.limits.document);
    let facts = Environment::of_process().facts(arguments.facts.given(&interrupt)?, limit, &interrupt);
    let all = Value::Object(Arc::clone(&facts) as Arc<_>);
    let shown = match arguments.query {
        None => all,
        Some(path) => path.require(&all).map_err(|error| Failure::new(described(&error)))?,
    };
    let text = if arguments.yaml {
        serde_saphyr::to_string(&shown).map_err(|error| error.to_string())
    } else {
        serde_json::to_string_pretty(&shown).map_err(|error| error.to_string())
    };
    show(&facts.take_reviews());
    output.line(text.map_err(Failure::new)?.trim_end());
    Ok(Exit::Success)
}

fn described(error: &ccm_expr::Error) -> String {
    match &error.help {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    }
}

impl From<FactsError> for Failure {
    fn from(error: FactsError) -> Self {
        match error {
            FactsError::Invalid { file, problems } => Self::problems(file, problems),
            other => Self::new(other.to_string()),
        }
    }
}
