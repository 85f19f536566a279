//! Everything a command started, where it has no cgroup: found, signalled and collected.
//!
//! While a command runs, the kernel hands orphans to this process instead of init. So whatever the command started is,
//! at every instant, below the command or below a process that was adopted: leaving the process group or the session,
//! or losing both parents, does not help. Whoever lived when a look at the process table began is found alive, or dead
//! and not yet collected, or below such a one; a look that finds neither living nor dead has found that nobody lived.
//! Processes that fork and end faster than they can be looked at may never let it come to that: then nobody can tell.
//!
//! Adoption says nothing about *which* command an orphan came from. Therefore such commands take turns, and what earlier
//! commands left running on purpose, which was adopted too, is known at the start of a turn. What is adopted later may
//! be theirs: while they live, only what is in the session of the command or below it is taken for the command's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::MutexGuard;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpid, kill_process_group,
    pidfd_open, pidfd_send_signal, set_child_subreaper, waitid, waitpid,
};

use super::runner::Runner;
use super::table::{self, Record};

/// The turn of one command: while it lasts, orphans come to this process.
pub(super) struct Adoption<'r> {
    own_pid: i32,
    own_session: i32,
    /// Adopted in earlier turns, and left alone.
    earlier: Vec<Record>,
    _turn: MutexGuard<'r, ()>,
}

impl<'r> Adoption<'r> {
    /// Waits for the turn. Whoever watches the output of a command must not run another one from there.
    pub(super) fn begin(runner: &'r Runner) -> io::Result<Self> {
        let turn = runner.turn();
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

    /// Whether it was there before.
    fn is_earlier(&self, record: &Record) -> bool {
        self.earlier.iter().any(|earlier| earlier.is_same_process(record))
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

impl Drop for Adoption<'_> {
    fn drop(&mut self) {
        self.collect();
        // What is left running may stay with us until we end; its own orphans need not.
        let _ = set_child_subreaper(None);
    }
}

/// A command that is running and whatever it started.
pub(super) struct ProcessTree<'a> {
    adoption: &'a Adoption<'a>,
    /// The command itself. It is not collected as long as this exists, so neither its pid nor its process group can
    /// come to mean anything else.
    head: Pid,
}

/// One look at what belongs to a command.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) living: Vec<Record>,
    /// Adopted, dead and not yet collected.
    pub(super) dead: Vec<Record>,
    /// The cgroup is not empty, whoever was seen in it.
    pub(super) is_populated: bool,
    /// There are others of which nobody can tell whether they belong to the command.
    pub(super) is_unclear: bool,
}

impl Snapshot {
    /// Nothing is left, and nothing can come back.
    pub(super) fn is_empty(&self) -> bool {
        self.living.is_empty() && self.dead.is_empty() && !self.is_populated
    }
}

/// Those of `table` that are below `roots`, and `roots` themselves.
pub(super) fn descendants(table: &[Record], roots: impl Fn(&Record) -> bool) -> Vec<&Record> {
    let mut children: BTreeMap<i32, Vec<&Record>> = BTreeMap::new();
    for record in table {
        children.entry(record.parent).or_default().push(record);
    }
    let mut found: Vec<&Record> = table.iter().filter(|record| roots(record)).collect();
    let mut known: BTreeSet<i32> = found.iter().map(|record| record.pid.as_raw_pid()).collect();
    let mut next = 0;
    while let Some(record) = found.get(next) {
        let below = children.get(&record.pid.as_raw_pid()).into_iter().flatten().copied();
        found.extend(below.filter(|record| known.insert(record.pid.as_raw_pid())));
        next += 1;
    }
    found
}

impl<'a> ProcessTree<'a> {
    pub(super) fn of(head: Pid, adoption: &'a Adoption<'a>) -> Self {
        Self { adoption, head }
    }

    pub(super) fn snapshot(&self) -> io::Result<Snapshot> {
        let table = table::all()?;
        let found = descendants(&table, |record| self.is_root(record));
        let is_unclear = table.iter().any(|record| record.alive && self.is_unclear(record));
        let (living, dead): (Vec<_>, Vec<_>) = found.into_iter().cloned().partition(|record| record.alive);
        let dead = dead.into_iter().filter(|record| self.is_held(record)).collect();
        Ok(Snapshot { living, dead, is_populated: false, is_unclear })
    }

    /// Sends a signal to all of them.
    pub(super) fn signal(&self, snapshot: &Snapshot, signal: Signal) {
        // A group is signalled in one instant, which no amount of forking escapes. Its number is safe to use as long
        // as a member of it cannot be collected by anybody but us.
        let held = snapshot.living.iter().chain(&snapshot.dead).filter(|record| self.is_held(record));
        let mut groups: BTreeSet<i32> = held.map(|record| record.group).collect();
        groups.insert(self.head.as_raw_pid());
        for group in groups.iter().copied().filter_map(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
        signal_each(snapshot.living.iter().filter(|record| !groups.contains(&record.group)), signal);
    }

    /// Collects the dead, after which their pids are free.
    pub(super) fn collect(snapshot: &Snapshot) {
        snapshot.dead.iter().for_each(collect);
    }

    fn is_root(&self, record: &Record) -> bool {
        record.pid == self.head
            || record.session == self.head.as_raw_pid()
            || (self.adoption.is_adopted(record) && self.adoption.earlier.is_empty())
    }

    /// Whether it was adopted during this turn, and may be of the command or of what an earlier one left.
    fn is_unclear(&self, record: &Record) -> bool {
        !self.is_root(record) && self.adoption.is_adopted(record) && !self.adoption.is_earlier(record)
    }

    /// Whether it stays in the table until we collect it: adopted, and not the command itself.
    fn is_held(&self, record: &Record) -> bool {
        record.parent == self.adoption.own_pid && record.pid != self.head
    }
}

/// Signals each of these. Whoever cannot be reached is gone, or is found again and in the end reported.
pub(super) fn signal_each<'r>(records: impl IntoIterator<Item = &'r Record>, signal: Signal) {
    for record in records {
        let _ = signal_one(record, signal);
    }
}

/// Signals one process, unless its number means another one by now.
pub(super) fn signal_one(record: &Record, signal: Signal) -> Result<(), Errno> {
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

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use super::*;

    /// No process has such a number.
    const OWN: i32 = -1;
    const OWN_SESSION: i32 = -2;

    fn record(pid: i32, started: u64, parent: i32, session: i32) -> Record {
        let pid = Pid::from_raw(pid).unwrap();
        Record { pid, name: String::new(), parent, group: session, session, started, alive: true }
    }

    #[test]
    fn an_orphan_is_the_commands_unless_it_may_be_of_what_an_earlier_one_left() {
        let head = record(5, 1, OWN, 5);
        let rows = [
            // What it is, whether it is the command's and whether nobody can tell: alone, and beside what was left.
            (head.clone(), [(true, false), (true, false)]),
            (record(6, 1, 5, 5), [(true, false), (true, false)]),
            (record(7, 1, OWN, OWN_SESSION), [(false, false), (false, false)]),
            (record(8, 1, 4, 8), [(false, false), (false, false)]),
            (record(9, 1, OWN, 9), [(true, false), (false, true)]),
            (record(10, 1, OWN, 10), [(true, false), (false, false)]),
            // Another process with its number.
            (record(10, 2, OWN, 10), [(true, false), (false, true)]),
        ];
        let runners = [Runner::default(), Runner::default()];
        let earlier = [Vec::new(), vec![record(10, 1, OWN, 10)]];
        for (index, (runner, earlier)) in runners.iter().zip(earlier).enumerate() {
            let (own_pid, own_session, turn) = (OWN, OWN_SESSION, runner.turn());
            // The end of a turn is for the whole process, and this is none.
            let adoption = ManuallyDrop::new(Adoption { own_pid, own_session, earlier, _turn: turn });
            let tree = ProcessTree::of(head.pid, &adoption);
            for (record, wanted) in &rows {
                let found = (tree.is_root(record), tree.is_unclear(record));
                assert_eq!(found, wanted[index], "{} of {}", record.pid, record.started);
            }
            let ours = rows.iter().map(|(record, _)| record).filter(|record| tree.is_held(record));
            let pids: Vec<i32> = ours.map(|record| record.pid.as_raw_pid()).collect();
            assert_eq!(pids, [7, 9, 10, 10], "those that only we can collect, but for the command");
        }
    }

    #[test]
    fn each_is_signalled_that_is_still_the_same_process() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let record = table::one(Pid::from_child(&child)).unwrap();
        signal_each([&Record { started: record.started + 1, ..record.clone() }], Signal::KILL);
        assert!(child.try_wait().unwrap().is_none(), "its number means another process");
        signal_each([&record], Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
