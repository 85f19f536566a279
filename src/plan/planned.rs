//! A desired state of a plan: applied only if the machine still has the state that the plan relies on, and only with the
//! effects that it announces.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value};

use super::record::{ActionKind, Predicted};
use crate::{
    host::files::CopyInterrupted,
    resource::{
        AnyProperties, AnyState, Context, Discrepancy, Effects, Error, ErrorKind, Fingerprint, Guard,
        Observation, Trigger, discrepancies,
    },
    state::history::{Depth, Measure, Secrecy, Snapshot, SnapshotKind, from_text},
};

/// The state that a step relies on, and the effects that it announces.
pub(super) struct Expectation {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) action: ActionKind,
    pub(super) observed: Option<Fingerprint>,
    pub(super) predicted: Predicted,
    pub(super) paths: Vec<(String, Depth, Snapshot)>,
    pub(super) effects: Vec<String>,
    pub(super) is_secret: bool,
    /// Whether the history records that this plan has run the command.
    pub(super) is_done: bool,
    /// Whether the history records that this plan began the step and did not complete it.
    pub(super) is_begun: bool,
    pub(super) measure: Arc<Measure>,
    /// The original `source` of a content that the plan contains.
    pub(super) source: Option<Value>,
}

/// The expectation of a plan, checked while the resource is applied.
pub(super) struct Planned {
    expected: Expectation,
    /// Whether the expectation was met. This run makes all differences from then on.
    is_begun: AtomicBool,
}

impl Planned {
    pub(super) fn new(expected: Expectation) -> Self {
        let is_begun = AtomicBool::new(expected.is_begun);
        Self { expected, is_begun }
    }

    /// Returns the state that the step relies on when its turn comes; `None` if it depends on an earlier step.
    fn predicted(&self) -> Option<&Fingerprint> {
        match &self.expected.predicted {
            Predicted::Same => self.expected.observed.as_ref(),
            Predicted::State(predicted) => Some(predicted),
            Predicted::Unknown => None,
        }
    }

    /// Compares a state with a recorded one, and returns the differences.
    fn compare_with(
        &self,
        wanted: &dyn AnyProperties,
        recorded: &Fingerprint,
        have: &AnyState,
        cx: &Context,
    ) -> Vec<Discrepancy> {
        let Expectation { kind, name, action, is_secret, is_done, measure, .. } = &self.expected;
        if *is_done {
            return Vec::new();
        }
        let trigger = if *action == ActionKind::Refresh { Trigger::Refresh } else { Trigger::Turn };
        let change = match wanted.compare(have, trigger) {
            Ok(change) => change,
            Err(error) => return vec![unreadable(&error)],
        };
        let observation = Observation {
            kind,
            name,
            wanted,
            have,
            change: change.as_ref().filter(|_| *action != ActionKind::None),
            is_secret: *is_secret,
        };
        let mut differing = discrepancies(recorded, &observation.fingerprint(&|text| measure.keyed(text)));
        match (action, &change) {
            // The step was already done.
            (ActionKind::Change, None) => return Vec::new(),
            (ActionKind::Refresh, _) if !differing.is_empty() && is_reached(wanted, have) => {
                return Vec::new();
            }
            (ActionKind::None, Some(change)) if differing.is_empty() => {
                differing = change.discrepancies(*is_secret);
            }
            (ActionKind::Change, Some(change)) => {
                differing.extend(self.differing_paths(cx));
                differing.extend(self.unannounced(&wanted.effects(have, change, cx)));
            }
            _ => {}
        }
        let mut fields = Vec::new();
        differing.retain(|found| {
            let is_new = !fields.contains(&found.field);
            fields.push(found.field.clone());
            is_new
        });
        differing
    }

    /// Returns the effects that the plan does not announce.
    fn unannounced(&self, effects: &Effects) -> Vec<Discrepancy> {
        let announced = &self.expected.effects;
        let is_announced = |line: &String| {
            announced.contains(line)
                || line.rsplit_once(' ').is_some_and(|(start, _)| announced.contains(&format!("{start} *")))
        };
        let effects = crate::engine::outline(effects).into_iter();
        effects.filter(|line| !is_announced(line)).map(|line| unannounced(&line)).collect()
    }

    fn differing_paths(&self, cx: &Context) -> Vec<Discrepancy> {
        let secrecy = if self.expected.is_secret { Secrecy::Secret } else { Secrecy::Public };
        let tick = || cx.tick().map_err(|_| CopyInterrupted);
        let mut differing = Vec::new();
        for (path, depth, recorded) in &self.expected.paths {
            let path = from_text(path).unwrap_or_default();
            match self.expected.measure.snapshot(&path, *depth, secrecy, &tick) {
                Ok(found) if found.agrees_with(recorded) => {}
                Ok(found) => differing.extend(between(recorded, &found)),
                Err(error) => differing.push(Discrepancy {
                    field: "type".to_owned(),
                    planned: word(recorded.kind).to_owned(),
                    found: error.to_string(),
                }),
            }
        }
        differing
    }
}

/// Returns the discrepancy that an effect shows which the plan does not announce.
fn unannounced(line: &str) -> Discrepancy {
    let words: Vec<&str> = line.split(' ').collect();
    let (field, found) = match words.as_slice() {
        ["unit", _, setting, value] => (*setting, (*value).to_owned()),
        ["package", _, rest @ ..] => ("version", rest.join(" ")),
        ["user" | "group", _, left] => ("ensure", (*left).to_owned()),
        _ => ("content", line.to_owned()),
    };
    Discrepancy { field: field.to_owned(), planned: "none".to_owned(), found }
}

fn unreadable(error: &Error) -> Discrepancy {
    Discrepancy { field: "state".to_owned(), planned: "readable".to_owned(), found: error.message.clone() }
}

fn stale(differences: Vec<Discrepancy>) -> Result<(), Error> {
    if differences.is_empty() { Ok(()) } else { Err(ErrorKind::Stale { differences }.into()) }
}

fn word(kind: SnapshotKind) -> &'static str {
    match kind {
        SnapshotKind::Absent => "absent",
        SnapshotKind::File => "present",
        SnapshotKind::Directory => "directory",
        SnapshotKind::Link => "link",
        SnapshotKind::Special => "special",
    }
}

/// Returns the fields in which two states of a path differ.
fn between(recorded: &Snapshot, found: &Snapshot) -> Vec<Discrepancy> {
    let differing = |field: &str, planned: Option<String>, found: Option<String>| {
        let shown = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
        (planned != found).then(|| Discrepancy {
            field: field.to_owned(),
            planned: shown(planned),
            found: shown(found),
        })
    };
    if recorded.kind != found.kind {
        let kind = |snapshot: &Snapshot| Some(word(snapshot.kind).to_owned());
        return differing("type", kind(recorded), kind(found)).into_iter().collect();
    }
    let number = |id: Option<u32>| id.map(|id| id.to_string());
    let octal = |mode: Option<u32>| mode.map(|mode| format!("{mode:04o}"));
    let content = |snapshot: &Snapshot| snapshot.tree.clone().or_else(|| snapshot.digest.clone());
    let fields = [
        differing("content", content(recorded), content(found)),
        differing("target", recorded.target.clone(), found.target.clone()),
        differing("owner", number(recorded.uid), number(found.uid)),
        differing("group", number(recorded.gid), number(found.gid)),
        differing("mode", octal(recorded.mode), octal(found.mode)),
    ];
    let mut fields: Vec<Discrepancy> = fields.into_iter().flatten().collect();
    if fields.is_empty() {
        let names = |snapshot: &Snapshot| {
            let names: Vec<&str> = snapshot.extended.keys().map(String::as_str).collect();
            names.join(", ")
        };
        let (planned, found) = (names(recorded), names(found));
        fields.push(Discrepancy { field: "attributes".to_owned(), planned, found });
    }
    fields
}

fn is_reached(wanted: &dyn AnyProperties, have: &AnyState) -> bool {
    matches!(wanted.compare(have, Trigger::Turn), Ok(None))
}

impl Guard for Planned {
    fn show(&self, properties: &mut Map<String, Value>) {
        properties.extend(self.expected.source.clone().map(|source| ("source".to_owned(), source)));
    }

    fn check_precondition(
        &self,
        wanted: &dyn AnyProperties,
        inspect: &dyn Fn() -> Result<AnyState, Error>,
        cx: &Context,
    ) -> Result<(), Error> {
        let Some(observed) = self.expected.observed.as_ref().filter(|_| !self.expected.is_begun) else {
            return Ok(());
        };
        match inspect() {
            Ok(have) => stale(self.compare_with(wanted, observed, &have, cx)),
            Err(error) => stale(vec![unreadable(&error)]),
        }
    }

    fn check_state(&self, wanted: &dyn AnyProperties, have: &AnyState, cx: &Context) -> Result<(), Error> {
        // A refresh whose causes were changed by an earlier run of the plan is not due.
        let is_due = self.expected.action != ActionKind::Refresh || cx.trigger() == Trigger::Refresh;
        if let Some(predicted) = self.predicted().filter(|_| is_due)
            && !self.is_begun.load(Ordering::Relaxed)
        {
            stale(self.compare_with(wanted, predicted, have, cx))?;
        }
        // A change that is validated together with others is made later, and checked again before.
        let is_waiting = wanted.joint_validation().is_some() && cx.validated().is_none();
        self.is_begun.fetch_or(!is_waiting, Ordering::Relaxed);
        Ok(())
    }

    fn is_done(&self, trigger: Trigger) -> bool {
        self.expected.is_done && trigger == Trigger::Turn
    }

    fn check_effects(&self, effects: &Effects) -> Result<(), Error> {
        stale(match self.expected.action {
            ActionKind::None => vec![Discrepancy {
                field: "action".to_owned(),
                planned: "none".to_owned(),
                found: "change".to_owned(),
            }],
            ActionKind::Change | ActionKind::Refresh => self.unannounced(effects),
        })
    }
}
