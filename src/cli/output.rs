//! Standard output, with or without colour, for as long as somebody reads it.

use std::{
    io::{self, IsTerminal, Write},
    rc::Rc,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};

use super::progress::Progress;
use crate::document::Colour;

/// Standard output. When its reader goes away the program goes on silently: a run is not cut short by `| head`.
pub(super) struct Output {
    stream: io::BufWriter<io::StdoutLock<'static>>,
    colour: Colour,
    terminal: bool,
    /// Gives way to whatever is printed.
    pub(super) progress: Rc<Progress>,
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
            stream: io::BufWriter::new(stdout.lock()),
            colour,
            terminal,
            progress: Rc::new(Progress::new()),
        }
    }

    /// Whether a person is reading.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line of data, as it is.
    pub(super) fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\n");
    }

    /// Data, as it is.
    pub(super) fn text(&mut self, text: &str) {
        self.progress.hide();
        // Nobody is left to be told that nobody is reading.
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// A line for people, whose colours are left out where they cannot be shown.
    pub(super) fn styled(&mut self, text: &str) {
        self.progress.hide();
        let _ = match self.colour {
            Colour::On => self.stream.write_all(text.as_bytes()),
            // Before the buffer: behind it, each stripped piece of a line would be a write of its own.
            Colour::Off => strip_str(text).try_for_each(|piece| self.stream.write_all(piece.as_bytes())),
        };
        self.text("\n");
    }

    pub(super) fn flush(&mut self) {
        let _ = self.stream.flush();
    }
}
