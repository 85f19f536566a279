//! Mounts, in a mount namespace with an `/etc/fstab` of its own.

use std::fs;

use crate::support::{Machine, World};

fn machine() -> Option<Machine> {
    let prepare = "mount -t overlay -o lowerdir=/etc,upperdir=$W/etc,workdir=$W/work overlay /etc
            printf '# mine\\n/dev/vda1 / ext4 defaults 0 1' > /etc/fstab";
    Machine::new(World::new().dir("etc").dir("work").dir("m"), prepare)
}

fn fstab(machine: &Machine) -> String {
    fs::read_to_string(machine.world.path("etc/fstab")).unwrap()
}

/// Returns type and options of each mount at a path, the first one first.
fn mounts_at(machine: &Machine, path: &str) -> Vec<String> {
    let path = machine.world.fill(path).replace(' ', "\\040");
    let lines = machine.namespace.sh("cat /proc/self/mounts");
    let fields = lines.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.filter(|fields| fields[1] == path).map(|fields| format!("{} {}", fields[2], fields[3])).collect()
}

const TEXT: &str = "# mine\n/dev/vda1 / ext4 defaults 0 1\n";

#[test]
fn file_system_is_mounted_once_and_has_an_entry() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares(
        "mount",
        "    - $W/m/a: { device: tmpfs, fstype: tmpfs, options: [size=1M, nofail, nosuid] }\n",
    );
    machine
        .noop()
        .exits(0)
        .says("Would have created the mount point. Would have mounted. Would have updated /etc/fstab")
        .says("+tmpfs");
    assert!(mounts_at(&machine, "$W/m/a").is_empty());
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    let entry = machine.world.fill("tmpfs $W/m/a tmpfs size=1M,nofail,nosuid 0 0\n");
    assert_eq!(fstab(&machine), format!("{TEXT}{entry}"));
    let mounts = mounts_at(&machine, "$W/m/a");
    assert!(mounts.len() == 1 && mounts[0].starts_with("tmpfs rw,nosuid"), "{mounts:?}");
    machine.apply().exits(0).counts([0, 1, 0, 0]);

    // It is unmounted by hand, and its options are changed by hand.
    machine.namespace.sh(&machine.world.fill("umount $W/m/a"));
    machine.noop().exits(0).says("Would have mounted").never_says("fstab");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    machine.namespace.sh(&machine.world.fill("mount -o remount,ro,noexec $W/m/a"));
    machine.noop().exits(0).says("Would have remounted");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    let mounts = mounts_at(&machine, "$W/m/a");
    assert!(
        mounts.len() == 1 && mounts[0].starts_with("tmpfs rw,nosuid") && !mounts[0].contains("noexec"),
        "{mounts:?}"
    );
    let machine = machine.declares(
        "mount",
        "    - $W/m/a: { device: tmpfs, fstype: tmpfs, options: 'size=2M,nofail,nosuid,noexec' }\n",
    );
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    let mounts = mounts_at(&machine, "$W/m/a");
    assert!(mounts[0].contains("noexec") && mounts[0].contains("size=2048k"), "{mounts:?}");
    machine.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn bind_mount_is_not_stacked() {
    let Some(machine) = machine() else { return };
    fs::create_dir(machine.world.path("source")).unwrap();
    let machine = machine.declares("mount", "    - $W/m/b: { device: $W/source, options: [bind, ro] }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    let mounts = mounts_at(&machine, "$W/m/b");
    assert!(mounts.len() == 1 && mounts[0].contains(" ro"), "{mounts:?}");
    let entry = machine.world.fill("$W/source $W/m/b none bind,ro 0 0\n");
    assert_eq!(fstab(&machine), format!("{TEXT}{entry}"));
    let machine = machine.declares("mount", "    - $W/m/b: { ensure: absent }\n");
    machine.noop().exits(0).says("Would have unmounted. Would have updated /etc/fstab");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!((fstab(&machine).as_str(), mounts_at(&machine, "$W/m/b").len()), (TEXT, 0));
    // The bind mount comes back.
    machine.call(&["undo", "last"]).run().exits(0);
    let mounts = mounts_at(&machine, "$W/m/b");
    assert!(mounts.len() == 1 && mounts[0].contains(" ro"), "{mounts:?}");
    assert_eq!(fstab(&machine), format!("{TEXT}{entry}"));
}

#[test]
fn other_file_system_at_the_mount_point_is_named_and_replaced_only_by_force() {
    let Some(machine) = machine() else { return };
    fs::create_dir(machine.world.path("source")).unwrap();
    let items = "    - $W/m/c: { device: $W/source, options: [bind] }\n";
    let machine = machine.declares("mount", items);
    machine.apply().exits(0);
    machine.namespace.sh(&machine.world.fill("mount -t tmpfs -o size=64k other $W/m/c"));
    machine.apply().exits(1).says("other (tmpfs) is mounted at").says("force: true");
    assert_eq!(mounts_at(&machine, "$W/m/c").len(), 2);
    let machine =
        machine.declares("mount", "    - $W/m/c: { device: $W/source, options: [bind], force: true }\n");
    machine.apply();
    assert!(mounts_at(&machine, "$W/m/c").iter().all(|mount| !mount.contains("size=64k")));
}

#[test]
fn states_without_a_mount_or_without_an_entry() {
    let Some(machine) = machine() else { return };
    let machine =
        machine.declares("mount", "    - $W/m/d: { ensure: present, device: tmpfs, fstype: tmpfs }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert!(mounts_at(&machine, "$W/m/d").is_empty() && !machine.world.path("m/d").exists());
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    machine.namespace.sh(&machine.world.fill("mkdir $W/m/d && mount $W/m/d"));
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    let machine = machine.declares("mount", "    - $W/m/d: { ensure: unmounted }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert!(mounts_at(&machine, "$W/m/d").is_empty() && fstab(&machine).lines().count() == 3);
    let machine = machine.declares("mount", "    - $W/m/d: { device: tmpfs, fstype: tmpfs, live: false }\n");
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    let machine = machine.declares("mount", "    - $W/m/d: { ensure: absent }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(fstab(&machine), TEXT);
}

#[test]
fn busy_mount_fails_and_names_its_users() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("mount", "    - $W/m/e: { device: tmpfs, fstype: tmpfs }\n");
    machine.apply().exits(0);
    machine
        .namespace
        .sh(&machine.world.fill("cd $W/m/e; sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > $W/pid"));
    let pid = machine.world.read("pid");
    let machine = machine.declares("mount", "    - $W/m/e: { ensure: absent }\n");
    machine.apply().exits(1).says("is in use by sleep (pid");
    assert_eq!(mounts_at(&machine, "$W/m/e").len(), 1);
    machine.namespace.sh(&format!("kill {}", pid.trim()));
}

#[test]
fn names_with_spaces_and_double_entries() {
    let Some(machine) = machine() else { return };
    let machine = machine.declares("mount", "    - '$W/m/a b': { device: tmpfs, fstype: tmpfs }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    machine.apply().exits(0).counts([0, 1, 0, 0]);
    assert!(fstab(&machine).contains("/m/a\\040b tmpfs defaults 0 0\n"));
    machine.namespace.sh("tail -1 /etc/fstab >> /etc/fstab");
    machine.apply().exits(1).says("/etc/fstab has two entries for").says("lines 3 and 4");
}

#[test]
fn undo_removes_the_mount_the_entry_and_the_mount_point() {
    let Some(machine) = machine() else { return };
    let before = fstab(&machine);
    let machine = machine.declares("mount", "    - $W/m/f: { device: tmpfs, fstype: tmpfs }\n");
    machine.apply().exits(0).counts([1, 0, 0, 0]);
    machine.call(&["undo", "last"]).run().exits(0);
    assert_eq!((fstab(&machine), mounts_at(&machine, "$W/m/f").len()), (before, 0));
    assert!(!machine.world.path("m/f").exists());
}

#[test]
fn missing_device_is_an_error_of_the_dry_run_too() {
    let Some(machine) = machine() else { return };
    let machine =
        machine.declares("mount", "    - $W/m/g: { device: UUID=00000000-no-such, fstype: ext4 }\n");
    machine.noop().exits(1).says("the device UUID=00000000-no-such does not exist");
    machine.apply().exits(1).says("mount failed");
    assert_eq!(fstab(&machine).lines().count(), 2);
}

#[test]
fn bad_declarations_are_rejected_at_their_line() {
    for (item, message) in [
        ("/mnt: {}", "a mount needs a device"),
        ("/mnt: { device: /dev/sdb1 }", "a mount needs the type of its file system"),
        ("/mnt/: { device: a, fstype: b }", "write \"/mnt\""),
        ("mnt: { device: a, fstype: b }", "must be absolute"),
        ("/: { device: a, fstype: b }", "the root file system is not managed"),
        ("/mnt: { device: \"a\\nb\", fstype: b }", "line break"),
        ("/mnt: { device: a, fstype: b, options: [a, ''] }", "is not a mount option"),
        ("/mnt: { device: a, fstype: ext4, size: 1GiB }", "only a swap file has a size"),
        ("/mnt: { device: 'UUID=\"1\"', fstype: ext4 }", "quotes"),
    ] {
        let world = World::new().manifest(&format!("- mount:\n    - {item}\n"));
        let run = world.ccm(["validate", "site.yaml"]).run();
        assert_eq!(run.code, 2, "{item}\n{}", run.stderr);
        run.complains(message).complains("site.yaml:2:");
    }
}
