//! Hosts and the request for each of them.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::{
    super::failure::{Failure, warn},
    Arguments,
    inputs::Packed,
    plans, record,
};
use crate::{
    host::files::hex,
    push::{Destination, HostResult, Outcome, Target, encoded_plan},
    state::history::RunRecord,
};

/// The hosts of a push.
pub(super) struct Mapped {
    /// Hosts to connect to.
    pub(super) destinations: Vec<Destination>,
    /// Results of hosts that an earlier push completed.
    pub(super) done: Vec<HostResult>,
    /// The runs that stand for the run on the command line.
    pub(super) runs: Runs,
}

/// What the run on the command line is on each host.
pub(super) enum Runs {
    /// The same on all hosts.
    Same,
    /// The run of each host, by its name.
    Each { push: String, runs: HashMap<String, String> },
}

impl Arguments {
    /// Returns the hosts, and the runs that stand for the run on the command line.
    pub(super) fn mapped(&self) -> Result<Mapped, Failure> {
        let mut destinations = self.flags.destinations()?;
        let runs = self.runs(&destinations)?;
        let Some(resumed) = &self.flags.roll.resume else {
            return Ok(Mapped { destinations, done: Vec::new(), runs });
        };
        let earlier = record::find(&self.flags.state, resumed)?;
        let place = |host: &Destination| earlier.hosts.iter().position(|other| other.host == host.name);
        let is_done =
            |host: &Destination| place(host).is_some_and(|at| earlier.hosts[at].result == Outcome::Ok.name());
        destinations.sort_by_key(|host| place(host).unwrap_or(usize::MAX));
        let (done, left): (Vec<_>, Vec<_>) = destinations.into_iter().partition(is_done);
        let done = done.iter().map(|host| {
            let run = place(host).and_then(|at| earlier.hosts[at].run.clone());
            HostResult { run, ..HostResult::without_run(&host.name, Outcome::Ok, None) }
        });
        Ok(Mapped { destinations: left, done: done.collect(), runs })
    }

    fn runs(&self, destinations: &[Destination]) -> Result<Runs, Failure> {
        let Some(run) = self.run.as_ref().filter(|run| *run != "last") else { return Ok(Runs::Same) };
        let earlier = match record::find(&self.flags.state, run) {
            Ok(earlier) => earlier,
            // The run can be one of the only host.
            Err(_) if destinations.len() == 1 => return Ok(Runs::Same),
            Err(failure) => return Err(failure),
        };
        let of_host = |host: &crate::state::history::HostRun| Some((host.host.clone(), host.run.clone()?));
        let runs: HashMap<String, String> = earlier.hosts.iter().filter_map(of_host).collect();
        if !destinations.iter().any(|host| runs.contains_key(&host.name)) {
            return Err(Failure::new(format!("push `{run}` has no run on the selected hosts")));
        }
        Ok(Runs::Each { push: run.clone(), runs })
    }

    /// Returns the targets with their requests.
    pub(super) fn targets(
        &self,
        destinations: Vec<Destination>,
        packed: &Packed,
        runs: &Runs,
    ) -> Result<Vec<Target>, Failure> {
        if let Some(resumed) = &self.flags.roll.resume {
            warn_about_changes(&record::find(&self.flags.state, resumed)?, packed);
        }
        let signers = self.plans.as_ref().and_then(|(_, path)| path.as_deref());
        let signers = signers.map(plans::signers).transpose()?;
        let target = |mut host: Destination| {
            let without =
                |outcome, reason| Box::new(HostResult::without_run(&host.name, outcome, Some(reason)));
            let Some(words) = self.words(&host, runs) else {
                let reason = "the push has no run on this host".to_owned();
                let request = Err(without(Outcome::Untouched, reason));
                return Ok(Target { destination: host, request });
            };
            let plan = match &self.plans {
                None => None,
                Some((plans, _)) => match plans.of(&mut host, &self.flags.becomes, signers.as_ref()) {
                    Ok(plan) => Some(encoded_plan(&plan)),
                    Err(reason) => {
                        let result = HostResult::without_run(&host.name, Outcome::Refused, Some(reason));
                        return Ok(Target { destination: host, request: Err(Box::new(result)) });
                    }
                },
            };
            packed.target(host, words, plan)
        };
        destinations.into_iter().map(target).collect()
    }

    /// Returns the command line for a host; `None` if the host has nothing to do with the run on the command line.
    fn words(&self, host: &Destination, runs: &Runs) -> Option<Vec<String>> {
        let mut words = self.words.clone();
        match (runs, &self.run) {
            (Runs::Each { push, runs }, _) => {
                let run = runs.get(&host.name)?;
                words.iter_mut().filter(|word| *word == push).for_each(|word| word.clone_from(run));
            }
            // Without a run, `ccm confirm` is about the last one.
            (Runs::Same, Some(run)) if run == "last" && self.names[0] == "confirm" => {
                words.retain(|word| word != run);
            }
            (Runs::Same, _) => {}
        }
        Some(words)
    }
}

fn warn_about_changes(earlier: &RunRecord, packed: &Packed) {
    let has_changed = |(name, text): &(String, String)| {
        let digest = hex(&Sha256::digest(text.as_bytes()));
        !earlier.start.manifests.iter().any(|known| known.path == *name && known.digest == digest)
    };
    if packed.texts().iter().any(has_changed) {
        warn("the manifest has changed since the push that is resumed");
    }
}
