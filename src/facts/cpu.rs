//! Facts about processors.

use std::sync::Arc;

use ccm_expr::Value;

use super::{
    lazy::{Lazy, map},
    machine::Machine,
};

pub(super) fn section(machine: &Arc<Machine>) -> Value {
    Lazy::of(machine, &[("info", info)])
}

/// One block of /proc/cpuinfo. The alternative names are those of ARM.
#[derive(Clone, Copy, Default)]
struct Processor<'a> {
    number: i64,
    vendor: &'a str,
    family: &'a str,
    model: &'a str,
    model_name: &'a str,
    stepping: &'a str,
    package: Option<&'a str>,
    core: Option<&'a str>,
    megahertz: &'a str,
    cache: &'a str,
    microcode: &'a str,
    flags: &'a str,
}

fn info(machine: &Arc<Machine>) -> Value {
    let text = machine.text("proc/cpuinfo").unwrap_or_default();
    let processors = processors(&text);
    // Usually all processors have the same flags, so they are stored once.
    let mut flags = ("", Value::from(Vec::new()));
    let scaled = processors.first().is_some_and(|first| maximum(machine, first.number).is_some());
    let described = processors.iter().map(|processor| {
        if flags.0 != processor.flags {
            flags = (processor.flags, processor.flags.split_whitespace().map(Value::from).collect());
        }
        let measured = || processor.megahertz.parse().unwrap_or(0.0);
        let maximum = if scaled { maximum(machine, processor.number) } else { None };
        let topology = |name: &str| {
            machine.line(&format!("sys/devices/system/cpu/cpu{}/topology/{name}", processor.number))
        };
        let place = |known: Option<&str>, name| {
            known.map(str::to_owned).or_else(|| topology(name)).unwrap_or_default()
        };
        map([
            ("cpu", processor.number.into()),
            ("vendorId", processor.vendor.into()),
            ("family", processor.family.into()),
            ("model", processor.model.into()),
            ("stepping", processor.stepping.parse::<i64>().unwrap_or(0).into()),
            ("physicalId", place(processor.package, "physical_package_id").into()),
            ("coreId", place(processor.core, "core_id").into()),
            ("cores", 1_i64.into()),
            ("modelName", processor.model_name.into()),
            ("mhz", maximum.unwrap_or_else(measured).into()),
            ("cacheSize", processor.cache.trim_end_matches(" KB").parse::<i64>().unwrap_or(0).into()),
            ("flags", flags.1.clone()),
            ("microcode", processor.microcode.into()),
        ])
    });
    described.collect()
}

fn processors(text: &str) -> Vec<Processor<'_>> {
    let mut processors: Vec<Processor> = Vec::new();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        let key = key.trim();
        if key == "processor"
            && let Ok(number) = value.parse()
        {
            processors.push(Processor { number, ..Processor::default() });
        }
        let Some(last) = processors.last_mut() else { continue };
        match key {
            "vendor_id" | "CPU implementer" => last.vendor = value,
            "cpu family" | "CPU architecture" => last.family = value,
            "model" | "CPU part" => last.model = value,
            "model name" => last.model_name = value,
            "stepping" | "CPU revision" => last.stepping = value,
            "physical id" => last.package = Some(value),
            "core id" => last.core = Some(value),
            "cpu MHz" => last.megahertz = value,
            "cache size" => last.cache = value,
            "microcode" => last.microcode = value,
            "flags" | "Features" => last.flags = value,
            _ => {}
        }
    }
    processors
}

/// Returns the highest frequency in MHz. The current frequency changes all the time.
fn maximum(machine: &Machine, processor: i64) -> Option<f64> {
    let path = format!("sys/devices/system/cpu/cpu{processor}/cpufreq/cpuinfo_max_freq");
    let kilohertz: f64 = machine.line(&path)?.parse().ok()?;
    Some(kilohertz / 1000.0)
}
