//! The provider for machines that were booted with systemd.
//!
//! **Few questions.** The state of all services of a run is read together, with one `systemctl show` and one `systemctl
//! is-enabled` for all of them, when the first one is looked at. The answers hold until something happens that could
//! change them: a verb of this provider, a reload, or an action on any other resource. Then they are read again, once
//! and together, when the next service is looked at. `show` alone would not do: what it says about enablement is what
//! systemd remembers, and it does not notice a link that was removed by hand.
//!
//! **When units are read again.** systemd works with the unit files as it has last read them. It is told to read them
//! again (`daemon-reload`)
//!
//! - before anything else, looking included, when an earlier resource of the run may have changed a unit file: a file
//!   below one of systemd's directories, or anything but files and services, whose doings are not known in detail.
//!   systemd's own notice, `NeedDaemonReload`, is not enough here: it misses the first drop-in of a unit;
//! - before a unit is judged of which systemd says that its files have changed, or which it does not know;
//! - before the first verb of the run, because others may have changed drop-ins before it.
//!
//! A run in which nothing has to be done reads nothing again, and a dry run never does: a unit that is not there yet is
//! then judged by whether an earlier resource could have brought it.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{
    Properties, Verb,
    state::ServiceState,
    systemctl,
    unit::{Unit, unit_name},
    words::{Activity, Enablement},
};
use crate::{
    host::process,
    resource::{Context, Error, RunMode},
    vocabulary::Reference,
};

/// There exactly when the machine was booted with systemd: `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";

/// Where files are that systemd and its generators make units of.
const UNIT_DIRECTORIES: [&str; 6] = [
    "/etc/systemd",
    "/run/systemd",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/usr/local/lib/systemd",
    "/etc/init.d",
];

/// The first and the longest pause between two looks at a unit that is still activating.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Services through `systemctl`.
pub(crate) struct Systemd {
    memory: Mutex<Memory>,
}

/// What is known, and since when. Moments are numbers of resources that the run had touched by then.
#[derive(Default)]
struct Memory {
    /// The services that the run will come to.
    expected: Vec<String>,
    units: HashMap<String, Unit>,
    read_at: usize,
    reloaded_at: Option<usize>,
}

impl Systemd {
    /// The provider, or why this machine cannot have it.
    pub(super) fn new() -> Result<Self, String> {
        process::locate("systemctl").map_err(|error| error.to_string())?;
        if !Path::new(BOOTED).is_dir() {
            return Err(format!("the machine was not booted with systemd: {BOOTED} does not exist"));
        }
        Ok(Self { memory: Mutex::default() })
    }

    pub(super) fn expect(&self, wants: &[&Properties]) {
        self.memory().expected = wants.iter().map(|want| want.name.to_string()).collect();
    }

    /// What the service is doing and whether it starts at boot.
    pub(super) fn inspect(&self, want: &Properties, cx: &Context) -> Result<ServiceState, Error> {
        let mut memory = self.memory();
        let state = memory.look(want.name.as_str(), cx).and_then(|unit| ServiceState::of(want, &unit));
        match &state {
            Ok(state) => warn(want, state, cx),
            // Another attempt is to look again.
            Err(_) => memory.units.clear(),
        }
        state
    }

    /// Does one thing to the service and sees to it that it lasts.
    pub(super) fn perform(&self, verb: Verb, want: &Properties, cx: &Context) -> Result<(), Error> {
        let mut memory = self.memory();
        if memory.reloaded_at.is_none() || memory.is_outdated(cx) {
            memory.reload(cx)?;
        }
        // One unit pulls others with it.
        memory.units.clear();
        let started = SystemTime::now();
        systemctl::perform(verb, want.name.as_str(), cx)?;
        match verb {
            Verb::Start | Verb::Restart | Verb::Reload => settle(want, started, cx),
            Verb::Stop | Verb::Enable | Verb::Disable | Verb::DisableForNow => Ok(()),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The unit with this name as it is now.
    fn look(&mut self, name: &str, cx: &Context) -> Result<Unit, Error> {
        let real = cx.mode() == RunMode::Real;
        if real && self.is_outdated(cx) {
            self.reload(cx)?;
        }
        // What this provider itself does to services, it forgets about at once.
        if real && cx.touched().iter().skip(self.read_at).any(|touched| touched.kind != "service") {
            self.units.clear();
        }
        let mut unit = self.recall(name, cx)?;
        if real && (unit.stale || !unit.is_known() && self.reloaded_at.is_none()) {
            self.reload(cx)?;
            unit = self.recall(name, cx)?;
        }
        match unit.is_known() {
            true => Ok(unit),
            false if !real && cx.touched().iter().any(|touched| could_bring(touched, &unit.id)) => {
                Ok(foreseen(unit))
            }
            false => Err(systemctl::not_found(name)),
        }
    }

    /// The unit with this name as it was when all were last read.
    fn recall(&mut self, name: &str, cx: &Context) -> Result<Unit, Error> {
        if !self.units.contains_key(name) {
            self.read(name, cx)?;
        }
        let unit = self.units.get_mut(name).ok_or_else(|| systemctl::not_found(name))?;
        if unit.is_known() && unit.boot.is_empty() {
            unit.boot = systemctl::is_enabled(name, cx)?;
        }
        Ok(unit.clone())
    }

    fn read(&mut self, name: &str, cx: &Context) -> Result<(), Error> {
        let mut names: Vec<&str> = self.expected.iter().map(String::as_str).collect();
        if !names.contains(&name) {
            names.push(name);
        }
        let mut units = systemctl::show(&names, cx)?;
        // Units without a file and those of other init systems are asked for one by one, if at all.
        let (on_disk, mut listed): (Vec<&str>, Vec<&mut Unit>) = names
            .iter()
            .zip(&mut units)
            .filter(|(_, unit)| unit.is_known() && !matches!(unit.boot.as_str(), "" | "generated"))
            .unzip();
        if !on_disk.is_empty() {
            match systemctl::are_enabled(&on_disk, cx)? {
                Some(words) => {
                    listed.iter_mut().zip(words).for_each(|(unit, word)| unit.boot = word);
                }
                // One that fails hides the answers about those after it.
                None => listed.iter_mut().for_each(|unit| unit.boot.clear()),
            }
        }
        self.units = names.into_iter().map(str::to_owned).zip(units).collect();
        self.read_at = cx.touched().len();
        Ok(())
    }

    /// Whether a unit file may have been changed by this run since units were last read from disk.
    fn is_outdated(&self, cx: &Context) -> bool {
        cx.touched().iter().skip(self.reloaded_at.unwrap_or_default()).any(affects_units)
    }

    fn reload(&mut self, cx: &Context) -> Result<(), Error> {
        self.units.clear();
        systemctl::daemon_reload(cx)?;
        self.reloaded_at = Some(cx.touched().len());
        Ok(())
    }
}

fn is_in_unit_directory(path: &Path) -> bool {
    UNIT_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
}

/// Whether an action on a resource may have changed unit files.
fn affects_units(touched: &Reference) -> bool {
    match touched.kind.as_str() {
        "file" => is_in_unit_directory(Path::new(&touched.name)),
        // systemctl has systemd read units again by itself where it changes them.
        "service" => false,
        _ => true,
    }
}

/// Whether an action on a resource would have brought this unit.
fn could_bring(touched: &Reference, unit: &str) -> bool {
    let named = || Path::new(&touched.name).file_name().is_some_and(|name| name == unit);
    affects_units(touched) && (touched.kind != "file" || named())
}

/// A unit that an earlier resource of a dry run would have brought.
fn foreseen(unit: Unit) -> Unit {
    let word = str::to_owned;
    Unit { load: word("loaded"), active: word("inactive"), boot: word("disabled"), ..unit }
}

/// Waits until the service is up, and makes sure that it stays.
fn settle(want: &Properties, since: SystemTime, cx: &Context) -> Result<(), Error> {
    let name = want.name.as_str();
    let up = wait_until_started(name, since, cx)?;
    if want.settle.as_std().is_zero() {
        return Ok(());
    }
    cx.pause(want.settle.as_std())?;
    let later = show_one(name, cx)?;
    if Activity::from_word(&later.active)? == Activity::Running && later.restarts == up.restarts {
        return Ok(());
    }
    Err(died(&later, name, since, cx))
}

fn wait_until_started(name: &str, since: SystemTime, cx: &Context) -> Result<Unit, Error> {
    let begun = Instant::now();
    let patience = cx.time_left().unwrap_or(systemctl::START);
    let (mut pause, longest) = LOOK_AGAIN;
    loop {
        let unit = show_one(name, cx)?;
        if Activity::from_word(&unit.active)? == Activity::Running {
            return Ok(unit);
        }
        if !unit.is_starting() {
            return Err(died(&unit, name, since, cx));
        }
        if begun.elapsed() + pause > patience {
            let limit = crate::vocabulary::Duration::from(cx.timeout().unwrap_or(patience));
            let error = Error::new(format!("timed out after {limit}: {} is still activating", unit.id));
            let error = error.on("timeout").with_help("give it more time with `timeout`");
            return Err(systemctl::with_journal(error, name, since, cx));
        }
        cx.pause(pause)?;
        pause = longest.min(pause * 2);
    }
}

fn show_one(name: &str, cx: &Context) -> Result<Unit, Error> {
    systemctl::show(&[name], cx)?.pop().ok_or_else(|| systemctl::not_found(name))
}

fn died(unit: &Unit, name: &str, since: SystemTime, cx: &Context) -> Error {
    let Unit { id, active, sub, result, exit_status, .. } = unit;
    let mut error = Error::new(format!(
        "{id} did not stay running: it is {active} ({sub}), Result={result}, ExecMainStatus={exit_status}"
    ));
    if result == "success" && active == "inactive" {
        error = error.with_help(
            "it did its work and ended: in its unit, `RemainAfterExit=yes` makes systemd call that running",
        );
    }
    systemctl::with_journal(error, name, since, cx)
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
            unit_name(want.name.as_str()),
            metadata.unit
        ),
        _ => format!("{} is {word}: it cannot be disabled", metadata.unit),
    });
}
