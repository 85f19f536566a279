//! `block`: several lines between two markers.

use std::path::Path;

use super::{Reason, line::Position, lines::Lines};

/// The lines that stand before and behind a block.
pub(super) struct Markers {
    begin: String,
    end: String,
}

/// How comments begin and end in files with these endings; everywhere else they begin with `#`.
const COMMENTS: &[(&[&str], &str)] = &[
    (
        &[
            "c", "cc", "cpp", "go", "h", "hpp", "java", "js", "jsonc", "kt", "php", "rs", "scala", "swift",
            "ts",
        ],
        "//",
    ),
    (&["ada", "elm", "hs", "lua", "sql", "vhd", "vhdl"], "--"),
    (&["asm", "clj", "el", "lisp", "scm", "zone"], ";"),
    (&["erl", "tex"], "%"),
    (&["vim"], "\""),
    (&["css"], "/* */"),
    (&["htm", "html", "md", "svg", "xhtml", "xml"], "<!-- -->"),
];

/// Returns how comments are written in a file.
fn comment_style(path: &Path) -> &'static str {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    COMMENTS.iter().find(|(endings, _)| endings.contains(&ending)).map_or("#", |(_, style)| style)
}

impl Markers {
    /// Makes the markers of a block. A comment that has to be closed is written with a blank, as in `<!-- -->`.
    pub(super) fn new(name: Option<&str>, comment: Option<&str>, path: &Path) -> Self {
        let style = comment.unwrap_or_else(|| comment_style(path));
        let (open, close) = style.split_once(' ').unwrap_or((style, ""));
        let marker = |word: &str| [open, word, "ccm", name.unwrap_or_default(), close].join(" ");
        let tidy = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { begin: tidy(marker("BEGIN")), end: tidy(marker("END")) }
    }

    /// Whether a text holds a line that would be taken for a marker.
    pub(super) fn are_in(&self, text: &str) -> bool {
        text.lines().any(|line| line.trim() == self.begin || line.trim() == self.end)
    }

    /// Returns the positions of the two markers.
    fn find(&self, lines: &Lines) -> Result<Option<(usize, usize)>, Reason> {
        let mut open = None;
        let mut found = None;
        for (at, line) in lines.lines.iter().enumerate() {
            if line.trim() == self.begin {
                if found.is_some() {
                    return Err(Reason::BlockTwice { line: at + 1 });
                }
                if let Some(begin) = open {
                    return Err(Reason::BlockNotClosed { line: begin + 1, end: self.end.clone() });
                }
                open = Some(at);
            } else if line.trim() == self.end {
                let begin = open
                    .take()
                    .ok_or_else(|| Reason::BlockNotOpened { line: at + 1, begin: self.begin.clone() })?;
                found = Some((begin, at));
            }
        }
        match open {
            Some(begin) => Err(Reason::BlockNotClosed { line: begin + 1, end: self.end.clone() }),
            None => Ok(found),
        }
    }

    /// Sees to it that the block is there with these lines.
    pub(super) fn present(&self, text: &str, block: &str, position: Position) -> Result<String, Reason> {
        let mut lines = Lines::of(text);
        let inside = Lines::of(block).lines;
        match self.find(&lines)? {
            Some((begin, end)) => {
                lines.lines.splice(begin + 1..end, inside);
            }
            None => {
                let at = position.in_text(&lines);
                let whole = [vec![self.begin.as_str()], inside, vec![self.end.as_str()]].concat();
                lines.insert(at, whole);
            }
        }
        Ok(lines.text())
    }

    /// Removes the block and its markers.
    pub(super) fn absent(&self, text: &str) -> Result<String, Reason> {
        let mut lines = Lines::of(text);
        if let Some((begin, end)) = self.find(&lines)? {
            lines.lines.drain(begin..=end);
        }
        Ok(lines.text())
    }
}
