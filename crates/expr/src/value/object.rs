//! Maps whose content the host gathers when it is asked for.

use std::fmt;
use std::sync::Arc;

use super::{Map, Value};

/// A map that gathers its content lazily: reading one member must not gather the others.
pub trait Object: Send + Sync {
    /// The member with this name.
    fn member(&self, name: &str) -> Option<Value>;

    /// The names of all members, in the order they are shown.
    fn names(&self) -> Vec<Arc<str>>;

    /// Everything at once, for uses that need it all, such as printing.
    fn contents(&self) -> Arc<Map> {
        let members = self.names().into_iter().filter_map(|name| {
            let value = self.member(&name)?;
            Some((name, value))
        });
        Arc::new(members.collect())
    }
}

impl fmt::Debug for dyn Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
