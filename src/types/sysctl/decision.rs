//! Which of the two values change.

use super::{
    Action, Ensure, Properties, SysctlState,
    entries::{with_value, without},
};
use crate::resource::{Change, Difference};

/// Decides what to do, if anything. The kernel may lack the setting: then there is no live value to change.
pub(super) fn compare(want: &Properties, have: &SysctlState) -> Option<Change<Action>> {
    let text = have.file.text();
    let (live, value) = (have.live.value(), want.value());
    let mut differences = Vec::new();
    let mut action = Action { set: None, store: None, stays: None };
    match want.ensure {
        Ensure::Present => {
            if want.live.manages_live()
                && let Some(live) = live.filter(|live| *live != value)
            {
                differences.push(Difference::between("value", live, value));
                action.set = Some(value.to_owned());
            }
            let is_stored = have
                .stored
                .as_ref()
                .is_some_and(|stored| stored.value == value && (stored.is_optional || !want.ignore_missing));
            if want.live.manages_stored() && !is_stored {
                let stored = have.stored.as_ref().map_or("absent", |stored| &stored.value);
                differences.push(Difference::between("stored", stored, value));
                action.store =
                    have.file.become_text(Some(with_value(text, &want.name, value, want.ignore_missing)));
            }
            // A missing setting is an error, which the run reports when it acts.
            let lacks = live.is_none() && want.live.manages_live() && !want.ignore_missing;
            if lacks && differences.is_empty() {
                differences.push(Difference::between("value", "absent", value));
                action.set = Some(value.to_owned());
            }
        }
        Ensure::Absent if have.stored.is_some() && want.live.manages_stored() => {
            let is_kept = want.file.is_some();
            let rest = without(text, &want.name).or_else(|| is_kept.then(String::new));
            action.store = have.file.become_text(rest);
            action.stays = live.map(str::to_owned);
        }
        Ensure::Absent => {}
    }
    let is_idle = action.set.is_none() && action.store.is_none();
    (!is_idle).then_some(Change { action, differences, refreshes: false })
}
