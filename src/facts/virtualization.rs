//! Facts about virtualization: the hypervisor or container manager.

use super::machine::Machine;

/// Kind of virtualization, and the role of this machine; both empty on bare metal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Virtualization {
    pub(super) system: String,
    /// `guest` or `host`
    pub(super) role: &'static str,
}

impl Virtualization {
    /// Detects the innermost layer: a container in a virtual machine is a container.
    pub(super) fn of(machine: &Machine) -> Self {
        let guest = |system: String| Self { system, role: "guest" };
        container(machine)
            .map(guest)
            .or_else(|| xen(machine))
            .or_else(|| by_firmware(machine).map(|system| guest(system.to_owned())))
            .or_else(|| by_kernel(machine))
            .unwrap_or_default()
    }
}

fn container(machine: &Machine) -> Option<String> {
    // systemd writes this file for any container manager that identifies itself.
    if let Some(manager) = machine.line("run/systemd/container") {
        return Some(manager);
    }
    for (mark, system) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if machine.has(mark) {
            return Some(system.to_owned());
        }
    }
    if machine.has("proc/vz") && !machine.has("proc/bc") {
        return Some("openvz".to_owned());
    }
    let groups = machine.text("proc/self/cgroup")?;
    let of_group = [("docker", "docker"), ("kubepods", "kubernetes"), ("libpod", "podman"), ("lxc", "lxc")];
    of_group.iter().find(|(word, _)| groups.contains(word)).map(|(_, system)| (*system).to_owned())
}

fn xen(machine: &Machine) -> Option<Virtualization> {
    if machine.line("sys/hypervisor/type").is_none_or(|hypervisor| hypervisor != "xen") {
        return None;
    }
    let controls = machine.line("proc/xen/capabilities").is_some_and(|text| text.contains("control_d"));
    Some(Virtualization { system: "xen".to_owned(), role: if controls { "host" } else { "guest" } })
}

/// Returns the hypervisor by the names of its virtual hardware.
fn by_firmware(machine: &Machine) -> Option<&'static str> {
    let vendor = machine.line("sys/class/dmi/id/sys_vendor")?;
    let product = || machine.line("sys/class/dmi/id/product_name").unwrap_or_default();
    Some(match vendor.as_str() {
        "QEMU" | "Amazon EC2" | "Google" | "OpenStack Foundation" | "DigitalOcean" | "Hetzner" => {
            // Amazon also offers machines without a hypervisor.
            if product().contains(".metal") {
                return None;
            }
            "kvm"
        }
        "VMware, Inc." => "vmware",
        "innotek GmbH" | "Oracle Corporation" if product() == "VirtualBox" => "vbox",
        "Microsoft Corporation" if product() == "Virtual Machine" => "hyperv",
        "Parallels Software International Inc." | "Parallels International GmbH." => "parallels",
        "Xen" => "xen",
        _ if product() == "KVM" => "kvm",
        _ => return None,
    })
}

fn by_kernel(machine: &Machine) -> Option<Virtualization> {
    if machine.kernel().release.to_lowercase().contains("microsoft") {
        return Some(Virtualization { system: "wsl".to_owned(), role: "guest" });
    }
    // The processor sets this flag for guests of any hypervisor.
    let processor = machine.text("proc/cpuinfo").unwrap_or_default();
    let flags = processor.lines().find(|line| line.starts_with("flags"));
    if flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")) {
        return Some(Virtualization { system: String::new(), role: "guest" });
    }
    let modules = machine.text("proc/modules").unwrap_or_default();
    let system = modules.lines().find_map(|line| match line.split_whitespace().next()? {
        "kvm" => Some("kvm"),
        "vboxdrv" => Some("vbox"),
        _ => None,
    })?;
    Some(Virtualization { system: system.to_owned(), role: "host" })
}
