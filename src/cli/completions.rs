//! `ccm completions`

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::{Exit, complete, failure::Failure, output::Output, required};

pub(super) fn command() -> Command {
    Command::new("completions")
        .about("Prints a completion script for a shell")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(value_parser!(Shell))
                .help("The shell to complete for"),
        )
        .after_help("Example:\n  ccm completions bash >/etc/bash_completion.d/ccm")
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
    output.text(&complete::script(arguments.shell));
    Exit::Success
}
