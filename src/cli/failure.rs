//! Failures before anything was attempted.

use std::{
    env,
    ffi::OsString,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{
    Exit, aliases, flags, other_tools,
    output::{Loss, Output},
};
use crate::{
    declare::meant_state,
    document::{Colour, Diagnostics, Review, Source, render},
    manifest::{LoadError, Loaded},
    run::Refused,
    session::StoreError,
    state::StateError,
    visible::visible,
};

/// Reason to stop before anything was changed.
pub(super) struct Failure {
    message: String,
    reviews: Vec<Review>,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), reviews: Vec::new() }
    }

    /// Returns the failure of a document with problems.
    pub(super) fn problems(source: Source, diagnostics: impl Into<Diagnostics>) -> Self {
        Self::invalid(vec![Review { source, diagnostics: diagnostics.into() }])
    }

    fn invalid(reviews: Vec<Review>) -> Self {
        let counted = |Review { source, diagnostics }: &Review| {
            let count = diagnostics.errors().count();
            (count > 0)
                .then(|| format!("{count} error{} in {}", if count == 1 { "" } else { "s" }, source.name))
        };
        Self { message: reviews.iter().filter_map(counted).collect::<Vec<_>>().join(", "), reviews }
    }

    /// Prints the reason on standard error, and returns the exit status.
    pub(super) fn report(self) -> Exit {
        show(&self.reviews);
        error(&self.message);
        Exit::NotAttempted
    }
}

impl fmt::Display for Failure {
    /// Writes it in one line, with the place of every problem.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)?;
        for Review { source, diagnostics } in &self.reviews {
            for problem in diagnostics.errors() {
                write!(f, "; {}", problem.located(source))?;
            }
        }
        Ok(())
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unreadable(unreadable) => Self::new(match unreadable.help() {
                Some(help) => format!("{unreadable}; help: {help}"),
                None => unreadable.to_string(),
            }),
            LoadError::NotSet(reason) => Self::new(format!("--data: {reason}")),
            LoadError::Invalid(reviews) => Self::invalid(reviews),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::new(refused.to_string())
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

/// Prints the problems of documents on standard error.
pub(super) fn show(reviews: &[Review]) {
    let mut stderr = anstream::stderr().lock();
    for Review { source, diagnostics } in reviews {
        let _ = writeln!(stderr, "{}", render(diagnostics, source, colour()));
    }
}

/// Prints the warnings of a loaded value, and returns the value.
pub(super) fn heed<T>(Loaded { value, warnings }: Loaded<T>) -> T {
    show(&warnings);
    value
}

/// Help and version go to standard output and are no failure; wrong arguments are.
pub(super) fn usage(mut error: clap::Error) -> ExitCode {
    place(&mut error);
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage_of(env::args_os().skip(1))));
    }
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

/// Returns the usage of the command that the arguments name. The usage that comes with an error contains flags that only
/// environment variables set.
fn usage_of(arguments: impl Iterator<Item = OsString>) -> StyledStr {
    let mut root = super::command();
    root.build();
    let mut command = &root;
    for argument in arguments {
        let Some(found) = command.find_subcommand(argument) else { break };
        command = found;
    }
    command.clone().render_usage()
}

/// Replaces the guesses of clap with better advice: the command of a word of the Go original, the option for an option of
/// another tool, or the state for a word of another tool.
fn place(error: &mut clap::Error) {
    // Names that help does not show are not offered either.
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::ValidSubcommand] {
        let mut names = texts(error, kind);
        names.retain(|name| !aliases::is_command(name));
        if !names.is_empty() {
            error.insert(kind, ContextValue::Strings(names));
        }
    }
    let Some(note) = note(error) else { return };
    for guess in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        error.remove(guess);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(note)]));
}

fn note(error: &clap::Error) -> Option<String> {
    let word = |kind| texts(error, kind).into_iter().next();
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let is_ensure = env::args_os().nth(1).is_some_and(|command| command == "ensure");
            let other = if is_ensure { None } else { other_tools::replacement(&word) };
            other.map(|replacement| format!("use {replacement}")).or_else(|| belongs(&word))
        }
        ErrorKind::InvalidSubcommand => belongs(&word(ContextKind::InvalidSubcommand)?),
        ErrorKind::InvalidValue => {
            let known = texts(error, ContextKind::ValidValue);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let state = meant_state(&word(ContextKind::InvalidValue)?, &known)?;
            Some(format!("write `{state}` here instead"))
        }
        _ => None,
    }
}

/// Names the commands that accept a word of the Go original.
fn belongs(word: &str) -> Option<String> {
    let homes = aliases::homes_of(word);
    let homes: Vec<String> = homes.iter().map(|home| format!("`{home}`")).collect();
    (!homes.is_empty()).then(|| format!("it belongs to {}", homes.join(" and ")))
}

/// Returns the strings of a kind in an error about arguments.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns whether the arguments contain no control characters, so that messages can have colors.
fn is_typed_harmless() -> bool {
    let of_ccm =
        |(name, value): (OsString, OsString)| name.to_string_lossy().starts_with("CCM_").then_some(value);
    let typed = env::args_os().chain(env::vars_os().filter_map(of_ccm));
    typed.map(|text| text.to_string_lossy().into_owned()).all(|text| visible(&text) == text)
}

/// Prints on standard error why a command failed.
pub(super) fn error(message: &str) {
    print(RED, "error", message);
}

/// Prints a warning on standard error. The command continues.
pub(super) fn warn(message: &str) {
    print(YELLOW, "warning", message);
}

/// Prints a line on standard error as it is.
pub(super) fn plain(message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", visible(message));
}

/// Prints on standard error that ccm waits, and for whom.
pub(super) fn waiting(holder: &str) {
    print(CYAN, "note", &format!("waiting for {holder} to finish"));
}

const RED: Style = AnsiColor::BrightRed.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const CYAN: Style = AnsiColor::BrightCyan.on_default().bold();

fn print(style: Style, prefix: &str, message: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{style}{prefix}{style:#}: {}", visible(message));
}

/// Returns whether diagnostics have colors.
fn colour() -> Colour {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => Colour::Off,
        _ => Colour::On,
    }
}
