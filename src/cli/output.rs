//! Standard output, with or without color, until its reader closes it.

use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use serde::Serialize;

use super::{
    failure::{self, Failure},
    progress::Progress,
};
use crate::{
    document::Colour,
    visible::{visible, visible_data},
};

/// Writes to standard output. If the reader closes a pipe, the command continues silently, so `| head` does not interrupt a
/// run. ccm reports any other error once, and fails.
pub(super) struct Output {
    stream: io::BufWriter<Descriptor>,
    colour: Colour,
    terminal: bool,
    loss: Option<Loss>,
    /// Gives way to whatever is printed.
    pub(super) progress: Arc<Progress>,
}

/// For a terminal that is narrower, or does not know how wide it is, nothing is shortened.
const NARROWEST: usize = 40;

/// The descriptor of standard output. The standard library takes one that is not open for writing for one that takes all.
struct Descriptor;

impl Write for Descriptor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reason why output was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    NobodyReads,
    Failed,
}

impl Loss {
    /// Reports an error, unless the reader closed the pipe.
    pub(super) fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::NobodyReads;
        }
        failure::error(&format!("cannot write to standard output: {error}"));
        Self::Failed
    }
}

impl Output {
    pub(super) fn stdout() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let colour = match AutoStream::choice(&stdout) {
            ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        };
        Self {
            stream: io::BufWriter::new(Descriptor),
            colour,
            terminal,
            loss: None,
            progress: Arc::new(Progress::new()),
        }
    }

    /// Returns how many columns the terminal has; nothing if it is none.
    pub(super) fn width(&self) -> Option<usize> {
        let size = self.terminal.then(|| rustix::termios::tcgetwinsize(rustix::stdio::stdout()))?;
        size.ok().map(|size| size.ws_col.into()).filter(|&columns| columns >= NARROWEST)
    }

    /// Prints lines for people that can contain text of other users, with control characters made visible.
    pub(super) fn message(&mut self, text: &str) {
        self.styled(&visible(text));
    }

    /// A line of data.
    pub(super) fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\n");
    }

    /// Prints a value as JSON.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::new(error.to_string()))?;
        self.line(&text);
        Ok(())
    }

    /// Prints a value as YAML.
    pub(super) fn yaml(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_saphyr::to_string(value).map_err(|error| Failure::new(error.to_string()))?;
        self.line(text.trim_end());
        Ok(())
    }

    /// Prints data unchanged, except for control characters on a terminal.
    pub(super) fn text(&mut self, text: &str) {
        self.progress.hide();
        let text = if self.terminal { visible_data(text) } else { text.into() };
        let written = self.stream.write_all(text.as_bytes());
        self.check(written);
    }

    /// Data, as it is.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.progress.hide();
        let written = self.stream.write_all(bytes);
        self.check(written);
    }

    /// Prints a line for people, without its colors if they cannot be shown. The caller makes control characters in text of
    /// other users visible.
    pub(super) fn styled(&mut self, text: &str) {
        self.styled_text(text);
        self.text("\n");
    }

    /// Like [`Output::styled`], without a line break.
    pub(super) fn styled_text(&mut self, text: &str) {
        self.progress.hide();
        let written = match self.colour {
            Colour::On => self.stream.write_all(text.as_bytes()),
            // Strips colors before the buffer, so that the pieces of a line are written together.
            Colour::Off => strip_str(text).try_for_each(|piece| self.stream.write_all(piece.as_bytes())),
        };
        self.check(written);
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.stream.flush();
        self.check(flushed);
    }

    /// Why not everything that was printed so far is out, if it is not.
    pub(super) fn loss(&mut self) -> Option<Loss> {
        self.flush();
        self.loss
    }

    fn check(&mut self, written: io::Result<()>) {
        if let (Err(error), None) = (written, self.loss) {
            self.loss = Some(Loss::of(&error));
        }
    }
}
