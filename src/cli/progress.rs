//! The line at the bottom of a terminal that says how far a run or a download has come.

use std::{
    env,
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{host::http::ProgressListener, visible::visible_line, vocabulary::Url};

/// What is over sooner needs no line about how far it has come.
const LONG: Duration = Duration::from_secs(1);

const RUN: &str = "[{bar:24}] {pos}/{len} {wide_msg}";
const DOWNLOAD: &str = "[{bar:12}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left: {wide_msg}";
const DOWNLOAD_OF_UNKNOWN_SIZE: &str = "{bytes}, {bytes_per_sec}: {wide_msg}";

/// One line on standard error, if that is a terminal: where the run is, or where its download is.
pub(super) struct Progress {
    visibility: Visibility,
    line: Arc<Mutex<Line>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Nothing,
    /// What is printed goes elsewhere: a line about the run would get in its way where they come together again.
    Downloads,
    Everything,
}

#[derive(Default)]
struct Line {
    shown: Option<ProgressBar>,
    turn: Option<Turn>,
    /// Lines instead of the bar of a run.
    lines: Option<String>,
    download: Option<Download>,
    /// Whether the run turned out to be a long one.
    is_long: bool,
}

/// What is being downloaded, measured from its beginning although shown only when it takes long.
struct Download {
    began: Instant,
    bar: ProgressBar,
}

/// The resource in hand, and how many came before it.
struct Turn {
    resource: String,
    count: Count,
}

/// How far a run has come.
#[derive(Clone, Copy)]
pub(super) struct Count {
    pub(super) done: usize,
    pub(super) total: usize,
    /// Number of unchanged resources so far.
    pub(super) stable: usize,
}

impl Progress {
    pub(super) fn new() -> Self {
        let is_dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        let visibility = match (io::stderr().is_terminal() && !is_dumb, io::stdout().is_terminal()) {
            (false, _) => Visibility::Nothing,
            (true, false) => Visibility::Downloads,
            (true, true) => Visibility::Everything,
        };
        Self { visibility, line: Arc::default() }
    }

    /// The turn of a resource has come.
    pub(super) fn turn(&self, resource: &str, count: Count) {
        if self.visibility == Visibility::Nothing {
            return;
        }
        let mut line = self.line();
        let is_first = line.turn.is_none();
        line.turn = Some(Turn { resource: resource.to_owned(), count });
        if self.visibility == Visibility::Everything && count.total > 1 {
            line.show_turn();
            if is_first {
                let line = Arc::clone(&self.line);
                // The first resource may be the long one.
                let later = move || {
                    thread::sleep(LONG);
                    let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
                    line.is_long = true;
                    line.show_turn();
                };
                // Where there can be no more threads, there is no line either.
                let _ = thread::Builder::new().spawn(later);
            }
        }
    }

    /// Returns whether lines about a push are shown.
    pub(super) fn shows_lines(&self) -> bool {
        self.visibility == Visibility::Everything
    }

    /// Returns the number of columns and lines of the terminal.
    pub(super) fn size() -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Shows lines in place of those that are shown.
    pub(super) fn lines(&self, lines: &[String]) {
        let mut line = self.line();
        line.lines = Some(lines.join("\n"));
        line.show_turn();
    }

    /// Makes room for something else to be printed.
    pub(super) fn hide(&self) {
        if self.visibility != Visibility::Nothing {
            self.line().hide();
        }
    }

    /// Shows again what gave way.
    pub(super) fn resume(&self) {
        if self.visibility == Visibility::Everything {
            self.line().show_turn();
        }
    }

    /// Nothing is in hand any more.
    pub(super) fn end(&self) {
        let mut line = self.line();
        line.turn = None;
        line.lines = None;
        line.hide();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn show_turn(&mut self) {
        if let Some(lines) = &self.lines {
            let bar = bar("{msg}", None, lines);
            return self.show(bar);
        }
        if let Some(Turn { resource, count: Count { done, total, stable } }) = &self.turn
            && self.is_long
            && *total > 1
            && self.download.is_none()
        {
            let message = format!("{stable} unchanged, {resource}");
            let bar = bar(RUN, Some(*total as u64), &message).with_position(*done as u64);
            self.show(bar);
        }
    }

    fn show(&mut self, bar: ProgressBar) {
        self.hide();
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.force_draw();
        self.shown = Some(bar);
    }

    fn hide(&mut self) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

impl ProgressListener for Progress {
    fn received(&self, from: &Url, so_far: u64, total: Option<u64>) {
        if self.visibility == Visibility::Nothing {
            return;
        }
        let mut line = self.line();
        let Some(Download { began, bar }) = &line.download else {
            let template = if total.is_some() { DOWNLOAD } else { DOWNLOAD_OF_UNKNOWN_SIZE };
            let bar = bar(template, total, &visible_line(&from.file_name())).with_position(so_far);
            // What an earlier attempt left did not come now.
            bar.reset_eta();
            line.download = Some(Download { began: Instant::now(), bar });
            return;
        };
        bar.set_position(so_far);
        if bar.is_hidden() && began.elapsed() >= LONG {
            let bar = bar.clone();
            line.show(bar);
        }
    }

    fn ended(&self) {
        let mut line = self.line();
        if line.download.take().is_some_and(|download| !download.bar.is_hidden()) {
            line.hide();
            line.show_turn();
        }
    }
}

fn bar(template: &str, length: Option<u64>, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
        .with_style(style.progress_chars("=> "))
        .with_message(what.to_owned())
}
