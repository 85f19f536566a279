//! Facts that programs in `facts.d` print.

use std::{os::fd::AsRawFd, path::Path, time::Duration};

use ccm_expr::Map;

use super::{
    FactsError,
    overlay::merge,
    own::{holds_facts, read, sorted},
};
use crate::host::{
    files::{Entry, FileKind, PrivateFolder},
    interrupt::Interrupt,
    process::{Command, Exit, Keep, Runner},
};

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the programs of a directory that only root can change, in the order of their names, and returns the facts that they
/// print as JSON or YAML; later programs override earlier ones. Reports errors and keeps the other facts.
pub(super) fn facts(
    directory: &Path,
    limit: u64,
    interrupt: &Interrupt,
    ignore: &mut dyn FnMut(FactsError),
) -> Map {
    let mut facts = Map::new();
    let runner = Runner::default();
    let (directory, names) = match programs(directory) {
        Ok(Some(found)) => found,
        Ok(None) => return facts,
        Err(error) => {
            ignore(error);
            return facts;
        }
    };
    for name in names {
        match printed(&directory, &name, limit, &runner, interrupt) {
            Ok(found) => merge(&mut facts, found),
            Err(error) => ignore(error),
        }
    }
    facts
}

/// Opens the directory and returns the names of its programs. An empty directory harms no one, whoever controls it.
fn programs(directory: &Path) -> Result<Option<(PrivateFolder, Vec<String>)>, FactsError> {
    let mut names: Vec<String> = sorted(directory)?
        .iter()
        .filter(|path| !holds_facts(path))
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
        .collect();
    if names.is_empty() {
        return Ok(None);
    }
    names.sort_unstable();
    Ok(PrivateFolder::open(directory)?.map(|directory| (directory, names)))
}

fn printed(
    directory: &PrivateFolder,
    name: &str,
    limit: u64,
    runner: &Runner,
    interrupt: &Interrupt,
) -> Result<Map, FactsError> {
    let path = directory.path().join(name);
    let is_program = |entry: &Entry| entry.kind == FileKind::File && entry.mode & 0o111 != 0;
    let Some(entry) = directory.look(name.as_ref())?.filter(is_program) else { return Ok(Map::new()) };
    if entry.uid != 0 {
        return Err(FactsError::Owner { path, owner: entry.uid });
    }
    if entry.mode & 0o022 != 0 {
        return Err(FactsError::Writable { path, mode: entry.mode });
    }
    let Some(program) = directory.open_file(name)? else { return Ok(Map::new()) };
    // The kernel executes the descriptor that was checked, whatever the name means by now. The path names this process because
    // the descriptor is closed when the interpreter of a script starts.
    let executed = format!("/proc/{}/fd/{}", std::process::id(), program.as_raw_fd());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let command = Command::new(executed).timeout(PATIENCE).keep(Keep::Whole(limit));
    let finished = command.run(runner, interrupt)?;
    if finished.exit != Exit::Code(0) {
        let last = finished.stderr.text().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        let reason = format!("{}{last}", finished.exit);
        return Err(FactsError::Failed { path, reason });
    }
    read(&path, finished.stdout.text().into_owned().into_bytes())
}
