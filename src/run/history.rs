//! The record of a run in the history.

use std::fmt::Write as _;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{ConfirmSettings, Environment, Machine};
use crate::{
    engine::{Finished, KeepPolicy, Recording, Selected},
    host::{files::hex, journal, system_file},
    resource::Manifest,
    session::new_id,
    state::history::{End, Limits, ManifestDigest, Recorder, RunKind, Start, Who},
};

/// The start of a run, and how it is recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Names the run to others that wait for it.
    pub(crate) name: String,
    pub(crate) kind: RunKind,
    /// The command line without secrets.
    pub(crate) command: Vec<String>,
    pub(crate) reason: Option<String>,
    pub(crate) undo_of: Option<String>,
    pub(crate) plan: Option<String>,
    pub(crate) history: HistorySettings,
    /// Whether and how the run has to be confirmed.
    pub(crate) confirm: Option<ConfirmSettings>,
}

/// Whether and how runs are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistorySettings {
    pub(crate) is_on: bool,
    pub(crate) limits: Limits,
    pub(crate) keep: KeepPolicy,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { is_on: true, limits: Limits::default(), keep: KeepPolicy::Usual }
    }
}

impl Origin {
    pub(crate) fn new(name: &str, kind: RunKind) -> Self {
        Self { name: name.to_owned(), kind, ..Self::default() }
    }

    /// Returns the recording of a run that begins now; `None` if the history is off.
    pub(super) fn recording(&self, machine: &Machine, session: Option<String>) -> Option<Recording> {
        if !self.history.is_on {
            return None;
        }
        let now = Timestamp::now();
        let kind =
            if session.is_some() && self.kind == RunKind::Ensure { RunKind::Session } else { self.kind };
        let start = Start {
            run: new_id(now),
            start: now.to_string(),
            kind,
            command: self.command.clone(),
            who: who(&machine.environment),
            reason: self.reason.clone(),
            manifests: Vec::new(),
            plan: self.plan.clone(),
            undo_of: self.undo_of.clone(),
            session,
            hosts: Vec::new(),
        };
        let recorder = Recorder::new(machine.state.directory.clone(), start);
        Some(Recording::new(recorder, self.history.keep))
    }
}

/// Returns the user who started the process.
pub(crate) fn who(environment: &Environment) -> Who {
    // The kernel has this number for a process that no login started.
    const UNSET: u32 = u32::MAX;
    let login = system_file::read("/proc/self/loginuid").ok().and_then(|text| text.trim().parse().ok());
    Who {
        uid: rustix::process::getuid().as_raw(),
        login_uid: login.filter(|uid| *uid != UNSET),
        sudo_user: environment.text("SUDO_USER").filter(|user| !user.is_empty()),
    }
}

/// The sums of all manifests of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    resources: usize,
    changed: usize,
    failed: usize,
    has_failed: bool,
    is_kept_out: bool,
}

impl Total {
    pub(super) fn add(&mut self, finished: &Finished) {
        let summary = &finished.summary;
        self.resources += summary.unique_resources;
        self.changed += summary.changed_resources;
        self.failed += summary.failed_resources;
        self.has_failed |= summary.failed_resources > 0
            || summary.requirements_unmet_count > 0
            || finished.stopped.is_some()
            || finished.unrecorded.is_some();
        self.is_kept_out |= finished.is_kept_out;
    }
}

impl Total {
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

/// Returns the manifests of a run with the digests of their texts. A command line or request could contain a secret, which
/// its digest would reveal.
pub(super) fn manifests(kind: RunKind, manifests: &[(&Manifest, &Selected)]) -> Vec<ManifestDigest> {
    if matches!(kind, RunKind::Ensure | RunKind::Session | RunKind::Api) {
        return Vec::new();
    }
    let written = manifests.iter().filter(|(manifest, _)| !manifest.source.text.is_empty());
    written.map(|(manifest, _)| manifest_digest(manifest)).collect()
}

/// Returns a manifest with the digest of its text.
pub(crate) fn manifest_digest(manifest: &Manifest) -> ManifestDigest {
    ManifestDigest {
        path: manifest.source.name.clone(),
        digest: hex(&Sha256::digest(manifest.source.text.as_bytes())),
    }
}

/// Completes the record of a run, applies the limits and writes the journal entry. Returns warnings.
pub(super) fn complete(recording: &mut Recording, total: &Total, limits: Limits) -> Vec<String> {
    if total.is_kept_out {
        return Vec::new();
    }
    let Total { resources, changed, failed, has_failed, .. } = *total;
    let end = End { exit_status: u8::from(has_failed), total: resources, changed, failed, ..End::default() };
    let run = recording.run().to_owned();
    let recorder = recording.recorder();
    let mut warnings = Vec::new();
    if let Err(error) = recorder.finish(end) {
        warnings.push(format!("the run is not recorded completely: {error}"));
    }
    if !recorder.has_changes() && changed == 0 {
        return warnings;
    }
    if let Err(error) = recorder.mark_undone() {
        warnings.push(format!("the history does not note that a run was undone: {error}"));
    }
    if let Err(error) = recorder.prune(limits) {
        warnings.push(format!("the limits of the history are not applied: {error}"));
    }
    let mut text = format!("run {run}: changed {changed} of {resources} resources");
    if failed > 0 {
        let _ = write!(text, ", {failed} failed");
    }
    journal::write(
        if has_failed { journal::Priority::Error } else { journal::Priority::Info },
        &text,
        &[("CCM_RUN", &run), ("CCM_CHANGED", &changed.to_string()), ("CCM_FAILED", &failed.to_string())],
    );
    warnings
}
