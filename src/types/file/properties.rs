//! What may be asked of a file.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Action,
    edit::{self, Step},
    inspection,
    validate::Validate,
};
use crate::{
    download::header_problems,
    resource::{self, Common, Error, Managed, Preparation, ReadAhead, Warning, Watches},
    types::ownership::{Ownership, missing},
    vocabulary::{AbsolutePath, Account, Checksum, Glob, Mode, Secret, Url, has_scheme},
};

/// Files, directories and symbolic links: whether they exist, what is in them, who owns them and who may use them.
///
/// A file is replaced as a whole and appears with its final owner and mode: whoever reads it sees the old file or the
/// new one, also after a crash. Symbolic links are never followed: one at the path itself is replaced or removed, one
/// further up the path is followed only where no other user could have put it there.
///
/// In a directory of another account a file with `content` or `source` is written as anywhere else, whoever it is to
/// belong to: nothing of that account's is followed, read or changed for it. What cannot be done so, such as a directory, is
/// refused there unless it is to belong to that account, and the message names the account.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the file or directory, without `.`, `..` or doubled slashes.
    pub(crate) name: AbsolutePath,
    /// What is to be at the path: a regular file, nothing, a directory, or a symbolic link. Missing parents of a
    /// directory are made; the parent of a file or link must exist.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// The content of the file as text. Without `content`, `source` and `edit` only existence and attributes are
    /// managed: a file that is absent is created empty, and the bytes of an existing one stay. Unless ccm runs as root,
    /// the owner must be allowed to read the file by then: nobody else could tell whether its content is right.
    #[serde(alias = "contents", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-file-flag" = "content-file"))]
    pub(crate) content: Option<String>,
    /// A file to copy the content from: a local one, where a relative path starts at the folder of the manifest, or an
    /// address of http or https to download it from. A download appears complete and verified, or not at all; a user,
    /// password and query in its address are never shown. Not together with `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-source" = true))]
    pub(crate) source: Option<String>,
    /// What a download must hash to: the hex digits of its SHA-256, or `sha512:` and those of its SHA-512. A file that is
    /// there already and differs is downloaded again. Without it, whatever the server sends is believed, and what it says
    /// of the version (`ETag` or `Last-Modified`) decides whether to download again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<Checksum>,
    /// Headers to send to the server. Their values are never shown, and no other server that a redirect leads to gets
    /// them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Steps that change a text file of which only a part is managed, carried out in their order. Each step has one of
    /// `line`, `block`, `replace`, `ini`, `keyvalue`, `json` and `toml`, and its options beside it. Carried out on its
    /// own result an edit changes nothing, else it is refused. Owner, group and mode stay as they are unless given. Not
    /// together with `content` or `source`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-late" = true))]
    pub(crate) edit: Vec<Step>,
    /// A command, or several, that new content has to pass before it appears, or `{format: json}`, `yaml` or `toml`. The
    /// command is split into words, and `%s` in them is the path of a file beside this one that is complete, with its
    /// owner and mode, and will be renamed; `%%` is a percent sign. Without `%s` the command, such as `nginx -t`, sees the
    /// new file in its place while nobody else does, which takes root. It runs only when the content is about to change,
    /// also in a dry run, within `timeout` or a minute. If it fails, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) validate: Option<Validate>,
    /// With `edit`, begin with an empty file where there is none; owner, group and mode are then required. Without it, a
    /// file that is absent is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) create: bool,
    /// Where the link of `ensure: link` leads, as it is to be written into it: an absolute path, or one that starts at
    /// the directory of the link. It need not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) target: Option<String>,
    /// The user that owns it, by name or number. Required for files and directories, unless they are edited. In `ccm
    /// ensure`, what is there keeps its owner, group and mode when they are not given, and what is new gets those of
    /// whoever runs it and `0644`, a directory `0755`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// The group that owns it, by name or number. Required for files and directories, unless they are edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Its permissions in octal, such as `"0644"`; at most `0777`. A directory may be searched by whoever may read or
    /// write it: `"0644"` makes it `0755`. Required for files and directories, unless they are edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// Whether a program runs as the owner of its file. Taken away where it is not asked for, as are `setgid` and
    /// `sticky`, when `mode` or one of the three is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setuid: Option<bool>,
    /// Whether a program runs as the group of its file, and what is made in a directory belongs to its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setgid: Option<bool>,
    /// Whether only the owner of what is in a directory may rename or remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sticky: Option<bool>,
    /// With `ensure: directory`, remove what is in it and no resource of the manifest manages: files, archives and what is
    /// unpacked from them, what commands create. That is so too for resources that are off by `control`. What leads to
    /// something managed stays. Links are removed, never followed. `/`, home directories and mount points need `force:
    /// true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) purge: bool,
    /// Patterns of what `purge` leaves alone: `*.bak` wherever it is, `local/*` below the directory; `**` goes through
    /// directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignore: Vec<Glob>,
    /// With `ensure: absent`, remove a directory together with everything in it. With `ensure: directory`, put the
    /// directory in the place of a file, which is lost. With `ensure: link`, put the link in the place of a file, or of a
    /// directory with everything in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
}

/// What is to be at a path.
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
        let unverified = (self.remote().is_some() && self.checksum.is_none()).then(|| Warning {
            id: "no-checksum",
            message: "without `checksum`, whatever the server sends is believed".to_owned(),
            property: Some("source"),
            help: Some("give the SHA-256 of the file as `checksum`".to_owned()),
        });
        signs.chain(unverified).collect()
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
            folders: self.purge.then(|| self.name.as_path().to_owned()).into_iter().collect(),
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
}

impl Properties {
    /// Returns what is wrong with the ways in which the content is given.
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
        if self.purge && !directory {
            problems.push(Error::new("`purge` needs `ensure: directory`").on("purge"));
        }
        if !self.ignore.is_empty() && !self.purge {
            problems.push(Error::new("`ignore` needs `purge: true`").on("ignore"));
        }
        if self.validate.is_some() && given.is_empty() {
            problems.push(
                Error::new("`validate` needs `content`, `source` or `edit`")
                    .on("validate")
                    .unless(&["content", "source", "edit"])
                    .with_help("it judges content"),
            );
        }
        if self.create && !self.is_edited() {
            let message = "`create` needs `edit`: other files are made anyway";
            problems.push(Error::new(message).on("create").unless(&["edit"]));
        }
        problems
    }

    /// Returns the address to download from, where `source` is meant as one, or what is wrong with it.
    fn address(&self) -> Option<Result<Url, String>> {
        let source = self.source.as_deref().filter(|source| has_scheme(source))?;
        Some(Url::parse(source).map_err(|error| error.to_string()))
    }

    /// Returns the address to download from, if the content is downloaded.
    pub(super) fn remote(&self) -> Option<Url> {
        self.address()?.ok()
    }

    /// Returns the local file to copy from, if the content is copied.
    pub(super) fn copied(&self) -> Option<&String> {
        self.source.as_ref().filter(|source| !has_scheme(source))
    }

    /// Whether owner, group and mode have to be given.
    fn needs_attributes(&self) -> bool {
        match self.ensure {
            Ensure::Absent | Ensure::Link => false,
            Ensure::Directory => true,
            Ensure::Present => !self.is_edited() || self.create,
        }
    }

    /// Whether only a part of the content is managed.
    pub(super) fn is_edited(&self) -> bool {
        !self.edit.is_empty()
    }

    /// Whether new content has to be judged before an action puts it in place.
    pub(super) fn is_validated(&self, action: Action) -> bool {
        self.validate.is_some() && action.stores() && self.manages_content()
    }

    /// Whether the bytes of the file are managed, not only its existence and attributes.
    pub(super) fn manages_content(&self) -> bool {
        self.holds_content() || self.is_edited()
    }

    /// Whether the whole content is given.
    pub(super) fn holds_content(&self) -> bool {
        self.content.is_some() || self.source.is_some()
    }

    /// Whether the checksum of what is there matters: to compare it, or because somebody looks at the file and nothing
    /// else. A file that is edited is read in another way.
    pub(super) fn checksum_matters(&self) -> bool {
        let only_looks = self.ensure == Ensure::Present && self.mode.is_none();
        !self.is_edited() && (self.holds_content() || only_looks)
    }

    /// Returns the set-id and sticky bits that are asked for; `None` when they stay as they are.
    pub(super) fn special_bits(&self) -> Option<u32> {
        let flags = [(self.setuid, 0o4000), (self.setgid, 0o2000), (self.sticky, 0o1000)];
        let given = self.mode.is_some() || flags.iter().any(|(flag, _)| flag.is_some());
        let bits = flags.into_iter().filter(|(flag, _)| *flag == Some(true)).map(|(_, bit)| bit).sum();
        given.then_some(bits)
    }
}
