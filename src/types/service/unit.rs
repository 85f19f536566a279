//! A unit as `systemctl show` describes it.

use super::{
    error::ServiceError,
    words::{Activity, NOT_FOUND},
};

/// The properties that are asked for.
pub(super) const PROPERTIES: &str = "--property=Id,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,\
                                     Result,ExecMainStatus,NRestarts";

/// What systemd knows of one unit. A property that a unit does not have, or that an old systemd does not know, is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit {
    /// Its true name, which for an alias is the other unit's.
    pub(super) id: String,
    pub(super) load: String,
    pub(super) active: String,
    pub(super) sub: String,
    /// Whether it starts at boot, in the word of `systemctl is-enabled`.
    pub(super) boot: String,
    /// Its files have changed since systemd read them.
    pub(super) stale: bool,
    /// How the service's last run ended.
    pub(super) result: String,
    pub(super) exit_status: String,
    /// How often systemd has restarted the service by itself.
    pub(super) restarts: u32,
}

impl Unit {
    /// Returns the units in an output of `systemctl show`, in the order in which they were asked for.
    pub(super) fn read_all(output: &str) -> Vec<Self> {
        let mut units = Vec::new();
        let mut lines = output.lines().peekable();
        while lines.peek().is_some() {
            let block: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
            if !block.is_empty() {
                units.push(Self::read(&block));
            }
        }
        units
    }

    fn read(block: &[&str]) -> Self {
        let mut unit = Self::default();
        for (key, value) in block.iter().filter_map(|line| line.split_once('=')) {
            match key {
                "Id" => value.clone_into(&mut unit.id),
                "LoadState" => value.clone_into(&mut unit.load),
                "ActiveState" => value.clone_into(&mut unit.active),
                "SubState" => value.clone_into(&mut unit.sub),
                "UnitFileState" => value.clone_into(&mut unit.boot),
                "NeedDaemonReload" => unit.stale = value == "yes",
                "Result" => value.clone_into(&mut unit.result),
                "ExecMainStatus" => value.clone_into(&mut unit.exit_status),
                "NRestarts" => unit.restarts = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        unit
    }

    /// Returns the unit of a service of which only the word of `systemctl is-active` is known.
    pub(super) fn of_word(name: &str, active: &str) -> Self {
        Self { id: unit_name(name), active: active.to_owned(), ..Self::default() }
    }

    /// Returns a unit that neither runs nor starts at boot.
    pub(super) fn idle(name: &str) -> Self {
        let word = str::to_owned;
        Self { load: word("loaded"), boot: word("disabled"), ..Self::of_word(name, "inactive") }
    }

    /// Returns a unit that does not run and has no file: what is left of one that was there only for as long as it ran,
    /// or as long as somebody linked to it.
    pub(super) fn gone(name: &str) -> Self {
        Self { load: NOT_FOUND.to_owned(), boot: NOT_FOUND.to_owned(), ..Self::of_word(name, "inactive") }
    }

    /// Returns whether more is known of it than a word.
    pub(super) fn is_described(&self) -> bool {
        !self.load.is_empty() && !self.active.is_empty()
    }

    pub(super) fn has_no_file(&self) -> bool {
        self.load == NOT_FOUND
    }

    /// Returns whether systemd holds on to it, with or without a file.
    pub(super) fn is_alive(&self) -> bool {
        self.is_described() && !matches!(self.active.as_str(), "inactive" | "failed")
    }

    /// Returns what it is doing. The word `activating` alone counts as stopped.
    pub(super) fn activity(&self) -> Result<Activity, ServiceError> {
        match Activity::from_word(&self.active)? {
            Activity::Starting if !self.is_described() => Ok(Activity::Stopped),
            activity => Ok(activity),
        }
    }

    /// Returns whether it is on its way up for the first time; one that died and is tried again is not.
    pub(super) fn is_starting(&self) -> bool {
        self.active == "activating" && !self.sub.starts_with("auto-restart")
    }
}

/// Returns the unit that systemctl takes a name for: a service unless the name says otherwise, with the signs that a
/// unit's name cannot have written as numbers.
pub(super) fn unit_name(name: &str) -> String {
    const KINDS: [&str; 11] = [
        "service",
        "socket",
        "target",
        "device",
        "mount",
        "automount",
        "swap",
        "timer",
        "path",
        "slice",
        "scope",
    ];
    let escaped: String = name
        .chars()
        .map(|c| if matches!(c, '+' | '~') { format!("\\x{:02x}", u32::from(c)) } else { c.to_string() })
        .collect();
    match escaped.rsplit_once('.') {
        Some((stem, kind)) if !stem.is_empty() && KINDS.contains(&kind) => escaped,
        _ => escaped + ".service",
    }
}
