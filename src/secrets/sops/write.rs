//! Documents in plain text for an editor, and back. Only values change: comments, order and layout stay.

use std::collections::HashMap;

use ring::digest::{Context, SHA512};
use zeroize::Zeroizing;

use super::{
    Cipher, Metadata, PREFIX, document,
    edits::{Comment, Edits, comments, encrypted_comments, map_paths},
    metadata::{SECTION, invalid},
    plain,
    section::{self, Section},
    spelling,
    value::{DataKey, Kind, RandomError, Sealed},
    walk::{Leaf, ONLY_ENCRYPTED, open, visit},
};
use crate::{
    document::{Diagnostic, Diagnostics, Source, Span, Style, first_anchor},
    host::files::hex,
    secrets::Format,
};

/// A document in plain text.
pub(crate) struct Revealed {
    pub(crate) text: Zeroizing<String>,
    /// Its section, for the case that its recipients stay.
    pub(crate) section: Section,
    pub(crate) reuse: Reuse,
}

/// Encrypted values by path, type and text: one that did not change stays as it is.
#[derive(Default)]
pub(crate) struct Reuse(HashMap<(String, &'static str, String), Vec<String>>);

impl Reuse {
    fn keep(&mut self, path: &str, kind: Kind, text: &str, sealed: &str) {
        let key = (path.to_owned(), kind.name(), text.to_owned());
        self.0.entry(key).or_default().push(sealed.to_owned());
    }

    fn take(&mut self, path: &str, kind: Kind, text: &str) -> Option<String> {
        // A time and bytes are strings in plain text.
        let kinds = if kind == Kind::Str { vec![kind, Kind::Time, Kind::Bytes] } else { vec![kind] };
        kinds.into_iter().find_map(|kind| {
            let kept = self.0.get_mut(&(path.to_owned(), kind.name(), text.to_owned()))?;
            (!kept.is_empty()).then(|| kept.remove(0))
        })
    }
}

/// Returns a document in plain text.
pub(crate) fn reveal(source: &Source, format: Format, key: &DataKey) -> Result<Revealed, Diagnostics> {
    let parsed = format.read(source)?;
    if parsed.diagnostics.has_errors() {
        return Err(parsed.diagnostics);
    }
    let read = || -> Result<_, Diagnostics> {
        let place = Span::empty(0);
        document(&parsed.root, format, source)?
            .ok_or_else(|| invalid("the document is not encrypted", place).into())
    };
    let document = read()?;
    let metadata = document.metadata.clone();
    open(read()?, key, source)?;
    let cipher = Cipher::new(key);
    let (mut edits, mut reuse, mut problems) = (Edits::default(), Reuse::default(), Vec::new());
    let mut root = document.root;
    let paths = map_paths(&root);
    visit(&mut root, &metadata.selection, source, format, &mut |leaf| {
        let Leaf { scalar, path, span, is_flow, .. } = leaf;
        let Ok(sealed) = Sealed::parse(&scalar.text) else { return };
        let Ok(text) = cipher.open(&sealed, path) else { return };
        let indentation = spelling::indentation(&source.text, span);
        match spelling::of_plain(sealed.kind, &text, format, is_flow, indentation) {
            Some(written) => edits.replace(span, written),
            None => {
                problems.push(invalid("a value with several lines cannot be edited in this format", span));
            }
        }
        reuse.keep(path, sealed.kind, &text, &scalar.text);
    });
    for span in encrypted_comments(&source.text) {
        let written = &source.text[span.start as usize..span.end as usize];
        let Ok(sealed) = Sealed::parse(written) else { continue };
        if let Some(text) = paths.iter().find_map(|path| cipher.open(&sealed, path).ok()) {
            reuse.keep("", Kind::Comment, &text, written);
            edits.replace(span, text.to_string());
        }
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let Some((section, ranges)) = section::take(&parsed.root, &metadata, source, format) else {
        return Err(invalid("the document is not a map", parsed.root.span).into());
    };
    for range in ranges {
        edits.remove(range);
    }
    Ok(Revealed { text: Zeroizing::new(edits.apply(&source.text)), section, reuse })
}

/// Encrypts a document in plain text with a data key.
pub(crate) fn seal(
    plain: &Source,
    format: Format,
    metadata: &Metadata,
    key: &DataKey,
    section: Option<&Section>,
    reuse: &mut Reuse,
) -> Result<String, Diagnostics> {
    let mut root = checked(plain, format)?;
    let is_json = format == Format::Yaml && plain.text[root.span.start as usize..].starts_with('{');
    let cipher = Cipher::new(key);
    let mut mac = Context::new(&SHA512);
    if metadata.is_mac_only_encrypted {
        mac.update(&ONLY_ENCRYPTED);
    }
    let (mut edits, mut failed) = (Edits::default(), None);
    let before = root.clone();
    visit(&mut root, &metadata.selection, plain, format, &mut |leaf| {
        let Leaf { scalar, path, is_encrypted, span, is_flow } = leaf;
        if !is_encrypted {
            if !metadata.is_mac_only_encrypted
                && let Some(text) = plain::authenticated(scalar)
            {
                mac.update(text.as_bytes());
            }
            return;
        }
        let Some((kind, text)) = spelling::sealable(scalar, format) else { return };
        mac.update(text.as_bytes());
        let sealed = match reuse.take(path, kind, &text) {
            Some(sealed) => Ok(sealed),
            None => cipher.seal(&text, kind, path).map(|sealed| sealed.to_string()),
        };
        match sealed {
            Ok(sealed) => edits.replace(span, spelling::of_sealed(&sealed, format, is_flow)),
            Err(error) => failed = Some(error),
        }
    });
    let begins = if is_json { &[] } else { format.comment_marks() };
    for Comment { span, path } in comments(&before, plain, begins) {
        let text = &plain.text[span.start as usize..span.end as usize];
        // SOPS keeps the space after the `;` of a comment to itself.
        let space = if format == Format::Ini { text.len() - text.trim_start().len() } else { 0 };
        let (text, span) = (&text[space..], Span::new(span.start as usize + space, span.end as usize));
        if metadata.selection.needs_comments() || text.trim().is_empty() || !is_selected(&path, metadata) {
            continue;
        }
        let sealed = match reuse.take("", Kind::Comment, text) {
            Some(sealed) => Ok(sealed),
            None => cipher.seal(text, Kind::Comment, &path).map(|sealed| sealed.to_string()),
        };
        match sealed {
            Ok(sealed) => edits.replace(span, sealed),
            Err(error) => failed = Some(error),
        }
    }
    let last_modified = section::now();
    let digest = hex(mac.finish().as_ref()).to_uppercase();
    let mac = cipher.seal(&digest, Kind::Str, &last_modified);
    let no_random = |error: RandomError| Diagnostics::from(invalid(error.to_string(), Span::empty(0)));
    if let Some(error) = failed {
        return Err(no_random(error));
    }
    let mac = mac.map_err(no_random)?.to_string();
    let new;
    let section = match section {
        Some(section) => section,
        None => {
            new = Section::render(metadata, format, is_json);
            &new
        }
    };
    let section = section.with(format, &mac, &last_modified);
    Ok(section::add(&edits.apply(&plain.text), &before, &section, format))
}

/// Returns whether values below a path are encrypted.
fn is_selected(path: &str, metadata: &Metadata) -> bool {
    let is_matched = path.split(':').any(|key| !key.is_empty() && metadata.selection.matches_key(key));
    metadata.selection.encrypts(is_matched)
}

/// Reads a document in plain text that can be encrypted.
fn checked(plain: &Source, format: Format) -> Result<crate::document::Node, Diagnostics> {
    let parsed = format.read(plain)?;
    if parsed.diagnostics.has_errors() {
        return Err(parsed.diagnostics);
    }
    let root = parsed.root;
    if root.is_null() {
        return Ok(crate::document::Node { value: crate::document::Value::Map(Vec::new()), span: root.span });
    }
    let Some(entries) = root.as_map() else {
        return Err(not_writable(format!("a document is a map, not {}", root.kind()), root.span).into());
    };
    let is_section =
        |key: &str| if format == Format::Dotenv { key.starts_with("sops_") } else { key == SECTION };
    if let Some(entry) = entries.iter().find(|entry| is_section(&entry.key)) {
        return Err(not_writable(
            format!("the key `{}` is for encrypted documents", entry.key),
            entry.key_span,
        )
        .into());
    }
    if format == Format::Yaml
        && let Some(span) = first_anchor(&plain.text)
    {
        return Err(not_writable("an encrypted document has no anchors and aliases".to_owned(), span).into());
    }
    if let Some(span) = ciphertext(&root) {
        return Err(not_writable("this value is encrypted already".to_owned(), span).into());
    }
    Ok(root)
}

fn ciphertext(node: &crate::document::Node) -> Option<Span> {
    use crate::document::Value;
    match &node.value {
        Value::Scalar(scalar) => {
            (scalar.style != Style::Literal && scalar.text.starts_with(PREFIX)).then_some(node.span)
        }
        Value::Seq(items) => items.iter().find_map(ciphertext),
        Value::Map(entries) => entries.iter().find_map(|entry| ciphertext(&entry.value)),
    }
}

fn not_writable(message: String, span: Span) -> Diagnostic {
    invalid(message, span)
}
