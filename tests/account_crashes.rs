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
