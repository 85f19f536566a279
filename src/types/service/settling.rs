//! Waits until a started service is up, and checks that it keeps running.

use std::time::{Duration, Instant, SystemTime};

use super::{
    Properties, error::ServiceError, journal::LastLines, systemctl, unit::Unit, unit_cache::UnitCache,
    words::Activity,
};
use crate::resource::{Context, Error};

/// First and longest pause between two checks of an activating unit.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Part of a time limit that is reserved for the last check. A time limit shorter than `settle` is not the fault of the
/// service.
const TO_JUDGE: Duration = Duration::from_secs(1);

/// Waits until the service is up, and checks that it keeps running.
pub(super) fn settle(
    want: &Properties,
    since: SystemTime,
    units: &mut UnitCache,
    cx: &Context,
) -> Result<(), Error> {
    let name = want.unit_word();
    let up = wait_until_started(name, since, units, cx)?;
    if want.settle.as_std().is_zero() {
        return Ok(());
    }
    let left = cx.time_left().map_or(Duration::MAX, |left| left.saturating_sub(TO_JUDGE.min(left / 2)));
    cx.pause(want.settle.as_std().min(left))?;
    let later = units.unit_now(name, cx)?;
    if later.activity()? == Activity::Running && later.restarts == up.restarts {
        return Ok(());
    }
    Err(died(&later, name, since, cx))
}

fn wait_until_started(
    name: &str,
    since: SystemTime,
    units: &mut UnitCache,
    cx: &Context,
) -> Result<Unit, Error> {
    let begun = Instant::now();
    let patience = cx.time_left().unwrap_or(systemctl::START);
    let (mut pause, longest) = LOOK_AGAIN;
    loop {
        let unit = units.unit_now(name, cx)?;
        if unit.activity()? == Activity::Running {
            return Ok(unit);
        }
        if !unit.is_starting() {
            return Err(died(&unit, name, since, cx));
        }
        if begun.elapsed() + pause > patience {
            let limit = crate::vocabulary::Duration::from(cx.timeout().unwrap_or(patience));
            let error = ServiceError::StillActivating { unit: unit.id, limit };
            return Err(LastLines::of(name, since, cx).add_to(error.into()));
        }
        cx.pause(pause)?;
        pause = longest.min(pause * 2);
    }
}

fn died(unit: &Unit, name: &str, since: SystemTime, cx: &Context) -> Error {
    let Unit { id, active, sub, result, exit_status, .. } = unit;
    let details = if unit.is_described() {
        format!(" ({sub}), Result={result}, ExecMainStatus={exit_status}")
    } else {
        String::new()
    };
    let ended_well = (result.as_str(), active.as_str()) == ("success", "inactive");
    let lines = LastLines::of(name, since, cx);
    let error = if ended_well && lines.tell_of_a_condition() {
        ServiceError::ConditionNotMet { unit: id.clone() }
    } else {
        ServiceError::DidNotStay { unit: id.clone(), state: format!("{active}{details}"), ended_well }
    };
    lines.add_to(error.into())
}
