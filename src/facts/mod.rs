//! Facts about the machine.
//!
//! Facts come from `/proc`, `/sys`, `/etc` and a few system calls, without programs and without the network. The only
//! programs are those that root put into `facts.d`. Each fact is gathered when it is first read and then cached: a run
//! that reads the host name does not inspect the disks, and all resources of the run see the same value.
//!
//! Custom facts override machine facts: facts in directories, then files and single facts on the command line. Maps are
//! merged, other values are replaced, and later sources override earlier ones.
//!
//! In `host`, `cpu`, `memory` and `partition`, an unknown string is empty and an unknown number is 0, as other tools
//! expect. An address that does not exist is null.

mod cpu;
mod host;
mod lazy;
mod machine;
mod manual;
mod memory;
mod network;
mod overlay;
mod own;
mod partition;
mod programs;
mod reads;
#[cfg(test)]
mod tests;
mod virtualization;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use ccm_expr::{Map, Object, Value};

pub(crate) use self::manual::FACTS;
use self::{
    lazy::{Fact, Lazy},
    machine::Machine,
    overlay::{merge, overlay},
    reads::Reads,
};
pub(crate) use self::{
    manual::help,
    network::interface,
    own::{FactsError, in_file},
};
use crate::{document::Review, host::interrupt::Interrupt};

/// All sections and short names.
const SECTIONS: &[Fact] = &[
    ("host", host::section),
    ("cpu", cpu::section),
    ("memory", memory::section),
    ("partition", partition::section),
    ("network", network::section),
    ("hostname", host::hostname),
    ("fqdn", host::fqdn),
    ("domain", host::domain),
    ("os", host::os),
    ("platform", host::platform),
    ("family", host::platform_family),
    ("version", host::platform_version),
    ("kernel", host::kernel_version),
    ("architecture", host::architecture),
];

/// Sources of facts in addition to the machine.
pub(crate) struct Options {
    /// Root of the machine: `/`, or a directory with a recording of another machine.
    pub(crate) root: PathBuf,
    /// Directories with custom facts; later ones override earlier ones.
    pub(crate) folders: Vec<PathBuf>,
    /// Facts that override all others; later ones override earlier ones.
    pub(crate) given: Vec<Map>,
    /// Maximum size of a file with facts.
    pub(crate) limit: u64,
    /// Directory of executable facts, and the interrupt that stops them. Without it, no program runs.
    pub(crate) programs: Option<(PathBuf, Interrupt)>,
}

/// Facts about a machine, gathered when they are read.
pub(crate) struct Facts {
    options: Options,
    machine: Arc<Machine>,
    all: OnceLock<Value>,
    printed: OnceLock<Value>,
    /// Errors in files and programs that cannot be used.
    reviews: Mutex<Vec<Review>>,
    /// The facts that were read since [`Facts::note_reads`].
    reads: OnceLock<Reads>,
}

impl Facts {
    /// Creates the facts without reading anything.
    pub(crate) fn new(options: Options) -> Self {
        let machine = Arc::new(Machine::at(options.root.clone()));
        Self {
            options,
            machine,
            all: OnceLock::new(),
            printed: OnceLock::new(),
            reviews: Mutex::default(),
            reads: OnceLock::new(),
        }
    }

    /// Notes from now on which facts are read.
    pub(crate) fn note_reads(&self) {
        self.reads.get_or_init(Reads::default);
    }

    /// Returns the facts that were read, with their values. Given facts and facts that change by themselves are left out.
    pub(crate) fn read_so_far(&self) -> BTreeMap<String, Value> {
        self.reads.get().map(|reads| reads.all(&self.options.given)).unwrap_or_default()
    }

    /// Returns the value that a fact has now, in the form in which [`Facts::read_so_far`] returns it.
    pub(crate) fn value_at(&self, path: &str) -> Option<Value> {
        reads::now(self, path)
    }

    /// Returns the time spent on gathering facts so far.
    pub(crate) fn spent(&self) -> Duration {
        self.machine.spent()
    }

    /// Returns each warning once: about files with custom facts, which are read now if necessary, and about programs
    /// that ran so far.
    pub(crate) fn take_reviews(&self) -> Vec<Review> {
        self.all();
        std::mem::take(&mut *self.reviews.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn all(&self) -> &Value {
        self.all.get_or_init(|| {
            let mut own =
                own::in_folders(&self.options.folders, self.options.limit, &mut |error| self.ignore(error));
            for given in &self.options.given {
                merge(&mut own, given.clone());
            }
            overlay(Lazy::of(&self.machine, SECTIONS), &own.into())
        })
    }

    /// Returns the facts of programs, which custom facts in files override.
    fn printed(&self) -> &Value {
        self.printed.get_or_init(|| match &self.options.programs {
            Some((folder, interrupt)) => {
                let limit = self.options.limit;
                let run = || programs::facts(folder, limit, interrupt, &mut |error| self.ignore(error));
                self.machine.timed(run).into()
            }
            None => Map::new().into(),
        })
    }

    fn ignore(&self, error: FactsError) {
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner).push(error.into_review());
    }
}

impl Facts {
    fn fact(&self, name: &str) -> Option<Value> {
        let known = self.all().member(name);
        if SECTIONS.iter().any(|(section, _)| *section == name) {
            return known;
        }
        match (self.printed().member(name), known) {
            (Some(below), Some(above)) => Some(overlay(below, &above)),
            (below, above) => above.or(below),
        }
    }
}

impl Object for Facts {
    fn member(&self, name: &str) -> Option<Value> {
        let value = self.fact(name)?;
        Some(match self.reads.get() {
            Some(reads) => reads.note(name, value),
            None => value,
        })
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.all().member_names();
        let printed = self.printed().member_names();
        let new: Vec<_> = printed.into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(new);
        names
    }
}
