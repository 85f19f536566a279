//! The `cron` type: entries in `/etc/cron.d` and in crontabs.

mod crontab;
mod schedule;
mod table;

use std::{collections::BTreeMap, fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{
    schedule::Schedule,
    table::{Entry, Found},
};
use super::{
    content_diff::{Old, between},
    existence::Existence as Ensure,
    shared_file::{Rewrite, SharedFile},
};
use crate::{
    host::files::{Attributes, Intent},
    resource::{
        self, AccountKind, Before, Candidate, Change, Common, Content, Context, Coverage, Difference,
        Effects, Error, Example, Managed, PathEffect, ResourceType, State, Trigger, Warning, Watches,
    },
    vocabulary::{Account, OneLine},
};

/// cron ignores files in `/etc/cron.d` with another owner, and files that others can write to.
const ATTRIBUTES: Attributes = Attributes { uid: 0, gid: 0, mode: 0o644 };
const CRONTAB_MODE: u32 = 0o600;

/// Manages commands that cron runs: files in `/etc/cron.d`, or entries in the crontab of a user.
///
/// ccm keeps the other lines of a crontab.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the entry: letters, digits, `_` and `-`.
    #[schemars(with = "String")]
    pub(crate) name: Label,
    /// Whether the entry exists.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// When the command runs: five fields as in `crontab(5)`, or `@reboot`, `@hourly`, `@daily`, `@weekly`, `@monthly` or `@yearly`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<Schedule>,
    /// Command line for the shell. ccm writes `%` as `\%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<OneLine>,
    /// User that runs the command.
    #[serde(default = "root", skip_serializing_if = "is_root")]
    pub(crate) user: Account,
    /// Environment variables of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) environment: BTreeMap<String, OneLine>,
    /// Where the entry is.
    #[serde(default, skip_serializing_if = "Target::is_usual")]
    pub(crate) target: Target,
}

fn root() -> Account {
    "root".parse().expect("a name")
}

fn is_root(user: &Account) -> bool {
    user.as_str() == "root"
}

/// Name of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Label(String);

impl TryFrom<String> for Label {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match text.chars().find(|c| !is_allowed(*c)) {
            None => Ok(Self(text)),
            Some('.') => {
                Err(format!("the name {text:?} contains a dot: cron ignores files with a dot in their name"))
            }
            Some(c) => Err(format!("the name {text:?} contains {c:?}: use letters, digits, _ and -")),
        }
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum Target {
    /// In the file `/etc/cron.d/NAME`.
    #[default]
    #[serde(rename = "cron.d")]
    Directory,
    /// In the crontab of the user, below the line `# ccm: NAME`.
    #[serde(rename = "crontab")]
    Crontab,
}

impl Target {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_usual(&self) -> bool {
        *self == Self::Directory
    }
}

impl Properties {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/etc/cron.d/{}", self.name.0))
    }

    fn entry(&self) -> Entry {
        let text =
            |line: &Option<OneLine>| line.as_ref().map(|line| line.as_str().to_owned()).unwrap_or_default();
        Entry {
            label: self.name.0.clone(),
            schedule: self.schedule.as_ref().map(|schedule| schedule.as_str().to_owned()).unwrap_or_default(),
            command: text(&self.command),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), value.to_string()))
                .collect(),
            user: (self.target == Target::Directory).then(|| self.user.as_str().to_owned()),
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let is_name = |name: &String| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let wrong = self.environment.keys().find(|name| !is_name(name));
        let wrong = wrong.map(|name| {
            Error::new(format!("{name:?} is not the name of an environment variable")).on("environment")
        });
        let is_present = self.ensure == Ensure::Present;
        let missing = |property, is_missing: bool| {
            (is_present && is_missing)
                .then(|| Error::new(format!("an entry needs a {property}")).on(property))
        };
        let schedule = missing("schedule", self.schedule.is_none());
        let command = missing("command", self.command.is_none());
        schedule.into_iter().chain(command).chain(wrong).collect()
    }

    fn warnings(&self, _: &Common) -> Vec<Warning> {
        let is_escaped = self.command.as_ref().is_some_and(|command| command.as_str().contains("\\%"));
        let warning = || Warning {
            id: "escaped-percent",
            message: "the command contains \\%, and ccm escapes % itself".to_owned(),
            property: Some("command"),
            help: Some("write % without a backslash".to_owned()),
        };
        is_escaped.then(warning).into_iter().collect()
    }

    fn watches(&self) -> Watches {
        let file = match self.target {
            Target::Directory => Some(self.path()),
            Target::Crontab => crontab::file(&self.user),
        };
        let completeness = if file.is_some() { Coverage::Whole } else { Coverage::Poll };
        let users = vec![self.user.as_str().to_owned()];
        Watches { paths: file.into_iter().collect(), users, completeness, ..Watches::default() }
    }

    fn manages(&self) -> Vec<Managed> {
        match self.target {
            Target::Directory => vec![Managed::Path(self.path())],
            Target::Crontab => Vec::new(),
        }
    }
}

/// An entry of cron.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CronState {
    /// Details of the entry.
    metadata: Metadata,
    #[serde(skip)]
    found: Option<Found>,
    #[serde(skip)]
    table: Table,
}

/// Details of the entry.
#[derive(Debug, Serialize, JsonSchema)]
struct Metadata {
    /// Name of the entry.
    name: String,
    /// Provider that inspected the entry.
    provider: String,
    /// File in `/etc/cron.d`, or `crontab`.
    target: String,
    /// User of the entry.
    user: String,
    /// Schedule of the entry; omitted if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    /// Command as it is in the table; omitted if the entry does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// Environment variables of an entry in `/etc/cron.d`.
    environment: BTreeMap<String, String>,
}

/// The text in which the entry is.
#[derive(Debug)]
enum Table {
    File(SharedFile),
    Crontab { text: Option<String>, file: Option<PathBuf> },
}

impl State for CronState {
    fn ensure(&self) -> String {
        let exists = match &self.table {
            Table::File(file) => file.text.is_some(),
            Table::Crontab { .. } => self.found.is_some(),
        };
        let ensure = if exists { Ensure::Present } else { Ensure::Absent };
        ensure.word().to_owned()
    }
}

/// The change of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    File(Rewrite),
    Crontab { user: Account, old: String, new: String, verb: &'static str },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File(rewrite) => f.write_str(&rewrite.deed()),
            Self::Crontab { user, verb, .. } => write!(f, "{verb} the crontab of {}", user.as_str()),
        }
    }
}

/// The `cron` type.
pub(crate) struct Cron;

impl ResourceType for Cron {
    const NAME: &'static str = "cron";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A command at night",
            manifest: "- cron:\n    - backup:\n        schedule: 30 2 * * *\n        command: /usr/local/bin/backup --date $(date +%F)\n",
        },
        Example {
            title: "An entry in the crontab of a user, with a variable",
            manifest: "- cron:\n    - fetch-news:\n        schedule: \"*/15 * * * mon-fri\"\n        command: fetch-news\n        user: www-data\n        target: crontab\n        environment:\n          LANG: C.UTF-8\n",
        },
        Example { title: "No such entry", manifest: "- cron:\n    - old-report:\n        ensure: absent\n" },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "cron",
        summary: "`/etc/cron.d`, and the program `crontab`.",
        make: |_| Ok(Box::new(())),
    }];

    type Properties = Properties;
    type State = CronState;
    type Action = Action;
    type Provider = ();

    fn inspect(want: &Properties, (): &(), cx: &Context) -> Result<CronState, Error> {
        if want.ensure == Ensure::Present {
            cx.user_id(&want.user)
                .ok_or_else(|| Error::unknown_account(AccountKind::User, &want.user).on("user"))?;
            if !crontab::has_daemon() {
                cx.warn("no cron daemon is installed, so nothing runs the command");
            }
        }
        let (found, table, target) = match want.target {
            Target::Directory => {
                let file = SharedFile::read(&want.path(), ATTRIBUTES.mode, cx)?.requiring(ATTRIBUTES);
                let target = file.path.display().to_string();
                (table::only_entry(file.text()), Table::File(file), target)
            }
            Target::Crontab => {
                crontab::permitted(&want.user)?;
                let text = crontab::read(&want.user, cx)?;
                let found = table::labelled(text.as_deref().unwrap_or_default(), &want.name.0);
                let file = crontab::file(&want.user);
                (found, Table::Crontab { text, file }, "crontab".to_owned())
            }
        };
        let metadata = Metadata {
            name: want.name.0.clone(),
            provider: "cron".to_owned(),
            target,
            user: found
                .as_ref()
                .and_then(|found| found.user.clone())
                .unwrap_or_else(|| want.user.as_str().to_owned()),
            schedule: found.as_ref().map(|found| found.schedule.clone()),
            command: found.as_ref().map(|found| found.command.clone()),
            environment: found.as_ref().map(|found| found.environment.clone()).unwrap_or_default(),
        };
        Ok(CronState { metadata, found, table })
    }

    fn compare(want: &Properties, have: &CronState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        let entry = want.entry();
        let is_as = have.found.as_ref().is_some_and(|found| entry.is_as(found));
        let action = match (&have.table, want.ensure) {
            (Table::File(file), Ensure::Present) => {
                let text = if is_as { file.text().to_owned() } else { table::file_text(file.text(), &entry) };
                file.become_text(Some(text)).map(Action::File)
            }
            (Table::File(file), Ensure::Absent) => file.become_text(None).map(Action::File),
            (Table::Crontab { text, .. }, ensure) => {
                let old = text.clone().unwrap_or_default();
                let new = match ensure {
                    Ensure::Present if is_as => old.clone(),
                    Ensure::Present => table::with_entry(&old, &entry),
                    Ensure::Absent => table::without_entry(&old, &want.name.0),
                };
                let verb = match ensure {
                    Ensure::Absent => "removed the entry from",
                    Ensure::Present if have.found.is_some() => "updated the entry in",
                    Ensure::Present => "added the entry to",
                };
                let user = want.user.clone();
                (new != old).then_some(Action::Crontab { user, old, new, verb })
            }
        };
        let differences = match (&have.found, want.ensure) {
            (Some(found), Ensure::Present) => differences(&entry, found, &have.table),
            _ => Vec::new(),
        };
        Ok(action.map(|action| Change { action, differences, refreshes: false }))
    }

    fn preview(
        _: &Properties,
        _: &CronState,
        action: &Action,
        (): &(),
        _: &Context,
    ) -> Result<Option<String>, Error> {
        Ok(match action {
            Action::File(rewrite) => rewrite.diff(),
            Action::Crontab { user, old, new, .. } => {
                let old = Old::Bytes(old.clone().into_bytes());
                between(&format!("crontab of {}", user.as_str()), &old, Some(new.as_bytes()))
            }
        })
    }

    fn effects(_: &Properties, have: &CronState, action: &Action, _: &Context) -> Effects {
        let paths = match (action, &have.table) {
            (Action::File(rewrite), _) => rewrite.effects(),
            (Action::Crontab { .. }, Table::Crontab { file: Some(file), .. }) => {
                vec![PathEffect::Operation {
                    path: file.clone(),
                    intent: Intent::Write(Attributes::own(CRONTAB_MODE)),
                    sha256: None,
                    content: Content::Unknown,
                }]
            }
            (Action::Crontab { .. }, _) => Vec::new(),
        };
        Effects { paths, ..Effects::default() }
    }

    fn before(want: &Properties, have: &CronState, _: &Action) -> Before {
        match (&have.table, &have.found) {
            (Table::File(_) | Table::Crontab { file: Some(_), .. }, _) => Before::Paths,
            (Table::Crontab { .. }, None) => {
                let properties = json!({ "ensure": "absent", "user": want.user, "target": want.target });
                Before::resource(properties, &["schedule", "command"])
            }
            (Table::Crontab { .. }, Some(Found { schedule, command, .. })) => {
                let properties = json!({
                    "schedule": schedule,
                    "command": command,
                    "user": want.user,
                    "target": want.target,
                });
                Before::resource(properties, &["schedule", "command"])
            }
        }
    }

    fn enact(
        want: &Properties,
        _: &CronState,
        action: Action,
        on: &(),
        cx: &Context,
    ) -> Result<CronState, Error> {
        match action {
            Action::File(rewrite) => rewrite.make(cx)?,
            Action::Crontab { user, new, .. } => crontab::write(&user, &new, cx)?,
        }
        Self::inspect(want, on, cx)
    }
}

fn differences(entry: &Entry, found: &Found, table: &Table) -> Vec<Difference> {
    let mut differences = Vec::new();
    if found.schedule != entry.schedule {
        differences.push(Difference::between("schedule", &found.schedule, &entry.schedule));
    }
    if found.user != entry.user {
        let name = |user: &Option<String>| user.clone().unwrap_or_default();
        differences.push(Difference::between("user", name(&found.user), name(&entry.user)));
    }
    if found.command != table::escaped(&entry.command) {
        differences.push(Difference::of("command"));
    }
    if entry.user.is_some() && found.environment != entry.environment {
        differences.push(Difference::of("environment"));
    }
    if matches!(table, Table::File(file) if file.has_wrong_attributes()) {
        differences.push(Difference::of("mode"));
    }
    differences
}
