//! Undo of a change of a package: the earlier version from a repository or the package cache, without the packages that were
//! installed together with it, and with the configuration files that were removed with it.

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    Package,
    action::{Action, Deed, Target, Verb},
    along::Along,
    decision,
    ensure::Ensure,
    error::PackageError,
    name::PackageName,
    packages::{Member, Packages},
    provider::{Holds, Item, Needed, Transaction},
    state::PackageState,
};
use crate::{
    resource::{
        self, Before, Candidate, Change, Context, Difference, Effects, Error, ErrorKind, Example,
        PackageEffect, PackageLeft, ResourceType, State, Trigger, Unknown, Watches,
    },
    types::restore::{self, Restore, RestoreState},
    vocabulary::PlainName,
};

/// A package that is brought back to an earlier state.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    #[schemars(with = "PlainName")]
    pub(crate) name: PackageName,
    /// The earlier state: a version or `absent`.
    before: super::Properties,
    /// The state after the change.
    #[serde(default)]
    left: Option<Left>,
    /// Configuration files that the change removed.
    files: restore::Properties,
    /// If true, a package that was changed since is restored, too.
    #[serde(default)]
    force: bool,
}

/// The state that a change left.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Left {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    installed_along: Vec<String>,
    #[serde(default)]
    removed_along: Vec<String>,
}

/// The present state, and that of other packages.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UndoingState {
    #[serde(flatten)]
    package: PackageState,
    #[serde(skip)]
    files: RestoreState,
    #[serde(skip)]
    others: Others,
}

/// Other packages that the change concerned.
#[derive(Debug, Default)]
struct Others {
    /// A package that needs the package.
    needed_by: Option<String>,
    /// Packages that were installed along and that nothing else needs.
    unneeded: Vec<PackageName>,
    /// Packages that were removed along, with their versions.
    missing: Vec<(PackageName, String)>,
    /// File of the earlier version in the package cache.
    cached: Option<PathBuf>,
}

/// Steps that bring a package back.
#[derive(Debug)]
pub(crate) struct UndoingAction {
    package: Option<Action>,
    files: bool,
}

/// The state to restore after a change of a package.
pub(super) fn before(have: &PackageState, has_hold: bool) -> Before {
    let version = have.metadata.version.as_deref();
    let hold = have.metadata.extended.hold.filter(|_| has_hold && version.is_some());
    let properties = json!({ "ensure": version.unwrap_or("absent"), "hold": hold });
    Before::resource(properties, &["version", "installed_along", "removed_along"]).with_paths()
}

impl State for UndoingState {
    fn ensure(&self) -> String {
        self.package.ensure()
    }
}

impl fmt::Display for UndoingAction {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.package {
            Some(action) => action.fmt(f),
            None => f.write_str("restored the configuration"),
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.before.ensure.to_string()
    }

    fn watches(&self) -> Watches {
        Watches::default()
    }
}

impl Properties {
    fn left(&self) -> &Left {
        static NOTHING: Left = Left { version: None, installed_along: Vec::new(), removed_along: Vec::new() };
        self.left.as_ref().unwrap_or(&NOTHING)
    }

    fn is_as_left(&self, have: &PackageState) -> bool {
        self.force || self.left.as_ref().is_none_or(|left| left.version == have.metadata.version)
    }

    /// Decides what to do with the package itself.
    fn decide(&self, have: &UndoingState) -> Result<Option<Change<Action>>, Error> {
        let change = match decision::compare(&self.before, &have.package) {
            Err(error) if error.is_lack() => {
                let Ensure::Version(version) = &self.before.ensure else { return Err(error.into()) };
                if have.others.cached.is_none() {
                    let (path, reason) = (format!("package#{}", self.name), error.to_string());
                    return Err(ErrorKind::NotKept { path, reason }.into());
                }
                Some(install_cached(version, &have.package))
            }
            other => other?,
        };
        let Some(change) = change else { return Ok(None) };
        if !self.is_as_left(&have.package) {
            return Err(ErrorKind::ChangedSince { path: format!("package#{}", self.name) }.into());
        }
        let needed_by = have.others.needed_by.as_ref();
        match needed_by.filter(|_| change.action.deed == Some(Deed::Remove)) {
            Some(by) => Err(ErrorKind::StillInUse {
                what: format!("package#{}", self.name),
                reason: format!("the package `{by}` needs it"),
            }
            .into()),
            None => Ok(Some(change)),
        }
    }
}

/// Decides how to install an earlier version from the package cache.
fn install_cached(version: &str, have: &PackageState) -> Change<Action> {
    let present = have.metadata.version.as_deref();
    let target = Target::Version { wanted: version.to_owned(), exact: None };
    let is_older =
        present.is_some_and(|present| have.standing.scheme.order_to_wanted(present, version).is_gt());
    let deed = if is_older { Deed::Downgrade(target) } else { Deed::Install(target) };
    let differences = vec![Difference::between("ensure", present.unwrap_or("absent"), version)];
    Change { action: Action { deed: Some(deed), hold: None }, differences, refreshes: false }
}

/// Undo of a package.
pub(crate) struct Undoing;

impl ResourceType for Undoing {
    const NAME: &'static str = Package::NAME;
    const EXAMPLES: &'static [Example] = &[];
    const PROVIDERS: &'static [Candidate<Self>] = &[
        Candidate { name: "apt", summary: "apt.", make: Package::PROVIDERS[0].make },
        Candidate { name: "dnf", summary: "dnf.", make: Package::PROVIDERS[1].make },
    ];
    const BEHAVIOR: resource::Behavior = Package::BEHAVIOR;

    type Properties = Properties;
    type State = UndoingState;
    type Action = UndoingAction;
    type Provider = Packages;

    fn inspect(want: &Properties, on: &Packages, cx: &Context) -> Result<UndoingState, Error> {
        let package = on.inspect(&want.before, cx)?;
        let others = on.others(want, &package, cx)?;
        Ok(UndoingState { package, files: Restore::inspect(&want.files, &(), cx)?, others })
    }

    fn compare(
        want: &Properties,
        have: &UndoingState,
        trigger: Trigger,
    ) -> Result<Option<Change<UndoingAction>>, Error> {
        let package = want.decide(have)?;
        let files = match Restore::compare(&want.files, &have.files, trigger) {
            // The package comes back in any case. Then the files are compared again.
            Err(_) if package.is_some() => None,
            other => other?,
        };
        let has_files = files.is_some();
        let (action, mut differences) = match package {
            Some(change) => (Some(change.action), change.differences),
            None => (None, Vec::new()),
        };
        differences.extend(files.into_iter().flat_map(|files| files.differences));
        let action = UndoingAction { package: action, files: has_files };
        Ok((action.package.is_some() || has_files).then_some(Change {
            action,
            differences,
            refreshes: false,
        }))
    }

    fn effects(want: &Properties, _: &UndoingState, action: &UndoingAction, _: &Context) -> Effects {
        let mut effects = Effects::default();
        if let Some(deed) = action.package.as_ref().and_then(|action| action.deed.as_ref()) {
            let left = match deed {
                Deed::Remove | Deed::Purge | Deed::PurgeRest => PackageLeft::Removed,
                _ => PackageLeft::Installed(deed.exact().map(str::to_owned)),
            };
            effects.packages = vec![PackageEffect { name: want.name.to_string(), left }];
            effects.unknown = Unknown::Anything;
        }
        effects.paths = if action.files { want.files.effects() } else { Vec::new() };
        effects
    }

    fn before(want: &Properties, have: &UndoingState, _: &UndoingAction) -> Before {
        before(&have.package, want.before.hold.is_some())
    }

    fn enact(
        want: &Properties,
        have: &UndoingState,
        action: UndoingAction,
        on: &Packages,
        cx: &Context,
    ) -> Result<UndoingState, Error> {
        let along = action.package.as_ref().map(|action| on.undo(want, have, action, cx)).transpose()?;
        if action.files {
            // The package brings its own versions of the files.
            want.files.restore_now(cx)?;
        }
        let mut left = Self::inspect(want, on, cx)?;
        if let Some(along) = along {
            along.note(&mut left.package.metadata);
        }
        Ok(left)
    }
}

impl Packages {
    /// Inspects other packages, if the package has to change.
    fn others(&self, want: &Properties, have: &PackageState, cx: &Context) -> Result<Others, PackageError> {
        let on = self.provider.as_ref();
        let decided = decision::compare(&want.before, have);
        let mut others = Others::default();
        if let (Err(error), Ensure::Version(version)) = (&decided, &want.before.ensure)
            && error.is_lack()
        {
            others.cached = on.cached(&want.name, version);
        } else if !matches!(decided, Ok(Some(_))) {
            return Ok(others);
        }
        let Left { installed_along, removed_along, .. } = want.left();
        let present = on.everything(cx)?;
        let is_installed = |name: &str| {
            present.iter().any(|record| record.status == "installed" && record.full_name() == name)
        };
        let name = want.name.to_string();
        let is_removed = matches!(want.before.ensure, Ensure::Absent) && have.metadata.version.is_some();
        if is_removed {
            let own = on.needed(std::slice::from_ref(&name), cx)?;
            // Packages that came along go with it.
            others.needed_by =
                own.into_iter().map(|needed| needed.by).find(|by| !installed_along.contains(by));
        }
        let mut along: Vec<String> =
            installed_along.iter().filter(|name| is_installed(name)).cloned().collect();
        while !along.is_empty() {
            let own = is_removed.then_some(&name);
            let removed: Vec<String> = own.into_iter().chain(&along).cloned().collect();
            let needed: Vec<Needed> = on.needed(&removed, cx)?;
            let is_needed = |name: &String| needed.iter().any(|needed| needed.package == plain(name));
            let kept = along.len();
            along.retain(|name| !is_needed(name));
            if along.len() == kept {
                break;
            }
        }
        others.unneeded = along.into_iter().filter_map(|name| PackageName::try_from(name).ok()).collect();
        others.missing = removed_along
            .iter()
            .filter_map(|removed| removed.rsplit_once('='))
            .filter(|(name, _)| !is_installed(name))
            .filter_map(|(name, version)| Some((name.to_owned().try_into().ok()?, version.to_owned())))
            .collect();
        Ok(others)
    }

    /// Brings the package back, and returns the other packages that were installed and removed.
    fn undo(
        &self,
        want: &Properties,
        have: &UndoingState,
        action: &Action,
        cx: &Context,
    ) -> Result<Along, Error> {
        let earlier = self.provider.everything(cx)?;
        let Others { unneeded, missing, cached, .. } = &have.others;
        let options: &[String] = &want.before.options;
        let transact = |verb: Verb, items: Vec<Item>| {
            if items.is_empty() {
                return Ok(());
            }
            let holds = if want.before.hold.is_some() { Holds::Override } else { Holds::Respect };
            self.provider.transact(&Transaction { verb, items, options, holds, is_exact: true }, cx)
        };
        let item = |name| Item { name, version: None, file: None };
        let done = match &action.deed {
            Some(Deed::Remove) => {
                let removed = std::iter::once(&want.name).chain(unneeded).map(item).collect();
                transact(Verb::Remove, removed)
            }
            Some(deed) => {
                let file = cached.as_deref();
                let own = Item { name: &want.name, version: deed.exact(), file };
                transact(deed.verb(), vec![own])
                    .and_then(|()| transact(Verb::Remove, unneeded.iter().map(item).collect()))
            }
            None => Ok(()),
        };
        let again = missing.iter().map(|(name, version)| Item { name, version: Some(version), file: None });
        let done = done.and_then(|()| transact(Verb::Install, again.collect()));
        self.memory().forget_installed();
        done?;
        if action.hold.is_some() {
            let action = Action { deed: None, hold: action.hold };
            self.enact(&[Member { want: &want.before, have: &have.package, action: &action }], cx)?;
        }
        let later = self.provider.everything(cx)?;
        Ok(Along::between(&earlier, &later, &[&want.name], self.provider.as_ref()))
    }
}

/// Returns a name without its architecture.
fn plain(name: &str) -> &str {
    name.split_once(':').map_or(name, |(name, _)| name)
}
