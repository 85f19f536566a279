//! Files that are processed and validated before they appear.

use super::{
    Action, Properties,
    effects::effects,
    post,
    state::{ScaffoldState, Write},
};
use crate::{
    resource::{
        AnyState, Content, Context, Draft, Drafts, Effects, Error, JointValidation, PathEffect,
        PlannedChange, Provider, Unknown,
    },
    types::validation::{Validate, ValidateCommand, validate_draft, validate_effects, validate_together},
    vocabulary::RunMode,
};

impl JointValidation for Properties {
    fn commands(&self) -> Vec<&str> {
        joint(self).iter().map(ValidateCommand::as_written).collect()
    }

    fn concerns(&self, change: &PlannedChange) -> bool {
        !matches!(change.action::<Action>(), Action::Change(0) | Action::Remove(0))
    }

    fn stage(
        &self,
        have: &AnyState,
        _: &PlannedChange,
        _: &Provider,
        drafts: &Drafts,
        cx: &Context,
    ) -> Result<Effects, Error> {
        let have: &ScaffoldState = have.get();
        if cx.mode() == RunMode::Noop { Ok(effects(have)) } else { stage(self, have, drafts, cx) }
    }

    fn validate(&self, drafts: &Drafts, cx: &Context) -> Result<(), Error> {
        validate_together(joint(self), drafts, cx)
    }
}

fn joint(want: &Properties) -> &[ValidateCommand] {
    want.validate.as_ref().map(Validate::joint).unwrap_or_default()
}

/// Prepares the files that differ, and validates those that are validated alone.
fn stage(want: &Properties, have: &ScaffoldState, drafts: &Drafts, cx: &Context) -> Result<Effects, Error> {
    have.plan.write.iter().try_for_each(|file| stage_file(want, file, drafts, cx))?;
    let mut effects = effects(have);
    effects.unknown = Unknown::Nothing;
    for path in &mut effects.paths {
        if let PathEffect::Operation { path, sha256, content, .. } = path
            && let Some(Draft { copy, sha256: left, .. }) = drafts.find(path)
        {
            (*sha256, *content) = (Some(left), Content::CopyOf(copy));
        }
    }
    Ok(effects)
}

/// Prepares a file: commands process it, and it is validated if it is validated alone.
pub(super) fn stage_file(
    want: &Properties,
    file: &Write,
    drafts: &Drafts,
    cx: &Context,
) -> Result<(), Error> {
    cx.tick()?;
    let Some(attributes) = file.attributes else { return Ok(()) };
    drafts.add(&file.path, attributes, |out| out.write_all(&file.bytes))?;
    post::process(want, file, drafts, cx)?;
    match (&want.validate, drafts.find(&file.path)) {
        (Some(validate), Some(draft)) if validate.joint().is_empty() => {
            validate_draft(validate, &file.path, &draft, drafts, cx)
        }
        _ => Ok(()),
    }
}

/// Prepares and validates the files of a scaffold that no other resource is validated with; nothing if it has neither
/// commands nor a validation.
pub(super) fn alone(want: &Properties, have: &ScaffoldState, cx: &Context) -> Result<Option<Drafts>, Error> {
    let plan = &have.plan;
    let is_processed = plan.write.iter().any(|file| file.is_processed);
    let is_needed = want.validate.is_some() || is_processed;
    if cx.validated().is_some() || !is_needed {
        return Ok(None);
    }
    let drafts = Drafts::new(&cx.state.directory)?;
    // Files that are not validated together are prepared one by one.
    let is_changed = !plan.write.is_empty() || !plan.remove.is_empty();
    if is_changed && !joint(want).is_empty() {
        let effects = stage(want, have, &drafts, cx)?;
        validate_effects(joint(want), effects, &drafts, cx)?;
    }
    Ok(Some(drafts))
}

/// Fails as the commands of `post` and `validate` would, as far as a dry run can tell.
pub(super) fn simulate(want: &Properties, have: &ScaffoldState, cx: &Context) -> Result<(), Error> {
    have.plan.write.iter().try_for_each(|file| post::simulate(want, file, cx))?;
    let Some(validate) = want.validate.as_ref().filter(|_| cx.validated().is_none()) else { return Ok(()) };
    let drafts = Drafts::new(&cx.state.directory)?;
    if !validate.joint().is_empty() {
        let effects = effects(have);
        if effects.are_known() {
            return validate_effects(validate.joint(), effects, &drafts, cx);
        }
    } else if have.plan.write.iter().all(|file| !file.is_processed) {
        for file in &have.plan.write {
            let Some(attributes) = file.attributes else { continue };
            let draft = drafts.copy(&file.path, attributes, |out| out.write_all(&file.bytes))?;
            validate_draft(validate, &file.path, &draft, &drafts, cx)?;
        }
        return Ok(());
    }
    cx.warn("the new content is not known yet, so it is not validated");
    Ok(())
}
