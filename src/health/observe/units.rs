//! Observes systemd units with one query for all of them.

use std::{collections::HashMap, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use super::super::lens::{Lens, Seen, Unseen};
use crate::{
    checks::Rule,
    host::process::{Command, Exit, Keep},
};

const PROPERTIES: &str =
    "--property=LoadState,ActiveState,UnitFileState,ActiveEnterTimestampMonotonic,NRestarts";

/// Time limit for a response of systemd.
const PATIENCE: Duration = Duration::from_mins(1);

/// States of `systemctl is-enabled` that count as enabled.
const ENABLED: [&str; 6] = ["enabled", "enabled-runtime", "static", "alias", "indirect", "generated"];

/// Properties of units, by the names that were requested.
pub(in crate::health) struct Units(HashMap<String, Unit>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Unit {
    active: String,
    boot: String,
    /// Time of activation, on the monotonic clock of the machine.
    since: Duration,
    restarts: u32,
}

impl Units {
    /// Queries the properties of units.
    pub(in crate::health) fn read(names: &[&str], lens: &Lens) -> Result<Self, String> {
        let finished = Command::new("systemctl")
            .arguments(["show", "--system", PROPERTIES, "--"])
            .arguments(names.iter().copied())
            .variable("LC_ALL", "C")
            .variable("SYSTEMD_COLORS", "0")
            .keep(Keep::Whole(16 << 20))
            .timeout(lens.within(PATIENCE))
            .run(&lens.host.runner, &lens.host.interrupt)
            .map_err(|error| error.to_string())?;
        let units = read_all(&finished.stdout.text());
        if finished.exit != Exit::Code(0) || units.len() != names.len() {
            let said = finished.stderr.text().trim().to_owned();
            let said = if said.is_empty() { finished.exit.to_string() } else { said };
            return Err(format!("systemd did not answer: {said}"));
        }
        Ok(Self(names.iter().map(|name| (*name).to_owned()).zip(units).collect()))
    }
}

/// Parses blocks of `Property=value`, one block for each unit.
fn read_all(output: &str) -> Vec<Unit> {
    let blocks = output.trim_end().split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let mut unit = Unit::default();
            for (key, value) in block.lines().filter_map(|line| line.split_once('=')) {
                match key {
                    "ActiveState" => value.clone_into(&mut unit.active),
                    "UnitFileState" => value.clone_into(&mut unit.boot),
                    "ActiveEnterTimestampMonotonic" => {
                        unit.since = Duration::from_micros(value.parse().unwrap_or_default());
                    }
                    "NRestarts" => unit.restarts = value.parse().unwrap_or_default(),
                    _ => {}
                }
            }
            unit
        })
        .collect()
}

impl Unit {
    fn is_active(&self) -> bool {
        matches!(self.active.as_str(), "active" | "reloading" | "refreshing")
    }
}

pub(super) fn look(property: &str, rule: &Rule, lens: &Lens) -> Seen {
    let name = rule.subject.as_str();
    let units = lens.units.get_or_init(|| Units::read(&[name], lens)).as_ref();
    let unit = units.map_err(|error| Unseen::Cannot(error.clone()))?.0.get(name).cloned().unwrap_or_default();
    if property == "enabled" {
        return Ok(ENABLED.contains(&unit.boot.as_str()).into());
    }
    match rule.options.settled {
        Some(settled) if unit.is_active() => has_settled(name, &unit, settled, lens),
        _ => Ok(unit.is_active().into()),
    }
}

/// Waits until a unit has been active for a duration, unless it restarts or stops before.
fn has_settled(name: &str, unit: &Unit, settled: Duration, lens: &Lens) -> Seen {
    let now = clock_gettime(ClockId::Monotonic);
    let now = Duration::try_from(now).unwrap_or_default();
    let missing = settled.saturating_sub(now.saturating_sub(unit.since));
    if missing.is_zero() {
        return Ok(true.into());
    }
    lens.host.interrupt.pause(lens.within(missing));
    lens.tick()?;
    let later = Units::read(&[name], lens).map_err(Unseen::Cannot)?.0.remove(name).unwrap_or_default();
    if later.is_active() && later.since == unit.since && later.restarts == unit.restarts {
        return Ok(true.into());
    }
    Err(Unseen::Not("it did not stay active".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_a_unit() {
        let output = "LoadState=loaded\nActiveState=active\nUnitFileState=static\nActiveEnterTimestampMonotonic=5000000\n\
                      NRestarts=2\n\nLoadState=not-found\nActiveState=inactive\nUnitFileState=\n";
        let units = read_all(output);
        assert_eq!(units.len(), 2);
        assert!(units[0].is_active() && !units[1].is_active());
        assert_eq!((units[0].since, units[0].restarts), (Duration::from_secs(5), 2));
        assert!(read_all("").is_empty());
    }
}
