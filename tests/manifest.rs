//! Manifests: the forms in which they are written, where they come from, and what is wrong with them.

use crate::support::{Outcome, World};

/// Nothing is attempted, and nothing in the managed part is touched.
#[track_caller]
fn refused(manifest: &str) -> Outcome {
    let world = World::new().manifest(manifest);
    let before = world.tree();
    let validated = world.validate();
    validated.exits(2);
    let outcome = world.apply();
    outcome.exits(2);
    assert_eq!(world.tree(), before, "{outcome}");
    assert_eq!(outcome.stderr, validated.stderr, "apply and validate find the same");
    assert_eq!(outcome.stdout, "", "{outcome}");
    outcome
}

#[test]
fn every_form_declares_the_same_resources() {
    for (form, manifest) in [
        ("list of single-key maps", "- file:\n  - $W/a: { content: x, $OWN, mode: '0644' }\n"),
        ("`name` key", "- file: { name: $W/a, content: x, $OWN, mode: '0644' }\n"),
        ("map of names", "- file:\n    $W/a: { content: x, $OWN, mode: '0644' }\n"),
        ("list with defaults", "- file:\n  - defaults: { $OWN, mode: '0644' }\n  - $W/a: { content: x }\n"),
        ("below ccm", "ccm:\n  resources:\n    - file:\n      - $W/a: { content: x, $OWN, mode: '0644' }\n"),
        (
            "with all sections",
            "\
data: { a: 1 }
hierarchy: { order: [default] }
overrides: {}
ccm:
  resources:
    - file:
      - $W/a: { content: x, $OWN, mode: '0644' }
",
        ),
        (
            "JSON",
            r#"{"ccm": {"resources": [{"file": [{"$W/a": {"content": "x", "owner": "$UID", "group": $GID, "mode": "0644"}}]}]}}"#,
        ),
        (
            "JSON list",
            r#"[{"file": {"$W/a": {"content": "x", "owner": "$UID", "group": "$GID", "mode": "0644"}}}]"#,
        ),
    ] {
        let world = World::new().manifest(manifest);
        let outcome = world.apply();
        outcome.exits(0).counts([1, 0, 0, 0]);
        assert_eq!(world.read("a"), "x", "{form}");
    }
}

#[test]
fn a_resource_may_be_called_name() {
    let world =
        World::new().manifest("- exec: { name: { command: /bin/true }, other: { command: /bin/true } }\n");
    world.apply().exits(0).counts([2, 0, 0, 0]).says("exec#name").says("exec#other");
}

#[test]
fn an_item_with_no_name_or_with_several_is_refused() {
    for (manifest, place, message) in [
        ("- file: { name: , ensure: absent }", "1:16", "a file without a name"),
        ("- file: { name: null, ensure: absent }", "1:17", "a file without a name"),
        (
            "- file:\n  - /a: { ensure: absent }\n    /b: { ensure: absent }",
            "2:5",
            "start each resource with its own `-`",
        ),
    ] {
        refused(manifest).complains(&format!("site.yaml:{place}\n")).complains(message);
    }
}

#[test]
fn manifests_that_say_that_they_have_no_resources_are_valid() {
    for manifest in ["[]", "ccm: { resources: [] }\n", "- file: []\n"] {
        let world = World::new().manifest(manifest);
        world.apply().exits(0).counts([0, 0, 0, 0]);
    }
}

#[test]
fn resources_of_a_map_run_in_the_written_order() {
    let world = World::new().manifest(
        "\
- file:
    $W/b: { ensure: absent }
    $W/c: { ensure: absent }
    $W/a: { ensure: absent }
",
    );
    let names: Vec<_> =
        world.apply_with(&["--json"]).events().iter().map(|event| event["name"].clone()).collect();
    let path = |name: &str| world.fill(&format!("$W/{name}"));
    assert_eq!(names, [path("b"), path("c"), path("a")]);
}

#[test]
fn defaults_apply_wherever_they_stand_in_their_list_and_only_there() {
    let world = World::new().manifest(
        "\
- file:
  - $W/a: { content: a }
  - defaults: { $OWN, mode: '0600' }
  - $W/b:
- file:
  - $W/c: { ensure: absent }
",
    );
    world.apply().exits(0).counts([2, 1, 0, 0]);
    let tree = world.tree();
    assert_eq!(tree.item("a").unwrap().mode, 0o600);
    assert_eq!(tree.item("b").unwrap().mode, 0o600, "an empty body takes the defaults");

    refused("- file:\n  - defaults: { $OWN, mode: '0600' }\n- file:\n  - $W/a:\n")
        .complains("`owner` is missing");
}

#[test]
fn a_property_of_an_item_replaces_the_default_whole() {
    let world = World::new().manifest(
        "\
- file:
  - $W/a: { ensure: absent, alias: a }
  - $W/b: { ensure: absent, alias: b }
- file:
  - defaults: { ensure: absent, require: [file#a, file#b] }
  - $W/c: { require: [file#b] }
  - $W/d:
",
    );
    let outcome = world.apply_with(&["--json"]);
    assert_eq!(outcome.exits(0).event("/c")["properties"]["require"], serde_json::json!(["file#b"]));
    assert_eq!(outcome.event("/d")["properties"]["require"], serde_json::json!(["file#a", "file#b"]));
    // Whichever way each of them spells it.
    for (default, own) in [("content", "contents"), ("contents", "content"), ("contents", "contents")] {
        let world = World::new().manifest(&format!(
            "\
- file:
  - defaults: {{ {default}: default, $OWN, mode: '0644' }}
  - $W/a: {{ {own}: own }}
  - $W/b:
"
        ));
        world.apply().exits(0).counts([2, 0, 0, 0]);
        assert_eq!((world.read("a"), world.read("b")), ("own".to_owned(), "default".to_owned()));
    }
    let world = World::new().manifest(
        "\
- exec:
  - defaults: { refresh_only: true }
  - a: { command: 'true', refreshonly: false }
  - b: { command: 'true' }
",
    );
    world.apply().exits(0).counts([1, 1, 0, 0]);
    refused("- file:\n  - $W/a: { content: a, contents: b, $OWN, mode: '0644' }\n").complains("content");
}

#[test]
fn defaults_given_twice_are_an_error_that_names_both_places() {
    refused("- file:\n  - defaults: { mode: '0600' }\n  - $W/a:\n  - defaults: { mode: '0644' }\n")
        .complains("more than one `defaults`")
        .complains("site.yaml:4:5")
        .complains("the first one");
}

#[test]
fn defaults_outside_a_list_are_an_error() {
    refused("- file:\n    defaults: { mode: '0600' }\n    $W/a: { ensure: absent }\n")
        .complains("`defaults` belongs into a list of resources");
}

#[test]
fn a_mistake_in_defaults_is_told_once() {
    let outcome = refused("- file:\n  - defaults: { $OWN, mode: '0999' }\n  - $W/a:\n  - $W/b:\n");
    outcome.complains("1 error in site.yaml").complains("\"0999\" is not a mode");
}

#[test]
fn defaults_are_checked_whoever_takes_them() {
    for manifest in [
        "- file:\n  - defaults: { mode: '0999', contnt: x, owner: \"{{ nobody }}\" }\n",
        "\
- file:
  - /a: { $OWN, mode: '0644' }
  - defaults: { mode: '0999', contnt: x, owner: \"{{ nobody }}\" }
",
        "\
- file:
  - /a:
  - /b:
  - defaults: { $OWN, mode: '0999', contnt: x, force: \"{{ nobody }}\" }
",
    ] {
        refused(manifest)
            .complains("file#defaults: mode: \"0999\" is not a mode")
            .complains("file#defaults: unknown property `contnt`")
            .complains("file#defaults: unknown variable `nobody`")
            .complains("3 errors in");
    }
    // What only goes wrong together with an item is the item's.
    let outcome = refused(
        "\
- file:
  - defaults: { $OWN, mode: '0644', source: /x }
  - /a: { content: a }
  - /b: { content: b }
",
    );
    outcome.complains("file#/a: `content` and").complains("file#/b: `content` and").complains("2 errors");
    refused("- file:\n  - defaults: { name: /a, ensure: absent }\n  - /a:\n")
        .complains("the `defaults` of file cannot hold a name")
        .complains("1 error in");
    World::new()
        .manifest("- file: [{ defaults: { content: x } }]\n- service: [{ defaults: }]")
        .validate()
        .exits(0);
}

#[test]
fn a_manifest_comes_from_a_file_a_folder_or_standard_input() {
    let text = "- file:\n  - $W/a: { content: x, $OWN, mode: '0644' }\n";
    let world = World::new();
    let manifest = world.fill(text);
    let world = world.beside("folder/manifest.yaml", &manifest).beside("other.json.txt", &manifest);
    world.ccm(["apply", "folder"]).run().exits(0).counts([1, 0, 0, 0]);
    world.ccm(["apply", "folder/"]).run().exits(0).counts([0, 1, 0, 0]);
    world.ccm(["apply", "other.json.txt"]).run().exits(0).counts([0, 1, 0, 0]);
    world.ccm(["apply", "-"]).input(&manifest).run().exits(0).counts([0, 1, 0, 0]);
    world
        .ccm(["validate", "folder", "-"])
        .input(&manifest)
        .run()
        .exits(0)
        .says("folder/manifest.yaml: valid, 1 resource\n<stdin>: valid");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let world = World::new();
    let manifest = world.fill("\u{feff}- file:\r\n  - $W/a: { content: x, $OWN, mode: '0644' }\r\n");
    let world = world.beside("site.yaml", manifest);
    world.apply().exits(0).counts([1, 0, 0, 0]);
}

#[test]
fn a_manifest_that_cannot_be_read_is_named() {
    let world = World::new().beside("empty/keep", "").beside("latin1.yaml", b"- file:\n  - /caf\xe9:\n");
    for (argument, message) in [
        ("nowhere.yaml", "cannot read nowhere.yaml: no such file"),
        ("empty", "cannot read empty/manifest.yaml: no such file"),
        ("latin1.yaml", "latin1.yaml:2:9: not UTF-8 text (byte 0xe9)"),
    ] {
        world.ccm(["apply", argument]).run().exits(2).complains(message);
        world.ccm(["validate", argument]).run().exits(2).complains(message);
    }
}

#[test]
fn validate_looks_at_every_manifest_it_is_given() {
    let world = World::new().beside("good.yaml", "[]").beside("bad.yaml", "x: 1").manifest("y: 1");
    let outcome = world.ccm(["validate", "bad.yaml", "good.yaml", "site.yaml"]).run();
    outcome
        .exits(2)
        .complains("unknown section `x`")
        .complains("unknown section `y`")
        .says("good.yaml: valid, 0 resources");
}

/// One mistake each: the message, and where its mark has to be.
#[test]
fn mistakes_are_told_with_their_place_and_what_was_probably_meant() {
    for (manifest, place, message, help) in [
        ("dta: {}", "1:1", "unknown section `dta`", "did you mean `data`?"),
        ("resources: []", "1:1", "unknown section `resources`", "resources stand below ccm.resources"),
        ("ccm: { resorces: [] }", "1:8", "unknown key `ccm.resorces`", "did you mean `resources`?"),
        ("ccm: { xyzzy: 1 }", "1:8", "unknown key `ccm.xyzzy`", "ccm has fail_on_error, on_failure"),
        ("ccm: { fail_on_error: maybe }", "1:23", "ccm.fail_on_error: expected true or false", ""),
        ("ccm: []", "1:6", "`ccm` must be a map, not a list", ""),
        ("ccm: { resources: { file: } }", "1:19", "resources must be a list, not a map", "`- TYPE:`"),
        ("just text", "1:1", "a manifest is a map of sections or a list of resources, not a string", ""),
        ("- fiel: []", "1:3", "unknown type `fiel`", "did you mean `file`?"),
        ("- Zebra: []", "1:3", "unknown type `Zebra`", "known types: apply, archive, cron, exec,"),
        (
            "- file",
            "1:3",
            "a resource entry is a map with one key, its type, not a string",
            "known types: apply, archive, cron, exec,",
        ),
        ("- file: []\n  x: []", "1:3", "a resource entry has one key, its type", ""),
        ("- file:", "1:3", "no resources under `file`", ""),
        (
            "- file: /etc/motd",
            "1:3",
            "no resources under `file`: expected a list or a map, found a string",
            "",
        ),
        (
            "- file: [/etc/motd]",
            "1:10",
            "each file in a list is a map with one key, its name",
            "write `- /etc/motd:`",
        ),
        ("- file:\n  - /a:\n    ensure: absent", "2:5", "a map with one key", "indented deeper"),
        ("- file: [{ /a: present }]", "1:16", "`/a` needs a map of properties, not a string", ""),
        (
            "- file: [{ /a: { contnt: x } }]",
            "1:18",
            "file#/a: unknown property `contnt`",
            "did you mean `content`?",
        ),
        (
            "- file: [{ /a: { xyzzy: 1 } }]",
            "1:18",
            "unknown property `xyzzy`",
            "known properties: ensure, content",
        ),
        ("- file: [{ /a: { name: /b } }]", "1:18", "file#/a: the name is given twice", ""),
        ("- file: [{ /a: { subscribe: [file#/b] } }]", "1:18", "unknown property `subscribe`", "use require"),
        (
            "- file: [{ /a: { ensure: gone } }]",
            "1:26",
            "expected one of `present`, `absent`, `directory`",
            "",
        ),
        ("- file: [{ /a: { ensure: absent, force: 1 } }]", "1:41", "force: expected true or false", ""),
        ("- file: [{ /a: { ensure: absent, tries: 0 } }]", "1:41", "tries: ", ""),
        ("- file: [{ /a: { ensure: absent, timeout: soon } }]", "1:43", "timeout: ", ""),
        (
            "- file: [{ /a: { ensure: absent, control: { if: perhaps } } }]",
            "1:49",
            "unknown variable `perhaps`",
            "",
        ),
        ("- file: [{ /a: { ensure: absent, control: { when: true } } }]", "1:45", "unknown", ""),
        ("- file: [{ /a: { ensure: absent, require: [motd] } }]", "1:44", "\"motd\" is not a reference", ""),
        ("- file: [{ /a: { ensure: absent, require: file#/b } }]", "1:43", "file#/b is not declared", ""),
        (
            "- file: [{ /a: { ensure: absent, provider: windows } }]",
            "1:44",
            "file has no provider \"windows\"",
            "known providers: posix",
        ),
        ("- file: [{ /a: { ensure: absent, ensure: absent } }]", "1:34", "`ensure`", ""),
        ("- file: [{ /a: { content: a, contents: b } }]", "1:30", "content", ""),
        (
            "- file: [{ /a: { ensure: absent } }, { /a: { ensure: absent } }]",
            "1:40",
            "file#/a is declared twice",
            "",
        ),
        ("a: 1\na: 2", "2:1", "`a`", ""),
        ("- file: [", "1:9", "this bracket is never closed", ""),
        ("- file: \"x", "1:9", "this quote is never closed", ""),
        ("- file:\n\t- x", "2:1", "", "tab"),
    ] {
        let outcome = refused(manifest);
        outcome
            .complains(&format!("site.yaml:{place}\n"))
            .complains(message)
            .complains(help)
            .complains("error: ");
    }
}

#[test]
fn names_and_aliases_are_taken_only_once() {
    for (manifest, message, both) in [
        (
            "- file: [{ /a: { ensure: absent } }]\n- file: [{ /a: { ensure: absent } }]",
            "file#/a is declared twice",
            "1:12",
        ),
        (
            "- file: [{ /a: { ensure: absent, alias: x } }]\n- file: [{ /b: { ensure: absent, alias: x } }]",
            "file#x is declared twice",
            "2:41",
        ),
        (
            "- file: [{ /a: { ensure: absent } }]\n- file: [{ /b: { ensure: absent, alias: /a } }]",
            "file#/a is declared twice",
            "2:41",
        ),
    ] {
        refused(manifest)
            .complains(message)
            .complains("first declared here")
            .complains(both.split(':').next().unwrap());
    }
    let own = World::new().manifest("- file: [{ $W/a: { ensure: absent, alias: $W/a } }]");
    own.apply().exits(0);
}

#[test]
fn references_have_to_name_something_declared_before() {
    refused("- file: [{ /a: { ensure: absent, require: [file#/b] } }]")
        .complains("file#/a: file#/b is not declared")
        .complains(":1:44");
    refused(
        "- file: [{ /etc/motd: { ensure: absent } }, { /b: { ensure: absent, require: [file#/etc/mot] } }]",
    )
    .complains("did you mean `file#/etc/motd`?");
    refused(
        "- file:\n    - /etc/motd: { ensure: absent }\n    - /b: { ensure: absent, sensitive: true, require: [file#/etc/mot] }",
    )
    .complains("file#/b: a resource that it refers to is not declared")
    .never_says("/etc/mot");
    refused("- file: [{ /a: { ensure: absent, require: [file#/a] } }]").complains("file#/a refers to itself");
    refused("- file: [{ /a: { ensure: absent, alias: me, require: [file#me] } }]")
        .complains("file#/a refers to itself");
    refused("- file: [{ /a: { ensure: absent, require: [fiel#/b] } }, { /b: { ensure: absent } }]")
        .complains("fiel#/b is not declared");
    let world = World::new().manifest(
        "- file: [{ $W/a#b: { ensure: absent, alias: 'x#y' } }, { $W/c: { ensure: absent, require: ['file#$W/a#b', 'file#x#y'] } }]",
    );
    world.apply().exits(0);
}

#[test]
fn a_reference_to_a_later_resource_shows_both_places() {
    let outcome =
        refused("- file:\n  - /a: { ensure: absent, require: [file#/b] }\n  - /b: { ensure: absent }\n");
    assert_eq!(
        outcome.stderr,
        "\
error[late-reference]: file#/a: file#/b is declared only later
 --> site.yaml:2:37
  |
2 |   - /a: { ensure: absent, require: [file#/b] }
  |                                     ^^^^^^^
3 |   - /b: { ensure: absent }
  |     -- declared here
  |
  = help: resources run in the written order: move it up

error: 1 error in site.yaml
"
    );
}

#[test]
fn all_problems_of_a_manifest_are_told_at_once_in_their_order() {
    let outcome = refused(
        "\
data: [1]
ccm:
  fail_on_eror: true
  resources:
    - file:
        - etc/motd: { mode: \"0999\", owner: [root] }
        - /a: { ensure: absent, require: [file#/b] }
    - packge: []
",
    );
    assert_eq!(
        outcome.stderr,
        "\
error[section-not-a-map]: `data` must be a map, not a list
 --> site.yaml:1:7
  |
1 | data: [1]
  |       ^^^

error[unknown-setting]: unknown key `ccm.fail_on_eror`
 --> site.yaml:3:3
  |
3 |   fail_on_eror: true
  |   ^^^^^^^^^^^^
  |
  = help: did you mean `fail_on_error`?

error[invalid-value]: file#etc/motd: path \"etc/motd\" must be absolute: start it with /
 --> site.yaml:6:11
  |
6 |         - etc/motd: { mode: \"0999\", owner: [root] }
  |           ^^^^^^^^

error[invalid-properties]: file#etc/motd: `group` is missing: a file needs owner, group and mode
 --> site.yaml:6:11
  |
6 |         - etc/motd: { mode: \"0999\", owner: [root] }
  |           ^^^^^^^^

error[invalid-value]: file#etc/motd: mode: \"0999\" is not a mode: write it in octal digits (0 to 7), such as \"0644\"
 --> site.yaml:6:29
  |
6 |         - etc/motd: { mode: \"0999\", owner: [root] }
  |                             ^^^^^^

error[invalid-value]: file#etc/motd: owner: expected a string, found a list
 --> site.yaml:6:44
  |
6 |         - etc/motd: { mode: \"0999\", owner: [root] }
  |                                            ^^^^^^
  |
  = help: put the value in quotes if it is meant as text

error[undeclared-reference]: file#/a: file#/b is not declared
 --> site.yaml:7:43
  |
7 |         - /a: { ensure: absent, require: [file#/b] }
  |           -- needed by this resource      ^^^^^^^

error[unknown-type]: unknown type `packge`
 --> site.yaml:8:7
  |
8 |     - packge: []
  |       ^^^^^^
  |
  = help: did you mean `package`?

error: 8 errors in site.yaml
"
    );
}

#[test]
fn what_is_wrong_with_the_document_hides_nothing_that_is_wrong_with_what_it_says() {
    for (broken, place, message) in [
        ("/a: { ensure: absent, ensure: absent }", "4:33", "the key `ensure` is given twice"),
        ("/a: { ensure: absent, [x]: 1 }", "4:33", "a key must be text, this is a list"),
        ("/a: { ensure: !wish absent }", "4:25", "the tag `!wish` is not known here"),
        ("/a: { ensure: absent, <<: 1 }", "4:37", "the merge key `<<` takes a map or a list of maps"),
    ] {
        refused(&format!(
            "\
ccm:
  resources:
    - file:
        - {broken}
        - /b: {{ force: 1, ensure: absent }}
    - packge: []
"
        ))
        .complains(&format!("site.yaml:{place}\n"))
        .complains(message)
        .complains("site.yaml:5:24\n")
        .complains("unknown type `packge`")
        .complains("3 errors in site.yaml");
    }
    refused("{\"data\": {}, \"data\": {}, \"ccm\": {\"resources\": [{\"fiel\": []}]}}")
        .complains("the key `data` is given twice")
        .complains("unknown type `fiel`")
        .complains("2 errors");
    let world = World::new().beside("data.yaml", "data: { a: 1, a: 2 }\ndta: {}\n").manifest("[]");
    let outcome = world.apply_with(&["--hiera", "data.yaml"]);
    outcome.exits(2).complains("the key `a` is given twice").complains("unknown section `dta`");
}

#[test]
fn of_a_key_given_twice_the_first_counts() {
    refused("- file:\n  - /a: { ensure: absent, force: true, force: sure }\n").complains("1 error in");
    refused("- file:\n    /a: { ensure: absent }\n    /a: { ensure: gone }\n").complains("1 error in");
}

#[test]
fn what_follows_from_a_problem_of_the_document_is_not_told() {
    for manifest in [
        "- file:\n  - /a: { content: x, owner: '0', group: '0', mode: {{ data.mode }} }\n",
        "- file:\n  - {{ data.path }}: { ensure: absent }\n",
        "- file:\n  - /a: { ensure: absent, force: !maybe perhaps }\n",
    ] {
        refused(manifest).complains("1 error in site.yaml");
    }
}

/// What is wrong with one resource, one line each.
#[track_caller]
fn faults(resource: &str) -> Vec<String> {
    let outcome = refused(&format!("- {resource}"));
    let message = |line: &str| Some(line.strip_prefix("error[")?.split_once("]: ")?.1.to_owned());
    outcome.stderr.lines().filter_map(message).collect()
}

#[test]
fn a_name_at_fault_does_not_hide_what_else_is_wrong() {
    let together = "`content` and `source` cannot be given together";
    let found = faults("file: { rel: { content: x, source: /y, owner: a, group: b } }");
    assert!(found[0].contains("must be absolute") && found.len() == 3, "{found:#?}");
    assert!(found.iter().any(|fault| fault.contains(together)), "{found:#?}");
    assert!(found.iter().any(|fault| fault.contains("`mode` is missing")), "{found:#?}");
    let found = faults("archive: { rel.tgz: { cleanup: true, url: 'http://a/b.tgz', owner: a, group: b } }");
    assert!(found[0].contains("must be absolute") && found.len() == 3, "{found:#?}");
    let found = faults("file: { '': { ensure: absent } }");
    assert_eq!(found, ["file#: it has no name"]);
}

#[test]
fn what_is_not_wrong_is_not_told() {
    assert_eq!(faults("file: { /: { ensure: absent } }"), ["file#/: the root directory cannot be removed"]);
    let found = faults("file: { /a: { ensure: absnt } }");
    assert!(found[0].contains("ensure: expected one of") && found.len() == 1, "{found:#?}");
    let found = faults("file: { /a: { ensure: absnt, content: x, source: /y } }");
    assert!(found.len() == 2 && found[1].contains("cannot be given together"), "{found:#?}");
}

#[test]
fn documents_that_would_cost_without_bound_are_refused_quickly() {
    let laughs: String = ('b'..='j')
        .map(|letter| {
            let before = char::from_u32(u32::from(letter) - 1).unwrap();
            format!("{letter}: &{letter} [{}]\n", vec![format!("*{before}"); 10].join(","))
        })
        .collect();
    let bomb = format!("a: &a [lol, lol, lol]\n{laughs}");
    let flow = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let json = format!("{{\"a\": {flow}}}");
    let block: String = (0..3_000).map(|depth| format!("{}-\n", " ".repeat(depth))).collect();
    let compact = "- ".repeat(100_000);
    let keys: String = format!("{}x", "? ".repeat(100_000));
    for (what, text) in [
        ("bomb", &bomb),
        ("flow", &flow),
        ("json", &json),
        ("block", &block),
        ("compact", &compact),
        ("keys", &keys),
    ] {
        let world = World::new().manifest(text);
        let outcome = world.apply();
        assert_eq!(outcome.code, 2, "{what}");
        assert!(outcome.stderr.len() < 4_000, "{what} is told in {} bytes", outcome.stderr.len());
    }
}

#[test]
fn control_characters_of_a_manifest_do_not_reach_the_terminal() {
    let outcome = refused("- file: [{ \"/a\\e[2J\": { mode: \"\\e[31m\" } }]");
    assert!(!outcome.stderr.contains('\u{1b}'), "{outcome:}");
    let world =
        World::new().manifest("- file: [{ \"$W/nowhere\\e[2J/a\": { content: x, $OWN, mode: '0644' } }]");
    let outcome = world.apply();
    assert!(!outcome.exits(1).stdout.contains('\u{1b}'), "{outcome}");
}
