//! Takes in what sources, callers and the machine tell.

use std::{
    mem::take,
    time::{Duration, Instant},
};

use super::{Agent, Message};
use crate::{
    agent::{
        due::Cause,
        intake::{Verify, Workshop},
        metrics,
        source::{News, Purpose},
        watching::{Drift, OwnWrites, Watching, Writing},
    },
    host::bus::UnitSignals,
    run::Machine,
};

/// How long is waited for what comes together with an event, so that one run serves all of it.
const TOGETHER: Duration = Duration::from_millis(20);

/// How long another process can take to close a file that it modifies.
const UNFINISHED: Duration = Duration::from_secs(1);

impl Agent<'_> {
    pub(super) fn take_messages(&mut self) {
        let machine = self.machine();
        for message in self.mailbox.take() {
            match message {
                Message::Run(asked) => {
                    self.callers.push(asked);
                    self.intake.ask_all();
                    self.due.all(Cause::Asked);
                }
                Message::News(generation, number, news) if generation == self.generation => {
                    self.count_news(number, &news);
                    self.verify_again(Verify::IfSignersChanged, &machine);
                    let is_new = matches!(news, News::Arrived(_));
                    let workshop = Workshop { machine: &machine, log: &*self.setting.log };
                    self.intake.news(number, news, workshop);
                    self.due.arrived |= is_new;
                    self.publish();
                }
                Message::News(..) => {}
            }
        }
    }

    fn count_news(&self, number: usize, news: &News) {
        let metrics = &self.exported.metrics;
        let Some(slot) = self.intake.slots.get(number) else { return };
        let source = slot.address.to_string();
        match (news, slot.purpose) {
            (News::Same, _) => {}
            (News::Arrived(_), _) => metrics.add(&metrics::FETCH, &[&source], 1),
            (News::Failed(_), Purpose::Manifest) => metrics.add(&metrics::FETCH_ERROR, &[&source], 1),
            (News::Failed(_), Purpose::Data) => metrics.add(&metrics::DATA_RESOLVE_ERROR, &[&source], 1),
        }
    }

    /// Verifies signatures again, and applies the manifests that are valid again.
    pub(super) fn verify_again(&mut self, when: Verify, machine: &Machine) {
        let workshop = Workshop { machine, log: &*self.setting.log };
        let restored = self.intake.verify_again(when, workshop);
        self.due.manifests.extend(restored);
    }

    /// Takes in what happened on the machine.
    pub(super) fn notice(&mut self) {
        let drift = self.watching.as_mut().map(|watching| watching.drift(&OwnWrites::default()));
        if let Some(drift) = drift {
            self.take_drift(drift);
        }
        let Some(signals) = self.units.as_mut().map(UnitSignals::take) else { return };
        match (signals, &self.watching) {
            (Ok(signals), Some(watching)) => {
                let drift = watching.unit_drift(&signals);
                self.take_drift(drift);
            }
            (Ok(_), None) => {}
            (Err(error), _) => {
                let effect = "units are looked at when their time comes, and the bus is tried again then";
                self.setting.log.warn("the bus is gone", &[("error", &error), ("effect", &effect)]);
                self.units = None;
            }
        }
    }

    /// Listens to systemd, if a resource depends on a unit and nobody listens yet.
    pub(super) fn listen_to_units(&mut self) {
        let is_wanted = self.watching.as_ref().is_some_and(Watching::has_units);
        if !is_wanted {
            self.units = None;
        } else if self.units.is_none() {
            match UnitSignals::connect() {
                Ok(units) => self.units = Some(units),
                Err(error) => {
                    let effect = "units are looked at when their time comes";
                    self.setting.log.debug("there is no bus", &[("error", &error), ("effect", &effect)]);
                }
            }
        }
    }

    pub(super) fn take_drift(&mut self, mut drift: Drift) {
        // After a reload, everything is due, and the numbers of manifests can differ.
        if take(&mut drift.configuration) && self.reload_if_signers_differ() {
            return;
        }
        if take(&mut drift.signers) {
            let machine = self.machine();
            self.verify_again(Verify::IfSignersChanged, &machine);
            self.publish();
        }
        if drift.is_empty() {
            return;
        }
        let now = Instant::now();
        let together = now + if drift.writing == Writing::InProgress { UNFINISHED } else { TOGETHER };
        self.together = Some(self.together.map_or(together, |earlier| earlier.min(together)));
        self.due.noticed.get_or_insert(now);
        if drift.anything {
            self.setting.log.warn("too much happened at once to be followed: everything is looked at", &[]);
            self.due.all(Cause::Drift);
        }
        if !drift.sources.is_empty() {
            let machine = self.machine();
            let workshop = Workshop { machine: &machine, log: &*self.setting.log };
            self.intake.look_at_local(workshop);
            self.due.arrived |= self.intake.has_candidates();
        }
        self.due.subjects.extend(drift.subjects);
        drift.renewed.iter().for_each(|subject| self.pauses.end_one(subject));
        self.due.renewed.extend(drift.renewed);
    }
}
