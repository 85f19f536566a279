//! Everything a command started, however far it went away: found, signalled and collected.
//!
//! While a command runs, the kernel hands orphans to this process instead of init. So whatever the command started is,
//! at every instant, below the command or below a process that was adopted: leaving the process group or the session,
//! or losing both parents, does not help. That makes "nothing is left" something one look at the process table can
//! prove. Whoever lived when the look began is found alive, or dead and not yet collected, or below such a one; a look
//! that finds neither living nor dead has found that nobody lived.
//!
//! Adoption says nothing about *which* command an orphan came from. Therefore commands take turns: the lock is
//! held for as long as a command runs. What earlier commands left running on purpose was adopted too, and is known at
//! the start of the next turn. Every command is started in a session of its own, and no process can come back from there
//! into ours: a child outside our session is an adopted one or the command.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpid, kill_process_group,
    pidfd_open, pidfd_send_signal, set_child_subreaper, waitid, waitpid,
};

use super::table::{self, Record};

/// The turn of one command: while it lasts, orphans come to this process.
pub(super) struct Adoption {
    own_pid: i32,
    own_session: i32,
    /// Adopted in earlier turns, and left alone.
    earlier: Vec<Record>,
    _turn: MutexGuard<'static, ()>,
}

impl Adoption {
    /// Waits for the turn. Whoever watches the output of a command must not run another one from there.
    pub(super) fn begin() -> io::Result<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // The table and not the system call: a session from outside a container reads as 0, which rustix does not expect.
        let own = table::one(getpid()).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        let mut adoption = Self {
            own_pid: own.pid.as_raw_pid(),
            own_session: own.session,
            earlier: Vec::new(),
            _turn: turn,
        };
        set_child_subreaper(Some(getpid()))?;
        // Looking through the process table takes longer than starting a program. Mostly there is nothing to find.
        if !matches!(any_dead_child(), Err(Errno::CHILD)) {
            adoption.collect();
            let table = table::all()?;
            adoption.earlier = table.into_iter().filter(|record| adoption.is_adopted(record)).collect();
        }
        Ok(adoption)
    }

    fn is_adopted(&self, record: &Record) -> bool {
        record.parent == self.own_pid && record.session != self.own_session
    }

    /// Whether it was there before, or split off from what was.
    fn is_earlier(&self, record: &Record) -> bool {
        self.earlier
            .iter()
            .any(|earlier| earlier.is_same_process(record) || earlier.session == record.session)
    }

    /// Collects what died among the adopted.
    fn collect(&self) {
        if !matches!(any_dead_child(), Ok(Some(_))) {
            return;
        }
        let dead = |record: &Record| !record.alive && self.is_adopted(record);
        for record in table::all().unwrap_or_default().iter().filter(|record| dead(record)) {
            collect(record);
        }
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        self.collect();
        // What is left running may stay with us until we end; its own orphans need not.
        let _ = set_child_subreaper(None);
    }
}

/// A command that is running and whatever it started.
pub(super) struct ProcessTree<'a> {
    adoption: &'a Adoption,
    /// The command itself. It is not collected as long as this exists, so neither its pid nor its process group can
    /// come to mean anything else.
    head: Pid,
}

/// One look at the tree.
pub(super) struct Snapshot {
    pub(super) living: Vec<Record>,
    /// Adopted, dead and not yet collected.
    dead: Vec<Record>,
}

impl Snapshot {
    /// Nothing is left, and nothing can come back.
    pub(super) fn is_empty(&self) -> bool {
        self.living.is_empty() && self.dead.is_empty()
    }
}

impl<'a> ProcessTree<'a> {
    pub(super) fn of(head: Pid, adoption: &'a Adoption) -> Self {
        Self { adoption, head }
    }

    pub(super) fn snapshot(&self) -> io::Result<Snapshot> {
        let table = table::all()?;
        let mut children: BTreeMap<i32, Vec<&Record>> = BTreeMap::new();
        for record in &table {
            children.entry(record.parent).or_default().push(record);
        }
        let mut found: Vec<&Record> = table.iter().filter(|record| self.is_root(record)).collect();
        let mut known: BTreeSet<i32> = found.iter().map(|record| record.pid.as_raw_pid()).collect();
        let mut next = 0;
        while let Some(record) = found.get(next) {
            let below = children.get(&record.pid.as_raw_pid()).into_iter().flatten().copied();
            found.extend(below.filter(|record| known.insert(record.pid.as_raw_pid())));
            next += 1;
        }
        let (living, dead): (Vec<_>, Vec<_>) = found.into_iter().cloned().partition(|record| record.alive);
        let dead = dead.into_iter().filter(|record| self.is_held(record)).collect();
        Ok(Snapshot { living, dead })
    }

    /// Sends a signal to all of them.
    pub(super) fn signal(&self, snapshot: &Snapshot, signal: Signal) {
        // A group is signalled in one instant, which no amount of forking escapes. Its number is safe to use as long
        // as a member of it cannot be collected by anybody but us.
        let held = snapshot.living.iter().chain(&snapshot.dead).filter(|record| self.is_held(record));
        let mut groups: BTreeSet<i32> = held.map(|record| record.group).collect();
        groups.insert(self.head.as_raw_pid());
        // Here and below, whoever cannot be reached is gone, or is found again and in the end reported.
        for group in groups.iter().copied().filter_map(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
        for record in snapshot.living.iter().filter(|record| !groups.contains(&record.group)) {
            let _ = signal_one(record, signal);
        }
    }

    /// Signals the process group only: what remains when the process table cannot be read.
    pub(super) fn kill_group(&self) {
        let _ = kill_process_group(self.head, Signal::KILL);
    }

    /// Collects the dead, after which their pids are free.
    pub(super) fn collect(snapshot: &Snapshot) {
        snapshot.dead.iter().for_each(collect);
    }

    fn is_root(&self, record: &Record) -> bool {
        record.pid == self.head
            || record.session == self.head.as_raw_pid()
            || (self.adoption.is_adopted(record) && !self.adoption.is_earlier(record))
    }

    /// Whether it stays in the table until we collect it: adopted, and not the command itself.
    fn is_held(&self, record: &Record) -> bool {
        record.parent == self.adoption.own_pid && record.pid != self.head
    }
}

fn signal_one(record: &Record, signal: Signal) -> Result<(), Errno> {
    let process = pidfd_open(record.pid, PidfdFlags::empty())?;
    // The same before and after the descriptor was opened: so it stands for that process.
    if table::one(record.pid).is_some_and(|now| now.is_same_process(record)) {
        pidfd_send_signal(&process, signal)?;
    }
    Ok(())
}

fn collect(record: &Record) {
    // Never any child: other threads may be waiting for theirs.
    let _ = waitpid(Some(record.pid), WaitOptions::NOHANG);
}

/// Whether a child of this process has died and was not collected; an error when there is no child at all.
fn any_dead_child() -> Result<Option<WaitIdStatus>, Errno> {
    waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}
