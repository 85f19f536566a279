//! What is to be done, by whom, and the table of what it took.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Result,
    contest::{self, Contender, Table},
    files::{Files, empty},
    measure::{self, Cost},
    programs::{self, MANAGERS},
};

/// A task for programs to compete in.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// An empty manifest.
    Nothing,
    /// No file is there.
    Create,
    /// Everything is as it should be, and nobody remembers having seen it.
    InspectAnew,
    /// Everything is as it should be, and was the last time.
    Inspect,
    /// One file has another content.
    ChangeOne,
}

impl Task {
    fn title(self) -> &'static str {
        match self {
            Self::Nothing => "an empty manifest",
            Self::Create => "files created",
            Self::InspectAnew => "files unchanged, seen for the first time",
            Self::Inspect => "files unchanged",
            Self::ChangeOne => "files, one changed",
        }
    }
}

/// Files, and everybody who can bring them about.
pub(crate) struct Work {
    files: Files,
    /// What the files are copied from by who can only copy.
    original: Files,
    managers: Vec<Contender<Effect>>,
    /// What ccm remembers.
    state: PathBuf,
}

/// What a program makes of the files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// They are as they should be afterwards.
    Managed,
    /// They are only looked at.
    None,
}

impl Work {
    /// Prepares everybody's manifest for so many files.
    pub(crate) fn new(folder: &Path, ccm: &Path, count: usize) -> Result<Self> {
        empty(folder)?;
        let files = Files::new(folder.join("files"), count)?;
        let original = Files::new(folder.join("original"), count)?;
        original.complete()?;
        let manager = |name, command| Contender { name, command, about: Effect::Managed };
        let mut managers = vec![manager("ccm", programs::ccm(ccm, &files, folder)?)];
        for peer in MANAGERS.iter().filter(|peer| peer.is_installed() && count <= peer.most_files) {
            managers.push(manager(peer.name, (peer.prepare)(&files, folder)?));
        }
        Ok(Self { files, original, managers, state: folder.join(programs::STATE) })
    }

    /// Lets everybody do the task in turns, and prints what it took them.
    pub(crate) fn compare(&self, task: Task) -> Result<Table> {
        let title = match task {
            Task::Nothing => task.title().to_owned(),
            _ => format!("{} {}", self.files.count, task.title()),
        };
        let baseline = self.baseline(task);
        // Others remember nothing, so that it is the same to them.
        let managers = if matches!(task, Task::InspectAnew) { &self.managers[..1] } else { &self.managers };
        let contenders: Vec<_> = std::iter::once(&baseline).chain(managers).collect();
        contest::hold(&title, &contenders, |contender| self.attempt(task, contender))
    }

    /// A plain program that does the least that the task asks for.
    fn baseline(&self, task: Task) -> Contender<Effect> {
        let (name, effect) = match task {
            Task::Nothing => ("true", Effect::None),
            Task::Create => ("cp", Effect::Managed),
            Task::InspectAnew | Task::Inspect | Task::ChangeOne => ("sha256sum", Effect::None),
        };
        let mut command = Command::new(name);
        match task {
            Task::Nothing => &mut command,
            Task::Create => command.arg("-a").arg(self.original.folder.join(".")).arg(&self.files.folder),
            Task::InspectAnew | Task::Inspect | Task::ChangeOne => {
                command.args(self.files.wanted().map(|(path, _)| path))
            }
        };
        Contender { name, command, about: effect }
    }

    fn attempt(&self, task: Task, contender: &Contender<Effect>) -> Result<Cost> {
        match task {
            Task::Nothing => {}
            Task::Create => self.files.remove()?,
            Task::InspectAnew => {
                self.files.complete()?;
                empty(&self.state)?;
            }
            Task::Inspect => self.files.complete()?,
            Task::ChangeOne => {
                self.files.complete()?;
                self.files.spoil_one()?;
            }
        }
        // What is still on its way to disk would slow down whoever waits for the disk.
        rustix::fs::sync();
        let cost = measure::run(&contender.command)?;
        if contender.about == Effect::Managed {
            self.files.check().map_err(|error| format!("{} left things wrong: {error}", contender.name))?;
        }
        Ok(cost)
    }
}
