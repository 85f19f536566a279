//! The `user` type: properties and decision.

mod decision;
mod enact;
mod state;
mod undoing;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::state::UserState;
pub(crate) use self::undoing::Undoing;
use super::{
    Ensure,
    authorized_keys::{AuthorizedKey, Others},
    name::AccountName,
    shadow::Shadow,
};
use crate::{
    host::files::Intent,
    resource::{
        self, AccountEffect, AccountLeft, Before, Candidate, Change, Content, Context, Effects, Error,
        Example, Managed, PathEffect, ResourceType, Trigger, Watches,
    },
    vocabulary::{AbsolutePath, Account, Secret},
};

/// Manages local users in `/etc/passwd`: attributes, group membership, password and SSH keys.
///
/// Properties that are not given stay unchanged; the system chooses them for a new user. ccm does not change users of a
/// directory service: if such a user is not in the desired state, the resource fails.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property that a user writes as true or false")]
pub(crate) struct Properties {
    /// Name of the user: letters, digits, `_`, `.` and `-`, at most 32 characters.
    pub(crate) name: AccountName,
    /// Whether the user exists.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// UID of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) uid: Option<u32>,
    /// Primary group, by name or GID. The group must exist. Default for a new user: the group with the name of the
    /// user, which ccm creates if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) group: Option<Account>,
    /// Supplementary groups, by name. The groups must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) groups: Option<Vec<AccountName>>,
    /// Whether the user can be in supplementary groups that are not in `groups`.
    #[serde(default)]
    pub(crate) membership: Membership,
    /// Home directory. Without `manage_home`, ccm only sets the attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) home: Option<AbsolutePath>,
    /// If true, ccm creates the home directory (from the skeleton directory, owned by the user) and moves it if `home`
    /// changes. With `ensure: absent`, ccm removes it only with `force: true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) manage_home: bool,
    /// Login shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) shell: Option<AbsolutePath>,
    /// Full name or purpose of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) comment: Option<String>,
    /// If true, a new user gets a UID from the range for system users.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) system: bool,
    /// Password as a crypt hash, such as `openssl passwd -6` prints. `!` or `*` disables password logins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true, "x-file-flag" = "password-file"))]
    pub(crate) password: Option<Secret>,
    /// If true, the password is locked: password logins fail, but SSH keys still work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locked: Option<bool>,
    /// Day from which the account is expired, such as `2027-01-31`, or `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) expires: Option<Expiry>,
    /// SSH keys that can log in as the user: lines of `.ssh/authorized_keys` in the home directory. Comments and other
    /// keys in the file stay. The file belongs to the user with mode 0600, in a `.ssh` directory with mode 0700.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authorized_keys: Option<Vec<AuthorizedKey>>,
    /// If true, ccm removes keys that are not in `authorized_keys`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) authorized_keys_only: bool,
    /// If true, `ensure: absent` with `manage_home` also removes the home directory and the mail of the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
}

/// Whether a list of groups is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Membership {
    /// The user is at least in these groups.
    #[default]
    Minimum,
    /// The user is in exactly these groups.
    Exact,
}

/// Day from which an account is expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, with = "String")]
pub(crate) enum Expiry {
    Never,
    /// Days since 1970-01-01.
    Day(i64),
}

const EPOCH: jiff::civil::Date = jiff::civil::date(1970, 1, 1);

impl TryFrom<String> for Expiry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let wrong = || format!("\"{text}\" is not a day such as 2027-01-31, and not `never`");
        let date: jiff::civil::Date = text.parse().map_err(|_| wrong())?;
        let days = date.since(EPOCH).map_err(|_| wrong())?.get_days();
        if days < 0 { Err(wrong()) } else { Ok(Self::Day(days.into())) }
    }
}

impl From<Expiry> for String {
    fn from(expiry: Expiry) -> Self {
        expiry.to_string()
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Day(days) => match EPOCH.checked_add(jiff::Span::new().days(*days)) {
                Ok(date) => write!(f, "{date}"),
                Err(_) => write!(f, "day {days}"),
            },
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let mut problems = Vec::new();
        if self.ensure == Ensure::Absent && self.name.as_str() == "root" {
            problems.push(Error::new("the user root cannot be removed").on("ensure"));
        }
        if self.authorized_keys_only && self.authorized_keys.is_none() {
            let help = "give the keys that stay; an empty list removes all";
            problems.push(
                Error::new("`authorized_keys_only` needs `authorized_keys`")
                    .on("authorized_keys_only")
                    .with_help(help),
            );
        }
        if self.membership == Membership::Exact && self.groups.is_none() {
            problems.push(Error::new("`membership: exact` needs `groups`").on("membership"));
        }
        problems
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        self.password.iter().map(|password| Cow::Borrowed(password.reveal())).collect()
    }

    fn problems_with(&self, _: Option<&str>) -> Vec<Error> {
        let mut problems = Vec::new();
        if self.comment.as_ref().is_some_and(|comment| comment.contains([':', '\n'])) {
            problems.push(Error::new("a comment cannot contain a colon or a line break").on("comment"));
        }
        let password = self.password.as_ref().map(Secret::reveal);
        if password.is_some_and(|password| password.is_empty() || password.contains([':', '\n', ' '])) {
            problems.push(
                Error::new("it is not a hash of crypt")
                    .on("password")
                    .with_help("make one with `openssl passwd -6`, or write \"!\" for none"),
            );
        } else if password.is_some_and(|password| !is_hash(password)) {
            problems.push(
                Error::new("it is not a hash of crypt, and is not taken for a password in clear")
                    .on("password")
                    .with_help("make one with `openssl passwd -6`"),
            );
        }
        problems
    }

    fn watches(&self) -> Watches {
        let keys = self.home.as_ref().filter(|_| self.authorized_keys.is_some());
        Watches {
            users: vec![self.name.to_string()],
            groups: self.groups.iter().flatten().map(ToString::to_string).collect(),
            paths: keys.map(|home| super::authorized_keys::path(&home.to_string())).into_iter().collect(),
            ..Watches::default()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        if self.authorized_keys.is_none() {
            return Vec::new();
        }
        let name = self.name.to_string();
        let usual = if name == "root" { "/root".to_owned() } else { format!("/home/{name}") };
        let home = self.home.as_ref().map_or(usual, ToString::to_string);
        vec![Managed::Path(super::authorized_keys::path(&home))]
    }
}

/// Returns whether a string is a valid password field of `/etc/shadow`.
fn is_hash(text: &str) -> bool {
    let bare = text.trim_start_matches('!');
    let traditional =
        bare.len() == 13 && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b"./".contains(&b));
    bare.is_empty()
        || bare == "*"
        || bare == "x"
        || bare.starts_with('$')
        || bare.starts_with('_')
        || traditional
}

impl Properties {
    fn other_keys(&self) -> Others {
        if self.authorized_keys_only { Others::Go } else { Others::Stay }
    }
}

/// Steps to bring a user to the desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Create,
    Update(Vec<Part>),
    Remove,
}

/// Attribute of a user to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Uid,
    Group,
    /// The primary group with the name of the user does not exist.
    MissingGroup,
    Groups,
    Home,
    MissingHome,
    Shell,
    Comment,
    Password,
    Expires,
    Keys,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "created the user",
            Self::Update(_) => "updated the user",
            Self::Remove => "removed the user",
        })
    }
}

/// The `user` type.
pub(crate) struct User;

impl ResourceType for User {
    const NAME: &'static str = "user";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A user who logs in with a key",
            manifest: "- user:\n    - ann:\n        comment: Ann Example\n        shell: /bin/bash\n        \
                       manage_home: true\n        authorized_keys:\n          - ssh-ed25519 \
                       AAAAC3NzaC1lZDI1NTE5AAAAIBPWOQ2r2JxPnzWQe9eDVvXFSmvhpbb9oBMk8mF6cnVv ann@laptop\n",
        },
        Example {
            title: "A service's own user, in a group that another resource made",
            manifest: "- group:\n    - app:\n        system: true\n- user:\n    - app:\n        system: true\n        \
                       group: app\n        home: /var/lib/app\n        shell: /usr/sbin/nologin\n",
        },
        Example {
            title: "Exactly these groups, and a password that comes from the environment",
            manifest: "- user:\n    - ops:\n        groups: [adm, staff]\n        membership: exact\n        \
                       password: \"{{ Environ.OPS_HASH ?? '!' }}\"\n",
        },
        Example {
            title: "A user who is gone, with everything in the home directory",
            manifest: "- user:\n    - bob:\n        ensure: absent\n        manage_home: true\n        force: true\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "shadow",
        summary: "machines with `useradd` and its relatives in the search path.",
        make: |_| Shadow::new().map(Box::new),
    }];

    type Properties = Properties;
    type State = UserState;
    type Action = Action;
    type Provider = Shadow;

    fn inspect(want: &Properties, on: &Shadow, cx: &Context) -> Result<UserState, Error> {
        state::inspect(want, on, cx)
    }

    fn compare(want: &Properties, have: &UserState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have)
    }

    fn effects(want: &Properties, have: &UserState, action: &Action, _: &Context) -> Effects {
        let name = want.name.to_string();
        let account = |left| vec![AccountEffect { name: name.clone(), left }];
        let uid = want.uid.or(have.metadata.uid);
        // The home is created, moved or removed. Its contents afterwards are unknown.
        let concerns_home = match action {
            Action::Create => want.manage_home,
            Action::Update(parts) => {
                want.manage_home && parts.iter().any(|part| matches!(part, Part::Home | Part::MissingHome))
            }
            Action::Remove => want.manage_home && want.force && have.home_exists,
        };
        let home = want.home.as_ref().map(|home| home.as_path().to_owned());
        let home = home.or_else(|| have.metadata.home.as_ref().map(PathBuf::from));
        let home = home.unwrap_or_else(|| Path::new("/home").join(&name));
        let gid = have.wanted_gid.or(have.metadata.gid).unwrap_or_default();
        let home = if *action == Action::Remove {
            let (path, intent) = (home, Intent::RemoveTree);
            PathEffect::Operation { path, intent, sha256: None, content: Content::Kept }
        } else {
            PathEffect::Appears { path: home, uid: uid.unwrap_or_default(), gid }
        };
        let makes_group = *action == Action::Create && want.group.is_none();
        let left = if *action == Action::Remove { AccountLeft::Absent } else { AccountLeft::Present(uid) };
        Effects {
            users: account(left),
            groups: if makes_group { account(AccountLeft::Present(None)) } else { Vec::new() },
            paths: concerns_home.then_some(home).into_iter().collect(),
            ..Effects::default()
        }
    }

    fn before(want: &Properties, have: &UserState, _: &Action) -> Before {
        have.before(want)
    }

    fn enact(
        want: &Properties,
        have: &UserState,
        action: Action,
        on: &Shadow,
        cx: &Context,
    ) -> Result<UserState, Error> {
        let result = enact::enact(want, have, &action, on, cx);
        on.forget(cx);
        result?;
        state::inspect(want, on, cx)
    }
}
