//! Which packages other packages need, from dpkg's records.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{Scheme, provider::Needed};

/// Fields of each installed package, in one line.
pub(super) const FORMAT: &str = "--showformat=${Package}\\t${Version}\\t${db:Status-Status}\\t${Provides}\\t${Pre-Depends}\\t${Depends}\\n";

/// An installed package.
struct Installed<'a> {
    name: &'a str,
    version: &'a str,
    provides: Vec<Term<'a>>,
    /// Alternatives, of which one has to be installed.
    depends: Vec<Vec<Term<'a>>>,
}

/// A package or virtual package, with a restriction of its version.
struct Term<'a> {
    name: &'a str,
    version: Option<(&'a str, &'a str)>,
}

/// Returns the packages in `removed` that packages outside of it need.
pub(super) fn needed(output: &str, removed: &[String]) -> Vec<Needed> {
    let installed: Vec<Installed> = output.lines().filter_map(read).collect();
    let is_removed = |name: &str| removed.iter().any(|removed| plain(removed) == name);
    let (gone, kept): (Vec<&Installed>, Vec<&Installed>) =
        installed.iter().partition(|package| is_removed(package.name));
    let mut providers: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
    for &package in &kept {
        providers.entry(package.name).or_default().push(package);
        for provided in &package.provides {
            providers.entry(provided.name).or_default().push(package);
        }
    }
    let mut needed = Vec::new();
    for package in &kept {
        for alternatives in &package.depends {
            let is_met = |term: &Term| {
                providers.get(term.name).into_iter().flatten().any(|provider| term.is_met_by(provider))
            };
            let missing = gone.iter().find(|gone| alternatives.iter().any(|term| term.is_met_by(gone)));
            if let Some(missing) = missing.filter(|_| !alternatives.iter().any(is_met)) {
                needed.push(Needed { package: missing.name.to_owned(), by: package.name.to_owned() });
            }
        }
    }
    needed
}

/// Returns a name without its architecture.
fn plain(name: &str) -> &str {
    name.split_once(':').map_or(name, |(name, _)| name)
}

fn read(line: &str) -> Option<Installed<'_>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, version, status, provides, before, depends] = *fields.as_slice() else { return None };
    let is_installed = !matches!(status, "not-installed" | "config-files");
    let depends = [before, depends].into_iter().flat_map(|field| field.split(','));
    let depends = depends.map(|clause| clause.split('|').filter_map(term).collect::<Vec<_>>());
    let depends = depends.filter(|alternatives| !alternatives.is_empty()).collect();
    let provides = provides.split(',').filter_map(term).collect();
    is_installed.then_some(Installed { name, version, provides, depends })
}

/// Reads `NAME[:ARCH] [(OPERATOR VERSION)]`.
fn term(text: &str) -> Option<Term<'_>> {
    let text = text.trim();
    let (name, rest) = text.split_once([' ', '(']).unwrap_or((text, ""));
    let version = rest.trim_matches([' ', '(', ')']);
    let version = version.split_once(' ').map(|(operator, version)| (operator, version.trim()));
    (!name.is_empty()).then_some(Term { name: plain(name), version })
}

impl Term<'_> {
    fn is_met_by(&self, package: &Installed) -> bool {
        let allows = |version: &str| {
            self.version.is_none_or(|(operator, wanted)| {
                let order = Scheme::Debian.order(version, wanted);
                match operator {
                    "<<" => order == Ordering::Less,
                    "<=" | "<" => order != Ordering::Greater,
                    "=" => order == Ordering::Equal,
                    ">>" => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }
            })
        };
        let provided = package.provides.iter().filter(|provided| provided.name == self.name);
        self.name == package.name && allows(package.version)
            || provided.map(|provided| provided.version).any(|version| match version {
                Some((_, version)) => allows(version),
                None => self.version.is_none(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: &str = "base\t1.0\tinstalled\t\t\t\n\
                           lib\t1.0\tinstalled\t\tbase (>= 0.5)\t\n\
                           app\t2.0\tinstalled\t\t\tlib (= 1.0), mail | post\n\
                           post\t1.0\tinstalled\tmail-agent, agent (= 3)\t\t\n\
                           reader\t1.0\tinstalled\t\t\tmail-agent\n\
                           exact\t1.0\tinstalled\t\t\tagent (>= 2)\n\
                           foreign\t1.0\tinstalled\t\t\tlib:any\n\
                           gone\t1.0\tconfig-files\t\t\tbase\n";

    fn found(removed: &[&str]) -> Vec<(String, String)> {
        let removed: Vec<String> = removed.iter().map(|name| (*name).to_owned()).collect();
        needed(RECORDS, &removed).into_iter().map(|needed| (needed.package, needed.by)).collect()
    }

    #[test]
    fn packages_are_needed_by_name_alternative_and_virtual_package() {
        let pair = |package: &str, by: &str| (package.to_owned(), by.to_owned());
        assert_eq!(found(&["app"]), []);
        assert_eq!(found(&["base"]), [pair("base", "lib")]);
        assert_eq!(found(&["lib:amd64"]), [pair("lib", "app"), pair("lib", "foreign")]);
        assert_eq!(found(&["lib", "app"]), [pair("lib", "foreign")]);
        assert_eq!(found(&["lib", "app", "foreign", "base"]), []);
        let post = [pair("post", "app"), pair("post", "reader"), pair("post", "exact")];
        assert_eq!(found(&["post"]), post);
    }
}
