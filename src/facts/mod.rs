//! What the machine is.
//!
//! Facts come from `/proc`, `/sys`, `/etc` and a few system calls. No program is run for them, but for those that root put
//! into `facts.d` for it, and nothing is sent over the network. Each is gathered when something first refers to it, and then kept: a run that asks for the host's
//! name reads nothing about its disks, and gets the same answer throughout.
//!
//! Over the gathered facts lie those that people wrote down: in folders made for it, in a file that a flag names, and
//! in flags. Maps merge, everything else replaces, later over earlier.
//!
//! A text that cannot be known is empty and a number 0, as tools have come to expect of `host`, `cpu`, `memory` and
//! `partition`. An address that does not exist is null.

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
#[cfg(test)]
mod tests;
mod virtualization;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use ccm_expr::{Map, Object, Value};

#[cfg(test)]
pub(crate) use self::manual::FACTS;
use self::{
    lazy::{Fact, Lazy},
    machine::Machine,
    overlay::{merge, overlay},
};
pub(crate) use self::{
    manual::help,
    network::interface,
    own::{FactsError, in_file},
};
use crate::{document::Review, host::interrupt::Interrupt};

/// Every section, and the short names that people type.
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

/// Where facts come from besides the machine itself.
pub(crate) struct Options {
    /// The root of the machine: `/`, or a folder with a recording of another one.
    pub(crate) root: PathBuf,
    /// Folders with facts that people wrote down, later over earlier.
    pub(crate) folders: Vec<PathBuf>,
    /// Facts over all others, later over earlier.
    pub(crate) given: Vec<Map>,
    /// How large a file with facts may be.
    pub(crate) limit: u64,
    /// The folder whose programs print facts, and what stops them; without it no program is run.
    pub(crate) programs: Option<(PathBuf, Interrupt)>,
}

/// What is known of a machine, gathered as it is read.
pub(crate) struct Facts {
    options: Options,
    machine: Arc<Machine>,
    all: OnceLock<Value>,
    printed: OnceLock<Value>,
    /// What was found in files and programs that cannot be used.
    reviews: Mutex<Vec<Review>>,
}

impl Facts {
    /// Reads nothing yet.
    pub(crate) fn new(options: Options) -> Self {
        let machine = Arc::new(Machine::at(options.root.clone()));
        Self { options, machine, all: OnceLock::new(), printed: OnceLock::new(), reviews: Mutex::default() }
    }

    /// Returns how long it took to gather what was read so far.
    pub(crate) fn spent(&self) -> Duration {
        self.machine.spent()
    }

    /// Returns the warnings about files that people wrote, which are read now if they were not yet, and about programs
    /// that were run so far. Each is returned once.
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

    /// What programs print: it lies under everything that people wrote down.
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

impl Object for Facts {
    fn member(&self, name: &str) -> Option<Value> {
        let known = self.all().member(name);
        if SECTIONS.iter().any(|(section, _)| *section == name) {
            return known;
        }
        match (self.printed().member(name), known) {
            (Some(below), Some(above)) => Some(overlay(below, &above)),
            (below, above) => above.or(below),
        }
    }

    fn names(&self) -> Vec<Arc<str>> {
        let mut names = self.all().member_names();
        let printed = self.printed().member_names();
        let new: Vec<_> = printed.into_iter().filter(|name| !names.contains(name)).collect();
        names.extend(new);
        names
    }
}
