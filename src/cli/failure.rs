//! Why nothing was attempted.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use clap::error::ErrorKind;

use super::{Exit, output::Loss};
use crate::{
    document::{Colour, Diagnostics, Review, Source, render},
    manifest::{LoadError, Loaded},
    session::StoreError,
};

/// A reason to stop before anything was touched.
pub(super) struct Failure {
    message: String,
    reviews: Vec<Review>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), reviews: Vec::new() }
    }

    /// Problems in something that somebody wrote.
    pub(super) fn problems(source: Source, diagnostics: impl Into<Diagnostics>) -> Self {
        Self::invalid(vec![Review { source, diagnostics: diagnostics.into() }])
    }

    fn invalid(reviews: Vec<Review>) -> Self {
        let counted = |Review { source, diagnostics }: &Review| {
            let count = diagnostics.errors().count();
            (count > 0)
                .then(|| format!("{count} problem{} in {}", if count == 1 { "" } else { "s" }, source.name))
        };
        Self { message: reviews.iter().filter_map(counted).collect::<Vec<_>>().join(", "), reviews }
    }

    /// Says why on standard error, and how the program ends.
    pub(super) fn report(self) -> Exit {
        show(&self.reviews);
        let _ = writeln!(anstream::stderr().lock(), "ccm: {}", self.message);
        Exit::NotAttempted
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unreadable(unreadable) => Self::new(unreadable.to_string()),
            LoadError::NotSet(reason) => Self::new(format!("--data: {reason}")),
            LoadError::Invalid(reviews) => Self::invalid(reviews),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// Shows on standard error what was found in documents.
pub(super) fn show(reviews: &[Review]) {
    let mut stderr = anstream::stderr().lock();
    for Review { source, diagnostics } in reviews {
        let _ = writeln!(stderr, "{}", render(diagnostics, source, colour()));
    }
}

/// Shows the warnings that came with something, and returns it.
pub(super) fn heed<T>(Loaded { value, warnings }: Loaded<T>) -> T {
    show(&warnings);
    value
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
