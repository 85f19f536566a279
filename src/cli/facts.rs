//! `ccm facts`, and the flags that add facts to those of the machine.

use std::{path::PathBuf, sync::Arc};

use ccm_expr::{Map, Path, Value};
use clap::{Args, ValueHint};

use super::{
    Exit,
    failure::{Failure, show},
    interrupt,
    load_inputs::pairs,
    or_variable,
    output::Output,
};
use crate::{
    facts::{self, FactsError},
    host::{input::Limits, interrupt::Interrupt},
    run::Environment,
    vocabulary::Size,
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
    #[command(flatten)]
    facts: FactFlags,
}

/// The facts that flags add, and the maximum size of documents.
#[derive(Args)]
#[command(mut_arg("max_input_size", |flag| or_variable(flag, "CCM_MAX_INPUT_SIZE")))]
pub(super) struct FactFlags {
    /// How large each document may be [default: 64MiB for manifests and facts, 256MiB for data]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = |text: &str| text.parse::<Size>().map_err(|error| error.to_string()),
    )]
    max_input_size: Option<Size>,
    /// A YAML or JSON file with facts that go over those of the machine
    #[arg(long = "facts", value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A fact that goes over all others; dots in KEY make maps, VALUE has the type it has in YAML
    #[arg(long = "fact", value_name = "KEY=VALUE")]
    facts: Vec<String>,
    #[arg(skip)]
    below: Option<Map>,
}

impl FactFlags {
    /// Returns the maximum sizes of documents.
    pub(super) fn limits(&self) -> Limits {
        self.max_input_size.map_or_else(Limits::default, |size| Limits::of(size.bytes()))
    }

    /// Adds facts under all others that are given.
    pub(super) fn put_below(&mut self, facts: &Value) {
        self.below = facts.as_map().cloned();
    }

    /// Adds facts over all others.
    pub(super) fn extend(&mut self, facts: Vec<String>) {
        self.facts.extend(facts);
    }

    /// Returns the facts that the flags add, later ones over earlier ones.
    pub(super) fn given(self, interrupt: &Interrupt) -> Result<Vec<Map>, Failure> {
        let limit = self.limits().document;
        let mut given: Vec<Map> = self.below.into_iter().collect();
        for path in &self.files {
            given.push(facts::in_file(path, limit, interrupt)?);
        }
        let facts = pairs(&self.facts, "fact")?;
        given.extend(facts.into_iter().filter_map(|pair| pair.nested().as_map().cloned()));
        Ok(given)
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (interrupt, limit) = (interrupt()?, arguments.facts.limits().document);
    let query = arguments.query.map(|query| Path::parse(&query)).transpose();
    let query = query.map_err(|error| Failure::new(described(&error)))?;
    let facts = Environment::of_process().facts(arguments.facts.given(&interrupt)?, limit, &interrupt);
    let all = Value::Object(Arc::clone(&facts) as Arc<_>);
    let shown = match query {
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
