//! Commands that are running, so that the next run can end those of one that was killed.
//!
//! Each run that starts commands keeps a list of its own ([`RunList`]). A line that was written is there for the next run however this one is
//! killed; when the machine itself goes down there is nothing left to end, and the boot id tells.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::{
    StateDirectory,
    run_list::{Fate, RunList, work_off},
};
use crate::host::{
    interrupt::Interrupt,
    process::{Abandoned, Head, Journal, NextRun, Recovered, boot_id, end_abandoned},
};

/// The folder of the lists.
const FOLDER: &str = "commands";

/// The commands that this run has in hand.
pub(crate) struct CommandJournal {
    state: StateDirectory,
    open: Mutex<Option<Open>>,
}

struct Open {
    list: RunList,
    boot: String,
    in_hand: Vec<PathBuf>,
}

/// One line of a list; of several for one cgroup the last counts.
#[derive(Serialize, Deserialize)]
struct Line {
    boot: String,
    cgroup: PathBuf,
    state: State,
    /// Whether the next run waits for the command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    awaited: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// About to be started.
    Begun,
    /// Running, as this process.
    Started { pid: i32, started: u64 },
    /// What is left of it is not the command any more.
    Ended,
}

impl StateDirectory {
    pub(crate) fn command_journal(&self) -> CommandJournal {
        CommandJournal { state: self.clone(), open: Mutex::default() }
    }
}

impl Journal for CommandJournal {
    fn begun(&self, cgroup: &Path, next_run: NextRun) {
        self.note(cgroup, State::Begun, next_run);
    }

    fn started(&self, cgroup: &Path, head: Head, next_run: NextRun) {
        self.note(cgroup, State::Started { pid: head.pid, started: head.started }, next_run);
    }

    fn ended(&self, cgroup: &Path) {
        self.note(cgroup, State::Ended, NextRun::default());
    }
}

impl CommandJournal {
    /// Ends the commands that killed runs had in hand, or waits for them, and says what came of each. Before a wait, `waits` is
    /// called with a message.
    pub(crate) fn recover(&self, interrupt: &Interrupt, waits: &mut dyn FnMut(&str)) -> Vec<Recovered> {
        let mut recovered = Vec::new();
        let Ok(Some(state)) = self.state.open() else { return recovered };
        work_off(&state, FOLDER, |text| {
            let ended = abandoned(text, boot_id().as_deref());
            let ended: Vec<Recovered> =
                ended.iter().map(|one| end_abandoned(one, interrupt, waits)).collect();
            // What could not be ended is tried again by the next run.
            let is_over =
                !ended.iter().any(|one| matches!(one, Recovered::Surviving(_) | Recovered::AtWork(_)));
            recovered.extend(ended);
            if is_over { Fate::Remove } else { Fate::Keep }
        });
        recovered
    }

    /// Writes a line, as well as the state directory allows: what cannot be written down is not ended by the next run.
    fn note(&self, cgroup: &Path, state: State, next_run: NextRun) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = self.begin();
        }
        let Some(open) = open.as_mut() else { return };
        match state {
            State::Begun => open.in_hand.push(cgroup.to_owned()),
            State::Started { .. } => {}
            State::Ended => open.in_hand.retain(|one| one != cgroup),
        }
        if open.in_hand.is_empty() && open.list.file.set_len(0).is_ok() {
            return;
        }
        let awaited = next_run == NextRun::Waits;
        let line = Line { boot: open.boot.clone(), cgroup: cgroup.to_owned(), state, awaited };
        if let Ok(mut line) = serde_json::to_string(&line) {
            line.push('\n');
            let _ = open.list.file.write_all(line.as_bytes());
        }
    }

    fn begin(&self) -> Option<Open> {
        // A run of the same number may have been killed before anybody recovered from it.
        let list = RunList::begin(&self.state, FOLDER).ok().flatten()?;
        Some(Open { list, boot: boot_id()?, in_hand: Vec::new() })
    }
}

impl Drop for CommandJournal {
    fn drop(&mut self) {
        if let Some(open) = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            open.list.remove();
        }
    }
}

/// The commands that were in hand, of those that were started since the machine was.
fn abandoned(text: &str, boot: Option<&str>) -> Vec<Abandoned> {
    let mut commands: Vec<(PathBuf, State, NextRun)> = Vec::new();
    // The last line may be torn: then what it was to say has not happened yet.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    for line in lines.filter(|line| Some(line.boot.as_str()) == boot) {
        commands.retain(|(cgroup, ..)| *cgroup != line.cgroup);
        let next_run = if line.awaited { NextRun::Waits } else { NextRun::Terminates };
        commands.push((line.cgroup, line.state, next_run));
    }
    let abandoned = |(cgroup, state, next_run)| match state {
        State::Begun => Some(Abandoned { cgroup, head: None, next_run }),
        State::Started { pid, started } => {
            Some(Abandoned { cgroup, head: Some(Head { pid, started }), next_run })
        }
        State::Ended => None,
    };
    commands.into_iter().filter_map(abandoned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_is_in_hand_and_is_gone_at_the_end() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("ccm-commands-{}", std::process::id()));
        let journal = StateDirectory::at(folder.clone()).command_journal();
        let list = folder.join(FOLDER).join(std::process::id().to_string());
        let in_hand = || {
            let text = std::fs::read_to_string(&list).unwrap();
            let commands = abandoned(&text, boot_id().as_deref());
            (text.is_empty(), commands.into_iter().map(|one| one.cgroup).collect::<Vec<_>>())
        };
        let (first, second) = (Path::new("/c/first"), Path::new("/c/second"));
        journal.begun(first, NextRun::Terminates);
        journal.begun(second, NextRun::Waits);
        assert_eq!(in_hand(), (false, vec![first.to_owned(), second.to_owned()]));
        journal.ended(first);
        assert_eq!(in_hand(), (false, vec![second.to_owned()]));
        journal.ended(second);
        assert_eq!(in_hand(), (true, Vec::new()), "it does not grow with what is over");
        drop(journal);
        assert!(!list.exists());
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn only_commands_in_hand_since_the_last_boot_are_abandoned() {
        let line = |boot: &str, cgroup: &str, state| {
            serde_json::to_string(&Line {
                boot: boot.to_owned(),
                cgroup: cgroup.into(),
                state,
                awaited: false,
            })
            .unwrap()
                + "\n"
        };
        let started = State::Started { pid: 7, started: 99 };
        let text = [
            line("now", "/c/begun", State::Begun),
            line("now", "/c/started", State::Begun),
            line("now", "/c/started", started),
            line("now", "/c/ended", State::Begun),
            line("now", "/c/ended", started),
            line("now", "/c/ended", State::Ended),
            line("before", "/c/gone", started),
            line("now", "/c/torn", State::Begun)[..20].to_owned(),
        ]
        .concat();
        let found: Vec<_> =
            abandoned(&text, Some("now")).into_iter().map(|one| (one.cgroup, one.head)).collect();
        let head = Head { pid: 7, started: 99 };
        assert_eq!(found, [("/c/begun".into(), None), ("/c/started".into(), Some(head))]);
        assert!(abandoned(&text, None).is_empty());
    }
}
