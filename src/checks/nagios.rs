//! Output of Nagios plugins: a summary, a longer text, and performance data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One value of the performance data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Perfdata {
    /// Name of the value.
    pub(crate) label: String,
    /// Value; null if the plugin could not determine it.
    pub(crate) value: Option<f64>,
    /// Unit, as the plugin wrote it; empty for a plain number.
    pub(crate) uom: String,
    /// Range outside of which the plugin warns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) warn: Option<String>,
    /// Range outside of which the value is critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(crate) crit: Option<String>,
    /// Minimum of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub(crate) min: Option<f64>,
    /// Maximum of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub(crate) max: Option<f64>,
}

impl Perfdata {
    /// Returns the value in seconds, in bytes or as a ratio, with the name of the unit, if the unit is one of these.
    pub(crate) fn normalised(&self) -> Option<(f64, &str)> {
        let value = self.value?;
        Some(match self.uom.as_str() {
            "s" => (value, "seconds"),
            "ms" => (value / 1e3, "seconds"),
            "us" => (value / 1e6, "seconds"),
            "%" => (value / 1e2, "ratio"),
            "B" => (value, "bytes"),
            "KB" => (value * 1024.0, "bytes"),
            "MB" => (value * 1024.0 * 1024.0, "bytes"),
            "GB" => (value * 1024.0 * 1024.0 * 1024.0, "bytes"),
            "TB" => (value * 1024.0 * 1024.0 * 1024.0 * 1024.0, "bytes"),
            other => (value, other),
        })
    }
}

/// Parsed output of a plugin.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PluginOutput {
    pub(crate) summary: String,
    pub(crate) long: String,
    pub(crate) perfdata: Vec<Perfdata>,
}

/// Parses the output of a plugin. In later lines, everything after the first `|` is performance data.
pub(crate) fn read(stdout: &str) -> PluginOutput {
    let mut lines = stdout.lines();
    let first = lines.next().unwrap_or_default();
    let (summary, mut measured) = match first.split_once('|') {
        Some((summary, perfdata)) => (summary, perfdata.to_owned()),
        None => (first, String::new()),
    };
    let mut long: Vec<&str> = Vec::new();
    let mut is_long = true;
    for line in lines {
        let mut perfdata = line;
        if is_long {
            let (text, rest) = line.split_once('|').map_or((line, None), |(text, rest)| (text, Some(rest)));
            if rest.is_none() || !text.trim().is_empty() {
                long.push(text.trim_end());
            }
            let Some(rest) = rest else { continue };
            (is_long, perfdata) = (false, rest);
        }
        measured.push(' ');
        measured.push_str(perfdata);
    }
    PluginOutput {
        summary: summary.trim().to_owned(),
        long: long.join("\n").trim_end().to_owned(),
        perfdata: items(&measured).into_iter().filter_map(item).collect(),
    }
}

/// Splits at spaces outside of quotation marks.
fn items(text: &str) -> Vec<&str> {
    let (mut items, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            letter if letter.is_whitespace() && !is_quoted => {
                items.push(&text[start..at]);
                start = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.retain(|item| !item.is_empty());
    items
}

fn item(text: &str) -> Option<Perfdata> {
    let (label, rest) = label(text)?;
    let mut fields = rest.split(';');
    let (value, uom) = value(fields.next()?)?;
    let warn = range(fields.next())?;
    let crit = range(fields.next())?;
    let min = limit(fields.next())?;
    let max = limit(fields.next())?;
    if fields.next().is_some_and(|extra| !extra.is_empty()) {
        return None;
    }
    Some(Perfdata { label, value, uom, warn, crit, min, max })
}

/// Splits off the label and its `=`.
fn label(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let (label, rest) = text.split_once('=')?;
        return (!label.is_empty() && !label.contains('\'')).then(|| (label.to_owned(), rest));
    };
    let mut end = 0;
    loop {
        end += quoted[end..].find('\'')?;
        if !quoted[end + 1..].starts_with('\'') {
            break;
        }
        end += 2;
    }
    let label = quoted[..end].replace("''", "'");
    let rest = quoted[end + 1..].strip_prefix('=')?;
    (!label.is_empty()).then_some((label, rest))
}

/// Parses a value with its unit. `U` is an undetermined value.
fn value(text: &str) -> Option<(Option<f64>, String)> {
    if text == "U" {
        return Some((None, String::new()));
    }
    let (number, unit) = text.split_at(number_length(text)?);
    let is_unit = unit.chars().all(|letter| letter.is_alphabetic() || letter == '%');
    is_unit.then(|| parsed(number).map(|value| (Some(value), unit.to_owned())))?
}

/// Returns the length of the number at the beginning, in bytes.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if matches!(bytes.get(at), Some(b'.' | b',')) {
        fraction = digits(at + 1);
        if fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(at + 1 + sign..).map_or(0, |_| digits(at + 1 + sign));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    Some(at)
}

fn parsed(number: &str) -> Option<f64> {
    number.replace(',', ".").parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a range; an empty range is `None`.
#[allow(clippy::option_option, reason = "a range may be missing, and what is there may be none")]
fn range(text: Option<&str>) -> Option<Option<String>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Some(None) };
    let bounds = text.strip_prefix('@').unwrap_or(text);
    let is_number = |text: &str| number_length(text) == Some(text.len());
    let is_range = match bounds.split_once(':') {
        Some((start, end)) => (start == "~" || is_number(start)) && (end.is_empty() || is_number(end)),
        None => is_number(bounds),
    };
    is_range.then(|| Some(text.to_owned()))
}

#[allow(clippy::option_option, reason = "a limit may be missing, and what is there may be none")]
fn limit(text: Option<&str>) -> Option<Option<f64>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Some(None) };
    (number_length(text) == Some(text.len())).then(|| parsed(text)).flatten().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(String, Option<f64>, String)> {
        let perfdata = read(&format!("OK|{text}")).perfdata;
        perfdata.into_iter().map(|item| (item.label, item.value, item.uom)).collect()
    }

    #[test]
    fn a_line_is_a_summary_and_what_was_measured() {
        let output = read("OK - x|time=0.5s;1;2;0;10\n");
        assert_eq!(output.summary, "OK - x");
        let [time] = output.perfdata.as_slice() else { panic!("{output:?}") };
        assert_eq!((time.label.as_str(), time.value, time.uom.as_str()), ("time", Some(0.5), "s"));
        assert_eq!((time.warn.as_deref(), time.crit.as_deref()), (Some("1"), Some("2")));
        assert_eq!((time.min, time.max), (Some(0.0), Some(10.0)));
    }

    #[test]
    fn a_bad_item_is_dropped_alone() {
        let one = |label: &str, value: Option<f64>, uom: &str| (label.to_owned(), value, uom.to_owned());
        for (text, expected) in [
            (
                "a=U b=1,5s c=inf 'x y'=3 junk",
                vec![one("a", None, ""), one("b", Some(1.5), "s"), one("x y", Some(3.0), "")],
            ),
            (
                "'it''s'=1 b=.9% c=nan d=1e3B e=2E-1c",
                vec![
                    one("it's", Some(1.0), ""),
                    one("b", Some(0.9), "%"),
                    one("d", Some(1000.0), "B"),
                    one("e", Some(0.2), "c"),
                ],
            ),
            ("a=1;;2:;@~:5  b=-3", vec![one("b", Some(-3.0), "")]),
            ("a=1;@10:20;~:5;; b=2;x c=3;;;;;9", vec![one("a", Some(1.0), "")]),
            ("=1 ''=2 a= a'b=3 'open=1", vec![]),
            ("jobs=12jobs x=1s2", vec![one("jobs", Some(12.0), "jobs")]),
            ("x=1e y=2.", vec![one("x", Some(1.0), "e")]),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn later_lines_are_text_up_to_a_bar_and_then_measured() {
        let output = read("DISK OK|/=2643MB\n/ 15272 MB\n/boot 68 MB|/boot=68MB\n/home=69357MB\n");
        assert_eq!(output.summary, "DISK OK");
        assert_eq!(output.long, "/ 15272 MB\n/boot 68 MB");
        let labels: Vec<&str> = output.perfdata.iter().map(|item| item.label.as_str()).collect();
        assert_eq!(labels, ["/", "/boot", "/home"]);
    }

    #[test]
    fn nothing_at_all_is_nothing() {
        assert_eq!(read(""), PluginOutput::default());
        assert_eq!(read("|"), PluginOutput::default());
    }

    #[test]
    fn values_are_told_in_the_same_units() {
        for (text, expected) in [
            ("a=5ms", (0.005, "seconds")),
            ("a=7us", (0.000_007, "seconds")),
            ("a=50%", (0.5, "ratio")),
            ("a=2KB", (2048.0, "bytes")),
            ("a=3c", (3.0, "c")),
            ("a=4", (4.0, "")),
        ] {
            let output = read(&format!("x|{text}"));
            assert_eq!(output.perfdata[0].normalised(), Some(expected), "{text}");
        }
    }
}
