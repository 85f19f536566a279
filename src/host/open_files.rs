//! Processes that use a file system.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the first processes, with their programs, that work in a directory or have a file open below it.
pub(crate) fn users_of(directory: &Path, most: usize) -> Vec<(u32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let users = numbers.into_iter().filter(|pid| uses(*pid, directory));
    let named = |pid: u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (pid, name.trim_end().to_owned())
    };
    users.map(named).take(most).collect()
}

fn uses(pid: u32, directory: &Path) -> bool {
    let links = ["cwd", "root", "exe"].map(|link| PathBuf::from(format!("/proc/{pid}/{link}")));
    let open =
        fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut targets = links.into_iter().chain(open).filter_map(|link| fs::read_link(link).ok());
    targets.any(|target| target.starts_with(directory))
}
