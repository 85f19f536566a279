//! `ccm facts`

use std::sync::Arc;

use ccm_expr::{Path, Value};
use clap::Args;

use super::{
    Exit,
    failure::{Failure, show, warn},
    interrupt,
    load_inputs::FactFlags,
    output::Output,
    remote::Pushed,
};
use crate::{
    facts::{self, FactsError},
    run::Environment,
};

const EXAMPLES: &str = "\
Examples:
  ccm facts host.info.platformFamily
  ccm facts network --yaml";

/// Shows what ccm knows about this machine.
///
/// Only what the query refers to is gathered, without running programs and without the network. Network file systems, those of
/// user-space programs and those that only show something of the kernel are not listed under `partition`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", facts::help()))]
pub(super) struct Arguments {
    /// A GJSON path such as `host.info.platformFamily`
    query: Option<String>,
    /// Print YAML instead of JSON
    #[arg(long)]
    yaml: bool,
    /// Print JSON, which is the default
    #[arg(long, conflicts_with = "yaml")]
    json: bool,
    #[command(flatten)]
    facts: FactFlags,
    #[command(flatten)]
    system: SystemFacts,
}

impl Arguments {
    /// Reads the arguments of `ccm hiera facts`: facts, and a query without `=` and `:`.
    pub(super) fn of_hiera(
        words: Vec<String>,
        query: Option<String>,
        yaml: bool,
        mut facts: FactFlags,
        system: SystemFacts,
    ) -> Result<Self, Failure> {
        // A query such as `partition.#(path=="/")` has other characters before its `=`.
        let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
        let is_fact = |word: &String| word.split_once(['=', ':']).is_some_and(|(name, _)| is_name(name));
        let (set, queries): (Vec<String>, Vec<String>) = words.into_iter().partition(is_fact);
        facts.extend(set);
        let mut queries: Vec<String> = query.into_iter().chain(queries).collect();
        match queries.pop() {
            query if queries.is_empty() => Ok(Self { query, json: false, yaml, facts, system }),
            _ => Err(Failure::new("give one query; facts are of the form FACT=VALUE")),
        }
    }
}

/// The flag of the Go original for facts of the machine.
#[derive(Args)]
pub(super) struct SystemFacts {
    /// As without it
    #[arg(short = 'S', long, hide = true)]
    system_facts: bool,
}

impl SystemFacts {
    /// Warns if the flag is given.
    pub(super) fn heed(&self) {
        if self.system_facts {
            warn("-S is ignored: ccm always knows the facts of the machine");
        }
    }
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.facts.accept(pushed.facts);
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    arguments.system.heed();
    let (interrupt, limit) = (interrupt()?, arguments.facts.limits().document);
    let query = arguments.query.map(|query| Path::parse(&query)).transpose();
    let query = query.map_err(|error| Failure::new(described(&error)))?;
    let facts = Environment::of_process().facts(arguments.facts.given(&interrupt)?, limit, &interrupt);
    let all = Value::Object(Arc::clone(&facts) as Arc<_>);
    let shown = match query {
        None => all,
        Some(path) => path.require(&all).map_err(|error| Failure::new(described(&error)))?,
    };
    let text = if arguments.yaml && !arguments.json {
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
