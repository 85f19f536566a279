//! What came of a run, and what is to be expected of it.

use std::{fmt, os::unix::process::ExitStatusExt, process::Output};

use serde_json::Value;

/// What a run printed and how it ended.
pub(crate) struct Outcome {
    command: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit code; of a run that a signal ended, the signal's negative number.
    pub(crate) code: i32,
}

impl Outcome {
    pub(crate) fn new(command: String, output: Output) -> Self {
        Self {
            command,
            stdout: String::from_utf8(output.stdout).expect("the program prints text"),
            stderr: String::from_utf8(output.stderr).expect("the program prints text"),
            code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap_or_default()),
        }
    }

    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "exit code\n{self}");
        self
    }

    /// The text is on standard output.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.stdout.contains(text), "stdout lacks {text:?}\n{self}");
        self
    }

    /// The text is on standard error.
    #[track_caller]
    pub(crate) fn complains(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "stderr lacks {text:?}\n{self}");
        self
    }

    /// The text is nowhere in what was printed.
    #[track_caller]
    pub(crate) fn never_says(&self, text: &str) -> &Self {
        let both = format!("{}{}", self.stdout, self.stderr);
        assert!(!both.contains(text), "{text:?} was printed\n{self}");
        self
    }

    /// The line of a resource tells this, behind any mark.
    #[track_caller]
    pub(crate) fn reports(&self, resource: &str, what: &str) -> &Self {
        let line = format!("{resource} {what}");
        let tells = |found: &str| found.get(2..).is_some_and(|found| found.starts_with(&line));
        assert!(self.stdout.lines().any(tells), "no line {line:?}\n{self}");
        self
    }

    /// The counts of the summary: changed, unchanged, failed, skipped.
    #[track_caller]
    pub(crate) fn counts(&self, [changed, stable, failed, skipped]: [usize; 4]) -> &Self {
        let words = ["changed", "unchanged", "failed", "skipped"];
        let counts = words.map(|word| self.count(word));
        assert_eq!(counts, [changed, stable, failed, skipped], "changed, unchanged, failed, skipped\n{self}");
        self
    }

    /// Returns a counter of the summary, which leaves out zeros.
    #[track_caller]
    fn count(&self, word: &str) -> usize {
        let is_summary = |line: &&str| line.contains(" resources in ") || line.contains(" resource in ");
        let summary = self.stdout.lines().rfind(is_summary).unwrap_or_else(|| panic!("no summary\n{self}"));
        let words: Vec<&str> = summary.split([' ', ',']).collect();
        let at = words.iter().position(|known| *known == word);
        at.map_or(0, |at| words[at - 1].parse().unwrap())
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let line =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self}"));
        self.stdout.lines().map(line).collect()
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// The events of a run with `--json`.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let is_event = |line: &Value| line["protocol"] == "io.choria.ccm.v1.transaction.event";
        self.json_lines().into_iter().filter(is_event).collect()
    }

    /// The event of the resource whose name ends like this.
    #[track_caller]
    pub(crate) fn event(&self, name: &str) -> Value {
        let named = |event: &Value| event["name"].as_str().is_some_and(|found| found.ends_with(name));
        self.events().into_iter().find(named).unwrap_or_else(|| panic!("no event of {name}\n{self}"))
    }

    /// The summary of a run with `--json`.
    #[track_caller]
    pub(crate) fn summary(&self) -> Value {
        self.json_lines().pop().unwrap_or_else(|| panic!("nothing was printed\n{self}"))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { command, stdout, stderr, code } = self;
        write!(f, "--- {command}\n--- exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}---")
    }
}
