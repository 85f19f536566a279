//! Undo of a change of a user: the earlier attributes, and the home directory that the change removed or created.

use std::{fmt, path::Path, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Action, Shadow, User, UserState, decision, enact, state};
use crate::{
    host::owned_files::{self, Owned},
    resource::{
        self, Before, Candidate, Change, Context, Effects, Error, ErrorKind, Example, ResourceType, State,
        Trigger, Watches,
    },
    types::{
        account::{Ensure, name::AccountName, tool::Tool},
        restore::{self, Restore, RestoreState},
    },
};

/// How long to search for files of a user.
const SEARCH: Duration = Duration::from_mins(1);

/// A user that is brought back to an earlier state.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    pub(crate) name: AccountName,
    /// The earlier state.
    before: super::Properties,
    /// Attributes that the change left.
    #[serde(default)]
    left: Option<Map<String, Value>>,
    /// The home directory that the change created, moved or removed.
    files: restore::Properties,
    /// If true, a user that was changed since is restored, too.
    #[serde(default)]
    force: bool,
}

/// The present state, and everything that keeps the account from being removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UndoingState {
    #[serde(flatten)]
    user: UserState,
    #[serde(skip)]
    home: RestoreState,
    /// Why the account is still in use.
    #[serde(skip)]
    in_use: Option<String>,
    /// GID of the group with the name of the user, which was removed with the user.
    #[serde(skip)]
    missing_group: Option<u32>,
}

/// Steps that bring a user back.
#[derive(Debug)]
pub(crate) struct UndoingAction {
    user: Option<Action>,
    home: bool,
}

impl State for UndoingState {
    fn ensure(&self) -> String {
        self.user.ensure()
    }
}

impl fmt::Display for UndoingAction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.user {
            Some(action) => action.fmt(f),
            None => f.write_str("restored the home directory"),
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.before.ensure()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }

    fn secrets(&self) -> Vec<std::borrow::Cow<'_, str>> {
        self.before.secrets()
    }
}

impl Properties {
    /// Whether the attributes are those that the change left.
    fn is_as_left(&self, have: &UserState) -> bool {
        let now = serde_json::to_value(&have.metadata).unwrap_or_default();
        let same = |left: &Map<String, Value>| left.iter().all(|(key, value)| now.get(key) == Some(value));
        self.force || self.left.as_ref().is_none_or(same)
    }

    fn is_removal(&self) -> bool {
        self.before.ensure == Ensure::Absent
    }

    fn decide(&self, have: &UndoingState) -> Result<Option<Change<Action>>, Error> {
        let what = || format!("user#{}", self.name);
        let change = match decision::compare(&self.before, &have.user) {
            Err(_) if have.in_use.is_some() => None,
            other => other?,
        };
        if let Some(reason) = &have.in_use {
            return Err(ErrorKind::StillInUse { what: what(), reason: reason.clone() }.into());
        }
        if change.is_some() && !self.is_as_left(&have.user) {
            return Err(ErrorKind::ChangedSince { path: what() }.into());
        }
        Ok(change)
    }
}

/// Undo of a user.
pub(crate) struct Undoing;

impl ResourceType for Undoing {
    const NAME: &'static str = User::NAME;
    const EXAMPLES: &'static [Example] = &[];
    const PROVIDERS: &'static [Candidate<Self>] =
        &[Candidate { name: "shadow", summary: "shadow.", make: User::PROVIDERS[0].make }];

    type Properties = Properties;
    type State = UndoingState;
    type Action = UndoingAction;
    type Provider = Shadow;

    fn inspect(want: &Properties, on: &Shadow, cx: &Context) -> Result<UndoingState, Error> {
        let mut user = state::inspect(&want.before, on, cx)?;
        let in_use = if want.is_removal() { in_use(&user, cx) } else { None };
        let own = |gid: &u32| {
            user.metadata.uid.is_none() && on.database(cx).is_ok_and(|known| known.group_with(*gid).is_none())
        };
        let group = want.before.group.as_ref().and_then(|group| group.to_string().parse().ok());
        let missing_group = group.filter(own);
        if missing_group.is_some() {
            // The group is created first.
            user.obstacle = None;
        }
        Ok(UndoingState { user, home: Restore::inspect(&want.files, &(), cx)?, in_use, missing_group })
    }

    fn compare(
        want: &Properties,
        have: &UndoingState,
        trigger: Trigger,
    ) -> Result<Option<Change<UndoingAction>>, Error> {
        let user = want.decide(have)?;
        let home = match Restore::compare(&want.files, &have.home, trigger) {
            // The account changes in any case. Then the home directory is compared again.
            Err(_) if user.is_some() => None,
            other => other?,
        };
        let has_home = home.is_some();
        let (user, mut differences) = match user {
            Some(change) => (Some(change.action), change.differences),
            None => (None, Vec::new()),
        };
        differences.extend(home.into_iter().flat_map(|home| home.differences));
        let is_change = user.is_some() || has_home;
        let action = UndoingAction { user, home: has_home };
        Ok(is_change.then_some(Change { action, differences, refreshes: false }))
    }

    fn effects(want: &Properties, have: &UndoingState, action: &UndoingAction, cx: &Context) -> Effects {
        let mut effects = match &action.user {
            Some(action) => User::effects(&want.before, &have.user, action, cx),
            None => Effects::default(),
        };
        if action.home {
            effects.paths = want.files.effects();
        }
        effects
    }

    fn before(want: &Properties, have: &UndoingState, _: &UndoingAction) -> Before {
        have.user.before(&want.before)
    }

    fn enact(
        want: &Properties,
        have: &UndoingState,
        action: UndoingAction,
        on: &Shadow,
        cx: &Context,
    ) -> Result<UndoingState, Error> {
        // After the account, nothing would show whose home directory it was.
        if action.home && want.is_removal() {
            want.files.restore_now(cx)?;
        }
        if let Some(gid) = have.missing_group.filter(|_| action.user.is_some()) {
            Tool::new("groupadd").option("--gid", gid).run(Some(want.name.as_str()), cx)?;
            on.forget(cx);
        }
        if let Some(change) = &action.user {
            let user = state::inspect(&want.before, on, cx)?;
            let result = enact::enact(&want.before, &user, change, on, cx);
            on.forget(cx);
            result?;
        }
        if action.home && !want.is_removal() {
            want.files.restore_now(cx)?;
        }
        Self::inspect(want, on, cx)
    }
}

/// Returns why an account is still in use: by a process, or as the owner of a file outside of its home directory.
fn in_use(user: &UserState, cx: &Context) -> Option<String> {
    let uid = user.metadata.uid.filter(|_| user.metadata.local)?;
    if let Some(obstacle) = &user.obstacle {
        return Some(obstacle.message.clone());
    }
    let home = user.metadata.home.as_deref().map(Path::new);
    match owned_files::search(uid, home, SEARCH, cx.interrupt()) {
        Owned::Nothing => None,
        Owned::Path(path) => Some(format!("it owns {}", path.display())),
        Owned::Undecided(reason) => Some(reason),
    }
}
