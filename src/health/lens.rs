//! What the rules of one attempt look through: the machine, and the time that is left.

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
};

/// Why something was not observed.
#[derive(Debug)]
pub(super) enum Unseen {
    /// Nobody can tell how it is.
    Cannot(String),
    /// It is not there to be looked at, which no rule can want.
    Not(String),
}

/// What was observed of one property.
pub(super) type Seen = Result<Observed, Unseen>;

/// What one attempt looks through. What is read for one rule is there for the others, but not for the next attempt.
pub(super) struct Lens<'a> {
    pub(super) host: &'a Host,
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
        // An account may have come or gone since the last attempt.
        on.host.users.forget();
        let deadline =
            Instant::now().checked_add(limit).unwrap_or_else(|| Instant::now() + Duration::from_hours(24));
        Self {
            host: on.host,
            folder: on.folder,
            redactor: on.redactor,
            deadline,
            limit,
            listeners: OnceCell::new(),
            packages: OnceCell::new(),
            units: OnceCell::new(),
        }
    }

    /// Returns a path that a rule names.
    pub(super) fn path(&self, written: &str) -> PathBuf {
        self.folder.join(written)
    }

    /// Returns how much time is left of the attempt.
    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns as much of a time limit as the attempt leaves.
    pub(super) fn within(&self, limit: Duration) -> Duration {
        limit.min(self.time_left())
    }

    /// Fails when the attempt has to end.
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

    /// Returns why something that took too long was not observed: the whole attempt was over, or its own time was.
    pub(super) fn too_slow(&self, limit: Duration) -> Unseen {
        match self.tick() {
            Err(unseen) => unseen,
            Ok(()) => Unseen::Not(format!("timed out after {}", crate::vocabulary::Duration::from(limit))),
        }
    }
}
