//! The line about one resource, shortened to the width of a terminal.

use std::{borrow::Cow, fmt::Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;

use super::{DIM, ERROR, WARN};
use crate::{engine::Report, resource::Difference, session::Event, state::Pending, visible::visible_line};

const REFRESHED: Style = AnsiColor::Cyan.on_default();
const UNMET: Style = AnsiColor::Magenta.on_default();

/// Minimum width of a shortened name.
const SHORTEST_NAME: usize = 24;

/// Result of a resource, shown as a letter and a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Created,
    Removed,
    Changed,
    Refreshed,
    Failed,
    Unmet,
    Stable,
    Excluded,
}

impl Mark {
    /// Returns the mark of an event. `before` is the state before the change, if it was observed.
    pub(super) fn of(event: &Event, before: Option<&str>) -> Self {
        match () {
            () if event.failed => Self::Failed,
            () if !event.unmet_requirements.is_empty() => Self::Unmet,
            () if event.skipped => Self::Excluded,
            () if !event.changed => Self::Stable,
            () if event.refreshed => Self::Refreshed,
            () if ["absent", "purged"].contains(&event.requested_ensure.as_str()) => Self::Removed,
            () if before == Some("absent") => Self::Created,
            () => Self::Changed,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Created => '+',
            Self::Removed => '-',
            Self::Changed => '~',
            Self::Refreshed => '*',
            Self::Failed => '!',
            Self::Unmet => '?',
            Self::Stable => '=',
            Self::Excluded => '.',
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Created | Self::Removed | Self::Changed => WARN,
            Self::Refreshed => REFRESHED,
            Self::Failed => ERROR,
            Self::Unmet => UNMET,
            Self::Stable | Self::Excluded => DIM,
        }
    }
}

/// A line about a resource.
pub(super) struct Line {
    mark: Mark,
    name: String,
    what: String,
    /// Position of the declaration or property that failed.
    position: String,
    /// The properties that differed: with their values, and alone.
    details: Vec<(String, &'static str)>,
    /// Details for `-v`.
    facts: String,
}

impl Line {
    pub(super) fn new(mark: Mark, name: &str, what: &str) -> Self {
        Self {
            mark,
            name: visible_line(name).into_owned(),
            what: visible_line(what).into_owned(),
            position: String::new(),
            details: Vec::new(),
            facts: String::new(),
        }
    }

    /// Returns the line of a finished resource.
    pub(super) fn of(report: &Report) -> Self {
        let event = &report.event;
        // A resource that can be refreshed is neither created nor removed.
        let before = report.before.as_deref().filter(|_| !report.resource.kind.behavior().refreshes);
        let line = Self::new(Mark::of(event, before), &report.resource.to_string(), &what_happened(report));
        if event.failed || !event.changed {
            return line;
        }
        let sensitive = report.resource.is_sensitive();
        let detail = |difference: &Difference| (shown(difference, sensitive), difference.property);
        Self { details: report.differences.iter().map(detail).collect(), ..line }
    }

    /// Returns what happened, with the differences.
    pub(super) fn message(&self) -> String {
        format!("{}{}", self.what, listed(self.details.iter().map(|(shown, _)| shown.as_str())))
    }

    /// Adds the position of the declaration or property that failed.
    pub(super) fn with_position(self, position: Option<String>) -> Self {
        Self { position: position.unwrap_or_default(), ..self }
    }

    /// Adds a detail to the end of the line, unless its value is empty.
    pub(super) fn with_fact(mut self, key: &str, value: &str) -> Self {
        if !value.is_empty() {
            let _ = write!(self.facts, " {key}={}", visible_line(value));
        }
        self
    }

    /// Returns the line with its colors. If it is too wide, ccm shortens first the values of properties, then the middle of
    /// the name, then the end.
    pub(super) fn laid_out(&self, width: Option<usize>) -> String {
        let Self { mark, facts, position, .. } = self;
        let (name, what, details) = self.fitted(width.unwrap_or(usize::MAX).saturating_sub(2));
        let (style, letter) = (mark.style(), mark.letter());
        let mut used = 3 + [name.as_ref(), &what, &details].map(length).iter().sum::<usize>();
        let position = match position.as_str() {
            "" => String::new(),
            position if width.is_none_or(|width| used + 2 + length(position) <= width) => {
                used += 2 + length(position);
                format!("  {DIM}{position}{DIM:#}")
            }
            position => format!("\n      {DIM}{position}{DIM:#}"),
        };
        let is_beside = width.is_none_or(|width| used + length(facts) <= width);
        let facts = match facts.as_str() {
            "" => String::new(),
            facts if is_beside => format!("{DIM}{facts}{DIM:#}"),
            facts => format!("\n     {DIM}{facts}{DIM:#}"),
        };
        format!("{style}{letter}{style:#} {name} {style}{what}{style:#}{details}{position}{facts}")
    }

    fn fitted(&self, room: usize) -> (Cow<'_, str>, Cow<'_, str>, String) {
        let whole = listed(self.details.iter().map(|(shown, _)| shown.as_str()));
        let properties = listed(self.details.iter().map(|(_, property)| *property));
        let (name, what) = (Cow::from(&self.name), Cow::from(&self.what));
        let taken = |name: &str, details: &str| length(name) + 1 + length(&self.what) + length(details);
        if taken(&name, &whole) <= room {
            return (name, what, whole);
        }
        if taken(&name, &properties) <= room {
            return (name, what, properties);
        }
        let name_room = (room + length(&name)).saturating_sub(taken(&name, &properties)).max(SHORTEST_NAME);
        let name = Cow::from(shortened_in_the_middle(&name, name_room));
        if taken(&name, &properties) <= room {
            return (name, what, properties);
        }
        let rest = room.saturating_sub(length(&name) + 1);
        let what = Cow::from(shortened(&format!("{what}{properties}"), rest));
        (name, what, String::new())
    }
}

/// Returns what happened, completing the name of the resource.
fn what_happened(report: &Report) -> String {
    let event = &report.event;
    if event.failed {
        return "failed".to_owned();
    }
    if let Some(reason) = report.excluded {
        return format!("skipped: {reason}");
    }
    if !report.unmet.is_empty() {
        return unmet(&report.unmet);
    }
    if event.health_check_only {
        let count = event.health_check.len();
        return format!("checked ({count} {})", if count == 1 { "check" } else { "checks" });
    }
    let Some(summary) = &report.summary else { return "unchanged".to_owned() };
    let action = event.noop_message.clone().unwrap_or_else(|| summary.replace(". ", ", "));
    match &report.pending {
        Some(refresh) => format!("{action} ({})", pending(refresh)),
        None => action,
    }
}

/// Returns why a resource was skipped.
pub(super) fn unmet(reasons: &[String]) -> String {
    format!("skipped: {}", reasons.join(", "))
}

/// Describes a pending refresh.
pub(in crate::cli) fn pending(Pending { because, origin, .. }: &Pending) -> String {
    let since = origin.at.and_then(|at| Timestamp::from_second(at).ok());
    let since = since.map(|at| format!(" since {}", at.strftime("%Y-%m-%d %H:%M"))).unwrap_or_default();
    format!("pending{since}: {} changed", visible_line(&because.join(", ")))
}

/// Returns a difference, with its values unless they are secret.
pub(super) fn shown(difference: &Difference, sensitive: bool) -> String {
    match &difference.values {
        Some(values) if !sensitive => {
            let (have, want) = (visible_line(&values.have), visible_line(&values.want));
            format!("{} {have} -> {want}", difference.property)
        }
        _ => difference.property.to_owned(),
    }
}

fn listed<'a>(details: impl Iterator<Item = &'a str>) -> String {
    let details: Vec<_> = details.collect();
    if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
}

/// Returns the width of a string in columns, if all characters have the same width.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns the string, cut at the end if it is too wide.
pub(super) fn shortened(text: &str, room: usize) -> String {
    if length(text) <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the string, cut in the middle if it is too wide: the ends of a name identify it.
pub(super) fn shortened_in_the_middle(text: &str, room: usize) -> String {
    let length = length(text);
    if length <= room || room == 0 {
        return text.to_owned();
    }
    let front = (room - 1) / 3;
    let back = room - 1 - front;
    text.chars().take(front).chain(['…']).chain(text.chars().skip(length - back)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &Line, width: usize) -> String {
        anstream::adapter::strip_str(&line.laid_out(Some(width))).to_string()
    }

    fn updated(name: &str) -> Line {
        let details =
            vec![("mode 0600 -> 0644".to_owned(), "mode"), ("owner app -> root".to_owned(), "owner")];
        Line { details, ..Line::new(Mark::Changed, name, "updated the file") }
    }

    #[test]
    fn a_line_is_shortened_only_as_far_as_it_must_be() {
        for (width, expected) in [
            (80, "~ file#/etc/app/app.conf updated the file (mode 0600 -> 0644, owner app -> root)"),
            (79, "~ file#/etc/app/app.conf updated the file (mode, owner)"),
            (55, "~ file#/etc/app/app.conf updated the file (mode, owner)"),
            (50, "~ file#/etc/app/app.conf updated the file (mode, …"),
        ] {
            assert_eq!(plain(&updated("file#/etc/app/app.conf"), width), expected);
        }
        let long = updated("file#/usr/local/share/applications/defaults/app.conf");
        assert_eq!(plain(&long, 60), "~ file#/us…/defaults/app.conf updated the file (mode, owner)");
    }

    #[test]
    fn facts_go_below_where_they_do_not_fit_beside() {
        let line = || Line::new(Mark::Stable, "file#/etc/motd", "unchanged").with_fact("provider", "posix");
        assert_eq!(plain(&line(), 45), "= file#/etc/motd unchanged provider=posix");
        assert_eq!(plain(&line(), 30), "= file#/etc/motd unchanged\n      provider=posix");
    }
}
