//! systemd asked directly, over the system bus, in place of `systemctl`, which has to be started and asks about one unit
//! after the other.
//!
//! It is asked only where `systemctl` would ask it, too. Whoever puts a program of that name first in the search path, or
//! in the place of the system's own, wants it to be called. In a chroot and in a container without a systemd of its own
//! the bus may be that of another machine. Whatever goes wrong on the bus, `systemctl` is called as if there were none:
//! what it says about it is what users know.

use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, Dev, FileType, statat};

use super::unit::{Unit, unit_name};
use crate::{
    host::bus::{UnitBus, UnitFacts, Wait},
    resource::Context,
};

/// Where systemd puts its `systemctl`.
const OWN: [&str; 2] = ["/usr/bin/systemctl", "/bin/systemctl"];

/// Is there while systemd manages the machine: `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";

/// What makes `systemctl` look at files itself, or speak to somebody else.
const ELSEWHERE: [&str; 2] = ["SYSTEMD_OFFLINE", "DBUS_SYSTEM_BUS_ADDRESS"];

/// The way to systemd that is not `systemctl`.
#[derive(Default)]
pub(super) enum Bus {
    /// There is none, or it failed.
    #[default]
    None,
    Untried,
    Open(UnitBus),
}

impl Bus {
    /// Returns the way to the systemd that this `systemctl` speaks to.
    #[expect(
        clippy::disallowed_methods,
        reason = "the variables are those that `systemctl` inherits and obeys"
    )]
    pub(super) fn beside(systemctl: &Path) -> Self {
        let is_elsewhere = ELSEWHERE.iter().any(|variable| env::var_os(variable).is_some());
        if !is_elsewhere && is_booted() && is_own(systemctl).unwrap_or(false) {
            Self::Untried
        } else {
            Self::None
        }
    }

    /// Returns the units with these names, in this order, without how their last runs ended; `None` if `systemctl` is to be
    /// asked. Their enablement is what their files say now.
    pub(super) fn read(&mut self, names: &[String], cx: &Context) -> Option<Vec<Unit>> {
        if matches!(self, Self::Untried) {
            *self = UnitBus::connect().map_or(Self::None, Self::Open);
        }
        let Self::Open(bus) = self else { return None };
        let names: Vec<String> = names.iter().map(|name| unit_name(name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let wait = Wait { interrupt: cx.interrupt(), at_most: cx.time_left() };
        match bus.read(&names, &wait) {
            Ok(facts) => Some(facts.into_iter().map(Unit::from).collect()),
            Err(_) => {
                *self = Self::None;
                None
            }
        }
    }
}

impl From<UnitFacts> for Unit {
    fn from(facts: UnitFacts) -> Self {
        Self {
            id: facts.id,
            load: facts.load_state,
            active: facts.active_state,
            sub: facts.sub_state,
            boot: facts.file_state.unwrap_or_default(),
            stale: facts.needs_reload,
            ..Self::default()
        }
    }
}

/// Whether systemd manages the machine that this program sees. Who may not look at its first process cannot know.
fn is_booted() -> bool {
    let place = |path: &str| -> rustix::io::Result<(Dev, u64, FileType)> {
        let found = statat(CWD, path, AtFlags::empty())?;
        Ok((found.st_dev, found.st_ino, FileType::from_raw_mode(found.st_mode)))
    };
    let is_running = place(BOOTED).is_ok_and(|(_, _, kind)| kind == FileType::Directory);
    is_running && place("/proc/1/root").is_ok_and(|of_init| place("/") == Ok(of_init))
}

/// Whether it is the program that comes with systemd, and not a script in its place.
#[expect(clippy::disallowed_methods, reason = "where a program is; nothing is done to it")]
fn is_own(systemctl: &Path) -> io::Result<bool> {
    let real = fs::canonicalize(systemctl)?;
    let mut start = [0; 4];
    File::open(&real)?.read_exact(&mut start)?;
    Ok(OWN.iter().any(|own| real == Path::new(own)) && start == *b"\x7fELF")
}
