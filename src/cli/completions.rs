//! `ccm completions` and `ccm man`

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Exit, failure::Failure, flags, output::Output, required};
use crate::host::files::{self, Attributes};

pub(super) fn command() -> Command {
    Command::new("completions").about("Prints a completion script for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(value_parser!(Shell))
            .help("The shell to complete for"),
    )
}

/// What `ccm completions` is asked.
pub(super) struct Arguments {
    shell: Shell,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self { shell: required(matches, "shell")? })
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "ccm", &mut script);
    output.text(&String::from_utf8_lossy(&script));
    Exit::Success
}

pub(super) fn manual_command() -> Command {
    Command::new("man").about("Writes the manual pages into a folder").arg(
        Arg::new("folder")
            .value_name("FOLDER")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("An existing folder, such as /usr/local/share/man/man1"),
    )
}

/// What `ccm man` is asked.
pub(super) struct ManualArguments {
    folder: PathBuf,
}

impl ManualArguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self { folder: required(matches, "folder")? })
    }
}

pub(super) fn write_manual(ManualArguments { folder }: &ManualArguments) -> Result<Exit, Failure> {
    write_pages(folder).map_err(|error| {
        Failure::new(format!("cannot write manual pages into {}: {error}", folder.display()))
    })?;
    Ok(Exit::Success)
}

/// Writes a page for the program and one for each of its commands, each as a whole and through no link.
fn write_pages(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let mut ahead = vec![command];
    while let Some(command) = ahead.pop() {
        let page = Man::new(command.clone());
        let mut text = Vec::new();
        page.render(&mut text)?;
        let text = flags::with_spaces(&String::from_utf8_lossy(&text)).into_bytes();
        files::replace(&folder.join(page.get_filename()), Attributes::own(0o644), |out| out.write_all(&text))
            .map_err(io::Error::other)?;
        ahead.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    }
    Ok(())
}
