//! `ccm plan`, and `ccm apply` of a plan.

mod apply;
mod make;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

pub(super) use self::{
    apply::{apply, changing_option, is_plan, recognize},
    make::{Destination, DestinationFlags, draft, header, measure, write},
};
use super::{
    Exit, apply::Manifests, failure::Failure, machine::StateFolder, output::Output, remote::Pushed,
    run::DryRunFlags,
};

const EXAMPLES: &str = "\
Examples:
  # Make a plan, review it and apply it
  ccm plan site.yaml -o site.plan
  ccm plan show site.plan
  ccm apply site.plan

  # Accept commands, whose effects are unknown, and sign the plan
  ccm plan site.yaml -o site.plan --allow-opaque --sign ~/.ssh/id_ed25519";

/// Arguments of `ccm plan`.
#[derive(Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
)]
pub(super) struct Arguments {
    #[command(flatten)]
    made: Made,
    #[command(subcommand)]
    action: Option<Action>,
}

/// A plan that is made from manifests.
#[derive(Args)]
struct Made {
    #[command(flatten)]
    run: DryRunFlags,
    #[command(flatten)]
    manifests: Manifests,
    #[command(flatten)]
    destination: DestinationFlags,
}

#[derive(Subcommand)]
enum Action {
    /// Show a plan for review
    #[command(after_help = "Example:\n  ccm plan site.yaml -o site.plan\n  ccm plan show site.plan")]
    Show(Shown),
}

/// A plan that is shown.
#[derive(Args)]
struct Shown {
    /// The plan file
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Show only this resource
    #[arg(long, value_name = "REF")]
    resource: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateFolder,
}

impl Arguments {
    /// Takes what a controller sent.
    pub(super) fn accept(&mut self, pushed: Pushed) {
        self.made.manifests.accept(pushed);
        self.made.destination.accept();
    }
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.action {
        Some(Action::Show(shown)) => show::run(&shown, output),
        None => make::run(arguments.made, output),
    }
}
