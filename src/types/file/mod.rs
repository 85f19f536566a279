//! The `file` type: files, directories and links with their content and attributes.

mod contents;
mod decision;
mod diff;
mod edit;
mod editing;
mod effects;
mod inspection;
mod posix;
mod properties;
mod purge;
mod remote;
mod source;
mod staging;
mod state;
mod wanted_content;

use std::{fmt, path::PathBuf};

use self::{
    posix::Posix,
    properties::{Ensure, Properties},
    state::{Amount, FileState},
};
use crate::resource::{
    self, AnyState, Before, Behavior, Candidate, Change, Context, Effects, Error, Example, Pinned, Pinning,
    PlannedChange, Preparation, Provider, ReadAhead, ResourceType, Trigger,
};

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
    CreateLink,
    /// A link leads elsewhere.
    UpdateLink,
    /// A file makes room for a link.
    ReplaceFileWithLink,
    /// A directory makes room for a link.
    ReplaceDirectoryWithLink,
    CreateDirectory,
    /// A file makes room for a directory.
    ReplaceFileWithDirectory,
    SetDirectoryAttributes,
    /// Something in it belongs to nobody, and perhaps attributes differ.
    Purge,
    RemoveFile,
    RemoveDirectory,
    /// With everything in it; how much that is, only a dry run counts.
    RemoveTree(Option<Amount>),
}

impl Action {
    /// Whether the file gets new content.
    fn stores(self) -> bool {
        matches!(self, Self::CreateFile | Self::UpdateFile | Self::ReplaceLink)
    }

    /// Whether the path is removed.
    fn removes(self) -> bool {
        matches!(self, Self::RemoveFile | Self::RemoveDirectory | Self::RemoveTree(_))
    }

    /// Whether a link is made.
    fn links(self) -> bool {
        matches!(
            self,
            Self::CreateLink | Self::UpdateLink | Self::ReplaceFileWithLink | Self::ReplaceDirectoryWithLink
        )
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::CreateFile => "created the file",
            Self::UpdateFile | Self::SetFileAttributes => "updated the file",
            Self::ReplaceLink => "created the file in place of a symbolic link",
            Self::CreateLink => "created the link",
            Self::UpdateLink => "updated the link",
            Self::ReplaceFileWithLink => "created the link in place of a file",
            Self::ReplaceDirectoryWithLink => "created the link in place of a directory",
            Self::CreateDirectory => "created directory",
            Self::ReplaceFileWithDirectory => "created directory in place of a file",
            Self::SetDirectoryAttributes | Self::Purge => "updated directory",
            Self::RemoveFile => "removed the file",
            Self::RemoveDirectory => "removed the directory",
            Self::RemoveTree(None) => "recursively removed the directory",
            Self::RemoveTree(Some(amount)) => {
                return write!(f, "recursively removed the directory with {amount} in it");
            }
        })
    }
}

impl ReadAhead for Properties {
    fn look_ahead(&self, cx: &Context) -> Result<AnyState, Error> {
        inspection::inspect(self, cx).map(AnyState::of)
    }

    fn reached(&self, on: &Provider, cx: &Context) {
        on.of::<File>().turn(self, cx);
    }
}

impl Preparation for Properties {
    fn prepare(
        &self,
        next: &mut dyn Iterator<Item = &dyn resource::Properties>,
        on: &Provider,
        cx: &Context,
    ) {
        on.of::<File>().prepare(&mut next.map_while(|next| next.get()), cx);
    }
}

impl Pinning for Properties {
    fn pin(&self, _: &AnyState, _: Option<&PlannedChange>, cx: &Context) -> Result<Pinned, Error> {
        let content = self.copied().map(|source| source::content(source, cx)).transpose()?.flatten();
        let source = content.into_iter().map(|content| (PathBuf::new(), content)).collect();
        Ok(Pinned { source, ..Pinned::default() })
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
            title: "A program that is downloaded",
            manifest: "- file:\n    - /usr/local/bin/tool:\n        source: https://example.com/tool-1.2\n        \
                       checksum: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n        owner: root\n        \
                       group: root\n        mode: \"0755\"\n",
        },
        Example {
            title: "A file that appears only if a program finds it valid",
            manifest: "- file:\n    - /etc/sudoers.d/admins:\n        content: \"%admin ALL=(ALL) ALL\\n\"\n        owner: root\n        \
                       group: root\n        mode: \"0440\"\n        validate: visudo -cf %s\n",
        },
        Example {
            title: "A directory, made with its parents",
            manifest: "- file:\n    - /srv/app/uploads:\n        ensure: directory\n        owner: www-data\n        \
                       group: www-data\n        mode: \"0750\"\n",
        },
        Example {
            title: "A few settings in a file of somebody else",
            manifest: "- file:\n    - /etc/ssh/sshd_config:\n        edit:\n          - line: PermitRootLogin no\n            \
                       match: \"^#?PermitRootLogin\"\n          - block: |\n              Match User git\n                \
                       X11Forwarding no\n            marker: git\n",
        },
        Example {
            title: "A symbolic link",
            manifest: "- file:\n    - /opt/app/current:\n        ensure: link\n        target: releases/1.2\n",
        },
        Example {
            title: "A directory in which everybody may write, and remove only what is his",
            manifest: "- file:\n    - /srv/drop:\n        ensure: directory\n        owner: root\n        group: root\n        \
                       mode: \"0777\"\n        sticky: true\n",
        },
        Example {
            title: "A directory in which nothing is but what the manifest has in it",
            manifest: "- file:\n    - /etc/app/conf.d:\n        ensure: directory\n        owner: root\n        group: root\n        \
                       mode: \"0755\"\n        purge: true\n        ignore:\n          - \"*.local\"\n",
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

    const BEHAVIOR: Behavior = Behavior { keeps: &["owner", "group", "mode"], ..Behavior::USUAL };

    type Properties = Properties;
    type State = FileState;
    type Action = Action;
    type Provider = Posix;

    fn inspect(want: &Properties, on: &Posix, cx: &Context) -> Result<FileState, Error> {
        on.turn(want, cx);
        inspection::inspect(want, cx)
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
        if want.is_edited() {
            return Ok(diff::of_edit(want, have, *action));
        }
        if want.remote().is_some() || effects::only_foresees(want, have, cx) {
            return Ok(None);
        }
        diff::preview(want, *action, cx)
    }

    fn simulate(
        want: &Properties,
        have: &FileState,
        action: &Action,
        _: &Posix,
        cx: &Context,
    ) -> Result<(), Error> {
        effects::simulate(want, have, *action)?;
        staging::simulate(want, have, *action, cx)
    }

    fn effects(want: &Properties, have: &FileState, action: &Action, cx: &Context) -> Effects {
        effects::effects(want, have, *action, cx)
    }

    fn before(_: &Properties, _: &FileState, _: &Action) -> Before {
        Before::Paths
    }

    fn enact(
        want: &Properties,
        have: &FileState,
        action: Action,
        on: &Posix,
        cx: &Context,
    ) -> Result<FileState, Error> {
        staging::validate_alone(want, have, action, cx)?;
        on.enact(want, have, action, cx)?;
        inspection::inspect(want, cx)
    }
}
