//! What is known about the units of a run, and how little is asked for it.
//!
//! When the first service is looked at, all that the run will come to are read together: one `systemctl show` and one
//! `systemctl is-enabled`. `show` alone would not do: what it says about enablement is what systemd remembers, and it does
//! not notice a link that was removed by hand.
//!
//! An answer holds until something happens that could change it. A verb on one unit can do that to any other, because
//! units pull each other along; so everything is forgotten, and at its turn a service is read again, alone. Where nothing
//! happens after that, the next reads take ever more services at once: a run pays for each of its changes, not for each
//! of its services.
//!
//! Where systemd can be asked directly (see [`super::bus`]), both are read over the bus instead, in one go.
//!
//! A systemctl that cannot describe units, such as one that somebody put in its place, is asked for its words about one
//! service after the other.

use std::collections::BTreeMap;

use super::{bus::Bus, systemctl, unit::Unit};
use crate::resource::{Context, Error};

/// By how much the number of services that are read together grows while nothing happens.
const GROWTH: usize = 4;

/// What systemctl has said, as far as it still holds.
#[derive(Default)]
pub(super) struct UnitCache {
    bus: Bus,
    /// The services that the run will come to, in its order.
    expected: Vec<String>,
    /// Whether this systemctl cannot describe units, and has only words for them.
    has_only_words: bool,
    /// How many services the next look takes in; not known before the first, which takes in all.
    ahead: Option<usize>,
    /// Units as `systemctl show` describes them.
    shown: BTreeMap<String, Unit>,
    /// The words of `systemctl is-enabled`. Nothing for a unit that has to be asked about alone.
    words: BTreeMap<String, Option<String>>,
}

impl UnitCache {
    pub(super) fn new(bus: Bus) -> Self {
        Self { bus, ..Self::default() }
    }

    pub(super) fn expect(&mut self, names: Vec<String>) {
        self.expected = names;
    }

    /// Returns what a unit is doing.
    pub(super) fn unit(&mut self, name: &str, cx: &Context) -> Result<Unit, Error> {
        if let Some(unit) = self.shown.get(name) {
            return Ok(unit.clone());
        }
        let later = self.expected.iter().skip_while(|expected| *expected != name).skip(1);
        let unknown = later.filter(|later| !self.knows(later)).cloned();
        let ahead = self.ahead.unwrap_or(usize::MAX);
        let names: Vec<String> = [name.to_owned()].into_iter().chain(unknown).take(ahead).collect();
        let unit = match self.bus.read(&names, cx) {
            Some(units) => self.take_in(names, units),
            None => self.read(names, cx)?,
        };
        self.ahead = Some(ahead.saturating_mul(GROWTH));
        Ok(unit)
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.shown.contains_key(name)
    }

    /// Takes in units of which systemd itself has told, and gives the first.
    fn take_in(&mut self, names: Vec<String>, units: Vec<Unit>) -> Unit {
        let first = units[0].clone();
        let told = names.iter().zip(&units).filter(|(_, unit)| !unit.boot.is_empty());
        self.words.extend(told.map(|(name, unit)| (name.clone(), Some(unit.boot.clone()))));
        self.shown.extend(names.into_iter().zip(units));
        first
    }

    /// Returns what a unit is doing at this moment, and how its last run ended.
    pub(super) fn unit_now(&mut self, name: &str, cx: &Context) -> Result<Unit, Error> {
        self.read(vec![name.to_owned()], cx)
    }

    /// Reads these units and gives the first.
    fn read(&mut self, names: Vec<String>, cx: &Context) -> Result<Unit, Error> {
        let described = if self.has_only_words { None } else { systemctl::show(&names, cx)? };
        let units = match described {
            Some(units) => units,
            None => vec![systemctl::is_active(&names[0], cx)?],
        };
        let first = units[0].clone();
        self.has_only_words = !first.is_described();
        self.shown.extend(names.into_iter().zip(units));
        Ok(first)
    }

    /// Returns whether a unit starts at boot, in the word of `systemctl is-enabled`; `None` when it has no file.
    pub(super) fn boot(&mut self, name: &str, cx: &Context) -> Result<Option<String>, Error> {
        match self.shown.get(name) {
            Some(unit) if unit.has_no_file() => return Ok(None),
            // `is-enabled` would tell what is with the init script that the unit was made of.
            Some(unit) if unit.boot == "generated" => return Ok(Some(unit.boot.clone())),
            _ => {}
        }
        if !self.words.contains_key(name) {
            self.ask_about_all_shown(cx)?;
        }
        if let Some(Some(word)) = self.words.get(name) {
            return Ok(Some(word.clone()));
        }
        let word = systemctl::is_enabled(name, cx)?;
        self.words.insert(name.to_owned(), word.clone());
        Ok(word)
    }

    fn ask_about_all_shown(&mut self, cx: &Context) -> Result<(), Error> {
        // Units without a file are asked about one by one, if at all.
        let together = |(name, unit): &(&String, &Unit)| {
            !self.words.contains_key(*name) && !matches!(unit.boot.as_str(), "" | "generated")
        };
        let names: Vec<String> = self.shown.iter().filter(together).map(|(name, _)| name.clone()).collect();
        if names.len() > 1 {
            let words = systemctl::are_enabled(&names, cx)?;
            self.words.extend(names.into_iter().zip(words));
        }
        Ok(())
    }

    /// Forgets what units are doing, after something that could have started or stopped any of them.
    pub(super) fn forget_activity(&mut self) {
        self.shown.clear();
        self.ahead = self.ahead.and(Some(1));
    }

    /// Forgets everything, after something that could have changed anything.
    pub(super) fn forget_all(&mut self) {
        self.forget_activity();
        self.words.clear();
    }

    /// Forgets everything but what this unit is doing: enabling it may have enabled others along with it.
    pub(super) fn forget_all_but(&mut self, name: &str) {
        let own = self.shown.remove_entry(name);
        self.forget_all();
        self.shown.extend(own);
    }

    /// Forgets what is known of units, after systemd has read their files again.
    pub(super) fn refresh(&mut self) {
        self.shown.clear();
        self.words.clear();
    }

    /// Forgets what is known of this unit.
    pub(super) fn forget(&mut self, name: &str) {
        self.shown.remove(name);
        self.words.remove(name);
    }
}
