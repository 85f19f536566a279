//! Compares `ccm` with programs that do the same or comparable work, all in one run.
//!
//! Machines differ, so what counts are the ratios: to a baseline that has to do at least as much (`sha256sum` reads
//! what an unchanged run reads, `cp` writes what a first run writes, without bringing it to disk), and to other
//! configuration managers where they are installed. The programs take turns, so that a busy moment of the machine
//! hits all of them, and after every run the files are compared with what they should be.
#![allow(clippy::disallowed_methods, reason = "it prepares and measures the machine itself")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod archive;
mod bulk;
mod checks;
mod contest;
mod files;
mod loops;
mod measure;
mod picture;
mod programs;
mod report;
mod work;

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use report::Report;
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
        println!("{}: not installed ({})", program.name, program.package);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    let mut tables = vec![Work::new(&folder, &ccm, 0)?.compare(Task::Nothing)?];
    for count in COUNTS {
        let work = Work::new(&folder, &ccm, count)?;
        for task in [Task::Create, Task::InspectAnew, Task::Inspect, Task::ChangeOne] {
            tables.push(work.compare(task)?);
        }
    }
    tables.extend(bulk::compare(&folder, &ccm)?);
    tables.extend(loops::compare(&folder, &ccm)?);
    tables.extend(checks::compare(&folder, &ccm)?);
    tables.extend(archive::compare(&folder, &ccm)?);
    let report = Report::new(&ccm, tables);
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    report.write_json(&project.join("target/benchmarks.json"))?;
    if env::var_os("UPDATE").is_some_and(|update| update == "1") {
        report.write_page(&project.join("docs"))?;
    }
    Ok(())
}
