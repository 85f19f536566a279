//! `ccm remote`: the target's side of a push. It is internal.

use std::{env, io};

use clap::{Args, FromArgMatches, Subcommand};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{
    CommandLine, Exit, command, failure::Failure, interrupt, machine::StateFolder, output::Output,
    push::own_program,
};
use crate::{
    manifest::Location,
    push::{Server, Workspace, read_request, serve, supervise},
    run::Environment,
};

/// The process to be.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    process: Process,
}

#[derive(Clone, Copy, Subcommand)]
enum Process {
    /// Talk to the controller
    Serve,
    /// Store the events of a run
    Supervise,
    /// Perform a run
    Run,
}

/// Input that a controller sent.
pub(super) struct Pushed {
    pub(super) manifests: Vec<Location>,
    pub(super) hiera: Vec<Location>,
    pub(super) facts: Vec<ccm_expr::Map>,
    /// Command line for the history.
    pub(super) recorded: Vec<String>,
    /// Private key that opens encrypted data among the input.
    pub(super) identity: Option<String>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::new(error.to_string());
    match arguments.process {
        Process::Serve => {
            let state = StateFolder::default().directory(&Environment::of_process())?;
            let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            let variables: Vec<String> = names.filter(|name| name.starts_with("CCM_")).collect();
            let server = Server { state: &state, program: &own_program()?, variables: &variables };
            serve(&server, io::stdin(), io::stdout()).map_err(failed)?;
            Ok(Exit::Success)
        }
        Process::Supervise => {
            supervise(&own_program()?, &interrupt()?).map_err(failed)?;
            Ok(Exit::Success)
        }
        Process::Run => perform(output),
    }
}

/// Performs the run that is described on standard input.
fn perform(output: &mut Output) -> Result<Exit, Failure> {
    // Without its supervisor, no process records the run.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let mut input = io::stdin().lock();
    let request = read_request(&mut input).map_err(|error| Failure::new(error.to_string()))?;
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(Into::into);
    let workspace = Workspace::new(&request, &mut input, runtime).map_err(Failure::new)?;
    let words = std::iter::once("ccm").chain(request.arguments.iter().map(String::as_str));
    let matches = command().try_get_matches_from(words).map_err(|error| Failure::new(error.to_string()))?;
    let parsed = CommandLine::from_arg_matches(&matches).map_err(|error| Failure::new(error.to_string()))?;
    let mut invocation = parsed.invocation;
    let locations = |documents: &[crate::push::Document]| {
        documents.iter().map(|document| workspace.location(document)).collect::<Result<Vec<_>, _>>()
    };
    invocation.accept(Pushed {
        manifests: locations(&request.manifests).map_err(Failure::new)?,
        hiera: locations(&request.data).map_err(Failure::new)?,
        facts: request
            .facts
            .iter()
            .filter_map(|facts| ccm_expr::Value::from(facts.clone()).as_map().cloned())
            .collect(),
        recorded: request.recorded.clone(),
        identity: request.identity.clone(),
    });
    invocation.run(output)
}
