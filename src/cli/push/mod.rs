//! `--on`: the same command on other machines.

mod askpass;
mod exit;
mod flags;
mod forward;
mod inputs;
mod live;
mod opener;
mod output;
mod plans;
mod record;
mod requests;
mod watcher;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ArgMatches;

use self::{
    askpass::Askpass,
    exit::exit,
    flags::Flags,
    inputs::Inputs,
    opener::Opener,
    output::{Kind, Show},
    plans::{Plans, Writer},
    record::Record,
    requests::Mapped,
    watcher::Watcher,
};
pub(super) use self::{
    askpass::answer as answer_askpass,
    flags::{RollFlags, WithHosts, WithRoll},
};
use super::{
    Exit,
    failure::{Failure, warn},
    output::Output,
    plan,
};
use crate::{
    host::{process::Presses, users::Users},
    push::{self, Archive, Destination, Finished, Fleet, Target},
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
    /// The run of the controller that stands for a run of each host.
    run: Option<String>,
    /// The plans to apply, and the keys that can sign them.
    plans: Option<(Plans, Option<PathBuf>)>,
    /// Where plans are written, and the key that signs them.
    destination: Option<(PathBuf, Option<PathBuf>)>,
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
                None => reject_plans(&names, matches).map(|()| None),
            };
        };
        let flags = Flags::from_matches(on, matches)?;
        let words = forward::words(super::command(), root)?;
        let plans = plans(&names, matches)?;
        let inputs = if plans.is_some() { Inputs::none() } else { Inputs::from_matches(&names, matches)? };
        let has_run = matches!(names[0].as_str(), "undo" | "confirm") || names == ["history", "show"];
        let run = matches.try_get_one::<String>("run").ok().flatten().filter(|_| has_run).cloned();
        let path = |id: &str| matches.try_get_one::<PathBuf>(id).ok().flatten().cloned();
        let destination = path("output").map(|directory| (directory, path("sign")));
        Ok(Some(Self { flags, inputs, words, names, run, plans, destination }))
    }

    /// Returns whether the command can change hosts.
    fn may_change(&self) -> bool {
        !self.flags.noop
            && self.destination.is_none()
            && matches!(self.names[0].as_str(), "apply" | "ensure" | "undo")
    }

    /// Returns whether the history of the controller gets a record.
    fn is_recorded(&self) -> bool {
        self.may_change() && self.flags.records_history
    }

    fn kind(&self) -> Kind {
        match self.names[0].as_str() {
            "apply" | "ensure" | "undo" | "plan" => Kind::Run,
            "history" if self.names.len() == 1 => Kind::List,
            _ if self.names.last().is_some_and(|name| name == "recipients") => Kind::Recipients,
            _ => Kind::Document,
        }
    }
}

/// Returns the plans that `ccm apply` names.
fn plans(names: &[String], matches: &ArgMatches) -> Result<Option<(Plans, Option<PathBuf>)>, Failure> {
    if names != ["apply"] {
        return Ok(None);
    }
    let manifests: Vec<&String> =
        matches.try_get_many("manifest").ok().flatten().into_iter().flatten().collect();
    if let Some(file) = manifests.iter().find(|file| plan::is_plan(file)) {
        return Err(Failure::new(format!(
            "`{file}` is the plan of one machine: with --on, name a directory that `ccm plan --on HOSTS -o DIR` wrote"
        )));
    }
    let Some(directory) = manifests.iter().find(|directory| Plans::are_in(directory)) else {
        return Ok(None);
    };
    if manifests.len() > 1 {
        return Err(Failure::new(format!("`{directory}` has plans: apply it alone")));
    }
    let is_written = |id: &str| {
        matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    };
    if let Some(option) = plan::changing_option(is_written) {
        return Err(Failure::new(format!(
            "`{directory}` has plans: `--{option}` would change what they do; make new plans with `ccm plan --on`"
        )));
    }
    let signers = matches.try_get_one::<PathBuf>("allowed_signers").ok().flatten().cloned();
    Ok(Some((Plans::read(directory)?, signers)))
}

/// Rejects a directory of plans without `--on`.
fn reject_plans(names: &[String], matches: &ArgMatches) -> Result<(), Failure> {
    let mut manifests = matches.try_get_many::<String>("manifest").ok().flatten().into_iter().flatten();
    match manifests.find(|directory| names == ["apply"] && Plans::are_in(directory)) {
        Some(directory) => {
            Err(Failure::new(format!("`{directory}` has plans for hosts: select hosts with --on")))
        }
        None => Ok(()),
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { flags, inputs, .. } = arguments;
    let environment = Environment::of_process();
    let Mapped { destinations, done, runs } = arguments.mapped()?;
    let binaries = push::binaries(&flags.binaries, &own_program()?).map_err(Failure::new)?;
    let packed = inputs.pack(&destinations, output)?;
    let confirm = arguments.confirm(&packed)?;
    let writer = arguments.writer(&destinations)?;
    let targets = arguments.targets(destinations, &packed, &runs)?;
    let hosts = targets.iter().map(|target| target.destination.name.clone()).collect();
    let begin = || Record::begin(&environment, &flags.state, flags.reason.clone(), &packed.texts(), hosts);
    let mut record = arguments.is_recorded().then(begin).transpose()?;
    let total = targets.len();
    let show = Show::new(output, flags.format, flags.verbosity, total, arguments.kind());
    let mut watcher = Watcher { show, record: record.as_mut(), writer };
    let mut finished = arguments.push(targets, packed.into_parts(), confirm, binaries, &mut watcher)?;
    let Watcher { show, writer, .. } = watcher;
    finished.results.extend(done);
    let exit = exit(&finished, flags.detailed_exitcode);
    let resume = record.as_ref().and_then(|record| record.resume(&finished));
    if let Some(Err(error)) = record.as_mut().map(|record| record.finish(&finished, exit.code())) {
        warn(&format!("the push is not recorded: {error}"));
    }
    let resume = resume.filter(|_| arguments.names[0] != "undo");
    let written = writer.map(Writer::end).transpose()?.flatten();
    show.end(&finished, record.as_ref().map(Record::run), resume.as_deref(), written.as_deref());
    Ok(exit)
}

impl Arguments {
    /// Returns how long runs wait for their confirmation.
    fn confirm(&self, packed: &inputs::Packed) -> Result<Option<Duration>, Failure> {
        let confirm = self.flags.confirm.or(packed.confirm).filter(|_| self.may_change());
        let pause = self.flags.roll.pause;
        match confirm {
            Some(time) if time <= pause => Err(Failure::new(format!(
                "the time for the confirmation ({}) must be longer than --pause ({})",
                crate::vocabulary::Duration::from(time),
                crate::vocabulary::Duration::from(pause),
            ))),
            confirm => Ok(confirm),
        }
    }

    fn writer(&self, destinations: &[Destination]) -> Result<Option<Writer>, Failure> {
        let Some((directory, key)) = &self.destination else { return Ok(None) };
        let privilege = |host: &Destination| (host.name.clone(), host.privilege(&self.flags.becomes));
        let privileges = destinations.iter().map(privilege).collect();
        Writer::new(directory, key.clone(), privileges).map(Some)
    }

    /// Runs on the targets.
    fn push(
        &self,
        targets: Vec<Target>,
        (archive, opener): (Archive, Opener),
        confirm: Option<Duration>,
        binaries: Vec<push::Binary>,
        watcher: &mut Watcher,
    ) -> Result<Finished, Failure> {
        let flags = &self.flags;
        let environment = Environment::of_process();
        let is_apply = self.names[0] == "apply" && self.may_change();
        let pace = push::Pace { confirm, ..flags.pace(&targets, is_apply && self.plans.is_none()) };
        let askpass = if flags::can_ask() { Askpass::open().ok() } else { None };
        let transport = flags.transport(&environment, &Users::default(), askpass.as_ref());
        let progress = Arc::clone(watcher.show.progress_line());
        let password = flags.password(&environment, Arc::clone(&progress));
        let failed = |error: std::io::Error| Failure::new(format!("cannot start the push: {error}"));
        let open = Box::new(move |request: &push::Request, digests: &[String]| opener.open(request, digests));
        let fleet =
            Fleet::new(targets, archive, pace, transport, binaries, password, open).map_err(failed)?;
        let mut presses = Presses::listen().map_err(failed)?;
        let counter = fleet.presser();
        std::thread::spawn(move || {
            while presses.next_press().is_ok() {
                counter.press();
            }
        });
        if let Some(askpass) = &askpass {
            askpass.serve(progress, fleet.questions()).map_err(failed)?;
        }
        Ok(fleet.run(watcher))
    }
}

/// Returns the program that this process runs.
pub(super) fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the running program: {error}")))
}

/// How long to wait from the start of `ssh` to the marker.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
