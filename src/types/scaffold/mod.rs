//! The `scaffold` type: a directory from a tree of templates.

mod effects;
mod enact;
mod inspection;
mod post;
mod properties;
mod staging;
mod state;
mod tree;

use std::fmt;

use self::{
    properties::{Ensure, Properties},
    state::{Plan, ScaffoldState},
};
use crate::resource::{
    Before, Candidate, Change, Context, Difference, Effects, Error, Example, ResourceType, Trigger,
};

/// What has to happen to the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// So many files are written or purged; with none of them, only folders differ.
    Change(usize),
    /// So many files are removed; with none of them, only folders that are empty.
    Remove(usize),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Change(0) => f.write_str("changed scaffold folders"),
            Self::Change(count) => write!(f, "changed {count} scaffold files"),
            Self::Remove(0) => f.write_str("removed scaffold folders"),
            Self::Remove(count) => write!(f, "removed {count} scaffold files"),
        }
    }
}

/// The `scaffold` type.
pub(crate) struct Scaffold;

impl ResourceType for Scaffold {
    const NAME: &'static str = "scaffold";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A configuration directory from templates beside the manifest",
            manifest: "- scaffold:\n    - /etc/app:\n        source: templates/app\n        owner: root\n        group: root\n        \
                       mode: \"0640\"\n",
        },
        Example {
            title: "A copy of a folder, in which nothing else is to be",
            manifest: "- scaffold:\n    - /srv/www:\n        source: www\n        engine: none\n        purge: true\n        \
                       owner: www-data\n        group: www-data\n",
        },
        Example {
            title: "Delimiters that leave `{{ }}` to others, and a command for some of the files",
            manifest: "- scaffold:\n    - /srv/tool:\n        source: tool\n        left_delimiter: \"[[\"\n        \
                       right_delimiter: \"]]\"\n        post:\n          - \"*.go\": gofmt -w {}\n        owner: root\n        group: root\n",
        },
        Example {
            title: "Without the files that a tree has",
            manifest: "- scaffold:\n    - /etc/old:\n        ensure: absent\n        source: templates/old\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "posix",
        summary: "any Linux file system, through its system calls.",
        make: |_| Ok(Box::new(())),
    }];

    type Properties = Properties;
    type State = ScaffoldState;
    type Action = Action;
    type Provider = ();

    fn inspect(want: &Properties, (): &(), cx: &Context) -> Result<ScaffoldState, Error> {
        inspection::inspect(want, cx)
    }

    fn compare(want: &Properties, have: &ScaffoldState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        Ok(decide(want.ensure, &have.plan))
    }

    fn preview(
        _: &Properties,
        have: &ScaffoldState,
        _: &Action,
        (): &(),
        cx: &Context,
    ) -> Result<Option<String>, Error> {
        effects::diff(have, cx)
    }

    fn simulate(
        want: &Properties,
        have: &ScaffoldState,
        _: &Action,
        (): &(),
        cx: &Context,
    ) -> Result<(), Error> {
        staging::simulate(want, have, cx)
    }

    fn effects(_: &Properties, have: &ScaffoldState, _: &Action, _: &Context) -> Effects {
        effects::effects(have)
    }

    fn before(_: &Properties, _: &ScaffoldState, _: &Action) -> Before {
        Before::Paths
    }

    fn enact(
        want: &Properties,
        have: &ScaffoldState,
        _: Action,
        (): &(),
        cx: &Context,
    ) -> Result<ScaffoldState, Error> {
        enact::enact(want, have, cx)?;
        Ok(inspection::inspect(want, cx)?.after(have))
    }
}

/// Decides what to do about what was found.
fn decide(ensure: Ensure, plan: &Plan) -> Option<Change<Action>> {
    let files = plan.write.len() + plan.remove.len();
    let wrong_folders = plan.folders.iter().filter(|folder| !folder.is_right).count();
    let (action, differences) = match ensure {
        Ensure::Present if files + wrong_folders > 0 => (Action::Change(files), differences(plan)),
        Ensure::Absent if files + plan.emptied.len() > 0 => (Action::Remove(files), Vec::new()),
        Ensure::Present | Ensure::Absent => return None,
    };
    Some(Change { action, differences, refreshes: false })
}

/// Returns what differs in any of the files, and each file that is purged.
fn differences(plan: &Plan) -> Vec<Difference> {
    let mut properties: Vec<&'static str> = plan.write.iter().flat_map(|file| file.differs.clone()).collect();
    if plan.folders.iter().any(|folder| !folder.is_right && folder.have.is_some()) {
        properties.push("directory_mode");
    }
    let mut seen = Vec::new();
    properties.retain(|property| {
        let is_new = !seen.contains(property);
        seen.push(property);
        is_new
    });
    let purged = plan.remove.iter().map(|path| Difference::between("purge", path.display(), "absent"));
    properties.into_iter().map(Difference::of).chain(purged).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        state::{Folder, Write},
        *,
    };

    #[test]
    fn what_is_to_be_done_follows_from_what_differs() {
        let nothing = Plan::default;
        let write =
            || Plan { write: vec![Write { differs: vec!["content"], ..Write::default() }], ..nothing() };
        let remove = || Plan { remove: vec!["/t/x".into()], ..nothing() };
        let folder = |is_right| Folder { path: "/t".into(), have: None, is_right };
        let folders = |is_right| Plan { folders: vec![folder(is_right)], ..nothing() };
        let emptied = || Plan { emptied: vec!["/t".into()], ..nothing() };
        for (ensure, plan, expected) in [
            (Ensure::Present, nothing(), None),
            (Ensure::Present, folders(true), None),
            (Ensure::Present, folders(false), Some("changed scaffold folders")),
            (Ensure::Present, write(), Some("changed 1 scaffold files")),
            (Ensure::Present, remove(), Some("changed 1 scaffold files")),
            (Ensure::Absent, nothing(), None),
            (Ensure::Absent, folders(false), None),
            (Ensure::Absent, remove(), Some("removed 1 scaffold files")),
            (Ensure::Absent, emptied(), Some("removed scaffold folders")),
        ] {
            let said = decide(ensure, &plan).map(|change| change.action.to_string());
            assert_eq!(said.as_deref(), expected, "{ensure:?} {plan:?}");
        }
        let said = decide(Ensure::Present, &Plan { remove: remove().remove, ..write() });
        let properties: Vec<_> =
            said.unwrap().differences.iter().map(|difference| difference.property).collect();
        assert_eq!(properties, ["content", "purge"]);
    }
}
