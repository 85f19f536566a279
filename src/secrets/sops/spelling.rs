//! How values are written in the text of a document.

use super::{plain, value::Kind};
use crate::{
    document::{Scalar, Span, Typed},
    secrets::Format,
};

/// Returns the type and text of a value that is to be encrypted; `None` for null and the empty string.
pub(super) fn sealable(scalar: &Scalar, format: Format) -> Option<(Kind, String)> {
    if scalar.is_null() || scalar.text.is_empty() {
        return None;
    }
    let text = || scalar.text.clone();
    if format != Format::Yaml {
        return Some((Kind::Str, text()));
    }
    let has_leading_zero = {
        let digits = scalar.text.trim_start_matches(['-', '+']).as_bytes();
        matches!(digits, [b'0', b'0'..=b'9', ..])
    };
    let typed = match scalar.typed() {
        Typed::Bool(true) => (Kind::Bool, "True".to_owned()),
        Typed::Bool(false) => (Kind::Bool, "False".to_owned()),
        Typed::Int(number) if !has_leading_zero => (Kind::Int, number.to_string()),
        Typed::Float(_) if !has_leading_zero => {
            let number = plain::authenticated(scalar).map(std::borrow::Cow::into_owned).unwrap_or_default();
            if number.parse::<f64>().is_ok_and(|parsed| super::value::float(parsed) == number) {
                (Kind::Float, number)
            } else {
                (Kind::Str, text())
            }
        }
        _ => (Kind::Str, text()),
    };
    Some(typed)
}

/// Returns an encrypted value as it is written in a document.
pub(super) fn of_sealed(sealed: &str, format: Format, is_flow: bool) -> String {
    if format == Format::Yaml && is_flow { format!("\"{sealed}\"") } else { sealed.to_owned() }
}

/// Returns a decrypted value as it is written in a document; `None` if the format cannot write it.
pub(super) fn of_plain(
    kind: Kind,
    text: &str,
    format: Format,
    is_flow: bool,
    indentation: usize,
) -> Option<String> {
    match format {
        Format::Dotenv => return Some(text.replace('\n', "\\n")),
        Format::Ini => return in_ini(text),
        Format::Yaml => {}
    }
    Some(match kind {
        Kind::Bool => text.to_lowercase(),
        Kind::Int => text.to_owned(),
        Kind::Float if text.parse::<f64>().is_ok_and(f64::is_finite) => text.to_owned(),
        Kind::Float => format!(".{}", text.trim_start_matches('+').to_lowercase()),
        _ if is_flow => quoted(text),
        _ => block(text, indentation).or_else(|| in_one_line(text)).unwrap_or_else(|| quoted(text)),
    })
}

/// Returns a string in double quotes, which YAML and JSON read alike.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a value of an INI file, in quotes if it would be read otherwise.
fn in_ini(text: &str) -> Option<String> {
    let needs_quotes = text.contains([';', '#', '"', '\'', '`', '\\']) || text.trim() != text;
    let fits = |quote: char| needs_quotes && !text.contains(quote);
    match text {
        text if text.contains(['\n', '\r']) => None,
        text if !needs_quotes => Some(text.to_owned()),
        text if fits('`') => Some(format!("`{text}`")),
        text if fits('"') => Some(format!("\"{text}\"")),
        _ => None,
    }
}

/// Returns a string without quotes if it stays a string that way.
fn in_one_line(text: &str) -> Option<String> {
    let written = serde_saphyr::to_string(&text).ok()?;
    let written = written.strip_suffix('\n').unwrap_or(&written);
    (!written.contains('\n') && !written.is_empty()).then(|| written.to_owned())
}

/// Returns several lines as a block.
fn block(text: &str, indentation: usize) -> Option<String> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let is_simple = |letter: char| letter == '\n' || !letter.is_control();
    let fits = body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(is_simple)
        && !body.lines().any(|line| line.ends_with(' ') || line.trim().is_empty() && !line.is_empty());
    if !fits {
        return None;
    }
    let mark = if body.len() == text.len() { "|-" } else { "|" };
    let indent = " ".repeat(indentation);
    let lines =
        body.lines().map(|line| if line.is_empty() { String::new() } else { format!("{indent}{line}") });
    Some(std::iter::once(mark.to_owned()).chain(lines).collect::<Vec<_>>().join("\n"))
}

/// Returns how far the lines of a block must be indented whose first line has a value at a position.
pub(super) fn indentation(text: &str, span: Span) -> usize {
    let start = span.start as usize;
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[line_start..start];
    line.chars().take_while(|letter| matches!(letter, ' ' | '-')).count() + 4
}
