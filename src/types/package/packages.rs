//! What apt and dnf have in common: looking at packages, and bringing them to their desired states.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::{
    Properties,
    action::{Action, Deed, Verb},
    along::Along,
    decision,
    ensure::Ensure,
    error::PackageError,
    memory::{Memory, Refreshed, presence},
    name::PackageName,
    provider::{Holds, Item, PackageProvider, Transaction},
    refresh::{Need, Reason, Refresh},
    state::{Extended, Hold, Index, Metadata, Offer, PackageState, Presence, Standing},
};
use crate::{
    resource::{Context, PackageLeft},
    vocabulary::RunMode,
};

/// The packages of a machine, through its package system.
pub(crate) struct Packages {
    pub(super) provider: Box<dyn PackageProvider>,
    memory: Mutex<Memory>,
}

/// What was decided for one of several packages that change together.
pub(super) struct Member<'a> {
    pub(super) want: &'a Properties,
    pub(super) have: &'a PackageState,
    pub(super) action: &'a Action,
}

impl Packages {
    pub(super) fn new(provider: impl PackageProvider + 'static) -> Self {
        Self { provider: Box::new(provider), memory: Mutex::default() }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expect(&self, wants: &[&Properties]) {
        self.memory().expect(wants);
    }

    /// Looks at a package and, where it matters, at what the sources offer of it.
    pub(super) fn inspect(&self, want: &Properties, cx: &Context) -> Result<PackageState, PackageError> {
        let (on, mut memory) = (self.provider.as_ref(), self.memory());
        let (scheme, parts) = (on.scheme(), on.parts(&want.name)?);
        if let Some(fault) = want.ensure.fault(scheme) {
            return Err(fault);
        }
        memory.note(cx);
        let records = memory.records(parts, on, cx)?;
        let found = presence(&records, &want.ensure, on);
        let counts = records.iter().find(|record| found.version() == Some(&record.version));
        let arch = counts.map(|record| record.arch.clone());
        let status =
            counts.or(records.first()).map_or("not-installed", |record| record.status.as_str()).to_owned();
        let is_recorded = !records.is_empty();
        let presence = predicted(want, cx).unwrap_or(found);
        let need = decision::need(&want.ensure, scheme, &presence);
        let (offer, index) = self.offer(&mut memory, want, need, cx)?;
        let mut standing =
            Standing { scheme, provider: on.name(), presence, hold: Hold::NotAsked, offer, index };
        if want.hold.is_some() || decision::is_to_change(want, &standing) {
            standing.hold = if memory.is_held(parts, on, cx)? { Hold::Held } else { Hold::Free };
        }
        let is_to_go = matches!(want.ensure, Ensure::Absent | Ensure::Purged)
            && !matches!(standing.presence, Presence::Absent);
        let configuration = if is_to_go && is_recorded {
            on.configuration(&want.name, &want.ensure, cx)?
        } else {
            Vec::new()
        };
        Ok(PackageState { metadata: metadata(want, on, &standing, arch, status), standing, configuration })
    }

    /// Looks up what the repositories offer, and refreshes the package index if necessary.
    fn offer(
        &self,
        memory: &mut Memory,
        want: &Properties,
        need: Need,
        cx: &Context,
    ) -> Result<(Offer, Index), PackageError> {
        let (on, scheme) = (self.provider.as_ref(), self.provider.scheme());
        if need == Need::Nothing {
            return Ok((Offer::NotAsked, Index::Current));
        }
        if want.refresh == Refresh::Never {
            let offer = memory.offer(&want.name, on, cx)?;
            let is_lacking = decision::is_lacking(&want.ensure, scheme, &offer);
            return Ok((if is_lacking { foreseen(want, offer, memory, cx) } else { offer }, Index::Kept));
        }
        if let Some(reason) = want.refresh.reason(need, &on.lists(), SystemTime::now()) {
            self.refresh(memory, &reason, cx)?;
        }
        let mut offer = memory.offer(&want.name, on, cx)?;
        if decision::is_lacking(&want.ensure, scheme, &offer) {
            self.refresh(memory, &Reason::NotOffered, cx)?;
            offer = memory.offer(&want.name, on, cx)?;
        }
        if decision::is_lacking(&want.ensure, scheme, &offer) {
            // The error of the package gives the reason why the index was not refreshed.
            let index = memory.failure.clone().map_or(Index::Current, Index::NotRefreshed);
            return Ok((foreseen(want, offer, memory, cx), index));
        }
        if let Some(reason) = memory.failure.as_ref().filter(|_| !memory.failure_shown) {
            cx.warn(format!("the package index could not be refreshed: {reason}"));
            memory.failure_shown = true;
        }
        Ok((offer, Index::Current))
    }

    /// Refreshes the package index, once per run and again if the list of repositories has changed since. A dry run warns
    /// that a real run would.
    fn refresh(&self, memory: &mut Memory, reason: &Reason, cx: &Context) -> Result<(), PackageError> {
        let sources = self.provider.lists().source;
        if memory.refreshed == Refreshed::With(sources.clone()) {
            return Ok(());
        }
        if cx.mode() == RunMode::Noop {
            cx.warn(format!("a real run would refresh the package index first: {reason}"));
        } else {
            memory.failure_shown = false;
            memory.failure = match self.provider.refresh(cx) {
                Err(error) if error.ends_the_attempt() => return Err(error),
                Err(error) => Some(error.to_string()),
                Ok(()) => None,
            };
            memory.forget_offers();
        }
        memory.refreshed = Refreshed::With(sources);
        Ok(())
    }

    /// Does what was decided for packages that come one after the other, and looks at what it left.
    pub(super) fn enact(&self, members: &[Member], cx: &Context) -> Result<Vec<PackageState>, PackageError> {
        let is_transaction = members.iter().any(|member| member.action.deed.is_some());
        let earlier = is_transaction.then(|| self.provider.everything(cx)).transpose()?;
        let done = self.carry_out(members, cx);
        self.memory().forget_installed();
        // What a package manager left is looked at even when the time is up.
        let look = |cx: &Context| {
            Ok((self.look(members, cx)?, is_transaction.then(|| self.provider.everything(cx))))
        };
        let (mut states, later) = match cx.tick() {
            Ok(()) => look(cx),
            Err(_) => look(&cx.last_look(&mut |_| {})),
        }?;
        if let (Some(earlier), Some(Ok(later))) = (earlier, later) {
            let names: Vec<&PackageName> = members.iter().map(|member| &member.want.name).collect();
            let along = Along::between(&earlier, &later, &names, self.provider.as_ref());
            let changed = members.iter().zip(&mut states).filter(|(member, _)| member.action.deed.is_some());
            changed.for_each(|(_, state)| along.note(&mut state.metadata));
        }
        let is_reached = |(member, state): (&Member, &PackageState)| {
            matches!(decision::compare(member.want, state), Ok(None))
        };
        match done {
            // It may have failed over another package; then these have no part in it.
            Err(error) if members.iter().zip(&states).all(is_reached) => {
                cx.warn(format!(
                    "it is as it should be, but {} is in trouble: {error}",
                    self.provider.name()
                ));
                Ok(states)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(states),
        }
    }

    fn look(&self, members: &[Member], cx: &Context) -> Result<Vec<PackageState>, PackageError> {
        members.iter().map(|member| self.inspect(member.want, cx)).collect()
    }

    /// Has the package manager do it, with as few calls as the order allows.
    fn carry_out(&self, members: &[Member], cx: &Context) -> Result<(), PackageError> {
        for alike in members.chunk_by(|a, b| Call::of(a) == Call::of(b)) {
            let Some(Call { verb, options, holds }) = Call::of(&alike[0]) else { continue };
            let items = alike.iter().map(|&Member { want, action, .. }| {
                let version = action.deed.as_ref().and_then(Deed::exact);
                Item { name: &want.name, version, file: None }
            });
            let transaction = Transaction { verb, items: items.collect(), options, holds, is_exact: false };
            self.provider.transact(&transaction, cx)?;
        }
        let named = |holds: fn(&Action, &Properties) -> bool| -> Vec<&PackageName> {
            let chosen = members.iter().filter(|member| holds(member.action, member.want));
            chosen.map(|member| &member.want.name).collect()
        };
        // A change takes a package off hold.
        let held = named(|action, want| {
            action.hold == Some(true) || action.deed.is_some() && want.hold == Some(true)
        });
        let released = named(|action, _| action.hold == Some(false));
        if !held.is_empty() {
            self.provider.hold(&held, cx)?;
        }
        if !released.is_empty() {
            self.provider.release(&released, cx)?;
        }
        Ok(())
    }
}

/// Returns what a dry run predicts of a package that the package index lacks.
fn foreseen(want: &Properties, offer: Offer, memory: &Memory, cx: &Context) -> Offer {
    if cx.mode() != RunMode::Noop {
        return offer;
    }
    // A real run would have refreshed the index by now.
    if memory.refreshed != Refreshed::NotYet {
        return Offer::Unforeseen;
    }
    if cx.prediction.borrow().may_differ() {
        cx.assume(format!(
            "no repository offers `{}` yet; assuming {} adds one that does",
            want.name,
            cx.suspects()
        ));
        return Offer::Unforeseen;
    }
    offer
}

/// How the package manager is called for a package.
#[derive(PartialEq, Eq)]
struct Call<'a> {
    verb: Verb,
    options: &'a [String],
    holds: Holds,
}

impl<'a> Call<'a> {
    /// Returns the call that does what was decided, if one is needed.
    fn of(member: &Member<'a>) -> Option<Self> {
        let overrides = member.want.hold.is_some() && member.have.standing.hold == Hold::Held;
        Some(Self {
            verb: member.action.deed.as_ref()?.verb(),
            options: &member.want.options,
            holds: if overrides { Holds::Override } else { Holds::Respect },
        })
    }
}

/// How long a package manager waits for another to finish, when the resource does not say.
pub(super) const LOCK_WAIT: Duration = Duration::from_mins(1);

/// What earlier resources of a dry run would have made of the package.
fn predicted(want: &Properties, cx: &Context) -> Option<Presence> {
    match cx.prediction.borrow().package(want.name.as_str())? {
        PackageLeft::Installed(version) => {
            Some(Presence::Installed(vec![version.clone().unwrap_or_else(|| "unknown".to_owned())]))
        }
        PackageLeft::Removed => Some(Presence::Absent),
    }
}

fn metadata(
    want: &Properties,
    on: &dyn PackageProvider,
    standing: &Standing,
    arch: Option<String>,
    status: String,
) -> Metadata {
    let Standing { scheme, presence, hold, offer, .. } = standing;
    let (shown, owned) = (|version: &str| scheme.shown(version).to_owned(), |text: &str| text.to_owned());
    let version = presence.version();
    let versions = match presence {
        Presence::Installed(versions) if versions.len() > 1 => {
            versions.iter().map(|version| shown(version)).collect()
        }
        _ => Vec::new(),
    };
    let extended = Extended {
        epoch: version.and_then(|version| scheme.epoch(version)).map(owned),
        release: version.and_then(|version| scheme.release(version)).map(owned),
        status,
        candidate: match offer {
            Offer::Known { candidate, .. } => Some(shown(candidate)),
            _ => None,
        },
        hold: match hold {
            Hold::NotAsked => None,
            Hold::Held => Some(true),
            Hold::Free => Some(false),
        },
        versions,
    };
    let (name, provider) = (want.name.to_string(), on.name().to_owned());
    let version = version.map(shown);
    Metadata {
        name,
        version,
        arch,
        provider,
        installed_along: Vec::new(),
        removed_along: Vec::new(),
        extended,
    }
}
