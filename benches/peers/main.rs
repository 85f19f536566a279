//! Compares `ccm` with programs that do the same or comparable work, all in one run.
//!
//! Machines differ, so what counts are the ratios: to a baseline that has to do at least as much (`sha256sum` reads
//! what an unchanged run reads, `cp` writes what a first run writes, without bringing it to disk), and to other
//! configuration managers where they are installed. The programs take turns, so that a busy moment of the machine
//! hits all of them, and after every run the files are compared with what they should be.
#![allow(clippy::disallowed_methods, reason = "it prepares and measures the machine itself")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod archive;
mod checks;
mod contest;
mod files;
mod loops;
mod measure;
mod programs;
mod work;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use work::{Task, Work};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A hundred is for those to whom a thousand files are minutes.
const COUNTS: [usize; 3] = [100, 1_000, 10_000];

fn main() -> ExitCode {
    // Cargo adds `--bench` to whatever the user gave.
    let mut arguments = env::args_os().skip(1).filter(|argument| argument != "--bench");
    let result = match arguments.next() {
        Some(first) if first == measure::ALONE => measure::alone(arguments),
        program => compare(&program.map_or_else(|| env!("CARGO_BIN_EXE_ccm").into(), PathBuf::from)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(ccm: &Path) -> Result<()> {
    let ccm = ccm.canonicalize().map_err(|error| format!("{}: {error}", ccm.display()))?;
    println!("{}, files of {} B", ccm.display(), files::SIZE);
    for program in programs::MANAGERS.iter().filter(|program| !program.is_installed()) {
        println!("{}: not installed (apt-get install {})", program.name, program.package);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    Work::new(&folder, &ccm, 0)?.compare(Task::Nothing)?;
    for count in COUNTS {
        let work = Work::new(&folder, &ccm, count)?;
        for task in [Task::Create, Task::Inspect, Task::ChangeOne] {
            work.compare(task)?;
        }
    }
    loops::compare(&folder, &ccm)?;
    checks::compare(&folder, &ccm)?;
    archive::compare(&folder, &ccm)
}
