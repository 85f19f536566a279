//! The boot of the machine, and the clock that counts from it.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use super::cgroup::boot_id;
use super::table;

/// A boot of the machine or of the container. Booting a container does not change the boot ID of the kernel, but the start
/// time of its first process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Differs from the ids of all other boots.
    pub id: String,
    /// Its time on the clock of [`since_boot`].
    pub began: Duration,
}

impl Boot {
    /// Returns the present boot; `None` without `/proc`.
    pub fn current() -> Option<Self> {
        let kernel = boot_id()?;
        let ticks = table::one(Pid::INIT).map_or(0, |init| init.started);
        let began = Duration::from_millis(ticks.saturating_mul(1000) / clock_ticks_per_second());
        Some(Self { id: format!("{kernel}/{ticks}"), began })
    }
}

/// Returns the time on `CLOCK_BOOTTIME`. It goes on during suspend, and no change of the wall clock affects it.
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
