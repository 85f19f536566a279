//! The flag that selects the state directory.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use rustix::process::geteuid;

use super::{failure::Failure, or_variable};
use crate::{
    run::Environment,
    state::{LocalState, StateDirectory},
};

/// The directory that the flag selects.
#[derive(Args)]
#[command(mut_arg("state_dir", |flag| or_variable(flag, "CCM_STATE_DIR")))]
pub(super) struct StateFolder {
    /// Where ccm keeps its memory [default: /var/lib/ccm for root, else $XDG_STATE_HOME/ccm]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    state_dir: Option<PathBuf>,
}

impl StateFolder {
    /// Returns the state in the directory that the flag, the environment or the user selects.
    pub(super) fn open(&self, environment: &Environment) -> Result<LocalState, Failure> {
        self.directory(environment).map(LocalState::at)
    }

    /// Returns the state for a command that only reads; without a state directory it is empty.
    pub(super) fn open_read_only(&self, environment: &Environment) -> LocalState {
        LocalState::at(self.directory(environment).unwrap_or_else(|_| StateDirectory::none()))
    }

    /// Returns the named folder, or the one that is usual for the user.
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
