//! Everything that users and machines get wrong: what they are told, where, and that nothing else was touched.

use std::fs;

use crate::support::{NOBODY, World, has, is_root, sh};

/// A manifest that nothing is attempted of: a good resource before the bad one is not applied either.
#[track_caller]
fn not_attempted(bad: &str, place: &str, message: &str, help: &str) {
    let world = World::new().manifest(&format!(
        "\
- file: [{{ $W/good: {{ content: x, $OWN, mode: '0644' }} }}]
{bad}
"
    ));
    let before = world.tree();
    let outcome = world.apply();
    outcome.exits(2).complains(message).complains(&format!("--> site.yaml:{place}")).complains(help);
    assert_eq!(world.tree(), before, "{outcome}");
}

/// A resource that fails: the others are applied, and nothing else is touched.
#[track_caller]
fn fails(world: World, bad: &str, place: &str, message: &str, help: &str) {
    let manifest = format!(
        "\
- file: [{{ $W/good: {{ content: x, $OWN, mode: '0644' }} }}]
{bad}
- file: [{{ $W/last: {{ ensure: absent }} }}]
"
    );
    let world = world.manifest(&manifest);
    let before = world.tree();
    let outcome = world.apply();
    let message = world.fill(message);
    outcome
        .exits(1)
        .says(&message)
        .says(&format!("failed  site.yaml:{place}"))
        .says(help)
        .counts([1, 1, 1, 0]);
    let mut after = world.tree();
    after.0.remove(std::path::Path::new("good")).expect("the good one was applied");
    assert_eq!(after, before, "{outcome}");
    let event = world.apply_with(&["--json"]).events().remove(1);
    assert_eq!(event["failed"], true);
    assert!(event["error"][0].as_str().unwrap().contains(&message), "{event:#}");
}

#[test]
fn an_unknown_key() {
    not_attempted(
        "- file: [{ /a: { contnt: x } }]",
        "2:18",
        "file#/a: unknown property `contnt`",
        "did you mean `content`?",
    );
}

#[test]
fn an_unknown_type() {
    not_attempted("- flie: [{ /a: { content: x } }]", "2:3", "unknown type `flie`", "did you mean `file`?");
}

#[test]
fn a_value_of_the_wrong_type() {
    not_attempted(
        "- file: [{ /a: { ensure: absent, force: 'yes' } }]",
        "2:41",
        "force: expected true or false",
        "",
    );
    not_attempted(
        "- file: [{ /a: { content: [x] } }]",
        "2:27",
        "content: expected a string, found a list",
        "",
    );
    not_attempted(
        "- file: [{ /a: { content: 12 } }]",
        "2:27",
        "content: expected a string, found the number 12",
        "",
    );
}

#[test]
fn a_mode_that_is_not_octal() {
    let bad = "- file: [{ /a: { owner: '0', group: '0', mode: \"0999\" } }]";
    not_attempted(bad, "2:48", "\"0999\" is not a mode", "octal digits (0 to 7)");
}

#[test]
fn a_relative_path() {
    not_attempted(
        "- file: [{ etc/motd: { ensure: absent } }]",
        "2:12",
        "path \"etc/motd\" must be absolute",
        "",
    );
}

#[test]
fn a_name_on_the_command_line_that_is_no_path() {
    for (name, said) in [
        ("x", "path \"x\" must be absolute: start it with /"),
        ("~/x", "help: write `${ Environ.HOME }`"),
        ("/tmp//x", "must be absolute and clean: write \"/tmp/x\""),
        ("", "it has no name"),
    ] {
        for kind in [&["file"][..], &["archive", "--url", "http://127.0.0.1:9/a.tar.gz"]] {
            let words = ["ensure"].iter().chain(kind).copied().chain(["--", name]);
            World::new().ccm(words).run().exits(2).complains(said);
        }
    }
}

#[test]
fn an_unclean_path() {
    not_attempted(
        "- file: [{ /etc/../motd: { ensure: absent } }]",
        "2:12",
        "must be absolute and clean: write \"/motd\"",
        "",
    );
}

#[test]
fn both_content_and_source() {
    let bad = "- file: [{ /a: { content: x, source: y, owner: '0', group: '0', mode: '0644' } }]";
    not_attempted(
        bad,
        "2:38",
        "`content` and `source` cannot be given together",
        "keep the one that holds the content",
    );
}

#[test]
fn content_of_a_directory() {
    let bad = "- file: [{ /a: { ensure: directory, content: x, owner: '0', group: '0', mode: '0644' } }]";
    not_attempted(bad, "2:46", "a directory has no `content`", "");
}

#[test]
fn a_template_does_not_hide_what_cannot_go_together() {
    let own = "owner: '0', group: '0', mode: '0644'";
    let template = "\"{{ 'x' }}\"";
    let together = "`content` and `source` cannot be given together";
    for (properties, place, message) in [
        (format!("content: {template}, source: y"), "2:48", together),
        (format!("content: x, source: {template}"), "2:38", together),
        (format!("ensure: directory, content: {template}"), "2:46", "a directory has no `content`"),
        (format!("ensure: directory, source: {template}"), "2:45", "a directory has no `source`"),
        (format!("content: {template}, contents: x"), "2:40", "`content` is given twice, under two names"),
        (format!("contents: x, content: {template}"), "2:31", "`content` is given twice, under two names"),
    ] {
        not_attempted(&format!("- file: [{{ /a: {{ {properties}, {own} }} }}]"), place, message, "");
    }
    let password = "password: \"{{ 'x' }}\", url: 'http://a/b.tgz', owner: root, group: root";
    not_attempted(
        &format!("- archive: [{{ /b.tgz: {{ {password} }} }}]"),
        "2:35",
        "`password` needs `username`",
        "",
    );
    // What comes out of a template is judged like what is written.
    let world = World::new().manifest("- exec: [{ a: { command: \"{{ 'true' }} '{{ 'x' }}\" } }]");
    world.validate().exits(2).complains("has a quotation mark that is not closed");
}

#[test]
fn a_missing_owner_group_or_mode() {
    for (given, missing) in [
        ("group: '0', mode: '0644'", "owner"),
        ("owner: '0', mode: '0644'", "group"),
        ("owner: '0', group: '0'", "mode"),
    ] {
        for ensure in ["present", "directory"] {
            let bad = format!("- file: [{{ /a: {{ ensure: {ensure}, {given} }} }}]");
            not_attempted(
                &bad,
                "2:12",
                &format!("file#/a: `{missing}` is missing"),
                "needs owner, group and mode",
            );
        }
    }
}

#[test]
fn an_unknown_user_or_group() {
    let bad = "- file: [{ $W/x: { content: x, owner: no-such-user, group: '$GID', mode: '0644' } }]";
    fails(
        World::new(),
        bad,
        "2:",
        "user \"no-such-user\" does not exist on this machine",
        "create the user first",
    );
    let bad = "- file: [{ $W/x: { content: x, owner: '$UID', group: no-such-group, mode: '0644' } }]";
    fails(World::new(), bad, "2:", "group \"no-such-group\" does not exist on this machine", "(group)");
}

#[test]
fn a_missing_source() {
    let bad = "- file: [{ $W/x: { source: missing.txt, $OWN, mode: '0644' } }]";
    let world = World::new();
    not_attempted(bad, "2:", "source: there is no", "a relative path starts at ");
    let bad = "- file: [{ $W/x: { source: /nonexistent/missing.txt, $OWN, mode: '0644' } }]";
    fails(world, bad, "2:", "cannot read source /nonexistent/missing.txt: it does not exist", "(source)");
}

#[test]
fn a_missing_parent() {
    let bad = "- file: [{ $W/no/where/x: { content: x, $OWN, mode: '0644' } }]";
    fails(
        World::new(),
        bad,
        "2:12",
        "cannot write \"$W/no/where/x\": directory \"$W/no\" does not exist",
        "as a directory before this resource",
    );
}

#[test]
fn a_directory_in_the_way() {
    let bad = "- file: [{ $W/x: { content: x, $OWN, mode: '0644' } }]";
    fails(
        World::new().file("x/inside", "kept"),
        bad,
        "2:",
        "a directory is in the way at $W/x",
        "move it away, or remove it",
    );
}

#[test]
fn a_read_only_file_system() {
    let Some(world) = World::new().tmpfs("m", "size=64k,mode=755") else { return };
    fs::write(world.path("m/x"), "kept").unwrap();
    let world = world.read_only();
    let world = world.manifest(
        "\
- file:
  - $W/m/x: { content: new, $OWN, mode: '0644' }
  - $W/m/d: { ensure: directory, $OWN, mode: '0755' }
- file: [{ $W/m/x2: { content: new, $OWN, mode: '0644' } }]
",
    );
    let before = world.tree();
    for flags in [&["--noop"][..], &[]] {
        let outcome = world.apply_with(flags);
        outcome
            .exits(1)
            .counts([0, 0, 3, 0])
            .says("is on a read-only file system")
            .says("site.yaml:2:5")
            .says("mount it read-write");
        assert_eq!(world.tree(), before);
    }
    let world = world.manifest("- file: [{ $W/m/x: { ensure: absent } }, { $W/m/gone: { ensure: absent } }]");
    for flags in [&["--noop"][..], &[]] {
        world.apply_with(flags).exits(1).counts([0, 1, 1, 0]).says("is on a read-only file system");
    }
    let world = world.manifest("- file: [{ $W/m/x: { $OWN, mode: '0600' } }]");
    for flags in [&["--noop"][..], &[]] {
        world.apply_with(flags).exits(1).counts([0, 0, 1, 0]).says("is on a read-only file system");
    }
    assert_eq!(world.tree(), before);
}

/// A tree that cannot be removed whole: a dry run says so too, and a real run removes nothing of it.
#[track_caller]
fn stays_whole(world: World, uid: u32, problem: &str, help: &str) {
    let world = world.manifest("- file: [{ $W/tree: { ensure: absent, force: true } }]");
    let before = world.tree();
    for flags in [&["--noop"][..], &[]] {
        let outcome = world.ccm(["apply", "site.yaml"].iter().chain(flags)).uid(uid).run();
        outcome.exits(1).says(&world.fill(problem)).says(help).counts([0, 0, 1, 0]);
        assert_eq!(world.tree(), before, "{outcome}");
    }
}

#[test]
fn something_protected_deep_in_a_tree_that_is_to_go() {
    if !is_root() || !has("chattr") {
        return;
    }
    for (flag, word) in [('i', "immutable"), ('a', "append-only")] {
        for name in ["tree/a/b/file", "tree/a/b"] {
            let world = World::on_disk().file("tree/other", "x").file("tree/a/b/file", "x");
            sh(&format!("chattr +{flag} {name}"), &world.path(""));
            stays_whole(world, 0, &format!("\"$W/{name}\" is {word}"), &format!("chattr -{flag}"));
        }
    }
}

#[test]
fn something_mounted_deep_in_a_tree_that_is_to_go() {
    let world = World::new().file("tree/other", "x");
    let Some(world) = world.tmpfs("tree/a/b", "size=64k") else { return };
    stays_whole(world, 0, "\"$W/tree/a/b\" is the root of another file system", "unmount it first");
}

#[test]
fn somebody_else_s_directory_deep_in_a_tree_that_is_to_go() {
    if !is_root() {
        return;
    }
    let world = World::new().file("tree/other", "x").file("tree/a/b/file", "x");
    let world = ["", "tree", "tree/a", "tree/other"]
        .iter()
        .fold(world, |world, name| world.owner(name, NOBODY, NOBODY));
    stays_whole(world, NOBODY, "permission denied at \"$W/tree/a/b/file\"", "run it as root");
}

#[test]
fn an_immutable_or_append_only_file() {
    if !is_root() {
        return;
    }
    for (flag, word) in [('i', "immutable"), ('a', "append-only")] {
        let mut world = World::on_disk().file("x", "kept").mode("x", 0o600);
        sh(&format!("chattr +{flag} x"), &world.path(""));
        for properties in [
            "content: new, $OWN, mode: '0600'",
            "ensure: absent",
            "$OWN, mode: '0644'",
            "ensure: directory, force: true, $OWN, mode: '0755'",
        ] {
            world = world.manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"));
            let before = world.tree();
            for flags in [&["--noop"][..], &[]] {
                let outcome = world.apply_with(flags);
                outcome
                    .exits(1)
                    .says(&world.fill(&format!("\"$W/x\" is {word}")))
                    .says("chattr")
                    .says("site.yaml:1:12");
                assert_eq!(world.tree(), before);
            }
        }
        sh(&format!("chattr -{flag} x"), &world.path(""));
    }
}

#[test]
fn permission_denied() {
    if !is_root() {
        return;
    }
    let theirs = "owner: '65534', group: '65534', mode: '0644'";
    for properties in [
        &format!("content: new, {theirs}"),
        "ensure: absent",
        &format!("ensure: directory, force: true, {theirs}"),
    ] {
        let world = World::new().file("x", "kept");
        let world = world.manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"));
        let before = world.tree();
        for flags in [&["apply", "site.yaml", "--noop"][..], &["apply", "site.yaml"]] {
            let outcome = world.ccm(flags).uid(NOBODY).run();
            outcome
                .exits(1)
                .says("permission denied")
                .says(&world.fill("$W"))
                .says("site.yaml:1:12")
                .says("run it as root");
            assert_eq!(world.tree(), before);
        }
    }
}

#[test]
fn giving_a_file_away_without_being_root() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("theirs").owner("theirs", NOBODY, NOBODY);
    let world =
        world.manifest("- file: [{ $W/theirs/x: { content: x, owner: '1', group: '1', mode: '0644' } }]");
    for flags in [&["apply", "site.yaml", "--noop"][..], &["apply", "site.yaml"]] {
        world.ccm(flags).uid(NOBODY).run().exits(1).says(&world.fill("$W/theirs/x")).counts([0, 0, 1, 0]);
    }
    assert_eq!(world.tree().names(), ["theirs"]);
}

#[test]
fn wrong_arguments() {
    let world = World::new().manifest("[]");
    for (arguments, message) in [
        (&[][..], "Usage"),
        (&["aply", "site.yaml"], "unrecognized subcommand"),
        (&["apply"], "required"),
        (&["apply", "site.yaml", "--nop"], "--noop"),
        (&["status", "file", "/x", "more"], "unexpected argument"),
        (&["validate"], "required"),
        (&["ensure"], "Usage"),
        (&["ensure", "fiel", "/x"], "unrecognized subcommand"),
        (&["status", "fiel", "/x"], "invalid value"),
        (&["schema", "nothing"], "invalid value"),
        (&["completions", "cmd"], "invalid value"),
    ] {
        let outcome = world.ccm(arguments).run();
        outcome.exits(2);
        assert!(format!("{}{}", outcome.stdout, outcome.stderr).contains(message), "{message}\n{outcome}");
    }
}
