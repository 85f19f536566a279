//! Which files the commands of a scaffold have been run for, and what they have left.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{
    StateDirectory, StateError,
    archives::{FOLDER, fingerprint, keep, read_record, stem},
};
use crate::vocabulary::Checksum;

/// What is remembered of a file that commands were run for, all of them to a good end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Processed {
    /// A hash of the file as it was written and of its commands.
    made_of: Checksum,
    /// SHA-256 in hex of what the commands have left.
    pub(crate) left: String,
    /// Mode of the file before and after the commands, if they changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modes: Option<(u32, u32)>,
}

impl Processed {
    /// Returns the record of what was made of something that a text tells from everything else.
    pub(crate) fn new(made_of: &str, left: String, before: u32, after: u32) -> Self {
        let modes = (before != after).then_some((before, after));
        Self { made_of: fingerprint(made_of.as_bytes()), left, modes }
    }

    /// Returns the mode that the commands left; `None` if the file had another one before.
    pub(crate) fn mode(&self, before: u32) -> Option<u32> {
        match self.modes {
            None => Some(before),
            Some((known, after)) => (known == before).then_some(after),
        }
    }

    /// Returns whether it was made of this.
    pub(crate) fn is_of(&self, made_of: &str) -> bool {
        self.made_of == fingerprint(made_of.as_bytes())
    }
}

impl StateDirectory {
    /// Returns what is known of the file at a path.
    pub(crate) fn processed(&self, path: &Path) -> Result<Option<Processed>, StateError> {
        self.archives()?.map_or(Ok(None), |folder| read_record(&folder, &name(path)))
    }

    /// Keeps what is known of the file at a path.
    pub(crate) fn keep_processed(&self, path: &Path, processed: &Processed) -> Result<(), StateError> {
        keep(&self.make_folder(FOLDER)?, &name(path), processed)
    }
}

fn name(path: &Path) -> String {
    format!("{}.post", stem(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_of_what_it_was_made_of_and_nothing_else() {
        let processed = Processed::new("a file and its commands", String::new(), 0o644, 0o755);
        assert_eq!((processed.mode(0o644), processed.mode(0o600)), (Some(0o755), None));
        assert!(processed.is_of("a file and its commands"));
        assert!(!processed.is_of("a file and other commands"));
    }
}
