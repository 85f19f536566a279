//! Access of one attempt to the machine, and its remaining time.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Surroundings,
    observe::{packages::Packages, units::Units},
};
use crate::{
    checks::Observed,
    host::{Host, sockets::Listener},
    redaction::Redactor,
    resource::AnyType,
};

/// Reason why a property was not observed.
#[derive(Debug)]
pub(super) enum Unseen {
    /// The state cannot be determined.
    Cannot(String),
    /// The subject does not exist, which no rule can expect.
    Not(String),
}

/// Observation of one property.
pub(super) type Seen = Result<Observed, Unseen>;

/// Access of one attempt to the machine. Observations are shared by the rules of the attempt, but not by attempts.
pub(super) struct Lens<'a> {
    pub(super) host: &'a Host,
    pub(super) package_type: &'static dyn AnyType,
    folder: &'a Path,
    pub(super) redactor: &'a Redactor,
    deadline: Instant,
    pub(super) limit: Duration,
    pub(super) listeners: OnceCell<Result<Vec<Listener>, String>>,
    pub(super) packages: OnceCell<Result<Packages, String>>,
    pub(super) units: OnceCell<Result<Units, String>>,
}

impl<'a> Lens<'a> {
    pub(super) fn new(on: &Surroundings<'a>, limit: Duration) -> Self {
        // Accounts might have changed since the last attempt.
        on.host.users.forget();
        let deadline =
            Instant::now().checked_add(limit).unwrap_or_else(|| Instant::now() + Duration::from_hours(24));
        Self {
            host: on.host,
            package_type: on.package_type,
            folder: on.folder,
            redactor: on.redactor,
            deadline,
            limit,
            listeners: OnceCell::new(),
            packages: OnceCell::new(),
            units: OnceCell::new(),
        }
    }

    /// Returns the path that a rule names.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.folder.join(written)
    }

    /// Returns the remaining time of the attempt.
    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns a time limit, shortened to the remaining time of the attempt.
    pub(super) fn within(&self, limit: Duration) -> Duration {
        limit.min(self.time_left())
    }

    /// Fails if the attempt has to end.
    pub(super) fn tick(&self) -> Result<(), Unseen> {
        if let Some(signal) = self.host.interrupt.requested() {
            return Err(Unseen::Cannot(format!("interrupted by {signal}")));
        }
        if self.time_left().is_zero() {
            let limit = crate::vocabulary::Duration::from(self.limit);
            return Err(Unseen::Cannot(format!("the check timed out after {limit}")));
        }
        Ok(())
    }

    /// Returns the reason for a timeout: of the whole attempt, or of the subject's own limit.
    pub(super) fn too_slow(&self, limit: Duration) -> Unseen {
        match self.tick() {
            Err(unseen) => unseen,
            Ok(()) => Unseen::Not(format!("timed out after {}", crate::vocabulary::Duration::from(limit))),
        }
    }
}
