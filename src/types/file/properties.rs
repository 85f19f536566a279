//! Properties of a file.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Action,
    edit::{self, Step},
    inspection,
};
use crate::{
    document::Severity,
    download::{header_problems, unverified},
    host::{input, look},
    resource::{self, Common, Error, JointValidation, Managed, Preparation, ReadAhead, Warning, Watches},
    types::{
        ownership::{Ownership, missing},
        purge::Purge,
        validation::Validate,
    },
    vocabulary::{AbsolutePath, Account, Checksum, Glob, Mode, Secret, Url, WantedChecksum, has_scheme},
};

/// Manages files, directories and symbolic links: existence, content, owner, group and permissions.
///
/// ccm replaces a file atomically: at every instant, also after a crash, the path is the complete old file or the
/// complete new file with its final owner and mode. ccm never follows a symbolic link at the path: it replaces or
/// removes the link. It follows a link in a parent directory only if no other user could have created the link.
///
/// In a directory that belongs to another account, ccm writes files with `content` or `source` without following,
/// reading or changing anything of that account. It refuses operations that cannot be done this way, such as creating a
/// directory, unless the result belongs to that account. The message names the account.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the file or directory, without `.`, `..` or doubled slashes.
    pub(crate) name: AbsolutePath,
    /// Desired state: a regular file, nothing, a directory, or a symbolic link. ccm creates missing parents of a
    /// directory. The parent of a file or link must exist.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Content of the file. Without `content`, `source` and `edit`, ccm manages only existence, owner, group and mode:
    /// it creates a missing file empty and keeps the content of an existing file. If ccm does not run as root, the
    /// owner must be able to read the file, because ccm has to verify the content.
    #[serde(alias = "contents", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-file-flag" = "content-file"))]
    pub(crate) content: Option<String>,
    /// File to copy the content from: a local path, relative to the directory of the manifest, or an HTTP or HTTPS URL
    /// to download. ccm never shows the user, password or query of the URL. A download appears only when it is complete
    /// and verified. Conflicts with `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-source" = true))]
    pub(crate) source: Option<String>,
    /// If false, ccm copies a `source` that ends in `.age` as it is. Otherwise the content is the decrypted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decrypt: Option<bool>,
    /// Expected checksum of a download: a SHA-256 in hex, or `sha512:` and a SHA-512 in hex. ccm downloads an existing
    /// file again if its checksum differs. Without `checksum`, ccm accepts any content, and compares `ETag` or
    /// `Last-Modified` to decide whether to download again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<WantedChecksum>,
    /// HTTP headers to send to the server. ccm never shows their values, and does not send them to another server after
    /// a redirect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Steps that edit parts of a text file, in order. Each step has one of `line`, `block`, `replace`, `ini`,
    /// `keyvalue`, `json` and `toml`, and its options. ccm rejects an edit that would change its own result. Owner,
    /// group and mode stay unless they are set. Conflicts with `content` and `source`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) edit: Vec<Step>,
    /// A command, a list of commands, or `{format: json}`, `yaml` or `toml`. ccm publishes new content only if all of
    /// them accept it. ccm splits a command into words; `%s` is the path of a complete file next to this one, with its
    /// final owner and mode, and `%%` is a percent sign. Without `%s`, a command such as `nginx -t` validates all files,
    /// edits, links, removals and scaffolds of the run with the same `validate` together: it runs once, when ccm reaches
    /// the last of them, and sees all changes in place, which takes root. Nothing of it is published if it fails. A
    /// command runs only if content changes, also in a dry run, for at most `timeout` or one minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-argument" = true))]
    pub(crate) validate: Option<Validate>,
    /// If true, `edit` creates a missing file. `owner`, `group` and `mode` are then required. If false, a missing file
    /// is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) create: bool,
    /// Target of the symbolic link, written as it is: an absolute path, or a path relative to the directory of the
    /// link. The target does not have to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) target: Option<String>,
    /// User that owns the file, by name or UID. Required for files and directories without `edit`. With `ccm ensure`,
    /// an existing file keeps its owner, group and mode unless you set them. A new file belongs to the current user,
    /// with mode `0644` (`0755` for directories).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// Group that owns the file, by name or GID. Required for files and directories without `edit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Permissions in octal, such as `"0644"`; at most `0777`. For a directory, ccm adds the search permission wherever
    /// there is read or write permission: `"0644"` becomes `0755`. Required for files and directories without `edit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// If true, the program runs as the owner of its file. If `mode`, `setuid`, `setgid` or `sticky` is set, ccm
    /// removes the other special bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setuid: Option<bool>,
    /// If true, the program runs as the group of its file; in a directory, new files belong to the group of the
    /// directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setgid: Option<bool>,
    /// If true, only the owner of a file in the directory can rename or remove the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sticky: Option<bool>,
    /// If true, with `ensure: directory`, ccm removes the files in the directory that no resource of the manifest manages:
    /// other files, directories and links, which are never followed. Resources that `control` disables count, too, and so
    /// do extracted archives and files that commands create. `/`, home directories and mount points need `force: true`.
    /// If a file that would be removed belongs to a package, ccm fails unless the value is `force`.
    #[serde(default, skip_serializing_if = "Purge::is_off")]
    pub(crate) purge: Purge,
    /// Patterns of paths that `purge` keeps: `*.bak` matches at any depth, `local/*` below the directory, and `**`
    /// crosses directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignore: Vec<Glob>,
    /// If true, `ensure: absent` removes a directory with its content, `ensure: directory` replaces a file, and
    /// `ensure: link` replaces a file or a directory with its content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
}

/// Desired kind of file at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// A regular file.
    #[default]
    Present,
    /// Nothing.
    Absent,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

impl Ensure {
    fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Directory => "directory",
            Self::Link => "link",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Present | Self::Absent => "file",
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn pinning(&self) -> Option<&dyn resource::Pinning> {
        self.copied().map(|_| self as &dyn resource::Pinning)
    }

    fn problems(&self) -> Vec<Error> {
        let mut problems = self.content_problems();
        let is_root = self.name.as_path().parent().is_none();
        match self.ensure {
            Ensure::Absent if is_root => {
                problems.push(Error::new("the root directory cannot be removed").on("ensure"));
            }
            Ensure::Present | Ensure::Link if is_root => {
                let noun = self.ensure.noun();
                problems.push(Error::new(format!("the root directory cannot be a {noun}")).on("ensure"));
            }
            _ => {}
        }
        if self.needs_attributes() {
            let needed = [
                ("owner", self.owner.is_some()),
                ("group", self.group.is_some()),
                ("mode", self.mode.is_some()),
            ];
            let lacking = missing(&format!("a {}", self.ensure.noun()), &needed);
            // A file that is edited keeps its attributes.
            let is_edited = self.ensure == Ensure::Present && !self.create;
            let unless: &[_] = if is_edited { &["edit"] } else { &[] };
            problems.extend(lacking.into_iter().map(|error| error.unless(unless)));
        }
        problems
    }

    fn problems_with(&self, _: Option<&str>) -> Vec<Error> {
        let mut problems = edit::problems(&self.edit);
        if self.source.as_ref().is_some_and(String::is_empty) {
            problems
                .push(Error::new("`source` is empty").on("source").with_help("name the file to copy from"));
        }
        if let Some(Err(reason)) = self.address() {
            problems.push(Error::new(reason).on("source"));
        } else if self.remote().is_none() {
            let given = [("checksum", self.checksum.is_some()), ("headers", !self.headers.is_empty())];
            for (property, _) in given.into_iter().filter(|(_, given)| *given) {
                let message = format!("`{property}` needs a `source` that is an address");
                problems.push(Error::new(message).on("source").with_help("it is for downloads"));
            }
        }
        problems.extend(header_problems(&self.headers));
        let is_joint = self.validate.as_ref().is_none_or(|validate| !validate.joint().is_empty());
        if matches!(self.ensure, Ensure::Absent | Ensure::Link) && !is_joint {
            let message =
                format!("with `ensure: {}`, `validate` has no content to look at", self.ensure.word());
            let help = "use a command without `%s`, which validates the configuration as a whole";
            problems.push(Error::new(message).on("validate").with_help(help));
        }
        if self.target.as_ref().is_some_and(|target| target.is_empty() || target.contains('\0')) {
            problems.push(
                Error::new("`target` is not a path").on("target").with_help("name what the link leads to"),
            );
        }
        problems
    }

    fn warnings(&self, _: &Common) -> Vec<Warning> {
        let name = self.name.to_string();
        let local = self.source.as_deref().filter(|_| self.remote().is_none());
        let texts = [("name", Some(name.as_str())), ("source", local)];
        let given = texts.into_iter().filter_map(|(property, text)| Some((property, text?)));
        let signs = given.filter_map(|(property, text)| resource::meant_for_a_shell(property, text));
        signs
            .chain(self.without_effect())
            .chain(self.unfinished_line())
            .chain(self.missing_time_zone())
            .collect()
    }

    fn remarks(&self, _: &Common, folder: &Path) -> Vec<(Severity, Warning)> {
        let is_unverified = self.remote().is_some() && self.checksum.is_none();
        let unverified = is_unverified.then(|| unverified("source"));
        let remarks = unverified.into_iter().chain(self.copied_template(folder));
        remarks.map(|warning| (Severity::Warning, warning)).collect()
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        let headers = self.headers.values().map(|value| Cow::Borrowed(value.reveal()));
        let in_address = self.remote().map(|url| url.secrets()).unwrap_or_default();
        headers.chain(in_address.into_iter().map(Cow::Owned)).collect()
    }

    fn watches(&self) -> Watches {
        let source = self.copied().map(Into::into);
        Watches {
            paths: std::iter::once(self.name.as_path().to_owned()).chain(source).collect(),
            folders: self.purge.is_wanted().then(|| self.name.as_path().to_owned()).into_iter().collect(),
            ..Ownership::of(self.owner.as_ref(), self.group.as_ref()).watches()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        vec![Managed::Path(self.name.as_path().to_owned())]
    }

    fn read_ahead(&self) -> Option<&dyn ReadAhead> {
        inspection::is_read_ahead(self).then_some(self)
    }

    fn preparation(&self) -> Option<&dyn Preparation> {
        Some(self)
    }

    fn joint_validation(&self) -> Option<&dyn JointValidation> {
        Some(self)
    }
}

/// Larger files are not searched for expressions.
const LARGEST_TEMPLATE: u64 = 1 << 20;

/// The id of warnings about properties that a link does not have.
const NO_EFFECT: &str = "no-effect-on-link";

impl Properties {
    /// Returns the expected checksum of a download.
    pub(super) fn sum(&self) -> Option<&Checksum> {
        self.checksum.as_ref().and_then(WantedChecksum::checksum)
    }

    /// Warns about the first property that has no effect on a link.
    fn without_effect(&self) -> Option<Warning> {
        let given =
            [("mode", self.mode.is_some()), ("owner", self.owner.is_some()), ("group", self.group.is_some())];
        let (property, _) =
            given.into_iter().find(|(_, is_given)| *is_given && self.ensure == Ensure::Link)?;
        Some(Warning {
            id: NO_EFFECT,
            message: format!("`{property}` has no effect on a link"),
            property: Some(property),
            help: Some("set it on the target, in a `file` of its own".to_owned()),
        })
    }

    /// Warns about a file of cron whose last line cron ignores.
    fn unfinished_line(&self) -> Option<Warning> {
        let is_cron = ["/etc/cron.d", "/etc/crontab", "/var/spool/cron"]
            .iter()
            .any(|place| self.name.as_path().starts_with(place));
        let content = self.content.as_deref().filter(|_| is_cron && self.ensure == Ensure::Present)?;
        (!content.is_empty() && !content.ends_with('\n')).then(|| Warning {
            id: "no-last-newline",
            message: "the last line has no newline, and cron ignores such a line".to_owned(),
            property: Some("content"),
            help: Some(
                "write the content as a block (`|`), or end it with \"\\n\" in double quotes".to_owned(),
            ),
        })
    }

    /// Warns about a source with expressions or blocks of a template: they are copied as they are.
    fn copied_template(&self, folder: &Path) -> Option<Warning> {
        let source = self.copied()?;
        let bytes = input::read_file(&folder.join(source), LARGEST_TEMPLATE).ok()?;
        let text = str::from_utf8(&bytes).ok()?;
        let has = |begin: &str, end: &str| text.split_once(begin).is_some_and(|(_, rest)| rest.contains(end));
        let (sign, function) = match (has("{%", "%}"), has("{{", "}}")) {
            (true, _) => ("{% %}", "jinja"),
            (false, true) => ("{{ }}", "template"),
            (false, false) => return None,
        };
        Some(Warning {
            id: "copied-template",
            message: format!("`{sign}` in {source} is copied as it is, not expanded"),
            property: Some("source"),
            help: Some(format!("if it is a template, write `content: \"${{ {function}('{source}') }}\"`")),
        })
    }

    /// Warns about a link to a time zone that this machine does not have.
    fn missing_time_zone(&self) -> Option<Warning> {
        let zones = Path::new("/usr/share/zoneinfo");
        let target = self.target.as_deref().map(Path::new).filter(|target| target.starts_with(zones))?;
        let is_missing = self.ensure == Ensure::Link && look::is_directory(zones) && !look::is_file(target);
        is_missing.then(|| Warning {
            id: "no-time-zone",
            message: format!("there is no time zone {}", target.display()),
            property: Some("target"),
            help: Some("`timedatectl list-timezones` lists the time zones of a machine".to_owned()),
        })
    }

    /// Returns the errors in the properties that give the content.
    fn content_problems(&self) -> Vec<Error> {
        let ways = [
            ("content", self.content.is_some()),
            ("source", self.source.is_some()),
            ("edit", self.is_edited()),
        ];
        let given: Vec<&'static str> =
            ways.into_iter().filter(|(_, given)| *given).map(|(way, _)| way).collect();
        let mut problems = Vec::new();
        if let [first, .., last] = given[..] {
            problems.push(
                Error::new(format!("`{first}` and `{last}` cannot be given together"))
                    .on(last)
                    .with_help("keep the one that holds the content"),
            );
        }
        if matches!(self.ensure, Ensure::Directory | Ensure::Link) {
            let noun = self.ensure.noun();
            problems.extend(given.first().map(|way| Error::new(format!("a {noun} has no `{way}`")).on(way)));
        }
        match (self.ensure, &self.target) {
            (Ensure::Link, None) => problems.push(
                Error::new("`target` is missing: a link leads somewhere")
                    .on("target")
                    .with_help("name what the link leads to"),
            ),
            (Ensure::Present | Ensure::Directory, Some(_)) => problems.push(
                Error::new(format!("a {} has no `target`", self.ensure.noun()))
                    .on("target")
                    .with_help("set `ensure: link` to make a symbolic link"),
            ),
            _ => {}
        }
        let directory = self.ensure == Ensure::Directory;
        if self.purge.is_wanted() && !directory {
            problems.push(Error::new("`purge` needs `ensure: directory`").on("purge"));
        }
        if !self.ignore.is_empty() && self.purge.is_off() {
            problems.push(Error::new("`ignore` needs `purge: true`").on("ignore"));
        }
        let has_content = matches!(self.ensure, Ensure::Absent | Ensure::Link) || !given.is_empty();
        if self.validate.is_some() && !has_content {
            problems.push(
                Error::new("`validate` needs `content`, `source` or `edit`, or `ensure: link` or `absent`")
                    .on("validate")
                    .unless(&["content", "source", "edit"])
                    .with_help("it validates new content"),
            );
        }
        if self.create && !self.is_edited() {
            let message = "`create` needs `edit`: other files are made anyway";
            problems.push(Error::new(message).on("create").unless(&["edit"]));
        }
        problems
    }

    /// Returns the URL to download from if `source` looks like one, or the error in it.
    fn address(&self) -> Option<Result<Url, String>> {
        let source = self.source.as_deref().filter(|source| has_scheme(source))?;
        Some(Url::parse(source).map_err(|error| error.to_string()))
    }

    /// Returns the URL to download from, if the content is downloaded.
    pub(super) fn remote(&self) -> Option<Url> {
        self.address()?.ok()
    }

    /// Returns the local file to copy from, if the content is copied.
    pub(super) fn copied(&self) -> Option<&String> {
        self.source.as_ref().filter(|source| !has_scheme(source))
    }

    /// Returns whether owner, group and mode are required.
    fn needs_attributes(&self) -> bool {
        match self.ensure {
            Ensure::Absent | Ensure::Link => false,
            Ensure::Directory => true,
            Ensure::Present => !self.is_edited() || self.create,
        }
    }

    /// Returns whether ccm manages only parts of the content.
    pub(super) fn is_edited(&self) -> bool {
        !self.edit.is_empty()
    }

    /// Returns whether a change has to be validated before an action publishes it.
    pub(super) fn is_validated(&self, action: Action) -> bool {
        let is_new_content = action.stores() && self.manages_content();
        self.validate.is_some() && (is_new_content || action.links() || action.removes())
    }

    /// Returns whether ccm manages the content of the file, not only its existence and attributes.
    pub(super) fn manages_content(&self) -> bool {
        self.holds_content() || self.is_edited()
    }

    /// Returns whether the complete content is given.
    pub(super) fn holds_content(&self) -> bool {
        self.content.is_some() || self.source.is_some()
    }

    /// Returns whether the checksum of the existing file is needed: to compare it, or for `ccm status`. Edited files
    /// are read in another way.
    pub(super) fn checksum_matters(&self) -> bool {
        let only_looks = self.ensure == Ensure::Present && self.mode.is_none();
        !self.is_edited() && (self.holds_content() || only_looks)
    }

    /// Returns the desired setuid, setgid and sticky bits; `None` if they stay as they are.
    pub(super) fn special_bits(&self) -> Option<u32> {
        let flags = [(self.setuid, 0o4000), (self.setgid, 0o2000), (self.sticky, 0o1000)];
        let given = self.mode.is_some() || flags.iter().any(|(flag, _)| flag.is_some());
        let bits = flags.into_iter().filter(|(flag, _)| *flag == Some(true)).map(|(_, bit)| bit).sum();
        given.then_some(bits)
    }
}
