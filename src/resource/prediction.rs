//! What a dry run takes to be there: what its earlier resources would have left.
//!
//! The engine applies the [`Effects`] of each action that it only simulates, and every type asks here, through the
//! [`Context`](super::Context), before it asks the machine. There is one prediction for as long as a session lasts.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustix::process::{getegid, geteuid};

use super::{
    Drafts, Effects, Error,
    effects::{AccountEffect, AccountLeft, Content, PackageLeft, PathEffect, UnitEffect, Unknown},
};
use crate::{
    host::{
        files::{self, FileError, LeftAt, Predicted, Problem},
        process::Shown,
    },
    template::{PredictedText, TextPrediction},
};

/// What earlier resources of a dry run would have left; empty in a real run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prediction {
    pub(crate) files: files::Prediction,
    /// What files would hold. Whether they are there, `files` tells.
    texts: BTreeMap<PathBuf, Content>,
    users: Accounts,
    groups: Accounts,
    units: BTreeMap<String, UnitEffect>,
    packages: BTreeMap<String, PackageLeft>,
    unknown: Unknown,
    /// How many actions were simulated.
    actions: usize,
    /// Resources with effects that cannot be predicted completely, and the extent of their unknown effects.
    unpredictable: Vec<(String, Unknown)>,
    /// With the changes that wait for their validation, for templates.
    pending: Option<Box<Prediction>>,
}

/// Maximum number of resources that a message names.
const MOST_NAMED: usize = 3;

/// Whether an account is a user or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountKind {
    User,
    Group,
}

impl AccountKind {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }
}

impl Prediction {
    /// Whether nothing was simulated so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions == 0
    }

    /// Whether an earlier action may have done more than it names.
    pub(crate) fn may_differ(&self) -> bool {
        self.unknown > Unknown::Nothing
    }

    /// Whether an earlier action may have made or removed any path.
    pub(crate) fn may_differ_on_disk(&self) -> bool {
        self.unknown == Unknown::Anything
    }

    /// Takes it that anything may have been done before.
    pub(crate) fn assume_anything(&mut self) {
        self.actions += 1;
        self.unknown = Unknown::Anything;
        self.unpredictable.push(("an earlier command of the session".to_owned(), Unknown::Anything));
    }

    /// Records that the effects of a resource are not known completely.
    pub(crate) fn note_unpredictable(&mut self, resource: String, extent: Unknown) {
        if !self.unpredictable.iter().any(|(known, _)| *known == resource) {
            self.unpredictable.push((resource, extent));
        }
    }

    /// Returns the resources whose effects are not known completely.
    pub(crate) fn unpredictable(&self) -> Vec<&str> {
        self.unpredictable.iter().map(|(resource, _)| resource.as_str()).collect()
    }

    /// Names the earlier resources that could have caused anything that ccm cannot predict, for messages.
    pub(crate) fn suspects(&self) -> String {
        self.named(Unknown::NotPaths)
    }

    /// Names the earlier resources that could have created or removed any path, for messages.
    pub(crate) fn path_suspects(&self) -> String {
        self.named(Unknown::Anything)
    }

    fn named(&self, extent: Unknown) -> String {
        let names = self.unpredictable.iter().filter(|(_, known)| *known >= extent);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        match names.as_slice() {
            [] => "an earlier resource".to_owned(),
            [one] => (*one).to_owned(),
            [first @ .., last] if names.len() <= MOST_NAMED => format!("{} or {last}", first.join(", ")),
            _ => format!("{} or one of {} others", names[..2].join(", "), names.len() - 2),
        }
    }

    /// Shows templates the result of these changes as well. They wait for their validation.
    pub(crate) fn await_validation<'e>(&mut self, effects: impl Iterator<Item = &'e Effects>) {
        self.pending = None;
        let mut with = self.clone();
        let mut count = 0;
        for effects in effects {
            // A change that cannot be predicted fails when it is made.
            let _ = with.apply(effects.clone(), &mut |_| {});
            count += 1;
        }
        self.pending = (count > 0).then(|| Box::new(with));
    }

    /// Returns the prediction without the changes that wait for their validation.
    pub(crate) fn without_pending(&self) -> Self {
        Self { pending: None, ..self.clone() }
    }

    /// Returns the prediction with the changes that wait for their validation.
    pub(crate) fn with_pending(&self) -> Self {
        self.pending.as_deref().unwrap_or(self).clone()
    }

    /// Returns the entries of a view of the predicted machine. Files are copied to `drafts`. Files with unknown content are
    /// left out.
    pub(crate) fn view(&self, drafts: &Drafts) -> Result<Vec<(PathBuf, Shown<'static>)>, Error> {
        let mut entries = Vec::new();
        for (path, left) in self.files.changed() {
            let shown = match left {
                LeftAt::Nothing => Shown::Nothing,
                LeftAt::Link(target) => Shown::Link(target),
                LeftAt::Directory { attributes: files::Attributes { uid, gid, mode }, is_new } => {
                    Shown::Directory { uid, gid, mode, is_new }
                }
                LeftAt::Unknown => continue,
                LeftAt::File(attributes) => {
                    let content = self.texts.get(path).unwrap_or(&Content::Unknown);
                    match drafts.copy_of(content, path, attributes)? {
                        Some(draft) => Shown::FileAt(draft.copy),
                        None => continue,
                    }
                }
            };
            entries.push((path.to_owned(), shown));
        }
        Ok(entries)
    }

    /// What is predicted of a unit, if an earlier action was on it.
    pub(crate) fn unit(&self, unit: &str) -> Option<&UnitEffect> {
        self.units.get(unit)
    }

    /// What is predicted of a package, if an earlier action was on it.
    pub(crate) fn package(&self, name: &str) -> Option<&PackageLeft> {
        self.packages.get(name)
    }

    /// Remembers what an action would leave. Fails as the action would, and calls `warn` where that depends on what
    /// earlier actions may do.
    pub(crate) fn apply(&mut self, effects: Effects, warn: &mut dyn FnMut(String)) -> Result<(), FileError> {
        let Effects { paths, users, groups, units, packages, unknown } = effects;
        self.actions += 1;
        for path in paths {
            self.apply_path(path, warn)?;
        }
        self.users.apply(users);
        self.groups.apply(groups);
        for unit in units {
            let before = self.units.remove(&unit.unit);
            let running = unit.running.or_else(|| before.as_ref()?.running);
            let enabled = unit.enabled.or_else(|| before.as_ref()?.enabled);
            let masked = unit.masked.or_else(|| before.as_ref()?.masked);
            self.units.insert(unit.unit.clone(), UnitEffect { running, enabled, masked, ..unit });
        }
        self.packages.extend(packages.into_iter().map(|package| (package.name, package.left)));
        self.unknown = self.unknown.max(unknown);
        Ok(())
    }

    fn apply_path(&mut self, effect: PathEffect, warn: &mut dyn FnMut(String)) -> Result<(), FileError> {
        match effect {
            PathEffect::Operation { path, intent, sha256, content } => {
                match self.files.simulate(&path, intent.clone(), sha256.clone()) {
                    Err(FileError { problem: Problem::ParentMissing { missing, .. }, .. })
                        if self.may_differ_on_disk() =>
                    {
                        warn(format!(
                            "{} does not exist; assuming {} creates it",
                            missing.display(),
                            self.path_suspects()
                        ));
                        if let Some(parent) = path.parent() {
                            self.files.assume(parent, geteuid().as_raw(), getegid().as_raw());
                        }
                        self.files.simulate(&path, intent, sha256)?;
                    }
                    simulated => simulated?,
                }
                if content != Content::Kept {
                    let content = self.copied(content);
                    self.texts.insert(self.files.without_links(&path), content);
                }
            }
            PathEffect::Appears { path, uid, gid } => self.files.assume(&path, uid, gid),
            PathEffect::Filled { directory, root } => self.files.fill(&directory, root)?,
        }
        Ok(())
    }

    /// What is predicted of an account; `None` when no earlier action was on it.
    pub(super) fn account(&self, kind: AccountKind, name: &str) -> Option<AccountLeft> {
        self.accounts(kind).left.get(name).copied()
    }

    /// The number that stands in for an account whose own is not known yet.
    pub(super) fn stand_in(&mut self, kind: AccountKind, name: &str) -> u32 {
        match kind {
            AccountKind::User => self.users.stand_in(name),
            AccountKind::Group => self.groups.stand_in(name),
        }
    }

    /// The name that a number stands in for.
    pub(super) fn account_name(&self, kind: AccountKind, id: u32) -> Option<String> {
        self.accounts(kind).name_of(id)
    }

    fn accounts(&self, kind: AccountKind) -> &Accounts {
        match kind {
            AccountKind::User => &self.users,
            AccountKind::Group => &self.groups,
        }
    }

    /// Returns what a copy holds by now: what it is a copy of may itself be predicted, and may change later.
    pub(crate) fn copied(&self, content: Content) -> Content {
        let Content::CopyOf(source) = content else { return content };
        match self.text(&source) {
            Some(PredictedText::Text(text)) => Content::Text(text),
            Some(PredictedText::CopyOf(source)) => Content::CopyOf(source),
            Some(PredictedText::Unknown | PredictedText::Nothing) => Content::Unknown,
            None => Content::CopyOf(self.files.target_on_disk(&source)),
        }
    }

    /// Returns the text that was left at a path, or at the end of the links that it leads through.
    fn left_at(&self, path: &Path) -> Option<&Content> {
        self.texts.get(path).or_else(|| self.texts.get(&self.files.destination(path)?))
    }

    /// What a file would hold; `None` when that is what it holds on disk.
    pub(crate) fn text(&self, path: &Path) -> Option<PredictedText> {
        if let Some(pending) = &self.pending {
            return pending.text(path);
        }
        match self.files.follow(path).ok()?? {
            Predicted::Nothing => Some(PredictedText::Nothing),
            Predicted::Something { .. } | Predicted::Perhaps => Some(PredictedText::Unknown),
            Predicted::Entry(_) => match self.left_at(path)? {
                Content::Kept => None,
                Content::Text(text) => Some(PredictedText::Text(text.clone())),
                Content::CopyOf(source) => Some(PredictedText::CopyOf(source.clone())),
                Content::Unknown => Some(PredictedText::Unknown),
            },
        }
    }
}

impl TextPrediction for RefCell<Prediction> {
    fn text(&self, path: &Path) -> Option<PredictedText> {
        let prediction = self.borrow();
        let elsewhere = || Some(prediction.files.target_on_disk(path)).filter(|place| place != path);
        prediction.text(path).or_else(|| elsewhere().map(PredictedText::CopyOf))
    }
}

/// The users or the groups that a dry run predicts.
#[derive(Clone, Debug, Default)]
struct Accounts {
    left: BTreeMap<String, AccountLeft>,
    /// Accounts whose numbers are not known yet. Each gets one that no machine gives to anybody.
    stand_ins: Vec<String>,
}

/// The largest number is the system's word for "leave it as it is".
const FIRST_STAND_IN: u32 = u32::MAX - 1;

impl Accounts {
    fn apply(&mut self, effects: Vec<AccountEffect>) {
        self.left.extend(effects.into_iter().map(|effect| (effect.name, effect.left)));
    }

    fn stand_in(&mut self, name: &str) -> u32 {
        let at = self.stand_ins.iter().position(|known| known == name).unwrap_or_else(|| {
            self.stand_ins.push(name.to_owned());
            self.stand_ins.len() - 1
        });
        FIRST_STAND_IN - u32::try_from(at).unwrap_or_default()
    }

    fn name_of(&self, id: u32) -> Option<String> {
        self.stand_ins.get(usize::try_from(FIRST_STAND_IN.checked_sub(id)?).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        host::files::{Attributes, Intent},
        resource::effects::PackageEffect,
    };

    fn written(path: &str, content: Content) -> Effects {
        let intent = Intent::Write(Attributes::own(0o644));
        let (path, sha256) = (PathBuf::from(path), Some("sum".to_owned()));
        Effects { paths: vec![PathEffect::Operation { path, intent, sha256, content }], ..Effects::default() }
    }

    fn removed(path: &str) -> Effects {
        let path = PathBuf::from(path);
        let effect =
            PathEffect::Operation { path, intent: Intent::Remove, sha256: None, content: Content::Kept };
        Effects { paths: vec![effect], ..Effects::default() }
    }

    fn appears(path: &str) -> Effects {
        let path = PathBuf::from(path);
        Effects { paths: vec![PathEffect::Appears { path, uid: 0, gid: 0 }], ..Effects::default() }
    }

    #[test]
    fn the_text_of_a_file_is_what_the_last_action_left() {
        let file =
            std::env::temp_dir().canonicalize().unwrap().join(format!("ccm-text-{}", std::process::id()));
        let file = file.to_str().unwrap();
        let text = |text: &str| Some(PredictedText::Text(text.to_owned()));
        for (effects, expected) in [
            (vec![], None),
            (vec![written(file, Content::Text("one".to_owned()))], text("one")),
            (vec![written(file, Content::Text("one".to_owned())), written(file, Content::Kept)], text("one")),
            (
                vec![written(file, Content::CopyOf("/source".into()))],
                Some(PredictedText::CopyOf("/source".into())),
            ),
            (vec![written(file, Content::Unknown)], Some(PredictedText::Unknown)),
            (vec![appears(file)], Some(PredictedText::Unknown)),
            (
                vec![written(file, Content::Text("one".to_owned())), removed(file)],
                Some(PredictedText::Nothing),
            ),
            (
                vec![written(file, Content::Text("one".to_owned())), removed(file), appears(file)],
                Some(PredictedText::Unknown),
            ),
        ] {
            let mut prediction = Prediction::default();
            for effect in effects.clone() {
                prediction.apply(effect, &mut |warning| panic!("{warning}")).unwrap();
            }
            assert_eq!(prediction.text(Path::new(file)), expected, "{effects:?}");
        }
    }

    #[test]
    fn where_anything_may_have_been_done_before_something_was() {
        let mut prediction = Prediction::default();
        assert!(prediction.is_empty() && !prediction.may_differ());
        prediction.assume_anything();
        assert!(!prediction.is_empty() && prediction.may_differ_on_disk());
    }

    #[test]
    fn a_missing_directory_is_a_warning_only_after_what_may_have_made_it() {
        for (unknown, expected) in
            [(Unknown::Nothing, None), (Unknown::NotPaths, None), (Unknown::Anything, Some(1))]
        {
            let mut prediction = Prediction::default();
            let mut warnings = Vec::new();
            let before = Effects { unknown, ..Effects::default() };
            prediction.apply(before, &mut |_| unreachable!()).unwrap();
            assert_eq!(prediction.may_differ(), unknown > Unknown::Nothing);
            for file in ["/no-such-directory/a/one", "/no-such-directory/a/two"] {
                let applied =
                    prediction.apply(written(file, Content::Unknown), &mut |warning| warnings.push(warning));
                assert_eq!(applied.is_ok(), expected.is_some(), "{unknown:?}");
            }
            assert_eq!(warnings.len(), expected.unwrap_or_default(), "it is said once: {warnings:?}");
        }
    }

    #[test]
    fn what_is_done_to_a_unit_adds_up() {
        let mut prediction = Prediction::default();
        let mut act = |running, enabled, masked| {
            let units = vec![UnitEffect { unit: "a.service".to_owned(), running, enabled, masked }];
            prediction.apply(Effects { units, ..Effects::default() }, &mut |_| {}).unwrap();
            let unit = prediction.unit("a.service").unwrap();
            (unit.running, unit.enabled, unit.masked)
        };
        assert_eq!(act(Some(true), None, Some(false)), (Some(true), None, Some(false)));
        assert_eq!(act(None, Some(true), None), (Some(true), Some(true), Some(false)));
        assert_eq!(act(Some(false), None, Some(true)), (Some(false), Some(true), Some(true)));
    }

    #[test]
    fn accounts_without_a_number_get_one_that_stands_in_for_them() {
        let mut prediction = Prediction::default();
        let account = |name: &str, left| AccountEffect { name: name.to_owned(), left };
        let users = vec![
            account("new", AccountLeft::Present(None)),
            account("known", AccountLeft::Present(Some(7))),
            account("gone", AccountLeft::Absent),
        ];
        let left = PackageLeft::Installed(Some("1".to_owned()));
        let packages = vec![PackageEffect { name: "app".to_owned(), left: left.clone() }];
        prediction.apply(Effects { users, packages, ..Effects::default() }, &mut |_| {}).unwrap();
        for (name, left) in [
            ("new", Some(AccountLeft::Present(None))),
            ("known", Some(AccountLeft::Present(Some(7)))),
            ("gone", Some(AccountLeft::Absent)),
            ("other", None),
        ] {
            assert_eq!(prediction.account(AccountKind::User, name), left, "{name}");
            assert_eq!(prediction.account(AccountKind::Group, name), None, "{name}");
        }
        let (first, second) =
            (prediction.stand_in(AccountKind::User, "new"), prediction.stand_in(AccountKind::User, "more"));
        assert_ne!(first, second);
        assert_eq!(prediction.stand_in(AccountKind::User, "new"), first, "always the same one");
        assert_eq!(prediction.account_name(AccountKind::User, second).as_deref(), Some("more"));
        assert_eq!(prediction.account_name(AccountKind::Group, second), None);
        assert_eq!(prediction.account_name(AccountKind::User, 0), None);
        assert_eq!(prediction.package("app"), Some(&left));
        assert_eq!(prediction.package("other"), None);
    }
}
