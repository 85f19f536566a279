//! `--on`: the same command on other machines.

mod askpass;
mod flags;
mod forward;
mod inputs;
mod output;
mod record;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ArgMatches;
use sha2::{Digest, Sha256};

use self::{
    askpass::Askpass,
    flags::Flags,
    inputs::{Inputs, Packed},
    output::{Printed, Show},
    record::Record,
};
pub(super) use self::{
    askpass::answer as answer_askpass,
    flags::{RollFlags, WithHosts, WithRoll},
};
use super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
};
use crate::{
    host::{files::hex, process::Presses, users::Users},
    push::{self, Archive, Destination, Finished, Fleet, HostResult, Outcome, Target},
    run::Environment,
};

/// A command with `--on`.
pub(super) struct Arguments {
    flags: Flags,
    inputs: Inputs,
    /// The command line for targets.
    words: Vec<String>,
    /// Names of the command and its subcommands.
    names: Vec<String>,
    /// The run to undo.
    undone: Option<String>,
}

impl Arguments {
    /// Reads the command line; `None` without `--on`.
    pub(super) fn from_matches(root: &ArgMatches) -> Result<Option<Self>, Failure> {
        let (mut names, mut matches) = (Vec::new(), root);
        while let Some((name, inner)) = matches.subcommand() {
            names.push(name.to_owned());
            matches = inner;
        }
        let Some(on) = matches.try_get_one::<String>("on").ok().flatten() else {
            return match flags::without_on(matches) {
                Some(flag) => Err(Failure::new(format!("--{flag} needs --on"))),
                None => Ok(None),
            };
        };
        let flags = Flags::from_matches(on, matches)?;
        let words = forward::words(super::command(), root)?;
        let inputs = Inputs::from_matches(&names, matches)?;
        let undone =
            matches.try_get_one::<String>("run").ok().flatten().filter(|_| names[0] == "undo").cloned();
        Ok(Some(Self { flags, inputs, words, names, undone }))
    }

    /// Returns whether the command can change hosts.
    fn may_change(&self) -> bool {
        !self.flags.noop && matches!(self.names[0].as_str(), "apply" | "ensure" | "undo")
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { flags, inputs, .. } = arguments;
    let environment = Environment::of_process();
    let (destinations, done) = arguments.destinations()?;
    let binaries = push::binaries(&flags.binaries, &own_program()?).map_err(Failure::new)?;
    let packed = inputs.pack(&destinations, output)?;
    let targets = arguments.targets(destinations, &packed)?;
    let mut record = arguments
        .is_recorded()
        .then(|| Record::begin(&environment, flags.reason.clone(), &packed.texts()))
        .transpose()?;
    let mut finished = arguments.push(targets, packed.archive, binaries, output)?;
    finished.results.extend(done);
    let exit = exit(&finished, flags.detailed_exitcode);
    let resume = record.as_ref().and_then(|record| record.resume(&finished));
    if let Some(Err(error)) = record.as_mut().map(|record| record.finish(&finished, exit.code())) {
        warn(&format!("the push is not recorded: {error}"));
    }
    let resume = resume.filter(|_| arguments.names[0] != "undo");
    Show::new(output, flags.format, flags.verbosity, 0, arguments.printed()).end(
        &finished,
        record.as_ref().map(Record::run),
        resume.as_deref(),
    );
    Ok(exit)
}

impl Arguments {
    /// Returns what the command prints on each host.
    fn printed(&self) -> Printed {
        match &self.names[..] {
            [name] if name == "history" => Printed::List,
            [.., name] if name == "recipients" => Printed::Recipients,
            _ => Printed::Document,
        }
    }

    /// Returns whether the history of the controller gets a record.
    fn is_recorded(&self) -> bool {
        self.may_change() && self.flags.records_history
    }

    /// Returns the hosts to run on, and the results of hosts that an earlier push completed.
    fn destinations(&self) -> Result<(Vec<Destination>, Vec<HostResult>), Failure> {
        let mut destinations = self.flags.destinations()?;
        let Some(resumed) = &self.flags.roll.resume else { return Ok((destinations, Vec::new())) };
        let earlier = record::find(resumed)?;
        let hosts = record::hosts(&earlier);
        let place = |host: &Destination| hosts.iter().position(|other| other.host == host.name);
        let is_done =
            |host: &Destination| place(host).is_some_and(|at| hosts[at].result == Outcome::Ok.name());
        destinations.sort_by_key(|host| place(host).unwrap_or(usize::MAX));
        let (done, left): (Vec<_>, Vec<_>) = destinations.into_iter().partition(is_done);
        let done = done.iter().map(|host| {
            let run = place(host).and_then(|at| hosts[at].run.clone());
            HostResult { run, ..HostResult::without_run(&host.name, Outcome::Ok, None) }
        });
        Ok((left, done.collect()))
    }

    /// Returns the targets with their requests.
    fn targets(&self, destinations: Vec<Destination>, packed: &Packed) -> Result<Vec<Target>, Failure> {
        if let Some(resumed) = &self.flags.roll.resume {
            let earlier = record::find(resumed)?;
            let has_changed = |(name, text): &(String, String)| {
                let digest = hex(&Sha256::digest(text.as_bytes()));
                !earlier.start.manifests.iter().any(|known| known.path == *name && known.digest == digest)
            };
            if packed.texts().iter().any(has_changed) {
                warn("the manifest has changed since the push that is resumed");
            }
        }
        let undone = match &self.undone {
            Some(run) if run != "last" => Some((run, record::find(run)?)),
            _ => None,
        };
        let words = |host: &Destination| match &undone {
            None => Ok::<_, Failure>(self.words.clone()),
            Some((run, earlier)) => {
                let of_host = record::hosts(earlier).iter().find(|other| other.host == host.name);
                let of_host = of_host.and_then(|other| other.run.clone()).ok_or_else(|| {
                    Failure::new(format!("push `{}` has no run on `{}`", earlier.start.run, host.name))
                })?;
                Ok(self
                    .words
                    .iter()
                    .map(|word| if word == *run { of_host.clone() } else { word.clone() })
                    .collect())
            }
        };
        let target = |host: Destination| {
            let words = words(&host)?;
            packed.target(host, words)
        };
        destinations.into_iter().map(target).collect()
    }

    /// Runs on the targets.
    fn push(
        &self,
        targets: Vec<Target>,
        archive: Archive,
        binaries: Vec<push::Binary>,
        output: &mut Output,
    ) -> Result<Finished, Failure> {
        let flags = &self.flags;
        let environment = Environment::of_process();
        let total = targets.len();
        let pace = flags.pace(&targets, self.names[0] == "apply" && self.may_change());
        let askpass = if flags::can_ask() { Askpass::open().ok() } else { None };
        let transport = flags.transport(&environment, &Users::default(), askpass.as_ref());
        let password = flags.password(&environment);
        let failed = |error: std::io::Error| Failure::new(format!("cannot start the push: {error}"));
        let fleet = Fleet::new(targets, archive, pace, transport, binaries, password).map_err(failed)?;
        let mut presses = Presses::listen().map_err(failed)?;
        let counter = fleet.presser();
        std::thread::spawn(move || {
            while presses.next_press().is_ok() {
                counter.press();
            }
        });
        if let Some(askpass) = &askpass {
            askpass.serve(Arc::clone(&output.progress), fleet.questions()).map_err(failed)?;
        }
        Ok(fleet.run(&mut Show::new(output, flags.format, flags.verbosity, total, self.printed())))
    }
}

/// Returns the exit status: the worst result decides.
fn exit(finished: &Finished, detailed: bool) -> Exit {
    let has = |outcomes: &[Outcome]| finished.results.iter().any(|result| outcomes.contains(&result.outcome));
    let changed = |result: &HostResult| !result.changes.is_empty();
    if finished.is_interrupted || has(&[Outcome::Failed, Outcome::Unhealthy, Outcome::Refused]) {
        Exit::Failed
    } else if has(&[Outcome::Unreachable]) {
        Exit::Unreachable
    } else if detailed && finished.results.iter().any(changed) {
        Exit::Changed
    } else {
        Exit::Success
    }
}

/// Returns the program that this process runs.
pub(super) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the running program: {error}")))
}

/// How long to wait from the start of `ssh` to the marker.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
