//! Where things are kept.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) struct Store {
    /// An absolute path, for what is made.
    pub(crate) folder: PathBuf,
    /// What came of each change, a line of JSON each.
    pub(crate) outcomes: PathBuf,
}

/// What came of a change.
#[derive(Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The name of the change.
    pub(crate) change: String,
    /// The tests that failed, or what did not come to an end; `None` if nobody noticed.
    pub(crate) noticed_by: Option<String>,
    /// How many tests reach it, and how many of them there was time for.
    pub(crate) reached_by: usize,
    pub(crate) tried: usize,
}

impl Store {
    /// The copy of the project.
    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// What belongs to one of those that run tests side by side.
    pub(crate) fn worker(&self, number: usize) -> PathBuf {
        self.folder.join(format!("worker-{number}"))
    }

    /// What came of each change, the last time that it was tried.
    pub(crate) fn outcomes(&self) -> BTreeMap<String, Outcome> {
        let text = fs::read_to_string(&self.outcomes).unwrap_or_default();
        let outcomes = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
        outcomes.map(|outcome| (outcome.change.clone(), outcome)).collect()
    }

    pub(crate) fn save(&self, outcome: &Outcome) {
        let mut file = File::options().create(true).append(true).open(&self.outcomes).expect("the outcomes");
        let line = serde_json::to_string(outcome).expect("JSON") + "\n";
        file.write_all(line.as_bytes()).expect("room for an outcome");
    }

    pub(crate) fn forget_outcomes(&self) {
        let _ = fs::remove_file(&self.outcomes);
    }
}
