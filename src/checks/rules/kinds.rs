//! The kinds of rules, and which attributes each of them has.

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    File,
    Command,
    Port,
    Package,
    User,
    Service,
    Process,
    Http,
    Group,
    KernelParam,
    Mount,
    Addr,
    Dns,
    Interface,
    Matching,
}

/// What an attribute of a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A value is compared with it.
    Value,
    /// A text is compared with it.
    Text,
    /// Headers are compared with it.
    Headers,
    /// The mode of a file is compared with it.
    Mode,
    /// A range of versions in the order of the package manager.
    Version,
    /// It says how to look.
    Option,
}

/// What a kind of rule can say.
pub(super) struct Words {
    pub(super) name: &'static str,
    /// The attribute that names the subject when the id does not.
    pub(super) subject: &'static str,
    /// The attribute that has to be there, if one has.
    pub(super) required: Option<&'static str>,
    /// Whether nothing else is looked at when the required one is false or not as expected.
    pub(super) gates: bool,
    pub(super) attributes: &'static [(&'static str, Role)],
    /// All of its keys, for messages.
    pub(super) keys: &'static [&'static str],
}

pub(super) const INCLUDE: &str = "gossfile";

/// The names of all kinds, for messages.
pub(super) const NAMES: [&str; 16] = [
    "file",
    "command",
    "port",
    "package",
    "user",
    "service",
    "process",
    "http",
    "group",
    "kernel-param",
    "mount",
    "addr",
    "dns",
    "interface",
    "matching",
    INCLUDE,
];

impl Kind {
    const ALL: [Self; 15] = [
        Self::File,
        Self::Command,
        Self::Port,
        Self::Package,
        Self::User,
        Self::Service,
        Self::Process,
        Self::Http,
        Self::Group,
        Self::KernelParam,
        Self::Mount,
        Self::Addr,
        Self::Dns,
        Self::Interface,
        Self::Matching,
    ];

    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.words().name == name)
    }

    /// Returns its name in rules.
    pub(crate) fn name(self) -> &'static str {
        self.words().name
    }

    /// Returns the property that decides whether the others are looked at.
    pub(crate) fn gate(self) -> Option<&'static str> {
        let Words { required, gates, .. } = self.words();
        required.filter(|_| *gates)
    }

    #[rustfmt::skip]
    #[allow(clippy::too_many_lines, reason = "a table")]
    pub(super) fn words(self) -> &'static Words {
        use Role::{Headers, Mode, Option as Opt, Text, Value, Version};
        match self {
            Self::File => &Words {
                name: "file", subject: "path", required: Some("exists"), gates: true,
                attributes: &[
                    ("exists", Value), ("mode", Mode), ("size", Value), ("owner", Value), ("group", Value),
                    ("uid", Value), ("gid", Value), ("filetype", Value), ("linked-to", Value), ("contents", Text),
                    ("contains", Text), ("md5", Value), ("sha256", Value), ("sha512", Value),
                ],
                keys: &[
                    "exists", "mode", "size", "owner", "group", "uid", "gid", "filetype", "linked-to", "contents",
                    "contains", "md5", "sha256", "sha512", "path", "title", "meta", "skip",
                ],
            },
            Self::Command => &Words {
                name: "command", subject: "exec", required: Some("exit-status"), gates: false,
                attributes: &[("exit-status", Value), ("stdout", Text), ("stderr", Text), ("timeout", Opt)],
                keys: &["exit-status", "stdout", "stderr", "timeout", "exec", "title", "meta", "skip"],
            },
            Self::Port => &Words {
                name: "port", subject: "port", required: Some("listening"), gates: true,
                attributes: &[("listening", Value), ("ip", Value)],
                keys: &["listening", "ip", "port", "title", "meta", "skip"],
            },
            Self::Package => &Words {
                name: "package", subject: "name", required: Some("installed"), gates: true,
                attributes: &[("installed", Value), ("versions", Value), ("version", Version)],
                keys: &["installed", "versions", "version", "name", "title", "meta", "skip"],
            },
            Self::User => &Words {
                name: "user", subject: "username", required: Some("exists"), gates: true,
                attributes: &[
                    ("exists", Value), ("uid", Value), ("gid", Value), ("home", Value), ("shell", Value),
                    ("groups", Value),
                ],
                keys: &["exists", "uid", "gid", "home", "shell", "groups", "username", "title", "meta", "skip"],
            },
            Self::Service => &Words {
                name: "service", subject: "name", required: None, gates: false,
                attributes: &[("enabled", Value), ("running", Value)],
                keys: &["enabled", "running", "name", "title", "meta", "skip"],
            },
            Self::Process => &Words {
                name: "process", subject: "comm", required: Some("running"), gates: false,
                attributes: &[("running", Value), ("count", Value), ("user", Opt), ("args", Opt)],
                keys: &["running", "count", "user", "args", "comm", "title", "meta", "skip"],
            },
            Self::Http => &Words {
                name: "http", subject: "url", required: Some("status"), gates: true,
                attributes: &[
                    ("status", Value), ("headers", Headers), ("body", Text), ("time", Value), ("method", Opt),
                    ("request-headers", Opt), ("request-body", Opt), ("username", Opt), ("password", Opt),
                    ("allow-insecure", Opt), ("no-follow-redirects", Opt), ("timeout", Opt), ("ca-file", Opt),
                    ("cert-file", Opt), ("key-file", Opt), ("proxy", Opt),
                ],
                keys: &[
                    "status", "headers", "body", "time", "method", "request-headers", "request-body", "username",
                    "password", "allow-insecure", "no-follow-redirects", "timeout", "ca-file", "cert-file", "key-file",
                    "proxy", "url", "title", "meta", "skip",
                ],
            },
            Self::Group => &Words {
                name: "group", subject: "groupname", required: Some("exists"), gates: true,
                attributes: &[("exists", Value), ("gid", Value)],
                keys: &["exists", "gid", "groupname", "title", "meta", "skip"],
            },
            Self::KernelParam => &Words {
                name: "kernel-param", subject: "name", required: Some("value"), gates: false,
                attributes: &[("value", Value)],
                keys: &["value", "name", "title", "meta", "skip"],
            },
            Self::Mount => &Words {
                name: "mount", subject: "mountpoint", required: Some("exists"), gates: true,
                attributes: &[
                    ("exists", Value), ("opts", Value), ("vfs-opts", Value), ("source", Value),
                    ("filesystem", Value), ("usage", Value), ("timeout", Opt),
                ],
                keys: &[
                    "exists", "opts", "vfs-opts", "source", "filesystem", "usage", "timeout", "mountpoint", "title",
                    "meta", "skip",
                ],
            },
            Self::Addr => &Words {
                name: "addr", subject: "address", required: Some("reachable"), gates: false,
                attributes: &[("reachable", Value), ("local-address", Opt), ("timeout", Opt)],
                keys: &["reachable", "local-address", "timeout", "address", "title", "meta", "skip"],
            },
            Self::Dns => &Words {
                name: "dns", subject: "resolve", required: Some("resolvable"), gates: true,
                attributes: &[("resolvable", Value), ("addrs", Value), ("server", Opt), ("timeout", Opt)],
                keys: &["resolvable", "addrs", "server", "timeout", "resolve", "title", "meta", "skip"],
            },
            Self::Interface => &Words {
                name: "interface", subject: "name", required: Some("exists"), gates: true,
                attributes: &[("exists", Value), ("addrs", Value), ("mtu", Value)],
                keys: &["exists", "addrs", "mtu", "name", "title", "meta", "skip"],
            },
            Self::Matching => &Words {
                name: "matching", subject: "", required: Some("matches"), gates: false,
                attributes: &[("matches", Value), ("content", Opt)],
                keys: &["content", "matches", "title", "meta", "skip"],
            },
        }
    }
}

/// What each kind of rule can say, as a table of the manual.
#[cfg(test)]
pub(crate) fn rule_table() -> String {
    use std::fmt::Write as _;

    let mut table = "| kind | subject | expected | how to look |\n|---|---|---|---|\n".to_owned();
    for kind in Kind::ALL {
        let Words { name, subject, required, gates, attributes, .. } = kind.words();
        let key = |attribute: &&str| match (Some(*attribute) == *required, gates) {
            (true, true) => format!("**`{attribute}`***"),
            (true, false) => format!("**`{attribute}`**"),
            (false, _) => format!("`{attribute}`"),
        };
        let keys = |is_option: bool| {
            let chosen = attributes.iter().filter(|(_, role)| (*role == Role::Option) == is_option);
            chosen.map(|(attribute, _)| key(attribute)).collect::<Vec<_>>().join(", ")
        };
        let subject =
            if subject.is_empty() { "its id".to_owned() } else { format!("its id, or `{subject}`") };
        let _ = writeln!(table, "| `{name}` | {subject} | {} | {} |", keys(false), keys(true));
    }
    table.push_str("| `gossfile` | its id, or `file` | includes other files; `*` and `?` in the name match several | |\n");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_is_among_the_keys() {
        for kind in Kind::ALL {
            let Words { name, subject, required, attributes, keys, .. } = kind.words();
            assert!(NAMES.contains(name));
            assert!(subject.is_empty() || keys.contains(subject), "{name}");
            assert!(required.is_none_or(|required| keys.contains(&required)), "{name}");
            let own = keys.len() - 3 - usize::from(!subject.is_empty());
            assert_eq!(attributes.len(), own, "{name}");
            assert!(attributes.iter().all(|(key, _)| keys.contains(key)), "{name}");
        }
    }
}
