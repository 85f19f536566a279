//! `ccm diff`

mod compare;
mod print;
mod side;

use std::path::PathBuf;

use clap::Args;

use self::{
    compare::{Difference, compare},
    side::Side,
};
use super::{
    Exit,
    dotenv::DotenvFlags,
    failure::{Failure, heed, warn},
    hosts::HostFlags,
    load_inputs::InputFlags,
    output::Output,
};
use crate::{
    host::input::Limits,
    inventory::{self, Inventory, Loader},
    manifest::{self, LoadInputs, Location},
    run::Machine,
    secrets::WithoutKey,
};

const EXAMPLES: &str = "\
Examples:
  # Show the resources that differ
  ccm diff site.yaml site.yaml

  # For programs: JSON, and exit code 3 if something differs
  ccm diff site.yaml site.yaml --json --detailed-exitcode";

/// Compare what two manifests declare, with all manifests that they include
///
/// A side is a manifest, a directory, a bundle, a URL, or `REV:PATH` in a git repository. Nothing on the machine is inspected except
/// facts.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Manifest, directory, bundle or `REV:PATH` before the change
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    old: String,
    /// The same after the change
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    new: String,
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    hosts: HostFlags,
    #[command(flatten)]
    dotenv: DotenvFlags,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with 3 instead of 0 if something differs
    #[arg(long)]
    detailed_exitcode: bool,
}

/// Machines with the same differences.
struct Group {
    /// Files with facts, or hosts of the inventory.
    facts: Vec<String>,
    differences: Vec<Difference>,
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let Arguments { old, new, inputs, hosts, dotenv, json, detailed_exitcode } = arguments;
    let inputs = inputs.with_placeholders();
    let machine = inputs.machine_read_only(output)?;
    let (old, new) = (Side::open(&old, &machine)?, Side::open(&new, &machine)?);
    let (mut groups, mut has_placeholders) = (Vec::<Group>::new(), false);
    for (facts, load_inputs) in machines(inputs, &hosts, &dotenv, &machine)? {
        let load = |side: &Side| -> Result<_, Failure> {
            Ok(heed(manifest::load(side.location(), &load_inputs, &machine.host, &machine.state)?))
        };
        let differences = compare(&load(&old)?, &load(&new)?);
        has_placeholders |= load_inputs.keyring.has_placeholders();
        match groups.iter_mut().find(|group| group.differences == differences) {
            Some(group) => group.facts.extend(facts),
            None => groups.push(Group { facts: facts.into_iter().collect(), differences }),
        }
    }
    if json {
        output.line(&print::json(&groups).to_string());
    } else {
        print::text(&groups, has_placeholders, output);
    }
    let is_different = groups.iter().any(|group| !group.differences.is_empty());
    Ok(if is_different && detailed_exitcode { Exit::Changed } else { Exit::Success })
}

/// Returns the inputs for each machine, with its name: the files with facts, the hosts of an inventory, or this machine.
fn machines(
    mut inputs: InputFlags,
    hosts: &HostFlags,
    dotenv: &DotenvFlags,
    machine: &Machine,
) -> Result<Vec<(Option<String>, LoadInputs)>, Failure> {
    let read = |inputs: InputFlags| dotenv.read(inputs.read(machine)?);
    if !hosts.inventory.is_empty() {
        let keyring = inputs.identities.clone().keyring(machine).without_key(WithoutKey::Placeholders);
        let loader = Loader {
            runner: &machine.host.runner,
            interrupt: &machine.host.interrupt,
            limits: Limits::default(),
            keyring: &keyring,
        };
        let inventory = Inventory::load(&hosts.inventory, &loader)?;
        inventory.warnings.iter().for_each(|text| warn(&format!("warning: {text}")));
        let selected = inventory.select("all", &hosts.limit, &loader)?;
        let hosts = selected.hosts.iter().filter_map(|host| inventory.machine(host));
        return hosts
            .map(|host| {
                let mut inputs = inputs.clone();
                inputs.facts.put_below(&described(&host));
                let mut load_inputs = read(inputs)?;
                load_inputs.hiera.insert(0, variables(&host)?);
                Ok((Some(host.name), load_inputs))
            })
            .collect();
    }
    let files: Vec<PathBuf> = inputs.facts.take_files();
    if files.is_empty() {
        return Ok(vec![(None, read(inputs)?)]);
    }
    let of_file = |file: &PathBuf| {
        let mut inputs = inputs.clone();
        inputs.facts.add_file(file.clone());
        Ok((Some(file.display().to_string()), read(inputs)?))
    };
    files.iter().map(of_file).collect()
}

/// Returns the facts that an inventory gives a machine.
fn described(host: &inventory::Machine) -> ccm_expr::Value {
    let facts = serde_json::json!({ "inventory": {
        "name": host.name,
        "groups": host.groups,
        "variables": own_variables(host),
    } });
    facts.into()
}

/// Returns the variables of a machine without the settings of its connection.
fn own_variables(host: &inventory::Machine) -> serde_json::Value {
    let own = host.variables.iter().filter(|(name, _)| !name.starts_with("ansible_"));
    let own: ccm_expr::Map = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    serde_json::to_value(ccm_expr::Value::from(own)).unwrap_or_default()
}

/// Returns the variables of a machine as a layer of data.
fn variables(host: &inventory::Machine) -> Result<Location, Failure> {
    let folder = std::env::current_dir()
        .map_err(|error| Failure::new(format!("cannot determine the current directory: {error}")))?;
    let bytes = serde_json::json!({ "data": own_variables(host) }).to_string().into_bytes();
    Ok(Location::Open { name: format!("variables of {}", host.name), folder, bytes })
}
