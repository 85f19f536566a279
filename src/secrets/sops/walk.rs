//! Walks a document, decrypts its values and computes its MAC.

use ccm_expr::MASK;
use ring::digest::{Context, SHA512};

use super::{
    Cipher, Document, PREFIX, comments,
    metadata::invalid,
    plain,
    selection::Selection,
    value::{DataKey, Kind, Sealed},
};
use crate::{
    document::{Diagnostics, Entry, Node, Scalar, Source, Span, Style, Value},
    host::files::hex,
    secrets::Format,
};

/// SHA-256 of `sops`: a MAC of encrypted values only differs from a MAC of all values.
pub(super) const ONLY_ENCRYPTED: [u8; 32] = [
    0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b, 0x0b,
    0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
];

/// The tree of a document in plain text.
pub(crate) struct Opened {
    pub(crate) root: Node,
}

/// Decrypts all values of a document and checks its MAC.
pub(crate) fn open(document: Document, key: &DataKey, source: &Source) -> Result<Opened, Diagnostics> {
    let Document { mut root, metadata, format, .. } = document;
    let cipher = Cipher::new(key);
    let mut mac = Context::new(&SHA512);
    if metadata.is_mac_only_encrypted {
        mac.update(&ONLY_ENCRYPTED);
    }
    let selection = &metadata.selection;
    let is_only_encrypted = metadata.is_mac_only_encrypted;
    let mut problems = Vec::new();
    visit(&mut root, selection, source, format, &mut |leaf| {
        let Leaf { scalar, path, is_encrypted, span, .. } = leaf;
        let opened = if is_encrypted { Some(opened(scalar, &cipher, path)) } else { None };
        match opened {
            None if scalar.text.starts_with(PREFIX) => {
                problems.push(invalid("this value is encrypted, but its key selects plain text", span));
            }
            None if is_only_encrypted => {}
            None => plain::authenticated(scalar).iter().for_each(|text| mac.update(text.as_bytes())),
            Some(Ok(None)) => {}
            Some(Ok(Some(new))) => {
                mac.update(new.text.as_bytes());
                *scalar = new.into_scalar();
            }
            Some(Err(message)) => problems.push(invalid(message, span)),
        }
    });
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let computed = hex(mac.finish().as_ref()).to_uppercase();
    let expected = Sealed::parse(&metadata.mac)
        .and_then(|sealed| cipher.open(&sealed, &metadata.last_modified))
        .map_err(|error| invalid(format!("`sops.mac` {error}"), metadata.mac_span))?;
    if *expected != computed {
        let problem =
            invalid("the MAC does not match: the document was changed without its key", metadata.mac_span);
        return Err(problem.with_help("restore the document, or edit it with `ccm secret edit`").into());
    }
    Ok(Opened { root })
}

/// Takes the encrypted values out of the same document in plain text.
pub(crate) fn fill(document: Document, plain: &str, source: &Source) -> Result<Opened, Diagnostics> {
    let Document { mut root, metadata, metadata_span, format } = document;
    let plain = Source { name: source.name.clone(), text: plain.to_owned() };
    let differs = || Diagnostics::from(invalid("the program `sops` printed another document", metadata_span));
    let parsed = format.read(&plain).map_err(|_| differs())?;
    let mut values = Vec::new();
    scalars(&parsed.root, "", &mut values);
    let (mut values, mut is_same) = (values.into_iter(), !parsed.diagnostics.has_errors());
    visit(&mut root, &metadata.selection, source, format, &mut |leaf| {
        let Some((_, value)) = values.next().filter(|(path, _)| path == leaf.path) else {
            is_same = false;
            return;
        };
        if leaf.is_encrypted && !is_empty(leaf.scalar) {
            match Sealed::parse(&leaf.scalar.text) {
                Ok(sealed) => *leaf.scalar = Scalar::secret(value.text.clone(), style(sealed.kind)),
                Err(_) => is_same = false,
            }
        }
    });
    if is_same && values.next().is_none() { Ok(Opened { root }) } else { Err(differs()) }
}

/// Collects the values of a document with their paths.
fn scalars<'n>(node: &'n Node, path: &str, found: &mut Vec<(String, &'n Scalar)>) {
    match &node.value {
        Value::Scalar(scalar) => found.push((path.to_owned(), scalar)),
        Value::Seq(items) => items.iter().for_each(|item| scalars(item, path, found)),
        Value::Map(entries) => {
            for Entry { key, value, .. } in entries {
                scalars(value, &format!("{path}{key}:"), found);
            }
        }
    }
}

/// Replaces encrypted values by placeholders of their types.
pub(crate) fn placeholders(document: Document, source: &Source) -> Result<Opened, Diagnostics> {
    let Document { mut root, metadata, format, .. } = document;
    let mut problems = Vec::new();
    visit(&mut root, &metadata.selection, source, format, &mut |leaf| {
        let Leaf { scalar, is_encrypted, span, .. } = leaf;
        if is_encrypted && !is_empty(scalar) {
            match Sealed::parse(&scalar.text) {
                Ok(sealed) => *scalar = placeholder(&sealed),
                Err(error) => problems.push(invalid(format!("this value {error}"), span)),
            }
        }
    });
    if problems.is_empty() { Ok(Opened { root }) } else { Err(problems.into()) }
}

/// A decrypted value with its type.
struct Plain {
    text: zeroize::Zeroizing<String>,
    kind: Kind,
}

impl Plain {
    fn into_scalar(self) -> Scalar {
        let style = style(self.kind);
        let text = match (self.kind, self.text.as_str()) {
            (Kind::Bool, "True") => "true".to_owned(),
            (Kind::Bool, _) => "false".to_owned(),
            (Kind::Float, "NaN") => ".nan".to_owned(),
            (Kind::Float, "+Inf") => ".inf".to_owned(),
            (Kind::Float, "-Inf") => "-.inf".to_owned(),
            (_, text) => text.to_owned(),
        };
        Scalar::secret(text, style)
    }
}

fn style(kind: Kind) -> Style {
    match kind {
        Kind::Bool => Style::Plain,
        Kind::Int | Kind::Float => Style::Computed,
        Kind::Str | Kind::Bytes | Kind::Time | Kind::Comment => Style::Literal,
    }
}

/// Returns a value of the same type. Another ciphertext has another placeholder, so that a comparison finds the change.
fn placeholder(sealed: &Sealed) -> Scalar {
    let text = match sealed.kind {
        Kind::Int | Kind::Float => (u32::from(sealed.tag[0]) + 1).to_string(),
        Kind::Bool => "false".to_owned(),
        Kind::Time => "1970-01-01T00:00:00Z".to_owned(),
        Kind::Str | Kind::Bytes | Kind::Comment => format!("{MASK}{}", hex(&sealed.tag)),
    };
    Scalar::secret(text, style(sealed.kind))
}

/// An empty string and null are never encrypted.
fn is_empty(scalar: &Scalar) -> bool {
    scalar.is_null() || scalar.text.is_empty()
}

/// Decrypts a value; `None` for an empty one.
fn opened(scalar: &Scalar, cipher: &Cipher, path: &str) -> Result<Option<Plain>, String> {
    if is_empty(scalar) {
        return Ok(None);
    }
    if !scalar.text.starts_with(PREFIX) {
        return Err("this value is in plain text, but its key selects encryption".to_owned());
    }
    let sealed = Sealed::parse(&scalar.text).map_err(|error| format!("this value {error}"))?;
    if sealed.kind == Kind::Comment {
        return Err("this value is an encrypted comment".to_owned());
    }
    let text = cipher.open(&sealed, path).map_err(|error| format!("this value {error}"))?;
    Ok(Some(Plain { text, kind: sealed.kind }))
}

/// A value of a document.
pub(crate) struct Leaf<'l> {
    pub(crate) scalar: &'l mut Scalar,
    /// The keys that lead to it, each followed by `:`.
    pub(crate) path: &'l str,
    /// Whether the document encrypts it.
    pub(crate) is_encrypted: bool,
    pub(crate) span: Span,
    /// Whether it is in brackets, where some letters need quotes.
    pub(crate) is_flow: bool,
}

/// Calls a function for each value, in document order.
pub(crate) fn visit(
    root: &mut Node,
    selection: &Selection,
    source: &Source,
    format: Format,
    each: &mut dyn FnMut(Leaf),
) {
    let marks = format.comment_marks();
    let is_late = (format == Format::Ini).then_some(false);
    let mut walk = Walk { selection, marks, text: &source.text, path: String::new(), is_late, each };
    // A comment above the first key is before the position of the map.
    walk.node(root, false, 0, false);
}

struct Walk<'w> {
    selection: &'w Selection,
    /// Characters that begin a comment.
    marks: &'static [char],
    text: &'w str,
    path: String,
    /// SOPS reads a comment of an INI file after the key below it, so the comment is about the next key of the section: whether
    /// that key is selected. A comment above a section is about its first key. `None` in other formats.
    is_late: Option<bool>,
    each: &'w mut dyn FnMut(Leaf),
}

impl Walk<'_> {
    /// Returns whether a comment selects an entry.
    fn is_commented(&mut self, entry: &Entry, from: u32) -> bool {
        let is_commented = comments::of_entry(entry, from, self.text, self.marks)
            .iter()
            .any(|comment| self.selection.matches_comment(comment));
        match &mut self.is_late {
            None => is_commented,
            Some(next) => {
                let is_section = entry.value.as_map().is_some();
                let is_selected = std::mem::replace(next, is_commented);
                is_selected && !is_section
            }
        }
    }

    fn node(&mut self, node: &mut Node, is_matched: bool, mut from: u32, is_flow: bool) {
        let span = node.span;
        let is_flow =
            is_flow || self.text.get(span.start as usize..).is_some_and(|rest| rest.starts_with(['{', '[']));
        match &mut node.value {
            Value::Scalar(scalar) => {
                let is_encrypted = self.selection.encrypts(is_matched);
                (self.each)(Leaf { scalar, path: &self.path, is_encrypted, span, is_flow });
            }
            Value::Seq(items) => {
                for item in items {
                    self.node(item, is_matched, from, is_flow);
                    from = item.span.end;
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    let is_matched = is_matched
                        || self.selection.matches_key(&entry.key)
                        || self.selection.needs_comments() && self.is_commented(entry, from);
                    let length = self.path.len();
                    self.path.push_str(&entry.key);
                    self.path.push(':');
                    self.node(&mut entry.value, is_matched, entry.key_span.end, is_flow);
                    self.path.truncate(length);
                    from = entry.value.span.end;
                }
            }
        }
    }
}
