//! `ccm completions`

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::{Exit, complete, failure::Failure, output::Output, required};

const EXAMPLES: &str = "\
Examples:
  # In this shell
  eval \"$(ccm completions bash)\"

  # In every shell from now on; packages bring this already
  mkdir -p ~/.local/share/bash-completion/completions
  ccm completions bash >~/.local/share/bash-completion/completions/ccm";

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
        .after_help(EXAMPLES)
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
