//! `ccm eval`

use std::{env, path::Path};

use ccm_expr::Program;
use clap::{Args, ValueHint};

use super::{
    Exit,
    failure::{Failure, heed, show},
    load_inputs::{self, InputFlags},
    output::Output,
};
use crate::{
    document::{Diagnostic, Diagnostics, Scalar, Severity, Source, Span, Style},
    manifest,
    template::{Scope, doubtful, functions_help},
};

/// What messages call the expression.
const EXPRESSION: &str = "expression";

const EXAMPLES: &str = "\
Examples:
  ccm eval 'Facts.family == \"debian\" ? 8080 : 80'
  ccm eval 'Data.port + 1' --manifest site.yaml";

/// Arguments of `ccm eval`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", functions_help()))]
pub(super) struct Arguments {
    #[command(flatten)]
    inputs: InputFlags,
    /// Expression to evaluate
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// Manifest whose data the expression can use
    #[arg(long, value_hint = ValueHint::FilePath)]
    manifest: Option<String>,
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let location = arguments.manifest.map(|text| load_inputs::location(&text)).transpose()?;
    let machine = arguments.inputs.machine_read_only(output)?;
    let load_inputs = arguments.inputs.read(&machine)?;
    // The manifest lives as long as the expression, which can read files of its bundle.
    let manifest;
    let alone;
    let scope = if let Some(location) = &location {
        manifest = heed(manifest::load(location, &load_inputs, &machine.host, &machine.state)?);
        &manifest.scope
    } else {
        let folder = env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
        alone = heed(load_inputs.without_manifest(&folder, &machine.host, &machine.state)?);
        &alone
    };
    let text = arguments.expression;
    match Program::compile(&text).and_then(|program| scope.evaluate(&program)) {
        Ok(value) => {
            doubt(scope, text)?;
            output.json(&value)?;
            Ok(Exit::Success)
        }
        Err(error) => {
            let error = scope.advise(error);
            let at = Span::new(error.span.start, error.span.end);
            let problem = Diagnostic {
                help: error.help,
                ..Diagnostic::error("invalid-expression", error.kind.to_string()).at(at)
            };
            Err(Failure::problems(Source { name: EXPRESSION.to_owned(), text }, problem))
        }
    }
}

/// Shows probable errors in the expression. A name that does not exist is an error.
fn doubt(scope: &Scope, text: String) -> Result<(), Failure> {
    let whole = Span::new(0, text.len());
    let scalar = Scalar::new(text.clone(), Style::Plain);
    let source = Source { name: EXPRESSION.to_owned(), text };
    let warning = |doubt| doubtful(doubt, &scalar, whole, &source);
    let mut warnings: Vec<Diagnostic> = scope.take_doubts().into_iter().map(warning).collect();
    let missing = warnings.iter_mut().filter(|warning| warning.id == "missing-member");
    missing.for_each(|warning| warning.severity = Severity::Error);
    let diagnostics = Diagnostics::from(warnings);
    if diagnostics.errors().next().is_some() {
        return Err(Failure::problems(source, diagnostics));
    }
    show(diagnostics.review(&source).as_slice());
    Ok(())
}
