//! The `sysctl` type: kernel settings, now and at boot.

mod decision;
mod entries;
mod kernel;
mod key;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{
    entries::{Override, Stored},
    kernel::{Failure, LiveValue},
    key::Key,
};
use super::{
    existence::Existence as Ensure,
    live::{Live, ONLY},
    shared_file::{Rewrite, SharedFile},
};
use crate::{
    resource::{
        self, Before, Behavior, Candidate, Change, Context, Effects, Error, Example, Managed, ResourceType,
        State, Trigger, Watches,
    },
    vocabulary::{AbsolutePath, Raw},
};

/// Mode of a file of settings.
const FILE_MODE: u32 = 0o644;

/// Manages kernel settings: the value in `/proc/sys`, and the value that is set at boot.
///
/// ccm changes the live value first, and the stored value only if the kernel accepts it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the setting, with dots or slashes, such as `net.ipv4.ip_forward`.
    #[schemars(with = "String")]
    pub(crate) name: Key,
    /// Whether the value is set at boot. With `absent`, the live value stays until the next boot.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// The value. White space between numbers counts as one space; true and false are 1 and 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-argument" = true))]
    pub(crate) value: Option<Setting>,
    /// File with the stored value. Default: `/etc/sysctl.d/90-NAME.conf`. Other lines of the file stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<AbsolutePath>,
    /// If true, a setting that the kernel does not have is not an error, also at boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ignore_missing: bool,
    /// If false, only the stored value is managed.
    #[serde(default, skip_serializing_if = "Live::is_usual")]
    pub(crate) live: Live,
}

/// Value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct Setting(#[schemars(extend("type" = ["string", "number", "boolean"]))] String);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw(text) = Raw::deserialize(deserializer)?;
        if text.contains(|c: char| c.is_control() && c != '\t') {
            return Err(serde::de::Error::custom("a value cannot contain line breaks or control characters"));
        }
        Ok(Self(match text.as_str() {
            "true" => "1".to_owned(),
            "false" => "0".to_owned(),
            _ => entries::normalized(&text),
        }))
    }
}

impl Properties {
    fn file(&self) -> PathBuf {
        self.file.as_ref().map_or_else(|| self.name.default_file(), |file| file.as_path().to_owned())
    }

    fn value(&self) -> &str {
        self.value.as_ref().map(|Setting(value)| value.as_str()).unwrap_or_default()
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let is_missing = self.ensure == Ensure::Present && self.value.is_none();
        let problem = || Error::new("a setting needs a value").on("value").with_help("add `value: ...`");
        is_missing.then(problem).into_iter().collect()
    }

    fn watches(&self) -> Watches {
        // The kernel reports no changes of its settings.
        Watches {
            paths: vec![self.file()],
            completeness: if self.live.manages_live() {
                resource::Coverage::Poll
            } else {
                resource::Coverage::Whole
            },
            ..Watches::default()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        vec![Managed::Path(self.file())]
    }
}

/// The live value and the stored value of a setting.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SysctlState {
    /// Values of the setting.
    metadata: Metadata,
    #[serde(skip)]
    live: LiveValue,
    #[serde(skip)]
    stored: Option<Stored>,
    #[serde(skip)]
    file: SharedFile,
}

/// Values of the setting.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the setting.
    name: String,
    /// Provider that inspected the setting.
    provider: String,
    /// Value that the kernel has; omitted if it has no such setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<String>,
    /// Value that is set at boot; omitted if the file sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<String>,
    /// File with the stored value.
    file: String,
}

impl State for SysctlState {
    fn ensure(&self) -> String {
        let ensure = if self.stored.is_some() { Ensure::Present } else { Ensure::Absent };
        ensure.word().to_owned()
    }
}

/// Steps to bring a setting to the desired state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    /// The new live value.
    pub(super) set: Option<String>,
    /// The change of the file.
    pub(super) store: Option<Rewrite>,
    /// The live value that stays although no value is stored any more.
    pub(super) stays: Option<String>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let set = self.set.as_ref().map(|value| format!("set the live value to \"{value}\""));
        let stays = self.stays.as_ref().map_or_else(String::new, |value| {
            format!("; the live value \"{value}\" stays until the next boot")
        });
        let store = self.store.as_ref().map(|store| store.deed() + &stays);
        f.write_str(&set.into_iter().chain(store).collect::<Vec<_>>().join(". "))
    }
}

/// The `sysctl` type.
pub(crate) struct Sysctl;

impl ResourceType for Sysctl {
    const NAME: &'static str = "sysctl";
    const EXAMPLES: &'static [Example] = &[
        Example { title: "A router", manifest: "- sysctl:\n    - net.ipv4.ip_forward:\n        value: 1\n" },
        Example {
            title: "A range of ports, in a file with other settings",
            manifest: "- sysctl:\n    - net.ipv4.ip_local_port_range:\n        value: 15000 60999\n        file: /etc/sysctl.d/50-ports.conf\n",
        },
        Example {
            title: "The kernel's default from the next boot on",
            manifest: "- sysctl:\n    - vm.swappiness:\n        ensure: absent\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "procfs",
        summary: "`/proc/sys`, and files as `sysctl.d(5)` describes them.",
        make: |_| Ok(Box::new(())),
    }];

    const BEHAVIOR: Behavior = Behavior {
        canonical: Some(|name| Some(Key::try_from(name.to_owned()).ok()?.to_string())),
        ..Behavior::USUAL
    };

    type Properties = Properties;
    type State = SysctlState;
    type Action = Action;
    type Provider = ();

    fn inspect(want: &Properties, (): &(), cx: &Context) -> Result<SysctlState, Error> {
        let file = SharedFile::read(&want.file(), FILE_MODE, cx).map_err(|error| error.on("file"))?;
        let stored = entries::stored(file.text(), &want.name);
        let live = kernel::read(&want.name)?;
        if want.ensure == Ensure::Present && want.live.manages_stored() {
            if let Some(later) = entries::overridden(&file.path, &want.name, want.value()) {
                cx.warn(overridden(want, &file.path, &later));
            }
            let is_missing = matches!(live, LiveValue::Missing { .. }) && want.live.manages_live();
            if is_missing && !want.ignore_missing && cx.may_differ() {
                cx.assume(format!(
                    "the kernel has no setting {} yet; assuming that an earlier resource brings it",
                    want.name
                ));
            }
        }
        let metadata = Metadata {
            name: want.name.to_string(),
            provider: "procfs".to_owned(),
            live: live.value().map(str::to_owned),
            stored: stored.as_ref().map(|stored| stored.value.clone()),
            file: file.path.display().to_string(),
        };
        Ok(SysctlState { metadata, live, stored, file })
    }

    fn compare(want: &Properties, have: &SysctlState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        Ok(decision::compare(want, have))
    }

    fn preview(
        _: &Properties,
        _: &SysctlState,
        action: &Action,
        (): &(),
        _: &Context,
    ) -> Result<Option<String>, Error> {
        Ok(action.store.as_ref().and_then(Rewrite::diff))
    }

    fn simulate(
        want: &Properties,
        have: &SysctlState,
        _: &Action,
        (): &(),
        cx: &Context,
    ) -> Result<(), Error> {
        if cx.may_differ() { Ok(()) } else { require(want, have) }
    }

    fn effects(_: &Properties, _: &SysctlState, action: &Action, _: &Context) -> Effects {
        Effects {
            paths: action.store.as_ref().map(Rewrite::effects).unwrap_or_default(),
            ..Effects::default()
        }
    }

    fn before(_: &Properties, have: &SysctlState, action: &Action) -> Before {
        match (&action.set, have.live.value()) {
            (Some(_), Some(value)) => {
                Before::paths_and_resource(json!({ "value": value, "live": ONLY }), &["live"])
            }
            _ => Before::Paths,
        }
    }

    fn enact(
        want: &Properties,
        have: &SysctlState,
        action: Action,
        on: &(),
        cx: &Context,
    ) -> Result<SysctlState, Error> {
        require(want, have)?;
        let mut unchangeable = None;
        if let Some(value) = &action.set {
            match kernel::set(&want.name, value) {
                Ok(()) => {}
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Unchangeable(error)) => unchangeable = Some(error),
            }
        }
        if let Some(store) = &action.store {
            store.make(cx)?;
        }
        unchangeable.map_or_else(|| Self::inspect(want, on, cx), Err)
    }
}

/// Fails if the kernel does not have the setting and has to.
fn require(want: &Properties, have: &SysctlState) -> Result<(), Error> {
    match &have.live {
        LiveValue::Missing { help }
            if want.ensure == Ensure::Present && want.live.manages_live() && !want.ignore_missing =>
        {
            Err(kernel::unknown(&want.name, help))
        }
        _ => Ok(()),
    }
}

fn overridden(want: &Properties, file: &Path, later: &Override) -> String {
    format!(
        "{}:{} sets {} to \"{}\" at boot, after {}; remove that line, or set `file` to a file that is read later",
        later.path.display(),
        later.line,
        want.name,
        later.value,
        file.display()
    )
}
