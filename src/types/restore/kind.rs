//! The types of restored resources: each has the name of another type, so that references and events are those of the
//! resource whose changes are undone.

use schemars::Schema;

use super::Restore;
use crate::{
    document::{Node, NodeError},
    resource::{AnyCandidate, AnyProperties, AnyType, Behavior, Example, TypeOf},
};

/// Restores under the name of another type.
struct Restoring(&'static str);

const RESTORE: TypeOf<Restore> = TypeOf::NEW;

static RESTORING: [Restoring; 6] = [
    Restoring("cron"),
    Restoring("file"),
    Restoring("mount"),
    Restoring("archive"),
    Restoring("scaffold"),
    Restoring("sysctl"),
];

/// Returns the type that restores the paths of resources of this type.
pub(crate) fn restoring(kind: &str) -> Option<&'static dyn AnyType> {
    RESTORING.iter().find(|restoring| restoring.0 == kind).map(|restoring| restoring as &dyn AnyType)
}

impl AnyType for Restoring {
    fn name(&self) -> &'static str {
        self.0
    }

    fn examples(&self) -> &'static [Example] {
        &[]
    }

    fn behavior(&self) -> Behavior {
        Behavior::USUAL
    }

    fn providers(&self) -> Vec<AnyCandidate> {
        RESTORE.providers()
    }

    fn keys(&self) -> &'static [&'static str] {
        RESTORE.keys()
    }

    fn properties_schema(&self) -> &'static Schema {
        RESTORE.properties_schema()
    }

    fn state_schema(&self) -> Schema {
        RESTORE.state_schema()
    }

    fn read(&self, map: &Node) -> Result<Box<dyn AnyProperties>, NodeError> {
        RESTORE.read(map)
    }
}
