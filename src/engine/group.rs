//! Consecutive resources of one type that are enacted together.
//!
//! The first of them whose turn comes takes along those that follow and whose turns are certain. Each is looked at and
//! decided on by itself, and has its own event in its own turn; only the action is one. When it fails, each is enacted
//! alone in its turn, and that alone decides how it went.

use std::collections::{HashMap, HashSet};

use super::{
    PendingRefreshes,
    converge::{Attempts, Outcome},
    pending_refreshes::Recorded,
    recording::{Recordable, Subject},
};
use crate::{
    resource::{AnyMember, AnyProperties, AnyState, Context, Effects, PlannedChange, Resource, Trigger},
    vocabulary::Reference,
};

/// What was done to resources before their turns.
#[derive(Default)]
pub(super) struct Grouped {
    early: HashMap<Reference, Early>,
    /// Those that a group has failed with: each is enacted alone.
    apart: HashSet<Reference>,
}

/// What was done to a resource before its turn.
pub(super) enum Early {
    /// It was enacted.
    Enacted(Box<Enacted>),
    /// It was to be enacted, and that failed after it had changed something.
    Begun,
}

/// What a resource was left as, and what was done for that.
pub(super) struct Enacted {
    before: String,
    left: AnyState,
    pending: PlannedChange,
    effects: Effects,
}

impl Grouped {
    /// Takes what was done to a resource whose turn has come.
    pub(super) fn take(&mut self, resource: &Resource) -> Option<Early> {
        if self.early.is_empty() { None } else { self.early.remove(&resource.reference()) }
    }
}

/// A resource that is taken along.
struct Follower<'n> {
    resource: &'n Resource,
    late: Option<Box<dyn AnyProperties>>,
    have: AnyState,
    pending: PlannedChange,
    effects: Effects,
    recorded: Recorded,
    change: Recordable,
}

impl Follower<'_> {
    fn wanted(&self) -> &dyn AnyProperties {
        self.late.as_deref().unwrap_or(self.resource.wanted.as_ref())
    }
}

impl Attempts<'_> {
    /// Enacts the resource together with those that follow it; `None` if it has to be enacted alone.
    pub(super) fn enact_group(
        &self,
        have: &AnyState,
        pending: &PlannedChange,
        cx: &Context,
        refreshes: &mut PendingRefreshes,
        grouped: &mut Grouped,
    ) -> Option<AnyState> {
        let grouping = self.wanted.grouping()?;
        // What is checked has to be well before the next is touched.
        let is_alone = self.resource.common.timeout.is_some() || self.resource.is_checked();
        if !self.causes.is_empty() || is_alone {
            return None;
        }
        if grouped.apart.remove(&self.resource.reference()) {
            return None;
        }
        let mut followers = self.followers(grouping.most() - 1, cx);
        for follower in &mut followers {
            follower.wanted().check_effects(&follower.effects).ok()?;
            follower.recorded = refreshes.record(follower.resource, &[], &self.place.within).ok()?;
            follower.change = self.record_follower(follower, refreshes, cx)?;
        }
        let first = AnyMember { wanted: &**self.wanted, have, change: pending };
        let rest = followers.iter().map(|follower| AnyMember {
            wanted: &**follower.wanted(),
            have: &follower.have,
            change: &follower.pending,
        });
        let members: Vec<AnyMember> = std::iter::once(first).chain(rest).collect();
        if members.len() < 2 {
            return None;
        }
        match grouping.enact_group(&members, self.provider, cx) {
            Ok(mut states) if states.len() == members.len() => {
                let first = states.remove(0);
                for (Follower { resource, have, pending, effects, change, .. }, left) in
                    followers.into_iter().zip(states)
                {
                    self.complete_change(change, resource, Some(&left), false, cx);
                    let early =
                        Early::Enacted(Box::new(Enacted { before: have.ensure(), left, pending, effects }));
                    grouped.early.insert(resource.reference(), early);
                }
                Some(first)
            }
            _ => {
                drop(members);
                self.part(followers, cx, refreshes, grouped);
                None
            }
        }
    }

    /// Records the change of a resource that is taken along; `None` if it must not be made.
    fn record_follower(
        &self,
        follower: &Follower,
        refreshes: &PendingRefreshes,
        cx: &Context,
    ) -> Option<Recordable> {
        let subject = Subject {
            resource: follower.resource,
            wanted: follower.wanted(),
            provider: self.provider,
            have: &follower.have,
            pending: &follower.pending,
            effects: &follower.effects,
            causes: &[],
            diff: None,
        };
        self.record_change(&subject, &follower.recorded, refreshes, cx).ok()
    }

    /// Those of the following resources whose turns are certain to come and that have something to do.
    fn followers<'n>(&'n self, most: usize, cx: &Context) -> Vec<Follower<'n>> {
        let mut followers = Vec::new();
        for resource in self.next.iter().take_while(|next| self.is_certain(next)) {
            let is_other = resource.kind.name() != self.resource.kind.name();
            if followers.len() == most || is_other || resource.is_checked() {
                break;
            }
            let Ok(late) = resource.wanted_now(&self.place.scope, &self.place.manifest.source) else { break };
            let wanted = late.as_deref().unwrap_or(resource.wanted.as_ref());
            let planned = wanted.inspect(self.provider, cx).and_then(|have| {
                let pending = wanted.compare(&have, Trigger::Turn)?;
                Ok(pending.map(|pending| (wanted.effects(&have, &pending, cx), have, pending)))
            });
            // What is wrong with it is told in its turn.
            let Ok(planned) = planned else { break };
            if let Some((effects, have, pending)) = planned {
                let (recorded, change) = (Recorded::default(), Recordable::default());
                followers.push(Follower { resource, late, have, pending, effects, recorded, change });
            }
        }
        followers
    }

    /// Finds out what a group that failed did to those that were taken along.
    fn part(
        &self,
        followers: Vec<Follower>,
        cx: &Context,
        refreshes: &mut PendingRefreshes,
        grouped: &mut Grouped,
    ) {
        for mut follower in followers {
            let reference = follower.resource.reference();
            let after = follower.wanted().inspect(self.provider, cx).ok();
            self.complete_change(follower.change.take(), follower.resource, after.as_ref(), true, cx);
            if after.is_some_and(|after| after.agrees_with(&follower.have)) {
                // An entry that stays costs a needless refresh.
                let _ = refreshes.cancel(&follower.recorded);
            } else {
                grouped.early.insert(reference.clone(), Early::Begun);
            }
            grouped.apart.insert(reference);
        }
    }

    /// Says whether what was done to the resource before its turn was all that it needed.
    pub(super) fn is_confirmed(&self, early: Early, outcome: &mut Outcome) -> bool {
        outcome.begun = true;
        let Early::Enacted(enacted) = early else { return false };
        let Enacted { before, left, pending, effects } = *enacted;
        outcome.before = Some(before);
        outcome.effects = Some(effects);
        let left = outcome.observed.insert(left);
        let is_reached = matches!(self.wanted.compare(left, Trigger::Turn), Ok(None));
        if is_reached {
            (outcome.differences, outcome.summary) = (pending.differences, Some(pending.summary));
        }
        is_reached
    }
}
