//! `ccm remote`: the target's side of a push. It is internal.

use std::{
    cell::OnceCell,
    env, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, FromArgMatches, Subcommand};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{
    CommandLine, Exit, command,
    failure::Failure,
    interrupt,
    machine::{NatsFlags, StateFolder, machine},
    output::Output,
    progress::Progress,
    push::own_program,
};
use crate::{
    host::memory,
    manifest::Location,
    push::{Input, Opened, Server, Workspace, serve, supervise},
    run::{Environment, Machine},
    secrets::{Keyring, NoPrompt, digest_of_part, unopened_parts},
    state::LocalState,
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
    /// Path of the plan to apply.
    pub(super) plan: Option<PathBuf>,
    /// Encrypted data that the controller opened.
    pub(super) opened: Opened,
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
            memory::protect();
            let keyring = OnceCell::new();
            let unopened = |name: &str, bytes: &[u8]| unopened(&keyring, name, bytes);
            let server = Server {
                state: &state,
                program: &own_program()?,
                variables: &variables,
                unopened: &unopened,
            };
            serve(&server, io::stdin(), io::stdout()).map_err(failed)?;
            Ok(Exit::Success)
        }
        Process::Supervise => {
            memory::protect();
            supervise(&own_program()?, &interrupt()?).map_err(failed)?;
            Ok(Exit::Success)
        }
        Process::Run => perform(output),
    }
}

/// Returns the digests of the encrypted parts in a file that no identity of this machine opens.
fn unopened(keyring: &OnceCell<Keyring>, name: &str, bytes: &[u8]) -> Vec<String> {
    let keyring = keyring.get_or_init(|| keyring_here().unwrap_or_else(|_| Keyring::none()));
    unopened_parts(name, bytes, keyring).iter().map(|part| digest_of_part(part)).collect()
}

fn keyring_here() -> Result<Keyring, Failure> {
    let environment = Environment::of_process();
    let state = LocalState::at(StateFolder::default().directory(&environment)?);
    let machine: Machine = machine(&Arc::new(Progress::new()), environment, state, &NatsFlags::default())?;
    Ok(machine.keyring(Vec::new(), Arc::new(NoPrompt)))
}

/// Performs the run that is described on standard input.
fn perform(output: &mut Output) -> Result<Exit, Failure> {
    // Without its supervisor, no process records the run.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let unreadable = |error: io::Error| Failure::new(error.to_string());
    let mut input = Input::read(io::stdin().lock()).map_err(unreadable)?;
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(Into::into);
    let workspace = Workspace::new(&input, runtime).map_err(Failure::new)?;
    let opened = input.opened().map_err(unreadable)?;
    let request = &input.request;
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
        plan: workspace.plan().map(Path::to_owned),
        opened,
        recorded: request.recorded.clone(),
        identity: request.identity.clone(),
    });
    invocation.run(output)
}
