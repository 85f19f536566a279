//! Facts that are learned in the run, over those that the machine has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccm_expr::{Object, Value};

use super::scope::{Lifetime, Scope};

/// The facts that resources of a manifest, and of those inside it, learn.
#[derive(Clone, Default)]
pub(crate) struct Learned(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Those that will be learned.
    promised: BTreeSet<String>,
    values: BTreeMap<String, Value>,
    /// One that was asked for before it was learned.
    asked: Option<String>,
}

impl Learned {
    /// Lays what is learned over other facts.
    pub(super) fn over(&self, facts: Value) -> Value {
        Value::Object(Arc::new(WithLearned { facts, learned: self.clone() }))
    }

    pub(super) fn promise(&self, name: &str) {
        self.known().promised.insert(name.to_owned());
    }

    pub(super) fn learn(&self, name: String, value: Value) {
        self.known().values.insert(name, value);
    }

    pub(super) fn forget(&self) {
        self.known().values.clear();
    }

    /// Returns a fact that was asked for since this was last called, and is not learned yet.
    pub(super) fn take_asked(&self) -> Option<String> {
        self.known().asked.take()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct WithLearned {
    facts: Value,
    learned: Learned,
}

impl Object for WithLearned {
    fn member(&self, name: &str) -> Option<Value> {
        let mut known = self.learned.known();
        if let Some(value) = known.values.get(name) {
            return Some(value.clone());
        }
        if known.promised.contains(name) {
            known.asked = Some(name.to_owned());
            return None;
        }
        drop(known);
        self.facts.member(name)
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.facts.member_names();
        names.extend(self.learned.known().values.keys().map(|name| Arc::from(name.as_str())));
        names
    }
}

/// The machine has a fact of that name.
pub(crate) struct FactExists;

impl Scope {
    /// The same scope with facts that are learned in the run.
    pub(crate) fn with_learned(mut self, learned: &Learned) -> Self {
        self.facts = learned.over(self.facts);
        self.learned = Some(learned.clone());
        self
    }

    /// Takes it that a fact will be learned. Fails if the machine has one of that name.
    pub(crate) fn promise(&self, name: &str) -> Result<(), FactExists> {
        let is_known = self.facts.member_names().iter().any(|known| &**known == name);
        match &self.learned {
            Some(learned) if !is_known => learned.promise(name),
            Some(_) => return Err(FactExists),
            None => {}
        }
        Ok(())
    }

    /// From now on expressions see this fact.
    pub(crate) fn learn(&self, name: &str, value: Value) {
        if let Some(learned) = &self.learned {
            learned.learn(name.to_owned(), value);
        }
    }

    /// Forgets what an earlier run has learned.
    pub(crate) fn forget_learned(&self) {
        if let Some(learned) = &self.learned {
            learned.forget();
        }
    }

    /// Returns a fact that was asked for since this was last called, and is only learned in the run.
    pub(crate) fn take_unlearned(&self) -> Option<String> {
        self.learned.as_ref()?.take_asked()
    }

    /// As [`Scope::take_unlearned`], for what has to be known when the manifest is loaded: why it cannot be.
    pub(super) fn take_asked_too_early(&self) -> Option<String> {
        let name = self.take_unlearned().filter(|_| self.lifetime == Lifetime::Run)?;
        Some(format!("`Facts.{name}` is learned only in the run, and this is worked out before it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_seen_from_when_it_is_learned() {
        let learned = Learned::default();
        let facts = learned.over(serde_json::json!({ "os": "linux" }).into());
        assert_eq!((facts.member("os"), facts.member("x")), (Some("linux".into()), None));
        assert_eq!(learned.take_asked(), None, "nobody promised it");
        learned.promise("x");
        assert_eq!((facts.member("x"), learned.take_asked().as_deref()), (None, Some("x")));
        learned.learn("x".to_owned(), "1".into());
        assert_eq!((facts.member("x"), learned.take_asked()), (Some("1".into()), None));
        assert_eq!(facts.member_names().len(), 2);
        learned.forget();
        assert_eq!(facts.member("x"), None);
    }
}
