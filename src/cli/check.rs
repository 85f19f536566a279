//! `ccm check`

mod formats;

use std::path::{Path, PathBuf};

use clap::{
    Args, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
};

use self::formats::CheckFormat;
use super::{
    Exit,
    failure::Failure,
    machine::{NatsFlags, machine},
    output::Output,
    remote::Pushed,
};
use crate::{
    checks::{self, HealthCheck, Rules},
    document::{Diagnostic, Diagnostics, NodeError, Source, Value, from_node, parse},
    health::{self, IncludeError, Occasion, Surroundings},
    host::{Host, input, process::close_inherited},
    manifest::Location,
    redaction::Redactor,
    run::{Environment, Machine},
    state::{LocalState, StateDirectory},
    types,
    visible::visible_line,
};

/// A larger file holds no checks.
const LARGEST: u64 = 16 << 20;

/// Arguments of `ccm check`.
#[derive(Args)]
#[command(after_help = "Examples:\n  ccm check goss.yaml\n  ccm check goss.yaml --format nagios")]
pub(super) struct Arguments {
    /// A YAML or JSON file with rules of goss or a list of health checks, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: String,
    /// How to tell the results; with nagios the exit code is 0 to 3
    #[arg(
        long,
        default_value = "table",
        value_parser = PossibleValuesParser::new(CheckFormat::WORDS).map(|word| CheckFormat::of(&word)),
    )]
    format: CheckFormat,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The file that a controller sent.
    #[arg(skip)]
    pushed: Option<Location>,
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.pushed = pushed.manifests.into_iter().next();
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (environment, state) = (Environment::of_process(), LocalState::at(StateDirectory::none()));
    let Machine { host, .. } = machine(&output.progress, environment, state, &NatsFlags::default())?;
    let (checks, folder) = match read(arguments, &host) {
        Ok(read) => read,
        Err(failure) if arguments.format == CheckFormat::Nagios => {
            failure.report();
            output.line("UNKNOWN - nothing was checked");
            return Ok(Exit::Plugin(checks::CheckState::Unknown));
        }
        Err(failure) => return Err(failure),
    };
    close_inherited();
    let redactor = Redactor::new(checks.iter().flat_map(HealthCheck::secrets));
    let on = Surroundings {
        host: &host,
        package_type: types::package(),
        folder: &folder,
        redactor: &redactor,
        occasion: Occasion::Monitor,
    };
    let results = health::run(&checks, &on, &mut |line| super::failure::warn(&visible_line(line)));
    let format = if arguments.json { CheckFormat::Json } else { arguments.format };
    Ok(formats::print(&results, format, output))
}

/// Reads checks, and says where relative paths in them start.
fn read(arguments: &Arguments, host: &Host) -> Result<(Vec<HealthCheck>, PathBuf), Failure> {
    let file = arguments.file.as_str();
    let current = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot tell the current folder: {error}")))?;
    let path = current.join(file);
    let (bytes, name, folder) = if let Some(Location::Open { name, folder, bytes }) = &arguments.pushed {
        (Ok(bytes.clone()), name.as_str(), folder.clone())
    } else if file == "-" {
        (input::read_stdin(LARGEST, &host.interrupt), "standard input", current)
    } else {
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        (input::read_argument(&path, LARGEST, &host.interrupt), file, folder)
    };
    let bytes = bytes.map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    let source = Source::read(name, bytes).map_err(|problem| {
        Failure::problems(Source { name: name.to_owned(), text: String::new() }, Diagnostics::from(problem))
    })?;
    let node = parse(&source).map_err(|problems| Failure::problems(source.clone(), problems))?;
    let invalid =
        |error: NodeError| Failure::problems(source.clone(), Diagnostics::from(Diagnostic::from(error)));
    if let Value::Seq(items) = &node.value {
        let checks: Vec<HealthCheck> = from_node(&node).map_err(invalid)?;
        let problem = |problem: checks::CheckProblem| {
            let span = items.get(problem.check).map(|item| item.span);
            let found = Diagnostic::error("invalid-health-check", problem.message);
            Diagnostic { span, help: problem.help, ..found }
        };
        let problems: Vec<Diagnostic> = checks::problems(&checks).into_iter().map(problem).collect();
        if !problems.is_empty() {
            return Err(Failure::problems(source, problems));
        }
        if checks.is_empty() {
            return Err(Failure::new(format!("{name} holds no checks")));
        }
        return Ok((checks, folder));
    }
    let rules: Rules = health::rules_of(&source, &folder).map_err(include_failure)?;
    let goss_name = Path::new(name).file_name().map_or("goss".to_owned(), |name| name.display().to_string());
    let check = HealthCheck { goss_rules: Some(rules), name: Some(goss_name), ..HealthCheck::default() };
    Ok((vec![check], folder))
}

fn include_failure(error: IncludeError) -> Failure {
    match error {
        IncludeError::Invalid { document, diagnostics } => Failure::problems(*document, diagnostics),
        error => Failure::new(error.to_string()),
    }
}
