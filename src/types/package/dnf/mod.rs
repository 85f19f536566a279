//! The provider for Fedora, Red Hat Enterprise Linux and what is made of them: rpm's books, dnf's repositories.

mod books;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Scheme,
    action::Verb,
    command::Tool,
    ensure::Ensure,
    error::PackageError,
    lists::{Lists, changed, entries, is_named, last_changed},
    lock,
    name::{PackageName, Parts},
    provider::{Holds, Item, Needed, PackageProvider, Record, Transaction},
    state::Offer,
};
use crate::{
    host::look,
    {host::process::Exit, resource::Context},
};

/// What dnf and rpm lock while they change packages.
const LOCKS: [&str; 4] = [
    "/var/lib/dnf/rpmdb_lock.pid",
    "/var/cache/dnf/metadata_lock.pid",
    "/var/lib/rpm/.rpm.lock",
    "/usr/lib/sysimage/rpm/.rpm.lock",
];

/// How dnf exits when another one is at work.
const LOCKED: Exit = Exit::Code(200);

/// Where dnf keeps what the repositories offer, one folder for each.
const CACHES: [&str; 2] = ["/var/cache/dnf", "/var/cache/libdnf5"];

/// What dnf has where packages can be put on hold: the settings of a plugin of dnf 4, the locks of dnf 5.
const LOCKING: [&str; 2] = ["/etc/dnf/plugins/versionlock.conf", "/etc/dnf/versionlock.toml"];

/// Answers questions only from what was fetched before.
const FROM_CACHE: [&str; 2] = ["-q", "-C"];

/// dnf and rpm.
pub(super) struct Dnf {
    dnf: Tool,
    rpm: Tool,
}

impl Dnf {
    /// Finds the programs, or says which is missing.
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self { dnf: Tool::find("dnf", &[])?, rpm: Tool::find("rpm", &[])? })
    }

    fn query(&self, flags: &[&str], packages: &[Parts], cx: &Context) -> Result<Vec<Offer>, PackageError> {
        let names: BTreeSet<&str> = packages.iter().map(|package| package.name).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let arguments =
            [&FROM_CACHE[..], &["repoquery", "--available", books::OFFERED], flags, &names].concat();
        let offered = books::read(&self.dnf.answer(&arguments, cx)?);
        Ok(packages.iter().map(|package| books::offer(*package, &offered)).collect())
    }

    fn versionlock(&self, verb: &str, names: &[&PackageName], cx: &Context) -> Result<(), PackageError> {
        let names = names.iter().map(|name| plain(name));
        let arguments: Vec<&str> = ["-q", "-y", "versionlock", verb].into_iter().chain(names).collect();
        self.dnf.succeed(&arguments, cx).map_err(|error| match error {
            PackageError::Failed { .. } => PackageError::Lock { reason: error.to_string() },
            other => other,
        })
    }
}

impl PackageProvider for Dnf {
    fn name(&self) -> &'static str {
        "dnf"
    }

    fn scheme(&self) -> Scheme {
        Scheme::Rpm
    }

    fn parts<'n>(&self, name: &'n PackageName) -> Result<Parts<'n>, PackageError> {
        name.rpm()
    }

    fn installed(&self, names: &[&str], cx: &Context) -> Result<Vec<Record>, PackageError> {
        let arguments = [&["--query", books::INSTALLED, "--"], names].concat();
        let finished = self.rpm.ask(&arguments, cx)?;
        // Its exit code counts the packages that are not installed, and books that cannot be read look like these.
        if finished.stderr.text().lines().any(|line| line.starts_with("error:")) {
            return Err(self.rpm.failed(&["--query"], finished.exit, &finished, cx));
        }
        Ok(books::read(&finished.stdout.text()))
    }

    fn everything(&self, cx: &Context) -> Result<Vec<Record>, PackageError> {
        Ok(books::read(&self.rpm.answer(&["--query", "--all", books::INSTALLED], cx)?))
    }

    fn needed(&self, removed: &[String], cx: &Context) -> Result<Vec<Needed>, PackageError> {
        let names: Vec<&str> = removed.iter().map(String::as_str).collect();
        let arguments = [&["--erase", "--test", "--allmatches", "--"], &names[..]].concat();
        let finished = self.rpm.ask(&arguments, cx)?;
        match finished.exit {
            Exit::Code(0) => Ok(Vec::new()),
            exit => match books::needed(&finished.stderr.text(), removed) {
                needed if needed.is_empty() => Err(self.rpm.failed(&arguments, exit, &finished, cx)),
                needed => Ok(needed),
            },
        }
    }

    fn configuration(
        &self,
        name: &PackageName,
        _: &Ensure,
        cx: &Context,
    ) -> Result<Vec<PathBuf>, PackageError> {
        let answer = self.rpm.answer(&["--query", "--configfiles", "--", name.as_str()], cx)?;
        Ok(answer.lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect())
    }

    fn cached(&self, name: &PackageName, version: &str) -> Option<PathBuf> {
        let Parts { name, arch } = name.rpm().ok()?;
        let version = Scheme::Rpm.shown(version);
        let (start, end) = (format!("{name}-{version}."), format!("{}.rpm", arch.unwrap_or_default()));
        let repositories = CACHES.iter().flat_map(|cache| entries(cache));
        let files = repositories.flat_map(|folder| entries(&folder.join("packages").to_string_lossy()));
        files.into_iter().find(|path| is_named(path, &start, &end))
    }

    fn offers(&self, packages: &[Parts], cx: &Context) -> Result<Vec<Offer>, PackageError> {
        let mut offers = self.query(&[], packages, cx)?;
        if offers.contains(&Offer::Unknown) {
            let all = self.query(&["--disableexcludes=all", "--disableplugin=versionlock"], packages, cx);
            for (offer, excluded) in offers.iter_mut().zip(all.unwrap_or_default()) {
                if *offer == Offer::Unknown && excluded != Offer::Unknown {
                    *offer = Offer::NoCandidate;
                }
            }
        }
        Ok(offers)
    }

    fn held(&self, cx: &Context) -> Result<BTreeSet<String>, PackageError> {
        if !LOCKING.iter().any(|file| look::exists(Path::new(file))) {
            return Ok(BTreeSet::new());
        }
        let finished = self.dnf.ask(&[&FROM_CACHE[..], &["versionlock", "list"]].concat(), cx)?;
        match finished.exit {
            Exit::Code(0) => Ok(books::locked(&finished.stdout.text())),
            // Without the plugin nothing can be on hold.
            _ => Ok(BTreeSet::new()),
        }
    }

    fn lists(&self) -> Lists {
        let repositories = CACHES.iter().flat_map(|cache| entries(cache));
        let updated = repositories.filter_map(|folder| changed(&folder.join("repodata/repomd.xml"))).max();
        let listed = entries("/etc/yum.repos.d");
        let sources = ["/etc/dnf/dnf.conf", "/etc/yum.repos.d"].map(PathBuf::from).into_iter().chain(listed);
        Lists { updated, source: last_changed(sources) }
    }

    fn refresh(&self, cx: &Context) -> Result<(), PackageError> {
        lock::wait(&LOCKS[..2], cx)?;
        self.dnf.fetch(&["-q", "-y", "--refresh", "makecache"], cx)
    }

    fn transact(&self, transaction: &Transaction, cx: &Context) -> Result<(), PackageError> {
        let Transaction { verb, items, options, holds, is_exact } = transaction;
        // What is fetched, and when, was decided before.
        let mut arguments: Vec<String> =
            ["-y", "--setopt=*.metadata_expire=-1", "--setopt=exit_on_lock=1"].map(str::to_owned).to_vec();
        if *holds == Holds::Override {
            arguments.push("--disableplugin=versionlock".to_owned());
        }
        if *is_exact {
            arguments.push("--setopt=clean_requirements_on_remove=False".to_owned());
        }
        arguments.push(
            match verb {
                Verb::Install => "install",
                Verb::Downgrade => "downgrade",
                Verb::Remove | Verb::Purge => "remove",
            }
            .to_owned(),
        );
        arguments.extend_from_slice(options);
        arguments.extend(items.iter().map(|item| argument(item)));
        loop {
            lock::wait(&LOCKS, cx)?;
            let finished = self.dnf.work(&arguments, cx)?;
            // Else somebody was quicker.
            if finished.exit != LOCKED {
                return self.dnf.judge(&finished, &arguments, cx);
            }
        }
    }

    fn hold(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError> {
        // A lock is on a version: one on another would keep the package from what it is now.
        let held = self.held(cx)?;
        let old: Vec<&PackageName> =
            names.iter().copied().filter(|name| held.contains(plain(name))).collect();
        if !old.is_empty() {
            self.release(&old, cx)?;
        }
        self.versionlock("add", names, cx)
    }

    fn release(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError> {
        self.versionlock("delete", names, cx)
    }
}

/// Returns a name without its architecture, which locks do not have.
fn plain(name: &PackageName) -> &str {
    name.rpm().map_or(name.as_str(), |parts| parts.name)
}

/// Writes a package as dnf understands it: `NAME[-EPOCH:VERSION-RELEASE][.ARCH]`.
fn argument(item: &Item) -> String {
    if let Some(file) = item.file {
        return file.to_string_lossy().into_owned();
    }
    let Some(version) = item.version else { return item.name.to_string() };
    match item.name.rpm() {
        Ok(Parts { name, arch: Some(arch) }) => format!("{name}-{version}.{arch}"),
        _ => format!("{}-{version}", item.name),
    }
}
