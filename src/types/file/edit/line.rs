//! `line` and `keyvalue`: one line of a file.

use regex::Regex;

use super::lines::Lines;

/// Where a line goes that is not there yet.
#[derive(Clone, Copy, Default)]
pub(super) struct Position<'a> {
    /// Behind the last line that matches.
    pub(super) after: Option<&'a Regex>,
    /// Before the first line that matches.
    pub(super) before: Option<&'a Regex>,
}

impl Position<'_> {
    /// Returns where the new line goes: at the end, unless a line of the text says otherwise.
    pub(super) fn in_text(self, lines: &Lines) -> usize {
        let after = self.after.and_then(|after| lines.last(|line| after.is_match(line))).map(|at| at + 1);
        let before = || self.before.and_then(|before| lines.first(|line| before.is_match(line)));
        after.or_else(before).unwrap_or(lines.lines.len())
    }
}

/// Sees to it that a line is there: in place of the last one that matches, or as a new one.
pub(super) fn present(text: &str, wanted: &str, matching: Option<&Regex>, position: Position) -> String {
    let mut lines = Lines::of(text);
    let is_there = lines.first(|line| line == wanted).is_some();
    // A pattern that does not match the wanted line would find another line to replace in every run.
    let matching = matching.filter(|matching| !is_there || matching.is_match(wanted));
    match matching.and_then(|matching| lines.last(|line| matching.is_match(line))) {
        Some(at) => lines.lines[at] = wanted,
        None if is_there => {}
        None => lines.insert(position.in_text(&lines), [wanted]),
    }
    lines.text()
}

/// Removes every line that is equal, or that matches where there is a pattern.
pub(super) fn absent(text: &str, unwanted: &str, matching: Option<&Regex>) -> String {
    let mut lines = Lines::of(text);
    lines.lines.retain(|line| matching.map_or(*line != unwanted, |matching| !matching.is_match(line)));
    lines.text()
}

/// Returns doubts about a pattern that chooses the line to replace, or with `removes` all lines to remove.
pub(super) fn doubts(text: &str, matching: &Regex, removes: bool) -> Vec<String> {
    let lines = Lines::of(text);
    let matched: Vec<(usize, &str)> = lines
        .lines
        .iter()
        .enumerate()
        .filter(|(_, line)| matching.is_match(line))
        .map(|(at, line)| (at + 1, *line))
        .collect();
    let affected = if removes { matched.as_slice() } else { &matched[matched.len().saturating_sub(1)..] };
    let mut doubts = Vec::new();
    let partial = affected.iter().find(|(_, line)| is_part_of_word(line, matching));
    if let Some((number, line)) = partial {
        let verb = if removes { "removes" } else { "replaces" };
        doubts.push(format!(
            "`match` \"{matching}\" is part of a word in line {number} (`{}`), which ccm {verb}; anchor it, as in \"^{matching}\\\\b\"",
            line.trim()
        ));
    }
    if let ([first @ .., (last, _)], false) = (matched.as_slice(), removes)
        && !first.is_empty()
    {
        let first: Vec<String> = first.iter().map(|(number, _)| number.to_string()).collect();
        doubts.push(format!(
            "`match` \"{matching}\" matches lines {} and {last}; ccm replaces only the last of them",
            first.join(", ")
        ));
    }
    doubts
}

/// Returns whether the first match begins or ends inside a word.
fn is_part_of_word(line: &str, matching: &Regex) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let Some(found) = matching.find(line).filter(|found| !found.is_empty()) else { return false };
    let edge =
        |outer: Option<char>, inner: Option<char>| outer.is_some_and(is_word) && inner.is_some_and(is_word);
    edge(line[..found.start()].chars().next_back(), found.as_str().chars().next())
        || edge(line[found.end()..].chars().next(), found.as_str().chars().next_back())
}

/// A setting written as a key, a separator and a value.
pub(super) struct Setting<'a> {
    pub(super) key: &'a str,
    pub(super) separator: &'a str,
}

impl Setting<'_> {
    /// Returns the value that a line gives to the key.
    fn value<'l>(&self, line: &'l str) -> Option<&'l str> {
        let rest = line.trim_start().strip_prefix(self.key)?;
        let separator = self.separator.trim();
        if separator.is_empty() {
            return rest.starts_with([' ', '\t']).then(|| rest.trim());
        }
        Some(rest.trim_start().strip_prefix(separator)?.trim())
    }

    /// Gives the key its value, in the last line that sets it or in a new one.
    pub(super) fn set(&self, text: &str, value: &str, position: Position) -> String {
        let mut lines = Lines::of(text);
        let line = format!("{}{}{value}", self.key, self.separator);
        match lines.last(|line| self.value(line).is_some()) {
            Some(at) if self.value(lines.lines[at]) == Some(value.trim()) => {}
            Some(at) => lines.lines[at] = &line,
            None => lines.insert(position.in_text(&lines), [line.as_str()]),
        }
        lines.text()
    }

    /// Removes every line that sets the key.
    pub(super) fn unset(&self, text: &str) -> String {
        let mut lines = Lines::of(text);
        lines.lines.retain(|line| self.value(line).is_none());
        lines.text()
    }
}
