//! Changes of content, shown line by line.

use crate::support::{NOBODY, World, is_root};

fn world(old: &str, new: &str) -> World {
    World::new().file("x", old).files(&format!("- $W/x: {{ content: {} }}", serde_json::json!(new)))
}

#[track_caller]
fn diff(world: &World) -> String {
    let event = world.apply_with(&["--noop", "--json"]).event("/x");
    event["diff"].as_str().unwrap_or_else(|| panic!("{event:#}")).to_owned()
}

/// Returns the lines of a diff as a report shows them below their resource.
fn indented(diff: &str) -> String {
    diff.lines().map(|line| format!("      {line}\n")).collect()
}

#[test]
fn a_change_is_a_unified_diff() {
    let old: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    let new = old.replace("line 10\n", "line ten\n");
    let world = world(&old, &new);
    let expected = world.fill(
        "--- $W/x\n+++ $W/x\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13\n",
    );
    assert_eq!(diff(&world), expected);
    world.apply_with(&["--noop"]).exits(0).says(&indented(&expected));
}

#[test]
fn a_new_file_is_compared_with_nothing() {
    let world = World::new().files("- $W/x: { content: \"a\\nb\\n\" }");
    assert_eq!(diff(&world), world.fill("--- /dev/null\n+++ $W/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"));
}

#[test]
fn a_link_that_is_replaced_is_compared_with_nothing() {
    let world = World::new()
        .file("secret", "behind the link\n")
        .link("x", "$W/secret")
        .files("- $W/x: { content: \"a\\n\" }");
    assert_eq!(diff(&world), world.fill("--- /dev/null\n+++ $W/x\n@@ -0,0 +1 @@\n+a\n"));
}

#[test]
fn a_missing_end_of_line_is_shown() {
    for (old, new) in [("a\n", "a"), ("a", "a\n")] {
        assert!(diff(&world(old, new)).contains("\\ No newline at end of file"));
    }
}

#[test]
fn ends_of_lines_that_differ_can_be_told_apart() {
    let changed = world("a\r\nb\n", "a\nb\n");
    changed.apply_with(&["--noop"]).exits(0).says(&indented("-a\\r\n+a\n b\n"));
    let within = world("a\rb\n", "ab\n");
    within.apply_with(&["--noop"]).exits(0).says(&indented("-a\\rb\n+ab\n"));
    assert!(diff(&within).ends_with("-a\rb\n+ab\n"), "{:?}", diff(&within));
    let last = world("a\r", "a\n");
    last.apply_with(&["--noop"]).exits(0).says(&indented("-a\\r\n\\ No newline at end of file\n+a\n"));
}

#[test]
fn what_is_not_text_or_too_large_is_only_said_to_differ() {
    let binary = World::new().file("x", b"\0\xff").files("- $W/x: { content: a }");
    assert!(diff(&binary).ends_with("the files differ; not text\n"));
    let binary = World::new().file("x", "a").beside("data", b"\xff\xfe").files("- $W/x: { source: data }");
    assert!(diff(&binary).ends_with("the files differ; not text\n"));
    let huge = World::new().file("x", "a\n".repeat(1 << 20)).files("- $W/x: { content: a }");
    assert!(diff(&huge).ends_with("the files differ; too large to show\n"));
}

#[test]
fn a_source_is_shown_like_content() {
    let world = World::new().file("x", "old\n").beside("new", "new\n").files("- $W/x: { source: new }");
    assert_eq!(diff(&world), world.fill("--- $W/x\n+++ $W/x\n@@ -1 +1 @@\n-old\n+new\n"));
}

#[test]
fn diffs_are_shown_by_default_only_in_a_dry_run() {
    for (flags, shown) in [
        (&["--noop"][..], true),
        (&["--noop", "--no-diff"], false),
        (&["--noop", "--no-diff", "--diff"], true),
        (&["--noop", "--diff", "--no-diff"], false),
        (&[], false),
        (&["--diff"], true),
        (&["--diff", "--json"], true),
        (&["--json"], false),
    ] {
        let world = world("old\n", "new\n");
        let outcome = world.apply_with(flags);
        assert_eq!(outcome.exits(0).stdout.contains("@@ -1 +1 @@"), shown, "{flags:?}\n{outcome}");
    }
}

#[test]
fn a_change_that_failed_has_no_diff() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("d").file("d/x", "old\n");
    let world = world.files("- $W/d/x: { content: \"new\\n\" }");
    let run = |flags: &[&str]| {
        let arguments = ["apply", "site.yaml", "--json", "--diff"].iter().chain(flags);
        world.ccm(arguments).uid(NOBODY).run().event("/x")
    };
    // It can be read, but not be replaced.
    let failed = run(&[]);
    assert_eq!((&failed["failed"], &failed["changed"]), (&true.into(), &false.into()), "{failed:#}");
    assert!(failed.get("diff").is_none(), "{failed:#}");
    // Of one that goes well the same run has one.
    let other = world.base().join("home").display().to_string();
    let done = world.ccm(["apply", "site.yaml", "--json", "--diff", "--state-dir", &other]).run().event("/x");
    assert!(done["diff"].as_str().is_some_and(|diff| diff.ends_with("-old\n+new\n")), "{done:#}");
}

#[test]
fn attributes_alone_have_no_diff() {
    let world = World::new().file("x", "same").mode("x", 0o600).files("- $W/x: { content: same }");
    assert!(world.apply_with(&["--noop", "--json"]).event("/x").get("diff").is_none());
}

#[test]
fn control_characters_in_a_diff_do_not_reach_the_terminal() {
    let world = world("old\u{1b}[2J\n", "new\u{1b}]0;title\u{7}\n");
    let outcome = world.apply_with(&["--noop"]);
    assert!(!outcome.exits(0).stdout.contains(['\u{1b}', '\u{7}']), "{outcome}");
}

#[test]
fn a_dry_run_compares_with_what_earlier_resources_would_have_left() {
    let world = World::new().file("x", "disk\n").manifest(
        "- file: [{ $W/x: { ensure: absent } }]\n- file: [{ $W/d: { ensure: directory, $OWN, mode: '0755' } }, { $W/d/y: { content: \"a\\n\", $OWN, mode: '0644' } }]",
    );
    let outcome = world.apply_with(&["--noop"]);
    outcome.exits(0).says("+++ ").says("+a\n").counts([3, 0, 0, 0]);
}
