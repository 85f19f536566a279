//! What the agent tells whoever keeps its log.

use std::fmt::Display;

pub(crate) use super::config::LogLevel;

/// Keeps the log. The agent itself prints nothing.
pub(crate) trait Log: Send + Sync {
    /// Writes one line. Fields come in this order behind the message.
    fn write(&self, level: LogLevel, message: &str, fields: &[(&str, String)]);
    /// Leaves out what is less important from now on.
    fn set_level(&self, level: LogLevel);
}

impl dyn Log + '_ {
    pub(crate) fn debug(&self, message: &str, fields: &[(&str, &dyn Display)]) {
        self.tell(LogLevel::Debug, message, fields);
    }

    pub(crate) fn info(&self, message: &str, fields: &[(&str, &dyn Display)]) {
        self.tell(LogLevel::Info, message, fields);
    }

    pub(crate) fn warn(&self, message: &str, fields: &[(&str, &dyn Display)]) {
        self.tell(LogLevel::Warn, message, fields);
    }

    pub(crate) fn error(&self, message: &str, fields: &[(&str, &dyn Display)]) {
        self.tell(LogLevel::Error, message, fields);
    }

    pub(crate) fn tell(&self, level: LogLevel, message: &str, fields: &[(&str, &dyn Display)]) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.to_string())).collect();
        self.write(level, message, &fields);
    }
}
