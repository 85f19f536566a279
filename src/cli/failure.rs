//! Why nothing was attempted.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::error::ErrorKind;

use super::{Exit, output::Loss};
use crate::{
    document::{Colour, Problem, Source, render},
    manifest::LoadError,
    session::StoreError,
};

/// A reason to stop before anything was touched.
pub(super) struct Failure {
    message: String,
    problems: Vec<(Source, Vec<Problem>)>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), problems: Vec::new() }
    }

    /// Problems in something that somebody wrote.
    pub(super) fn problems(source: Source, problems: Vec<Problem>) -> Self {
        Self::invalid(vec![(source, problems)])
    }

    fn invalid(problems: Vec<(Source, Vec<Problem>)>) -> Self {
        let counted = |(source, problems): &(Source, Vec<Problem>)| {
            let count = problems.len();
            format!("{count} problem{} in {}", if count == 1 { "" } else { "s" }, source.name)
        };
        Self { message: problems.iter().map(counted).collect::<Vec<_>>().join(", "), problems }
    }

    /// Says why on standard error, and how the program ends.
    pub(super) fn report(self) -> Exit {
        let mut stderr = anstream::stderr().lock();
        for (source, problems) in &self.problems {
            let _ = writeln!(stderr, "{}", render(problems, source, colour()));
        }
        let _ = writeln!(stderr, "ccm: {}", self.message);
        Exit::NotAttempted
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unreadable(unreadable) => Self::new(unreadable.to_string()),
            LoadError::NotSet(reason) => Self::new(format!("--data: {reason}")),
            LoadError::Invalid(problems) => Self::invalid(problems),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// Help and version go to standard output and are no failure; wrong arguments are.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let loss = error.print().err().map(|error| Loss::of(&error));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion if loss != Some(Loss::Failed) => {
            Exit::Success.into()
        }
        _ => Exit::NotAttempted.into(),
    }
}

/// Says on standard error what the user should know although the program goes on.
pub(super) fn warn(message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "ccm: {message}");
}

/// Whether diagnostics are coloured: the stream strips what its reader cannot show.
fn colour() -> Colour {
    if std::io::stderr().is_terminal() { Colour::On } else { Colour::Off }
}
