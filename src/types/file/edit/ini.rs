//! `ini`: a key in a section; comments, order and blank lines stay.

use std::ops::Range;

use super::lines::Lines;

/// A key and the section that it stands in; keys before the first section are in none.
pub(super) struct Key<'a> {
    pub(super) section: Option<&'a str>,
    pub(super) key: &'a str,
}

/// Between key and value where no line of the file shows how.
const SEPARATOR: &str = " = ";

impl Key<'_> {
    /// Gives the key a value, in the last line of its section that sets it or in a new one.
    pub(super) fn set(&self, text: &str, value: &str) -> String {
        let mut lines = Lines::of(text);
        let Some(body) = self.body(&lines) else {
            let title = format!("[{}]", self.section.unwrap_or_default());
            let line = format!("{}{}{value}", self.key, separator(&lines));
            let at = lines.lines.len();
            let gap = lines.lines.last().is_some_and(|line| !line.trim().is_empty()).then_some("");
            lines.insert(at, gap.into_iter().chain([title.as_str(), line.as_str()]));
            return lines.text();
        };
        let found = body.clone().rev().find(|at| self.setting(lines.lines[*at]).is_some());
        let line = match found.and_then(|at| self.setting(lines.lines[at])) {
            Some((_, old)) if old == value.trim() || split(old).0 == value.trim() => return text.to_owned(),
            Some((head, old)) => {
                let kept = format!("{head}{value}{}", split(old).1);
                // Behind a value such as `a ; b` nobody could tell where the comment begins.
                let is_told = self.setting(&kept).is_some_and(|(_, new)| split(new).0 == value.trim());
                if is_told { kept } else { format!("{head}{value}") }
            }
            None => format!("{}{}{value}", self.key, separator(&lines)),
        };
        match found {
            Some(at) => lines.lines[at] = &line,
            None => {
                let filled = body.clone().rev().find(|at| !lines.lines[*at].trim().is_empty());
                lines.insert(filled.map_or(body.start, |at| at + 1), [line.as_str()]);
            }
        }
        lines.text()
    }

    /// Removes every line of the section that sets the key.
    pub(super) fn unset(&self, text: &str) -> String {
        let mut lines = Lines::of(text);
        let Some(body) = self.body(&lines) else { return text.to_owned() };
        let mut at = 0;
        lines.lines.retain(|line| {
            at += 1;
            !body.contains(&(at - 1)) || self.setting(line).is_none()
        });
        lines.text()
    }

    /// Returns the lines of the section, without its title. Where a section stands twice, the last one counts.
    fn body(&self, lines: &Lines) -> Option<Range<usize>> {
        let start = match self.section {
            None => 0,
            Some(section) => lines.last(|line| title(line) == Some(section))? + 1,
        };
        let length = lines.lines[start..].iter().position(|line| title(line).is_some());
        Some(start..length.map_or(lines.lines.len(), |length| start + length))
    }

    /// Returns what stands before the value in a line that sets the key, and the value.
    fn setting<'l>(&self, line: &'l str) -> Option<(&'l str, &'l str)> {
        let (key, rest) = line.split_once(['=', ':'])?;
        if key.trim() != self.key {
            return None;
        }
        let value = rest.trim_start();
        Some((&line[..line.len() - value.len()], value.trim_end()))
    }
}

/// Returns a value and the comment behind it, with the blanks between them. A comment begins with `;` or `#` between two
/// blanks, and not within quotes: `a #b` is a value, as a password may be.
fn split(value: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, character) in value.char_indices() {
        match character {
            '"' | '\'' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            ';' | '#'
                if quote.is_none()
                    && value[..at].ends_with([' ', '\t'])
                    && value[at + 1..].starts_with([' ', '\t']) =>
            {
                return value.split_at(value[..at].trim_end().len());
            }
            _ => {}
        }
    }
    (value, "")
}

/// Returns the name of the section that a line begins.
fn title(line: &str) -> Option<&str> {
    let line = line.trim();
    Some(line.strip_prefix('[')?.split_once(']')?.0.trim())
}

/// Returns how the file separates keys from values.
fn separator(lines: &Lines) -> &'static str {
    let is_setting = |line: &&&str| !line.trim_start().starts_with(['#', ';', '[']) && line.contains('=');
    match lines.lines.iter().find(is_setting) {
        Some(line) if !line.contains(SEPARATOR) => "=",
        _ => SEPARATOR,
    }
}
