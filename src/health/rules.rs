//! Evaluates rules one after the other.

use std::time::Instant;

use super::{
    attempts::Attempt,
    lens::{Lens, Seen, Unseen},
    observe,
};
use crate::checks::{
    Assertion, CheckState, Expected, Judgement, Observed, PropertyResult, Rule, Rules, Severity, expected,
};

/// Evaluates all rules, and returns the worst result.
pub(super) fn judge(rules: &Rules, lens: &Lens) -> Attempt {
    let begun = Instant::now();
    let mut state = CheckState::Ok;
    let mut results = Vec::new();
    observe::expect(rules, lens);
    for rule in rules.rules() {
        for (result, found) in judge_rule(rule, lens) {
            state = state.worse(found);
            results.push(result);
        }
    }
    let count = |wanted: &[Judgement]| results.iter().filter(|one| wanted.contains(&one.result)).count();
    let output = format!(
        "Count: {}, Failed: {}, Skipped: {}, Duration: {:.3}s",
        results.len(),
        count(&[Judgement::Fail, Judgement::Unknown]),
        count(&[Judgement::Skip]),
        begun.elapsed().as_secs_f64(),
    );
    Attempt { state, output, long_output: String::new(), perfdata: Vec::new(), results, is_final: false }
}

/// Evaluates the properties of one rule in order. If the first decides about the others, the others can be skipped.
fn judge_rule(rule: &Rule, lens: &Lens) -> Vec<(PropertyResult, CheckState)> {
    let bad = match rule.severity {
        Severity::Critical => CheckState::Critical,
        Severity::Warning => CheckState::Warning,
    };
    let mut is_closed = rule.is_skipped;
    let mut look = observe::observer(rule, lens);
    let mut judged = Vec::with_capacity(rule.assertions.len());
    for assertion in &rule.assertions {
        let property = assertion.property;
        let (result, message) = if is_closed {
            (Judgement::Skip, String::new())
        } else {
            let seen = lens.tick().and_then(|()| look(property));
            let is_false = matches!(seen, Ok(Observed::Value(serde_json::Value::Bool(false))));
            let (result, message) = compare(assertion, &seen, lens);
            is_closed = rule.kind.gate() == Some(property) && (result != Judgement::Pass || is_false);
            (result, message)
        };
        let state = match result {
            Judgement::Pass | Judgement::Skip => CheckState::Ok,
            Judgement::Fail => bad,
            Judgement::Unknown => CheckState::Unknown,
        };
        let (kind, id, property) = (rule.kind.name().to_owned(), rule.shown(), property.to_owned());
        judged.push((PropertyResult { kind, id, property, result, message }, state));
    }
    judged
}

fn compare(assertion: &Assertion, seen: &Seen, lens: &Lens) -> (Judgement, String) {
    let observed = match seen {
        Ok(observed) => observed,
        Err(Unseen::Cannot(why)) => return (Judgement::Unknown, why.clone()),
        Err(Unseen::Not(why)) => {
            let expected = expected(assertion.property, &assertion.written);
            return (Judgement::Fail, format!("expected {expected}, but {why}"));
        }
    };
    let complaint = match &assertion.expected {
        Expected::Value(matcher) => matcher.complaint(assertion.property, observed, &assertion.written),
        Expected::Version(wanted) => observe::packages::complaint(wanted, observed, lens),
    };
    let remark = match &assertion.expected {
        Expected::Value(matcher) if matcher.asserts_nothing() => "warning: an empty list asserts nothing",
        _ => "",
    };
    complaint.map_or((Judgement::Pass, remark.to_owned()), |message| (Judgement::Fail, message))
}
