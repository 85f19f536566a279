//! Scripts and programs of other languages: events that commands share, and requests in JSON.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::support::{NOBODY, Outcome, Syscall, Trace, Tree, World, finish, fits_strace, is_root, sh};

const STORE: &str = "CCM_SESSION_STORE";
const OWN: [&str; 6] = ["--owner", "$UID", "--group", "$GID", "--mode", "0644"];

/// A new session below the world's own folder.
fn session(world: &World) -> PathBuf {
    let folder = world.base().join("session");
    world.ccm(["session", "new", "--directory", &folder.display().to_string()]).run().exits(0);
    folder
}

fn ensure(world: &World, store: &Path, arguments: &[&str]) -> Outcome {
    let call = world.ccm(["ensure", "file"].iter().chain(arguments));
    call.env(STORE, store.display().to_string()).run()
}

fn write(world: &World, store: &Path, name: &str, more: &[&str]) -> Outcome {
    ensure(world, store, &[&[name, "--content", "x"], &OWN[..], more].concat())
}

fn report(world: &World, store: &Path, flags: &[&str]) -> Outcome {
    let call = world.ccm(["session", "report"].iter().chain(flags));
    call.env(STORE, store.display().to_string()).run()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_session_is_made_privately_and_selected_by_the_shell() {
    let world = World::new();
    for folder in ["plain", "with space", "it's \"quoted\" $HOME `x`", "--dashed", "new\nline"] {
        let path = world.base().join(folder);
        let outcome = world.ccm(["session", "new", "--directory", &path.display().to_string()]).run();
        let script = format!("{}\nprintf %s \"$CCM_SESSION_STORE\"", outcome.exits(0).stdout);
        assert_eq!(sh(&script, world.base()), path.display().to_string());
        assert_eq!(mode(&path), 0o700);
    }
    // Relative to where the command runs, and for whoever goes elsewhere then.
    let outcome = world.ccm(["session", "new", "--directory", "relative"]).run();
    outcome.exits(0).says(&world.base().join("relative").display().to_string());
    // In a folder that is there and empty.
    fs::create_dir(world.base().join("empty")).unwrap();
    world.ccm(["session", "new", "--directory", "empty"]).run().exits(0);
    assert_eq!(mode(&world.base().join("empty")), 0o700);
    // Never in one that holds something, nor through a link.
    fs::create_dir(world.base().join("target")).unwrap();
    symlink("target", world.base().join("link")).unwrap();
    let world = world.beside("full/file", "kept").beside("file", "kept");
    let before = Tree::of(world.base());
    for taken in ["full", "file", "link", "empty"] {
        world
            .ccm(["session", "new", "--directory", taken])
            .run()
            .exits(2)
            .complains("is not an empty folder");
    }
    world.ccm(["session", "new", "--directory", "no/where"]).run().exits(2).complains("no/where");
    assert_eq!(Tree::of(world.base()), before);
}

#[test]
fn without_a_folder_a_session_is_made_for_temporary_files() {
    let world = World::new();
    let temporary = world.base().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let make = || world.ccm(["session", "new"]).env("TMPDIR", temporary.display().to_string()).run();
    let (first, second) = (make().exits(0).stdout.clone(), make().exits(0).stdout.clone());
    assert_ne!(first, second);
    for entry in fs::read_dir(&temporary).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o700);
        assert!(format!("{first}{second}").contains(&path.display().to_string()));
        report(&world, &path, &["--remove"]).exits(0);
    }
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_report_tells_what_happened_in_order() {
    let world = World::new();
    let store = session(&world);
    report(&world, &store, &[]).exits(0).says("0 resources");
    write(&world, &store, "$W/b", &[]).exits(0);
    write(&world, &store, "$W/a", &[]).exits(0);
    write(&world, &store, "$W/a", &[]).exits(0);
    write(&world, &store, "$W/no/x", &["--alias", "it"]).exits(1);
    write(&world, &store, "$W/c", &["--noop"]).exits(0);
    write(&world, &store, "$W/d", &["--require", "file#it"]).exits(1);
    write(&world, &store, "$W/e", &["--control", "if=false"]).exits(0);
    let outcome = report(&world, &store, &["-v"]);
    let lines: Vec<String> = [
        "~ file#$W/b changed",
        "~ file#$W/a changed",
        "= file#$W/a unchanged",
        "! file#$W/no/x failed",
        "~ file#$W/c Would have created the file",
        "? file#$W/d skipped: file#it failed",
        ". file#$W/e skipped",
    ]
    .iter()
    .map(|line| world.fill(line))
    .collect();
    let found: Vec<&str> = outcome
        .exits(1)
        .stdout
        .lines()
        .filter(|line| line.contains("file#") && !line.starts_with("  "))
        .collect();
    assert_eq!(found, lines);
    outcome.says("does not exist").says("6 resources in").counts([2, 1, 1, 2]).says("(1 after a failure)");
    let json = report(&world, &store, &["--json"]);
    let names: Vec<String> =
        json.exits(1).events().iter().map(|event| event["name"].as_str().unwrap().to_owned()).collect();
    let expected = ["b", "a", "a", "no/x", "c", "d", "e"];
    assert_eq!(names, expected.map(|name| world.path(name).display().to_string()));
    assert_eq!(
        (&json.summary()["total_resources"], &json.summary()["unique_resources"]),
        (&json!(7), &json!(6))
    );
    assert!(json.event("/b")["status"].is_object() && json.event("/b")["properties"].is_object());
}

#[test]
fn the_summary_of_a_command_is_about_itself_and_not_about_its_session() {
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/x", &[]).exits(0);
    let summary = write(&world, &store, "$W/y", &["--json"]).exits(0).summary();
    let of_session = report(&world, &store, &["--json"]).exits(0).summary();
    assert_eq!((&summary["total_resources"], &of_session["total_resources"]), (&json!(1), &json!(2)));
    let began = |summary: &Value| summary["start_time"].as_str().unwrap().to_owned();
    assert!(began(&summary) > began(&of_session), "{summary:#}\n{of_session:#}");
}

#[test]
fn only_a_session_is_removed_and_only_if_it_is_nothing_else() {
    let world = World::new().beside("folder/kept", "x");
    let store = session(&world);
    write(&world, &store, "$W/x", &[]).exits(0);
    fs::write(store.join("mine"), "x").unwrap();
    let before = Tree::of(&store);
    report(&world, &store, &["--remove"]).exits(2).says("changed").complains("mine is not part of it");
    assert_eq!(Tree::of(&store), before, "nothing of it is removed");
    fs::remove_file(store.join("mine")).unwrap();
    // A link to it can be used, but not removed in its place.
    symlink("session", world.base().join("link")).unwrap();
    let before = Tree::of(world.base());
    for link in ["link", "link/", "link/."] {
        let outcome = report(&world, &world.base().join(link), &["--remove"]);
        outcome
            .exits(2)
            .says("changed")
            .complains("is not removed: it is a link")
            .complains("name the folder itself");
        assert_eq!(Tree::of(world.base()), before, "nothing of it is removed");
    }
    fs::remove_file(world.base().join("link")).unwrap();
    report(&world, &store, &["--remove", "--json"]).exits(0);
    assert!(!store.exists());
    assert_eq!(world.read("x"), "x");
    for other in [world.base().join("folder"), world.base().join("none"), world.path(""), store] {
        let before = Tree::of(world.base());
        report(&world, &other, &["--remove"]).exits(2).complains("is not a session");
        assert_eq!(Tree::of(world.base()), before);
    }
    world.ccm(["session", "report"]).run().exits(2).complains(STORE).complains("--session");
}

#[test]
fn a_failed_requirement_is_seen_by_later_commands_and_the_last_event_counts() {
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/no/x", &["--alias", "it"]).exits(1);
    for reference in ["file#$W/no/x", "file#it"] {
        let outcome = write(&world, &store, "$W/y", &["--require", reference]);
        outcome.exits(1).reports(&world.fill("file#$W/y"), "skipped: ");
        assert!(world.tree().names().is_empty());
    }
    // Who was skipped for that is no better.
    write(&world, &store, "$W/z", &["--require", "file#$W/y"])
        .exits(1)
        .says(&world.fill("skipped: file#$W/y was skipped"));
    fs::create_dir(world.path("no")).unwrap();
    // Mended without its other name, by which it is still known.
    write(&world, &store, "$W/no/x", &[]).exits(0);
    write(&world, &store, "$W/y", &["--require", "file#$W/no/x"]).exits(0);
    write(&world, &store, "$W/z", &["--require", "file#it", "--require", "file#$W/y"]).exits(0);
    assert_eq!(world.tree().names(), ["no", "no/x", "y", "z"]);
    // Flag and variable are the same thing.
    let folder = store.display().to_string();
    let arguments =
        ["ensure", "file", "$W/q", "--session", &folder, "--require", "file#it", "--content", "x"];
    world.ccm(arguments.iter().chain(&OWN)).run().exits(0);
}

#[test]
fn a_change_is_seen_by_later_commands_that_subscribe() {
    let world = World::new();
    let store = session(&world);
    let refresh = |reference: &str| {
        let command = world.fill("sh -c 'echo x >> $W/log'");
        let arguments =
            ["ensure", "exec", "reload", "--command", &command, "--refresh-only", "--subscribe", reference];
        world.ccm(arguments).env(STORE, store.display().to_string()).run()
    };
    write(&world, &store, "$W/x", &["--alias", "it"]).exits(0);
    refresh("file#$W/x").exits(0);
    refresh("file#it").exits(0);
    assert_eq!(world.read("log"), "x\nx\n");
    // What happened last is that nothing changed.
    write(&world, &store, "$W/x", &[]).exits(0);
    refresh("file#$W/x").exits(0);
    refresh("file#it").exits(0);
    assert_eq!(world.read("log"), "x\nx\n");
    let outcome = refresh("file#$W/none");
    outcome.exits(1).says("has not been seen in this session").says(&world.fill("file#$W/x, exec#reload"));
    assert_eq!(
        report(&world, &store, &["--json"])
            .events()
            .iter()
            .filter(|event| event["refreshed"] == true)
            .count(),
        2
    );
}

#[test]
fn a_reference_to_something_that_was_not_seen_is_a_failure_that_lists_what_was() {
    let world = World::new();
    let store = session(&world);
    let outcome = write(&world, &store, "$W/y", &["--require", "file#$W/none"]);
    outcome
        .exits(1)
        .says(&world.fill("file#$W/none has not been seen in this session"))
        .says("seen so far: nothing yet");
    write(&world, &store, "$W/x", &[]).exits(0);
    let outcome = write(&world, &store, "$W/z", &["--require", "file#$W/none"]);
    outcome.exits(1).says(&world.fill("seen so far: file#$W/y, file#$W/x"));
    assert_eq!(world.tree().names(), ["x"]);
    // Whoever reads the event or the report is told as much.
    let events = report(&world, &store, &["--json"]).events();
    let told =
        world.fill("file#$W/none has not been seen in this session; seen so far: file#$W/y, file#$W/x");
    assert_eq!((events.len(), &events[2]["failed"], &events[2]["error"]), (3, &json!(true), &json!([told])));
    report(&world, &store, &[]).exits(1).says(&told);
    // Without a session there is nothing to have seen it.
    let alone = ["ensure", "file", "$W/z", "--content", "x", "--require", "file#$W/x"];
    world.ccm(alone.iter().chain(&OWN)).run().exits(1).says("there is no session in which");
}

#[test]
fn eight_at_once_lose_no_event() {
    let world = World::new();
    let store = session(&world);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (world, store) = (&world, &store);
            scope.spawn(move || {
                for number in 0..10 {
                    let content = "x".repeat(9000);
                    let name = format!("$W/{writer}-{number}");
                    let previous = format!("file#$W/{writer}-{}", number - 1);
                    let mut arguments = [&[name.as_str(), "--content", &content], &OWN[..]].concat();
                    if number > 0 {
                        arguments.extend(["--require", &previous]);
                    }
                    let outcome = ensure(world, store, &arguments);
                    // On a busy machine they may have to wait for each other for long.
                    let mut said = outcome.exits(0).stderr.lines();
                    assert!(said.all(|line| line.starts_with("note: waiting for ")), "{outcome}");
                }
            });
        }
    });
    let outcome = report(&world, &store, &["--json"]);
    assert!(outcome.exits(0).stderr.is_empty(), "{outcome}");
    assert_eq!(outcome.events().len(), 80);
    assert_eq!(outcome.summary()["changed_resources"], 80);
    for writer in 0..8 {
        let of = format!("/{writer}-");
        let events = outcome.events();
        let names =
            events.iter().map(|event| event["name"].as_str().unwrap()).filter(|name| name.contains(&of));
        let numbers: Vec<usize> =
            names.map(|name| name.rsplit('-').next().unwrap().parse().unwrap()).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>(), "each in its order");
    }
}

#[test]
fn a_line_that_a_killed_command_left_unfinished_is_ignored_and_said() {
    if !fits_strace() {
        return;
    }
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/before", &[]).exits(0);
    let events = store.join("events.jsonl");
    let whole = fs::read(&events).unwrap();
    // Killed while it appends: nothing of the event is there, and nothing else is lost.
    let log = world.base().join("trace").display().to_string();
    let path = events.display().to_string();
    let strace = ["strace", "-f", "-qq", "-P", &path, "-e", "inject=write:signal=KILL", "-o", &log];
    let arguments = [&["ensure", "file", "$W/killed", "--content", "x"], &OWN[..]].concat();
    let outcome = world.ccm(arguments).env(STORE, store.display().to_string()).under(strace).run();
    assert_eq!(outcome.code, -9, "{outcome}");
    assert!(fs::read_to_string(&log).unwrap().contains("write("));
    assert_eq!(fs::read(&events).unwrap(), whole);
    report(&world, &store, &[]).exits(0).counts([1, 0, 0, 0]);
    // Torn in the middle, wherever that is.
    for length in [1, whole.len() / 2, whole.len() - 2] {
        fs::write(&events, [&whole, &whole[..length]].concat()).unwrap();
        let outcome = report(&world, &store, &[]);
        outcome
            .exits(0)
            .complains("1 line that a killed command left unfinished ignored")
            .counts([1, 0, 0, 0]);
        write(&world, &store, "$W/after", &["--require", "file#$W/before"]).exits(0).complains("1 line");
        let outcome = report(&world, &store, &["--json"]);
        assert_eq!(outcome.exits(0).events().len(), 2);
        outcome.complains("1 line that a killed command left unfinished ignored");
    }
    // Only the end of the line is missing: the event is whole.
    fs::write(&events, &whole[..whole.len() - 1]).unwrap();
    write(&world, &store, "$W/after", &[]).exits(0);
    let outcome = report(&world, &store, &["--json"]);
    assert_eq!(outcome.events().len(), 2);
    assert!(outcome.stderr.is_empty(), "{outcome}");
    // Nonsense is no event.
    fs::write(&events, [&whole[..], b"\xff\xfe\n{}\n[1]\n\0\0\0"].concat()).unwrap();
    report(&world, &store, &[]).exits(0).complains("4 lines").counts([1, 0, 0, 0]);
}

#[test]
fn directory_that_does_not_exist_becomes_a_session_on_first_use() {
    let world = World::new();
    let new = world.base().join("none");
    write(&world, &new, "$W/x", &[]).exits(0);
    assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
    write(&world, &new, "$W/y", &[]).exits(0);
    report(&world, &new, &["--remove"]).exits(0).counts([2, 0, 0, 0]);
    report(&world, &new, &[]).exits(2).complains("is not a session");
    let far = world.base().join("no/parent");
    write(&world, &far, "$W/x", &[]).exits(2);
}

#[test]
fn a_directory_that_is_not_ones_own_session_is_not_used() {
    let world = World::new().beside("file", "x");
    for other in ["w", "file"] {
        let outcome = write(&world, &world.base().join(other), "$W/x", &[]);
        outcome.exits(2).complains("is not a session").complains("ccm session new");
    }
    let store = session(&world);
    for mode in [0o770, 0o707, 0o777] {
        fs::set_permissions(&store, fs::Permissions::from_mode(mode)).unwrap();
        write(&world, &store, "$W/x", &[]).exits(2).complains("others may write to it");
        report(&world, &store, &["--remove"]).exits(2).complains("others may write to it");
    }
    fs::set_permissions(&store, fs::Permissions::from_mode(0o700)).unwrap();
    // A mark that is a link is no mark.
    fs::rename(store.join("session.json"), world.base().join("mark")).unwrap();
    symlink(world.base().join("mark"), store.join("session.json")).unwrap();
    write(&world, &store, "$W/x", &[]).exits(2).complains("is not a session");
    assert!(world.tree().names().is_empty());
    if !is_root() {
        return;
    }
    let world = World::new();
    let store = session(&world);
    for path in [store.clone(), store.join("session.json")] {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        let outcome = write(&world, &store, "$W/x", &[]);
        outcome
            .exits(2)
            .complains("belongs to user 65534")
            .complains("could lead what is recorded elsewhere");
        outcome.complains("make one of your own with `ccm session new`");
        std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
    }
    // Root's own is closed to others.
    let arguments = [&["ensure", "file", "$W/x", "--content", "x"], &OWN[..]].concat();
    let call = world.ccm(arguments).env(STORE, store.display().to_string()).uid(NOBODY);
    let outcome = call.run();
    outcome
        .exits(2)
        .complains("permission denied")
        .complains("belongs to user 0")
        .never_says("is not a session");
    fs::create_dir(world.base().join("theirs")).unwrap();
    std::os::unix::fs::chown(world.base().join("theirs"), Some(NOBODY), Some(NOBODY)).unwrap();
    world.ccm(["session", "new", "--directory", "theirs"]).run().exits(2).complains("belongs to user 65534");
    assert!(world.tree().names().is_empty());
}

#[test]
fn a_session_that_cannot_be_written_is_said_and_no_success() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let store = session(&world);
    fs::create_dir(store.join("events.jsonl")).unwrap();
    write(&world, &store, "$W/x", &[]).exits(2).complains("session");
    assert!(world.tree().names().is_empty());
}

#[test]
fn no_secret_reaches_a_session() {
    const CANARY: &str = "c4n4ry-5e7";
    let world = World::new().beside("secret", CANARY).dir("dir");
    let store = session(&world);
    let secret = ["--sensitive", "--content", CANARY];
    ensure(&world, &store, &[&["$W/x"], &secret[..], &OWN[..]].concat()).exits(0);
    ensure(&world, &store, &[&["$W/x", "--noop", "--diff"], &secret[..], &OWN[..]].concat()).exits(0);
    ensure(&world, &store, &[&["$W/y", "--sensitive", "--content-file", "secret"], &OWN[..]].concat())
        .exits(0);
    ensure(&world, &store, &[&["$W/dir"], &secret[..], &OWN[..]].concat()).exits(1);
    ensure(&world, &store, &[&["$W/no/x"], &secret[..], &OWN[..]].concat()).exits(1);
    let late = ["$W/z", "--sensitive", "--content", "${ int(file('secret')) }"];
    ensure(&world, &store, &[&late[..], &OWN[..]].concat()).exits(2).never_says(CANARY);
    let properties = json!({ "name": world.path("q"), "content": CANARY, "sensitive": true, "owner": world.fill("$UID"), "group": world.fill("$GID"), "mode": "0600" });
    let answer = world
        .ccm(["ensure", "api", "pipe"])
        .env(STORE, store.display().to_string())
        .input(request(&properties))
        .run();
    answer.exits(0).never_says(CANARY);
    assert_eq!(
        (world.read("x"), world.read("y"), world.read("q")),
        (CANARY.into(), CANARY.into(), CANARY.into())
    );
    assert_eq!(report(&world, &store, &["--json"]).never_says(CANARY).events().len(), 6);
    report(&world, &store, &[]).never_says(CANARY);
    for entry in fs::read_dir(&store).unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&content).contains(CANARY));
    }
}

/// What nobody asked for is not written.
#[test]
fn a_stable_file_is_ensured_without_writing_anything() {
    if !fits_strace() {
        return;
    }
    let world = World::new().file("x", "x");
    let before = Tree::of(world.base());
    let flags = ["--state-dir", "unused", "--no-history"];
    let arguments = [&["ensure", "file", "$W/x", "--content", "x"], &OWN[..], &flags].concat();
    let trace = Trace::of_command(&world, &arguments);
    trace.outcome.exits(0).says("unchanged");
    let changes = trace.changes(&world);
    assert!(changes.is_empty(), "{changes:#?}");
    let needless = |call: &&Syscall| {
        ["os-release", "meminfo", "connect("].iter().any(|needless| call.text.contains(needless))
    };
    let needless: Vec<_> = trace.calls.iter().filter(needless).collect();
    assert!(needless.is_empty(), "no facts, no network: {needless:#?}");
    fs::remove_file(world.base().join("trace")).unwrap();
    assert_eq!(Tree::of(world.base()), before);
}

const REQUEST: &str = "io.choria.ccm.v1.resource.ensure.request";
const RESPONSE: &str = "io.choria.ccm.v1.resource.ensure.response";

fn request(properties: &Value) -> String {
    json!({ "protocol": REQUEST, "type": "file", "properties": properties }).to_string()
}

/// The properties of a file with the owner and mode of an ordinary one.
fn properties(world: &World, name: &str, content: &str) -> Value {
    json!({
        "name": world.path(name), "content": content, "owner": world.fill("$UID"), "group": world.fill("$GID"), "mode": "0644",
    })
}

fn pipe(world: &World, flags: &[&str], input: &str) -> Outcome {
    world.ccm(["ensure", "api", "pipe"].iter().chain(flags)).input(input).run()
}

#[test]
fn a_request_is_answered_with_the_event() {
    let world = World::new();
    let wanted = properties(&world, "x", "hello\n");
    let outcome = pipe(&world, &["--noop"], &request(&wanted));
    let answer = outcome.exits(0).json();
    assert_eq!((&answer["protocol"], answer.get("error")), (&json!(RESPONSE), None));
    let state = &answer["state"];
    assert_eq!(
        (&state["noop"], &state["changed"], &state["noop_message"]),
        (&json!(true), &json!(true), &json!("Would have created the file"))
    );
    assert!(state["diff"].as_str().unwrap().contains("+hello"));
    assert!(world.tree().names().is_empty());
    let state = &pipe(&world, &[], &request(&wanted)).exits(0).json()["state"];
    assert_eq!(
        (&state["changed"], &state["failed"], &state["final_ensure"]),
        (&json!(true), &json!(false), &json!("present"))
    );
    assert_eq!(state["properties"]["content"], "hello\n");
    assert_eq!(state["status"]["protocol"], "io.choria.ccm.v1.resource.file.state");
    assert_eq!(world.read("x"), "hello\n");
    assert_eq!(pipe(&world, &[], &request(&wanted)).json()["state"]["changed"], false);
    // A resource that fails is an answer too.
    let outcome = pipe(&world, &[], &request(&properties(&world, "no/x", "")));
    let state = &outcome.exits(0).json()["state"];
    assert!(state["failed"] == true && state["error"][0].as_str().unwrap().contains("does not exist"));
}

#[test]
fn requests_and_answers_are_json_or_yaml() {
    let world = World::new();
    let yaml = world.fill(&format!(
        "\
protocol: {REQUEST}
type: file
properties:
  name: $W/x
  content: |
    a: {{{{ 1 }}}}
  owner: '$UID'
  group: '$GID'
  mode: 0600 # octal
"
    ));
    let outcome = pipe(&world, &["--yaml"], &yaml);
    outcome.exits(0).says(&format!("protocol: {RESPONSE}")).says("changed: true");
    assert_eq!((world.read("x").as_str(), world.tree().item("x").unwrap().mode), ("a: {{ 1 }}\n", 0o600));
    // What it prints can be read back.
    let again = World::new().beside(
        "data.yaml",
        format!(
            "data:\n{}",
            outcome
                .stdout
                .lines()
                .map(|line| format!("  {line}\n"))
                .collect::<String>()
                .replace("{{", "{{{{")
        ),
    );
    let event = again.ccm(["hiera", "parse", "data.yaml", "--query", "state"]).run().exits(0).json();
    assert_eq!(event["properties"]["content"], "a: {{ 1 }}\n");
    let pretty = serde_json::to_string_pretty(
        &serde_json::from_str::<Value>(&request(&properties(&world, "y", "x"))).unwrap(),
    )
    .unwrap();
    assert_eq!(pipe(&world, &[], &format!("\u{feff}{pretty}\n\n")).exits(0).json()["state"]["changed"], true);
}

#[test]
fn what_was_probably_not_meant_stands_in_the_answer() {
    for (kind, properties, said) in [
        ("exec", r#"{"name":"echo $HOME"}"#, "request:1:91: exec#echo $HOME: `command` holds `$HOME`"),
        ("exec", r#"{"name":"true","refresh_only":true}"#, "`refresh_only` without `subscribe`"),
        ("exec", r#"{"name":"true","control":{"if":"Facts.famly == 'x'"}}"#, "did you mean `Facts.family`?"),
        ("file", r#"{"name":"/tmp/*","ensure":"absent"}"#, "it matches nothing else"),
    ] {
        for flags in [&[][..], &["--templates"]] {
            let world = World::new();
            let request = format!(
                r#"{{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"{kind}","properties":{properties}}}"#
            );
            let words = ["ensure", "api", "pipe", "--noop"];
            let outcome = world.ccm(words.iter().chain(flags)).input(&request).run();
            let answer = outcome.exits(0).json();
            assert!(answer["warnings"][0].as_str().is_some_and(|text| text.contains(said)), "{answer:#}");
            outcome.complains(said);
        }
    }
    let request =
        r#"{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exc","properties":{"name":"a"}}"#;
    let answer = World::new().ccm(["ensure", "api", "pipe"]).input(request).run().exits(0).json();
    assert_eq!(answer["error"], "request:1:63: unknown type `exc` (did you mean `exec`?)");
}

#[test]
fn a_malformed_request_is_answered_with_the_place() {
    let world = World::new();
    let whole = |more: &str| format!("{{\"protocol\": \"{REQUEST}\", {more}}}");
    for (input, place, message) in [
        (String::new(), "", "a request is a map, not nothing"),
        ("[1]".to_owned(), "request:1:1: ", "a request is a map, not a list"),
        ("{\"type\": \"file\"".to_owned(), "request:1:", ""),
        ("{\"type\": }".to_owned(), "request:1:9: ", "`type` must be a string, not nothing"),
        ("a: b: c".to_owned(), "request:1:", ""),
        ("{}".to_owned(), "request:1:1: ", "`protocol` must be"),
        ("{\"protocol\": \"other\"}".to_owned(), "request:1:14: ", "`protocol` must be"),
        (whole("\"properties\": {}"), "request:1:1: ", "`type` is missing"),
        (whole("\"type\": \"flie\", \"properties\": {}"), "request:1:", "unknown type `flie`"),
        (whole("\"type\": 1, \"properties\": {}"), "request:1:", "`type` must be a string, not a number"),
        (whole("\"type\": \"file\""), "request:1:1: ", "`properties` is missing"),
        (
            whole("\"type\": \"file\", \"properties\": []"),
            "request:1:",
            "`properties` must be a map, not a list",
        ),
        (whole("\"type\": \"file\", \"properties\": {}"), "request:1:", "`properties.name` is missing"),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": null}"),
            "request:1:",
            "`properties.name` must be a string",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": 5}"),
            "request:1:",
            "`properties.name` must be a string",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": [\"/x\"]}"),
            "request:1:",
            "`properties.name` must be a string",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": \"-x\", \"ensure\": \"absent\"}"),
            "request:1:",
            "path \"-x\" must be absolute",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": \"/x\", \"contnt\": \"\"}"),
            "request:1:",
            "did you mean `content`?",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": \"/x\", \"content\": 1}"),
            "request:1:",
            "expected a string, found the number 1",
        ),
        (
            whole("\"type\": \"file\", \"properties\": {\"name\": \"/x\", \"mode\": \"0999\"}"),
            "request:1:",
            "is not a mode",
        ),
        (
            whole("\"type\": \"file\", \"name\": \"/x\", \"propertis\": {}"),
            "request:1:",
            "did you mean `properties`?",
        ),
        (whole("\"type\": \"file\", \"type\": \"file\""), "request:1:", "type"),
    ] {
        let outcome = pipe(&world, &[], &input);
        let answer = outcome.exits(0).json();
        assert_eq!((&answer["protocol"], answer.get("state")), (&json!(RESPONSE), None), "{input}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(place) && error.contains(message), "{input}\n{error}");
        assert!(outcome.stderr.is_empty(), "{outcome}");
    }
    let outcome = world.ccm(["ensure", "api", "pipe"]).input(b"{\"type\": \"\xff\"}").run();
    assert!(outcome.exits(0).json()["error"].as_str().unwrap().contains("not UTF-8"));
    // All that is wrong, at once.
    let error = pipe(
        &world,
        &[],
        &whole("\"type\": \"file\", \"other\": 1, \"properties\": {\"name\": \"x\", \"mode\": 9, \"a\": 1}"),
    );
    let error = error.json()["error"].as_str().unwrap().to_owned();
    for part in [
        "unknown key `other`",
        "must be absolute",
        "a mode is written in octal digits",
        "unknown property `a`",
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }
    assert!(world.tree().names().is_empty());
}

#[test]
fn nothing_in_a_request_is_a_template() {
    let world = World::new().beside(".hiera", "data: { x: 1 }").beside(".env", "X=1");
    for text in ["{{ 1 + 1 }}", "${ Data.x }", "${ nope }", "{{ 1 +", "$${ x }", "{{{{"] {
        let mut wanted = properties(&world, "x", text);
        wanted["alias"] = json!(text);
        let state = &pipe(&world, &[], &request(&wanted)).exits(0).json()["state"];
        assert_eq!((&state["failed"], &state["alias"]), (&json!(false), &json!(text)));
        assert_eq!(world.read("x"), text);
        let name = world.path(text);
        pipe(&world, &[], &request(&properties(&world, text, ""))).exits(0);
        assert!(name.exists(), "{text}");
    }
}

#[test]
fn a_server_answers_many_requests_in_one_session() {
    let world = World::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ccm"))
        .args(["ensure", "api", "serve"])
        .current_dir(world.base())
        .env("CCM_STATE_DIR", world.state())
        .env_remove(STORE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |request: &str| -> Value {
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let answer = ask(&request(&properties(&world, "x", "x")));
    assert_eq!(answer["state"]["changed"], true);
    assert_eq!(world.read("x"), "x", "it is done when the answer comes");
    assert_eq!(ask(&request(&properties(&world, "x", "x")))["state"]["changed"], false);
    // A bad request does not end it.
    assert!(ask("nonsense: [")["error"].as_str().unwrap().starts_with("request:1:"));
    // Blank lines are no requests.
    let with_require = |name: &str, required: &str| {
        let mut wanted = properties(&world, name, "y");
        wanted["require"] = json!([format!("file#{}", world.path(required).display())]);
        format!("\n  \n{}", request(&wanted))
    };
    assert_eq!(ask(&with_require("y", "x"))["state"]["changed"], true);
    assert_eq!(ask(&request(&properties(&world, "no/x", "")))["state"]["failed"], true);
    let skipped = ask(&with_require("z", "no/x"));
    assert_eq!(skipped["state"]["skipped"], true);
    assert_eq!(skipped["state"]["unmet_requirements"].as_array().unwrap().len(), 1);
    let unseen = ask(&with_require("z", "none"));
    let told = unseen["state"]["error"][0].as_str().unwrap();
    assert!(told.contains("has not been seen in this session; seen so far: file#"), "{unseen:#}");
    drop(input);
    let outcome = finish(child, "ccm ensure api serve".to_owned());
    assert!(outcome.exits(0).stderr.is_empty(), "{outcome}");
    assert_eq!(world.tree().names(), ["x", "y"]);
}

#[test]
fn a_server_shares_a_session_with_commands() {
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/x", &[]).exits(0);
    let mut wanted = properties(&world, "y", "y");
    wanted["require"] = json!([world.fill("file#$W/x")]);
    let input = format!("{}\n{}", request(&wanted), request(&properties(&world, "z", "z")));
    let outcome = world
        .ccm(["ensure", "api", "serve", "--noop"])
        .env(STORE, store.display().to_string())
        .input(input)
        .run();
    assert_eq!(outcome.exits(0).json_lines().len(), 2, "the last line needs no end");
    assert_eq!(report(&world, &store, &["--json"]).events().len(), 3);
    assert_eq!(world.tree().names(), ["x"]);
}

/// The schema that the program prints.
fn validator(name: &str) -> jsonschema::Validator {
    let schema = World::new().ccm(["schema", name]).run().exits(0).json();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn valid(validator: &jsonschema::Validator, document: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

#[test]
fn events_requests_and_answers_are_what_their_schemas_say() {
    let (requests, responses, events) = (validator("request"), validator("response"), validator("event"));
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/x", &["--alias", "it", "--tries", "2", "--timeout", "5s"]).exits(0);
    write(&world, &store, "$W/no/x", &[]).exits(1);
    write(&world, &store, "$W/y", &["--require", "file#$W/no/x"]).exits(1);
    write(&world, &store, "$W/y", &["--control", "if=false"]).exits(0);
    write(&world, &store, "$W/y", &["--noop", "--diff", "--sensitive"]).exits(0);
    write(&world, &store, "$W/y", &["--noop", "--diff"]).exits(0);
    ensure(&world, &store, &["$W/none", "absent"]).exits(0);
    ensure(&world, &store, &[&["$W/d", "directory"], &OWN[..]].concat()).exits(0);
    let others = [
        &["ensure", "exec", "true", "--environment", "A=1"][..],
        &["ensure", "exec", "false", "--creates", "$W/x"],
        &["ensure", "exec", "no such command"],
        &[
            "ensure",
            "archive",
            "$W/a.tgz",
            "--url",
            "http://127.0.0.1:1/a.tgz",
            "--owner",
            "$UID",
            "--group",
            "$GID",
            "--noop",
        ],
    ];
    for arguments in others {
        world.ccm(arguments).env(STORE, store.display().to_string()).run();
    }
    let recorded = report(&world, &store, &["--json"]).events();
    assert_eq!(recorded.len(), 12);
    for event in &recorded {
        valid(&events, event);
    }
    for (change, good) in [
        (json!({}), true),
        (json!({ "ensure": "absent" }), true),
        (json!({ "require": ["file#/a"], "control": { "if": "1 > 0" }, "sensitive": false }), true),
        (json!({ "contnt": "x" }), false),
        (json!({ "content": 1 }), false),
        (json!({ "ensure": "gone" }), false),
        (json!({ "name": 1 }), false),
        (json!({ "tries": 0 }), false),
    ] {
        let mut wanted = properties(&world, "z", "x");
        wanted.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let text = request(&wanted);
        let document: Value = serde_json::from_str(&text).unwrap();
        let answer = pipe(&world, &["--noop"], &text).exits(0).json();
        assert_eq!(answer.get("error").is_none(), good, "the program about {change}: {answer:#}");
        assert_eq!(requests.is_valid(&document), good, "the schema about {change}");
        valid(&responses, &answer);
    }
    for document in [
        json!({ "protocol": REQUEST, "type": "file" }),
        json!({ "protocol": "other", "type": "file", "properties": { "name": "/x", "ensure": "absent" } }),
        json!({ "protocol": REQUEST, "type": "flie", "properties": { "name": "/x" } }),
        json!({ "protocol": REQUEST, "type": "file", "properties": { "ensure": "absent" } }),
        json!({ "protocol": REQUEST, "type": "file", "properties": { "name": "/x", "ensure": "absent" }, "more": 1 }),
    ] {
        let answer = pipe(&world, &[], &document.to_string()).exits(0).json();
        assert!(answer["error"].is_string(), "the program about {document}");
        assert!(!requests.is_valid(&document), "the schema about {document}");
        valid(&responses, &answer);
    }
}

#[test]
fn what_is_no_event_or_answer_is_refused_by_their_schemas() {
    let (responses, events) = (validator("response"), validator("event"));
    let world = World::new();
    let event = &pipe(&world, &[], &request(&properties(&world, "x", "x"))).exits(0).json()["state"];
    let changed = |change: Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        event
    };
    let mut other_state = event["status"].clone();
    other_state["protocol"] = json!("io.choria.ccm.v1.resource.exec.state");
    let mut more_state = event["status"].clone();
    more_state["metadata"]["more"] = json!(1);
    for change in [
        json!({ "protocol": "junk" }),
        json!({ "more": 1 }),
        json!({ "type": "exec" }),
        json!({ "type": "flie" }),
        json!({ "timestamp": 1 }),
        json!({ "alias": null }),
        json!({ "status": other_state }),
        json!({ "status": more_state }),
    ] {
        let event = changed(change.clone());
        assert!(!events.is_valid(&event), "{change}");
        assert!(!responses.is_valid(&json!({ "protocol": RESPONSE, "state": event })), "{change}");
    }
    valid(&events, &changed(json!({ "status": null })));
    valid(&responses, &json!({ "protocol": RESPONSE, "state": event }));
    for response in [
        json!({ "protocol": "junk", "state": event }),
        json!({ "protocol": RESPONSE }),
        json!({ "protocol": RESPONSE, "state": event, "error": "x" }),
        json!({ "protocol": RESPONSE, "error": "x", "more": 1 }),
        json!({ "protocol": RESPONSE, "error": null }),
        json!({ "state": event }),
    ] {
        assert!(!responses.is_valid(&response), "{response}");
    }
}

#[test]
fn what_a_dry_run_foresaw_does_not_count_in_a_real_command() {
    let world = World::new();
    let store = session(&world);
    write(&world, &store, "$W/a", &["--noop"]).exits(0);
    let outcome = write(&world, &store, "$W/b", &["--require", "file#$W/a"]);
    outcome.exits(1).says("has only been seen in a dry run").says("seen so far: nothing yet");
    write(&world, &store, "$W/b", &["--require", "file#$W/a", "--noop"]).exits(0);
    assert!(world.tree().names().is_empty());
    // By whichever name, and without what else was only predicted.
    write(&world, &store, "$W/c", &["--noop", "--alias", "it"]).exits(0);
    write(&world, &store, "$W/d", &[]).exits(0);
    let outcome = write(&world, &store, "$W/e", &["--require", "file#it"]);
    outcome.exits(1).says("file#it has only been seen in a dry run");
    outcome.says(&world.fill("seen so far: file#$W/b, file#$W/d\n"));
}

#[test]
fn a_server_in_a_dry_run_remembers_what_earlier_requests_would_have_left() {
    let world = World::new();
    let own = |name: &str, more: Value| {
        let mut wanted = properties(&world, name, "");
        wanted.as_object_mut().unwrap().remove("content");
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        wanted
    };
    let file = |name: &str, more: Value| request(&own(name, more));
    let exec = |properties: Value| {
        json!({ "protocol": REQUEST, "type": "exec", "properties": properties }).to_string()
    };
    let requests = [
        (file("d/x", json!({ "content": "x" })), "failed"),
        (file("d", json!({ "ensure": "directory" })), "changed"),
        (file("d", json!({ "ensure": "directory" })), "unchanged"),
        (file("d/x", json!({ "content": "x" })), "changed"),
        (file("copy", json!({ "source": world.path("d/x") })), "changed"),
        (exec(json!({ "name": "a", "command": "true", "creates": world.path("d/x") })), "unchanged"),
        (file("y", json!({ "owner": "no-such-user" })), "failed"),
        (exec(json!({ "name": "add", "command": "useradd no-such-user" })), "changed"),
        (file("y", json!({ "owner": "no-such-user" })), "changed"),
    ];
    let input: String = requests.iter().map(|(request, _)| format!("{request}\n")).collect();
    let outcome = world.ccm(["ensure", "api", "serve", "--noop"]).input(input).run();
    let answers = outcome.exits(0).json_lines();
    assert_eq!(answers.len(), requests.len());
    for ((request, expected), answer) in requests.iter().zip(answers) {
        let state = &answer["state"];
        let found = match (state["failed"] == true, state["changed"] == true) {
            (true, _) => "failed",
            (_, true) => "changed",
            _ => "unchanged",
        };
        assert_eq!(found, *expected, "{request}\n{answer:#}");
    }
    outcome.complains("user `no-such-user` does not exist; assuming exec#add creates it");
    assert!(world.tree().names().is_empty(), "nothing was done");
}
