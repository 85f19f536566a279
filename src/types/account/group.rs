//! The `group` type.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Ensure, database::Database, name::AccountName, shadow::Shadow, tool::Tool};
use crate::{
    resource::{
        self, AccountEffect, AccountKind, AccountLeft, Before, Candidate, Change, Context, Difference,
        Effects, Error, Example, ResourceType, State, Trigger, Watches,
    },
    vocabulary::Account,
};

/// Manages local groups in `/etc/group`.
///
/// ccm does not change groups of a directory service: if such a group is not in the desired state, the resource fails.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the group: letters, digits, `_`, `.` and `-`, at most 32 characters.
    pub(crate) name: AccountName,
    /// Whether the group exists.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// GID of the group. If not given, it stays unchanged, or the system chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) gid: Option<u32>,
    /// If true, a new group gets a GID from the range for system groups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) system: bool,
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let root = self.ensure == Ensure::Absent && self.name.as_str() == "root";
        root.then(|| Error::new("the group root cannot be removed").on("ensure")).into_iter().collect()
    }

    fn watches(&self) -> Watches {
        Watches { groups: vec![self.name.to_string()], ..Watches::default() }
    }
}

/// Attributes of a group.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GroupState {
    /// Attributes of the group.
    metadata: Metadata,
    #[serde(skip)]
    obstacle: Option<Error>,
}

/// Attributes of the group.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the group.
    name: String,
    /// Provider that inspected the group.
    provider: String,
    /// Whether the group is in the local account files.
    local: bool,
    /// GID; omitted if the group does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    /// Users that `/etc/group` lists as members.
    members: Vec<String>,
}

impl State for GroupState {
    fn ensure(&self) -> String {
        let ensure = if self.metadata.gid.is_some() { Ensure::Present } else { Ensure::Absent };
        ensure.word().to_owned()
    }
}

/// Steps to bring a group to the desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Create,
    ChangeNumber,
    Remove,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "created the group",
            Self::ChangeNumber => "updated the group",
            Self::Remove => "removed the group",
        })
    }
}

/// The `group` type.
pub(crate) struct Group;

impl ResourceType for Group {
    const NAME: &'static str = "group";
    const EXAMPLES: &'static [Example] = &[
        Example { title: "A group", manifest: "- group:\n    - deploy: {}\n" },
        Example {
            title: "A group with a number of its own, for files that several machines share",
            manifest: "- group:\n    - media:\n        gid: 2000\n",
        },
        Example { title: "No such group", manifest: "- group:\n    - games:\n        ensure: absent\n" },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "shadow",
        summary: "machines with `useradd` and its relatives in the search path.",
        make: |_| Shadow::new().map(Box::new),
    }];

    type Properties = Properties;
    type State = GroupState;
    type Action = Action;
    type Provider = Shadow;

    fn inspect(want: &Properties, on: &Shadow, cx: &Context) -> Result<GroupState, Error> {
        let database = on.database(cx)?;
        let name = want.name.as_str();
        let found = database.groups.get(name);
        let elsewhere = || {
            let account: Account = name.parse().ok()?;
            cx.host.users.group_id(&account)
        };
        let mut gid = found.map(|group| group.gid).or_else(elsewhere);
        match cx.predicted_account(AccountKind::Group, name) {
            Some(AccountLeft::Absent) => gid = None,
            Some(AccountLeft::Present(predicted)) => gid = gid.or(predicted).or(want.gid).or(Some(0)),
            None => {}
        }
        let metadata = Metadata {
            name: name.to_owned(),
            provider: "shadow".to_owned(),
            local: found.is_some() || gid.is_none(),
            gid,
            members: found.map(|group| group.members.clone()).unwrap_or_default(),
        };
        Ok(GroupState { obstacle: obstacle(want, &database, gid, cx), metadata })
    }

    fn compare(want: &Properties, have: &GroupState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        let metadata = &have.metadata;
        let (action, differences) = match (want.ensure, metadata.gid, want.gid) {
            (Ensure::Absent, Some(_), _) => (Action::Remove, Vec::new()),
            (Ensure::Present, None, _) => (Action::Create, Vec::new()),
            (Ensure::Present, Some(gid), Some(wanted)) if gid != wanted => {
                (Action::ChangeNumber, vec![Difference::between("gid", gid, wanted)])
            }
            (Ensure::Absent, None, _) | (Ensure::Present, Some(_), _) => return Ok(None),
        };
        if !metadata.local {
            return Err(not_local("group", &want.name));
        }
        match &have.obstacle {
            Some(obstacle) => Err(obstacle.clone()),
            None => Ok(Some(Change { action, differences, refreshes: false })),
        }
    }

    fn effects(want: &Properties, _: &GroupState, action: &Action, _: &Context) -> Effects {
        let left = match action {
            Action::Remove => AccountLeft::Absent,
            Action::Create | Action::ChangeNumber => AccountLeft::Present(want.gid),
        };
        Effects { groups: vec![AccountEffect { name: want.name.to_string(), left }], ..Effects::default() }
    }

    fn before(want: &Properties, have: &GroupState, _: &Action) -> Before {
        let ensure = if have.metadata.gid.is_some() { "present" } else { "absent" };
        let properties = json!({ "ensure": ensure, "gid": have.metadata.gid, "system": want.system });
        Before::resource(properties, &["gid"])
    }

    fn enact(
        want: &Properties,
        _: &GroupState,
        action: Action,
        on: &Shadow,
        cx: &Context,
    ) -> Result<GroupState, Error> {
        let numbered = |tool: Tool<'static>| match want.gid {
            Some(gid) => tool.option("--gid", gid),
            None => tool,
        };
        let tool = match action {
            Action::Create if want.system => numbered(Tool::new("groupadd").flag("--system")),
            Action::Create => numbered(Tool::new("groupadd")),
            Action::ChangeNumber => numbered(Tool::new("groupmod")),
            Action::Remove => Tool::new("groupdel"),
        };
        let result = tool.run(Some(want.name.as_str()), cx);
        on.forget(cx);
        result?;
        Self::inspect(want, on, cx)
    }
}

/// Returns the reason why the desired state cannot be reached.
fn obstacle(want: &Properties, database: &Database, gid: Option<u32>, cx: &Context) -> Option<Error> {
    match (want.ensure, want.gid, gid) {
        (Ensure::Present, Some(wanted), gid) if gid != Some(wanted) => {
            let other = database.group_with(wanted).filter(|other| *other != want.name.as_str())?;
            Some(Error::new(format!("the number {wanted} belongs to the group \"{other}\"")).on("gid"))
        }
        (Ensure::Absent, _, Some(gid)) => {
            let mut users = database.with_primary_group(gid);
            users.retain(|user| cx.predicted_account(AccountKind::User, user) != Some(AccountLeft::Absent));
            let first = users.first()?;
            let more = if users.len() > 1 { format!(" and {} more", users.len() - 1) } else { String::new() };
            Some(
                Error::new(format!("it is the first group of the user \"{first}\"{more}"))
                    .on("ensure")
                    .with_help("remove the user, or give it another group, with a resource before this one"),
            )
        }
        _ => None,
    }
}

/// Returns the error for an account of a directory service.
pub(super) fn not_local(what: &str, name: &AccountName) -> Error {
    Error::new(format!("the {what} \"{name}\" is not local: only the name service knows it"))
        .on("name")
        .with_help("change it where it is kept; ccm changes only the accounts in /etc")
}
