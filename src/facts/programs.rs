//! Facts that programs in `facts.d` print.

use std::{path::Path, time::Duration};

use ccm_expr::Map;

use super::{
    FactsError,
    overlay::merge,
    own::{holds_facts, read, sorted},
};
use crate::host::{
    files,
    interrupt::Interrupt,
    process::{Command, Exit, Keep, Runner},
};

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the programs of a folder that only root can change, in the order of their names, and returns what they print: JSON
/// or YAML, later over earlier. What goes wrong is told, and the other facts stay.
pub(super) fn facts(
    folder: &Path,
    limit: u64,
    interrupt: &Interrupt,
    ignore: &mut dyn FnMut(FactsError),
) -> Map {
    let mut facts = Map::new();
    let runner = Runner::default();
    let paths = sorted(folder).unwrap_or_else(|error| {
        ignore(error.into());
        Vec::new()
    });
    for path in paths.iter().filter(|path| !holds_facts(path)) {
        match printed(path, limit, &runner, interrupt) {
            Ok(found) => merge(&mut facts, found),
            Err(error) => ignore(error),
        }
    }
    facts
}

fn printed(path: &Path, limit: u64, runner: &Runner, interrupt: &Interrupt) -> Result<Map, FactsError> {
    let Some((Some(_), entry)) = files::open_regular(path)? else { return Ok(Map::new()) };
    if entry.mode & 0o111 == 0 {
        return Ok(Map::new());
    }
    if entry.uid != 0 {
        return Err(FactsError::Owner { path: path.to_owned(), owner: entry.uid });
    }
    if entry.mode & 0o022 != 0 {
        return Err(FactsError::Writable { path: path.to_owned(), mode: entry.mode });
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let command = Command::new(path).timeout(PATIENCE).keep(Keep::Whole(limit));
    let finished = command.run(runner, interrupt)?;
    if finished.exit != Exit::Code(0) {
        let last = finished.stderr.text().lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        let reason = format!("{}{last}", finished.exit);
        return Err(FactsError::Failed { path: path.to_owned(), reason });
    }
    read(path, finished.stdout.text().into_owned().into_bytes())
}
