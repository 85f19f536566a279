//! Has new content judged before it appears.

use std::{io::Read, os::fd::AsFd, path::Path, time::Duration};

use super::{
    Action, Properties, source,
    state::FileState,
    validate::{DataFormat, Validate, ValidateCommand},
};
use crate::{
    document::{Colour, Source, parse, render},
    host::{
        files::{self, Attributes, Candidate},
        process::{Command, Exit, Finished, ProcessError, View},
    },
    resource::{Context, Error, ErrorKind},
};

/// How long a command may take that judges a file, unless the resource says otherwise.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How much of what it prints is shown.
const LINES: usize = 10;

/// A larger file is not read to judge its form.
const LARGEST: u64 = 64 << 20;

/// Has a file judged that is complete but for its name.
pub(super) fn judge(want: &Properties, candidate: &Candidate, cx: &Context) -> Result<(), Error> {
    let Some(validate) = &want.validate else { return Ok(()) };
    match validate {
        Validate::Format(format) => {
            let mut bytes = Vec::new();
            let read = candidate.reader().and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
            read.map_err(|error| Error::new(format!("cannot read what was written: {error}")))?;
            has_form(want, *format, &bytes, cx)
        }
        Validate::Commands(commands) => commands.iter().try_for_each(|command| {
            let job = Job { want, command, path: &candidate.path, file: candidate.file.as_fd(), cx };
            job.run()
        }),
    }
}

/// Has content judged in a dry run, on a copy of the same name that nobody else can see.
pub(super) fn simulate(
    want: &Properties,
    have: &FileState,
    action: Action,
    cx: &Context,
) -> Result<(), Error> {
    let Some(validate) = want.validate.as_ref().filter(|_| want.is_validated(action)) else { return Ok(()) };
    let (Some(content), Some(attributes)) = (content(want, have, cx)?, have.attributes_wanted()) else {
        cx.assume("what it would hold is not known yet, and so not validated");
        return Ok(());
    };
    let commands = match validate {
        Validate::Format(format) => return has_form(want, *format, &content, cx),
        Validate::Commands(commands) => commands,
    };
    let unusable = |error: &dyn std::fmt::Display| {
        cx.warn(format!("it is not validated, because there is no place for a copy: {error}"));
    };
    let copy = match Copy::make(want, &content, attributes, cx) {
        Ok(copy) => copy,
        Err(error) => {
            unusable(&error);
            return Ok(());
        }
    };
    let Ok(Some((Some(file), _))) = files::open_regular(&copy.path) else {
        unusable(&"it cannot be read");
        return Ok(());
    };
    for command in commands {
        let job = Job { want, command, path: &copy.path, file: file.as_fd(), cx };
        match job.run() {
            // What is missing may come from an earlier resource of this run.
            Err(error) if error.kind == ErrorKind::NotStarted && !cx.prediction.borrow().is_empty() => {
                cx.assume(format!(
                    "it is not validated: {}; an earlier resource may change that",
                    error.message
                ));
            }
            judged => judged?,
        }
    }
    Ok(())
}

/// Returns what the file would hold; nothing where a dry run cannot tell.
fn content(want: &Properties, have: &FileState, cx: &Context) -> Result<Option<Vec<u8>>, Error> {
    if want.is_edited() {
        return Ok(have.edited().map(|edited| edited.new.clone().into_bytes()));
    }
    if let Some(content) = &want.content {
        return Ok(Some(content.clone().into_bytes()));
    }
    let is_unknown = have.checksum_wanted().is_some_and(|sum| sum == files::UNKNOWN);
    let Some(path) = want.copied().filter(|_| !is_unknown) else { return Ok(None) };
    let resolved = cx.resolve(path);
    if cx.prediction.borrow().files.follow(&resolved)?.is_some() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = source::open(path, cx)?.take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|error| {
        Error::new(format!("cannot read source {}: {error}", resolved.display())).on("source")
    })?;
    Ok(Some(bytes))
}

/// A copy in a private folder; gone when dropped.
struct Copy {
    path: std::path::PathBuf,
    folder: files::PrivateFolder,
    name: std::ffi::OsString,
}

impl Copy {
    fn make(
        want: &Properties,
        content: &[u8],
        attributes: Attributes,
        cx: &Context,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let name = want.name.as_path().file_name().unwrap_or_default().to_owned();
        let outer = cx.state.directory.make_folder("validating")?;
        let folder = outer.make_folder(&std::process::id().to_string())?;
        let path = folder.path().join(&name);
        let copy = Self { path, folder, name };
        files::replace_among_others(&copy.path, attributes, |out| out.write_all(content))?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What stays is in a folder that the program sweeps.
        let _ = self.folder.remove(&self.name);
        let _ = self.folder.remove_self();
    }
}

fn has_form(want: &Properties, format: DataFormat, bytes: &[u8], cx: &Context) -> Result<(), Error> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let problem = match format {
        DataFormat::Json => {
            serde_json::from_str::<serde::de::IgnoredAny>(&text).err().map(|error| error.to_string())
        }
        DataFormat::Toml => {
            text.parse::<toml_edit::DocumentMut>().err().map(|error| error.to_string().trim_end().to_owned())
        }
        DataFormat::Yaml => {
            let source = Source { name: want.name.to_string(), text };
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

/// One command on its way to judge a file.
struct Job<'a, 'c> {
    want: &'a Properties,
    command: &'a ValidateCommand,
    path: &'a Path,
    file: std::os::fd::BorrowedFd<'a>,
    cx: &'a Context<'c>,
}

impl Job<'_, '_> {
    fn run(&self) -> Result<(), Error> {
        let cx = self.cx;
        let mut words = self.command.with_file(&self.path.to_string_lossy()).into_iter();
        let mut command = Command::new(words.next().unwrap_or_default())
            .arguments(words)
            .timeout(cx.time_left().unwrap_or(TIMEOUT))
            .filter(cx.redactor.filter());
        if !self.command.names_file() {
            command = command.view(View { file: self.file, target: self.want.name.as_path() });
        }
        match command.run(&cx.host.runner, cx.interrupt()) {
            Ok(Finished { exit: Exit::Code(0), .. }) => Ok(()),
            Ok(finished) => Err(self.refused(&finished)),
            Err(error) => Err(self.not_asked(&error)),
        }
    }

    /// The command as messages show it: the path of the file is that of its target.
    fn shown(&self) -> String {
        if self.cx.is_sensitive() { "the command".to_owned() } else { format!("`{}`", self.command.written) }
    }

    fn refused(&self, finished: &Finished) -> Error {
        let mut message =
            format!("the new content is not valid: {} ended with {}", self.shown(), finished.exit);
        if !self.cx.is_sensitive() {
            let target = self.want.name.to_string();
            let own = self.path.to_string_lossy();
            for output in [&finished.stderr, &finished.stdout] {
                let text = output.text().replace(own.as_ref(), &target);
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
