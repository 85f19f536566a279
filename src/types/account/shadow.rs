//! The provider that works with the shadow tools.

use std::sync::{Arc, Mutex, PoisonError};

use super::database::Database;
use crate::{
    host::process,
    resource::{Context, Error, Moment, Unknown},
};

/// Local accounts through `useradd`, `usermod`, `userdel`, `groupadd`, `groupmod` and `groupdel`.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// What the account files said, and when that was.
    known: Mutex<Option<(Arc<Database>, Moment)>>,
}

impl Shadow {
    /// Makes the provider, or says why this machine cannot have it.
    pub(super) fn new() -> Result<Self, String> {
        process::locate("useradd").map(|_| Self::default()).map_err(|_| "there is no useradd".to_owned())
    }

    /// Returns what the account files say. They are read once, and again after something that may have changed them.
    pub(super) fn database(&self, cx: &Context) -> Result<Arc<Database>, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = cx.history().map(crate::resource::History::now).unwrap_or_default();
        let is_fresh = |since: Moment| {
            let touches = |effects: &&crate::resource::Effects| {
                !effects.users.is_empty() || !effects.groups.is_empty() || effects.unknown > Unknown::Nothing
            };
            cx.history().is_none_or(|history| !history.since(since).iter().any(touches))
        };
        match &*known {
            Some((database, since)) if is_fresh(*since) => Ok(Arc::clone(database)),
            _ => {
                let database = Arc::new(Database::read()?);
                *known = Some((Arc::clone(&database), now));
                Ok(database)
            }
        }
    }

    /// Forgets what the files said: they were just changed.
    pub(super) fn forget(&self, cx: &Context) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        cx.host.users.forget();
    }
}
