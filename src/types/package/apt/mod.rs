//! The provider for Debian and what is made of it: dpkg's books, apt's sources.

#![allow(clippy::disallowed_methods, reason = "what apt and dpkg keep is looked at here")]

mod books;
mod policy;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{
    Scheme,
    action::Verb,
    command::Tool,
    dependents,
    ensure::Ensure,
    error::PackageError,
    lists::{Lists, changed, entries, is_named, last_changed},
    lock,
    name::{PackageName, Parts},
    provider::{Holds, Item, Needed, PackageProvider, Record, Transaction},
    state::Offer,
};
use crate::resource::Context;

/// Nobody is there to answer.
const SILENT: [(&str, &str); 6] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("DEBIAN_PRIORITY", "critical"),
    ("APT_LISTBUGS_FRONTEND", "none"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("NEEDRESTART_SUSPEND", "1"),
    ("UCF_FORCE_CONFFOLD", "1"),
];

/// What apt and dpkg lock while they change packages.
const LOCKS: [&str; 3] =
    ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/cache/apt/archives/lock"];

/// What apt locks while it brings the lists up to date.
const LISTS_LOCK: &str = "/var/lib/apt/lists/lock";

/// The package cache.
const ARCHIVES: &str = "/var/cache/apt/archives";

/// What dpkg has done and not yet written into its books, if it was interrupted.
const UNFINISHED: &str = "/var/lib/dpkg/updates";

/// apt and dpkg.
pub(super) struct Apt {
    get: Tool,
    cache: Tool,
    mark: Tool,
    dpkg: Tool,
    dpkg_query: Tool,
    /// The architecture that is meant when none is named, known once the books were read.
    native: OnceLock<String>,
}

impl Apt {
    /// Finds the programs, or says which is missing.
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self {
            get: Tool::find("apt-get", &SILENT)?,
            cache: Tool::find("apt-cache", &[])?,
            mark: Tool::find("apt-mark", &SILENT)?,
            dpkg: Tool::find("dpkg", &SILENT)?,
            dpkg_query: Tool::find("dpkg-query", &[])?,
            native: OnceLock::new(),
        })
    }

    /// Finishes what an interrupted dpkg has left half-way, if that is what is wrong.
    fn repair(&self, cx: &Context) -> Result<(), PackageError> {
        let is_half_way = self.installed(&[], cx)?.iter().any(|record| books::is_half_way(&record.status));
        let is_interrupted = || {
            let entries = fs::read_dir(UNFINISHED).into_iter().flatten().flatten();
            entries
                .into_iter()
                .any(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        };
        if is_half_way || is_interrupted() {
            let repaired = self.dpkg.succeed(&["--force-confold", "--configure", "-a"], cx);
            if let Err(error) = repaired {
                cx.warn(format!("what dpkg had left half-way could not be finished: {error}"));
            }
        }
        Ok(())
    }

    /// Whether the header of a policy is about a package.
    fn is_about(&self, header: &str, package: Parts) -> bool {
        let (name, arch) = header.split_once(':').map_or((header, None), |(name, arch)| (name, Some(arch)));
        let native = self.native.get().map(String::as_str);
        let wanted = package.arch.filter(|arch| Some(*arch) != native && *arch != "all");
        name == package.name && arch == wanted
    }
}

impl PackageProvider for Apt {
    fn name(&self) -> &'static str {
        "apt"
    }

    fn scheme(&self) -> Scheme {
        Scheme::Debian
    }

    fn parts<'n>(&self, name: &'n PackageName) -> Result<Parts<'n>, PackageError> {
        name.debian()
    }

    fn installed(&self, _: &[&str], cx: &Context) -> Result<Vec<Record>, PackageError> {
        // The whole of the books is read for one package too, so all of it is kept.
        let answer = self.dpkg_query.answer(&["--show", books::FORMAT], cx)?;
        let records = books::read(&answer);
        if let Some(native) = books::native(&records) {
            let _ = self.native.set(native.to_owned());
        }
        Ok(records)
    }

    fn everything(&self, cx: &Context) -> Result<Vec<Record>, PackageError> {
        self.installed(&[], cx)
    }

    fn needed(&self, removed: &[String], cx: &Context) -> Result<Vec<Needed>, PackageError> {
        let answer = self.dpkg_query.answer(&["--show", dependents::FORMAT], cx)?;
        Ok(dependents::needed(&answer, removed))
    }

    fn configuration(
        &self,
        name: &PackageName,
        ensure: &Ensure,
        cx: &Context,
    ) -> Result<Vec<PathBuf>, PackageError> {
        if *ensure != Ensure::Purged {
            return Ok(Vec::new());
        }
        let arguments = ["--show", "--showformat=${Conffiles}\\n", name.as_str()];
        Ok(books::configuration(&self.dpkg_query.answer(&arguments, cx)?))
    }

    fn cached(&self, name: &PackageName, version: &str) -> Option<PathBuf> {
        let Parts { name, arch } = name.debian().ok()?;
        let (start, end) =
            (format!("{name}_{}_", version.replace(':', "%3a")), format!("{}.deb", arch.unwrap_or_default()));
        entries(ARCHIVES).into_iter().find(|path| is_named(path, &start, &end))
    }

    fn offers(&self, packages: &[Parts], cx: &Context) -> Result<Vec<Offer>, PackageError> {
        let names = packages.iter().map(|Parts { name, arch }| match arch {
            Some(arch) => format!("{name}:{arch}"),
            None => (*name).to_owned(),
        });
        let arguments: Vec<String> =
            ["policy".to_owned(), "--".to_owned()].into_iter().chain(names).collect();
        let answer = self.cache.answer(&arguments, cx)?;
        let policies = policy::read(&answer);
        let offer = |package: &Parts| {
            let policy = policies.iter().find(|(header, _)| self.is_about(header, *package));
            policy.map_or(Offer::Unknown, |(_, offer)| offer.clone())
        };
        Ok(packages.iter().map(offer).collect())
    }

    fn held(&self, _: &Context) -> Result<BTreeSet<String>, PackageError> {
        // The books tell of every package that is in them; no other is on hold.
        Ok(BTreeSet::new())
    }

    fn lists(&self) -> Lists {
        let updated = ["/var/lib/apt/lists", "/var/lib/apt/lists/partial"]
            .iter()
            .filter_map(|path| changed(Path::new(path)));
        let is_empty = !entries("/var/lib/apt/lists").iter().any(|path| is_list(path));
        let listed = entries("/etc/apt/sources.list.d");
        let sources =
            ["/etc/apt/sources.list", "/etc/apt/sources.list.d"].map(PathBuf::from).into_iter().chain(listed);
        Lists { updated: updated.max().filter(|_| !is_empty), source: last_changed(sources) }
    }

    fn refresh(&self, cx: &Context) -> Result<(), PackageError> {
        lock::wait(&[LISTS_LOCK], cx)?;
        // Without the option, `apt-get update` exits with 0 if a repository cannot be reached. apt before 2.1.16 ignores it.
        self.get.fetch(&["-q", "-o", "APT::Update::Error-Mode=any", "update"], cx)
    }

    fn transact(&self, transaction: &Transaction, cx: &Context) -> Result<(), PackageError> {
        lock::wait(&LOCKS, cx)?;
        self.repair(cx)?;
        let Transaction { verb, items, options, holds, .. } = transaction;
        let wait = format!("DPkg::Lock::Timeout={}", lock::seconds_left(cx));
        let mut arguments: Vec<String> =
            ["-y", "-q", "-o", "DPkg::Options::=--force-confold", "-o", "DPkg::Use-Pty=0", "-o", &wait]
                .map(str::to_owned)
                .to_vec();
        let (command, flags): (_, &[&str]) = match verb {
            Verb::Install => ("install", &[]),
            Verb::Downgrade => ("install", &["--allow-downgrades"]),
            Verb::Remove => ("remove", &[]),
            Verb::Purge => ("purge", &[]),
        };
        let overrides = (*holds == Holds::Override).then_some("--allow-change-held-packages");
        arguments.extend([command].iter().chain(flags).chain(&overrides).map(|&word| word.to_owned()));
        arguments.extend_from_slice(options);
        arguments.push("--".to_owned());
        arguments.extend(items.iter().map(|Item { name, version, file }| match (file, version) {
            (Some(file), _) => file.to_string_lossy().into_owned(),
            (None, Some(version)) => format!("{name}={version}"),
            (None, None) => name.to_string(),
        }));
        self.get.succeed(&arguments, cx)
    }

    fn hold(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError> {
        self.mark.succeed(&marking("hold", names), cx)
    }

    fn release(&self, names: &[&PackageName], cx: &Context) -> Result<(), PackageError> {
        self.mark.succeed(&marking("unhold", names), cx)
    }
}

fn marking<'n>(verb: &'n str, names: &[&'n PackageName]) -> Vec<&'n str> {
    [verb, "--"].into_iter().chain(names.iter().map(|name| name.as_str())).collect()
}

/// Whether a file is one of the lists, and not what apt keeps beside them.
fn is_list(path: &Path) -> bool {
    !["lock", "partial", "auxfiles"].iter().any(|other| path.ends_with(other))
}
