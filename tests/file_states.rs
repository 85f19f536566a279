//! The file type: its decision table, what it compares, and the words it has for it.

use std::fs;

use crate::support::{World, is_root};

/// One resource at `$W/x` in a world that is made ready: what it does the first time, and that the second is stable.
#[track_caller]
fn converges(world: World, properties: &str, done: &str, ensure: &str) -> World {
    let world = world.manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"));
    let before = world.tree();
    let noop = world.apply_with(&["--noop"]);
    noop.exits(0).reports(&world.fill("file#$W/x"), &format!("Would have {done}")).counts([1, 0, 0, 0]);
    assert_eq!(world.tree(), before, "a dry run changes nothing");
    let noop = world.apply_with(&["--noop", "--json"]).event("/x");
    // What differs is for people; the event says it by its properties and status.
    let message = format!("Would have {}", done.split(" (").next().unwrap());
    assert_eq!(noop["noop_message"], message.as_str());
    assert_eq!((&noop["changed"], &noop["noop"]), (&true.into(), &true.into()));

    let run = world.apply();
    run.exits(0)
        .reports(&world.fill("file#$W/x"), done)
        .says(&format!("ensure={ensure} "))
        .counts([1, 0, 0, 0]);
    stable(&world, ensure);
    world
}

/// Nothing is left to do, and nothing is done.
#[track_caller]
fn stable(world: &World, ensure: &str) {
    let before = world.tree();
    let run = world.apply();
    run.exits(0).reports(&world.fill("file#$W/x"), "unchanged").says(&format!("ensure={ensure} "));
    run.counts([0, 1, 0, 0]);
    assert_eq!(world.tree(), before);
}

const FILE: &str = "content: new, $OWN, mode: '0644'";
const DIRECTORY: &str = "ensure: directory, $OWN, mode: '0755'";

fn made(properties: &str) -> World {
    World::new().manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"))
}

#[test]
fn wanted_absent_is_absent_nothing_happens() {
    stable(&made("ensure: absent"), "absent");
}

#[test]
fn wanted_absent_is_present_it_is_removed() {
    let world = converges(World::new().file("x", "old"), "ensure: absent", "removed the file", "absent");
    assert!(world.tree().names().is_empty());
}

#[test]
fn wanted_absent_is_directory_it_is_removed() {
    let world = converges(World::new().dir("x"), "ensure: absent", "removed the directory", "absent");
    assert!(world.tree().names().is_empty());
}

#[test]
fn wanted_directory_is_directory_with_matching_attributes_nothing_happens() {
    stable(&made(DIRECTORY).dir("x"), "directory");
}

#[test]
fn wanted_directory_is_absent_it_is_created() {
    let world = converges(World::new(), DIRECTORY, "created directory", "directory");
    assert_eq!(world.tree().item("x").unwrap().mode, 0o755);
}

#[test]
fn wanted_directory_is_present_the_file_is_replaced_with_force() {
    let world = converges(
        World::new().file("x", "old"),
        &format!("{DIRECTORY}, force: true"),
        "created directory in place of a file",
        "directory",
    );
    assert!(world.tree().item("x").unwrap().is_directory());
    assert_eq!(world.tree().names(), ["x"]);
}

#[test]
fn whoever_may_read_or_write_a_directory_may_search_it() {
    for (mode, expected) in [("0644", 0o755), ("0640", 0o750), ("0200", 0o300), ("0711", 0o711), ("0", 0)] {
        let world = World::new().files(&format!("- $W/x: {{ ensure: directory, mode: '{mode}' }}"));
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.tree().item("x").unwrap().mode, expected, "{mode}");
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn wanted_directory_is_directory_with_wrong_attributes_they_are_set() {
    let world = World::new().dir("x").file("x/inside", "kept").mode("x", 0o700);
    let inode = world.tree().item("x").unwrap().inode;
    let world = converges(world, DIRECTORY, "updated directory (mode 0700 -> 0755)", "directory");
    let tree = world.tree();
    assert_eq!((tree.item("x").unwrap().mode, tree.item("x").unwrap().inode), (0o755, inode));
    assert_eq!(world.read("x/inside"), "kept");
}

#[test]
fn wanted_present_is_present_and_all_matches_nothing_happens() {
    stable(&made(FILE).file("x", "new"), "present");
}

#[test]
fn wanted_present_is_absent_it_is_stored() {
    let world = converges(World::new(), FILE, "created the file", "present");
    assert_eq!(world.read("x"), "new");
    assert_eq!(world.tree().item("x").unwrap().mode, 0o644);
}

#[test]
fn wanted_present_has_wrong_content_it_is_stored() {
    let world = converges(World::new().file("x", "old"), FILE, "updated the file (content)", "present");
    assert_eq!(world.read("x"), "new");
}

#[test]
fn wanted_present_has_wrong_attributes_they_are_set() {
    let world = World::new().file("x", "new").mode("x", 0o600);
    let world = converges(world, FILE, "updated the file (mode 0600 -> 0644)", "present");
    assert_eq!(world.tree().item("x").unwrap().mode, 0o644);
}

#[test]
fn what_differs_is_told_in_the_order_content_owner_group_mode() {
    if !is_root() {
        return;
    }
    let world = World::new().file("x", "old").mode("x", 0o600).owner("x", 1, 2);
    let properties = "content: new, owner: root, group: root, mode: '0644'";
    let done = "updated the file (content, owner daemon -> root, group bin -> root, mode 0600 -> 0644)";
    let world = converges(world, properties, done, "present");
    let item = world.tree().item("x").unwrap().clone();
    assert_eq!((item.uid, item.gid, item.mode, item.content()), (0, 0, 0o644, Some(&b"new"[..])));
}

#[test]
fn owner_or_group_alone_is_drift() {
    if !is_root() {
        return;
    }
    for (uid, gid, told) in
        [(1, 0, "owner daemon -> root"), (0, 2, "group bin -> root"), (4_000_000, 0, "owner 4000000 -> root")]
    {
        for (properties, what) in [
            ("owner: root, group: root, mode: '0750'", "the file"),
            ("ensure: directory, owner: root, group: root, mode: '0750'", "directory"),
        ] {
            let world =
                if what == "directory" { World::new().dir("x") } else { World::new().file("x", "kept") };
            let world = world.mode("x", 0o750).owner("x", uid, gid);
            converges(
                world,
                properties,
                &format!("updated {what} ({told})"),
                if what == "directory" { "directory" } else { "present" },
            );
        }
    }
}

#[test]
fn every_form_of_a_mode_means_the_same() {
    for mode in ["\"0644\"", "\"644\"", "\"0o644\"", "\"0O644\"", "0644", "644", "0o644"] {
        stable(&made(&format!("content: x, $OWN, mode: {mode}")).file("x", "x"), "present");
    }
    for (mode, bits) in
        [("\"0\"", 0), ("\"0777\"", 0o777), ("7", 0o7), ("0007", 0o7), ("\"0o700\"", 0o700), ("0400", 0o400)]
    {
        // Whoever is not root has to be able to read a file to compare it.
        if bits & 0o400 == 0 && !is_root() {
            continue;
        }
        let world = made(&format!("content: x, $OWN, mode: {mode}"));
        world.apply().exits(0);
        assert_eq!(world.tree().item("x").unwrap().mode, bits, "{mode}");
    }
}

#[test]
fn modes_that_are_not_octal_or_too_large_are_refused() {
    for (mode, message) in [
        ("\"0999\"", "\"0999\" is not a mode"),
        ("0648", "\"0648\" is not a mode"),
        ("\"u=rw\"", "\"u=rw\" is not a mode"),
        ("\"\"", "\"\" is not a mode"),
        ("-644", "\"-644\" is not a mode"),
        ("0x1a4", "\"0x1a4\" is not a mode"),
        ("6.44", "\"6.44\" is not a mode"),
        ("\"01777\"", "mode \"01777\" is more than 0777"),
        ("\"4755\"", "mode \"4755\" is more than 0777"),
        ("1000", "mode \"1000\" is more than 0777"),
        ("true", ""),
        ("null", "`mode` is missing"),
    ] {
        let world = made(&format!("content: x, $OWN, mode: {mode}"));
        world.apply().exits(2).complains(message).complains("site.yaml:1:");
        assert!(world.tree().names().is_empty());
    }
}

#[test]
fn the_mode_is_what_was_asked_whatever_the_umask() {
    let world = World::new()
        .files("- $W/a: { content: x, mode: '0666' }\n- $W/d: { ensure: directory, mode: '0777' }\n");
    let umask = ["/bin/sh", "-c", "umask 077; exec \"$@\"", "sh"];
    world.ccm(["apply", "site.yaml"]).under(umask).run().exits(0);
    assert_eq!(world.tree().item("a").unwrap().mode, 0o666);
    assert_eq!(world.tree().item("d").unwrap().mode, 0o777);
}

#[test]
fn paths_have_to_be_absolute_and_clean() {
    for (path, message) in [
        ("etc/motd", "must be absolute: start it with /"),
        ("./x", "must be absolute"),
        ("$W/../x", "must be absolute and clean: write"),
        ("$W/./x", "must be absolute and clean: write"),
        ("$W//x", "must be absolute and clean: write"),
        ("$W/x/", "must be absolute and clean: write"),
        ("\"\"", "it has no name"),
        ("\"$W/a\\0b\"", "contains a null byte"),
    ] {
        let world = World::new().manifest(&format!("- file: [{{ {path}: {{ ensure: absent }} }}]"));
        world.apply().exits(2).complains(message).complains("site.yaml:1:12");
    }
}

#[test]
fn unusual_names_are_names_like_any_other() {
    for name in ["a b", "ünïcödé", "#hash", "-rf", "...", ".hidden", "a'b", "a\\b", "*", "$HOME", "{x}"] {
        let world = World::new();
        let manifest = serde_json::json!([{ "file": [{ world.path(name).to_str().unwrap(): {
            "content": name, "owner": world.fill("$UID"), "group": world.fill("$GID"), "mode": "0644" } }] }]);
        let world = world.beside("site.yaml", manifest.to_string());
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.read(name), name);
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn content_is_compared_byte_by_byte() {
    for (old, new) in
        [("a\n", "a"), ("a", "a\n"), ("", "a"), ("a", ""), ("A", "a"), ("a\r\n", "a\n"), ("ä", "a")]
    {
        let manifest =
            format!("- file: [{{ $W/x: {{ content: {}, $OWN, mode: '0644' }} }}]", serde_json::json!(new));
        let world = World::new().file("x", old).manifest(&manifest);
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.read("x"), new);
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn a_source_is_copied_and_compared_by_its_bytes() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let world = World::new().beside("files/data.bin", &bytes).file("x", "old");
    let world = converges(
        world,
        "source: files/data.bin, $OWN, mode: '0644'",
        "updated the file (source)",
        "present",
    );
    assert!(world.tree().item("x").unwrap().content() == Some(&bytes[..]));
    let world = world.beside("files/data.bin", "other");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), "other");
}

#[test]
fn a_relative_source_starts_at_the_folder_of_the_manifest() {
    let world = World::new().beside("site/files/a", "from the manifest").beside("files/a", "from here");
    let manifest = world.fill("- file: [{ $W/x: { source: files/a, $OWN, mode: '0644' } }]");
    let world = world.beside("site/manifest.yaml", &manifest);
    for argument in ["site", "site/manifest.yaml", "./site", "site/../site"] {
        world.ccm(["apply", argument]).run().exits(0);
        assert_eq!(world.read("x"), "from the manifest", "{argument}");
    }
    world.ccm(["apply", "-"]).input(&manifest).run().exits(0);
    assert_eq!(world.read("x"), "from here", "standard input has the current folder");
    let absolute = world.base().join("site/files/a").display().to_string();
    let flags = [
        "ensure", "file", "$W/x", "--source", &absolute, "--owner", "$UID", "--group", "$GID", "--mode",
        "0644",
    ];
    world.ccm(flags).run().exits(0);
    assert_eq!(world.read("x"), "from the manifest");
    let flags = [
        "ensure", "file", "$W/x", "--source", "files/a", "--owner", "$UID", "--group", "$GID", "--mode",
        "0644",
    ];
    world.ccm(flags).run().exits(0);
    assert_eq!(world.read("x"), "from here", "ensure has the current folder too");
}

#[test]
fn a_source_may_be_a_link_but_has_to_be_a_regular_file() {
    let world = World::new().beside("real", "content");
    std::os::unix::fs::symlink("real", world.base().join("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.base().join("fifo"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    fs::create_dir(world.base().join("folder")).unwrap();
    let mut world = world.manifest("- file: [{ $W/x: { source: link, $OWN, mode: '0644' } }]");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), "content");
    let with = |world: World, source: &str| {
        world.manifest(&format!("- file: [{{ $W/x: {{ source: {source}, $OWN, mode: '0644' }} }}]"))
    };
    for source in ["fifo", "folder", "/dev/zero", "/missing/x"] {
        world = with(world, source);
        world.apply().exits(1).says("cannot read source").says(source).says("site.yaml:1:");
        assert_eq!(world.read("x"), "content");
    }
    // What comes with the manifest is missed before anything is touched.
    for source in ["missing", "real/below"] {
        world = with(world, source);
        world.apply().exits(2).complains("there is no").complains(source).complains("site.yaml:1:");
        assert_eq!(world.read("x"), "content");
    }
}

#[test]
fn a_directory_is_made_with_its_parents() {
    let world = World::new().manifest("- file: [{ $W/a/b/c/x: { ensure: directory, $OWN, mode: '0700' } }]");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    let tree = world.tree();
    assert_eq!(tree.item("a/b/c/x").unwrap().mode, 0o700);
    for parent in ["a", "a/b", "a/b/c"] {
        assert_eq!(tree.item(parent).unwrap().mode, 0o755, "{parent}");
    }
    world.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn a_large_source_is_copied_in_bounded_memory() {
    const SIZE: u64 = 128 << 20;
    let world = World::new();
    fs::File::create(world.base().join("large")).unwrap().set_len(SIZE).unwrap();
    let world = world.manifest("- file: [{ $W/x: { source: large, $OWN, mode: '0644' } }]");
    let mut child = world.ccm(["apply", "site.yaml", "--diff"]).start();
    // The kernel keeps the peak in the process's status; it is read until the process is gone.
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        peak = now.unwrap_or(0).max(peak);
        std::thread::yield_now();
    }
    assert_eq!(fs::metadata(world.path("x")).unwrap().len(), SIZE);
    assert!((1_000..64_000).contains(&peak), "peak of {peak} kB");
    world.apply().exits(0).counts([0, 1, 0, 0]);
}
