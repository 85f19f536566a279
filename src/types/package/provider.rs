//! What a package system has to be able to do to be a provider.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Scheme,
    action::Verb,
    ensure::Ensure,
    error::PackageError,
    lists::Lists,
    name::{PackageName, Parts},
    state::Offer,
};
use crate::resource::Context;

/// A package system: what differs between apt and dnf.
pub(crate) trait PackageProvider: Send + Sync {
    /// Returns its name in the `provider` property and in events.
    fn name(&self) -> &'static str;

    /// Returns how it writes and orders versions.
    fn scheme(&self) -> Scheme;

    /// Takes a name apart, or says why it cannot be one of a package here.
    fn parts<'n>(&self, name: &'n PackageName) -> Result<Parts<'n>, PackageError>;

    /// Reads what is installed of these packages, and perhaps of others, with one query.
    fn installed(&self, names: &[&str], cx: &Context) -> Result<Vec<Record>, PackageError>;

    /// Returns all packages.
    fn everything(&self, cx: &Context) -> Result<Vec<Record>, PackageError>;

    /// Returns the packages in `removed` that other packages need.
    fn needed(&self, removed: &[String], cx: &Context) -> Result<Vec<Needed>, PackageError>;

    /// Returns the configuration files that go with a package when it is no longer in the state `ensure`.
    fn configuration(
        &self,
        name: &PackageName,
        ensure: &Ensure,
        cx: &Context,
    ) -> Result<Vec<PathBuf>, PackageError>;

    /// Returns the file of a version in the package cache.
    fn cached(&self, name: &PackageName, version: &str) -> Option<PathBuf>;

    /// Looks up what the sources offer of these packages, without bringing the lists up to date. Answers in the same order.
    fn offers(&self, packages: &[Parts], cx: &Context) -> Result<Vec<Offer>, PackageError>;

    /// Reads which packages are on hold, where the query for what is installed does not tell.
    fn held(&self, cx: &Context) -> Result<BTreeSet<String>, PackageError>;

    /// Looks at how old the lists of what the sources offer are.
    fn lists(&self) -> Lists;

    /// Brings the lists up to date.
    fn refresh(&self, cx: &Context) -> Result<(), PackageError>;

    /// Does one thing to one or more packages. Once begun, it is not ended before its time.
    fn transact(&self, transaction: &Transaction, cx: &Context) -> Result<(), PackageError>;

    /// Puts packages on hold.
    fn hold(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError>;

    /// Takes packages off hold.
    fn release(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError>;
}

/// One package in the system's own books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) arch: String,
    /// Whether it is meant when no architecture is asked for.
    pub(super) is_usual: bool,
    /// The complete version.
    pub(super) version: String,
    /// How far it is installed, in the word of `dpkg-query`.
    pub(super) status: String,
    /// Whether it is on hold, where the query tells.
    pub(super) held: Option<bool>,
}

impl Record {
    /// Whether the record is about a package.
    pub(super) fn is_of(&self, package: Parts) -> bool {
        self.name == package.name
            && match package.arch {
                // What fits every architecture fits the one that was asked for.
                Some(arch) => self.arch == arch || self.arch == "all",
                None => self.is_usual,
            }
    }
}

impl Record {
    /// Returns the name, with the architecture unless it is the usual one.
    pub(super) fn full_name(&self) -> String {
        if self.is_usual { self.name.clone() } else { format!("{}:{}", self.name, self.arch) }
    }
}

/// A package that another package needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    pub(super) package: String,
    pub(super) by: String,
}

/// One thing that is done to one or more packages.
#[derive(Debug)]
pub(super) struct Transaction<'a> {
    pub(super) verb: Verb,
    pub(super) items: Vec<Item<'a>>,
    /// What the user passes to the package manager, before the names.
    pub(super) options: &'a [String],
    pub(super) holds: Holds,
    /// Whether packages that nothing needs afterwards stay.
    pub(super) is_exact: bool,
}

/// A package in a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) name: &'a PackageName,
    /// The complete version, where it has to be one.
    pub(super) version: Option<&'a str>,
    /// File of the package, which no repository needs to offer.
    pub(super) file: Option<&'a Path>,
}

/// Whether packages on hold may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Respect,
    Override,
}
