//! Facts about the host: its names, its operating system, and its boot time.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use ccm_expr::Value;

use super::{
    lazy::{Fact, Lazy},
    machine::Machine,
};

pub(super) fn section(machine: &Arc<Machine>) -> Value {
    Lazy::of(machine, &[("info", |machine| Lazy::of(machine, INFO))])
}

const INFO: &[Fact] = &[
    ("hostname", hostname),
    ("uptime", |machine| uptime(machine).into()),
    ("bootTime", |machine| machine.boot_time().into()),
    ("procs", processes),
    ("os", os),
    ("platform", platform),
    ("platformFamily", platform_family),
    ("platformVersion", platform_version),
    ("kernelVersion", kernel_version),
    ("kernelArch", architecture),
    ("virtualizationSystem", |machine| machine.virtualization().system.as_str().into()),
    ("virtualizationRole", |machine| machine.virtualization().role.into()),
    ("hostId", |machine| id(machine).into()),
];

pub(super) fn hostname(machine: &Arc<Machine>) -> Value {
    machine.kernel().hostname.as_str().into()
}

/// Returns the fully qualified host name, or the short name if no domain is known.
pub(super) fn fqdn(machine: &Arc<Machine>) -> Value {
    full_name(machine).into()
}

/// Returns the part of the full name after the first dot; null if no domain is known.
pub(super) fn domain(machine: &Arc<Machine>) -> Value {
    full_name(machine).split_once('.').map_or("", |(_, domain)| domain).into()
}

pub(super) fn os(_: &Arc<Machine>) -> Value {
    "linux".into()
}

pub(super) fn platform(machine: &Arc<Machine>) -> Value {
    machine.platform().name.as_str().into()
}

pub(super) fn platform_family(machine: &Arc<Machine>) -> Value {
    machine.platform().family.as_str().into()
}

pub(super) fn platform_version(machine: &Arc<Machine>) -> Value {
    machine.platform().version.as_str().into()
}

pub(super) fn kernel_version(machine: &Arc<Machine>) -> Value {
    machine.kernel().release.as_str().into()
}

pub(super) fn architecture(machine: &Arc<Machine>) -> Value {
    machine.kernel().architecture.as_str().into()
}

/// Returns the full name from local files. The name service might need the network.
fn full_name(machine: &Machine) -> String {
    let name = machine.kernel().hostname.as_str();
    let extends = |full: &str| {
        full.strip_prefix(name)
            .is_some_and(|rest| rest.strip_prefix('.').is_some_and(|rest| !rest.is_empty()))
    };
    if name.contains('.') || name.is_empty() {
        return name.to_owned();
    }
    if let Some(full) = machine.line("etc/hostname").filter(|full| extends(full)) {
        return full;
    }
    let hosts = machine.text("etc/hosts").unwrap_or_default();
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut names = line.split_whitespace().skip(1);
        if let Some(full) = names.find(|full| extends(full)) {
            return full.to_owned();
        }
    }
    name.to_owned()
}

/// Returns the seconds since boot.
fn uptime(machine: &Machine) -> u64 {
    if machine.is_running() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        return now.saturating_sub(machine.boot_time());
    }
    let seconds = machine.line("proc/uptime").unwrap_or_default();
    seconds.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0)
}

/// Returns the time of the boot in seconds since 1970. A value computed from the uptime would differ by a second
/// between runs.
pub(super) fn boot_time(machine: &Machine) -> u64 {
    let statistics = machine.text("proc/stat").unwrap_or_default();
    let seconds = statistics.lines().find_map(|line| line.strip_prefix("btime "));
    seconds.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0)
}

fn processes(machine: &Arc<Machine>) -> Value {
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let count = machine.names("proc").filter(is_process).count();
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

/// Returns a unique id of the machine: the firmware's UUID, which only root can read; otherwise the machine id of the
/// installation, or the id of this boot.
fn id(machine: &Machine) -> String {
    let firmware = || machine.line("sys/class/dmi/id/product_uuid").map(|id| id.to_lowercase());
    let installation = || {
        let id = machine.line("etc/machine-id")?;
        let part = |from, to| id.get(from..to);
        let parts = [part(0, 8)?, part(8, 12)?, part(12, 16)?, part(16, 20)?, part(20, 32)?];
        (id.len() == 32).then(|| parts.join("-"))
    };
    let boot = || machine.line("proc/sys/kernel/random/boot_id");
    firmware().or_else(installation).or_else(boot).unwrap_or_default()
}
