//! Files that are only partly ours: what `edit` makes of them, what it leaves alone, and what it refuses.

use std::fs;

use crate::support::{World, is_root};

/// A world in which `$W/x` is edited.
fn edited(old: &str, steps: &str) -> World {
    World::new().file("x", old).manifest(&format!("- file: [{{ $W/x: {{ edit: [{steps}] }} }}]"))
}

#[test]
fn an_edit_is_shown_done_once_and_then_stable() {
    let steps = r#"{line: "PermitRootLogin no", match: "^#?PermitRootLogin"}, {line: "UseDNS yes", ensure: absent},
        {block: "Match User git\n  X11Forwarding no\n", marker: git}, {replace: "Port [0-9]+", with: "Port 2222"}"#;
    let old = "# ours\n#PermitRootLogin yes\nUseDNS yes\nPort 22\n";
    let new = "# ours\nPermitRootLogin no\nPort 2222\n# BEGIN ccm git\nMatch User git\n  X11Forwarding no\n# END ccm git\n";
    let world = edited(old, steps).mode("x", 0o640);
    let noop = world.apply_with(&["--noop", "--json"]).event("/x");
    assert_eq!(noop["noop_message"], "Would have updated the file");
    let diff = noop["diff"].as_str().unwrap();
    assert!(diff.contains("-UseDNS yes\n") && diff.contains("+Port 2222\n"), "{diff}");
    assert_eq!(world.read("x"), old);
    world.apply().exits(0).reports(&world.fill("file#$W/x"), "updated the file (edit)");
    assert_eq!(world.read("x"), new);
    assert_eq!(world.tree().item("x").unwrap().mode, 0o640, "the mode stays");
    let before = world.tree();
    world.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(world.tree(), before);
    fs::write(world.path("x"), new.replace("2222", "22")).unwrap();
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), new, "drift is repaired");
}

#[test]
fn formats_that_programs_read_keep_what_is_not_asked_for() {
    for (old, step, new) in [
        (
            "[main]\n; c\ngpgcheck=0\n",
            "{ini: {section: main, key: gpgcheck, value: 1}}",
            "[main]\n; c\ngpgcheck=1\n",
        ),
        (
            "# c\n",
            "{keyvalue: {key: vm.swappiness, value: 10, separator: ' = '}}",
            "# c\nvm.swappiness = 10\n",
        ),
        (
            "{\"debug\": true}\n",
            "{json: {log: {level: info}, debug: null}}",
            "{\n  \"log\": {\n    \"level\": \"info\"\n  }\n}\n",
        ),
        (
            "# c\n[registry]\nmirror = \"y\" # why\n",
            "{toml: {key: registry.mirror, value: x}}",
            "# c\n[registry]\nmirror = \"x\" # why\n",
        ),
    ] {
        let world = edited(old, step);
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.read("x"), new, "{step}");
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
}

#[test]
fn what_an_edit_does_not_name_stays_byte_for_byte() {
    for (old, step, new) in [
        (
            "{\"id\": 123456789012345678901, \"price\": 1.10, \"far\": 1E400}\n",
            "{json: {x: 1}}",
            "{\n  \"id\": 123456789012345678901,\n  \"price\": 1.10,\n  \"far\": 1E400,\n  \"x\": 1\n}\n",
        ),
        ("a\r\nb\r\n", "{replace: '^a$', with: c}", "c\r\nb\r\n"),
        ("Port 22\n", "{replace: '^(Port) 22$', with: '$${1}_x 2222'}", "Port_x 2222\n"),
        ("k = 1 ; why\n", "{ini: {key: k, value: 2}}", "k = 2 ; why\n"),
    ] {
        let world = edited(old, step);
        world.apply().exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.read("x"), new, "{step}");
        world.apply().exits(0).counts([0, 1, 0, 0]);
    }
    let world = edited("k = 1 ; why\n", "{ini: {key: k, value: 1}}");
    world.apply().exits(0).counts([0, 1, 0, 0]);
    let world = edited("{\"a\":1,\"a\":2}", "{json: {x: 1}}");
    world
        .apply()
        .counts([0, 0, 1, 0])
        .says("step 1 (`json`): the key `a` stands in one object more than once");
    assert_eq!(world.read("x"), "{\"a\":1,\"a\":2}");
}

#[test]
fn a_step_at_fault_is_all_that_is_told() {
    for properties in ["edit: [{linee: x}]", "edit: [{linee: x}], validate: /bin/true"] {
        let world = World::new().file("x", "").manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"));
        let run = world.apply();
        run.exits(2).complains("linee");
        assert!(!run.stderr.contains("is missing") && !run.stderr.contains("needs"), "{run}");
    }
    let world = World::new().manifest("- file: [{ $W/x: { edit: [{linee: x}], create: true } }]");
    world.apply().exits(2).complains("linee").complains("`owner` is missing");
    let world = World::new().manifest("- file: [{ $W/x: { content: [] } }]");
    world.apply().exits(2).complains("content").complains("`owner` is missing");
}

#[test]
fn owner_group_and_mode_stay_unless_they_are_given() {
    if !is_root() {
        return;
    }
    let world = edited("a\n", "{line: b}").mode("x", 0o4750).owner("x", 1, 2).mode("x", 0o4750);
    world.apply().exits(0).counts([1, 0, 0, 0]);
    let item = world.tree().item("x").unwrap().clone();
    assert_eq!((item.uid, item.gid, item.mode), (1, 2, 0o4750));
    let world = world.manifest("- file: [{ $W/x: { edit: [{line: c}], group: '3', mode: '0600' } }]");
    world.apply().exits(0).reports(&world.fill("file#$W/x"), "updated the file (edit, group");
    let item = world.tree().item("x").unwrap().clone();
    assert_eq!((item.uid, item.gid, item.mode), (1, 3, 0o600));
    assert_eq!(world.read("x"), "a\nb\nc\n");
}

#[test]
fn an_absent_file_is_an_error_unless_it_is_to_be_created() {
    let world = World::new().manifest("- file: [{ $W/x: { edit: [{line: a}] } }]");
    world.apply_with(&["--noop"]).counts([0, 0, 1, 0]);
    world.apply().counts([0, 0, 1, 0]).says("does not exist, and so cannot be edited").says("`create: true`");
    let world = world.manifest("- file: [{ $W/x: { edit: [{line: a}], create: true } }]");
    world.apply().exits(2).complains("`owner` is missing");
    let world = world.manifest("- file: [{ $W/x: { edit: [{line: a}], create: true, $OWN, mode: '0600' } }]");
    world.apply().exits(0).reports(&world.fill("file#$W/x"), "created the file");
    assert_eq!((world.read("x").as_str(), world.tree().item("x").unwrap().mode), ("a\n", 0o600));
    world.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn a_step_that_would_never_come_to_rest_fails_and_nothing_is_written() {
    let world = edited("a\n", "{line: b}, {replace: a, with: aa}");
    world.apply().counts([0, 0, 1, 0]).says("step 2 (`replace`)").says("would match its own result again");
    assert_eq!(world.read("x"), "a\n");
    let world = edited("not { json", "{json: {a: 1}}");
    world.apply().counts([0, 0, 1, 0]).says("step 1 (`json`): the file is not JSON");
}

#[test]
fn what_is_written_wrongly_is_told_before_anything_is_done() {
    for (properties, message) in [
        ("edit: [{line: a, block: b}]", "step 1: a step of `edit` does one thing, not line and block"),
        ("edit: [{line: a}, {replace: '(', with: b}]", "step 2: \"(\" is not a regular expression"),
        ("edit: [{lines: a}]", "lines"),
        (
            "edit: [{replace: '^(Port) 22$', with: '$1_x 2222'}]",
            "step 1: `with` names the group `1_x`, which `^(Port) 22$` does not have; `$${1}_x` is the group 1",
        ),
        ("edit: [{replace: a, with: $HOME}]", "`$$HOME` is a dollar and no group"),
        (
            "edit: [{line: a}], content: b, $OWN, mode: '0644'",
            "`content` and `edit` cannot be given together",
        ),
        ("edit: [{line: a}], ensure: directory, $OWN, mode: '0755'", "a directory has no `edit`"),
        ("create: true, content: a, $OWN, mode: '0644'", "`create` needs `edit`"),
    ] {
        let world = World::new().file("x", "").manifest(&format!("- file: [{{ $W/x: {{ {properties} }} }}]"));
        world.apply().exits(2).complains(message);
    }
}

#[test]
fn templates_in_steps_are_expanded_when_the_turn_comes() {
    let world = World::new().file("x", "port 1\n").manifest(
        "\
data: { port: 8080, name: port }
ccm:
  resources:
  - file:
      - $W/x:
          edit:
            - line: \"${ Data.name } ${ Data.port }\"
              match: \"^${ Data.name } \"
            - keyvalue: { key: workers, value: \"${ Data.port }\" }
",
    );
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("x"), "port 8080\nworkers=8080\n");
}

#[test]
fn text_that_is_no_text_a_link_and_a_directory_are_left_alone() {
    let world = World::new().file("x", [b'a', 0xff]).manifest("- file: [{ $W/x: { edit: [{line: a}] } }]");
    world.apply().counts([0, 0, 1, 0]).says("it is not UTF-8 text, from byte 1 on");
    let world =
        World::new().file("y", "a\n").link("x", "$W/y").manifest("- file: [{ $W/x: { edit: [{line: b}] } }]");
    world.apply().counts([0, 0, 1, 0]).says("a symbolic link to");
    assert_eq!(world.read("y"), "a\n", "a link is not followed");
    let world = World::new().dir("x").manifest("- file: [{ $W/x: { edit: [{line: b}] } }]");
    world.apply().counts([0, 0, 1, 0]).says("a directory is in the way");
}

#[test]
fn a_dry_run_edits_what_earlier_resources_would_leave() {
    // Two resources of one name are one too many: the second takes another way to the same file.
    let world = World::new().dir("d").manifest(
        "- file: [{ $W/d/x: { content: \"a\\n\", $OWN, mode: '0644' } }, { $W/l: { ensure: link, target: d } }, { $W/l/x: { edit: [{line: b}] } }]",
    );
    let noop = world.apply_with(&["--noop", "--json"]);
    let event = noop.exits(0).event("/l/x");
    assert!(event["diff"].as_str().is_some_and(|diff| diff.contains(" a\n+b\n")), "{event:#}");
    world.apply().exits(0).counts([3, 0, 0, 0]);
    assert_eq!(world.read("d/x"), "a\nb\n");
}

#[test]
fn a_file_that_an_earlier_command_may_make_is_a_warning_of_a_dry_run() {
    let world = World::new()
        .manifest("- exec: [{ 'sh -c \"echo a > $W/x\"': {} }]\n- file: [{ $W/x: { edit: [{line: b}] } }]");
    world.apply_with(&["--noop"]).exits(0).says("assuming ");
    world.apply().exits(0);
    assert_eq!(world.read("x"), "a\nb\n");
}

#[test]
fn an_edit_can_be_given_as_flags() {
    let world = World::new().file("x", "a\n");
    let arguments = [
        "ensure",
        "file",
        "$W/x",
        "--edit",
        "{line: b}",
        "--edit",
        "{\"line\": \"a\", \"ensure\": \"absent\"}",
    ];
    world.ccm(arguments).run().exits(0);
    assert_eq!(world.read("x"), "b\n");
    world
        .ccm(["ensure", "file", "$W/x", "--edit", "line"])
        .run()
        .exits(2)
        .complains("is not a map in YAML or JSON");
}

#[test]
fn a_file_that_a_stranger_moved_there_is_not_given_to_him() {
    if !is_root() {
        return;
    }
    let world = World::new()
        .dir("home")
        .file("home/x", "root's secret\n")
        .mode("home/x", 0o600)
        .owner("home", 1000, 1000);
    let world =
        world.manifest("- file: [{ $W/home/x: { edit: [{line: b}], owner: '1000', group: '1000' } }]");
    world.apply().counts([0, 0, 1, 0]).says("may be another file that somebody moved there");
    assert_eq!(world.read("home/x"), "root's secret\n");
    let world = world.owner("home/x", 1000, 1000);
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert_eq!(world.read("home/x"), "root's secret\nb\n");
}

#[test]
fn match_that_is_part_of_a_word_or_in_several_lines_is_a_warning() {
    for (text, step, warning) in [
        (
            "GatewayPorts no\\n",
            "line: Port 22, match: Port",
            Some("is part of a word in line 1 (`GatewayPorts no`)"),
        ),
        ("GatewayPorts no\\n", "line: Port 22, match: Port, ensure: absent", Some("which ccm removes")),
        (
            "Port 1\\nPort 2\\n",
            "line: Port 22, match: '^Port'",
            Some("matches lines 1 and 2; ccm replaces only the last of them"),
        ),
        ("Port 1\\n", "line: Port 22, match: '^Port\\b'", None),
        ("Port 22\\nGatewayPorts no\\n", "line: Port 22, match: '^Port'", None),
    ] {
        let world = World::new().file("f", text.replace("\\n", "\n"));
        let world = world.manifest(&format!("- file:\n    - $W/f: {{ edit: [{{ {step} }}] }}\n"));
        let run = world.apply_with(&["--noop"]);
        run.exits(0);
        match warning {
            Some(warning) => run.says(warning),
            None => run.never_says("warning"),
        };
        world.apply().exits(0);
        world.apply_with(&["--detailed-exitcode"]).exits(0).never_says("warning");
    }
}

#[test]
fn time_limit_ends_a_slow_regular_expression() {
    // No two positions of the text leave the search in the same state.
    let bits =
        (0..8_u32 << 20).map(|number| number.wrapping_mul(2_654_435_761).rotate_left(number % 32) >> 31);
    let noise: String = bits.map(|bit| if bit == 0 { 'a' } else { 'b' }).collect();
    let world = World::new()
        .file("a", noise)
        .files("- $W/a: { timeout: 1s, edit: [{ replace: '[ab]*a[ab]{4000}[c-z]', with: c }] }");
    let before = world.tree();
    let outcome = world.apply();
    outcome.exits(1).says("timed out after 1s");
    assert_eq!(world.tree(), before);
}
