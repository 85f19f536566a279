//! A text as lines that can be changed one by one, with their endings kept.

/// The lines of a text without their endings.
pub(super) struct Lines<'a> {
    #[expect(clippy::struct_field_names, reason = "there is no better word for them")]
    pub(super) lines: Vec<&'a str>,
    /// What ends a line in this text.
    ending: &'static str,
    /// Whether the last line has an ending.
    ends: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let ending =
            if text.split('\n').next().is_some_and(|line| line.ends_with('\r')) && text.contains('\n') {
                "\r\n"
            } else {
                "\n"
            };
        let ends = text.ends_with('\n') || text.is_empty();
        let mut lines: Vec<&str> = text.split('\n').collect();
        if ends {
            lines.pop();
        }
        if ending == "\r\n" {
            for line in &mut lines {
                *line = line.strip_suffix('\r').unwrap_or(line);
            }
        }
        Self { lines, ending, ends }
    }

    /// Returns the position of the last line that fits.
    pub(super) fn last(&self, fits: impl Fn(&str) -> bool) -> Option<usize> {
        self.lines.iter().rposition(|line| fits(line))
    }

    /// Returns the position of the first line that fits.
    pub(super) fn first(&self, fits: impl Fn(&str) -> bool) -> Option<usize> {
        self.lines.iter().position(|line| fits(line))
    }

    /// Puts lines before the one at a position. Behind the last line they end the text, which then ends with a line.
    pub(super) fn insert(&mut self, at: usize, new: impl IntoIterator<Item = &'a str>) {
        self.ends |= at == self.lines.len();
        self.lines.splice(at..at, new);
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let mut text = self.lines.join(self.ending);
        if self.ends && !self.lines.is_empty() {
            text.push_str(self.ending);
        }
        text
    }
}
