//! The text of crontabs and of files in `/etc/cron.d`.

use std::collections::BTreeMap;

/// An entry that a resource wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) schedule: String,
    /// As written in a manifest.
    pub(super) command: String,
    pub(super) environment: BTreeMap<String, String>,
    /// User of the entry; `None` in a crontab, which has the user of its owner.
    pub(super) user: Option<String>,
}

/// An existing entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) schedule: String,
    /// Command as cron reads it, with `\%` for a percent sign.
    pub(super) command: String,
    pub(super) user: Option<String>,
    pub(super) environment: BTreeMap<String, String>,
}

/// Returns the line before an entry of a crontab.
fn marker(label: &str) -> String {
    format!("# ccm: {label}")
}

/// Returns a command in which cron finds no line breaks: a bare `%` is one.
pub(super) fn escaped(command: &str) -> String {
    let mut escaped = String::new();
    let mut previous = None;
    for c in command.chars() {
        if c == '%' && previous != Some('\\') {
            escaped.push('\\');
        }
        escaped.push(c);
        previous = Some(c);
    }
    escaped
}

impl Entry {
    /// Returns the command of a line. In a crontab, a variable would hold for all later entries.
    fn command_line(&self) -> String {
        if self.environment.is_empty() || self.user.is_some() {
            return escaped(&self.command);
        }
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let variables = variables.collect::<Vec<_>>().join(" ");
        let needs_shell = self.command.contains(|c: char| "|&;<>()$`\"'*?[]#~!{}\\".contains(c));
        escaped(&if needs_shell {
            format!("env {variables} /bin/sh -c {}", quoted(&self.command))
        } else {
            format!("env {variables} {}", self.command)
        })
    }

    fn line(&self) -> String {
        let Self { schedule, .. } = self;
        match &self.user {
            Some(user) => format!("{schedule} {user} {}\n", self.command_line()),
            None => format!("{schedule} {}\n", self.command_line()),
        }
    }

    fn is(&self, found: &Found) -> bool {
        (&found.schedule, &found.user, &found.command) == (&self.schedule, &self.user, &self.command_line())
    }

    /// Whether an existing entry is as wanted.
    pub(super) fn is_as(&self, found: &Found) -> bool {
        self.is(found) && (self.user.is_none() || found.environment == self.environment)
    }
}

/// Quotes a word for a shell, if that is necessary.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A line of a table.
enum Line<'a> {
    /// A comment, or nothing.
    Comment,
    Variable(&'a str, String),
    Entry {
        schedule: String,
        user: Option<&'a str>,
        command: &'a str,
    },
    Unknown,
}

/// Reads a line. Entries of files in `/etc/cron.d` name their user.
fn line(text: &str, has_user: bool) -> Line<'_> {
    let text = text.trim_start().trim_end_matches(['\n', '\r']);
    if text.is_empty() || text.starts_with('#') {
        return Line::Comment;
    }
    let fields = if text.starts_with('@') { 1 } else { 5 };
    let mut rest = text;
    let mut words = Vec::new();
    for _ in 0..fields + usize::from(has_user) {
        let Some((word, after)) = rest.split_once([' ', '\t']) else { break };
        words.push(word);
        rest = after.trim_start();
    }
    let first = text.as_bytes()[0];
    let is_entry = first.is_ascii_digit() || first == b'*' || first == b'@';
    if !is_entry && let Some((name, value)) = text.split_once('=') {
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        return Line::Variable(name.trim(), unquoted.unwrap_or(value).to_owned());
    }
    if !is_entry || words.len() < fields + usize::from(has_user) || rest.is_empty() {
        return Line::Unknown;
    }
    let user = has_user.then(|| words.pop()).flatten();
    Line::Entry { schedule: words.join(" "), user, command: rest.trim_end() }
}

/// Returns the only entry of a file in `/etc/cron.d`, with its variables; `None` if it has none or several.
pub(super) fn only_entry(text: &str) -> Option<Found> {
    let mut environment = BTreeMap::new();
    let mut found = None;
    for text in text.lines() {
        match line(text, true) {
            Line::Comment => {}
            // A variable after the entry belongs to no entry.
            Line::Variable(name, value) if found.is_none() => {
                environment.insert(name.to_owned(), value);
            }
            Line::Entry { schedule, user, command } if found.is_none() => {
                found = Some(Found {
                    schedule,
                    command: command.to_owned(),
                    user: user.map(str::to_owned),
                    environment: std::mem::take(&mut environment),
                });
            }
            Line::Variable(..) | Line::Entry { .. } | Line::Unknown => return None,
        }
    }
    // cron ignores a last line without a line break.
    found.filter(|_| text.ends_with('\n'))
}

/// Returns the text of a file in `/etc/cron.d`: the comments of the old text, the variables, and the entry.
pub(super) fn file_text(old: &str, entry: &Entry) -> String {
    let is_comment = |text: &&str| matches!(line(text, true), Line::Comment) && !text.trim().is_empty();
    let comments = old.lines().filter(is_comment).map(|comment| format!("{comment}\n"));
    let variables = entry.environment.iter().map(|(name, value)| format!("{name}={}\n", variable(value)));
    comments.chain(variables).chain([entry.line()]).collect()
}

/// Returns a value as cron reads it: quotes keep spaces at its ends.
fn variable(value: &str) -> String {
    let needs_quotes = value.is_empty() || value != value.trim() || value.starts_with(['"', '\'']);
    match (needs_quotes, value.contains('"')) {
        (true, false) => format!("\"{value}\""),
        (true, true) => format!("'{value}'"),
        (false, _) => value.to_owned(),
    }
}

/// Returns the entry of a label in a crontab.
pub(super) fn labelled(text: &str, label: &str) -> Option<Found> {
    let marker = marker(label);
    let mut lines = text.lines().skip_while(|line| line.trim_end() != marker).skip(1);
    match line(lines.next()?, false) {
        Line::Entry { schedule, command, .. } => {
            Some(Found { schedule, command: command.to_owned(), user: None, environment: BTreeMap::new() })
        }
        _ => None,
    }
}

/// Returns a crontab with an entry: in the place of the entry with its label, of one with the same schedule and command, or
/// at the end.
pub(super) fn with_entry(text: &str, entry: &Entry) -> String {
    let marker = marker(&entry.label);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push('\n');
    }
    let own = [format!("{marker}\n"), entry.line()];
    if let Some(at) = lines.iter().position(|line| line.trim_end() == marker) {
        let has_entry = lines.get(at + 1).is_some_and(|text| matches!(line(text, false), Line::Entry { .. }));
        lines.splice(at..=at + usize::from(has_entry), own);
        return lines.concat();
    }
    let is_it = |text: &String| match line(text, false) {
        Line::Entry { schedule, command, .. } => {
            schedule == entry.schedule && command == entry.command_line()
        }
        _ => false,
    };
    match lines.iter().position(is_it) {
        Some(at) => drop(lines.splice(at..=at, own)),
        None => lines.extend(own),
    }
    lines.concat()
}

/// Returns a crontab without the entry of a label.
pub(super) fn without_entry(text: &str, label: &str) -> String {
    let marker = marker(label);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if let Some(at) = lines.iter().position(|line| line.trim_end() == marker) {
        let has_entry = lines.get(at + 1).is_some_and(|text| matches!(line(text, false), Line::Entry { .. }));
        lines.drain(at..=at + usize::from(has_entry));
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: Option<&str>, environment: &[(&str, &str)]) -> Entry {
        Entry {
            label: "backup".to_owned(),
            schedule: "0 3 * * *".to_owned(),
            command: "date +%F".to_owned(),
            environment: environment
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            user: user.map(str::to_owned),
        }
    }

    #[test]
    fn percent_signs_are_escaped_once() {
        for (command, line) in
            [("date +%F", "date +\\%F"), ("date +\\%F", "date +\\%F"), ("a", "a"), ("%", "\\%")]
        {
            assert_eq!(escaped(command), line);
        }
    }

    #[test]
    fn file_keeps_its_comments_and_gets_one_entry() {
        let wanted = entry(Some("root"), &[("MAILTO", ""), ("PATH", "/bin")]);
        let text = "MAILTO=\"\"\nPATH=/bin\n0 3 * * * root date +\\%F\n";
        assert_eq!(file_text("", &wanted), text);
        assert_eq!(file_text("# a\nX=1\n1 * * * * root old\n", &wanted), format!("# a\n{text}"));
        let found = only_entry(text).unwrap();
        assert!(wanted.is_as(&found), "{found:?}");
        let found = only_entry(&format!("# a\n\n{text}")).unwrap();
        assert!(wanted.is_as(&found), "{found:?}");
        for other in [
            "",
            "0 3 * * * root date +\\%F",
            "0 3 * * * root a\n0 3 * * * root b\n",
            "0 3 * * *\n",
            "0 3 * * * root a\nX=1\n",
        ] {
            assert_eq!(only_entry(other), None, "{other}");
        }
    }

    #[test]
    fn entry_of_a_crontab_is_adopted_replaced_or_added() {
        let wanted = entry(None, &[]);
        let own = "# ccm: backup\n0 3 * * * date +\\%F\n";
        for (text, expected) in [
            ("", own.to_owned()),
            ("# x\nA=1\n1 2 3 4 5 other", format!("# x\nA=1\n1 2 3 4 5 other\n{own}")),
            ("0  3 * *\t* date +\\%F\n# end\n", format!("{own}# end\n")),
            ("a\n# ccm: backup\n9 9 * * * old\nb\n", format!("a\n{own}b\n")),
            ("# ccm: backup\n# no entry\n", format!("{own}# no entry\n")),
        ] {
            let new = with_entry(text, &wanted);
            assert_eq!(new, expected, "{text}");
            assert!(wanted.is_as(&labelled(&new, "backup").unwrap()));
            assert_eq!(with_entry(&new, &wanted), new);
        }
        assert_eq!(without_entry(&format!("a\n{own}b\n"), "backup"), "a\nb\n");
        assert_eq!(without_entry("a\n", "backup"), "a\n");
    }

    #[test]
    fn variables_of_a_crontab_hold_for_one_entry() {
        let wanted = entry(None, &[("LANG", "C"), ("X", "it's 5%")]);
        let text = with_entry("", &wanted);
        let line = "0 3 * * * env LANG=C X='it'\\''s 5\\%' date +\\%F\n";
        assert_eq!(text, format!("# ccm: backup\n{line}"));
        assert!(wanted.is_as(&labelled(&text, "backup").unwrap()));
    }
}
