//! Runs that change accounts, and are killed: the program itself, or `useradd` and its relatives in the middle of their work.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    accounts::{ANN, HASH, Machine},
    support::{Item, Tree, fits_strace, injection, side_by_side},
};

const USER: &str = "
- group: [{crew: {gid: 4100}}]
- user:
    - ccm-ann: { uid: 4200, groups: [crew], shell: /bin/sh, expires: 2035-01-31, manage_home: true, password: \"{{ Environ.HASH }}\",
        authorized_keys: [\"$ANN\"] }
";

/// Calls that change what others see. Between two of them it makes no difference where a program is killed.
const CHANGING: &[&str] = &["rename", "unlink", "symlink", "mkdir"];

/// The calls of a run before which to kill whoever makes them: name, and number among those of one process.
fn points(trace: &str) -> BTreeSet<(String, usize)> {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    let mut points = BTreeSet::new();
    for (pid, text) in trace.lines().filter_map(|line| line.split_once(' ')) {
        let name = text.trim_start().split('(').next().unwrap_or_default();
        let count = seen.entry((pid, name)).or_default();
        *count += 1;
        let matters = CHANGING.iter().any(|prefix| name.starts_with(prefix));
        if matters && !text.contains(" = -1 ") {
            points.insert((name.to_owned(), *count));
        }
    }
    points
}

/// What is to be the same, however often a run was killed before.
#[derive(Debug, PartialEq)]
struct Accounts {
    lines: Vec<Option<String>>,
    home: Vec<(String, Item)>,
}

impl Accounts {
    fn of(machine: &Machine) -> Self {
        let mut lines = vec![machine.line("passwd", "ccm-ann")];
        // What a killed `userdel` leaves in the other files of a user that is gone, none of the tools removes.
        if lines[0].is_some() {
            lines.push(machine.line("shadow", "ccm-ann"));
            lines.extend(["ccm-ann", "crew"].map(|group| machine.line("group", group)));
        }
        let items = Tree::of(&machine.world.path("home")).0.into_iter();
        let home =
            items.map(|(path, item)| (path.display().to_string(), Item { inode: 0, ..item })).collect();
        Self { lines, home }
    }
}

/// Kills a run, or a program that it started, before each of the changes. A home is there whole or not at all, the next
/// run finishes the work, and the one after it finds nothing to do.
fn killed_anywhere(before: &[&str], manifest: &str) {
    if !fits_strace() {
        return;
    }
    let manifest = manifest.replace("$ANN", ANN);
    let Some(start) = Machine::new() else { return };
    for manifest in before {
        start.apply(&manifest.replace("$ANN", ANN), "").exits(0);
    }
    fs::write(start.world.base().join("site.yaml"), &manifest).unwrap();
    let reference = start.copy();
    reference.run("strace -f -qq -s 0 -e signal=none -o trace $CCM apply site.yaml").exits(0);
    let wanted = Accounts::of(&reference);
    let points = points(&fs::read_to_string(reference.world.base().join("trace")).unwrap());
    assert!(points.len() > 5, "{points:?}");
    let kills = AtomicUsize::new(0);
    side_by_side(points, |(call, number)| {
        let machine = start.copy();
        let at = format!("killed before {call} number {number}");
        let strace = injection(&call, "signal=KILL", number, Path::new("trace")).join(" ");
        let run = machine.run(&format!("{strace} $CCM apply site.yaml"));
        if run.code != 0 {
            kills.fetch_add(1, Ordering::Relaxed);
        }
        let next = machine.run("ccm apply site.yaml");
        assert_eq!(next.code, 0, "{at}\n{run}\nthen\n{next}");
        assert_eq!(Accounts::of(&machine), wanted, "{at}\n{run}\nthen\n{next}");
        let third = machine.run("ccm apply site.yaml --detailed-exitcode");
        assert_eq!(third.code, 0, "{at}, then twice\n{third}");
        for folder in ["home", "etc"] {
            assert_eq!(Tree::of(&machine.world.path(folder)).leftovers(), [""; 0], "{at}");
        }
    });
    assert!(kills.into_inner() > 5, "the runs were killed");
    assert!(wanted.lines.iter().flatten().all(|line| !line.contains("salt") || line.contains(HASH)));
}

#[test]
fn a_run_killed_while_it_makes_a_user_is_finished_by_the_next() {
    killed_anywhere(&[], USER);
}

#[test]
fn a_run_killed_while_it_moves_a_home_is_finished_by_the_next() {
    let moved = USER.replace("manage_home: true", "manage_home: true, home: /home/moved, comment: Ann");
    killed_anywhere(&[USER], &moved);
}

#[test]
fn a_run_killed_while_it_removes_a_user_is_finished_by_the_next() {
    let gone = "- user: [{ccm-ann: {ensure: absent, manage_home: true, force: true}}]\n- group: [{crew: {ensure: absent}}]";
    killed_anywhere(&[USER], gone);
}

/// A `useradd` that a killed run leaves at work is waited for: terminated, it would leave its locks behind.
#[test]
fn next_run_waits_for_the_tool_of_a_killed_run() {
    let Some(machine) = Machine::new() else { return };
    let manifest = "- user: [{ ccm-ann: { uid: 4200 } }]\n";
    fs::write(machine.world.base().join("site.yaml"), manifest).unwrap();
    let slow = format!(
        "#!/bin/sh\ncd {}\ntrap 'touch killed; exit 1' TERM\ntouch begun\nread go <>go\n/usr/sbin/useradd \"$@\"\n",
        machine.world.base().display()
    );
    fs::write(machine.world.base().join("useradd"), slow).unwrap();
    let outcome = machine.run(
        "mkfifo go; chmod +x useradd
         PATH=$PWD:$PATH $CCM apply site.yaml & first=$!
         until [ -e begun ]; do sleep 0.01; done
         kill -KILL $first; wait $first
         ccm apply site.yaml >out 2>&1 & next=$!
         until grep -q waiting out || ! kill -0 $next; do sleep 0.01; done
         echo go 1<>go >go
         wait $next; code=$?
         cat out; [ ! -e killed ] && exit $code",
    );
    let waiting = "waiting for a command that a run that was killed had left running: ";
    outcome.exits(0).says(waiting).never_says(" changed");
    assert!(machine.line("passwd", "ccm-ann").is_some(), "{outcome}");
    assert_eq!(Tree::of(&machine.world.path("etc")).leftovers(), [""; 0]);
}

#[test]
fn lock_of_a_tool_that_was_killed_and_not_reaped_is_removed() {
    let Some(machine) = Machine::new() else { return };
    let manifest = "- user: [{ ccm-ann: { uid: 4200 } }]\n";
    fs::write(machine.world.base().join("site.yaml"), manifest).unwrap();
    // The parent of the process that holds the lock becomes `sleep`, which reaps nothing.
    let outcome = machine.run(
        "sh -c 'sh -c \"exec cat\" <&- & echo $! >pid; exec sleep 1000' & parent=$!
         until [ -s pid ] && grep -q ' Z ' /proc/$(cat pid)/stat; do sleep 0.01; done
         cp pid /etc/passwd.lock
         ccm apply site.yaml; code=$?
         kill $parent; exit $code",
    );
    outcome.exits(0).says("1 changed");
    assert!(machine.line("passwd", "ccm-ann").is_some(), "{outcome}");
}
