//! `ccm completions`

use clap::Args;
use clap_complete::Shell;

use super::{Exit, complete, output::Output};

const EXAMPLES: &str = "\
Examples:
  # In this shell
  eval \"$(ccm completions bash)\"

  # In every shell from now on; packages bring this already
  mkdir -p ~/.local/share/bash-completion/completions
  ccm completions bash >~/.local/share/bash-completion/completions/ccm";

/// Arguments of `ccm completions`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The shell to complete for
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Exit {
    output.text(&complete::script(arguments.shell));
    Exit::Success
}
