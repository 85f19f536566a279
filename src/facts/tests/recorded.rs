//! Machines of other kinds than the one that runs the tests.

use super::Known;

#[test]
fn distributions_are_told_apart() {
    for (machine, platform, family, version) in [
        ("debian", "debian", "debian", "12.5"),
        ("ubuntu", "ubuntu", "debian", "22.04"),
        ("rocky", "rocky", "rhel", "9.3"),
        ("alpine", "alpine", "alpine", "3.19.1"),
    ] {
        let known = Known::recorded(machine);
        assert_eq!(known.text("host.info.platform"), platform);
        assert_eq!(known.text("host.info.platformFamily"), family);
        assert_eq!(known.text("host.info.platformVersion"), version);
        assert_eq!(known.text("platform"), platform);
        assert_eq!(known.text("family"), family);
        assert_eq!(known.text("version"), version);
        assert_eq!(known.text("os"), "linux");
    }
}

#[test]
fn full_names_come_from_the_files_of_the_machine() {
    for (machine, hostname, fqdn, domain) in [
        ("debian", "web1", "web1.example.com", r#""example.com""#),
        ("ubuntu", "db.example.net", "db.example.net", r#""example.net""#),
        ("rocky", "node7", "node7.site.example.org", r#""site.example.org""#),
        ("alpine", "edge", "edge", r#""""#),
    ] {
        let known = Known::recorded(machine);
        assert_eq!(known.text("hostname"), hostname);
        assert_eq!(known.text("host.info.hostname"), hostname);
        assert_eq!(known.text("fqdn"), fqdn);
        assert_eq!(known.json("domain"), domain);
    }
}

#[test]
fn the_kernel_says_what_it_is() {
    let known = Known::recorded("ubuntu");
    assert_eq!(known.text("kernel"), "5.15.0-91-generic");
    assert_eq!(known.text("host.info.kernelVersion"), "5.15.0-91-generic");
    assert_eq!(known.text("architecture"), "aarch64");
    assert_eq!(known.text("host.info.kernelArch"), "aarch64");
}

#[test]
fn guests_know_their_host() {
    for (machine, system, role) in [
        ("debian", "", ""),
        ("ubuntu", "vmware", "guest"),
        ("rocky", "kvm", "guest"),
        ("alpine", "podman", "guest"),
    ] {
        let known = Known::recorded(machine);
        assert_eq!(known.text("host.info.virtualizationSystem"), system, "{machine}");
        assert_eq!(known.text("host.info.virtualizationRole"), role, "{machine}");
    }
}

#[test]
fn a_host_is_known_by_its_firmware_its_installation_or_its_boot() {
    for (machine, id) in [
        ("rocky", "4c4c4544-0051-3810-8052-b2c04f4e5332"),
        ("debian", "01234567-89ab-cdef-0123-456789abcdef"),
        ("alpine", "11111111-2222-3333-4444-555555555555"),
        ("ubuntu", ""),
    ] {
        assert_eq!(Known::recorded(machine).text("host.info.hostId"), id);
    }
}

#[test]
fn time_and_processes_are_counted() {
    let known = Known::recorded("debian");
    assert_eq!(known.number("host.info.bootTime"), 1_700_000_000);
    assert_eq!(known.number("host.info.uptime"), 86_400);
    assert_eq!(known.number("host.info.procs"), 3);
}

#[test]
fn memory_is_in_bytes() {
    let known = Known::recorded("debian");
    assert_eq!(known.number("memory.virtual.total"), 8_000_000 * 1024);
    assert_eq!(known.number("memory.virtual.available"), 6_000_000 * 1024);
    assert_eq!(known.number("memory.virtual.used"), 2_000_000 * 1024);
    assert_eq!(known.json("memory.virtual.usedPercent"), "25");
    assert_eq!(known.number("memory.virtual.cached"), 3_300_000 * 1024);
    assert_eq!(known.number("memory.virtual.hugePagesTotal"), 4);
    assert_eq!(known.number("memory.virtual.hugePageSize"), 2048 * 1024);
    assert_eq!(
        known.json("memory.swap.info"),
        r#"{"total":2048000000,"used":512000000,"free":1536000000,"usedPercent":25,"sin":40960,"sout":81920}"#
    );
    assert_eq!(
        known.json("memory.swap.devices"),
        r#"[{"name":"/dev/sda2","usedBytes":512000000,"freeBytes":512000000},{"name":"/var/swap file","usedBytes":0,"freeBytes":1024000000}]"#
    );
}

#[test]
fn a_kernel_that_does_not_say_what_is_available_has_what_it_could_give_back() {
    let known = Known::recorded("rocky");
    assert_eq!(known.number("memory.virtual.available"), (100 + 50 + 200 + 50) * 1024);
    assert_eq!(known.json("memory.swap.info.usedPercent"), "0");
}

#[test]
fn processors_are_listed_one_by_one() {
    let known = Known::recorded("debian");
    assert_eq!(known.json("cpu.info.#"), "2");
    assert_eq!(
        known.json("cpu.info.1"),
        r#"{"cpu":1,"vendorId":"GenuineIntel","family":"6","model":"85","stepping":4,"physicalId":"0","coreId":"1","cores":1,"modelName":"Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz","mhz":3700,"cacheSize":22528,"flags":["fpu","vme","sse2","aes"],"microcode":"0x2007006"}"#
    );
}

#[test]
fn processors_of_arm_have_the_same_names() {
    let known = Known::recorded("ubuntu");
    assert_eq!(
        known.json("cpu.info.1"),
        r#"{"cpu":1,"vendorId":"0x41","family":"8","model":"0xd0c","stepping":1,"physicalId":"0","coreId":"1","cores":1,"modelName":"","mhz":0,"cacheSize":0,"flags":["fp","asimd","evtstrm","aes"],"microcode":""}"#
    );
}

#[test]
fn partitions_are_those_that_cannot_hang() {
    let known = Known::recorded("debian");
    assert_eq!(known.json("partition.partitions.#.mountpoint"), r#"["/","/boot/efi","/data","/mnt/docker"]"#);
    assert_eq!(
        known.json("partition.partitions.3"),
        r#"{"device":"/dev/sda1","mountpoint":"/mnt/docker","fstype":"ext4","opts":["rw","relatime","bind"]}"#
    );
    assert_eq!(known.json("partition.usage"), "[]");
}

#[test]
fn a_machine_of_which_nothing_is_known_has_all_its_names() {
    let nowhere = Known::of(std::path::Path::new("/nonexistent"), Vec::new(), Vec::new());
    let running = Known::running();
    let names = |known: &Known, path: &str| known.value(path).member_names();
    for path in ["host.info", "memory.virtual", "memory.swap.info", "network", "partition", "@this"] {
        assert_eq!(names(&nowhere, path), names(&running, path), "{path}");
    }
    assert_eq!(nowhere.text("host.info.platformFamily"), "");
    assert_eq!(nowhere.json("cpu.info"), "[]");
    assert_eq!(nowhere.json("network.primaryIP"), "null");
    assert_eq!(nowhere.json("domain"), r#""""#);
}

/// The kernel's answers were recorded in its own byte order.
#[cfg(target_endian = "little")]
mod network {
    use super::Known;

    #[test]
    fn interfaces_have_their_addresses() {
        let known = Known::recorded("debian");
        assert_eq!(known.json("network.interfaces.#.name"), r#"["lo","peth0","eth0","docker0"]"#);
        let eth0 = known.value(r#"network.interfaces.#(name=="eth0")"#);
        let hardware = eth0.member("hardwareAddr").unwrap();
        assert_eq!(hardware.as_str(), Some("02:00:00:00:00:10"));
        assert_eq!(eth0.member("mtu").unwrap().to_string(), "1500");
        assert_eq!(eth0.member("flags").unwrap().to_string(), r#"["up","broadcast","multicast","running"]"#);
        assert_eq!(
            known.json(r#"network.interfaces.#(name=="eth0").addrs.#.addr"#),
            r#"["192.0.2.10/24","192.0.2.11/24","2001:db8::99/64","2001:db8::10/64","fe80::10/64"]"#
        );
        assert_eq!(known.text(r#"network.interfaces.#(name=="lo").hardwareAddr"#), "");
    }

    #[test]
    fn the_default_address_is_the_first_lasting_one_of_the_way_out() {
        let known = Known::recorded("debian");
        assert_eq!(known.text("network.default_ipv4"), "192.0.2.10");
        assert_eq!(known.text("network.default_ipv6"), "2001:db8::10");
        assert_eq!(known.text("network.primaryIP"), "192.0.2.10");
    }

    #[test]
    fn addresses_are_those_that_others_can_reach() {
        let known = Known::recorded("debian");
        assert_eq!(
            known.json("network.addresses.#.address"),
            r#"["192.0.2.10","192.0.2.11","2001:db8::99","2001:db8::10","172.17.0.1"]"#
        );
        assert_eq!(
            known.json("network.addresses.0"),
            r#"{"interface":"eth0","address":"192.0.2.10","prefix":24,"ipv4":true,"default":true}"#
        );
        assert_eq!(known.json("network.addresses.4.default"), "false");
    }

    #[test]
    fn the_cheapest_way_out_counts_and_a_net_of_one_address_is_one() {
        let known = Known::recorded("rocky");
        assert_eq!(known.text("network.default_ipv4"), "10.128.0.5");
        assert_eq!(known.json("network.default_ipv6"), "null");
    }

    #[test]
    fn the_own_end_of_a_tunnel_is_the_address() {
        let known = Known::recorded("rocky");
        let tunnel = known.value(r#"network.interfaces.#(name=="tun0")"#);
        assert_eq!(tunnel.member("addrs").unwrap().to_string(), r#"[{"addr":"10.9.0.2/32"}]"#);
        assert!(tunnel.member("flags").unwrap().to_string().contains("pointtopoint"));
    }

    #[test]
    fn a_machine_without_ipv4_is_known_by_its_ipv6_address() {
        let known = Known::recorded("ubuntu");
        assert_eq!(known.json("network.default_ipv4"), "null");
        assert_eq!(known.text("network.default_ipv6"), "2001:db8:1::20");
        assert_eq!(known.text("network.primaryIP"), "2001:db8:1::20");
    }

    #[test]
    fn a_machine_on_its_own_has_no_address() {
        let known = Known::recorded("alpine");
        assert_eq!(known.json("network.interfaces.#.name"), r#"["lo"]"#);
        assert_eq!(known.json("network.addresses"), "[]");
        assert_eq!(known.json("network.primaryIP"), "null");
    }
}
