//! What belongs to a command while it runs: whoever is in its cgroup, or below it in the table of processes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;

use rustix::process::{Pid, Signal, kill_process_group};

use super::cgroup::Leaf;
use super::process_tree::{ProcessTree, Snapshot, descendants, signal_each};
use super::table::{self, Record};

/// What belongs to a command.
pub(super) enum Family<'a> {
    Cgroup(Members<'a>),
    Adopted(ProcessTree<'a>),
}

impl Family<'_> {
    pub(super) fn snapshot(&self) -> io::Result<Snapshot> {
        match self {
            Self::Cgroup(members) => members.snapshot(),
            Self::Adopted(tree) => tree.snapshot(),
        }
    }

    /// Sends a signal to all that were seen; SIGKILL also to those in the cgroup that were not.
    pub(super) fn signal(&self, snapshot: &Snapshot, signal: Signal) {
        match self {
            Self::Cgroup(members) => members.signal(snapshot, signal),
            Self::Adopted(tree) => tree.signal(snapshot, signal),
        }
    }

    /// Returns what kills all that can be killed with one call, while `head` is not collected.
    pub(super) fn killer(&self, head: Pid) -> impl Fn() + Send + 'static {
        let cgroup = match self {
            Self::Cgroup(members) => Some(members.leaf.path().to_owned()),
            Self::Adopted(_) => None,
        };
        move || {
            let leaf = cgroup.as_deref().and_then(|path| Leaf::open(path).ok());
            let _ = leaf.map(|leaf| leaf.kill());
            let _ = kill_process_group(head, Signal::KILL);
        }
    }

    /// Collects the dead that were adopted, after which their pids are free.
    pub(super) fn collect(&self, snapshot: &Snapshot) {
        if let Self::Adopted(_) = self {
            ProcessTree::collect(snapshot);
        }
    }
}

/// The members of a cgroup, and those that the command started and that were moved elsewhere, such as by
/// `systemd-run --scope`.
pub(super) struct Members<'a> {
    leaf: &'a Leaf,
    /// The command itself. It is not collected as long as this exists.
    head: Pid,
    outside: RefCell<Vec<Record>>,
}

impl<'a> Members<'a> {
    pub(super) fn of(leaf: &'a Leaf, head: Pid) -> Self {
        Self { leaf, head, outside: RefCell::default() }
    }

    fn snapshot(&self) -> io::Result<Snapshot> {
        let table = table::all()?;
        let members: BTreeSet<i32> = self.leaf.pids().into_iter().map(Pid::as_raw_pid).collect();
        let is_member = |record: &Record| members.contains(&record.pid.as_raw_pid());
        let head = self.head.as_raw_pid();
        let below = descendants(&table, |record| record.pid == self.head || record.session == head);
        let mut outside = self.outside.borrow_mut();
        // Once seen it is remembered: it may lose its parents.
        outside.retain(|known| table.iter().any(|record| record.alive && record.is_same_process(known)));
        let new = below.into_iter().filter(|record| record.alive && !is_member(record));
        let new: Vec<Record> = new
            .filter(|record| !outside.iter().any(|known| known.is_same_process(record)))
            .cloned()
            .collect();
        outside.extend(new);
        let inside = table.iter().filter(|record| record.alive && is_member(record)).cloned();
        let living = inside.chain(outside.iter().cloned()).collect();
        Ok(Snapshot { living, is_populated: self.leaf.is_populated()?, ..Snapshot::default() })
    }

    fn signal(&self, snapshot: &Snapshot, signal: Signal) {
        let killed = signal == Signal::KILL && self.leaf.kill().is_ok();
        if killed {
            signal_each(&*self.outside.borrow(), signal);
            return;
        }
        // The number of the group is the command's, which is not collected.
        let _ = kill_process_group(self.head, signal);
        let others = snapshot.living.iter().filter(|record| record.group != self.head.as_raw_pid());
        signal_each(others, signal);
    }
}
