//! What is to be done, by whom, and the table of what it took.

use std::{path::Path, process::Command, time::Duration};

use crate::{
    Result,
    files::{Files, empty},
    measure::{self, Cost},
    programs::{self, MANAGERS},
};

/// Each program runs this often,
const ROUNDS: usize = 9;
/// unless it has used up this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A task for programs to compete in.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    /// An empty manifest.
    Nothing,
    /// No file is there.
    Create,
    /// Everything is as it should be.
    Inspect,
    /// One file has another content.
    ChangeOne,
}

impl Task {
    fn title(self) -> &'static str {
        match self {
            Self::Nothing => "an empty manifest",
            Self::Create => "files created",
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
    managers: Vec<Contender>,
}

struct Contender {
    name: &'static str,
    command: Command,
    effect: Effect,
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
        let manager = |name, command| Contender { name, command, effect: Effect::Managed };
        let mut managers = vec![manager("ccm", programs::ccm(ccm, &files, folder)?)];
        for peer in MANAGERS.iter().filter(|peer| peer.is_installed() && count <= peer.most_files) {
            managers.push(manager(peer.name, (peer.prepare)(&files, folder)?));
        }
        Ok(Self { files, original, managers })
    }

    /// Lets everybody do the task in turns, and prints what it took them.
    pub(crate) fn compare(&self, task: Task) -> Result<()> {
        let baseline = self.baseline(task);
        let contenders: Vec<&Contender> = std::iter::once(&baseline).chain(&self.managers).collect();
        let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); contenders.len()];
        for _ in 0..ROUNDS {
            for (contender, costs) in contenders.iter().zip(&mut costs) {
                if costs.iter().map(|cost| cost.time).sum::<Duration>() < PATIENCE {
                    costs.push(self.attempt(task, contender)?);
                }
            }
        }
        self.print(task, &contenders, &costs);
        Ok(())
    }

    /// A plain program that does the least that the task asks for.
    fn baseline(&self, task: Task) -> Contender {
        let (name, effect) = match task {
            Task::Nothing => ("true", Effect::None),
            Task::Create => ("cp", Effect::Managed),
            Task::Inspect | Task::ChangeOne => ("sha256sum", Effect::None),
        };
        let mut command = Command::new(name);
        match task {
            Task::Nothing => &mut command,
            Task::Create => command.arg("-a").arg(self.original.folder.join(".")).arg(&self.files.folder),
            Task::Inspect | Task::ChangeOne => command.args(self.files.wanted().map(|(path, _)| path)),
        };
        Contender { name, command, effect }
    }

    fn attempt(&self, task: Task, contender: &Contender) -> Result<Cost> {
        match task {
            Task::Nothing => {}
            Task::Create => self.files.remove()?,
            Task::Inspect => self.files.complete()?,
            Task::ChangeOne => {
                self.files.complete()?;
                self.files.spoil_one()?;
            }
        }
        // What is still on its way to disk would slow down whoever waits for the disk.
        rustix::fs::sync();
        let cost = measure::run(&contender.command)?;
        if contender.effect == Effect::Managed {
            self.files.check().map_err(|error| format!("{} left things wrong: {error}", contender.name))?;
        }
        Ok(cost)
    }

    fn print(&self, task: Task, contenders: &[&Contender], costs: &[Vec<Cost>]) {
        let best: Vec<Duration> = costs.iter().map(|costs| sorted(costs)[0]).collect();
        let [baseline, ccm, ..] = best.as_slice() else { return };
        match task {
            Task::Nothing => println!("\n{}", task.title()),
            _ => println!("\n{} {}", self.files.count, task.title()),
        }
        let (to_baseline, to_ccm) = (format!("x {}", contenders[0].name), "x ccm");
        println!(
            "  {:10} {:>12} {:>12} {:>5} {to_baseline:>12} {to_ccm:>9} {:>10}",
            "", "best", "median", "runs", "memory"
        );
        for ((contender, costs), best) in contenders.iter().zip(costs).zip(&best) {
            let memory = costs.iter().map(|cost| cost.kibibytes).max().unwrap_or_default();
            println!(
                "  {:10} {:>9.2} ms {:>9.2} ms {:>5} {:>12.2} {:>9.2} {:>6}.{} MiB",
                contender.name,
                milliseconds(*best),
                milliseconds(sorted(costs)[costs.len() / 2]),
                costs.len(),
                best.as_secs_f64() / baseline.as_secs_f64(),
                best.as_secs_f64() / ccm.as_secs_f64(),
                memory / 1024,
                memory % 1024 * 10 / 1024,
            );
        }
    }
}

fn sorted(costs: &[Cost]) -> Vec<Duration> {
    let mut times: Vec<Duration> = costs.iter().map(|cost| cost.time).collect();
    times.sort();
    times
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
