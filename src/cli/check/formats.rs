//! The results of checks, in the formats that people and programs read.

use std::fmt::Write;

use serde_json::json;

use super::super::{Exit, output::Output, report::plugin};
use crate::{
    checks::{CheckResult, CheckState, Format, Judgement, PropertyResult},
    visible::visible_line,
};

/// Format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckFormat {
    Table,
    Nagios,
    Json,
    Junit,
    Tap,
}

impl CheckFormat {
    pub(super) const WORDS: [&str; 5] = ["table", "nagios", "json", "junit", "tap"];

    pub(super) fn of(word: &str) -> Self {
        match word {
            "nagios" => Self::Nagios,
            "json" => Self::Json,
            "junit" => Self::Junit,
            "tap" => Self::Tap,
            _ => Self::Table,
        }
    }
}

/// One thing that was checked.
struct Row {
    what: String,
    result: Judgement,
    message: String,
}

/// Prints results and says how the program ends.
pub(super) fn print(results: &[CheckResult], format: CheckFormat, output: &mut Output) -> Exit {
    let text = match format {
        CheckFormat::Nagios => {
            let of_nobody: Vec<_> = results.iter().map(|check| (String::new(), check.clone())).collect();
            let (state, line) = plugin::line(&of_nobody, 0);
            output.line(&line);
            return Exit::Plugin(state);
        }
        CheckFormat::Table => table(results),
        CheckFormat::Json => document(results),
        CheckFormat::Junit => junit(results),
        CheckFormat::Tap => tap(results),
    };
    output.text(&text);
    if results.iter().any(|check| check.is_failed) { Exit::Failed } else { Exit::Success }
}

/// Returns a row for each property of rules, and for each plugin.
fn rows(check: &CheckResult) -> Vec<Row> {
    let property = |PropertyResult { kind, id, property, result, message }: &PropertyResult| Row {
        what: format!("{kind} {id} {property}"),
        result: *result,
        message: message.lines().next().unwrap_or_default().to_owned(),
    };
    if check.format == Format::Goss && !check.results.is_empty() {
        return check.results.iter().map(property).collect();
    }
    let result = match check.state {
        CheckState::Ok => Judgement::Pass,
        CheckState::Warning if !check.is_failed => Judgement::Pass,
        CheckState::Unknown => Judgement::Unknown,
        CheckState::Warning | CheckState::Critical => Judgement::Fail,
    };
    let first = check.output.lines().next().unwrap_or_default();
    vec![Row { what: check.name.clone(), result, message: check.state.with(first) }]
}

fn word(result: Judgement) -> &'static str {
    match result {
        Judgement::Pass => "ok",
        Judgement::Fail => "FAILED",
        Judgement::Skip => "skipped",
        Judgement::Unknown => "UNKNOWN",
    }
}

fn table(results: &[CheckResult]) -> String {
    let all: Vec<Row> = results.iter().flat_map(rows).collect();
    let width = all.iter().map(|row| row.what.chars().count()).max().unwrap_or_default().min(60);
    let mut text = String::new();
    for Row { what, result, message } in &all {
        let line = format!("{:<8} {what:<width$}  {message}", word(*result));
        let _ = writeln!(text, "{}", visible_line(line.trim_end()));
    }
    let count = |wanted: Judgement| all.iter().filter(|row| row.result == wanted).count();
    let state = results.iter().fold(CheckState::Ok, |state, check| state.worse(check.state));
    let _ = writeln!(
        text,
        "\n{}: {} checked, {} failed, {} unknown, {} skipped",
        state.word(),
        all.len(),
        count(Judgement::Fail),
        count(Judgement::Unknown),
        count(Judgement::Skip)
    );
    text
}

fn document(results: &[CheckResult]) -> String {
    let state = results.iter().fold(CheckState::Ok, |state, check| state.worse(check.state));
    let document = json!({ "status": state.number(), "state": state, "health_check": results });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn tap(results: &[CheckResult]) -> String {
    let all: Vec<Row> = results.iter().flat_map(rows).collect();
    let mut text = format!("TAP version 13\n1..{}\n", all.len());
    for (number, Row { what, result, message }) in all.iter().enumerate() {
        let ok = if matches!(result, Judgement::Pass | Judgement::Skip) { "ok" } else { "not ok" };
        let skip = if *result == Judgement::Skip { " # SKIP" } else { "" };
        let what = visible_line(what).replace('#', "\\#");
        let _ = writeln!(text, "{ok} {} - {what}{skip}", number + 1);
        if ok == "not ok" {
            let _ = writeln!(text, "# {}", visible_line(message));
        }
    }
    text
}

fn junit(results: &[CheckResult]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for check in results {
        let rows = rows(check);
        let count = |wanted: Judgement| rows.iter().filter(|row| row.result == wanted).count();
        let seconds = std::time::Duration::from_nanos(check.duration).as_secs_f64();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\">",
            escaped(&check.name),
            rows.len(),
            count(Judgement::Fail),
            count(Judgement::Unknown),
            count(Judgement::Skip)
        );
        for Row { what, result, message } in &rows {
            let (what, message) = (escaped(what), escaped(message));
            let inside = match result {
                Judgement::Pass => None,
                Judgement::Skip => Some("<skipped/>".to_owned()),
                Judgement::Fail => Some(format!("<failure message=\"{message}\"/>")),
                Judgement::Unknown => Some(format!("<error message=\"{message}\"/>")),
            };
            let class = escaped(&check.name);
            let _ = match inside {
                None => writeln!(text, "    <testcase classname=\"{class}\" name=\"{what}\"/>"),
                Some(inside) => {
                    writeln!(text, "    <testcase classname=\"{class}\" name=\"{what}\">{inside}</testcase>")
                }
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Escapes what has a meaning in XML, and leaves out what cannot be in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
