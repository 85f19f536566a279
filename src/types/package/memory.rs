//! What is known about the packages of a run, and how little is asked for it.
//!
//! When the first package is looked at, all that the run will come to are read with one query, and what the sources offer
//! is looked up for all of those for which it matters. What is installed is read again only after something happened that
//! could have changed it: a package, or something of unknown effect such as a command.

use std::{collections::BTreeMap, collections::BTreeSet, path::PathBuf, time::SystemTime};

use super::{
    Properties, decision,
    ensure::Ensure,
    error::PackageError,
    name::{PackageName, Parts},
    provider::{PackageProvider, Record},
    refresh::Need,
    state::{Offer, Presence},
};
use crate::resource::{Context, Effects, History, Moment, Unknown};

/// What the package system has said, as far as it still holds.
#[derive(Default)]
pub(super) struct Memory {
    /// The packages that the run will come to, in its order.
    expected: Vec<(PackageName, Ensure)>,
    /// Up to when it is known what the run has done.
    noted: Moment,
    records: Option<BTreeMap<String, Vec<Record>>>,
    offers: BTreeMap<String, Offer>,
    held: Option<BTreeSet<String>>,
    pub(super) refreshed: Refreshed,
    /// Why the last refresh of the package index failed.
    pub(super) failure: Option<String>,
    /// Whether a warning has shown that failure.
    pub(super) failure_shown: bool,
}

/// Whether the lists were brought up to date in this run, or a dry run has said that they would be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Refreshed {
    #[default]
    NotYet,
    /// They were, when this was the last file of sources.
    With(Option<(PathBuf, SystemTime)>),
}

impl Memory {
    pub(super) fn expect(&mut self, wants: &[&Properties]) {
        self.expected = wants.iter().map(|want| (want.name.clone(), want.ensure.clone())).collect();
    }

    /// Forgets what the run may have changed since this was last called.
    pub(super) fn note(&mut self, cx: &Context) {
        let Some(history) = cx.history() else { return };
        let changes = |effects: &&Effects| !effects.packages.is_empty() || effects.unknown > Unknown::Nothing;
        if history.since(self.noted).iter().any(changes) {
            self.forget_installed();
        }
        self.noted = History::now(history);
    }

    /// Forgets what is installed, but not what the sources offer.
    pub(super) fn forget_installed(&mut self) {
        (self.records, self.held) = (None, None);
    }

    /// Forgets what the sources offer.
    pub(super) fn forget_offers(&mut self) {
        self.offers.clear();
    }

    /// Returns what the system's books say about a package.
    pub(super) fn records(
        &mut self,
        package: Parts,
        on: &dyn PackageProvider,
        cx: &Context,
    ) -> Result<Vec<&Record>, PackageError> {
        let is_known = self.records.as_ref().is_some_and(|records| records.contains_key(package.name));
        if !is_known {
            let expected = self.expected.iter().filter_map(|(name, _)| Some(on.parts(name).ok()?.name));
            let names: BTreeSet<&str> = expected.chain([package.name]).collect();
            let mut records: BTreeMap<String, Vec<Record>> =
                names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
            for record in on.installed(&names.into_iter().collect::<Vec<_>>(), cx)? {
                records.entry(record.name.clone()).or_default().push(record);
            }
            self.records = Some(records);
        }
        let of_name = self.records.as_ref().and_then(|records| records.get(package.name));
        Ok(of_name.into_iter().flatten().filter(|record| record.is_of(package)).collect())
    }

    /// Returns what the sources offer of a package. Those that the run will come to are looked up with it.
    pub(super) fn offer(
        &mut self,
        name: &PackageName,
        on: &dyn PackageProvider,
        cx: &Context,
    ) -> Result<Offer, PackageError> {
        if !self.offers.contains_key(name.as_str()) {
            let mut names = vec![name.clone()];
            let expected = std::mem::take(&mut self.expected);
            for (other, ensure) in &expected {
                let is_new = other != name && !self.offers.contains_key(other.as_str());
                if is_new && self.needs(other, ensure, on, cx) {
                    names.push(other.clone());
                }
            }
            self.expected = expected;
            let packages: Vec<Parts> = names.iter().filter_map(|name| on.parts(name).ok()).collect();
            let offers = on.offers(&packages, cx)?;
            self.offers.extend(names.iter().map(PackageName::to_string).zip(offers));
        }
        Ok(self.offers.get(name.as_str()).cloned().unwrap_or(Offer::Unknown))
    }

    fn needs(&mut self, name: &PackageName, ensure: &Ensure, on: &dyn PackageProvider, cx: &Context) -> bool {
        let Ok(parts) = on.parts(name) else { return false };
        let scheme = on.scheme();
        let records = self.records(parts, on, cx);
        records.is_ok_and(|records| {
            decision::need(ensure, scheme, &presence(&records, ensure, on)) != Need::Nothing
        })
    }

    /// Whether a package is on hold.
    pub(super) fn is_held(
        &mut self,
        package: Parts,
        on: &dyn PackageProvider,
        cx: &Context,
    ) -> Result<bool, PackageError> {
        let told: Vec<bool> =
            self.records(package, on, cx)?.iter().filter_map(|record| record.held).collect();
        if !told.is_empty() {
            return Ok(told.contains(&true));
        }
        if self.held.is_none() {
            self.held = Some(on.held(cx)?);
        }
        Ok(self.held.as_ref().is_some_and(|held| held.contains(package.name)))
    }
}

/// Says how far a package is installed. Of several versions the one that is asked for counts, or else the newest.
pub(super) fn presence(records: &[&Record], want: &Ensure, on: &dyn PackageProvider) -> Presence {
    let scheme = on.scheme();
    let mut installed: Vec<&str> = records
        .iter()
        .filter(|record| record.status == "installed")
        .map(|record| record.version.as_str())
        .collect();
    installed.sort_by(|a, b| scheme.order(b, a));
    installed.dedup();
    if let Ensure::Version(wanted) = want {
        installed.sort_by_key(|version| !scheme.order_to_wanted(version, wanted).is_eq());
    }
    if !installed.is_empty() {
        return Presence::Installed(installed.into_iter().map(str::to_owned).collect());
    }
    let statuses = || records.iter().map(|record| record.status.as_str());
    match statuses().find(|status| !matches!(*status, "not-installed" | "config-files")) {
        Some(status) => Presence::Broken(status.to_owned()),
        None if statuses().any(|status| status == "config-files") => Presence::Configuration,
        None => Presence::Absent,
    }
}
