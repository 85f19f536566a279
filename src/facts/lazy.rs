//! Maps of facts that are gathered when they are first read.

use std::sync::{Arc, OnceLock};

use ccm_expr::{Map, Object, Value};

use super::machine::Machine;

/// Name of a fact, and the function that gathers it.
pub(super) type Fact = (&'static str, fn(&Arc<Machine>) -> Value);

/// Map that gathers each requested fact once.
pub(super) struct Lazy {
    machine: Arc<Machine>,
    facts: &'static [Fact],
    known: Vec<OnceLock<Value>>,
}

impl Lazy {
    pub(super) fn of(machine: &Arc<Machine>, facts: &'static [Fact]) -> Value {
        let known = facts.iter().map(|_| OnceLock::new()).collect();
        Value::Object(Arc::new(Self { machine: Arc::clone(machine), facts, known }))
    }
}

impl Object for Lazy {
    fn member(&self, name: &str) -> Option<Value> {
        let place = self.facts.iter().position(|(known, _)| *known == name)?;
        let (_, gather) = self.facts[place];
        Some(self.known[place].get_or_init(|| self.machine.timed(|| gather(&self.machine))).clone())
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.facts.iter().map(|(name, _)| Arc::from(*name)).collect()
    }
}

/// Returns a map of known values.
pub(super) fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    entries.into_iter().map(|(name, value)| (Arc::from(name), value)).collect::<Map>().into()
}
