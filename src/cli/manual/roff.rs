//! Manual pages in troff, without findings of `mandoc -T lint`.
//!
//! The `roff` crate, which `clap_mangen` uses, neither wraps lines nor escapes `^` and `~`, so its pages have such findings.

use std::fmt::Write;

/// Lines of text are broken before they are wider than this.
const WIDTH: usize = 78;

/// A manual page in the making.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a page.
    pub(super) fn titled(name: &str, section: u8, date: &str, source: &str) -> Self {
        Self(format!(".TH {} {section} {date} \"{source}\" ccm\n", name.to_uppercase()))
    }

    /// Returns what was written.
    pub(super) fn text(self) -> String {
        self.0
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: &str) {
        self.line(&format!(".SH {}", quoted(title)));
    }

    /// Begins a part of a section.
    pub(super) fn part(&mut self, title: &str) {
        self.line(&format!(".SS {}", quoted(title)));
    }

    /// Writes a paragraph. What stands between backticks is bold.
    pub(super) fn paragraph(&mut self, text: &str) {
        self.begin_paragraph();
        self.filled(text);
    }

    /// Writes a term and its description.
    pub(super) fn term(&mut self, word: &str, meaning: &str) {
        self.line(".TP");
        self.line(&format!("\\fB{}\\fR", escaped(word)));
        self.filled(meaning);
    }

    /// Writes a section of terms, unless there are none.
    pub(super) fn terms<'a>(&mut self, title: &str, terms: impl Iterator<Item = (&'a str, &'a str)>) {
        for (at, (word, meaning)) in terms.enumerate() {
            if at == 0 {
                self.section(title);
            }
            self.term(word, meaning);
        }
    }

    /// Writes lines verbatim.
    pub(super) fn example(&mut self, text: &str) {
        self.begin_paragraph();
        self.line(".nf");
        for line in text.trim_end().lines() {
            self.line(&if line.trim().is_empty() {
                "\\&".to_owned()
            } else {
                lead(&escaped(line.trim_end()))
            });
        }
        self.line(".fi");
    }

    /// Writes the end of a command's help: indented lines are examples.
    pub(super) fn help(&mut self, text: &str) {
        let mut lines = text.lines().filter(|line| !matches!(*line, "Examples:" | "Example:")).peekable();
        let mut has_begun = false;
        while let Some(line) = lines.next() {
            if line.trim().is_empty() {
                continue;
            }
            if !std::mem::replace(&mut has_begun, true) {
                self.section("EXAMPLES");
            }
            if line.starts_with("  ") {
                let mut example = line.to_owned();
                while let Some(line) = lines.next_if(|line| line.starts_with("  ") || line.trim().is_empty())
                {
                    let _ = write!(example, "\n{line}");
                }
                self.example(&example);
            } else {
                let mut text = line.to_owned();
                while let Some(line) =
                    lines.next_if(|line| !line.starts_with("  ") && !line.trim().is_empty())
                {
                    let _ = write!(text, " {line}");
                }
                self.paragraph(&text);
            }
        }
    }

    /// Names other pages.
    pub(super) fn see(&mut self, pages: &[&str]) {
        for (at, page) in pages.iter().enumerate() {
            let (name, section) = page.split_once('(').unwrap_or((page, ""));
            let comma = if at + 1 < pages.len() { "," } else { "" };
            self.line(&format!(".BR {} ({section}{comma}", escaped(name)));
        }
    }

    fn begin_paragraph(&mut self) {
        // The first paragraph of a section is one without being told.
        let is_first = self.0.lines().last().is_some_and(|line| line.starts_with(".S"));
        if !is_first {
            self.line(".PP");
        }
    }

    fn filled(&mut self, text: &str) {
        let mut is_bold = false;
        let mut marked = String::new();
        for (at, part) in text.split('`').enumerate() {
            if at > 0 {
                is_bold = !is_bold;
                marked.push_str(if is_bold { "\\fB" } else { "\\fR" });
            }
            marked.push_str(&escaped(part));
        }
        self.0.push_str(&wrapped(&marked));
    }

    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// Returns what clap wrote without what mandoc objects to: long lines, empty ones, spaces at their ends.
pub(super) fn tidy(text: &str) -> String {
    let mut tidied = String::new();
    let mut lines =
        text.lines().filter(|line| !line.starts_with(".ie") && !line.starts_with(".el")).peekable();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if line.starts_with('.') {
            let is_break_around_nothing =
                line == ".br" && lines.peek().is_some_and(|next| next.trim().is_empty());
            if is_break_around_nothing {
                lines.next();
                lines.next_if_eq(&".br");
                tidied.push_str(".sp\n");
            } else {
                let _ = writeln!(tidied, "{line}");
            }
        } else if line.is_empty() {
            tidied.push_str(".sp\n");
        } else {
            tidied.push_str(&wrapped(line));
        }
    }
    tidied.replace("\\*(Aq", "\\(aq")
}

/// Breaks a text into lines.
fn wrapped(text: &str) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{}", lead(&line));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{}", lead(&line));
    out
}

/// Escapes the beginning of a line that troff would treat as a request.
fn lead(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

fn quoted(title: &str) -> String {
    if title.contains(' ') { format!("\"{title}\"") } else { title.to_owned() }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti")
}
