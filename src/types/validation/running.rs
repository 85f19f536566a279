//! Runs the commands that validate new content.

use std::{
    cell::RefCell,
    io::Read,
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::geteuid;

use super::property::{DataFormat, Validate, ValidateCommand};
use crate::{
    document::{Colour, Source, parse, render},
    host::{
        files::{self, Candidate},
        process::{Command, Exit, Finished, ProcessError, Shown, View},
    },
    resource::{Context, Draft, Drafts, Effects, Error, ErrorKind, Prediction},
    types::disk::stop,
};

/// Time limit of a command, unless the resource sets `timeout`.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum number of lines of each output in a message.
const LINES: usize = 10;

/// Maximum size of a file whose format is checked.
const LARGEST: u64 = 64 << 20;

/// Validates a file that is complete but for its name.
pub(in crate::types) fn validate(
    validate: &Validate,
    name: &Path,
    candidate: &Candidate,
    cx: &Context,
) -> Result<(), Error> {
    match validate {
        Validate::Format(format) => {
            let mut bytes = Vec::new();
            let read = candidate.reader().and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
            read.map_err(|error| Error::new(format!("cannot read the new content: {error}")))?;
            has_format(name, *format, &bytes, cx)
        }
        Validate::Commands(commands) => commands.iter().try_for_each(|command| {
            let own = vec![(name.to_owned(), Shown::File(candidate.file.as_fd()))];
            let entries = if command.names_file() { Vec::new() } else { own };
            Job { command, file: &candidate.path, name, entries: &entries, cx }.run()
        }),
    }
}

/// Validates one file of a draft. In a dry run the command sees the predicted machine.
pub(in crate::types) fn validate_draft(
    validate: &Validate,
    name: &Path,
    draft: &Draft,
    drafts: &Drafts,
    cx: &Context,
) -> Result<(), Error> {
    let commands = match validate {
        Validate::Format(format) => {
            let mut bytes = Vec::new();
            draft
                .pour(&mut bytes, &mut || stop(cx))
                .map_err(|error| Error::new(format!("cannot read the new content: {error}")))?;
            return has_format(name, *format, &bytes, cx);
        }
        Validate::Commands(commands) => commands,
    };
    let predicted = cx.prediction.borrow().view(drafts)?;
    let is_shown = predicted.is_empty() || geteuid().is_root();
    for command in commands {
        let mut entries = if is_shown { predicted.clone() } else { Vec::new() };
        if !command.names_file() {
            entries.push((name.to_owned(), Shown::FileAt(draft.copy.clone())));
        }
        let validated = Job { command, file: &draft.copy, name, entries: &entries, cx }.run();
        if !is_shown && let Err(error) = validated {
            cx.warn(format!(
                "{}; the command does not see the changes of earlier resources, which takes root",
                error.message
            ));
            return Ok(());
        }
        unless_unpredictable(validated, cx)?;
    }
    Ok(())
}

/// Runs commands that validate the configuration as a whole. They see the machine that the context predicts.
pub(in crate::types) fn validate_together(
    commands: &[ValidateCommand],
    drafts: &Drafts,
    cx: &Context,
) -> Result<(), Error> {
    let entries = cx.prediction.borrow().view(drafts)?;
    let none = PathBuf::new();
    let validated = commands
        .iter()
        .try_for_each(|command| Job { command, file: &none, name: &none, entries: &entries, cx }.run());
    unless_unpredictable(validated, cx)
}

/// Runs commands that validate the configuration as a whole, with these effects.
pub(in crate::types) fn validate_effects(
    commands: &[ValidateCommand],
    effects: Effects,
    drafts: &Drafts,
    cx: &Context,
) -> Result<(), Error> {
    let mut predicted: Prediction = cx.prediction.borrow().clone();
    predicted.apply(effects, &mut |warning| cx.warn(warning))?;
    let predicted = RefCell::new(predicted);
    let mut silent = |_: &str| {};
    let inner = cx.predicting(&predicted, &mut silent);
    let validated = validate_together(commands, drafts, &inner);
    inner.into_warnings().into_iter().for_each(|warning| cx.warn(warning));
    validated
}

/// Makes a failure in a dry run a warning if earlier resources could change the result.
fn unless_unpredictable(validated: Result<(), Error>, cx: &Context) -> Result<(), Error> {
    let Err(error) = validated else { return Ok(()) };
    let prediction = cx.prediction.borrow();
    let resources = prediction.unpredictable();
    cx.tick()?;
    if resources.is_empty() {
        return Err(error);
    }
    cx.warn(format!(
        "{}\nin a real run, the changes of {} come first, and ccm cannot predict all of them",
        error.message,
        resources.join(", ")
    ));
    Ok(())
}

/// Warns if a validator rejects files that undo restored: their state was on the machine before.
pub(in crate::types) fn warn_if_rejected(validate: &Validate, restored: &[PathBuf], cx: &Context) {
    let check = |path: &PathBuf| match validate {
        Validate::Format(format) => {
            let Ok(Some((Some(file), _))) = files::open_regular(path) else { return Ok(()) };
            let mut bytes = Vec::new();
            match file.take(LARGEST).read_to_end(&mut bytes) {
                Ok(_) => has_format(path, *format, &bytes, cx),
                Err(_) => Ok(()),
            }
        }
        Validate::Commands(commands) => {
            let mut own = commands.iter().filter(|command| command.names_file());
            own.try_for_each(|command| Job { command, file: path, name: path, entries: &[], cx }.run())
        }
    };
    let none = PathBuf::new();
    let whole = || match validate {
        Validate::Format(_) => Ok(()),
        Validate::Commands(commands) => {
            let mut whole = commands.iter().filter(|command| !command.names_file());
            whole.try_for_each(|command| Job { command, file: &none, name: &none, entries: &[], cx }.run())
        }
    };
    if let Err(error) = restored.iter().try_for_each(check).and_then(|()| whole()) {
        cx.warn(format!("the state was restored although its validation fails: {}", error.message));
    }
}

fn has_format(name: &Path, format: DataFormat, bytes: &[u8], cx: &Context) -> Result<(), Error> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let problem = match format {
        DataFormat::Json => {
            serde_json::from_str::<serde::de::IgnoredAny>(&text).err().map(|error| error.to_string())
        }
        DataFormat::Toml => {
            text.parse::<toml_edit::DocumentMut>().err().map(|error| error.to_string().trim_end().to_owned())
        }
        DataFormat::Yaml => {
            let source = Source { name: name.display().to_string(), text };
            parse(&source).err().map(|problems| render(&problems, &source, Colour::Off).trim_end().to_owned())
        }
    };
    let Some(problem) = problem else { return Ok(()) };
    let word = match format {
        DataFormat::Json => "JSON",
        DataFormat::Yaml => "YAML",
        DataFormat::Toml => "TOML",
    };
    let why = if cx.is_sensitive() { String::new() } else { format!(": {problem}") };
    Err(Error::new(format!("the new content is not {word}{why}")).on("validate"))
}

/// A command that is about to run.
struct Job<'a, 'c> {
    command: &'a ValidateCommand,
    /// The file that `%s` stands for, and the path that messages show instead.
    file: &'a Path,
    name: &'a Path,
    /// Entries that the command sees and no other process does.
    entries: &'a [(PathBuf, Shown<'a>)],
    cx: &'a Context<'c>,
}

impl Job<'_, '_> {
    fn run(&self) -> Result<(), Error> {
        let cx = self.cx;
        let mut words = self.command.with_file(&self.file.to_string_lossy()).into_iter();
        let mut command = Command::new(words.next().unwrap_or_default())
            .arguments(words)
            .timeout(cx.time_left().unwrap_or(TIMEOUT))
            .filter(cx.redactor.filter());
        if !self.entries.is_empty() {
            command = command.view(View { entries: self.entries.to_vec() });
        }
        match command.run(&cx.host.runner, cx.interrupt()) {
            Ok(Finished { exit: Exit::Code(0), .. }) => Ok(()),
            Ok(finished) => Err(self.refused(&finished)),
            Err(error) => Err(self.not_asked(&error)),
        }
    }

    /// The command as messages show it.
    fn shown(&self) -> String {
        if self.cx.is_sensitive() {
            "the command".to_owned()
        } else {
            format!("`{}`", self.command.as_written())
        }
    }

    fn refused(&self, finished: &Finished) -> Error {
        let mut message =
            format!("the new content is not valid: {} ended with {}", self.shown(), finished.exit);
        if !self.cx.is_sensitive() {
            let (file, name) = (self.file.to_string_lossy(), self.name.to_string_lossy());
            for output in [&finished.stderr, &finished.stdout] {
                let text = output.text();
                let text =
                    if file.is_empty() { text.to_string() } else { text.replace(file.as_ref(), &name) };
                let lines: Vec<&str> = text.lines().collect();
                for line in &lines[lines.len().saturating_sub(LINES)..] {
                    message.push('\n');
                    message.push_str(line);
                }
            }
        }
        Error::new(message).on("validate")
    }

    fn not_asked(&self, error: &ProcessError) -> Error {
        let help = match error {
            ProcessError::View { .. } => Some(
                "without `%s` the command sees the file in its place through mounts of its own, which takes root; write \
                 `%s` where the command takes a path, if it does",
            ),
            _ => None,
        };
        let kind = match error {
            ProcessError::Stopped(_) | ProcessError::Follow { .. } => ErrorKind::Failed,
            _ => ErrorKind::NotStarted,
        };
        let why = match (error, self.cx.is_sensitive()) {
            (ProcessError::Stopped(stopped), true) => stopped.cause.to_string(),
            (_, true) => "it could not be run".to_owned(),
            (error, false) => error.to_string(),
        };
        if let Err(ended) = self.cx.tick() {
            return ended;
        }
        let message = format!("the new content could not be validated: {}: {why}", self.shown());
        let error = Error::new(message).of_kind(kind).on("validate");
        Error { help: help.map(str::to_owned), ..error }
    }
}
