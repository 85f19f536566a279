//! YAML syntax: the exact spans of values, and readable messages for syntax errors.

use super::{Diagnostic, Span};

/// Anchor and tag in front of a value.
pub(super) struct Properties {
    pub(super) tag: Option<Span>,
    /// Start of the value itself.
    pub(super) end: u32,
}

pub(super) fn properties(text: &str, start: u32) -> Properties {
    let bytes = text.as_bytes();
    let mut at = start as usize;
    let mut tag = None;
    while let Some(b'&' | b'!') = bytes.get(at) {
        let is_tag = bytes[at] == b'!';
        let begin = at;
        let is_verbatim = bytes[at..].starts_with(b"!<");
        while let Some(&byte) = bytes.get(at) {
            let ends = byte.is_ascii_whitespace()
                || !is_verbatim && matches!(byte, b',' | b'[' | b']' | b'{' | b'}');
            if ends {
                break;
            }
            at += 1;
        }
        if is_tag {
            tag = Some(Span::new(begin, at));
        }
        at = skip_blanks_and_comments(bytes, at);
    }
    Properties { tag, end: Span::new(at, at).start }
}

fn skip_blanks_and_comments(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if byte == b'#' {
            at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at);
        } else if byte.is_ascii_whitespace() {
            at += 1;
        } else {
            break;
        }
    }
    at
}

/// Returns the span of the quoted scalar at `start`. The parser's own span includes trailing spaces and comments.
pub(super) fn quoted(text: &str, start: u32) -> Span {
    let bytes = text.as_bytes();
    let start = start as usize;
    let quote = bytes.get(start).copied().unwrap_or(b'"');
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte == b'\\' && quote == b'"' {
            at += 1;
        } else if byte == quote {
            if quote == b'\'' && bytes.get(at) == Some(&b'\'') {
                at += 1;
            } else {
                break;
            }
        }
    }
    Span::new(start, text.floor_char_boundary(at))
}

/// Returns the end of the next `:` or `-` after `from`, if there is one.
pub(super) fn indicator_end(text: &str, from: u32) -> Option<u32> {
    let bytes = text.as_bytes();
    let at = skip_blanks_and_comments(bytes, from as usize);
    let ends = bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || b",]}".contains(next));
    (matches!(bytes.get(at), Some(b':' | b'-')) && ends).then(|| Span::new(at, at + 1).end)
}

/// Returns the position of the first wanted indicator of the value after `from`. The parser reports only the start of
/// the text of a block scalar, and not even that for an empty one.
pub(super) fn indicator(text: &str, from: u32, wanted: &[u8]) -> Option<u32> {
    let bytes = text.as_bytes();
    let mut at = from as usize;
    loop {
        at = skip_blanks_and_comments(bytes, at);
        match bytes.get(at)? {
            byte if wanted.contains(byte) => return Some(Span::new(at, at).start),
            b':' | b'-' | b'?' => at += 1,
            _ => return None,
        }
    }
}

/// Returns the span of a block scalar up to its last visible character.
pub(super) fn without_blank_tail(text: &str, start: u32, end: u32) -> Span {
    let visible = text[start as usize..end as usize].trim_end_matches([' ', '\t', '\r', '\n']);
    Span::new(start as usize, start as usize + visible.len())
}

/// Returns an error for a directive other than `%YAML` and `%TAG`, which the parser ignores with wrong offsets.
pub(super) fn unknown_directive(text: &str) -> Option<Diagnostic> {
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for line in text[start..].split_inclusive(['\n', '\r']) {
        let word = line.split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
        if word.starts_with('%') && !matches!(word, "%YAML" | "%TAG") {
            let problem =
                Diagnostic::error("yaml-directive", format!("the directive `{word}` is not known here"));
            return Some(problem.at(Span::new(start, start + word.len())));
        }
        let may_precede_a_directive = word.is_empty() || word.starts_with(['%', '#']) || word == "...";
        if !may_precede_a_directive {
            return None;
        }
        start += line.len();
    }
    None
}

/// Returns a readable error for a syntax error that the parser noticed at `at`.
pub(super) fn problem(text: &str, info: &str, at: usize) -> Diagnostic {
    let here = place(text, at);
    let (message, help) = match info {
        "tabs disallowed within this context (block indentation)"
        | "tabs disallowed in this context"
        | "tab cannot be used as indentation"
        | "a block scalar content cannot start with a tab"
        | "while scanning a plain scalar, found a tab"
        | "'-' must be followed by a valid YAML whitespace"
        | "':' must be followed by a valid YAML whitespace" => return tab(text, at),
        "while scanning a quoted scalar, found unexpected end of stream"
        | "while scanning a quoted scalar, found unexpected document indicator" => {
            return Diagnostic::error("unclosed-quote", "this quote is never closed").at(here);
        }
        "simple key expect ':'" | "simple key expected" => return missing_colon(text, at),
        "mapping values are not allowed in this context" => (
            "a `:` is not possible here",
            Some("indent the key like its neighbours, or quote a text that contains `: `"),
        ),
        "illegal placement of ':' indicator" => {
            ("a `:` is not possible here", Some("is a bracket above left open?"))
        }
        "while parsing a block mapping, did not find expected key" => (
            "expected a key here",
            Some(
                "keys of one map begin in the same column; a text that continues after its quotes needs quotes around all of it",
            ),
        ),
        "while parsing a block collection, did not find expected '-' indicator" => {
            ("expected `- ` here", Some("the items of one list begin in the same column"))
        }
        "invalid indentation" => ("this line is indented like nothing above it", None),
        "invalid indentation in quoted scalar" => {
            return Diagnostic::error("unclosed-quote", "this quote is never closed")
                .at(here)
                .with_help("or the lines of the quoted text are not indented more than its key");
        }
        "invalid indentation in flow construct" => {
            ("what stands in brackets must be indented more than its key", None)
        }
        "while parsing a flow mapping, did not find expected ',' or '}'" => {
            ("expected `,` or `}` here", None)
        }
        "while parsing a flow sequence, expected ',' or ']'" => ("expected `,` or `]` here", None),
        "misplaced bracket" => ("this bracket was never opened", None),
        "while parsing a node, did not find expected node content" | "unexpected end of plain scalar" => {
            if at >= text.trim_end().len() {
                ("the text ends in the middle of a value", Some("is a bracket or quote left open?"))
            } else {
                ("expected a value here", Some("quote a text that begins with a special character"))
            }
        }
        "invalid trailing content after double-quoted scalar" => (
            "there is more text behind the closing quote",
            Some("put quotes around all of it, and write a `\"` in it as `\\\"`"),
        ),
        "while parsing node, found unknown anchor" => {
            ("this alias names no anchor", Some("quote a text that begins with `*`"))
        }
        "while scanning an anchor or alias, did not find expected alphabetic or numeric character" => {
            ("expected the name of an anchor", Some("quote a text that begins with `*` or `&`"))
        }
        "the handle wasn't declared" => {
            ("this tag is not known here", Some("quote a text that begins with `!`"))
        }
        "while parsing a quoted scalar, found unknown escape character" => {
            return Diagnostic::error("yaml-escape", "this `\\` begins no escape that YAML knows")
                .at(escape(text, at, |letter| !ESCAPES.contains(letter)))
                .with_help("write `\\\\` for a backslash, or use single quotes");
        }
        "while parsing a quoted scalar, found invalid Unicode character escape code" => {
            return Diagnostic::error("yaml-escape", "this escape is not a character")
                .at(escape(text, at, |letter| matches!(letter, 'u' | 'U')))
                .with_help("write the character itself, or `\\U` with eight digits");
        }
        "block sequence entries are not allowed in this context" | r#""-" is only valid inside a block"# => (
            "a list cannot begin here",
            Some("begin it on a line of its own, or quote a text that begins with `- `"),
        ),
        "comment intercepting the multiline text" => {
            ("a comment cannot interrupt a text of several lines", None)
        }
        "wrongly indented line in block scalar" => {
            ("this line is indented less than the text above it", None)
        }
        "recursion limit exceeded" => return super::limits::too_deep(here),
        "found unprintable character" => ("the text contains a NUL character", None),
        _ if info.starts_with("unexpected character") => (
            "no text begins with this character unless it is in quotes",
            Some("put the whole value in quotes"),
        ),
        _ => return Diagnostic::error("yaml-syntax", other(info)).at(here),
    };
    let problem = Diagnostic::error("yaml-syntax", message).at(here);
    match help {
        Some(help) => problem.with_help(help),
        None => problem,
    }
}

/// Returns the parser's message without its description of internal state.
fn other(info: &str) -> String {
    let told = info
        .split_once(", ")
        .filter(|(before, _)| before.starts_with("while "))
        .map_or(info, |(_, told)| told);
    format!("not valid YAML: {told}")
}

/// Characters that can follow `\\` in double quotes, including the line break.
const ESCAPES: &str = "0abt\tnvfre \"/\\N_LPxuU\r\n";

/// Returns the first matching escape in the quoted text at `quote`, or the quote itself.
fn escape(text: &str, quote: usize, is_meant: impl Fn(char) -> bool) -> Span {
    let mut characters = text[quote..].char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((end, letter)) if is_meant(letter) => {
                    return Span::new(quote + at, quote + end + letter.len_utf8());
                }
                _ => {}
            },
            '"' => break,
            _ => {}
        }
    }
    Span::new(quote, quote + 1)
}

fn tab(text: &str, at: usize) -> Diagnostic {
    // The parser notices the error after the tabs, or at the start of the text that they interrupt.
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let tab = text[line_start..at].find('\t').map(|tab| line_start + tab);
    let tab = tab.or_else(|| text[at..].find("\n\t").map(|newline| at + newline + 1));
    let tab = tab.unwrap_or(at);
    let end = tab + text[tab..].bytes().take_while(|&byte| byte == b'\t').count();
    Diagnostic::error("tab-indentation", "a tab cannot indent")
        .at(Span::new(tab, end))
        .with_help("indent with spaces")
}

fn missing_colon(text: &str, at: usize) -> Diagnostic {
    // The parser notices the error at the next token; the key is before it.
    let before = text[..at].trim_end();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = &before[line_start..];
    let start = line_start + line.len() - line.trim_start_matches([' ', '\t', '-']).len();
    let at = Span::new(start, before.len());
    if let Some(key) = block_key(&text[..line_start], line) {
        return Diagnostic::error("block-not-indented", format!("the text of `{key}` is not indented"))
            .at(at)
            .with_help(format!("indent each line of the text deeper than `{key}`"));
    }
    Diagnostic::error("missing-colon", "expected `:` after this key").at(at)
}

/// Returns the key of the empty block scalar that ends `before`, if `line` stands where its text was meant to be.
fn block_key<'t>(before: &'t str, line: &str) -> Option<&'t str> {
    let header = before.lines().rfind(|line| !line.trim().is_empty())?;
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let (key, indicator) = header.trim().trim_start_matches("- ").rsplit_once(':')?;
    let is_block = matches!(indicator.trim(), "|" | ">" | "|-" | ">-" | "|+" | ">+");
    (is_block && indentation(line) <= indentation(header)).then_some(key)
}

/// Returns the span of the character at an offset, or the end of the text.
fn place(text: &str, at: usize) -> Span {
    let at = text.floor_char_boundary(at);
    let length =
        text[at..].chars().next().filter(|character| !character.is_whitespace()).map_or(0, char::len_utf8);
    Span::new(at, at + length)
}
