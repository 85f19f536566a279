//! Refreshes that are owed: by which change, to whom, and for how long.

use std::{fs, thread};

use serde_json::{Value, json};

use crate::support::{
    Outcome, Syscall, Trace, Tree, World, fits_strace, side_by_side, tampered, tampered_command,
};

/// A manifest with files and a command that follows changes of them, and fails until `works` is there. Which files it
/// was run for is in the log named after the manifest.
fn manifest(world: World, name: &str, files: &[&str]) -> World {
    let file = |file: &&str| format!("    - $W/{file}: {{ content: x, $OWN, mode: '0644' }}\n");
    let names: Vec<_> = files.iter().map(|file| format!("file#$W/{file}")).collect();
    let text = format!(
        "\
- file:
{}- exec:
    - reload:
        command: \"sh -c 'test -e $W/works && echo x >> $W/{name}.log'\"
        refresh_only: true
        subscribe: [{}]
",
        files.iter().map(file).collect::<String>(),
        names.join(", "),
    );
    let text = world.fill(&text);
    world.beside(&format!("{name}.yaml"), text)
}

fn apply(world: &World, name: &str) -> Outcome {
    world.ccm(["apply", &format!("{name}.yaml")]).run()
}

/// How often the command of a manifest went well.
fn refreshes(world: &World, name: &str) -> usize {
    fs::read_to_string(world.path(&format!("{name}.log"))).map_or(0, |log| log.lines().count())
}

#[test]
fn manifests_whose_subscribers_have_the_same_name_pay_only_their_own_debts() {
    let world = manifest(manifest(World::new(), "a", &["x"]), "b", &["y"]);
    apply(&world, "a").exits(1);
    let world = world.file("works", "");
    apply(&world, "b").exits(0).counts([2, 0, 0, 0]);
    apply(&world, "a").exits(0).counts([1, 1, 0, 0]).reports("exec#reload", "executed via subscribe");
    for name in ["a", "b"] {
        apply(&world, name).exits(0).counts([0, 2, 0, 0]);
        assert_eq!(refreshes(&world, name), 1, "{name}");
    }
}

#[test]
fn two_manifests_can_owe_a_refresh_to_subscribers_of_the_same_name() {
    let world = manifest(manifest(World::new(), "a", &["x"]), "b", &["y"]);
    apply(&world, "a").exits(1);
    apply(&world, "b").exits(1);
    let world = world.file("works", "");
    for name in ["a", "b"] {
        apply(&world, name).exits(0).counts([1, 1, 0, 0]);
        apply(&world, name).exits(0).counts([0, 2, 0, 0]);
        assert_eq!(refreshes(&world, name), 1, "{name}");
    }
}

#[test]
fn a_refresh_that_two_changes_caused_is_paid_while_one_of_them_fails() {
    let world = manifest(World::new(), "a", &["x", "y"]);
    apply(&world, "a").exits(1).counts([2, 0, 1, 0]);
    // A folder is in the way of the first.
    fs::remove_file(world.path("x")).unwrap();
    let world = world.dir("x").file("works", "");
    apply(&world, "a").exits(1).counts([1, 1, 1, 0]);
    assert_eq!(refreshes(&world, "a"), 1);
}

#[test]
fn a_refresh_that_two_changes_caused_is_owed_for_either() {
    for left in ["x", "y"] {
        let world = manifest(World::new(), "a", &["x", "y"]);
        apply(&world, "a").exits(1);
        let world = manifest(world, "a", &[left]).file("works", "");
        apply(&world, "a").exits(0).counts([1, 1, 0, 0]);
        apply(&world, "a").exits(0).counts([0, 2, 0, 0]);
        assert_eq!(refreshes(&world, "a"), 1, "{left}");
    }
}

#[test]
fn damaged_memory_is_said_and_replaced() {
    let cases = [
        ("debts.json", ["", "{", "[]", "{\"refreshes\": {\"exec#reload\": \"file#/x\"}}", "\0\0\0"]),
        ("refreshes.jsonl", ["\n", "{\n", "[]\n", "{\"owed\": {\"to\": 1}}\n", "\0\0\0\n"]),
    ];
    for (name, texts) in cases {
        for damaged in texts {
            let world = manifest(World::new(), "a", &["x"]);
            fs::write(world.state().join(name), damaged).unwrap();
            apply(&world, "a")
                .exits(1)
                .complains(&format!("{name} in the state directory is damaged"))
                .complains("not known");
            let world = world.file("works", "");
            let outcome = apply(&world, "a");
            assert!(outcome.exits(0).counts([1, 1, 0, 0]).stderr.is_empty(), "{outcome}");
        }
    }
}

#[test]
fn a_line_that_a_kill_tore_is_cut_off_and_the_others_count() {
    let world = manifest(World::new(), "a", &["x"]);
    apply(&world, "a").exits(1);
    let whole = memory(&world);
    for torn in ["{", "{\"owed\":{\"to\":\"exec#", "\0\0\0\0"] {
        fs::write(world.state().join("refreshes.jsonl"), format!("{whole}{torn}")).unwrap();
        let outcome = apply(&world, "a");
        assert!(outcome.exits(1).counts([0, 1, 1, 0]).stderr.is_empty(), "{outcome}");
    }
    let world = world.file("works", "");
    apply(&world, "a").exits(0).counts([1, 1, 0, 0]);
    assert_eq!(memory(&world), "", "nothing is owed any more");
    apply(&world, "a").exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn what_an_earlier_version_wrote_down_is_still_owed() {
    let world = manifest(manifest(World::new().file("works", ""), "a", &["x"]), "b", &["y"]);
    let world = world.file("x", "x").file("y", "x");
    let old = json!({
        "refreshes": { "exec#reload": ["file#$W/x"] },
        "changes": { "file#$W/y": { "sessions": ["2026-01-01T00:00:00Z"], "followed": ["exec#other"] } },
    });
    fs::write(world.state().join("debts.json"), world.fill(&old.to_string())).unwrap();
    fs::write(world.state().join("debts.lock"), "").unwrap();
    for name in ["a", "b"] {
        world
            .ccm(["apply", &format!("{name}.yaml"), "--noop"])
            .run()
            .exits(0)
            .says("Would have executed via subscribe");
        apply(&world, name).exits(0).counts([1, 1, 0, 0]);
        apply(&world, name).exits(0).counts([0, 2, 0, 0]);
        assert_eq!(refreshes(&world, name), 1, "{name}");
    }
    assert!(!world.state().join("debts.json").exists() && !world.state().join("debts.lock").exists());
}

#[test]
fn each_of_many_subscribers_costs_the_same() {
    if !fits_strace() {
        return;
    }
    // How much is written to the state directory, and how often it is brought to disk.
    let cost = |count: usize| {
        let subscriber = |number: usize| {
            format!("    - r{number}: {{ command: 'true', refresh_only: true, subscribe: [file#$W/x] }}\n")
        };
        let subscribers: String = (0..count).map(subscriber).collect();
        let text =
            format!("- file: {{ $W/x: {{ content: x, $OWN, mode: '0644' }} }}\n- exec:\n{subscribers}");
        let world = World::new().manifest(&text);
        let trace = Trace::of(&world, &[]);
        trace.outcome.exits(0).counts([count + 1, 0, 0, 0]);
        let (state, calls) = (world.state(), &trace.calls);
        // ccm records each command before it runs, and each change in the history.
        let others = ["commands", "history"].map(|name| state.join(name));
        let is_of_refreshes = |call: &&Syscall| {
            call.is_below(&state) && !others.iter().any(|directory| call.is_below(directory))
        };
        let below = || calls.iter().filter(|call| call.succeeded()).filter(is_of_refreshes);
        (below().filter(|call| call.changes_files()).count(), below().filter(|call| call.syncs()).count())
    };
    let (few, many) = (cost(20), cost(120));
    assert!(many.0 <= few.0 + 100 * 2 + 8, "{few:?} {many:?}");
    assert!(many.1 <= few.1 + 4, "a refresh that is done waits for nothing: {few:?} {many:?}");
}

#[test]
fn sessions_that_never_end_do_not_pile_up() {
    let world = World::new().file("works", "");
    for round in 0..12 {
        let store = session(&world, &format!("s{round}"));
        let _ = fs::remove_file(world.path("x"));
        file(&world, &store, "x").exits(0).says("created the file");
        // Nobody reports it, and its folder is cleared away.
        fs::remove_dir_all(store).unwrap();
    }
    let known = memory(&world);
    let sessions = (0..12).filter(|round| known.contains(&format!("s{round}\""))).count();
    assert!((1..3).contains(&sessions), "{sessions} sessions are remembered: {known}");
    // What it changed is followed nevertheless: the machine may have been started anew.
    let last = session(&world, "last");
    file(&world, &last, "x").exits(0).says("unchanged");
    follow(&world, &last, "r1", "x").exits(0).says("executed via subscribe");
}

/// A new session of a script.
fn session(world: &World, name: &str) -> String {
    let folder = world.base().join(name).display().to_string();
    world.ccm(["session", "new", "--directory", &folder]).run().exits(0);
    folder
}

/// The command that ensures a file in a session.
fn ensure_file<'a>(path: &'a str, session: &'a str) -> Vec<&'a str> {
    let own = ["--content", "x", "--owner", "$UID", "--group", "$GID", "--mode", "0644"];
    ["ensure", "file", path, "-v", "--session", session].into_iter().chain(own).collect()
}

/// Ensures a file in a session.
fn file(world: &World, session: &str, name: &str) -> Outcome {
    world.ccm(ensure_file(&format!("$W/{name}"), session)).run()
}

/// Ensures, in a session, a command that follows changes of a file and writes its own name to a log.
fn follow(world: &World, session: &str, name: &str, file: &str) -> Outcome {
    let command = format!("sh -c 'test -e $W/works && echo x >> $W/{name}.log'");
    let subscribe = format!("file#$W/{file}");
    let arguments =
        ["ensure", "exec", name, "--command", &command, "--refresh-only", "--subscribe", &subscribe];
    world.ccm(arguments.iter().chain(&["-v", "--session", session])).run()
}

#[test]
fn eight_refreshes_that_fail_at_once_are_all_owed() {
    let world = World::new();
    let [first, second] = ["one", "two"].map(|name| session(&world, name));
    file(&world, &first, "x").exits(0);
    let names: Vec<_> = (0..8).map(|number| format!("r{number}")).collect();
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| {
                follow(&world, &first, name, "x").exits(1);
            });
        }
    });
    let world = world.file("works", "");
    file(&world, &second, "x").exits(0).says("unchanged");
    for name in &names {
        follow(&world, &second, name, "x").exits(0).says("executed via subscribe");
    }
    for name in &names {
        follow(&world, &second, name, "x").exits(0).says("unchanged");
    }
}

/// The request for a resource.
fn request(world: &World, kind: &str, mut properties: Value) -> String {
    if kind == "file" {
        let own = json!({ "content": "x", "owner": "$UID", "group": "$GID", "mode": "0644" });
        properties.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    }
    let protocol = "io.choria.ccm.v1.resource.ensure.request";
    world.fill(&json!({ "protocol": protocol, "type": kind, "properties": properties }).to_string())
}

#[test]
fn a_refresh_that_a_request_asked_for_and_that_failed_is_owed() {
    let reload = json!({
        "name": "reload", "command": "sh -c 'test -e $W/works && echo x >> $W/api.log'",
        "refresh_only": true, "subscribe": ["file#$W/x"],
    });
    let world = World::new();
    let file = request(&world, "file", json!({ "name": "$W/x" }));
    let reload = request(&world, "exec", reload);
    let serve = |world: &World| {
        let outcome = world.ccm(["ensure", "api", "serve"]).input(format!("{file}\n{reload}\n")).run();
        let answers = outcome.exits(0).json_lines();
        answers[1]["state"].clone()
    };
    assert_eq!(serve(&world)["failed"], true);
    let world = world.file("works", "");
    assert_eq!(serve(&world)["refreshed"], true);
    assert_eq!(serve(&world)["changed"], false);
    assert_eq!(refreshes(&world, "api"), 1);
    // One request in a session of its own, too.
    fs::remove_file(world.path("works")).unwrap();
    fs::remove_file(world.path("x")).unwrap();
    let pipe = |world: &World, session: &str, request: &str| {
        let call = world.ccm(["ensure", "api", "pipe", "--session", session]).input(request);
        call.run().exits(0).json()["state"].clone()
    };
    let [first, second] = ["one", "two"].map(|name| session(&world, name));
    assert_eq!(pipe(&world, &first, &file)["changed"], true);
    assert_eq!(pipe(&world, &first, &reload)["failed"], true);
    let world = world.file("works", "");
    assert_eq!(pipe(&world, &second, &file)["changed"], false);
    assert_eq!(pipe(&world, &second, &reload)["refreshed"], true);
}

fn report(world: &World, session: &str) -> Outcome {
    world.ccm(["session", "report", "--session", session, "--remove"]).run()
}

/// What the state directory remembers of changes and debts.
fn memory(world: &World) -> String {
    fs::read_to_string(world.state().join("refreshes.jsonl")).unwrap_or_default()
}

#[test]
fn a_change_of_a_script_that_died_is_followed_in_the_next_session_once() {
    let world = World::new().file("works", "");
    let [first, second, third] = ["one", "two", "three"].map(|name| session(&world, name));
    file(&world, &first, "x").exits(0).says("created the file");
    // Nothing more comes of it.
    file(&world, &second, "x").exits(0).says("unchanged");
    for name in ["r1", "r2"] {
        let command = ["ensure", "exec", name, "--command", "true", "--refresh-only"];
        let noop = world.ccm(command.into_iter().chain(["--subscribe", "file#$W/x", "--noop"]));
        noop.env("CCM_SESSION_STORE", &second).run().exits(0).says("Would have executed via subscribe");
        follow(&world, &second, name, "x").exits(0).says("executed via subscribe");
        follow(&world, &second, name, "x").exits(0).says("unchanged");
    }
    report(&world, &second).exits(0);
    let state = || {
        let mut tree = Tree::of(&world.state());
        // Every run has a line in the history.
        tree.0.retain(|path, _| !path.starts_with("history"));
        tree
    };
    let before = state();
    file(&world, &third, "x").exits(0).says("unchanged");
    for name in ["r1", "r2"] {
        follow(&world, &third, name, "x").exits(0).says("unchanged");
        assert_eq!(refreshes(&world, name), 1, "{name}");
    }
    assert_eq!(state(), before, "a run that has nothing to do writes nothing else");
}

#[test]
fn wherever_a_command_of_a_script_is_killed_its_change_is_followed_once() {
    if !fits_strace() {
        return;
    }
    let start = || World::new().file("works", "");
    let world = start();
    let trace = Trace::of_command(&world, &ensure_file("$W/x", &session(&world, "one")));
    trace.outcome.exits(0).says("created the file");
    let matters = |call: &&Syscall| {
        call.succeeded() && (call.changes_files() || call.syncs() || call.name() == "flock")
    };
    let points: Vec<_> = trace.calls.iter().filter(matters).collect();
    assert!(points.len() > 10, "{points:?}");
    side_by_side(points, |call| {
        let world = start();
        let [first, second, third] = ["one", "two", "three"].map(|name| session(&world, name));
        let outcome = tampered_command(&world, &ensure_file("$W/x", &first), call, "signal=KILL");
        assert_eq!(outcome.code, -9, "{call:?}\n{outcome}");
        for session in [second, third] {
            file(&world, &session, "x").exits(0);
            follow(&world, &session, "r1", "x").exits(0);
            assert_eq!(refreshes(&world, "r1"), 1, "killed before {call:?}, then {session}");
        }
    });
}

#[test]
fn what_a_script_that_died_had_followed_is_not_followed_again() {
    let world = World::new().file("works", "");
    let [first, second] = ["one", "two"].map(|name| session(&world, name));
    file(&world, &first, "x").exits(0);
    follow(&world, &first, "r1", "x").exits(0).says("executed via subscribe");
    file(&world, &second, "x").exits(0);
    follow(&world, &second, "r1", "x").exits(0).says("unchanged");
    follow(&world, &second, "r2", "x").exits(0).says("executed via subscribe");
    // A further change is followed by all.
    fs::remove_file(world.path("x")).unwrap();
    let third = session(&world, "three");
    file(&world, &third, "x").exits(0).says("created the file");
    let fourth = session(&world, "four");
    file(&world, &fourth, "x").exits(0).says("unchanged");
    for name in ["r1", "r2"] {
        follow(&world, &fourth, name, "x").exits(0).says("executed via subscribe");
    }
}

#[test]
fn a_session_that_was_reported_leaves_nothing_behind() {
    let world = World::new().file("works", "");
    let [first, second, third] = ["one", "two", "three"].map(|name| session(&world, name));
    file(&world, &first, "x").exits(0);
    file(&world, &second, "y").exits(0);
    follow(&world, &second, "r1", "y").exits(0).says("executed via subscribe");
    report(&world, &second).exits(0);
    assert!(!memory(&world).contains("/y"), "{}", memory(&world));
    // Another script's is not touched by that.
    file(&world, &third, "x").exits(0);
    follow(&world, &third, "r1", "x").exits(0).says("executed via subscribe");
    report(&world, &third).exits(0);
    report(&world, &first).exits(0);
    assert!(!memory(&world).contains('#'), "{}", memory(&world));
}

#[test]
fn a_session_that_ended_with_a_failure_is_remembered_although_it_was_reported() {
    let world = World::new().file("works", "");
    let [first, second] = ["one", "two"].map(|name| session(&world, name));
    file(&world, &first, "x").exits(0);
    file(&world, &first, "no/where").exits(1);
    // `trap 'ccm session report --remove' EXIT`, and the shell stops at the first failure.
    report(&world, &first).exits(1);
    file(&world, &second, "x").exits(0);
    follow(&world, &second, "r1", "x").exits(0).says("executed via subscribe");
}

/// Lets a program write no file that is larger than 8 KiB.
const NARROW: [&str; 4] = ["sh", "-c", "ulimit -f 16; exec \"$@\"", "sh"];

#[test]
fn a_change_that_came_to_nothing_is_not_followed() {
    let large = "x".repeat(1 << 16);
    let world = World::new().file("works", "").beside("large", &large);
    let [first, second] = ["one", "two"].map(|name| session(&world, name));
    let source = world.base().join("large").display().to_string();
    let ensure = |session: &str| {
        let own = ["--owner", "$UID", "--group", "$GID", "--mode", "0644", "-v", "--session", session];
        let arguments = ["ensure", "file", "$W/x", "--source", &source];
        world.ccm(arguments.iter().chain(&own))
    };
    ensure(&first).under(NARROW).run().exits(1).says("cannot write");
    // Somebody else makes it.
    fs::write(world.path("x"), &large).unwrap();
    fs::set_permissions(world.path("x"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    ensure(&second).run().exits(0).says("unchanged");
    follow(&world, &second, "r1", "x").exits(0).says("unchanged");
    assert_eq!(memory(&world), "");
}

#[test]
fn an_action_of_a_manifest_that_failed_and_changed_nothing_owes_no_refresh() {
    let large = "x".repeat(1 << 16);
    let world = World::new().beside("large", &large).manifest(
        "\
- file: { $W/x: { source: large, $OWN, mode: '0644' } }
- exec: { reload: { command: 'true', refresh_only: true, subscribe: [file#$W/x] } }
",
    );
    world.ccm(["apply", "site.yaml"]).under(NARROW).run().exits(1).says("cannot write").counts([0, 1, 1, 0]);
    fs::write(world.path("x"), &large).unwrap();
    fs::set_permissions(world.path("x"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    world.apply().exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn a_change_made_by_an_attempt_that_failed_counts_for_subscribers() {
    if !fits_strace() {
        return;
    }
    let start = || {
        World::new().manifest(
            "\
- file: { $W/x: { content: x, $OWN, mode: '0644', tries: 2, try_sleep: 1ms } }
- exec: { reload: { command: 'true', refresh_only: true, subscribe: [file#$W/x] } }
",
        )
    };
    // The file has its name, and then the directory cannot be brought to disk.
    let reference = start();
    let calls = Trace::of(&reference, &[]).calls;
    let below = |call: &&Syscall| call.succeeded() && call.is_below(&reference.path(""));
    let after_the_name = calls.iter().skip_while(|call| !(call.name().starts_with("rename") && below(call)));
    let sync = after_the_name.filter(below).find(|call| call.syncs()).expect("a directory is synced");
    let world = start();
    let outcome = tampered(&world, sync, "error=EIO");
    outcome.exits(0).counts([2, 0, 0, 0]).says("changed in an earlier attempt");
    outcome.reports("exec#reload", "executed via subscribe");
    world.apply().exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn a_subscriber_by_alias_is_owed_its_refresh_after_a_crash() {
    let world = World::new().manifest(
        "\
- file: { $W/x: { content: x, alias: config, $OWN, mode: '0644' } }
- exec:
    - reload:
        command: \"sh -c 'test -e $W/works || { kill -9 $PPID; exit; }; echo x >> $W/a.log'\"
        refresh_only: true
        subscribe: [file#config]
",
    );
    assert_eq!(world.apply().code, -9);
    let world = world.file("works", "");
    world.apply().exits(0).counts([1, 1, 0, 0]).reports("exec#reload", "executed via subscribe");
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(refreshes(&world, "a"), 1);
}

#[test]
fn fail_on_error_stops_when_exactly_one_resource_is_left() {
    let world = World::new().manifest(
        "ccm: { fail_on_error: true, resources: [exec: [{ a: { command: 'false' } }, { b: { command: 'touch $W/b' } }]] }",
    );
    world.apply().exits(1).says("1 resource was not attempted");
    assert!(!world.path("b").exists());
}

#[test]
fn a_manifest_follows_a_change_of_a_script_that_died_and_alone_a_command_remembers_nothing() {
    let world = manifest(World::new().file("works", ""), "a", &["x"]);
    let own = ["--content", "x", "--owner", "$UID", "--group", "$GID", "--mode", "0644"];
    world.ccm(["ensure", "file", "$W/x"].iter().chain(&own)).run().exits(0).says("created the file");
    assert_eq!(memory(&world), "");
    apply(&world, "a").exits(0).counts([0, 2, 0, 0]);
    fs::remove_file(world.path("x")).unwrap();
    file(&world, &session(&world, "one"), "x").exits(0).says("created the file");
    apply(&world, "a").exits(0).counts([1, 1, 0, 0]);
    apply(&world, "a").exits(0).counts([0, 2, 0, 0]);
}

#[test]
fn dry_run_reports_a_refresh_that_an_earlier_run_left_pending() {
    let world = World::new().manifest(
        "- file: [{ $W/a: { content: x, $OWN, mode: '0644' } }]\n\
         - exec: [{ follow: { command: test -e $W/ready, refresh_only: true, subscribe: 'file#$W/a' } }]\n",
    );
    let changed = world.fill(": file#$W/a changed");
    let list = |flags: &[&str]| world.ccm(["status", "--pending"].iter().chain(flags)).run();
    world.apply_with(&["--noop"]).exits(0).says("executed via subscribe\n").never_says("pending");
    list(&[]).exits(0).says("no pending refreshes\n");
    assert_eq!(list(&["--json"]).exits(0).json(), json!([]));

    // The refresh fails: the run reports that it stays pending, and the next dry run that it is due.
    world
        .apply()
        .exits(1)
        .says("\npending refreshes, which the next run performs:\n  exec#follow  pending since ")
        .says(&changed);
    world
        .apply_with(&["--noop"])
        .exits(0)
        .says("Would have executed via subscribe (pending since ")
        .says(&changed);
    list(&[]).exits(0).says("exec#follow  pending since ").says(&format!("{changed}  site.yaml\n"));
    let listed = list(&["--json"]).exits(0).json();
    let since = listed[0]["since"].as_str().unwrap().parse::<jiff::Timestamp>();
    assert!(since.is_ok(), "{listed}");
    assert_eq!(listed[0]["ref"], "exec#follow");
    assert_eq!(listed[0]["because"], json!([world.fill("file#$W/a")]));
    assert_eq!(listed[0]["manifest"], "site.yaml");
    list(&["exec", "follow"]).exits(2).complains("cannot be used with");

    let outcome = world.file("ready", "").apply();
    outcome.exits(0).says("* exec#follow executed via subscribe (pending since ").says(&changed);
    outcome.never_says("which the next run performs");
}

#[test]
fn run_that_stops_before_a_subscriber_reports_its_pending_refresh() {
    let world = World::new().manifest(
        "ccm:\n  fail_on_error: true\n  resources:\n\
         \x20   - file: [{ $W/a: { content: x, $OWN, mode: '0644' } }]\n\
         \x20   - exec: [{ broken: { command: 'false' } }, { follow: { command: 'true', refresh_only: true, subscribe: 'file#$W/a' } }]\n",
    );
    world.apply().exits(1).says("\n  exec#follow  pending since ");
    world.apply_with(&["--json"]).exits(1).complains("exec#follow: refresh pending since ");
}
