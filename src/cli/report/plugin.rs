//! The results of all checks in one line, as a Nagios plugin prints it.

use std::fmt::Write;

use crate::{
    checks::{CheckResult, CheckState, Perfdata},
    visible::visible_line,
};

/// Returns the worst state, and the line. `failed` is the number of resources that failed for any reason.
pub(in crate::cli) fn line(checks: &[(String, CheckResult)], failed: usize) -> (CheckState, String) {
    let mut state = if checks.is_empty() { CheckState::Unknown } else { CheckState::Ok };
    let mut bad = Vec::new();
    for (of, check) in checks {
        state = state.worse(check.state);
        if check.state != CheckState::Ok {
            let of = if of.is_empty() { String::new() } else { format!("{of} ") };
            bad.push(format!("{of}{} {}", check.name, check.state.with(&reason(check))).replace('|', "/"));
        }
    }
    if failed > 0 && state == CheckState::Ok {
        state = CheckState::Unknown;
        bad.push(format!("{failed} could not be checked"));
    }
    let count = checks.len();
    let noun = if count == 1 { "check" } else { "checks" };
    let mut line = match (count, bad.len()) {
        (0, _) => format!("{} - nothing was checked", state.word()),
        (_, 0) => format!("{} - {count} {noun}", state.word()),
        (_, wrong) => format!("{} - {wrong} of {count} {noun}: {}", state.word(), bad.join("; ")),
    };
    let measured: Vec<String> = checks.iter().flat_map(|(_, check)| perfdata(check)).collect();
    if !measured.is_empty() {
        let _ = write!(line, " | {}", measured.join(" "));
    }
    (state, visible_line(&line).into_owned())
}

/// Returns the message of a plugin, or the first property that does not match.
fn reason(check: &CheckResult) -> String {
    check.reasons().into_iter().next().unwrap_or_default()
}

/// Returns what a check measured, each with the name of the check in front.
fn perfdata(check: &CheckResult) -> Vec<String> {
    let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let item = |item: &Perfdata| {
        let label = format!("{}::{}", check.name, item.label).replace('\'', "''").replace('|', "/");
        let value = item.value.map_or("U".to_owned(), |value| value.to_string());
        let [warn, crit] = [&item.warn, &item.crit].map(|range| range.as_deref().unwrap_or_default());
        let text =
            format!("'{label}'={value}{};{warn};{crit};{};{}", item.uom, number(item.min), number(item.max));
        text.trim_end_matches(';').to_owned()
    };
    check.perfdata.iter().map(item).collect()
}
