//! The options in front of a key.

use jiff::{Timestamp, tz::TimeZone};

use super::time;

#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) is_authority: bool,
    pub(super) namespaces: Option<String>,
    after: Option<i64>,
    before: Option<i64>,
}

impl Options {
    /// Reads options, separated by commas.
    pub(super) fn parse(text: &[u8], zone: &TimeZone) -> Result<Self, String> {
        let (mut options, mut rest) = (Self::default(), text);
        while !rest.is_empty() {
            rest = options.take(rest, zone)?;
            match rest {
                [] => break,
                [b','] => return Err("the options end with a comma".to_owned()),
                [b',', more @ ..] => rest = more,
                _ => {
                    let name = rest.split(|byte| b",=".contains(byte)).next().unwrap_or_default();
                    return Err(format!("unknown option `{}`", String::from_utf8_lossy(name)));
                }
            }
        }
        match (options.after, options.before) {
            (Some(after), Some(before)) if before <= after => {
                Err("`valid-before` is not after `valid-after`".to_owned())
            }
            _ => Ok(options),
        }
    }

    /// Reads the option at the start of a text, if there is one, and returns what follows.
    fn take<'t>(&mut self, text: &'t [u8], zone: &TimeZone) -> Result<&'t [u8], String> {
        let after = |name: &str| {
            let (start, rest) = text.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name.as_bytes()).then_some(rest)
        };
        if let Some(rest) = after("cert-authority") {
            self.is_authority = true;
            return Ok(rest);
        }
        if let Some(rest) = after("namespaces=") {
            let (value, rest) = unquoted(rest)?;
            let value = String::from_utf8_lossy(&value).into_owned();
            return once(&mut self.namespaces, value, "namespaces").map(|()| rest);
        }
        let moment = |rest| {
            let (value, rest) = unquoted(rest)?;
            let moment = time::parse(&value, zone).ok_or("a time is not YYYYMMDD[HHMM[SS]][Z]".to_owned())?;
            Ok::<_, String>((moment, rest))
        };
        if let Some(rest) = after("valid-after=") {
            let (value, rest) = moment(rest)?;
            return once(&mut self.after, value, "valid-after").map(|()| rest);
        }
        if let Some(rest) = after("valid-before=") {
            let (value, rest) = moment(rest)?;
            return once(&mut self.before, value, "valid-before").map(|()| rest);
        }
        Ok(text)
    }

    /// Returns whether the key can sign at this time, in full seconds. The last second is part of the time.
    pub(super) fn is_valid_at(&self, now: Timestamp) -> bool {
        let now = now.as_second();
        self.after.is_none_or(|after| now >= after) && self.before.is_none_or(|before| now <= before)
    }
}

fn once<T>(option: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    if option.is_some() {
        return Err(format!("`{name}` is given twice"));
    }
    *option = Some(value);
    Ok(())
}

/// Returns the value in quotes at the start of a text, in which `\"` is a quote, and what follows it.
fn unquoted(text: &[u8]) -> Result<(Vec<u8>, &[u8]), String> {
    let [b'"', rest @ ..] = text else { return Err("the value of an option is not in quotes".to_owned()) };
    let (mut value, mut rest) = (Vec::new(), rest);
    loop {
        match rest {
            [] => return Err("a quote in the options is not closed".to_owned()),
            [b'"', rest @ ..] => return Ok((value, rest)),
            [b'\\', b'"', more @ ..] => {
                value.push(b'"');
                rest = more;
            }
            [byte, more @ ..] => {
                value.push(*byte);
                rest = more;
            }
        }
    }
}

/// Returns where options end: at a space outside of quotes. `None` if a quote is not closed.
pub(super) fn end(text: &[u8]) -> Option<usize> {
    let (mut at, mut is_quoted) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' if !is_quoted => break,
            b'\\' if text.get(at + 1) == Some(&b'"') => at += 1,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        at += 1;
    }
    (at < text.len() || !is_quoted).then_some(at)
}
