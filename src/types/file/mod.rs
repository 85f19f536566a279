//! The `file` type: files and directories with their content and attributes.

mod decision;
mod diff;
mod edit;
mod posix;
mod source;
mod state;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{posix::Posix, state::FileState};
use crate::{
    resource::{
        self, Candidate, Change, Context, Effects, Error, Example, ResourceType, Trigger, Warning, Watches,
    },
    vocabulary::{AbsolutePath, Account, Mode},
};

/// Files and directories: whether they exist, what is in them, who owns them and who may use them.
///
/// A file is replaced as a whole and appears with its final owner and mode: whoever reads it sees the old file or the
/// new one, also after a crash. Symbolic links are never followed: one at the path itself is replaced or removed, one
/// further up the path is followed only where no other user could have put it there.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the file or directory, without `.`, `..` or doubled slashes.
    pub(crate) name: AbsolutePath,
    /// What is to be at the path: a regular file, nothing, or a directory. Missing parents of a directory are made; the
    /// parent of a file must exist.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// The content of the file as text. Without `content` and `source` only existence and attributes are managed: a
    /// file that is absent is created empty, and the bytes of an existing one stay. Unless ccm runs as root, the owner
    /// must be allowed to read the file by then: nobody else could tell whether its content is right.
    #[serde(alias = "contents", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-file-flag" = "content-file"))]
    pub(crate) content: Option<String>,
    /// A local file to copy the content from. A relative path starts at the folder of the manifest. Not together with
    /// `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true))]
    pub(crate) source: Option<String>,
    /// The user that owns it, by name or number. Required unless `ensure` is `absent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// The group that owns it, by name or number. Required unless `ensure` is `absent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Its permissions in octal, such as `"0644"`; at most `0777`. A directory may be searched by whoever may read or
    /// write it: `"0644"` makes it `0755`. Required unless `ensure` is `absent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// With `ensure: absent`, remove a directory together with everything in it. With `ensure: directory`, put the
    /// directory in the place of a file, which is lost.
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
}

impl Ensure {
    fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Directory => "directory",
        }
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let mut problems = Vec::new();
        if self.content.is_some() && self.source.is_some() {
            problems.push(
                Error::new("`content` and `source` cannot be given together")
                    .on("source")
                    .with_help("keep the one that holds the content"),
            );
        }
        if self.source.as_ref().is_some_and(String::is_empty) {
            problems
                .push(Error::new("`source` is empty").on("source").with_help("name the file to copy from"));
        }
        let is_root = self.name.as_path().parent().is_none();
        match self.ensure {
            Ensure::Absent => {
                problems
                    .extend(is_root.then(|| Error::new("the root directory cannot be removed").on("ensure")));
                return problems;
            }
            Ensure::Present if is_root => {
                problems.push(Error::new("the root directory cannot be a file").on("ensure"));
            }
            Ensure::Directory => problems.extend(self.content_of_a_directory()),
            Ensure::Present => {}
        }
        let given = [self.owner.is_some(), self.group.is_some(), self.mode.is_some()];
        for (property, _) in ["owner", "group", "mode"].into_iter().zip(given).filter(|(_, given)| !given) {
            let message = format!("`{property}` is missing: a {} needs owner, group and mode", self.noun());
            problems.push(Error::new(message).on(property));
        }
        problems
    }

    fn warnings(&self, _: Option<&str>) -> Vec<Warning> {
        let path = self.name.to_string();
        let glob = path.contains(['*', '?']).then(|| Warning {
            id: "glob-in-name",
            message: "`*` and `?` in a name are characters of the path: they match nothing else".to_owned(),
            property: Some("name"),
            help: Some("declare each file on its own".to_owned()),
        });
        glob.into_iter().collect()
    }
}

impl Properties {
    fn content_of_a_directory(&self) -> Option<Error> {
        let property = if self.content.is_some() { "content" } else { "source" };
        let given = self.content.is_some() || self.source.is_some();
        given.then(|| Error::new(format!("a directory has no `{property}`")).on(property))
    }

    fn noun(&self) -> &'static str {
        if self.ensure == Ensure::Directory { "directory" } else { "file" }
    }

    /// Whether the bytes of the file are managed, not only its existence and attributes.
    fn manages_content(&self) -> bool {
        self.content.is_some() || self.source.is_some()
    }

    /// Whether somebody asks for the content that is there: to compare it, or to look at the file and nothing else.
    fn content_matters(&self) -> bool {
        let only_looks = self.ensure != Ensure::Absent && self.mode.is_none();
        self.manages_content() || only_looks
    }
}

/// What has to happen to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    CreateFile,
    /// The content differs, and perhaps attributes too.
    UpdateFile,
    /// Only attributes differ.
    SetFileAttributes,
    /// A symbolic link makes room for a file.
    ReplaceLink,
    CreateDirectory,
    /// A file makes room for a directory.
    ReplaceFileWithDirectory,
    SetDirectoryAttributes,
    RemoveFile,
    RemoveDirectory,
}

impl Action {
    /// Whether the file gets new content.
    fn stores(self) -> bool {
        matches!(self, Self::CreateFile | Self::UpdateFile | Self::ReplaceLink)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::CreateFile => "created the file",
            Self::UpdateFile | Self::SetFileAttributes => "updated the file",
            Self::ReplaceLink => "created the file in place of a symbolic link",
            Self::CreateDirectory => "created directory",
            Self::ReplaceFileWithDirectory => "created directory in place of a file",
            Self::SetDirectoryAttributes => "updated directory",
            Self::RemoveFile => "removed the file",
            Self::RemoveDirectory => "removed the directory",
        })
    }
}

/// The `file` type.
pub(crate) struct File;

impl ResourceType for File {
    const NAME: &'static str = "file";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A file with its content in the manifest",
            manifest: "- file:\n    - /etc/motd:\n        content: |\n          Managed by ccm\n        owner: root\n        \
                       group: root\n        mode: \"0644\"\n",
        },
        Example {
            title: "A copy of a file that lies beside the manifest",
            manifest: "- file:\n    - /etc/app/config.yaml:\n        source: files/config.yaml\n        owner: app\n        \
                       group: app\n        mode: \"0640\"\n",
        },
        Example {
            title: "A directory, made with its parents",
            manifest: "- file:\n    - /srv/app/uploads:\n        ensure: directory\n        owner: www-data\n        \
                       group: www-data\n        mode: \"0750\"\n",
        },
        Example {
            title: "Something that must not be there",
            manifest: "- file:\n    - /etc/cron.d/old-job:\n        ensure: absent\n",
        },
        Example {
            title: "A secret: neither its content nor a diff is ever shown",
            manifest: "- file:\n    - /etc/app/token:\n        content: \"${ Environ.APP_TOKEN }\"\n        owner: app\n        group: app\n        \
                       mode: \"0400\"\n        sensitive: true\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "posix",
        summary: "any Linux file system, through its system calls.",
        make: |_| Ok(Box::default()),
    }];

    type Properties = Properties;
    type State = FileState;
    type Action = Action;
    type Provider = Posix;

    fn inspect(want: &Properties, on: &Posix, cx: &Context) -> Result<FileState, Error> {
        on.turn(want, cx);
        posix::inspect(want, cx)
    }

    fn compare(want: &Properties, have: &FileState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have)
    }

    fn preview(
        want: &Properties,
        have: &FileState,
        action: &Action,
        _: &Posix,
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        if posix::only_foresees(want, have, cx) {
            return Ok(None);
        }
        diff::preview(want, *action, cx)
    }

    fn simulate(
        want: &Properties,
        have: &FileState,
        action: &Action,
        _: &Posix,
        _: &Context,
    ) -> Result<(), Error> {
        posix::simulate(want, have, *action)
    }

    fn effects(want: &Properties, have: &FileState, action: &Action, cx: &Context) -> Effects {
        posix::effects(want, have, *action, cx)
    }

    fn watches(want: &Properties) -> Watches {
        let names = |account: &Option<Account>| account.iter().map(ToString::to_string).collect();
        let source = want.source.as_ref().map(Into::into);
        Watches {
            paths: std::iter::once(want.name.as_path().to_owned()).chain(source).collect(),
            users: names(&want.owner),
            groups: names(&want.group),
            ..Watches::default()
        }
    }

    fn prepare<'w>(
        _: &'w Properties,
        next: &mut dyn Iterator<Item = &'w Properties>,
        on: &Posix,
        cx: &Context,
    ) {
        on.prepare(next, cx);
    }

    fn enact(
        want: &Properties,
        have: &FileState,
        action: Action,
        on: &Posix,
        cx: &Context,
    ) -> Result<FileState, Error> {
        on.enact(want, have, action, cx)?;
        posix::inspect(want, cx)
    }
}
