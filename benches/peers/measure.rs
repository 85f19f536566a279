//! Time and memory of one run of a program.

use std::{
    env,
    ffi::OsString,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};

use crate::Result;

/// The argument that makes this program run another one and tell what that took.
pub(crate) const ALONE: &str = "--alone";

/// What one run of a program took.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) time: Duration,
    /// The most memory that the program, or one that it waited for, had at one time.
    pub(crate) kibibytes: u64,
}

/// Runs a program. The kernel tells only the largest of all children that a process ever had, so each run gets a small
/// process of its own to be the child of.
pub(crate) fn run(command: &Command) -> Result<Cost> {
    let mut alone = Command::new(env::current_exe()?);
    alone.arg(ALONE).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    alone.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        alone.current_dir(folder);
    }
    let output = alone.output()?;
    let reported = String::from_utf8_lossy(&output.stdout);
    let numbers: Option<Vec<u64>> = reported.split_whitespace().map(|number| number.parse().ok()).collect();
    match numbers.as_deref() {
        Some([nanoseconds, kibibytes]) if output.status.success() => {
            Ok(Cost { time: Duration::from_nanos(*nanoseconds), kibibytes: *kibibytes })
        }
        _ => {
            let program = command.get_program().display();
            Err(format!("{program} failed:\n{}", String::from_utf8_lossy(&output.stderr)).into())
        }
    }
}

/// Runs the program that the arguments name and prints its nanoseconds and kibibytes.
pub(crate) fn alone(mut arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let mut command = Command::new(arguments.next().ok_or("no program was named")?);
    command.args(arguments).stdout(Stdio::null());
    let started = Instant::now();
    let status = command.status()?;
    let time = started.elapsed();
    if !status.success() {
        return Err(status.to_string().into());
    }
    println!("{} {}", time.as_nanos(), getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(())
}
