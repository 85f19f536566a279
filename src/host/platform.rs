//! The distribution, from its os-release file.

use super::system_file;

/// A distribution and its version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Platform {
    pub(crate) name: String,
    /// Family of distributions with the same package and service management.
    pub(crate) family: String,
    pub(crate) version: String,
}

/// Relevant fields of os-release.
#[derive(Default)]
struct Release {
    id: String,
    like: String,
    version: String,
}

impl Platform {
    /// Returns the platform of this machine.
    pub(crate) fn here() -> Self {
        Self::of(|path| system_file::read(&format!("/{path}")).ok())
    }

    /// Returns the platform of a machine whose files `text` reads, by paths relative to its root.
    pub(crate) fn of(text: impl Fn(&str) -> Option<String>) -> Self {
        let line = |path: &str| {
            let text = text(path)?;
            let line = text.lines().next()?.trim();
            (!line.is_empty()).then(|| line.to_owned())
        };
        let text = text("etc/os-release").or_else(|| text("usr/lib/os-release"));
        let Release { id, like, version } = Release::read(&text.unwrap_or_default());
        let known = family(&id).or_else(|| like.split_whitespace().find_map(family));
        let family = known.map_or_else(|| id.clone(), str::to_owned);
        // These distributions have additional files with the point release, or for unreleased versions.
        let exact = match id.as_str() {
            "debian" | "raspbian" => line("etc/debian_version"),
            "centos" => line("etc/centos-release").and_then(|line| release_number(&line)),
            _ => None,
        };
        Self { name: name(&id).to_owned(), family, version: exact.unwrap_or(version) }
    }
}

impl Release {
    fn read(text: &str) -> Self {
        let mut release = Self::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let field = match key.trim() {
                "ID" => &mut release.id,
                "ID_LIKE" => &mut release.like,
                "VERSION_ID" => &mut release.version,
                _ => continue,
            };
            // Values are quoted as in a shell.
            *field = shell_words::split(value).map_or_else(|_| value.to_owned(), |words| words.join(" "));
        }
        release
    }
}

/// Returns the common name of a distribution that uses another name for itself.
fn name(id: &str) -> &str {
    match id {
        "rhel" => "redhat",
        "ol" => "oracle",
        "amzn" => "amazon",
        other => other,
    }
}

fn family(id: &str) -> Option<&'static str> {
    Some(match id {
        "debian" | "ubuntu" | "linuxmint" | "raspbian" | "kali" | "pop" | "elementary" | "devuan"
        | "deepin" | "kylin" | "openkylin" | "cumulus-linux" => "debian",
        "rhel" | "centos" | "rocky" | "almalinux" | "ol" | "amzn" | "scientific" | "cloudlinux"
        | "xenserver" | "virtuozzo" | "openEuler" | "alinux" | "anolis" | "nobara" => "rhel",
        "fedora" => "fedora",
        "suse"
        | "opensuse"
        | "opensuse-leap"
        | "opensuse-tumbleweed"
        | "sles"
        | "sled"
        | "sles_sap"
        | "opensuse-microos"
        | "sle-micro" => "suse",
        "arch" | "archarm" | "manjaro" | "endeavouros" => "arch",
        "alpine" => "alpine",
        "gentoo" => "gentoo",
        _ => return None,
    })
}

/// Returns `7.9.2009` of `CentOS Linux release 7.9.2009 (Core)`.
fn release_number(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("release ")?;
    let number = rest.split_whitespace().next()?;
    number.starts_with(|first: char| first.is_ascii_digit()).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_as_in_a_shell() {
        let release =
            Release::read("# a comment\nID='rocky'\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=9.3\n");
        assert_eq!((release.id.as_str(), release.version.as_str()), ("rocky", "9.3"));
        assert_eq!(release.like, "rhel centos fedora");
        assert_eq!(Release::read("ID=\"broken\n").id, "\"broken");
    }

    #[test]
    fn a_release_number_begins_with_a_digit() {
        for (line, number) in [
            ("CentOS Linux release 7.9.2009 (Core)", Some("7.9.2009")),
            ("CentOS Stream release 9", Some("9")),
            ("Fedora release Rawhide", None),
            ("", None),
        ] {
            assert_eq!(release_number(line).as_deref(), number, "{line:?}");
        }
    }
}
