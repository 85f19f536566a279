//! Kernel settings, in a network namespace with settings of its own.

use crate::support::{Machine, World};

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

fn machine() -> Option<Machine> {
    let prepare = "mount --bind $W/etc /etc/sysctl.d && mount -t tmpfs tmpfs /usr/lib/sysctl.d && echo 0 > /proc/sys/net/ipv4/ip_forward";
    Machine::new(World::new().dir("etc"), prepare)
}

/// Returns the live value of a setting.
fn live(machine: &Machine, path: &str) -> String {
    machine.namespace.sh(&format!("cat {path}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn stored(machine: &Machine, name: &str) -> Option<String> {
    let path = machine.world.path("etc").join(name);
    path.exists().then(|| std::fs::read_to_string(path).unwrap())
}

fn store(machine: Machine, name: &str, text: &str) -> Machine {
    std::fs::write(machine.world.path("etc").join(name), text).unwrap();
    machine
}

#[test]
fn value_is_set_now_and_at_boot() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: true }\n");
    machine
        .noop()
        .exits(0)
        .says("Would have set the live value to \"1\". Would have created /etc/sysctl.d/90-net.ipv4.ip_forward.conf");
    assert_eq!(
        (live(&machine, FORWARD).as_str(), stored(&machine, "90-net.ipv4.ip_forward.conf")),
        ("0", None)
    );
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(live(&machine, FORWARD), "1");
    assert_eq!(stored(&machine, "90-net.ipv4.ip_forward.conf").as_deref(), Some("net.ipv4.ip_forward = 1\n"));
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn only_the_value_that_differs_changes() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares(
        "sysctl",
        "    - net.ipv4.ip_local_port_range: { value: '15000   60999', file: /etc/sysctl.d/p.conf }\n",
    );
    let machine = store(machine, "p.conf", "# ports\nnet/ipv4/ip_local_port_range=15000\t60999\nx.y = 1");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(live(&machine, "/proc/sys/net/ipv4/ip_local_port_range"), "15000 60999");
    let text = "# ports\nnet/ipv4/ip_local_port_range=15000\t60999\nx.y = 1";
    assert_eq!(stored(&machine, "p.conf").as_deref(), Some(text));
    let machine = store(machine, "p.conf", "# ports\nnet.ipv4.ip_local_port_range = 1 2\nx.y = 1");
    machine.noop().exits(0).says("Would have updated /etc/sysctl.d/p.conf").never_says("live value");
    machine.apply().exits(0);
    let text = "# ports\nnet.ipv4.ip_local_port_range = 15000 60999\nx.y = 1";
    assert_eq!(stored(&machine, "p.conf").as_deref(), Some(text));
}

#[test]
fn value_that_the_kernel_refuses_or_changes_is_not_stored() {
    let Some(machine) = machine() else { return };
    let before = live(&machine, "/proc/sys/net/ipv4/tcp_wmem");
    let machine = machine.declares(
        "sysctl",
        "    - net.ipv4.ip_default_ttl: { value: banana }\n    - net.ipv4.tcp_wmem: { value: 8192 }\n",
    );
    let run = machine.apply();
    run.exits(1).counts([0, 0, 2, 0]);
    run.says("the kernel refuses the value \"banana\" of net.ipv4.ip_default_ttl");
    run.says("the kernel does not keep the value \"8192\" of net.ipv4.tcp_wmem: it became \"8192 ");
    assert_eq!(live(&machine, "/proc/sys/net/ipv4/tcp_wmem"), before);
    assert_eq!(machine.namespace.sh("ls /etc/sysctl.d"), "");
}

#[test]
fn setting_that_the_kernel_lacks_is_an_error_with_the_nearest_name() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forwrad: { value: 1 }\n");
    for run in [machine.noop(), machine.apply()] {
        run.exits(1)
            .says("the kernel has no setting net.ipv4.ip_forwrad")
            .says("did you mean net.ipv4.ip_forward?");
    }
    assert_eq!(machine.namespace.sh("ls /etc/sysctl.d"), "");
    let machine =
        machine.declares("sysctl", "    - net.ipv4.ip_forwrad: { value: 1, ignore_missing: true }\n");
    machine.apply().exits(0);
    assert_eq!(
        stored(&machine, "90-net.ipv4.ip_forwrad.conf").as_deref(),
        Some("-net.ipv4.ip_forwrad = 1\n")
    );
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn two_spellings_are_one_resource() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares(
        "sysctl",
        "    - net.ipv4.ip_forward: { value: 1 }\n    - net/ipv4/ip_forward: { value: 0 }\n",
    );
    machine.apply().exits(2).complains("sysctl#net.ipv4.ip_forward is declared twice");
    let machine = machine.declares("sysctl", 
        "    - net/ipv4/ip_forward: { value: 1 }\n- exec:\n    - 'true': { require: sysctl#net.ipv4.ip_forward }\n",
    );
    machine.apply().exits(0);
}

#[test]
fn file_that_is_read_later_is_named() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: 1 }\n");
    let machine = store(machine, "10-early.conf", "net.ipv4.ip_forward = 0\n");
    let machine = store(machine, "99-late.conf", "\n# late\nnet/ipv4/ip_forward=0\n");
    let run = machine.apply();
    run.exits(0).says("/etc/sysctl.d/99-late.conf:3 sets net.ipv4.ip_forward to \"0\" at boot");
    run.never_says("10-early");
}

#[test]
fn removed_entry_leaves_the_live_value_and_says_so() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: 1 }\n");
    machine.apply().exits(0);
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { ensure: absent }\n");
    machine.noop().exits(0).says(
        "Would have removed /etc/sysctl.d/90-net.ipv4.ip_forward.conf; the live value \"1\" stays until the next boot",
    );
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(
        (live(&machine, FORWARD).as_str(), stored(&machine, "90-net.ipv4.ip_forward.conf")),
        ("1", None)
    );
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn undo_restores_the_bytes_of_the_file_and_the_live_value() {
    let Some(machine) = machine() else { return };
    let text = "#  mine\n net/ipv4/ip_forward=0";
    let machine = store(machine, "r.conf", text);
    let machine =
        machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: 1, file: /etc/sysctl.d/r.conf }\n");
    machine.apply().exits(0);
    assert_eq!(live(&machine, FORWARD), "1");
    machine.call(&["undo", "last", "--noop"]).run().exits(0).says("net.ipv4.ip_forward");
    machine.call(&["undo", "last"]).run().exits(0);
    assert_eq!((live(&machine, FORWARD).as_str(), stored(&machine, "r.conf").as_deref()), ("0", Some(text)));
    // The undo can be undone.
    machine.call(&["undo", "last"]).run().exits(0);
    assert_eq!(live(&machine, FORWARD), "1");
    // A change that was made since stays.
    machine.namespace.sh("echo 0 > /proc/sys/net/ipv4/ip_forward");
    machine.apply().exits(0);
    machine.namespace.sh("echo '# other' >> /etc/sysctl.d/r.conf");
    machine.namespace.sh("echo 0 > /proc/sys/net/ipv4/ip_forward");
    machine.call(&["undo", "last"]).run();
    assert_eq!(live(&machine, FORWARD), "0");
}

#[test]
fn stored_value_converges_where_the_kernel_cannot_be_changed() {
    let Some(machine) = machine() else { return };
    machine.namespace.sh("mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys");
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: 1 }\n");
    machine.apply().exits(1).says("cannot change net.ipv4.ip_forward in this kernel").says("live: false");
    assert_eq!(stored(&machine, "90-net.ipv4.ip_forward.conf").as_deref(), Some("net.ipv4.ip_forward = 1\n"));
    let machine = machine.declares("sysctl", "    - net.ipv4.ip_forward: { value: 1, live: false }\n");
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn bad_declarations_are_rejected_at_their_line() {
    for (item, message) in [
        ("net.ipv4.ip_forward: {}", "a setting needs a value"),
        ("net.ipv4.ip_forward: { value: \"1\\n2\" }", "line breaks"),
        ("/proc/sys/net/ipv4/ip_forward: { value: 1 }", "write \\\"net.ipv4.ip_forward\\\""),
        ("net.ipv4.conf.*.forwarding: { value: 1 }", "is not the name of a kernel setting"),
        ("net..ipv4: { value: 1 }", "is not the name of a kernel setting"),
        ("net.ipv4.ip_forward: { value: 1, file: x.conf }", "must be absolute"),
    ] {
        let world = World::new().manifest(&format!("- sysctl:\n    - {item}\n"));
        let run = world.ccm(["validate", "site.yaml"]).run();
        assert_eq!(run.code, 2, "{item}");
        run.complains(&message.replace("\\\"", "\"")).complains("site.yaml:2:");
    }
}
