//! Why a plan is not applied.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    file::{Envelope, PlanError},
    record::{Facts, Header},
};
use crate::{
    host::{files::hex, system_file},
    resource::{Discrepancy, Error, ErrorKind, Resource, hidden, is_hidden, shown},
    state::{StateIdentity, history::Measure},
};

/// Separates the hash of the machine id from all other uses of the key.
const MACHINE_LABEL: &str = "ccm plan: machine 1\n";

/// A plan that is not applied. Nothing was changed.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    pub(crate) differences: Vec<Stale>,
}

/// A field of a resource that differs from the plan.
#[derive(Debug)]
pub(crate) struct Stale {
    pub(crate) resource: String,
    pub(crate) difference: Discrepancy,
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Stale,
    Expired,
    Machine,
    Version,
    Damaged,
    Signature,
}

impl Reason {
    fn word(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Expired => "expired",
            Self::Machine => "machine",
            Self::Version => "version",
            Self::Damaged => "damaged",
            Self::Signature => "signature",
        }
    }
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), differences: Vec::new() }
    }

    /// Returns the refusal of a plan that the machine no longer matches; `None` if nothing differs.
    pub(crate) fn stale(differences: Vec<Stale>) -> Option<Self> {
        let message = "the machine differs from the plan; nothing was changed";
        (!differences.is_empty()).then(|| Self { differences, ..Self::new(Reason::Stale, message) })
    }

    /// Returns the refusal as the JSON interface has it.
    pub(crate) fn to_json(&self) -> Value {
        let differences: Vec<Value> = self
            .differences
            .iter()
            .map(|Stale { resource, difference: Discrepancy { field, planned, found } }| {
                json!({ "resource": resource, "field": field, "planned": planned, "found": found })
            })
            .collect();
        json!({
            "protocol": "io.choria.ccm.v1.plan.refusal",
            "reason": self.reason.word(),
            "differences": differences,
        })
    }
}

impl From<PlanError> for Refusal {
    fn from(error: PlanError) -> Self {
        Self::new(Reason::Damaged, error.to_string())
    }
}

impl Stale {
    /// Returns the differences that a precondition found.
    pub(crate) fn of(resource: &Resource, error: Error) -> Vec<Self> {
        let resource = resource.to_string();
        let differences = match error.kind {
            ErrorKind::Stale { differences } => differences,
            _ => vec![Discrepancy {
                field: "state".to_owned(),
                planned: "readable".to_owned(),
                found: error.message,
            }],
        };
        let of = |difference| Self { resource: resource.clone(), difference };
        differences.into_iter().map(of).collect()
    }

    /// Returns the facts that differ. Values that were hidden when the plan was made stay hidden.
    pub(crate) fn facts(planned: &Facts, found: &Facts, measure: &Measure) -> Vec<Self> {
        let differs = |(path, planned): (&String, &Value)| {
            let mut found = found.get(path).cloned();
            if is_hidden(planned) {
                found = found.map(|found| hidden(path, &found, &|text| measure.keyed(text)));
            }
            (found.as_ref() != Some(planned)).then(|| Self {
                resource: format!("Facts.{path}"),
                difference: Discrepancy {
                    field: "fact".to_owned(),
                    planned: shown(Some(planned)),
                    found: shown(found.as_ref()),
                },
            })
        };
        planned.iter().filter_map(differs).collect()
    }
}

impl Header {
    /// Returns the keyed hash that names this machine in plans.
    pub(crate) fn machine_here(identity: &StateIdentity) -> String {
        let id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .iter()
            .find_map(|path| system_file::read(path).ok());
        let id = id.unwrap_or_default();
        hex(&identity.keyed_hash(format!("{MACHINE_LABEL}{}", id.trim()).as_bytes()))
    }
}

impl Envelope<'_> {
    /// Fails unless the plan was made on this machine with this version of ccm, was not altered and has not expired.
    pub(crate) fn check(&self, identity: Option<&StateIdentity>, now: Timestamp) -> Result<(), Refusal> {
        let Header { machine, version, expires, host, .. } = &self.header;
        let Some(identity) = identity.filter(|identity| *machine == Header::machine_here(identity)) else {
            return Err(Refusal::new(
                Reason::Machine,
                format!("the plan was made on another machine or for another state directory: host `{host}`"),
            ));
        };
        if !self.is_authentic(identity) {
            return Err(Refusal::new(Reason::Damaged, "the plan was altered after it was made"));
        }
        let own = env!("CARGO_PKG_VERSION");
        if version != own {
            let message = format!("the plan was made by ccm {version}, and this is ccm {own}");
            return Err(Refusal::new(Reason::Version, message));
        }
        if expires.parse::<Timestamp>().map_or(true, |expires| now >= expires) {
            return Err(Refusal::new(Reason::Expired, format!("the plan expired at {expires}")));
        }
        Ok(())
    }
}
