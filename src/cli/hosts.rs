//! `ccm hosts`

use std::path::PathBuf;

use ccm_expr::Value;
use clap::{Args, ValueHint};
use serde::Serialize;

use super::{
    Exit,
    failure::{Failure, warn},
    interrupt,
    output::Output,
};
use crate::{
    host::{input::Limits, process::Runner, users::Users},
    inventory::{self, Inventory, InventoryError, Loader, Machine, Selection},
    secrets::Keyring,
    visible::visible,
};

const EXAMPLES: &str = "\
Examples:
  # All hosts of an inventory, with their groups and variables
  ccm hosts -i hosts.ini

  # The hosts that a run with the same pattern would reach
  ccm hosts -i hosts.ini 'web:&prod:!web3'

  # Hosts in ~/.ssh/config
  ccm hosts 'ssh:web*'";

/// Beginning of a pattern that selects hosts from the ssh configuration.
pub(super) const SSH: &str = "ssh:";

/// Arguments of `ccm hosts`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Hosts and groups, such as `web:&prod:!web3`, `db[0]` or `ssh:web*`
    #[arg(default_value = "all")]
    pattern: String,
    #[command(flatten)]
    selection: HostFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where hosts are listed, and how to limit a pattern.
#[derive(Args)]
pub(super) struct HostFlags {
    /// Inventory: INI, YAML, JSON, a program, or a directory
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub(super) inventory: Vec<PathBuf>,
    /// Keep only hosts that this pattern selects, too
    #[arg(long, value_name = "PATTERN")]
    pub(super) limit: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let keyring = Keyring::none();
    let (machines, unmatched) = machines(arguments, &keyring)?;
    for part in unmatched {
        warn(&format!("pattern `{part}` matches no host and no group"));
    }
    if arguments.json {
        let document = Document { protocol: "io.choria.ccm.v1.hosts", hosts: &machines };
        output.json(&document)?;
    } else {
        for machine in &machines {
            print(machine, output);
        }
    }
    Ok(Exit::Success)
}

/// Returns the hosts that a pattern selects for a run. A part of it that matches nothing is an error: a misspelled exclusion must
/// not run on the excluded host.
pub(super) fn select(
    pattern: &str,
    inventories: &[PathBuf],
    limits: &[String],
    keyring: &Keyring,
) -> Result<Vec<Machine>, Failure> {
    let (pattern, inventories, limits) = (pattern.to_owned(), inventories.to_vec(), limits.to_vec());
    let selection = HostFlags { inventory: inventories, limit: limits };
    let (machines, unmatched) = machines(&Arguments { pattern, selection, json: false }, keyring)?;
    match unmatched.first() {
        Some(part) => Err(Failure::new(format!("pattern `{part}` matches no host and no group"))),
        None => Ok(machines),
    }
}

fn machines(arguments: &Arguments, keyring: &Keyring) -> Result<(Vec<Machine>, Vec<String>), Failure> {
    if let Some(glob) = arguments.pattern.strip_prefix(SSH) {
        let home =
            Users::default().own_home().ok_or_else(|| Failure::new("this user has no home directory"))?;
        let names = inventory::ssh_hosts(&home, glob)?;
        let unmatched = if names.is_empty() { vec![arguments.pattern.clone()] } else { Vec::new() };
        return Ok((names.into_iter().map(Machine::named).collect(), unmatched));
    }
    if arguments.selection.inventory.is_empty() {
        return Err(Failure::new(
            "no inventory was given: name one with `-i FILE`, or hosts of your ssh configuration with `ssh:GLOB`",
        ));
    }
    let (runner, interrupt) = (Runner::default(), interrupt()?);
    let loader = Loader { runner: &runner, interrupt: &interrupt, limits: Limits::default(), keyring };
    let inventory = Inventory::load(&arguments.selection.inventory, &loader)?;
    inventory.warnings.iter().for_each(|text| warn(text));
    let Selection { hosts, unmatched } =
        inventory.select(&arguments.pattern, &arguments.selection.limit, &loader)?;
    Ok((hosts.iter().filter_map(|host| inventory.machine(host)).collect(), unmatched))
}

impl From<InventoryError> for Failure {
    fn from(error: InventoryError) -> Self {
        match error {
            InventoryError::Document(review) => Self::problems(review.source, review.diagnostics),
            other => match other.help() {
                Some(help) => Self::new(format!("{other}\nhelp: {help}")),
                None => Self::new(other.to_string()),
            },
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    protocol: &'static str,
    hosts: &'a [Machine],
}

fn print(machine: &Machine, output: &mut Output) {
    let groups =
        if machine.groups.is_empty() { String::new() } else { format!("  ({})", machine.groups.join(", ")) };
    output.line(&visible(&format!("{}{groups}", machine.name)));
    for (name, value) in &machine.variables {
        let shown = if is_secret(name) { "[secret]".to_owned() } else { shown(value) };
        output.line(&visible(&format!("  {name}: {shown}")));
    }
}

/// Returns whether a variable holds a password of Ansible's.
fn is_secret(name: &str) -> bool {
    ["password", "passwd", "_pass", "secret", "token"].iter().any(|part| name.to_lowercase().contains(part))
}

fn shown(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| value.to_text())
}
