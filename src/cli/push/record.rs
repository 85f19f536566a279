//! The record of a push in the controller's history, and how a later command uses it.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::super::{
    command_line,
    failure::{Failure, warn},
    machine::StateFolder,
};
use crate::{
    host::files::hex,
    push::{Finished, HostResult, Outcome},
    run::{Environment, who},
    session::new_id,
    state::{
        StateError,
        history::{End, HostRun, ManifestDigest, Recorder, RunKind, RunRecord, Start},
    },
};

/// A push that is recorded.
pub(super) struct Record {
    recorder: Recorder,
    /// Whether the user knows that the record is incomplete.
    warned: bool,
}

impl Record {
    /// Begins the record. `manifests` are names and texts.
    pub(super) fn begin(
        environment: &Environment,
        state: &StateFolder,
        reason: Option<String>,
        manifests: &[(String, String)],
        hosts: Vec<String>,
    ) -> Result<Self, Failure> {
        let now = Timestamp::now();
        let digest = |(path, text): &(String, String)| ManifestDigest {
            path: path.clone(),
            digest: hex(&Sha256::digest(text.as_bytes())),
        };
        let start = Start {
            run: new_id(now),
            start: now.to_string(),
            kind: RunKind::Push,
            command: command_line::without_secrets(std::env::args().collect()),
            who: who(environment),
            reason,
            manifests: manifests.iter().map(digest).collect(),
            hosts,
            ..Start::default()
        };
        let mut recorder = Recorder::new(state.directory(environment)?, start);
        let mut warned = false;
        note(&mut warned, recorder.begin());
        Ok(Self { recorder, warned })
    }

    /// Records that the run on a host begins.
    pub(super) fn started(&mut self, host: &str) {
        note(&mut self.warned, self.recorder.host(HostRun::new(host, "started")));
    }

    /// Records the result of a host.
    pub(super) fn host(&mut self, result: &HostResult) {
        note(&mut self.warned, self.recorder.host(of_host(result)));
    }

    pub(super) fn run(&self) -> &str {
        self.recorder.run()
    }

    /// Returns the command that continues, if a host is left.
    pub(super) fn resume(&self, finished: &Finished) -> Option<String> {
        let is_left = finished.results.iter().any(|result| result.outcome != Outcome::Ok);
        let mut words = command_line::without_secrets(std::env::args().collect());
        if let Some(first) = words.first_mut() {
            "ccm".clone_into(first);
        }
        if let Some(at) = words.iter().position(|word| word == "--resume") {
            words.drain(at..(at + 2).min(words.len()));
        }
        words.retain(|word| !word.starts_with("--resume="));
        words.extend(["--resume".to_owned(), self.run().to_owned()]);
        is_left.then(|| shell_words::join(words))
    }

    /// Completes the record with the result of each host.
    pub(super) fn finish(&mut self, finished: &Finished, exit_status: u8) -> Result<(), String> {
        let count =
            |is: &dyn Fn(&HostResult) -> bool| finished.results.iter().filter(|result| is(result)).count();
        let hosts = finished.results.iter().map(of_host);
        let end = End {
            exit_status,
            total: finished.results.len(),
            changed: count(&|result| !result.changes.is_empty()),
            failed: count(&|result| !matches!(result.outcome, Outcome::Ok | Outcome::Untouched)),
            hosts: hosts.collect(),
            ..End::default()
        };
        self.recorder.finish(end).map_err(|error| error.to_string())
    }
}

fn of_host(result: &HostResult) -> HostRun {
    HostRun {
        host: result.host.clone(),
        result: result.outcome.name().to_owned(),
        run: result.run.clone(),
        reason: result.reason.clone(),
    }
}

/// Warns once if the history cannot be written.
fn note(warned: &mut bool, written: Result<(), StateError>) {
    if let Err(error) = written
        && !std::mem::replace(warned, true)
    {
        warn(&format!("the push is not recorded: {error}"));
    }
}

/// Returns the record of an earlier push.
pub(super) fn find(state: &StateFolder, run: &str) -> Result<RunRecord, Failure> {
    let unknown = || Failure::new(format!("the history has no push `{run}`"));
    let state = state.directory(&Environment::of_process())?;
    let store = state.history().map_err(|error| Failure::new(error.to_string()))?.ok_or_else(unknown)?;
    let log = store.list().map_err(|error| Failure::new(error.to_string()))?;
    let record = log.find(run).map_err(Failure::new)?;
    if record.start.kind == RunKind::Push && !record.hosts.is_empty() {
        Ok(record.clone())
    } else {
        Err(unknown())
    }
}
