//! Why nothing was attempted.

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue},
};

use super::{
    Exit, aliases, flags,
    output::{Loss, Output},
};
use crate::{
    document::{Colour, Diagnostics, Review, Source, render},
    manifest::{LoadError, Loaded},
    session::StoreError,
    visible::visible,
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
        warn(&self.message);
        Exit::NotAttempted
    }
}

impl fmt::Display for Failure {
    /// Writes it in one line, with the place of every problem.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)?;
        for Review { source, diagnostics } in &self.reviews {
            for problem in diagnostics.errors() {
                let place = problem.span.map(|span| source.line_column(span.start));
                let (line, column) = place.unwrap_or((1, 1));
                write!(f, "; {}:{line}:{column}: {}", source.name, problem.message)?;
            }
        }
        Ok(())
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
pub(super) fn usage(mut error: clap::Error) -> ExitCode {
    place(&mut error);
    let text = error.render();
    if error.use_stderr() {
        let mut stderr = anstream::stderr().lock();
        let _ = if is_typed_harmless() {
            write!(stderr, "{}", text.ansi())
        } else {
            write!(stderr, "{}", visible(&text.to_string()))
        };
        return Exit::NotAttempted.into();
    }
    let mut output = Output::stdout();
    output.styled_text(&flags::with_spaces(&text.ansi().to_string()));
    match output.loss() {
        Some(Loss::Failed) => Exit::NotAttempted.into(),
        _ => Exit::Success.into(),
    }
}

/// Says of a word of the Go original where it belongs, instead of guessing what it might have been.
fn place(error: &mut clap::Error) {
    let words = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let word = words.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    });
    let Some(home) = word.as_deref().and_then(aliases::home_of) else { return };
    for guess in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        error.remove(guess);
    }
    let note = StyledStr::from(format!("it belongs to `{home}`"));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![note]));
}

/// Returns whether what messages about arguments quote can be shown with colours around it.
fn is_typed_harmless() -> bool {
    let of_ccm =
        |(name, value): (OsString, OsString)| name.to_string_lossy().starts_with("CCM_").then_some(value);
    let typed = env::args_os().chain(env::vars_os().filter_map(of_ccm));
    typed.map(|text| text.to_string_lossy().into_owned()).all(|text| visible(&text) == text)
}

/// Says on standard error what the user should know although the program goes on.
pub(super) fn warn(message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "ccm: {}", visible(message));
}

/// Returns whether diagnostics are coloured.
fn colour() -> Colour {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => Colour::Off,
        _ => Colour::On,
    }
}
