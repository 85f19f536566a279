//! Kills at every moment: what is there is old or new, and the next run finishes the work.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{EXTRACT, manifest, sha256, tarball};
use crate::support::{
    Syscall, Trace, World, fits_strace,
    http::{Manner, Reply, Server},
    injection, side_by_side, tampered, wait_until,
};

/// System calls that change something.
const CHANGING: [&str; 14] = [
    "renameat",
    "renameat2",
    "unlinkat",
    "mkdirat",
    "symlinkat",
    "linkat",
    "fchmod",
    "fchown",
    "fchownat",
    "write",
    "fsync",
    "syncfs",
    "ftruncate",
    "utimensat",
];

fn one() -> Vec<u8> {
    tarball(&[("bin/app", "1"), ("bin/old", "old"), ("share/readme", "one"), ("turn/file", "x")])
}

fn two() -> Vec<u8> {
    tarball(&[
        ("bin/app", "2"),
        ("bin/new", "new"),
        ("share/readme", "two"),
        ("share/deep/file", "x"),
        ("turn", "x"),
    ])
}

fn server() -> Server {
    Server::start(|request| Reply::body(if request.path.starts_with("/1") { one() } else { two() }))
}

fn version(server: &Server, number: u32, body: &[u8], more: &str) -> String {
    manifest(
        &server.url(&format!("/{number}/app.tar.gz")),
        &format!("{EXTRACT}, checksum: {}{more}", sha256(body)),
    )
}

/// Kills a run before each of its changes, one after the other, each time in a world of its own.
#[track_caller]
fn kill_at_every_change(world: impl Fn() -> World + Sync, check: impl Fn(&World, &str) + Sync) {
    let kills = AtomicUsize::new(0);
    side_by_side(CHANGING, |call| {
        for time in 1.. {
            let world = world();
            let strace = injection(call, "signal=KILL", time, Path::new("/dev/null"));
            let outcome = world.ccm(["apply", "site.yaml"]).under(strace).run();
            assert!([0, -9, 137].contains(&outcome.code), "{outcome}");
            check(&world, &format!("{call} {time}"));
            if outcome.code == 0 {
                break;
            }
            kills.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(kills.load(Ordering::Relaxed) > 30, "only {kills:?} changes");
}

fn content(world: &World, name: &str) -> Option<String> {
    fs::read_to_string(world.path(name)).ok()
}

#[track_caller]
fn finishes(world: &World, names: &[&str]) {
    world.apply().exits(0);
    let tree = world.tree();
    assert!(tree.leftovers().is_empty(), "{tree:?}");
    assert_eq!(tree.names(), names);
    world.apply().exits(0).counts([0, 1, 0, 0]);
    let names = fs::read_dir(world.state().join("archives"))
        .expect("records")
        .map(|entry| entry.unwrap().file_name());
    let mut endings: Vec<String> =
        names.map(|name| name.to_string_lossy().rsplit('.').next().unwrap_or_default().to_owned()).collect();
    endings.sort();
    assert_eq!(endings, ["json", "list", "lock"], "a record, its list, and nothing that a killed run left");
}

#[test]
fn a_first_extraction_is_all_or_nothing_wherever_it_is_killed() {
    if !fits_strace() {
        return;
    }
    let server = server();
    let begin = || World::new().manifest(&version(&server, 1, &one(), ", cleanup: true"));
    kill_at_every_change(begin, |world, moment| {
        let found = ["opt/bin/app", "opt/bin/old", "opt/share/readme"].map(|name| content(world, name));
        let all = ["1", "old", "one"].map(|content| Some(content.to_owned()));
        assert!(found == [None, None, None] || found == all, "{moment}: {found:?}");
        finishes(
            world,
            &[
                "opt",
                "opt/bin",
                "opt/bin/app",
                "opt/bin/old",
                "opt/share",
                "opt/share/readme",
                "opt/turn",
                "opt/turn/file",
            ],
        );
    });
}

#[test]
fn an_upgrade_leaves_every_file_old_or_new_wherever_it_is_killed() {
    if !fits_strace() {
        return;
    }
    let server = server();
    let begin = || {
        let world = World::new().manifest(&version(&server, 1, &one(), ""));
        world.apply().exits(0);
        world.manifest(&version(&server, 2, &two(), ""))
    };
    kill_at_every_change(begin, |world, moment| {
        for (name, old, new) in [
            ("opt/bin/app", Some("1"), Some("2")),
            ("opt/share/readme", Some("one"), Some("two")),
            ("opt/bin/new", None, Some("new")),
            ("opt/bin/old", Some("old"), None),
        ] {
            let found = content(world, name);
            assert!(found.as_deref() == old || found.as_deref() == new, "{moment}: {name} is {found:?}");
        }
        let turned = ["opt/turn/file", "opt/turn"].map(|name| content(world, name).is_some());
        assert!(turned[0] != turned[1], "{moment}: {turned:?}");
        if content(world, "opt/bin/app").as_deref() == Some("2") {
            assert_eq!(
                content(world, "opt/share/readme").as_deref(),
                Some("two"),
                "what creates names comes last"
            );
        }
        let archive = fs::read(world.path("app.tar.gz")).unwrap();
        assert!(archive == one() || archive == two(), "{moment}");
        let names = [
            "app.tar.gz",
            "opt",
            "opt/bin",
            "opt/bin/app",
            "opt/bin/new",
            "opt/share",
            "opt/share/deep",
            "opt/share/deep/file",
            "opt/share/readme",
            "opt/turn",
        ];
        finishes(world, &names);
        assert_eq!(
            (world.read("opt/bin/app").as_str(), world.read("opt/share/readme").as_str()),
            ("2", "two")
        );
    });
}

#[test]
fn a_kill_in_the_middle_of_a_download_leaves_nothing_that_the_next_run_does_not_sweep() {
    let body = tarball(&[("bin/app", super::noise(400_000))]);
    for manner in [Manner::Stall(0), Manner::Stall(100_000)] {
        let sent = body.clone();
        let stalled = Server::start(move |_| Reply::body(sent.clone()).manner(manner));
        let world = World::new().manifest(&manifest(&stalled.url("/app.tar.gz"), EXTRACT));
        let mut child = world.ccm(["apply", "site.yaml"]).start();
        // Once something is written, the run is in the middle of it.
        let written =
            || world.tree().0.iter().any(|(path, item)| is_temporary(path) && item.content().is_some());
        wait_until("it is in the middle", || !stalled.requests().is_empty() && written());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(content(&world, "opt/bin/app").is_none() && !world.path("app.tar.gz").exists());
        let sent = body.clone();
        let server = Server::start(move |_| Reply::body(sent.clone()));
        let world = world.manifest(&manifest(&server.url("/app.tar.gz"), EXTRACT));
        finishes(&world, &["app.tar.gz", "opt", "opt/bin", "opt/bin/app"]);
    }
}

#[test]
fn what_cannot_be_removed_now_is_swept_by_the_next_run() {
    if !fits_strace() {
        return;
    }
    let server = server();
    let other = format!(", checksum: {}", sha256(b"other"));
    for refused in ["", &other] {
        let properties = format!("{EXTRACT}{refused}");
        let world = World::new().manifest(&manifest(&server.url("/1/app.tar.gz"), &properties));
        let world = world.file("opt/mine", "mine");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=unlinkat:error=EIO"];
        let outcome = world.ccm(["apply", "site.yaml"]).under(strace).run();
        outcome.exits(i32::from(!refused.is_empty()));
        assert!(!world.tree().leftovers().is_empty());
        // Nothing has to be done any more, and nothing is written there.
        let world = world.file("opt/bin/app", "by hand");
        world.apply().exits(0).counts([0, 1, 0, 0]);
        assert!(world.tree().leftovers().is_empty(), "{:?}", world.tree());
    }
}

fn is_temporary(path: &Path) -> bool {
    path.to_string_lossy().contains(".ccm-")
}

#[test]
fn an_unpacked_tree_is_on_disk_before_it_appears_and_does_not_appear_when_it_cannot_be() {
    if !fits_strace() {
        return;
    }
    let server = server();
    for exists in [false, true] {
        let make = || {
            let world = World::new().manifest(&version(&server, 1, &one(), ", tries: 1"));
            if exists { world.file("opt/bin/other", "x") } else { world }
        };
        let world = make();
        let trace = Trace::of(&world, &[]);
        trace.outcome.exits(0);
        let is_sync = |call: &Syscall| call.name() == "syncfs" && call.is_below(&world.path(""));
        let sync = trace.calls.iter().position(is_sync).expect("the tree is brought to disk");
        // The archive itself is renamed before; what is renamed after the sync is the tree.
        let renames = |call: &&Syscall| call.name().starts_with("rename") && call.is_below(&world.path(""));
        let before_sync = trace.calls[..sync].iter().filter(renames).count();
        assert!(
            before_sync <= 1 && trace.calls[sync..].iter().any(|call| renames(&call)),
            "{:#?}",
            trace.calls
        );
        let world = make();
        let before = world.tree();
        let outcome = tampered(&world, &trace.calls[sync], "error=EIO");
        outcome.exits(1);
        assert_eq!(content(&world, "opt/bin/app"), None, "{outcome}");
        assert_eq!(before.item("opt").is_some(), world.path("opt").exists(), "{outcome}");
    }
}
