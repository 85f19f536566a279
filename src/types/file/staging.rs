//! New content that is validated before it is published: alone, or together with other resources.

use super::{Action, File, Properties, effects, posix::Posix, source, state::FileState};
use crate::{
    host::files::{self, Attributes, TempFile},
    resource::{
        AnyState, Content, Context, Draft, Drafts, Effects, Error, JointValidation, PathEffect,
        PlannedChange, Provider,
    },
    types::{
        disk::{blame, note_parent, stop},
        validation::{Validate, ValidateCommand, validate_draft, validate_effects, validate_together},
    },
    vocabulary::RunMode,
};

impl JointValidation for Properties {
    fn commands(&self) -> Vec<&str> {
        let commands = self.validate.as_ref().map(Validate::joint).unwrap_or_default();
        commands.iter().map(ValidateCommand::as_written).collect()
    }

    fn concerns(&self, change: &PlannedChange) -> bool {
        self.is_validated(*change.action())
    }

    fn stage(
        &self,
        have: &AnyState,
        change: &PlannedChange,
        on: &Provider,
        drafts: &Drafts,
        cx: &Context,
    ) -> Result<Effects, Error> {
        let (have, action): (&FileState, Action) = (have.get(), *change.action());
        effects::simulate(self, have, action)?;
        let mut effects = effects::effects(self, have, action, cx);
        // A dry run knows the content from the effects, if it does.
        if !action.stores() || cx.mode() == RunMode::Noop {
            return Ok(effects);
        }
        let attributes = have.attributes_wanted().ok_or_else(effects::unknown_attributes)?;
        let draft = on.of::<File>().stage(self, have, attributes, drafts, cx)?;
        for path in &mut effects.paths {
            if let PathEffect::Operation { sha256, content, .. } = path {
                (*sha256, *content) = (Some(draft.sha256.clone()), Content::CopyOf(draft.copy.clone()));
            }
        }
        Ok(effects)
    }

    fn validate(&self, drafts: &Drafts, cx: &Context) -> Result<(), Error> {
        validate_together(self.validate.as_ref().map(Validate::joint).unwrap_or_default(), drafts, cx)
    }
}

impl Posix {
    /// Prepares new content in a private copy.
    fn stage(
        &self,
        want: &Properties,
        have: &FileState,
        attributes: Attributes,
        drafts: &Drafts,
        cx: &Context,
    ) -> Result<Draft, Error> {
        let path = want.name.as_path();
        if want.remote().is_some() {
            let mut staged = None;
            note_parent(path, cx);
            self.store(want, attributes, cx, |download: TempFile| {
                let mut file = download.reader().map_err(|error| Error::new(error.to_string()))?;
                staged = Some(drafts.add(path, attributes, |out| {
                    files::pieces(&mut file, &mut || stop(cx), |piece| out.write_all(piece)).map(drop)
                })?);
                Ok(())
            })?;
            return staged.ok_or_else(|| Error::new("the download is gone").on("source"));
        }
        let mut from = want.source.as_ref().map(|source| source::open(source, cx)).transpose()?;
        let text = have.edited().map(|edited| edited.new.as_str()).or(want.content.as_deref());
        drafts.add(path, attributes, |out| match (text, &mut from) {
            (Some(text), _) => out.write_all(text.as_bytes()),
            (None, Some(file)) => {
                files::pieces(file, &mut || stop(cx), |piece| out.write_all(piece)).map(drop)
            }
            (None, None) => Ok(()),
        })
    }
}

/// Publishes content that was validated together with other resources.
pub(super) fn publish_draft(
    drafts: &Drafts,
    want: &Properties,
    have: &FileState,
    attributes: Attributes,
    cx: &Context,
) -> Result<(), Error> {
    let path = want.name.as_path();
    let changed = || Error::new(format!("{path} was changed since it was validated", path = want.name));
    let draft = drafts.find(path).ok_or_else(changed)?;
    let is_current = |new: &str| super::wanted_content::checksum(new) == draft.sha256;
    if want.is_edited() && !have.edited().is_some_and(|edited| is_current(&edited.new)) {
        return Err(changed().on("edit"));
    }
    files::replace_among_others(path, attributes, |out| draft.pour(out, &mut || stop(cx)))
        .map_err(|error| blame(error, cx))
}

/// Validates a link or a removal that no other resource is validated with. Content is validated when it is complete.
pub(super) fn validate_alone(
    want: &Properties,
    have: &FileState,
    action: Action,
    cx: &Context,
) -> Result<(), Error> {
    let Some(validate) = want.validate.as_ref().filter(|_| want.is_validated(action)) else { return Ok(()) };
    if action.stores() || cx.validated().is_some() {
        return Ok(());
    }
    let drafts = Drafts::new(&cx.state.directory)?;
    validate_effects(validate.joint(), effects::effects(want, have, action, cx), &drafts, cx)
}

const UNKNOWN: &str = "the new content is not known yet, so it is not validated";

/// Validates in a dry run, with private copies.
pub(super) fn simulate(
    want: &Properties,
    have: &FileState,
    action: Action,
    cx: &Context,
) -> Result<(), Error> {
    let Some(validate) = want.validate.as_ref().filter(|_| want.is_validated(action)) else { return Ok(()) };
    if cx.validated().is_some() {
        return Ok(());
    }
    let effects = effects::effects(want, have, action, cx);
    if !effects.are_known() {
        cx.warn(UNKNOWN);
        return Ok(());
    }
    let drafts = match Drafts::new(&cx.state.directory) {
        Ok(drafts) => drafts,
        Err(error) => {
            cx.warn(format!("the new content is not validated: {}", error.message));
            return Ok(());
        }
    };
    if !validate.joint().is_empty() {
        return validate_effects(validate.joint(), effects, &drafts, cx);
    }
    let path = want.name.as_path();
    let attributes = have.attributes_wanted().ok_or_else(effects::unknown_attributes)?;
    let content = effects.paths.into_iter().find_map(|path| match path {
        PathEffect::Operation { content, .. } => Some(content),
        _ => None,
    });
    let content = cx.prediction.borrow().copied(content.unwrap_or(Content::Unknown));
    match drafts.copy_of(&content, path, attributes)? {
        Some(draft) => validate_draft(validate, path, &draft, &drafts, cx),
        None => {
            cx.warn(UNKNOWN);
            Ok(())
        }
    }
}
