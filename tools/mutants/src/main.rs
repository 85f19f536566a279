//! Tells which changes of the source no test notices.
//!
//! The changes are those that cargo-mutants lists. It would build the program once for each of them; here all are compiled into one
//! build, each behind a switch (`source.rs`, `switch/`), so that a change costs some tests and no build. Each test is run alone
//! once to learn which changes it reaches; then each change is put in force and met by tests that reach it, likely ones first,
//! until one fails or the time for it is up (`trial.rs`). All of it happens where a change can do no harm (`sandbox.rs`).

mod area;
mod build;
mod change;
mod sandbox;
mod score;
mod source;
mod store;
mod trial;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use area::Area;
use store::Store;

const USAGE: &str = "usage: ccm-mutants LIST FOLDER AREA ..., in the folder of the project
  LIST    what `cargo mutants --list --json` printed; what comes of each change is written beside it, as .outcomes.jsonl
  FOLDER  an absolute path, for what is made
  AREA    NAME=PATH=TEST,TEST: a part of the project, and how the names of tests begin that are likely to notice
In the environment:
  BUDGET  the seconds of tests that a change meets (20)
  AGAIN   tries only those that were not noticed the last time";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [list, folder, areas @ ..] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let areas = match areas.iter().map(|area| area.parse()).collect::<Result<Vec<Area>, _>>() {
        Ok(areas) => areas,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let store =
        Store { folder: PathBuf::from(folder), outcomes: Path::new(list).with_extension("outcomes.jsonl") };
    let budget = env::var("BUDGET").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(20.0);
    if env::var_os("AGAIN").is_none_or(|again| again.is_empty()) {
        store.forget_outcomes();
    }
    let prepared = build::prepare(&env::current_dir().expect("a folder"), Path::new(list), &store);
    let tests = trial::reach(&store, &prepared, budget);
    if tests.is_empty() {
        eprintln!("no test passes here: it takes root, and what the tests need");
        return ExitCode::from(2);
    }
    trial::run(&store, &prepared, &tests, &areas, budget);
    score::print(&store, &prepared, &areas, Path::new("tools/mutants/equivalent.md"))
}
