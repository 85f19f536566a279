//! The `package` type: installed packages and their versions.

mod action;
mod along;
mod apt;
mod command;
mod decision;
mod dependents;
mod dnf;
mod ensure;
mod error;
mod lists;
mod lock;
mod memory;
mod name;
mod packages;
mod provider;
mod refresh;
mod state;
#[cfg(test)]
mod tests;
mod undoing;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::undoing::Undoing;
use self::{
    action::{Action, Deed},
    apt::Apt,
    dnf::Dnf,
    ensure::Ensure,
    error::PackageError,
    name::PackageName,
    packages::{Member, Packages},
    refresh::Refresh,
    state::{Offer, PackageState},
};
use crate::{
    host::{files::Intent, platform::Platform},
    resource::{
        self, AnyMember, AnyState, Before, Behavior, Candidate, Change, Content, Context, Effects, Error,
        Example, Grouping, PackageEffect, PackageLeft, PathEffect, Pinned, PlannedChange, Provider,
        ResourceType, Survey, Trigger, Unknown, Watches,
    },
    vocabulary::{PlainName, package_version::Scheme},
};

/// Manages packages of the system's package manager: installed, in a given version, or removed.
///
/// Versions are written and ordered as the package manager writes and orders them. With dnf, `1.0` matches any release
/// of that version, and `1.0-1.el9` matches one release; an epoch counts if it is given. ccm also downgrades to a given
/// version. `latest` never downgrades.
///
/// ccm never prompts, and keeps configuration files that were changed on the machine. If another package manager is
/// running, ccm waits for a minute or for `timeout`. Neither a time limit nor a signal stops a package manager that ccm
/// started: ccm waits for it, and the report says so. ccm first completes operations of dpkg that were interrupted.
///
/// ccm reads the state of all packages of a manifest with one query. It installs or removes consecutive packages with
/// the same options together. If that fails, it tries each package separately.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Name of the package, with an architecture if it differs from that of the machine: `libc6:i386` for apt,
    /// `glibc.i686` for dnf. Letters, digits and `.` `_` `+` `:` `~` `-`, not beginning with `-`.
    #[schemars(with = "PlainName")]
    pub(crate) name: PackageName,
    /// Desired state: `present` (any version), `absent` (modified configuration files stay), `purged` (configuration
    /// files are removed, too; with dnf the same as `absent`), `latest` (the newest available version, never a
    /// downgrade), or a version.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// When to refresh the package index, at most once per run and only if a package has to be installed or `ensure` is
    /// `latest`. `auto`: if a repository configuration is newer than the index, if the index does not have the package,
    /// and for `latest` if the index is older than a day. An age such as `12h` replaces the day and holds for all
    /// packages that have to be installed. A dry run never refreshes the index, and reports if a real run would.
    #[serde(default)]
    pub(crate) refresh: Refresh,
    /// If true, the package is protected from changes by others: `apt-mark hold`, or the versionlock plugin of dnf. If
    /// not given, ccm does not change it, and a held package that would have to change is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<bool>,
    /// Options to pass to `apt-get` or `dnf` before the names, such as `--no-install-recommends`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<String>,
}

impl resource::Pinning for Properties {
    fn pin(
        &self,
        have: &AnyState,
        change: Option<&PlannedChange>,
        _: &Context,
    ) -> Result<Pinned, resource::Error> {
        let have: &PackageState = have.get();
        let chosen = match change.and_then(|change| change.action::<Action>().deed.as_ref()) {
            Some(deed @ (Deed::Install(_) | Deed::Upgrade(_) | Deed::Downgrade(_))) => installed(deed, have),
            None if self.ensure == Ensure::Latest => have.metadata.version.clone(),
            _ => None,
        };
        let properties = chosen.map(|version| ("ensure".to_owned(), version.into())).into_iter().collect();
        Ok(Pinned { properties, ..Pinned::default() })
    }
}

/// Returns the version that an action installs, if it is known.
fn installed(deed: &Deed, have: &PackageState) -> Option<String> {
    let candidate = match &have.standing.offer {
        Offer::Known { candidate, .. } => Some(candidate.as_str()),
        _ => None,
    };
    deed.exact().or(candidate).map(str::to_owned)
}

impl resource::Properties for Properties {
    fn pinning(&self) -> Option<&dyn resource::Pinning> {
        Some(self)
    }

    fn ensure(&self) -> String {
        self.ensure.to_string()
    }

    fn problems(&self) -> Vec<Error> {
        let is_gone = matches!(self.ensure, Ensure::Absent | Ensure::Purged);
        let problem = || PackageError::NothingToHold { ensure: self.ensure.to_string() }.into();
        (is_gone && self.hold == Some(true)).then(problem).into_iter().collect()
    }

    fn problems_with(&self, provider: Option<&str>) -> Vec<Error> {
        let (scheme, name) = match provider {
            Some("apt") => (Scheme::Debian, self.name.debian()),
            Some("dnf") => (Scheme::Rpm, self.name.rpm()),
            // Which one it will be, the machine decides.
            _ => return Vec::new(),
        };
        name.err().into_iter().chain(self.ensure.fault(scheme)).map(Error::from).collect()
    }

    fn watches(&self) -> Watches {
        Watches { packages: vec![self.name.to_string()], ..Watches::default() }
    }

    fn survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }

    fn grouping(&self) -> Option<&dyn Grouping> {
        Some(self)
    }
}

impl Survey for Properties {
    fn expect(&self, wanted: &[&dyn resource::Properties], on: &Provider) {
        let wanted: Vec<&Self> = wanted.iter().filter_map(|wanted| wanted.get()).collect();
        on.of::<Package>().expect(&wanted);
    }
}

impl Grouping for Properties {
    fn most(&self) -> usize {
        1024
    }

    fn enact_group(&self, group: &[AnyMember], on: &Provider, cx: &Context) -> Result<Vec<AnyState>, Error> {
        let members: Vec<Member> = group
            .iter()
            .filter_map(|&AnyMember { wanted, have, change }| {
                Some(Member { want: wanted.get()?, have: have.get(), action: change.action() })
            })
            .collect();
        let states = on.of::<Package>().enact(&members, cx)?;
        Ok(states.into_iter().map(AnyState::of).collect())
    }
}

fn native_provider() -> &'static str {
    match Platform::here().family.as_str() {
        "rhel" | "fedora" => "dnf",
        _ => "apt",
    }
}

/// The `package` type.
pub(crate) struct Package;

impl ResourceType for Package {
    const NAME: &'static str = "package";
    const EXAMPLES: &'static [Example] = &[
        Example { title: "A package in any version", manifest: "- package:\n    - nginx:\n" },
        Example {
            title: "Several packages, one of them always the newest and one without what it recommends",
            manifest: "- package:\n    - curl:\n    - ca-certificates: { ensure: latest }\n    - mariadb-server:\n        \
                       options: [\"--no-install-recommends\"]\n",
        },
        Example {
            title: "One version, kept from upgrades",
            manifest: "- package:\n    - postgresql-15:\n        ensure: \"15.14-0+deb12u1\"\n        hold: true\n",
        },
        Example {
            title: "A package that must not be there, nor its configuration",
            manifest: "- package:\n    - telnetd:\n        ensure: purged\n",
        },
        Example {
            title: "A package with its configuration and its service",
            manifest: "- package:\n    - nginx:\n- file:\n    - /etc/nginx/conf.d/site.conf:\n        source: site.conf\n        \
                       owner: root\n        group: root\n        mode: \"0644\"\n- service:\n    - nginx:\n        enable: true\n        \
                       subscribe: [\"package#nginx\", \"file#/etc/nginx/conf.d/site.conf\"]\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate {
            name: "apt",
            summary: "Debian, Ubuntu and relatives, with `apt-get` and `dpkg`.",
            make: |_| Apt::new().map(Packages::new).map(Box::new),
        },
        Candidate {
            name: "dnf",
            summary: "Fedora, Red Hat Enterprise Linux and relatives, with `dnf` and `rpm`.",
            make: |_| Dnf::new().map(Packages::new).map(Box::new),
        },
    ];
    const BEHAVIOR: Behavior = Behavior { native: Some(native_provider), ..Behavior::USUAL };

    type Properties = Properties;
    type State = PackageState;
    type Action = Action;
    type Provider = Packages;

    fn inspect(want: &Properties, on: &Packages, cx: &Context) -> Result<PackageState, Error> {
        Ok(on.inspect(want, cx)?)
    }

    fn compare(want: &Properties, have: &PackageState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        Ok(decision::compare(want, have)?)
    }

    fn effects(want: &Properties, have: &PackageState, action: &Action, _: &Context) -> Effects {
        let Some(deed) = &action.deed else { return Effects::default() };
        let left = match deed {
            Deed::Remove | Deed::Purge | Deed::PurgeRest => PackageLeft::Removed,
            Deed::Install(_) | Deed::Upgrade(_) | Deed::Downgrade(_) => {
                PackageLeft::Installed(installed(deed, have))
            }
        };
        // Files, users and services come and go with it.
        let packages = vec![PackageEffect { name: want.name.to_string(), left }];
        let removed = |path: &PathBuf| PathEffect::Operation {
            path: path.clone(),
            intent: Intent::Remove,
            sha256: None,
            content: Content::Kept,
        };
        let paths = have.configuration.iter().map(removed).collect();
        Effects { packages, paths, unknown: Unknown::Anything, ..Effects::default() }
    }

    fn before(want: &Properties, have: &PackageState, _: &Action) -> Before {
        undoing::before(have, want.hold.is_some())
    }

    fn enact(
        want: &Properties,
        have: &PackageState,
        action: Action,
        on: &Packages,
        cx: &Context,
    ) -> Result<PackageState, Error> {
        let mut states = on.enact(&[Member { want, have, action: &action }], cx)?;
        Ok(states.remove(0))
    }
}
