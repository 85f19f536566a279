//! What has no place among JSON on standard output.

use std::io::Write as _;

use super::{
    super::{failure::warn, progress::Progress},
    BELOW, indented,
};
use crate::{engine::Report, resource::Resource, visible::visible_line};

/// Says on standard error what has no place among JSON on standard output.
pub(in crate::cli) struct Aside<'a>(pub(in crate::cli) &'a Progress);

impl Aside<'_> {
    /// A line that a resource shows while it is being worked on.
    pub(in crate::cli) fn output(&self, resource: &Resource, line: &str) {
        self.0.hide();
        let name = resource.to_string();
        let _ = writeln!(anstream::stderr().lock(), "{}: {}", visible_line(&name), visible_line(line));
    }

    /// What a person should know although the resource did not fail.
    pub(in crate::cli) fn warnings(&self, report: &Report) {
        for warning in &report.warnings {
            self.0.hide();
            warn(&format!("{}: {}", visible_line(&report.resource.to_string()), indented(warning, BELOW)));
        }
    }
}
