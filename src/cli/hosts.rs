//! `ccm hosts`

use std::path::PathBuf;

use ccm_expr::Value;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use serde::Serialize;

use super::{
    Exit,
    failure::{Failure, warn},
    interrupt,
    output::Output,
    switch,
};
use crate::{
    host::{input::Limits, process::Runner, users::Users},
    inventory::{self, Inventory, InventoryError, Loader, Machine, Selection},
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
const SSH: &str = "ssh:";

pub(super) fn command() -> Command {
    Command::new("hosts")
        .about("List the hosts that a pattern selects")
        .arg(
            Arg::new("pattern")
                .value_name("PATTERN")
                .default_value("all")
                .help("Hosts and groups, such as `web:&prod:!web3`, `db[0]` or `ssh:web*`"),
        )
        .arg(inventory_argument())
        .arg(limit_argument())
        .arg(switch("json", "Print JSON"))
        .after_help(EXAMPLES)
}

pub(super) fn inventory_argument() -> Arg {
    Arg::new("inventory")
        .short('i')
        .long("inventory")
        .value_name("FILE")
        .value_hint(ValueHint::AnyPath)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .help("Inventory: INI, YAML, JSON, a program, or a directory")
}

pub(super) fn limit_argument() -> Arg {
    Arg::new("limit")
        .long("limit")
        .value_name("PATTERN")
        .action(ArgAction::Append)
        .help("Keep only hosts that this pattern selects, too")
}

/// Which hosts to list, and how.
pub(super) struct Arguments {
    pattern: String,
    inventories: Vec<PathBuf>,
    limits: Vec<String>,
    json: bool,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        Ok(Self {
            pattern: super::required(matches, "pattern")?,
            inventories: matches.get_many("inventory").into_iter().flatten().cloned().collect(),
            limits: matches.get_many("limit").into_iter().flatten().cloned().collect(),
            json: matches.get_flag("json"),
        })
    }
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let (machines, unmatched) = machines(arguments)?;
    for part in unmatched {
        warn(&format!("warning: pattern `{part}` matches no host and no group"));
    }
    if arguments.json {
        let document = Document { protocol: "io.choria.ccm.v1.hosts", hosts: &machines };
        let text =
            serde_json::to_string_pretty(&document).map_err(|error| Failure::new(error.to_string()))?;
        output.line(&text);
    } else {
        for machine in &machines {
            print(machine, output);
        }
    }
    Ok(Exit::Success)
}

fn machines(arguments: &Arguments) -> Result<(Vec<Machine>, Vec<String>), Failure> {
    if let Some(glob) = arguments.pattern.strip_prefix(SSH) {
        let home =
            Users::default().own_home().ok_or_else(|| Failure::new("this user has no home directory"))?;
        let names = inventory::ssh_hosts(&home, glob)?;
        let unmatched = if names.is_empty() { vec![arguments.pattern.clone()] } else { Vec::new() };
        return Ok((names.into_iter().map(Machine::named).collect(), unmatched));
    }
    if arguments.inventories.is_empty() {
        return Err(Failure::new(
            "no inventory was given: name one with `-i FILE`, or hosts of your ssh configuration with `ssh:GLOB`",
        ));
    }
    let (runner, interrupt) = (Runner::default(), interrupt()?);
    let loader = Loader { runner: &runner, interrupt: &interrupt, limits: Limits::default() };
    let inventory = Inventory::load(&arguments.inventories, &loader)?;
    inventory.warnings.iter().for_each(|text| warn(&format!("warning: {text}")));
    let Selection { hosts, unmatched } = inventory.select(&arguments.pattern, &arguments.limits, &loader)?;
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
