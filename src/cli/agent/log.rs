//! The agent's log: lines on standard error, as the journal keeps them.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write},
    sync::atomic::{AtomicU8, Ordering},
};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    agent::{Log, LogLevel},
    visible::visible_line,
};

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogFormat {
    Logfmt,
    Json,
}

impl LogFormat {
    pub(super) const WORDS: [&str; 2] = ["logfmt", "json"];

    pub(super) fn of(word: &str) -> Self {
        if word == "json" { Self::Json } else { Self::Logfmt }
    }
}

/// Writes log lines to standard error.
pub(super) struct StderrLog {
    format: LogFormat,
    level: AtomicU8,
    /// Whether lines begin with `<N>`, which the journal takes for their priority.
    has_priorities: bool,
}

impl StderrLog {
    pub(super) fn new(format: LogFormat) -> Self {
        let has_priorities = std::env::var_os("JOURNAL_STREAM").is_some() && !std::io::stderr().is_terminal();
        Self { format, level: AtomicU8::new(LogLevel::Info as u8), has_priorities }
    }
}

impl Log for StderrLog {
    fn write(&self, level: LogLevel, message: &str, fields: &[(&str, String)]) {
        if (level as u8) < self.level.load(Ordering::Relaxed) {
            return;
        }
        let line = match self.format {
            LogFormat::Logfmt => logfmt(level, message, fields),
            LogFormat::Json => json(level, message, fields),
        };
        let priority = if self.has_priorities { format!("<{}>", priority(level)) } else { String::new() };
        // A log that nobody keeps is no reason to stop.
        let _ = writeln!(std::io::stderr().lock(), "{priority}{line}");
    }

    fn set_level(&self, level: LogLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
    }
}

fn word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

/// Returns the number that syslog(3) has for a level.
fn priority(level: LogLevel) -> u8 {
    match level {
        LogLevel::Debug => 7,
        LogLevel::Info => 6,
        LogLevel::Warn => 4,
        LogLevel::Error => 3,
    }
}

fn logfmt(level: LogLevel, message: &str, fields: &[(&str, String)]) -> String {
    let mut line = format!("time={} level={} msg={}", Timestamp::now(), word(level), quoted(message));
    for (name, value) in fields {
        let _ = write!(line, " {name}={}", quoted(value));
    }
    line
}

/// Returns a value as logfmt has it: in quotes where it is not one plain word.
fn quoted(value: &str) -> String {
    let value = visible_line(value);
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.into_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn json(level: LogLevel, message: &str, fields: &[(&str, String)]) -> String {
    let mut line = Map::new();
    line.insert("time".to_owned(), Timestamp::now().to_string().into());
    line.insert("level".to_owned(), word(level).into());
    line.insert("msg".to_owned(), message.into());
    for (name, value) in fields {
        line.insert((*name).to_owned(), value.as_str().into());
    }
    Value::Object(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_they_need_it() {
        for (value, written) in [
            ("plain", "plain"),
            ("/a/b.yaml", "/a/b.yaml"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a=b", "\"a=b\""),
            ("say \"x\" \\", "\"say \\\"x\\\" \\\\\""),
        ] {
            assert_eq!(quoted(value), written);
        }
        assert!(!quoted("two\nlines").contains('\n'));
    }
}
