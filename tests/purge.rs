//! Directories in which nothing is but what the manifest has in them.

use std::fs;

use crate::support::{World, has, is_root, skip};

fn full() -> World {
    World::new()
        .dir("d")
        .file("d/ours", "a")
        .file("d/litter", "a")
        .dir("d/sub")
        .file("d/sub/deep", "a")
        .dir("outside")
        .file("outside/kept", "a")
}

const PURGED: &str = "- $W/d: { ensure: directory, purge: true }\n- $W/d/ours: { content: a }\n";

#[test]
fn what_no_resource_manages_is_listed_and_removed() {
    let world = full().link("d/link", "$W/outside").files(PURGED);
    let before = world.tree();
    let noop = world.apply_with(&["--noop"]);
    noop.exits(0).says(
        "Would have updated directory (purge link -> absent, purge litter -> absent, purge sub -> absent)",
    );
    assert_eq!(world.tree(), before);
    world.apply().exits(0).counts([1, 1, 0, 0]).says("updated directory (purge link -> absent");
    assert_eq!(world.tree().names(), ["d", "d/ours", "outside", "outside/kept"], "links are not followed");
    world.apply().exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn what_any_resource_manages_is_spared_also_when_it_is_off() {
    let world =
        full().dir("d/tree").file("d/tree/any/thing", "a").file("d/made", "a").file("d/off", "a").manifest(
            "\
- file:
    - defaults: { $OWN, mode: '0644' }
    - $W/d: { ensure: directory, purge: true, ignore: ['*.keep', 'sub/*p'] }
    - $W/d/ours: { content: a }
    - $W/d/off: { content: a, control: { if: 'false' } }
    - $W/d/sub/other: { content: a }
- exec: [{ /bin/true: { creates: $W/d/made } }]
- archive: [{ $W/app.tgz: { ensure: absent, extract_parent: $W/d/tree } }]
",
        );
    let world = world.file("d/x.keep", "a").file("d/sub/gone", "a");
    world.apply_with(&["--noop"]).exits(0).says("(purge litter -> absent, purge sub/gone -> absent)");
    world.apply().exits(0);
    let names = world.tree().names();
    for spared in ["d/off", "d/made", "d/tree/any/thing", "d/x.keep", "d/sub/deep", "d/sub/other", "d/ours"] {
        assert!(names.iter().any(|name| name == spared), "{spared}: {names:?}");
    }
    assert!(!names.iter().any(|name| name == "d/litter" || name == "d/sub/gone"), "{names:?}");
}

#[test]
fn what_is_ignored_stays_wherever_it_is_and_so_does_what_it_is_in() {
    let world = World::new()
        .file("d/a.bak", "")
        .file("d/s/y.bak", "")
        .file("d/s/gone", "")
        .file("d/local/q/r", "")
        .file("d/deep/er/x.bak", "")
        .file("d/deep/gone/z", "");
    let world = world.manifest(
        "- file: [{ $W/d: { ensure: directory, purge: true, ignore: ['*.bak', 'local/*'], $OWN, mode: '0755' } }]",
    );
    let told = "(purge deep/gone -> absent, purge s/gone -> absent)";
    world.apply_with(&["--noop"]).exits(0).says(told);
    world.apply().exits(0).says(told);
    let left = ["d/a.bak", "d/deep/er/x.bak", "d/local/q/r", "d/s/y.bak"];
    let names = world.tree().names();
    assert!(left.iter().all(|name| names.iter().any(|there| there == name)), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("gone")), "{names:?}");
    world.apply().exits(0).never_says(" changed");
}

#[test]
fn what_resources_of_children_manage_is_spared_also_when_it_is_not_selected() {
    let child = "- file:\n    - $W/d/sub/deep: { $OWN, mode: '0644' }\n";
    let world = full().manifest(
        "- file: [{ $W/d: { ensure: directory, purge: true, $OWN, mode: '0755' } }]\n- apply: [{ child.yaml: {} }]\n",
    );
    let child = world.fill(child);
    let world = world.beside("child.yaml", child);
    world.apply_with(&["--skip", "apply#*"]).exits(0);
    assert_eq!(world.tree().names(), ["d", "d/sub", "d/sub/deep", "outside", "outside/kept"]);
}

#[test]
fn a_directory_of_its_own_in_a_purged_one_keeps_what_is_in_it() {
    let world = full().files(&format!("{PURGED}- $W/d/sub: {{ ensure: directory }}"));
    world.apply().exits(0);
    assert_eq!(world.read("d/sub/deep"), "a");
}

#[test]
fn a_dry_run_purges_what_earlier_resources_would_have_left() {
    let world = World::new()
        .files("- $W/d/litter/x: { ensure: directory }\n- $W/d: { ensure: directory, purge: true }\n");
    world.apply_with(&["--noop"]).exits(0);
    let world =
        full().files("- $W/d/litter: { ensure: absent }\n- $W/d: { ensure: directory, purge: true }\n");
    world.apply_with(&["--noop"]).exits(0).says("(purge ours -> absent, purge sub -> absent)");
}

#[test]
fn what_is_dear_needs_force() {
    for path in ["/", "/root", "/home", "/proc"] {
        if path == "/root" && !is_root() {
            continue;
        }
        let manifest = format!(
            "- file: [{{ {path}: {{ ensure: directory, purge: true, owner: root, group: root, mode: '0755' }} }}]"
        );
        let world = World::new().manifest(&manifest);
        world.apply_with(&["--noop"]).counts([0, 0, 1, 0]).says("which is not purged without being sure");
    }
    for (properties, message) in [
        ("purge: true, $OWN, mode: '0644'", "`purge` needs `ensure: directory`"),
        ("ensure: directory, ignore: [a], $OWN, mode: '0644'", "`ignore` needs `purge: true`"),
        ("ensure: directory, purge: true, ignore: [/a], $OWN, mode: '0644'", "is not a pattern"),
    ] {
        World::new()
            .manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"))
            .apply()
            .exits(2)
            .complains(message);
    }
}

#[test]
fn directory_with_files_of_packages_is_purged_only_by_force() {
    if !has("dpkg-query") {
        return;
    }
    // A directory with files of a package that every Debian has.
    let directory = "/usr/share/doc/base-files";
    let manifest = |purge: &str| {
        World::new().manifest(&format!(
            "- file:\n    - {directory}: {{ ensure: directory, purge: {purge}, owner: root, group: root, mode: '0755' }}\n"
        ))
    };
    if !std::path::Path::new(directory).is_dir() {
        skip("needs the files of base-files");
        return;
    }
    let world = manifest("true");
    world.apply_with(&["--noop"]).exits(1).says("packages own files in").says("belongs to `base-files`");
    world.apply_with(&["--noop"]).says("`purge: force`");
    let ignored = World::new().manifest(&format!(
        "- file:\n    - {directory}: {{ ensure: directory, purge: true, ignore: ['*'], owner: root, group: root, mode: '0755' }}\n"
    ));
    ignored.apply_with(&["--noop"]).exits(0);
    let world = manifest("force");
    world.apply_with(&["--noop"]).exits(0).says("purge ").says(" -> absent");
    let world = World::new()
        .beside("tree/a", "x")
        .manifest(&format!("- scaffold:\n    - {directory}: {{ source: tree, purge: true }}\n"));
    world.apply_with(&["--noop"]).exits(1).says("packages own files in");
}

#[test]
fn directory_with_files_of_rpm_packages_is_purged_only_by_force() {
    if !is_root() {
        return;
    }
    // The database only has to exist: this `rpm` answers as the real one does, in the order of its arguments.
    let rpm = "#!/bin/sh\nshift 3\nfor f; do case $f in */of-nginx) echo nginx;; *) echo \"file $f is not owned by any package\";; esac; done\n";
    let world = full().file("d/of-nginx", "a").beside("bin/rpm", rpm).files(PURGED);
    let script = format!(
        "chmod 755 {bin}/rpm; mkdir -p /var/lib/rpm; mount -t tmpfs none /var/lib/rpm; touch /var/lib/rpm/rpmdb.sqlite; \
         PATH={bin}:$PATH exec \"$@\"",
        bin = world.base().join("bin").display()
    );
    let apply = |flags: &[&str]| {
        let call = world.ccm(["apply", "site.yaml"].iter().chain(flags));
        call.under(["unshare", "-m", "sh", "-c", &script, "sh"]).run()
    };
    for flags in [&["--noop"][..], &[]] {
        let outcome = apply(flags);
        outcome
            .exits(1)
            .says("packages own files in")
            .says("of-nginx belongs to `nginx` and would be removed");
        assert!(world.path("d/litter").exists(), "{outcome}");
    }
    fs::remove_file(world.path("d/of-nginx")).unwrap();
    apply(&[]).exits(0);
    assert!(!world.path("d/litter").exists());
}

#[test]
fn purge_on_the_command_line_can_be_forced() {
    if !has("dpkg-query") || !std::path::Path::new("/usr/share/doc/base-files").is_dir() {
        skip("needs the files of base-files");
        return;
    }
    let world = World::new().dir("d").file("d/litter", "");
    let ensure = |directory: &str, more: &[&str]| {
        let line =
            ["ensure", "file", directory, "directory", "--owner", "0", "--group", "0", "--mode", "0755"];
        world.ccm(line.iter().chain(more)).run()
    };
    let packaged = "/usr/share/doc/base-files";
    ensure(packaged, &["--noop", "--purge"]).exits(1).says("`purge: force`");
    ensure(packaged, &["--noop", "--purge=true"]).exits(1).says("packages own files in");
    ensure(packaged, &["--noop", "--purge=force"]).exits(0).says(" -> absent");
    ensure(packaged, &["--noop", "--purge=force", "--no-purge"]).exits(0).never_says(" -> absent");
    ensure(packaged, &["--purge=always"]).exits(2).complains("always");
    if is_root() {
        ensure("$W/d", &["--purge"]).exits(0).says("purge litter -> absent");
    }
}
