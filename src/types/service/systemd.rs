//! The provider for machines with a `systemctl`.
//!
//! systemd works with the unit files as it has last read them. It is told to read them again (`daemon-reload`)
//!
//! - before anything else, looking included, when an earlier resource of the run may have changed a unit file: a file
//!   below one of systemd's directories, or anything of unknown effect, such as a command, if something has come to
//!   these directories or left them. systemd's own notice, `NeedDaemonReload`, is not enough here: it misses the first
//!   drop-in of a unit;
//! - before a unit is judged of which systemd says that its files have changed, or which it does not know;
//! - before the first verb of the run, because others may have changed drop-ins before it.
//!
//! A run in which nothing has to be done reads nothing again, and a dry run never does: a unit that is not there yet is
//! then judged by whether an earlier resource could have brought it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use super::{
    Properties, Verb,
    bus::Bus,
    prediction::predict,
    reload_tracker::{Invalidation, ReloadTracker},
    settling::settle,
    state::ServiceState,
    systemctl,
    unit::{Unit, unit_name},
    unit_cache::UnitCache,
    words::{Enablement, NOT_FOUND},
};
use crate::{
    host::process,
    resource::{Context, Error, ErrorKind},
    vocabulary::RunMode,
};

/// Services through `systemctl`.
pub(crate) struct Systemd {
    manager: Mutex<Manager>,
}

/// systemd, and what is known about it.
#[derive(Default)]
struct Manager {
    units: UnitCache,
    reload_tracker: ReloadTracker,
    /// The service that was last asked about.
    asked: Option<String>,
}

impl Systemd {
    /// Makes the provider, or says why this machine cannot have it.
    pub(super) fn new() -> Result<Self, String> {
        let systemctl = process::locate("systemctl").map_err(|error| error.to_string())?;
        let units = UnitCache::new(Bus::beside(&systemctl));
        Ok(Self { manager: Mutex::new(Manager { units, ..Manager::default() }) })
    }

    pub(super) fn expect(&self, units: Vec<String>) {
        self.manager().units.expect(units);
    }

    /// Returns what the service is doing and whether it starts at boot.
    pub(super) fn inspect(&self, want: &Properties, cx: &Context) -> Result<ServiceState, Error> {
        let (mut manager, name) = (self.manager(), want.unit_word());
        if manager.asked.as_deref() == Some(name) {
            // Who asks twice wants to know what has changed since.
            manager.units.forget(name);
        }
        manager.asked = Some(name.to_owned());
        let unit = manager.find(name, cx)?.ok_or_else(|| systemctl::not_found(name))?;
        let state = ServiceState::of(want, &unit)?;
        warn(want, &state, cx);
        Ok(state)
    }

    /// Does these things to the service, sees to it that they last, and says what came of them.
    pub(super) fn enact(
        &self,
        verbs: &[Verb],
        want: &Properties,
        cx: &Context,
    ) -> Result<ServiceState, Error> {
        let (mut manager, name) = (self.manager(), want.unit_word());
        for verb in verbs {
            manager.perform(*verb, want, cx)?;
            if let Some(rest) = manager.undone(*verb, name, cx)? {
                manager.perform(rest, want, cx)?;
            }
        }
        if !manager.units.knows(name) {
            // The others are not asked about before their turn.
            manager.units.unit_now(name, cx)?;
        }
        let takes_away = |verb: &Verb| {
            matches!(
                verb,
                Verb::Stop | Verb::Disable | Verb::DisableForNow | Verb::Unmask | Verb::UnmaskForNow
            )
        };
        let unit = match manager.look(name, cx)? {
            Some(unit) => unit,
            None if verbs.iter().all(takes_away) => Unit::gone(name),
            None => return Err(systemctl::not_found(name).into()),
        };
        Ok(ServiceState::of(want, &unit)?)
    }

    fn manager(&self) -> MutexGuard<'_, Manager> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manager {
    /// Returns the unit with this name as it is now; in a dry run, as it would be.
    fn find(&mut self, name: &str, cx: &Context) -> Result<Option<Unit>, Error> {
        if cx.mode() == RunMode::Noop {
            return Ok(predict(self.look(name, cx)?, name, cx));
        }
        self.catch_up(cx)?;
        let unit = self.look(name, cx)?;
        if unit.is_some() || !self.reload_tracker.could_bring_one(cx) {
            return Ok(unit);
        }
        match self.reload(cx) {
            Ok(()) => self.look(name, cx),
            Err(error) if error.kind == ErrorKind::Interrupted => Err(error),
            Err(_) => {
                // Who may not do that may still look; it will not go better for the next one.
                self.reload_tracker.note_reload(cx);
                Ok(None)
            }
        }
    }

    /// Returns the unit with this name as it is now; `None` when systemd knows none.
    fn look(&mut self, name: &str, cx: &Context) -> Result<Option<Unit>, Error> {
        let mut unit = self.units.unit(name, cx)?;
        if unit.stale && cx.mode() == RunMode::Real {
            self.reload(cx)?;
            unit = self.units.unit(name, cx)?;
        }
        let boot = self.units.boot(name, cx)?;
        let boot = boot.or_else(|| unit.is_alive().then(|| NOT_FOUND.to_owned()));
        Ok(boot.map(|boot| Unit { boot, ..unit }))
    }

    /// Takes into account what the run has done to other resources.
    fn catch_up(&mut self, cx: &Context) -> Result<(), Error> {
        match self.reload_tracker.invalidation(cx) {
            Invalidation::None => {}
            Invalidation::Activity => self.units.forget_activity(),
            Invalidation::Anything => self.units.forget_all(),
            Invalidation::Files => {
                self.units.forget_all();
                self.reload(cx)?;
            }
        }
        self.reload_tracker.note(cx);
        Ok(())
    }

    fn reload(&mut self, cx: &Context) -> Result<(), Error> {
        self.units.refresh();
        systemctl::daemon_reload(cx)?;
        self.reload_tracker.note_reload(cx);
        Ok(())
    }

    fn perform(&mut self, verb: Verb, want: &Properties, cx: &Context) -> Result<(), Error> {
        if !self.reload_tracker.has_reloaded() {
            self.reload(cx)?;
        }
        let (name, started) = (want.unit_word(), SystemTime::now());
        match verb {
            Verb::Start | Verb::Stop | Verb::Restart | Verb::Reload => self.units.forget_activity(),
            Verb::Enable => self.units.forget_all_but(name),
            Verb::Disable | Verb::DisableForNow | Verb::Mask | Verb::Unmask | Verb::UnmaskForNow => {
                self.units.forget_all();
            }
        }
        systemctl::perform(verb, name, cx)?;
        // What it did to the directories of units, it has told systemd.
        self.reload_tracker.note(cx);
        match verb {
            Verb::Start | Verb::Restart | Verb::Reload => settle(want, started, &mut self.units, cx),
            _ => Ok(()),
        }
    }

    /// Returns what is left to do after a verb. Of a unit that is enabled or masked both for good and until the next boot,
    /// systemctl tells and undoes one at a time.
    fn undone(&mut self, verb: Verb, name: &str, cx: &Context) -> Result<Option<Verb>, Error> {
        let (word, rest) = match verb {
            Verb::Disable => ("enabled-runtime", Verb::DisableForNow),
            Verb::DisableForNow => ("enabled", Verb::Disable),
            Verb::Unmask => ("masked-runtime", Verb::UnmaskForNow),
            Verb::UnmaskForNow => ("masked", Verb::Unmask),
            _ => return Ok(None),
        };
        Ok((self.units.boot(name, cx)?.as_deref() == Some(word)).then_some(rest))
    }
}

/// Says what was asked for and cannot be had.
fn warn(want: &Properties, state: &ServiceState, cx: &Context) {
    let metadata = &state.metadata;
    if state.enablement != Enablement::Fixed || want.enable != Some(false) {
        return;
    }
    let word = &metadata.unit_file_state;
    cx.warn(match word.as_str() {
        "alias" => format!(
            "{} is another name of {}: disable it under that name",
            unit_name(want.unit_word()),
            metadata.unit
        ),
        _ => format!("{} is {word}: it cannot be disabled", metadata.unit),
    });
}
