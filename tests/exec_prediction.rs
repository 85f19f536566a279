//! What a dry run says of commands and archives that depend on what earlier resources of the same run would have left.

use crate::{
    archive::app,
    prediction::verdicts,
    support::{World, http::Server, is_root},
};

/// What a resource of the manifest is expected to come to, in a dry run and then in a real one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Changed,
    Stable,
    Failed,
}
use Verdict::{Changed, Failed, Stable};

#[track_caller]
fn foretold(world: &World, expected: &[Verdict]) {
    for flags in [&["--noop", "--json", "--no-diff"][..], &["--json"]] {
        let (verdicts, errors) = verdicts(world, flags);
        let verdicts: Vec<Verdict> = verdicts
            .into_iter()
            .map(|(_, changed, failed)| match (changed, failed) {
                (_, true) => Failed,
                (true, _) => Changed,
                _ => Stable,
            })
            .collect();
        assert_eq!(verdicts, expected, "{flags:?}\n{errors}");
    }
}

/// Entries of a manifest, one per line: a type, a name and its properties.
fn site(entries: &str) -> World {
    let own = "$OWN, mode: '0755'";
    let entry = |line: &str| {
        let (kind, item) = line.trim().split_once(' ').expect("a type and an item");
        format!("- {kind}: [ {{ {} }} ]\n", item.replace("$FILE", own))
    };
    World::new().manifest(&entries.trim().lines().map(entry).collect::<String>())
}

#[test]
fn what_a_file_resource_makes_or_removes_counts_for_creates() {
    let run = "command: touch $W/ran";
    for (entries, expected) in [
        (
            format!("file $W/n/marker: {{ $FILE }}\nexec a: {{ {run}, creates: $W/n/marker }}"),
            [Changed, Stable],
        ),
        (
            format!("file $W/there: {{ ensure: absent }}\nexec a: {{ {run}, creates: $W/there }}"),
            [Changed, Changed],
        ),
        (
            format!("file $W/new: {{ ensure: directory, $FILE }}\nexec a: {{ {run}, creates: $W/new }}"),
            [Changed, Stable],
        ),
        (
            format!("file $W/new: {{ ensure: directory, $FILE }}\nexec a: {{ {run}, creates: $W/new/x }}"),
            [Changed, Changed],
        ),
    ] {
        foretold(&site(&entries).file("there", "").dir("n"), &expected);
    }
}

#[test]
fn a_command_is_taken_to_create_what_it_says() {
    foretold(
        &site(
            "exec one: { command: touch $W/one, creates: $W/one }\nexec two: { command: touch $W/two, creates: $W/one }",
        ),
        &[Changed, Stable],
    );
    // What is below it may be there too: a file needs no parent that is known to exist.
    foretold(
        &site(
            "\
exec make: { command: mkdir -p $W/app/conf, creates: $W/app }
file $W/app/main: { content: x, $FILE }
file $W/app/conf/more: { content: x, $FILE }
exec use: { command: touch used, cwd: $W/app/conf }",
        ),
        &[Changed, Changed, Changed, Changed],
    );
    // And so are the directories above it.
    foretold(
        &site(
            "\
exec make: { command: \"sh -c 'mkdir -p $W/app/bin; cp /bin/true $W/app/bin/app'\", creates: $W/app/bin/app }
file $W/app/main: { content: x, $FILE }
exec use: { command: $W/app/bin/app }",
        ),
        &[Changed, Changed, Changed],
    );
    foretold(
        &site(
            "exec make: { command: mkdir $W/new, creates: $W/new }\nfile $W/new: { ensure: directory, $FILE }",
        ),
        &[Changed, Stable],
    );
    foretold(
        &site(
            "\
exec make: { command: touch $W/new, creates: $W/new }
file $W/new: { content: x, $FILE }
file $W/copy: { source: $W/new, $FILE }",
        ),
        &[Changed, Changed, Changed],
    );
}

#[test]
fn a_guard_that_needs_what_is_not_there_yet_is_not_asked() {
    for entries in [
        "file $W/n: { ensure: directory, $FILE }\nexec a: { command: touch ran, cwd: $W/n, onlyif: test -d . }",
        "file $W/tool: { content: \"#!/bin/sh\\n\", $FILE }\nexec a: { command: touch $W/ran, onlyif: $W/tool }",
        "file $W/tool: { content: \"#!/bin/sh\\n\", $FILE }\nexec a: { command: touch $W/ran, onlyif: tool, path: \"/usr/bin:$W\" }",
        "file $W/tool: { content: \"#!/bin/sh\\n\", $FILE }\nexec a: { command: touch $W/ran, onlyif: $W/tool && true, provider: shell }",
        "exec get: { command: cp /bin/true $W/tool, unless: test -e $W/tool }\nexec a: { command: touch $W/ran, onlyif: $W/tool }",
        "exec get: { command: cp /bin/false $W/tool, unless: test -e $W/tool }\nexec a: { command: touch $W/ran, unless: $W/tool }",
    ] {
        let world = site(entries);
        world
            .apply_with(&["--noop"])
            .exits(0)
            .says(" gave no answer: ")
            .says("assuming ")
            .says(" changes that, and the command is needed");
        foretold(&world, &[Changed, Changed]);
    }
    // Nothing that came before can bring this one: it fails, as it will.
    for guard in ["onlyif: no-such-program", "onlyif: no-such-program, provider: shell"] {
        let entries = format!("file $W/other: {{ $FILE }}\nexec a: {{ command: touch $W/ran, {guard} }}");
        foretold(&site(&entries), &[Changed, Failed]);
    }
    // The other guard still has a say, and so has `refresh_only`.
    let dir = "file $W/n: { ensure: directory, $FILE }\n";
    foretold(
        &site(&format!(
            "{dir}exec a: {{ command: touch ran, cwd: $W/n, onlyif: test -d ., refresh_only: true }}"
        )),
        &[Changed, Stable],
    );
}

#[test]
fn a_command_that_certainly_cannot_be_started_fails_in_a_dry_run_too() {
    for (entries, expected) in [
        ("exec a: { command: no-such-program }", &[Failed][..]),
        ("exec a: { command: /no/such/program }", &[Failed]),
        ("exec a: { command: $W/plain }", &[Failed]),
        ("exec a: { command: 'true', cwd: /no/such/folder }", &[Failed]),
        ("exec a: { command: 'true', user: no-such-user }", &[Failed]),
        ("exec a: { command: 'true', group: no-such-group }", &[Failed]),
        ("file $W/other: { $FILE }\nexec a: { command: no-such-program }", &[Changed, Failed]),
        ("file $W/tool: { ensure: absent }\nexec a: { command: $W/tool }", &[Changed, Failed]),
        (
            "file $W/tool: { content: x, $OWN, mode: '0644' }\nexec a: { command: $W/tool }",
            &[Changed, Failed],
        ),
        (
            "file $W/plain: { content: \"#!/bin/sh\\n\", $FILE }\nexec a: { command: $W/plain }",
            &[Changed, Changed],
        ),
        ("file $W/d: { ensure: absent }\nexec a: { command: 'true', cwd: $W/d }", &[Changed, Failed]),
        (
            "file $W/n: { ensure: directory, $FILE }\nexec a: { command: ./no-tool, cwd: $W/n }",
            &[Changed, Failed],
        ),
    ] {
        let world = site(entries).file("plain", "").file("tool", "#!/bin/sh\n").mode("tool", 0o755).dir("d");
        foretold(&world, expected);
    }
    // A refresh is no exception.
    foretold(
        &site(
            "file $W/x: { $FILE }\nexec a: { command: no-such-program, subscribe: [file#$W/x], refresh_only: true }",
        ),
        &[Changed, Failed],
    );
}

#[test]
fn what_an_earlier_command_may_bring_is_not_missed() {
    let get = "exec get: { command: \"sh -c 'cp /bin/true $W/tool; mkdir -p $W/d'\" }\n";
    for (item, reason) in [
        ("command: $W/tool", "does not exist; "),
        ("command: tool, path: $W", "was not found in any directory"),
        ("command: 'true', cwd: $W/d", "in the directory"),
    ] {
        let world = site(&format!("{get}exec use: {{ {item} }}"));
        world.apply_with(&["--noop"]).exits(0).says(reason).says("assuming ");
        foretold(&world, &[Changed, Changed]);
    }
    let world = site("exec add: { command: \"true\" }\nexec use: { command: \"true\", user: no-such-user }");
    world
        .apply_with(&["--noop"])
        .exits(0)
        .says("user \"no-such-user\" does not exist on this machine; assuming exec#add changes that");
}

#[test]
fn what_an_earlier_command_of_the_session_may_bring_is_not_missed() {
    let world = World::new();
    let store = world.base().join("session").display().to_string();
    world.ccm(["session", "new", "--directory", &store]).run().exits(0);
    let ensure = |name: &str, command: &str| {
        let call = world.ccm(["ensure", "exec", name, "--noop", "--command", command]);
        call.env("CCM_SESSION_STORE", store.clone()).run()
    };
    ensure("use", "$W/tool").exits(1).says("does not exist");
    ensure("get", "cp /bin/true $W/tool").exits(0);
    ensure("use", "$W/tool").exits(0).says("assuming ");
}

#[test]
fn a_command_runs_as_its_user_also_in_a_dry_run() {
    if !is_root() {
        return;
    }
    let world =
        site("exec a: { command: $W/closed/tool, user: nobody }\nexec b: { command: $W/closed/tool }")
            .file("closed/tool", "#!/bin/sh\n")
            .mode("closed/tool", 0o755)
            .mode("closed", 0o700);
    foretold(&world, &[Failed, Changed]);
    // What a user's command makes is the user's, and root makes no directory of its own there.
    let world = site(
        "exec a: { command: mkdir $W/open/d, creates: $W/open/d, user: nobody }\nfile $W/open/d/x: { ensure: directory, $FILE }",
    )
    .dir("open")
    .mode("open", 0o1777);
    foretold(&world, &[Changed, Failed]);
}

#[test]
fn an_archive_sees_and_leaves_what_it_would() {
    let server = Server::of(app("1"));
    let archive = |more: &str| {
        format!("archive $W/n/a.tar.gz: {{ url: \"{}\", $OWN, tries: 1, {more} }}", server.url("/a.tar.gz"))
    };
    let extract = "extract_parent: $W/opt, creates: $W/opt/bin/app";
    let dir = "file $W/n: { ensure: directory, $FILE }\n";
    for (entries, expected) in [
        (archive(""), &[Failed][..]),
        (format!("{dir}{}", archive("")), &[Changed, Changed]),
        (
            format!("{dir}{}\nexec a: {{ command: \"true\", creates: $W/n/a.tar.gz }}", archive("")),
            &[Changed, Changed, Stable],
        ),
        (
            format!(
                "{dir}{}\nexec a: {{ command: touch $W/ran, creates: $W/n/a.tar.gz }}\nexec b: {{ command: \"true\", creates: $W/opt/bin/app }}\nexec c: {{ command: cat readme, cwd: $W/opt/share }}\nfile $W/opt/share/more: {{ content: x, $FILE }}\nfile $W/opt/bin/more: {{ content: x, $FILE }}",
                archive(&format!("{extract}, cleanup: true"))
            ),
            &[Changed, Changed, Changed, Stable, Changed, Changed, Changed],
        ),
        (
            format!(
                "{dir}exec a: {{ command: \"sh -c 'mkdir -p $W/opt/bin; touch $W/opt/bin/app'\", creates: $W/opt/bin/app }}\n{}",
                archive(extract)
            ),
            &[Changed, Changed, Stable],
        ),
        (
            format!(
                "{dir}file $W/kept/bin/app: {{ ensure: absent }}\n{}",
                archive("extract_parent: $W/kept, creates: $W/kept/bin/app")
            ),
            &[Changed, Changed, Changed],
        ),
        (
            format!(
                "{dir}file $W/n/a.tar.gz: {{ content: x, $FILE }}\n{}",
                archive("").replace("$OWN", "ensure: absent")
            ),
            &[Changed, Changed, Changed],
        ),
    ] {
        let world = site(&entries).file("kept/bin/app", "old");
        foretold(&world, expected);
    }
}
