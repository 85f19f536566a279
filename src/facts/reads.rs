//! Which facts were read, and their values.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use ccm_expr::{Map, Object, Value};

/// Paths of facts that change without a change of the machine.
const VOLATILE: [&str; 5] =
    ["memory", "partition.usage", "host.info.uptime", "host.info.bootTime", "host.info.procs"];

/// The facts that were read, by their paths.
#[derive(Clone, Default)]
pub(super) struct Reads(Arc<Mutex<BTreeMap<String, Value>>>);

impl Reads {
    /// Returns a fact that notes which of its members are read.
    pub(super) fn note(&self, path: &str, value: Value) -> Value {
        if VOLATILE.iter().any(|volatile| is_in(path, volatile)) {
            return value;
        }
        match value {
            Value::Object(_) => {
                let (inner, path, reads) = (value, path.to_owned(), self.clone());
                Value::Object(Arc::new(Noted { inner, path, reads }))
            }
            value => {
                self.insert(path, &value);
                value
            }
        }
    }

    fn insert(&self, path: &str, value: &Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), value.clone());
    }

    /// Returns the facts that were read, without those that `given` overrides.
    pub(super) fn all(&self, given: &[Map]) -> BTreeMap<String, Value> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.retain(|path, _| !given.iter().any(|given| overrides(given, path)));
        all
    }
}

fn is_in(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether facts that were given have a value at a path, or replace one on the way to it.
fn overrides(given: &Map, path: &str) -> bool {
    let mut names = path.split('.');
    let mut value = names.next().and_then(|name| given.get(name));
    for name in names {
        match value {
            Some(Value::Map(map)) => value = map.get(name),
            _ => break,
        }
    }
    value.is_some()
}

/// A map of facts whose members are noted when they are read.
struct Noted {
    inner: Value,
    path: String,
    reads: Reads,
}

impl Object for Noted {
    fn member(&self, name: &str) -> Option<Value> {
        let value = self.inner.member(name)?;
        Some(self.reads.note(&format!("{}.{name}", self.path), value))
    }

    fn names(&self) -> Vec<Arc<str>> {
        let names = self.inner.member_names();
        self.reads.insert(&self.path, &listed(&names));
        names
    }
}

fn listed(names: &[Arc<str>]) -> Value {
    names.iter().map(|name| Value::from(&**name)).collect::<Vec<_>>().into()
}

/// Returns the value that a path has now, in the form in which reading it is noted.
pub(super) fn now(facts: &dyn Object, path: &str) -> Option<Value> {
    let mut names = path.split('.');
    let mut value = facts.member(names.next()?)?;
    for name in names {
        value = value.member(name)?;
    }
    Some(match value {
        Value::Object(object) => listed(&object.names()),
        value => value,
    })
}
