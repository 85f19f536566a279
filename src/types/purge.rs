//! The property `purge`.

use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    host::{
        files::{self, FileKind},
        look,
        process::{Command, Finished},
        system_file,
    },
    resource::{Context, Error},
};

/// Whether unmanaged files are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purge {
    #[default]
    No,
    Yes,
    /// Also files of packages.
    Force,
}

impl Purge {
    pub(super) fn is_wanted(self) -> bool {
        self != Self::No
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn is_off(&self) -> bool {
        *self == Self::No
    }
}

impl<'de> Deserialize<'de> for Purge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl de::Visitor<'_> for Written {
            type Value = Purge;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("true, false or `force`")
            }

            fn visit_bool<E: de::Error>(self, is_wanted: bool) -> Result<Purge, E> {
                Ok(if is_wanted { Purge::Yes } else { Purge::No })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Purge, E> {
                match text {
                    "force" => Ok(Purge::Force),
                    "true" => Ok(Purge::Yes),
                    "false" => Ok(Purge::No),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl Serialize for Purge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::No => false.serialize(serializer),
            Self::Yes => true.serialize(serializer),
            Self::Force => "force".serialize(serializer),
        }
    }
}

impl JsonSchema for Purge {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Purge".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "const": "force" }] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Fails if packages own some of the files that would be removed, unless that is wanted.
pub(super) fn refuse_files_of_packages(
    purge: Purge,
    directory: &Path,
    gone: &[PathBuf],
    cx: &Context,
) -> Result<(), Error> {
    if purge == Purge::Force || gone.is_empty() {
        return Ok(());
    }
    let real = look::real(directory).unwrap_or_else(|_| directory.to_owned());
    let Some((package, path)) = of_dpkg(&real, gone).or_else(|| of_rpm(&real, gone, cx)) else {
        return Ok(());
    };
    let message = format!(
        "packages own files in {}: {} belongs to `{package}` and would be removed",
        directory.display(),
        path.display()
    );
    let help = "list such files in `ignore`, or set `purge: force` to remove files of packages, too";
    Err(Error::new(message).on("purge").with_help(help))
}

const DPKG: &str = "/var/lib/dpkg/info";

/// Returns one of the files that would be removed and that a package of dpkg owns.
fn of_dpkg(directory: &Path, gone: &[PathBuf]) -> Option<(String, PathBuf)> {
    let gone: Vec<PathBuf> = gone.iter().map(|path| directory.join(path)).collect();
    let below = format!("{}/", directory.to_str()?.trim_end_matches('/'));
    let mut names = files::names(Path::new(DPKG)).ok()?;
    names.sort();
    names.iter().filter_map(|name| name.to_str()).find_map(|name| {
        let package = name.strip_suffix(".list")?;
        let list = system_file::read(&format!("{DPKG}/{name}")).ok()?;
        let owned = list.lines().filter(|line| line.starts_with(&below)).map(PathBuf::from);
        let found = owned
            .filter(|path| gone.iter().any(|gone| path.starts_with(gone)) && !is_directory(path))
            .find(|path| files::inspect(path).ok().flatten().is_some());
        Some((package.split(':').next()?.to_owned(), found?))
    })
}

/// Maximum number of files whose package is queried.
const QUERIED: usize = 1000;

/// Databases of rpm. Without one of them, `rpm` would create an empty database in the home directory.
const RPM_DATABASES: [&str; 6] = [
    "/var/lib/rpm/rpmdb.sqlite",
    "/var/lib/rpm/Packages.db",
    "/var/lib/rpm/Packages",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/Packages.db",
    "/usr/lib/sysimage/rpm/Packages",
];

/// Returns one of the files that would be removed and that a package of rpm owns.
fn of_rpm(directory: &Path, gone: &[PathBuf], cx: &Context) -> Option<(String, PathBuf)> {
    if !RPM_DATABASES.iter().any(|database| look::exists(Path::new(database))) {
        return None;
    }
    let mut paths = Vec::new();
    for path in gone {
        collect(&directory.join(path), &mut paths);
    }
    let texts = paths.iter().map(|path| path.display().to_string());
    let command = Command::new("rpm")
        .arguments(["-qf", "--qf", "%{NAME}\n"].map(str::to_owned).into_iter().chain(texts));
    let Ok(Finished { stdout, .. }) = command.run(&cx.host.runner, cx.interrupt()) else { return None };
    let text = stdout.text();
    let found = text.lines().zip(&paths).find(|(line, _)| !line.contains(' '));
    found.map(|(package, path)| (package.to_owned(), path.clone()))
}

/// Adds the files below a path, up to the number that is queried.
fn collect(path: &Path, paths: &mut Vec<PathBuf>) {
    if paths.len() >= QUERIED {
        return;
    }
    if !is_directory(path) {
        return paths.push(path.to_owned());
    }
    for name in files::names(path).unwrap_or_default() {
        collect(&path.join(name), paths);
    }
}

fn is_directory(path: &Path) -> bool {
    files::inspect(path).ok().flatten().is_some_and(|entry| entry.kind == FileKind::Directory)
}
