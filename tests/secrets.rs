//! What is sensitive is written, and shown nowhere.

use std::{fs, path::Path};

use crate::support::{Outcome, World};

/// Occurs nowhere but in what must not be shown.
const CANARY: &str = "c4n4ry-5e7";

/// Nothing that was printed and nothing that the program keeps holds the secret.
#[track_caller]
fn kept(world: &World, outcome: &Outcome) {
    outcome.never_says(CANARY);
    for folder in ["state", "home"] {
        search(&world.base().join(folder));
    }
}

#[track_caller]
fn search(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path);
        } else {
            let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!content.contains(CANARY), "{} holds it", path.display());
        }
    }
}

const MODES: &[&[&str]] = &[
    &["--noop"],
    &["--noop", "--diff", "--json"],
    &["--render"],
    &["--render", "--json"],
    &["--diff"],
    &["--json"],
    &[],
];

#[test]
fn a_secret_is_written_and_never_shown() {
    let first = format!("- $W/x: {{ content: '{CANARY}', sensitive: true, mode: '0600' }}");
    for flags in MODES {
        let world = World::new().files(&first);
        let outcome = world.apply_with(flags);
        kept(&world, outcome.exits(0));
        let wrote = !flags.contains(&"--noop") && !flags.contains(&"--render");
        assert_eq!(fs::read_to_string(world.path("x")).ok().as_deref(), wrote.then_some(CANARY));
    }
    let world = World::new().files(&first);
    world.apply().exits(0);
    kept(&world, world.validate().exits(0));
}

#[test]
#[should_panic(expected = "holds it")]
fn the_search_finds_a_secret_that_was_kept() {
    let world = World::new().files("- $W/x: {}");
    let outcome = world.apply();
    fs::write(world.state().join("planted"), format!("a {CANARY}")).unwrap();
    kept(&world, &outcome);
}

#[test]
fn a_secret_that_is_replaced_by_another_is_not_shown_either() {
    for flags in MODES {
        let world =
            World::new().file("x", format!("old {CANARY}\n")).beside("new", format!("new {CANARY}\n"));
        let world = world.files("- $W/x: { source: new, sensitive: true }");
        kept(&world, world.apply_with(flags).exits(0));
    }
}

#[test]
fn a_secret_that_cannot_be_written_is_not_shown() {
    for flags in [&["--noop"][..], &["--diff"], &["--json", "--diff"], &[]] {
        let world = World::new().dir("x").files(&format!(
            "\
- $W/x: {{ content: '{CANARY}', sensitive: true }}
- $W/no/where: {{ content: '{CANARY}', sensitive: true }}
- $W/owner: {{ content: '{CANARY}', sensitive: true, owner: no-such-user }}"
        ));
        let outcome = world.apply_with(flags);
        kept(&world, outcome.exits(1));
    }
}

#[test]
fn neither_checksum_nor_size_of_a_secret_is_told() {
    let world = World::new().files(&format!("- $W/x: {{ content: '{CANARY}', sensitive: true }}"));
    let event = world.apply_with(&["--json"]).event("/x");
    assert!(event["status"]["metadata"].get("checksum").is_none(), "{event:#}");
    assert!(event["status"]["metadata"].get("size").is_none(), "{event:#}");
    assert_eq!(event["changed"], true);
}

#[test]
fn messages_about_a_manifest_do_not_quote_a_secret() {
    for manifest in [
        // Said once more by a property that is no secret.
        "\
- exec:
    - /bin/true:
        environment: ['TOKEN=SECRET']
        timeout: SECRET
",
        // On one line with a mistake.
        "- file: [{ /x: { content: 'SECRET', mode: '0999', sensitive: true } }]",
        "- file: [{ /x: { content: 'SECRET', sensitive: true } }]",
        "- file: [{ /x: { sensitive: true, content: 'SECRET', source: a, owner: '0', group: '0', mode: '0644' } }]",
        "- file: { name: /x, sensitive: true, content: 'SECRET' }",
        "- file: { /x: { sensitive: true, content: 'SECRET' } }",
        "- file: [{ defaults: { sensitive: true } }, { /x: { content: 'SECRET' } }]",
        "- file: [{ defaults: { content: 'SECRET', mode: 999 } }, { /x: { sensitive: true } }]",
        // On the line of a mistake that is not the sensitive resource's, which has nothing but its `defaults` to say so.
        "[{ file: [{ defaults: { sensitive: true, $OWN } }, { /x: { content: 'SECRET' } }] }, { fiel: [] }]",
        "[{ file: [{ defaults: { content: 'SECRET', $OWN } }, { /x: { sensitive: true } }] }, { fiel: [] }]",
        // Between two lines that a mistake points at.
        "\
- exec: [{ a: { require: ['file#/y'] } }]
- file:
    - defaults: { sensitive: true, $OWN }
    - /x: { content: 'SECRET' }
    - /y: {}
",
        "\
- exec: [{ a: { require: ['file#/y'] } }]
- file:
    - defaults:
        owner: '0'
        group: '0'
        mode: '0600'
        content: |
          SECRET
    - /y: { sensitive: true }
",
        // On the line of `defaults` or of an item, of which only the other says that it is sensitive.
        "\
- file:
    - /z: { $OWN, alias: same }
    - defaults: { $OWN, content: 'SECRET', alias: same }
    - /a: {}
    - /x: { sensitive: true, alias: other }
",
        "\
- file:
    - defaults: { sensitive: true, $OWN }
    - /x: { content: 'SECRET', alias: same }
- file: [{ /y: { $OWN, alias: same } }]
",
        // What every resource has.
        "- file: [{ /x: { sensitive: true, $OWN, provider: SECRET } }]",
        "- file: [{ /x: { sensitive: true, $OWN, require: ['file#/SECRET'] } }]",
        "- file: [{ /x: { sensitive: true, $OWN, require: [SECRET] } }]",
        "- file: [{ /x: { $OWN, alias: /SECRET } }, { /y: { sensitive: true, $OWN, alias: /SECRET } }]",
        "- file: [{ /x: { sensitive: true, $OWN, alias: SECRET } }]\n- exec: [{ a: { require: ['file#SECRE'] } }]",
        "- file: [{ /x: { sensitive: true, $OWN, timeout: SECRET } }]",
        "- file: [{ defaults: { owner: 'SECRET x', sensitive: false } }, { /x: {} }, { /y: { sensitive: true } }]",
        "- exec: [{ a: { health_checks: [{ command: b, environment: SECRET }] } }]",
        "data: { token: SECRET }\nccm: { resources: [{ exec: [{ a: { health_checks: [{ command: b, environment: ['A=${ int(Data.token) }'] }] } }] }] }",
        "\
data: { token: SECRET }
ccm:
  resources:
    - exec:
        - a:
            health_checks:
              - goss_rules:
                  http: { 'http://b': { status: 200, password: '${ int(Data.token) }' } }
",
        "- exec: [{ a: { health_checks: [{ goss_rules: { http: { 'http://b': { status: '${ c }', request-headers: ['A: SECRET'] } } } }] } }]",
        // The mistake itself.
        "- file: [{ /x: { sensitive: true, content: ['SECRET'] } }]",
        "- file: [{ /x: { sensitive: true, contnet: 'SECRET' } }]",
        "- file: [{ /x: { sensitive: true, content: { SECRET: 1 } } }]",
        "- file: [{ /x: { sensitive: true, mode: SECRET } }]",
        "- file: [{ /x: { sensitive: true, owner: 'SECRET x' } }]",
        "- file: [{ /x: { sensitive: true, ensure: SECRET } }]",
        "- file: [{ /x: { sensitive: true, content: a, content: SECRET } }]",
        "- file:\n  - /x:\n      sensitive: true\n      content: !!int SECRET\n",
        // On the line of another resource's mistake.
        "- file: [{ /x: { content: 'SECRET', sensitive: true, ensure: absent } }, { /y: {} }]",
        "- file: { /y: {}, /x: { ensure: absent }, /x: { sensitive: true, content: SECRET } }",
        // What cannot be read at all.
        "- file: [{ /x: { sensitive: true, content: SECRET",
        "- file:\n  - /x:\n      sensitive: true\n      content: \"SECRET\n",
        "- file:\n  - /x:\n      sensitive: true\n      content: SECRET: x: y\n",
        "- file:\n  - /x:\n      sensitive: true\n      content: *SECRET\n",
        "- file:\n  - /x:\n      sensitive: true\n      content: |\n        SECRET\n    oops\n",
    ] {
        let manifest = manifest
            .replace("SECRET", CANARY)
            .replace("SECRE", &CANARY[..CANARY.len() - 1])
            .replace("$OWN", "$OWN, mode: '0600'");
        let world = World::new().manifest(&manifest);
        for outcome in [world.validate(), world.apply(), world.apply_with(&["--json"])] {
            kept(&world, outcome.exits(2).complains("site.yaml:"));
        }
    }
}

#[test]
fn the_rest_of_a_manifest_with_a_secret_is_still_quoted() {
    let world = World::new().manifest(&format!(
        "- file: [{{ /x: {{ content: 'ä{CANARY}', mode: '0999', owner: '0', group: '0', sensitive: true }} }}]\n- fiel: []\n"
    ));
    let outcome = world.validate();
    outcome.exits(2).complains("2 | - fiel: []").complains("site.yaml:1:48");
    kept(&world, &outcome);
}

#[test]
fn flags_that_are_wrong_do_not_quote_a_secret() {
    let world = World::new();
    for arguments in [
        &[
            "ensure",
            "file",
            "$W/x",
            "--sensitive",
            "--content",
            CANARY,
            "--mode",
            "0999",
            "--owner",
            "0",
            "--group",
            "0",
        ][..],
        &["ensure", "file", "$W/x", "--sensitive", "--content", CANARY, "--source", "x"],
        &["ensure", "file", "$W/x", "--sensitive", "--mode", CANARY],
        &["ensure", "file", "$W/x", "--sensitive", "--content", CANARY, "--control", CANARY],
    ] {
        kept(&world, world.ccm(arguments).run().exits(2));
    }
}

#[test]
fn ensure_writes_a_secret_and_never_shows_it() {
    for more in [&[][..], &["--noop"], &["--noop", "--json"], &["--json", "--diff"], &["--diff"]] {
        let world = World::new().beside("secret", CANARY);
        let arguments =
            ["ensure", "file", "$W/x", "--sensitive", "--content-file", "secret", "--owner", "$UID"];
        let arguments = arguments.iter().chain(&["--group", "$GID", "--mode", "0600"]).chain(more);
        let outcome = world.ccm(arguments).run();
        kept(&world, outcome.exits(0));
        let wrote = !more.contains(&"--noop");
        assert_eq!(fs::read_to_string(world.path("x")).ok().as_deref(), wrote.then_some(CANARY));
    }
}

#[test]
fn what_every_resource_has_is_not_shown_of_a_sensitive_one() {
    let manifest = format!(
        "\
- file:
    - $W/x: {{ sensitive: true, $OWN, mode: '0600', alias: {CANARY}, control: {{ if: \"'{CANARY}' != ''\" }} }}
    - $W/y: {{ require: ['file#{CANARY}'], sensitive: true, $OWN, mode: '0600' }}
- exec: [{{ 'true': {{ subscribe: ['file#$W/x'] }} }}]
"
    );
    for flags in MODES {
        let world = World::new().manifest(&manifest);
        let outcome = world.apply_with(flags);
        kept(&world, outcome.exits(0));
    }
}

/// What the included manifest hides may come from the data that it is given.
#[test]
fn data_of_an_included_manifest_with_a_sensitive_resource_is_hidden() {
    for (child, is_hidden) in [
        ("file: [{ $W/x: { content: '${ Data.token }', sensitive: true, $OWN, mode: '0600' } }]", true),
        ("exec: [{ 'true': { environment: ['TOKEN=${ Data.token }'] } }]", true),
        ("apply: [{ grandchild.yaml: { data: { token: '${ Data.token }' } } }]", true),
        ("file: [{ $W/x: { content: '${ len(Data.token) }', $OWN, mode: '0600' } }]", false),
    ] {
        let grandchild =
            "- file: [{ $W/y: { content: '${ Data.token }', sensitive: true, $OWN, mode: '0600' } }]";
        let world = World::new();
        let child = world.fill(&format!("- {child}\n"));
        let grandchild = world.fill(grandchild);
        let world = world
            .beside("child.yaml", child)
            .beside("grandchild.yaml", grandchild)
            .manifest(&format!("- apply: [{{ child.yaml: {{ data: {{ token: {CANARY} }} }} }}]\n"));
        for flags in MODES.iter().copied().chain([&["-vv"][..], &["-vv", "--noop"]]) {
            let outcome = world.apply_with(flags);
            outcome.exits(0);
            if is_hidden {
                kept(&world, &outcome);
            }
        }
        let event = world.apply_with(&["--json"]).event("child.yaml");
        let data = &event["properties"]["data"];
        assert_eq!(*data == "[secret]", is_hidden, "{event:#}");
    }
}

#[test]
fn a_session_keeps_nothing_of_a_sensitive_resource() {
    let world = World::new();
    let session = world.base().join("home/session");
    let session = session.to_str().unwrap();
    world.ccm(["session", "new", "--directory", session]).run().exits(0);
    let ensure = ["ensure", "file", "$W/x", "--sensitive", "--content", CANARY, "--alias", CANARY];
    let ensure = ensure.iter().chain(&["--owner", "$UID", "--group", "$GID", "--mode", "0600"]);
    kept(&world, world.ccm(ensure.chain(&["--session", session])).run().exits(0));
    kept(&world, world.ccm(["session", "report", "--json", "--session", session]).run().exits(0));
    // Others refer to it by its name.
    let exec = ["ensure", "exec", "true", "--subscribe", "file#$W/x", "--session", session];
    world.ccm(exec).run().exits(0).says("exec#true");
}

#[test]
fn a_secret_that_stands_in_another_property_too_is_hidden_there() {
    let keys = format!("environment: ['TOKEN={CANARY}']");
    let world = World::new().manifest(&format!(
        "\
- exec:
    - login: {{ command: 'sh -c \"exit 1\" {CANARY}', {keys} }}
    - later: {{ command: 'sh -c \"exit 1\" ${{ Data.token }}', {keys} }}
"
    ));
    for flags in MODES {
        kept(&world, &world.apply_with(&[flags, &["--data", &format!("token={CANARY}")][..]].concat()));
    }
}

#[test]
fn secrets_in_warnings_and_in_help_are_hidden() {
    let world = World::new().manifest(&format!(
        "\
- exec:
    - 'true': {{ creates: /no/{CANARY}, environment: ['TOKEN=/no/{CANARY}'] }}
    - a: {{ command: 'false $x{CANARY}', environment: ['TOKEN=$x{CANARY}'] }}
    - b: {{ command: 'true', sensitive: true, creates: '/no/{CANARY}' }}
"
    ));
    let outcome = world.apply();
    kept(&world, outcome.exits(1));
    outcome
        .says("warning: the command succeeded, but [secret] does not exist")
        .says("help: `[secret]` means nothing without a shell");
    kept(&world, &world.apply_with(&["--json"]));
}

#[test]
fn of_two_secrets_that_overlap_nothing_is_left() {
    let (left, right) = ("left-c4n4ry", "c4n4ry-right");
    let keys = format!("environment: ['ONE={left}', 'TWO={right}', 'THREE={left}-and-more']");
    let world = World::new().manifest(&format!(
        "\
- exec:
    - a:
        command: sh -c 'echo left-$TWO; echo $THREE >&2; exit 1' left-c4n4ry-right
        {keys}
        logoutput: true
"
    ));
    for flags in [&[][..], &["--json"], &["--render"]] {
        let outcome = world.apply_with(flags);
        outcome.never_says("c4n4ry").never_says("-right").never_says("and-more");
    }
    world.apply().exits(1).says("stdout:\n        | [secret]\n");
}

#[test]
fn a_flag_without_a_key_does_not_quote_what_may_be_a_secret() {
    let world = World::new().files("- $W/x: {}").beside("data.yaml", "data: {}");
    for arguments in [
        &["apply", "site.yaml", "--data", CANARY][..],
        &["apply", "site.yaml", "--fact", CANARY],
        &["eval", "1", "--data", CANARY],
        &["facts", "--fact", CANARY],
        &["hiera", "parse", "data.yaml", CANARY],
        &["ensure", "file", "$W/x", "--data", CANARY],
        &["ensure", "archive", "$W/x.tar.gz", "--headers", CANARY],
    ] {
        kept(&world, world.ccm(arguments).run().exits(2).complains("KEY=VALUE"));
    }
}
