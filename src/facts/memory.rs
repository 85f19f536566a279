//! Facts about memory and swap space, in bytes.

use std::{collections::HashMap, sync::Arc};

use ccm_expr::{Map, Value};

use super::{
    lazy::{Lazy, map},
    machine::Machine,
};

pub(super) fn section(machine: &Arc<Machine>) -> Value {
    Lazy::of(
        machine,
        &[
            ("virtual", |machine| Amounts::read(machine.memory()).memory()),
            ("swap", |machine| {
                Lazy::of(
                    machine,
                    &[
                        ("info", |machine| Amounts::read(machine.memory()).swap(machine)),
                        ("devices", |machine| swap_devices(machine)),
                    ],
                )
            }),
        ],
    )
}

/// Names of the facts for values of /proc/meminfo. Some other facts are computed from them.
const AMOUNTS: [(&str, &str); 30] = [
    ("active", "Active"),
    ("inactive", "Inactive"),
    ("writeBack", "Writeback"),
    ("dirty", "Dirty"),
    ("writeBackTmp", "WritebackTmp"),
    ("shared", "Shmem"),
    ("slab", "Slab"),
    ("sreclaimable", "SReclaimable"),
    ("sunreclaim", "SUnreclaim"),
    ("pageTables", "PageTables"),
    ("swapCached", "SwapCached"),
    ("commitLimit", "CommitLimit"),
    ("committedAS", "Committed_AS"),
    ("highTotal", "HighTotal"),
    ("highFree", "HighFree"),
    ("lowTotal", "LowTotal"),
    ("lowFree", "LowFree"),
    ("swapTotal", "SwapTotal"),
    ("swapFree", "SwapFree"),
    ("mapped", "Mapped"),
    ("vmallocTotal", "VmallocTotal"),
    ("vmallocUsed", "VmallocUsed"),
    ("vmallocChunk", "VmallocChunk"),
    ("hugePagesTotal", "HugePages_Total"),
    ("hugePagesFree", "HugePages_Free"),
    ("hugePagesRsvd", "HugePages_Rsvd"),
    ("hugePagesSurp", "HugePages_Surp"),
    ("hugePageSize", "Hugepagesize"),
    ("anonHugePages", "AnonHugePages"),
    ("anonPages", "AnonPages"),
];

/// Values of /proc/meminfo.
struct Amounts<'a>(HashMap<&'a str, u64>);

impl<'a> Amounts<'a> {
    fn read(text: &'a str) -> Self {
        Self(text.lines().filter_map(amount).collect())
    }

    fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    fn memory(&self) -> Value {
        let (total, free, buffers) = (self.of("MemTotal"), self.of("MemFree"), self.of("Buffers"));
        // Reclaimable memory counts as cache.
        let cached = self.of("Cached") + self.of("SReclaimable");
        let available = self.0.get("MemAvailable").copied().unwrap_or(free + buffers + cached).min(total);
        let used = total - available;
        let own: [(&str, Value); 7] = [
            ("total", total.into()),
            ("available", available.into()),
            ("used", used.into()),
            ("usedPercent", percent(used, total).into()),
            ("free", free.into()),
            ("buffers", buffers.into()),
            ("cached", cached.into()),
        ];
        let kernel = AMOUNTS.iter().map(|(name, line)| (*name, self.of(line).into()));
        own.into_iter().chain(kernel).map(|(name, value)| (Arc::from(name), value)).collect::<Map>().into()
    }

    fn swap(&self, machine: &Machine) -> Value {
        let (total, free) = (self.of("SwapTotal"), self.of("SwapFree"));
        let used = total.saturating_sub(free);
        map([
            ("total", total.into()),
            ("used", used.into()),
            ("free", free.into()),
            ("usedPercent", percent(used, total).into()),
            ("sin", swapped(machine, "pswpin").into()),
            ("sout", swapped(machine, "pswpout").into()),
        ])
    }
}

/// The unit of page counters, independent of the page size of the processor, as in other tools.
const PAGE: u64 = 4096;

/// Returns the bytes swapped in or out, from a line of /proc/vmstat.
fn swapped(machine: &Machine, name: &str) -> u64 {
    let text = machine.text("proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    count.unwrap_or(0).saturating_mul(PAGE)
}

/// Parses /proc/swaps: a path, in which the kernel writes spaces in octal, the type, and sizes in KiB.
fn swap_devices(machine: &Machine) -> Value {
    let text = machine.text("proc/swaps").unwrap_or_default();
    let device = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _, size, used, ..] = words[..] else { return None };
        let (size, used): (u64, u64) = (size.parse().ok()?, used.parse().ok()?);
        Some(map([
            ("name", name.replace("\\040", " ").into()),
            ("usedBytes", used.saturating_mul(1024).into()),
            ("freeBytes", size.saturating_sub(used).saturating_mul(1024).into()),
        ]))
    };
    text.lines().skip(1).filter_map(device).collect()
}

/// Parses a line: `MemTotal:  16 kB` is 16,384 bytes; without a unit the value is a count.
fn amount(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = if words.next() == Some("kB") { 1024 } else { 1 };
    Some((name, number.saturating_mul(unit)))
}

/// Returns a part as a percentage of the whole.
#[expect(clippy::cast_precision_loss, reason = "a percentage of bytes needs no more than 52 bits")]
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}
