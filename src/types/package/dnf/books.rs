//! rpm's books and dnf's repositories: what is installed, what is offered, what is locked.

use std::collections::BTreeSet;

use super::super::{
    Scheme,
    name::Parts,
    provider::{Needed, Record},
    state::Offer,
};

/// What is asked of each installed package, in one line.
pub(super) const INSTALLED: &str =
    "--queryformat=%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\n";

/// What is asked of each offered package, in one line. Some versions of dnf add another end of line.
pub(super) const OFFERED: &str = "--queryformat=%{name}\\t%{epoch}\\t%{version}\\t%{release}\\t%{arch}\\n";

/// Reads the packages in what rpm or dnf prints. A line that is none of these is passed over.
pub(super) fn read(output: &str) -> Vec<Record> {
    let record = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, epoch, version, release, arch] = *fields.as_slice() else { return None };
        Some(Record {
            name: name.to_owned(),
            arch: arch.to_owned(),
            is_usual: true,
            version: format!("{epoch}:{version}-{release}"),
            status: "installed".to_owned(),
            held: None,
        })
    };
    output.lines().filter_map(record).collect()
}

/// Says what is offered of a package.
pub(super) fn offer(package: Parts, offered: &[Record]) -> Offer {
    let of_package = offered.iter().filter(|record| record.is_of(package) && record.arch != "src");
    let mut versions: Vec<String> = of_package.map(|record| record.version.clone()).collect();
    versions.sort_by(|a, b| Scheme::Rpm.order(b, a));
    versions.dedup();
    match versions.first().cloned() {
        Some(candidate) => Offer::Known { candidate, versions },
        None => Offer::Unknown,
    }
}

/// Reads the failed dependencies of `rpm --erase --test`: `CAPABILITY is needed by (installed) NAME-VERSION-RELEASE.ARCH`.
/// The capability need not be the name of a package, and then any of the removed packages could provide it.
pub(super) fn needed(output: &str, removed: &[String]) -> Vec<Needed> {
    let mut all = Vec::new();
    for line in output.lines() {
        let Some((capability, by)) = line.split_once(" is needed by ") else { continue };
        let by = by.trim_start_matches("(installed) ").trim();
        let by = by.rsplitn(3, '-').last().unwrap_or(by).to_owned();
        let name = capability.trim().split([' ', '(']).next().unwrap_or_default();
        match removed.iter().find(|removed| *removed == name) {
            Some(package) => all.push(Needed { package: package.clone(), by }),
            None => {
                all.extend(removed.iter().map(|package| Needed { package: package.clone(), by: by.clone() }));
            }
        }
    }
    all
}

/// Reads the names that `dnf versionlock list` prints, in the form of dnf 4 (`NAME-EPOCH:VERSION-RELEASE.ARCH`) and of
/// dnf 5 (`Package name: NAME`).
pub(super) fn locked(output: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        if let Some(name) = line.strip_prefix("Package name: ") {
            return Some(name.trim().to_owned());
        }
        let (before, _) = line.split_once(':')?;
        let (name, epoch) = before.rsplit_once('-')?;
        (!name.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.to_owned())
    };
    output.lines().filter(|line| !line.starts_with('#') && !line.starts_with('!')).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_and_what_is_not_installed_is_passed_over() {
        let output =
            "tool\t1\t0.9\t1.el9\tnoarch\npackage nosuch is not installed\ncore\t0\t1.0\t1\tx86_64\n\n";
        let records = read(output);
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].name.as_str(), records[0].version.as_str()), ("tool", "1:0.9-1.el9"));
    }

    #[test]
    fn the_newest_is_the_candidate() {
        let output =
            "tool\t0\t1.0\t1\tnoarch\ntool\t1\t0.9\t1\tnoarch\ntool\t0\t2.0\t1\ti686\ntool\t0\t2.0\t1\tsrc\n";
        let records = read(output);
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let known =
            |versions: &[&str]| Offer::Known { candidate: versions[0].to_owned(), versions: own(versions) };
        let tool = Parts { name: "tool", arch: None };
        assert_eq!(offer(tool, &records), known(&["1:0.9-1", "0:2.0-1", "0:1.0-1"]));
        assert_eq!(offer(Parts { arch: Some("i686"), ..tool }, &records), known(&["0:2.0-1"]));
        assert_eq!(offer(Parts { arch: Some("s390x"), ..tool }, &records), Offer::Unknown);
    }

    #[test]
    fn locks_are_read_in_both_forms() {
        let output = "# Added lock\ntool-0:2.0-1.*\njava-1.8.0-openjdk-1:1.8-2.*\n!other-0:1-1.*\n\nPackage name: bash\nevr = \
                      0:5.2-1\n";
        let names: Vec<String> = locked(output).into_iter().collect();
        assert_eq!(names, ["bash", "java-1.8.0-openjdk", "tool"]);
    }

    #[test]
    fn failed_dependencies_name_both_packages() {
        let removed = ["lib".to_owned(), "app".to_owned()];
        let output = "error: Failed dependencies:\n\tlib is needed by (installed) other-tool-1.0-1.noarch\n\t\
                      libx.so.1()(64bit) is needed by (installed) y-2.0-1.x86_64\n";
        let found: Vec<(String, String)> =
            needed(output, &removed).into_iter().map(|needed| (needed.package, needed.by)).collect();
        let pair = |package: &str, by: &str| (package.to_owned(), by.to_owned());
        assert_eq!(found, [pair("lib", "other-tool"), pair("lib", "y"), pair("app", "y")]);
    }

    #[test]
    fn anything_may_be_printed() {
        for output in ["", "\t\t\t\t", "a\tb", ":", "-:", "a-1:", "Package name: "] {
            read(output);
            locked(output);
        }
    }
}
