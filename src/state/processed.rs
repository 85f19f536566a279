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
}

impl Processed {
    /// Returns the record of what was made of something that a text tells from everything else.
    pub(crate) fn new(made_of: &str, left: String) -> Self {
        Self { made_of: fingerprint(made_of.as_bytes()), left }
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
        let processed = Processed::new("a file and its commands", String::new());
        assert!(processed.is_of("a file and its commands"));
        assert!(!processed.is_of("a file and other commands"));
    }
}
