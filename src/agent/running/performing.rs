//! Runs what is due.

use std::{collections::BTreeMap, fmt::Display, mem::take, sync::atomic::Ordering, time::Instant};

use jiff::Timestamp;

use super::{Agent, reloading::watch, round};
use crate::{
    agent::{
        chance,
        due::{Cause, Plan},
        intake::{Verify, Workshop},
        metrics,
        pauses::Repair,
        round::Outcome,
        watching::{Drift, OwnWrites, Unwatchable, Watching},
    },
    engine::RunMode,
    manifest::Manifest,
    run::Machine,
};

impl Agent<'_> {
    /// Runs what is due.
    pub(super) fn perform(&mut self) {
        let busy = self.setting.service_manager.busy();
        let machine = self.machine();
        let is_everything = self.due.everything.is_some();
        let when = if is_everything { Verify::Always } else { Verify::IfSignersChanged };
        self.verify_again(when, &machine);
        if is_everything {
            let workshop = Workshop { machine: &machine, log: &*self.setting.log };
            self.intake.look_at_local(workshop);
            self.due.arrived |= self.intake.has_candidates();
        }
        let loaded = if take(&mut self.due.arrived) { self.settle(&machine) } else { BTreeMap::new() };
        if is_everything {
            // What the kernel refused may be free again; at the start it was just asked.
            if self.watching.is_none() && !self.last.is_empty() {
                self.watching = watch(&self.setting, &self.config, &self.intake);
            }
            let splay = chance::up_to(self.config.splay);
            self.next_run = Instant::now() + self.config.written.interval.as_std() + splay;
        }
        self.together = None;
        let (noticed, now) = (self.due.noticed.take(), Instant::now());
        let count = self.intake.manifests().count();
        let plan = self.due.plan(count, &self.pauses, now);
        match plan.filter(|_| self.intake.is_data_there()) {
            Some(plan) => self.apply(&machine, &plan, loaded, noticed),
            None if !self.intake.is_data_there() => {
                self.setting.log.warn("nothing is applied before the data is there", &[]);
            }
            None => {}
        }
        drop(busy);
        self.publish();
        self.answer_callers();
    }

    /// Validates what has arrived, and makes it due. Returns the manifests that were loaded for that.
    fn settle(&mut self, machine: &Machine) -> BTreeMap<usize, Manifest> {
        let setting = &self.setting;
        let round = round(setting, &self.exported, &self.fleet, machine, RunMode::Real, "changed");
        let taken = self.intake.settle(&round, &*setting.log);
        for number in taken.keys() {
            // Other processes may undo something else now.
            self.pauses.end(*number);
            self.health.forget(*number);
            self.due.manifests.insert(*number);
        }
        taken.into_iter().filter_map(|(number, manifest)| Some((number, manifest?))).collect()
    }

    fn apply(
        &mut self,
        machine: &Machine,
        plan: &Plan,
        loaded: BTreeMap<usize, Manifest>,
        noticed: Option<Instant>,
    ) {
        let setting = &self.setting;
        let cause = plan.cause.to_string();
        setting.service_manager.status(&format!("applying ({cause})"));
        let round = round(setting, &self.exported, &self.fleet, machine, self.mode(), &cause);
        let mut own = OwnWrites::default();
        let (outcomes, awaiting) =
            round.run(&self.intake, &plan.extents, loaded, self.watching.as_mut(), &mut own);
        self.await_confirmation(awaiting);
        if plan.cause == Cause::Drift {
            self.note_repairs(&outcomes, plan, noticed);
        } else {
            self.listen_to_units();
        }
        let now = Timestamp::now();
        let disturbed = outcomes.iter().flat_map(|outcome| outcome.disturbed.clone()).collect();
        self.take_drift(Drift { subjects: disturbed, ..Drift::default() });
        for outcome in outcomes {
            // The lists of resources are of no use any more, and may be long.
            let outcome = Outcome { repaired: Vec::new(), disturbed: Vec::new(), ..outcome };
            self.last.insert(outcome.manifest, (now, outcome));
        }
        self.exported.metrics.set(&metrics::LAST_RUN, &[], now.as_duration().as_secs_f64());
        self.exported.is_ready.store(true, Ordering::Relaxed);
        let drift = self.watching.as_mut().map(|watching| watching.drift(&own));
        if let Some(drift) = drift {
            self.take_drift(drift);
        }
        if self.watching.as_ref().is_some_and(Watching::is_limited) {
            let hint =
                "raise fs.inotify.max_user_watches; until then what is not watched waits for the interval";
            self.setting.log.warn("the kernel allows no more watches", &[("hint", &hint)]);
        }
        let unwatchable = self.watching.as_mut().map(Watching::new_unwatchable).unwrap_or_default();
        for Unwatchable { path, why } in unwatchable {
            let effect = "what is changed there is repaired at the next run";
            let facts: [(&str, &dyn Display); 3] =
                [("path", &path.display()), ("reason", why), ("effect", &effect)];
            self.setting.log.warn("not everything is told of this directory", &facts);
        }
    }

    /// Counts repairs, and leaves alone what needs them again and again.
    fn note_repairs(&mut self, outcomes: &[Outcome], plan: &Plan, noticed: Option<Instant>) {
        let now = Instant::now();
        let repaired = outcomes.iter().flat_map(|outcome| &outcome.repaired);
        let repaired: Vec<&Repair> =
            repaired.filter(|repair| !plan.renewed.contains(&repair.subject)).collect();
        if let Some(noticed) = noticed.filter(|_| !repaired.is_empty()) {
            self.exported.metrics.observe(&metrics::REPAIR_LATENCY, &[], now - noticed);
        }
        for repair in repaired {
            if let Some(pause) = self.pauses.repaired(repair, now) {
                let subject = &repair.subject;
                let resource = format!("{}#{}", subject.resource.kind, subject.resource.name);
                let length = crate::vocabulary::Duration::from(pause.length);
                let message = "somebody else changes it again and again: it is left alone for a while";
                self.setting.log.warn(message, &[("resource", &resource), ("pause", &length)]);
            }
        }
    }
}
