//! Lines of `/etc/fstab`.

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) device: String,
    /// Mount point; `none` for a swap area.
    pub(super) point: String,
    pub(super) fstype: String,
    pub(super) options: Vec<String>,
    pub(super) dump: u32,
    pub(super) pass: u32,
}

/// An entry and the number of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) entry: Entry,
    pub(super) line: usize,
}

/// Whose entry is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    Point(&'a str),
    /// The device of a swap area.
    Swap(&'a str),
}

impl Place<'_> {
    fn is_of(self, entry: &Entry) -> bool {
        match self {
            Self::Point(point) => {
                entry.fstype != "swap" && entry.point.trim_end_matches('/') == point.trim_end_matches('/')
            }
            Self::Swap(device) => entry.fstype == "swap" && entry.device == device,
        }
    }
}

/// Replaces the escapes of white space and backslashes.
pub(super) fn decoded(field: &str) -> String {
    let mut decoded = Vec::new();
    let mut bytes = field.as_bytes();
    while let Some((first, rest)) = bytes.split_first() {
        let code = rest.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        match code {
            Some(code) => {
                decoded.push(code);
                bytes = &rest[3..];
            }
            None => {
                decoded.push(*first);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Escapes white space and backslashes.
fn encoded(field: &str) -> String {
    let escape = |c| match c {
        ' ' => "\\040".to_owned(),
        '\t' => "\\011".to_owned(),
        '\n' => "\\012".to_owned(),
        '\\' => "\\134".to_owned(),
        other => other.to_string(),
    };
    field.chars().map(escape).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let mut fields = line.split_ascii_whitespace().map(decoded);
    let (device, point, fstype) = (fields.next()?, fields.next()?, fields.next()?);
    let options = fields.next().unwrap_or_else(|| "defaults".to_owned());
    let mut number = || fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
    let (dump, pass) = (number(), number());
    Some(Entry {
        device,
        point,
        fstype,
        options: options.split(',').map(str::to_owned).collect(),
        dump,
        pass,
    })
}

/// Returns all entries of a place.
pub(super) fn entries(text: &str, place: Place) -> Vec<Found> {
    let found =
        text.lines().enumerate().filter_map(|(at, line)| Some(Found { entry: entry(line)?, line: at + 1 }));
    found.filter(|found| place.is_of(&found.entry)).collect()
}

impl Entry {
    fn line(&self) -> String {
        let Self { device, point, fstype, options, dump, pass } = self;
        let fields = [device, point, fstype, &options.join(",")].map(|field| encoded(field)).join(" ");
        format!("{fields} {dump} {pass}\n")
    }
}

/// Returns the text with an entry: in the place of that on a line, or at the end.
pub(super) fn with_entry(text: &str, entry: &Entry, line: Option<usize>) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    match line {
        Some(line) => lines[line - 1] = entry.line(),
        None => {
            if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
                last.push('\n');
            }
            lines.push(entry.line());
        }
    }
    lines.concat()
}

/// Returns the text without a line.
pub(super) fn without_line(text: &str, line: usize) -> String {
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter(|(at, _)| at + 1 != line).map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nUUID=1 / ext4 errors=remount-ro 0 1\n/dev/sdb1\t/with\\040space xfs defaults\n/swap none swap sw 0 0\n";

    #[test]
    fn entries_are_compared_by_their_decoded_mount_point() {
        let found = entries(TEXT, Place::Point("/with space"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].entry.fstype.as_str(), found[0].entry.pass), (3, "xfs", 0));
        assert_eq!(entries(TEXT, Place::Point("/")).len(), 1);
        assert_eq!(entries(TEXT, Place::Swap("/swap"))[0].line, 4);
        assert!(entries(TEXT, Place::Point("none")).is_empty());
        assert_eq!(entries(&TEXT.repeat(2), Place::Point("/"))[1].line, 6);
    }

    #[test]
    fn only_the_line_of_the_entry_changes() {
        let entry = Entry {
            device: "tmpfs".to_owned(),
            point: "/a b".to_owned(),
            fstype: "tmpfs".to_owned(),
            options: vec!["size=1M".to_owned(), "nofail".to_owned()],
            dump: 0,
            pass: 0,
        };
        let line = "tmpfs /a\\040b tmpfs size=1M,nofail 0 0\n";
        assert_eq!(with_entry("# x", &entry, None), format!("# x\n{line}"));
        assert_eq!(with_entry("a\nb\nc", &entry, Some(2)), format!("a\n{line}c"));
        assert_eq!(without_line("a\nb\nc", 2), "a\nc");
        assert_eq!(decoded("\\040\\011\\012\\134x\\9"), " \t\n\\x\\9");
    }
}
