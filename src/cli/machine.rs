//! The machine that a command runs on, and the flags that select its state directory and NATS servers.

use std::{path::PathBuf, sync::Arc};

use clap::{ArgMatches, Args, ValueHint, builder::NonEmptyStringValueParser};
use rustix::process::geteuid;

use super::{
    failure::Failure, interrupt, or_variable, output::Output, progress::Progress, run::StderrNotices,
};
use crate::{
    host::interrupt::Interrupt,
    nats::{DEFAULT_CONTEXT, Nats, REGISTRATION_STREAM, check_stream},
    run::{Environment, Machine},
    state::{LocalState, Recall, StateDirectory},
};

/// Returns the machine that this process runs on.
pub(super) fn machine(
    progress: &Arc<Progress>,
    environment: Environment,
    state: LocalState,
    nats: &NatsFlags,
) -> Result<Machine, Failure> {
    let interrupt = interrupt()?;
    let nats = nats.nats(&environment, Some(&interrupt))?;
    let progress = Arc::clone(progress) as Arc<_>;
    Ok(Machine::new(interrupt, environment, state, nats, progress, Arc::new(StderrNotices)))
}

/// Returns the machine with the state directory and the NATS servers that flags select.
pub(super) fn open(
    state: &StateFolder,
    nats: &NatsFlags,
    recall: Recall,
    output: &Output,
) -> Result<Machine, Failure> {
    let environment = Environment::of_process();
    let state = state.open(&environment)?.with_recall(recall);
    machine(&output.progress, environment, state, nats)
}

/// Returns the machine for a command that only reads; without a state directory its state is empty.
pub(super) fn open_read_only(
    state: &StateFolder,
    nats: &NatsFlags,
    output: &Output,
) -> Result<Machine, Failure> {
    let environment = Environment::of_process();
    let state = state.open_read_only(&environment);
    machine(&output.progress, environment, state, nats)
}

/// Returns the machine for fuzzers, which start no command.
#[cfg(feature = "fuzzing")]
pub(crate) fn host_to_fuzz() -> Option<crate::host::Host> {
    let (environment, state) = (Environment::of_process(), LocalState::at(StateDirectory::none()));
    let machine = machine(&Arc::new(Progress::new()), environment, state, &NatsFlags::default());
    machine.ok().map(|machine| machine.host)
}

/// The directory that the flag selects.
#[derive(Args, Clone, Default)]
#[command(mut_arg("state_dir", |flag| or_variable(flag, "CCM_STATE_DIR")))]
pub(super) struct StateFolder {
    /// Where ccm keeps its memory [default: /var/lib/ccm for root, else $XDG_STATE_HOME/ccm]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    state_dir: Option<PathBuf>,
}

impl StateFolder {
    /// Returns the directory that the environment or the user selects.
    pub(super) fn default_or_variable() -> Self {
        let given = std::env::var_os("CCM_STATE_DIR").filter(|path| !path.is_empty());
        Self { state_dir: given.map(PathBuf::from) }
    }

    /// Returns the directory that a command line, the environment or the user selects.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        match matches.try_get_one::<PathBuf>("state_dir").ok().flatten() {
            Some(path) => Self { state_dir: Some(path.clone()) },
            None => Self::default_or_variable(),
        }
    }

    /// Returns the directory that the flag or the environment selects.
    pub(super) fn given(&self) -> Option<&PathBuf> {
        self.state_dir.as_ref()
    }

    /// Returns the state in the directory that the flag, the environment or the user selects.
    pub(super) fn open(&self, environment: &Environment) -> Result<LocalState, Failure> {
        self.directory(environment).map(LocalState::at)
    }

    /// Returns the state for a command that only reads; without a state directory it is empty.
    pub(super) fn open_read_only(&self, environment: &Environment) -> LocalState {
        LocalState::at(self.directory(environment).unwrap_or_else(|_| StateDirectory::none()))
    }

    /// Returns the named directory, or the default of the user.
    pub(super) fn directory(&self, environment: &Environment) -> Result<StateDirectory, Failure> {
        let path = match &self.state_dir {
            Some(path) => path.clone(),
            None if geteuid().is_root() => PathBuf::from("/var/lib/ccm"),
            None => environment
                .state_directory()
                .ok_or_else(|| Failure::new("no state directory: set HOME, XDG_STATE_HOME or --state-dir"))?,
        };
        let absolute = std::path::absolute(&path).unwrap_or(path);
        Ok(StateDirectory::at(absolute.components().collect()))
    }
}

/// Where NATS is.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_arg("context", |flag| or_variable(flag, "NATS_CONTEXT")))]
pub(super) struct NatsFlags {
    /// The NATS context for obj:// and kv:// addresses, kvGet() and registrations(): a name or an absolute path (default CCM)
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) context: Option<String>,
    /// Stream of registrations; commands that read them have a flag for it.
    #[arg(skip)]
    stream: Option<String>,
}

/// The stream of registrations.
#[derive(Args)]
pub(super) struct StreamFlag {
    /// The stream that registrations() reads (default REGISTRATION)
    #[arg(
        long = "registration",
        short = 'R',
        value_name = "STREAM",
        value_parser = |text: &str| check_stream(text).map(|()| text.to_owned()),
    )]
    registration: Option<String>,
}

impl NatsFlags {
    /// Selects the stream of registrations.
    pub(super) fn select(&mut self, stream: StreamFlag) {
        self.stream = stream.registration;
    }

    /// Returns the way to the servers. Nothing is read or opened before it is used.
    pub(super) fn nats(
        &self,
        environment: &Environment,
        interrupt: Option<&Interrupt>,
    ) -> Result<Arc<Nats>, Failure> {
        let context = self.context.clone().unwrap_or_else(|| DEFAULT_CONTEXT.to_owned());
        let stream = self.stream.clone().unwrap_or_else(|| REGISTRATION_STREAM.to_owned());
        let mut nats = Nats::new(environment.nats_context(context), stream);
        if let Some(limit) = environment.max_registrations().map_err(Failure::new)? {
            nats = nats.limited_to(limit);
        }
        if let Some(interrupt) = interrupt {
            nats = nats.interruptible(interrupt.clone());
        }
        Ok(Arc::new(nats))
    }
}
