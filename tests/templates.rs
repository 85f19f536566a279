//! Expressions in what people write: what they come to, when, and what is said of those that come to nothing.

use std::fs;

use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;

use crate::support::{Outcome, World, random};

const DATA: &str = r#"
data:
  x: 1
  name: web
  on: true
  list: [1, a, [b]]
  map: { a: { b: 2 } }
  nothing: null
  evil: "{{{{ 1 }} $${ 1 }"
"#;

/// A manifest with the data above and files with the owner and mode of an ordinary one.
fn with_data(world: World, items: &str) -> World {
    let items: String = items.lines().map(|line| format!("        {line}\n")).collect();
    world.manifest(&format!(
        "{DATA}ccm:\n  resources:\n    - file:\n        - defaults: {{ $OWN, mode: \"0644\" }}\n{items}"
    ))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn ensure(world: &World, arguments: &[&str]) -> Outcome {
    let own = ["--owner", "$UID", "--group", "$GID", "--mode", "0644"];
    world.ccm(["ensure", "file"].iter().chain(arguments).chain(&own)).run()
}

const TEXTS: &[(&str, &str)] = &[
    ("plain", "plain"),
    ("a {{ data.x }} b", "a 1 b"),
    ("a ${ data.x } b", "a 1 b"),
    ("${data.x}${data.x}", "11"),
    ("{{{{ data.x }}", "{{ data.x }}"),
    ("$${ data.x }", "${ data.x }"),
    ("$$${ data.x }", "$${ data.x }"),
    ("${{ data.x }}", "$1"),
    ("never {{ closed", "never {{ closed"),
    ("never ${ closed", "never ${ closed"),
    ("{{ not ${ data.x }", "{{ not 1"),
    ("${ don't }", "${ don't }"),
    ("$x {y} { $", "$x {y} { $"),
    ("{{ '}}' }}!", "}}!"),
    ("${ '}' }${ \"}\" }${ `}` }", "}}}"),
    ("${ {a: {b: data.name}}.a.b }!", "web!"),
    ("{{ {a: {b: data.name}}.a.b }}!", "web!"),
    ("is {{ data.list }}", "is [1,\"a\",[\"b\"]]"),
    ("is ${ data.map }", "is {\"a\":{\"b\":2}}"),
    ("{{ 7 / 2 }} {{ 4 / 2 }} {{ data.on }}", "3.5 2 true"),
    ("{{ data.evil }}!", "{{ 1 }} ${ 1 }!"),
    ("\u{e9}{{ data.name }}\u{1f600}", "\u{e9}web\u{1f600}"),
    ("{{ data.name }}\n", "web\n"),
    // What is exactly one expression, where only text will do.
    ("${ data.x }", "1"),
    ("{{ data.on }}", "true"),
    ("${ data.list }", "[1,\"a\",[\"b\"]]"),
    ("${ data.map }", "{\"a\":{\"b\":2}}"),
    ("${ data.evil }", "{{ 1 }} ${ 1 }"),
    ("${ [] }", "[]"),
    ("${ '' }", ""),
    ("${ 'null' }", "null"),
    ("${ '~' }", "~"),
    ("${ '0644' }", "0644"),
];

#[test]
fn texts_in_a_manifest_come_to_what_their_expressions_do() {
    let item =
        |(at, (text, _)): (usize, &(&str, &str))| format!("- $W/{at}: {{ content: {} }}\n", quoted(text));
    let world = with_data(World::new(), &TEXTS.iter().enumerate().map(item).collect::<String>());
    world.apply().exits(0).counts([TEXTS.len(), 0, 0, 0]);
    for (at, (text, want)) in TEXTS.iter().enumerate() {
        assert_eq!(world.read(&at.to_string()), *want, "{text}");
    }
    world.apply().exits(0).counts([0, TEXTS.len(), 0, 0]);
}

#[test]
fn arguments_of_ensure_come_to_what_their_expressions_do() {
    let world = World::new().beside("data.yaml", DATA);
    for (text, want) in TEXTS {
        ensure(&world, &["$W/x", "--hiera", "data.yaml", "--content", text]).exits(0);
        assert_eq!(world.read("x"), *want, "{text}");
    }
    ensure(&world, &["$W/${ Data.name }-{{ Data.x }}", "--hiera", "data.yaml", "--content", ""]).exits(0);
    assert_eq!(world.read("web-1"), "");
    let world = World::new().beside("text.tmpl", "${ 1 + 1 }\n$${ 1 }\n");
    ensure(&world, &["$W/x", "--content-file", "text.tmpl"]).exits(0);
    assert_eq!(world.read("x"), "2\n${ 1 }\n");
}

#[test]
fn a_whole_expression_keeps_its_type_where_the_property_has_one() {
    let world = with_data(
        World::new(),
        "\
- $W/a: { content: x, tries: \"${ data.x + 2 }\", sensitive: \"{{ not data.on }}\" }
- $W/b: { content: x, require: \"${ ['file#' + lookup('environ.HOME') + '/../w/a'][1:] }\", mode: \"${ '600' }\" }
- $W/c: { ensure: absent, force: \"${ data.on }\", alias: \"${ data.x }\", timeout: \"${ data.x + 1 }m\" }
",
    );
    let outcome = world.apply_with(&["--json"]);
    let properties = |name: &str| outcome.event(name)["properties"].clone();
    assert_eq!(outcome.exits(0).event("/a")["properties"]["tries"], 3);
    assert_eq!(properties("/a").get("sensitive"), None);
    assert_eq!(properties("/b")["mode"], "0600");
    assert_eq!(properties("/c")["force"], true);
    assert_eq!((&properties("/c")["alias"], &properties("/c")["timeout"]), (&json!("1"), &json!("2m")));
    let world = with_data(World::new(), "- $W/a: { ensure: absent, tries: \"${ data.name }\" }");
    world
        .apply()
        .exits(2)
        .complains("tries: expected a whole number from 1, found the string \"web\"")
        .complains("site.yaml:14:");
}

#[test]
fn a_list_can_come_from_data() {
    let world = World::new().manifest(
        "\
data: { after: ['file#$W/a', 'file#$W/b'] }
ccm:
  resources:
    - file:
      - defaults: { $OWN, mode: '0644' }
      - $W/a: { content: x }
      - $W/b: { content: x }
      - $W/c: { content: x, require: \"${ Data.after }\" }
",
    );
    let after = &world.apply_with(&["--json"]).event("/c")["properties"]["require"].clone();
    assert_eq!(*after, json!([world.fill("file#$W/a"), world.fill("file#$W/b")]));
}

/// Nothing is attempted: the file before the one with the mistake is not written either.
#[track_caller]
fn not_attempted(item: &str, place: &str, message: &str, help: &str) {
    let world = with_data(World::new(), &format!("- $W/good: {{ content: x }}\n{item}\n"));
    let outcome = world.apply();
    outcome.exits(2).complains(message).complains(&format!("site.yaml:{place}")).complains(help);
    assert!(world.tree().names().is_empty(), "{outcome}");
    assert_eq!(world.validate().exits(2).stderr, outcome.stderr);
}

/// As [`not_attempted`], at this part of its line.
#[track_caller]
fn told(item: &str, at: &str, message: &str, help: &str) {
    let world = with_data(World::new(), &format!("- $W/good: {{ content: x }}\n{item}\n"));
    let column = 9 + world.fill(item).find(at).unwrap();
    let outcome = world.apply();
    outcome.exits(2).complains(message).complains(&format!("site.yaml:15:{column}\n")).complains(help);
    assert!(world.tree().names().is_empty(), "{outcome}");
}

/// The resource fails in its turn, at this part of its line; those around it are applied.
#[track_caller]
fn fails(item: &str, at: &str, message: &str, help: &str) {
    let items = format!("- $W/good: {{ content: x }}\n{item}\n- $W/last: {{ content: x }}\n");
    let world = with_data(World::new(), &items);
    world.validate().exits(0);
    let column = 9 + world.fill(item).find(at).unwrap();
    for flags in [&["--noop"][..], &[]] {
        let outcome = world.apply_with(flags);
        outcome.exits(1).says(message).says(&format!("  site.yaml:15:{column}")).says(help);
        outcome.counts([2, 0, 1, 0]);
        assert_eq!(outcome.stdout.matches("-->").count(), 0, "{outcome}");
    }
    assert_eq!(world.tree().names(), ["good", "last"]);
    let event = world.apply_with(&["--json"]).events().remove(1);
    assert_eq!(event["failed"], true);
    assert!(event["error"][0].as_str().unwrap().contains(message), "{event:#}");
}

#[test]
fn what_is_wrong_with_an_early_expression_stops_everything_before_it_begins() {
    // The second item stands on line 15.
    not_attempted(
        "- '$W/${ Data.nothing }': { ensure: absent }",
        "15:",
        "`Data.nothing` has no value",
        "`??`",
    );
    not_attempted(
        "- $W/x: { mode: '${ 1 / 0 }' }",
        "15:",
        "`1 / 0` is not a finite number",
        "divided by zero",
    );
    not_attempted(
        "- $W/x: { owner: '${ Date.name }' }",
        "15:",
        "unknown variable `Date`",
        "did you mean `Data`?",
    );
    not_attempted(
        "- $W/x: { owner: \"${ lokup('data.x') }\" }",
        "15:",
        "unknown function `lokup`",
        "did you mean `lookup`?",
    );
    not_attempted("- $W/x: { owner: \"${ lookup('data.nmae') }\" }", "15:", "data.nmae", "`name`");
    not_attempted("- $W/x: { owner: '${ 1 + }' }", "15:", "expected an expression", "");
    not_attempted("- $W/x: { owner: '${ \"a\" * 2 }' }", "15:", "string", "");
    not_attempted("- $W/x: { owner: '${ HOME }' }", "15:", "unknown variable `HOME`", "write `$${HOME}`");
}

/// Each thing that is wrong is told once, and nothing that follows from it.
#[track_caller]
fn told_once(items: &str, messages: &[&str]) {
    let world = with_data(World::new(), items);
    let outcome = world.validate();
    let count = messages.len();
    let summary = format!("{count} error{} in site.yaml", if count == 1 { "" } else { "s" });
    outcome.exits(2).complains(&summary);
    for message in messages {
        outcome.complains(message);
    }
}

#[test]
fn a_property_that_cannot_be_expanded_is_told_once() {
    let nothing = "`Data.nothing` has no value";
    for property in
        ["timeout", "provider", "alias", "mode", "tries", "try_sleep", "sensitive", "ensure", "force"]
    {
        told_once(&format!("- $W/x: {{ content: x, {property}: '${{ Data.nothing }}' }}"), &[nothing]);
        told_once(
            &format!("- $W/x: {{ content: x, {property}: '${{ Facts.hots.info }}', moed: 1 }}"),
            &["cannot read `info` of nil", "unknown property `moed`"],
        );
    }
    for property in ["require", "alias"] {
        let item = format!("- $W/x: {{ content: x, {property}: ['file#${{ Data.nothing }}'] }}");
        let item = if property == "alias" { item.replace(['[', ']'], "") } else { item };
        told_once(&item, &[nothing]);
    }
    told_once("- '${ Data.nothing }': { content: x, mode: 999 }", &[nothing, "999"]);
    // Two that have the same mistake in common are not the same.
    told_once(
        "- '${ Data.nothing }': { content: x }\n- '${ Data.nothing }': { content: x }",
        &[nothing, nothing],
    );
    told_once(
        "- $W/a: { content: x, alias: '${ Data.nothing }' }\n- $W/b: { content: x, alias: '${ Data.nothing }' }",
        &[nothing, nothing],
    );
    told_once(
        "- $W/a: { content: x, require: ['file#$W/${ Data.nothing }'] }\n- '$W/${ Data.nothing }': { content: x }",
        &[nothing, nothing],
    );
    // What could not be named may be what others refer to.
    told_once(
        "- '$W/${ Data.nothing }': { content: x }\n- $W/b: { content: x, require: ['file#$W/a', 'exec#a'] }",
        &[nothing, "exec#a is not declared"],
    );
    for (sections, message) in [
        ("ccm: { resources: [], fail_on_error: '${ 1 + }' }", "expected an expression"),
        (
            "data:\n  # @validate isInt(value)\n  a: '${ 1 + }'\nccm: { resources: [] }\n",
            "expected an expression",
        ),
    ] {
        let outcome = World::new().manifest(sections).validate();
        outcome.exits(2).complains(message).complains("1 error in site.yaml");
    }
    let outcome =
        ensure(&World::new(), &["${ Data.nothing }", "--content", "x", "--timeout", "${ Data.nothing }"]);
    outcome.exits(2).complains(nothing).complains("2 errors in command line");
}

#[test]
fn nothing_is_not_a_value_of_any_property() {
    let message = "`Data.nothing` has no value";
    for property in ["tries", "force", "sensitive", "require", "mode", "owner", "timeout", "alias", "content"]
    {
        let world = with_data(
            World::new(),
            &format!("- $W/x: {{ ensure: present, {property}: '${{ Data.nothing }}' }}"),
        );
        let outcome = world.apply();
        outcome.exits(2).complains(message).complains("give a default with `??`");
    }
    let exec = |property: &str| {
        let text = format!(
            "\
data: {{ nothing: null }}
ccm:
  resources:
  - exec: {{ x: {{ command: 'true', {property} }} }}"
        );
        World::new().manifest(&text).apply()
    };
    exec("returns: '${ Data.nothing }'").exits(2).complains(message);
    exec("environment: '${ Data.nothing }'").exits(2);
    exec("environment: ['A=${ Data.nothing ?? \"\" }']").exits(0);
    let settings = World::new().manifest("ccm: { fail_on_error: '${ Environ.NOTHING }' }").apply();
    settings.exits(2).complains("`Environ.NOTHING` has no value");
    // In data nothing is a value like any other.
    let data = World::new().manifest("data: { a: '${ Facts.nothing }' }\nccm: { resources: [] }");
    data.ccm(["eval", "Data.a == nil", "--manifest", "site.yaml"]).run().exits(0).says("true");
}

#[test]
fn conditions_may_stand_in_the_brackets_of_a_template() {
    let world = with_data(
        World::new(),
        "\
- $W/a: { content: x, control: { if: '${ data.on }' } }
- $W/b: { content: x, control: { if: '{{ not data.on }}' } }
- $W/c: { content: x, control: { unless: ' ${ {a: data.on}.a } ' } }
- $W/d: { content: x, control: { if: '{a: data.on}.a', unless: '${ file(\"w/a\") != \"x\" }' } }
",
    );
    world.apply().exits(0).counts([2, 0, 0, 2]);
    assert_eq!(world.tree().names(), ["a", "d"]);
    let control = |text: &str| format!("- $W/x: {{ content: x, control: {{ if: '{text}' }} }}");
    not_attempted(&control("${ Dat.on }"), "15:", "unknown variable `Dat`", "did you mean `Data`?");
    not_attempted(&control("${ data.on + }"), "15:", "expected an expression", "");
    not_attempted(&control("${ data.on } == true"), "15:", "", "write it without `${ }` or `{{ }}`");
    not_attempted(&control("${ data.name }"), "15:", "control.if must give a boolean, not string", "");
}

#[test]
fn what_can_be_known_of_a_late_expression_stops_everything_too() {
    not_attempted("- $W/x: { content: 'a ${ 1 + }' }", "15:", "expected an expression", "");
    not_attempted(
        "- $W/x: { content: 'a ${ Dat.x }' }",
        "15:",
        "unknown variable `Dat`",
        "did you mean `Data`?",
    );
    not_attempted(
        "- $W/x: { content: 'a ${ fiel(\"x\") }' }",
        "15:",
        "unknown function `fiel`",
        "did you mean `file`?",
    );
    not_attempted(
        "- $W/x: { source: '${ Dat.x }' }",
        "15:",
        "unknown variable `Dat`",
        "did you mean `Data`?",
    );
    not_attempted(
        "- $W/x: { contents: 'a ${ Dat.x }' }",
        "15:",
        "unknown variable `Dat`",
        "did you mean `Data`?",
    );
}

#[test]
fn what_a_run_cannot_change_is_told_before_it_begins() {
    let content = |text: &str| format!("- $W/x: {{ content: '{text}' }}");
    told(&content("a ${ 1 / len(Data.missing ?? []) }"), "${ 1", "is not a finite number", "divided by zero");
    told(&content("${ [1, {a: 1 / 0}] }"), "${ [1", "holds a number that is not finite", "divided by zero");
    told(&content("${ toJSON([1 / 0]) }"), "[1 / 0]", "a number that is not finite", "divided by zero");
    told(&content("a ${ 1 % (Data.x - 1) }"), "(Data.x - 1)", "division by zero", "");
    told(
        &content("a ${ lookup(\"data.nmae\") }"),
        "\"data.nmae\"",
        "`data` has no `nmae`",
        "did you mean `name`?",
    );
    told(&content("a ${ Data.map.a.b.c }"), "Data.map", "int has no member `c`", "");
    told(&content("a ${ file(\"missing\") }"), "\"missing\"", "cannot read", "");
    told(&content("a ${ Data.nothing }"), "${ Data", "`Data.nothing` has no value", "`??`");
    told(&content("${ Data.nothing }"), "${ Data", "`Data.nothing` has no value", "`??`");
    told("- $W/x: { contents: '${ file(\"missing\") }' }", "\"missing\"", "cannot read", "");
    let control = |text: &str| format!("- $W/x: {{ content: x, control: {{ {text} }} }}");
    told(&control("if: Data.name"), "Data.name", "control.if must give a boolean, not string", "");
    told(&control("unless: '1 % 0 > 1'"), "0 > 1", "control.unless: division by zero", "");
    told(
        &control("if: lookup(\"data.nmae\")"),
        "\"data.nmae\"",
        "`data` has no `nmae`",
        "did you mean `name`?",
    );
}

#[test]
fn what_only_a_run_can_tell_fails_its_resource() {
    let content = |text: &str| format!("- $W/x: {{ content: '{text}' }}");
    fails(
        &content("a ${ file(\"/nonexistent/x\") }"),
        "\"/nonexistent/x\"",
        "cannot read /nonexistent/x",
        "",
    );
    fails(&content("${ int(file(\"/etc/hostname\")) }"), "file(", "is not a whole number", "");
}

/// Where the marked text is, and what is marked.
#[track_caller]
fn marked(content: &str, line: usize, text: &str) {
    let world = with_data(World::new(), &format!("- $W/x:\n    content: {content}\n"));
    let outcome = world.validate();
    let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap();
    let written = manifest.lines().nth(line - 1).unwrap();
    let column = written.find(text).unwrap_or_else(|| panic!("{text} is not in {written}"));
    let column = written[..column].chars().count();
    outcome.exits(2).complains(&format!("site.yaml:{line}:{}\n", column + 1));
    let marks = "^".repeat(text.chars().count());
    let below = outcome.stderr.lines().skip_while(|line| !line.contains(written)).nth(1).unwrap();
    assert_eq!(below.trim_start_matches([' ', '|']).trim_end(), marks, "{outcome}");
}

#[test]
fn a_mistake_is_marked_where_it_stands_whatever_is_around_it() {
    marked("plain ${ nope } text", 15, "nope");
    marked("plain ${ 1 +\n       nope } text", 16, "nope");
    marked("'it''s ${ nope } text'", 15, "nope");
    marked("'''${ nope }'", 15, "nope");
    marked("'over\n\n       lines ${ nope } text'", 17, "nope");
    marked("\"quoted ${ nope } text\"", 15, "nope");
    marked("\"\\\"a\\\" \\t\\x41\\u00e9\\U0001F600\\n${ nope }\"", 15, "nope");
    marked("\"a \\\n      b ${ nope }\"", 16, "nope");
    marked("\"\u{e9}\u{1f600} ${ nope }\"", 15, "nope");
    marked("|\n      first\n\n        deeper {{ nope }}\n", 18, "nope");
    marked("|2-\n       first\n       ${ nope } {{ 1 }}\n", 17, "nope");
    marked(">\n      folded\n      text ${ nope }\n", 17, "nope");
    marked("> # with a comment\n      folded ${ nope }\n", 16, "nope");
}

#[test]
fn every_mistake_of_a_text_is_marked_by_itself() {
    let world =
        with_data(World::new(), "- $W/x: { content: '${ one } ${ two } {{ data.x }} {{ three() }}' }");
    let outcome = world.validate();
    outcome
        .exits(2)
        .complains("`one`")
        .complains("`two`")
        .complains("`three`")
        .complains("3 errors in site.yaml");
}

#[test]
fn a_file_made_ahead_of_its_turn_holds_what_its_template_gives_when_its_turn_comes() {
    let names = ["a", "b", "c", "d", "e"];
    let items: String =
        names.iter().map(|name| format!("- $W/{name}: {{ content: new-{name} }}\n")).collect();
    let world = World::new().file("c", "old").files(&format!(
        "{items}- $W/f: {{ content: \"${{ file('w/c') }} ${{ upper('x') }}\" }}\n\
         - $W/g: {{ content: \"${{ file('w/e') }}\" }}\n- $W/h: {{ source: w/f }}\n"
    ));
    world.apply().exits(0).counts([8, 0, 0, 0]);
    assert_eq!(["f", "g", "h"].map(|name| world.read(name)), ["new-c X", "new-e", "new-c X"]);
    world.apply().exits(0).counts([0, 8, 0, 0]);
}

#[test]
fn late_templates_read_what_earlier_resources_made() {
    let world = with_data(
        World::new().beside("source", "copied"),
        "\
- $W/one: { content: first }
- $W/two: { content: \"${ file('w/one') } and {{ readFile('w/one') | upper() }}\" }
- $W/three: { source: \"${ trim(file('w/name')) }\" }
",
    );
    let world = world.file("name", "source\n");
    world.apply().exits(0).counts([3, 0, 0, 0]);
    assert_eq!((world.read("two"), world.read("three")), ("first and FIRST".to_owned(), "copied".to_owned()));
    world.apply().exits(0).counts([0, 3, 0, 0]);
    // Early ones do not wait.
    let world = with_data(
        World::new(),
        "- $W/one: { content: first }\n- \"$W/${ file('w/one') }\": { content: x }\n",
    );
    world.apply().exits(2).complains("w/one: no such file");
    assert!(world.tree().names().is_empty());
}

#[test]
fn conditions_are_decided_when_the_turn_comes() {
    let world = with_data(
        World::new(),
        "\
- $W/one: { content: yes }
- $W/two: { content: x, control: { if: \"file('w/one') == 'yes'\" } }
- $W/three: { content: x, control: { unless: \"file('w/one') == 'yes'\" } }
",
    );
    world.apply().exits(0).counts([2, 0, 0, 1]);
    assert_eq!(world.tree().names(), ["one", "two"]);
}

#[test]
fn files_and_texts_are_expanded_by_template() {
    let world = World::new()
        .beside("outer.tmpl", "[{{ template('inner.tmpl') }}] ${ Data.name }\n")
        .beside("inner.tmpl", "inner ${ Data.x }")
        .beside("loop.tmpl", "a\n{{ template('loop.tmpl') }}\n")
        .beside("broken.tmpl", "fine\n  and ${ Data.nothing + } not\n")
        .beside("binary", b"\xff\xfe");
    let world = with_data(
        world,
        "\
- $W/a: { content: \"${ template('outer.tmpl') }\" }
- $W/b: { content: \"${ template('text ${ Data.x }') }\" }
- $W/c: { content: \"${ template(file('inner.tmpl') + '\\\\n') }\" }
",
    );
    world.apply().exits(0);
    assert_eq!(world.read("a"), "[inner 1] web\n");
    assert_eq!((world.read("b"), world.read("c")), ("text 1".to_owned(), "inner 1\n".to_owned()));
    let world = with_data(
        world,
        "\
- $W/loop: { content: \"x ${ template('loop.tmpl') }\" }
- $W/broken: { content: \"x ${ template('broken.tmpl') }\" }
- $W/missing: { content: \"x ${ template('missing.tmpl') }\" }
- $W/binary: { content: \"x ${ file('binary') }\" }
- $W/folder: { content: \"x ${ file('w') }\" }
- $W/number: { content: \"x ${ file(1) }\" }
- $W/none: { content: \"x ${ template() }\" }
",
    );
    let outcome = world.apply();
    outcome
        .exits(2)
        .complains("the template includes itself: loop.tmpl -> loop.tmpl")
        .complains("broken.tmpl:2:25: expected an expression")
        .complains("missing.tmpl: no such file")
        .complains("binary: it is not UTF-8 text")
        .complains("w: it is a directory, not a regular file")
        .complains("file takes the path of a file as a string, not int")
        .complains("template takes the path of a file, or a text")
        .complains("7 errors in site.yaml");
    outcome.never_says("loop.tmpl:2: template: loop.tmpl");
}

#[test]
fn only_what_is_written_in_the_call_of_template_can_be_a_path() {
    let world = World::new()
        .beside("a.tmpl", "is ${ Data.x }")
        .beside("empty", "")
        .beside("path", "a.tmpl")
        .beside("plain", "file without a dot");
    let data = ["--data", "path=a.tmpl", "--data", "x=1", "--data", "folder=w", "--fact", "path=a.tmpl"];
    for (call, want) in [
        ("template('a.tmpl')", "is 1"),
        ("'a.tmpl' | template()", "is 1"),
        ("template(Data.x == 1 ? 'a.tmpl' : 'missing.tmpl')", "is 1"),
        ("template('plain')", "file without a dot"),
        ("template(file('a.tmpl'))", "is 1"),
        ("template(file(Data.path))", "is 1"),
        // Text, whatever it looks like.
        ("template('')", ""),
        ("template('Hi')", "Hi"),
        ("template('Hello there/you.')", "Hello there/you."),
        ("template(file('empty'))", ""),
        ("template(file('path'))", "a.tmpl"),
        ("template(Data.path)", "a.tmpl"),
        ("template(Facts.path)", "a.tmpl"),
        ("template(lookup('data.path'))", "a.tmpl"),
        ("template('a.' + 'tmpl')", "a.tmpl"),
        ("template(Data.none ?? 'a.tmpl')", "a.tmpl"),
        ("template(Data.folder)", "w"),
        ("template('w')", "w"),
    ] {
        let outcome = world.ccm(["eval", call].iter().chain(&data)).run();
        assert_eq!(outcome.exits(0).json(), json!(want), "{call}");
    }
    for missing in ["missing.tmpl", "sub/missing", "/missing"] {
        let outcome = world.ccm(["eval", &format!("template('{missing}')")]).run();
        outcome.exits(2).complains(&format!("{missing}: no such file"));
    }
}

#[test]
fn a_path_is_relative_to_the_manifest() {
    let world = World::new().file("sub/data.txt", "here").file(
        "sub/site.yaml",
        World::new().fill(
            "- file: { name: '${ Environ.TARGET }', content: \"${ file('data.txt') } in ${ WorkingDir }\", \
             $OWN, mode: '0644' }",
        ),
    );
    let target = world.path("x").display().to_string();
    world.ccm(["apply", "$W/sub/site.yaml"]).env("TARGET", target).run().exits(0);
    assert_eq!(world.read("x"), world.fill("here in $W/sub"));
}

#[test]
fn now_is_the_time_of_the_run() {
    let world =
        with_data(World::new(), "- $W/x: { content: \"${ now().Year() } ${ now() > date('2020-01-01') }\" }");
    world.apply().exits(0);
    let (year, later) =
        world.read("x").split_once(' ').map(|(a, b)| (a.parse::<i32>().unwrap(), b.to_owned())).unwrap();
    assert!(year > 2020 && later == "true");
}

#[test]
fn messages_of_a_manifest_are_templates() {
    let world = World::new().manifest("data: { x: 1, text: '{{{{ 1 }}' }\nccm: { resources: [], pre_message: '${ Data.x }', post_message: 'is ${ Data.text }' }");
    world.apply().exits(0).says("1\n").says("is {{ 1 }}\n");
    World::new()
        .manifest("ccm: { pre_message: 'a ${ nil }' }")
        .apply()
        .exits(2)
        .complains("`nil` has no value");
}

/// Occurs nowhere but in what must not be shown.
const CANARY: &str = "c4n4ry-5e7";

#[test]
fn templates_of_a_sensitive_resource_fail_without_a_word_about_it() {
    for (item, code) in [
        ("content: \"${ file(Data.secret) }\"", 2),
        ("content: \"x ${ int(Data.secret) }\"", 2),
        ("content: \"${ Data.secret + 1 }\"", 2),
        ("content: \"x ${ lookup('data.' + Data.secret) }\"", 2),
        ("content: \"x ${ template(Data.secret + '${ nope }') }\"", 2),
        ("source: \"${ Data.secret }\"", 2),
        ("content: x, control: { if: \"int(Data.secret) > 0\" }", 2),
        ("content: x, control: { if: \"Data.secret\" }", 2),
        ("content: x, tries: \"${ int(Data.secret) }\"", 2),
        ("content: x, owner: \"${ file(Data.secret) }\"", 2),
        ("content: x, mode: \"${ Data.secret }\"", 2),
        ("content: \"${ c4n4ry-5e7 + }\"", 2),
        ("content: \"${ 'c4n4ry-5e7' + nope }\"", 2),
    ] {
        let world = World::new().manifest(&format!(
            "\
data: {{ secret: '${{ Environ.SECRET }}' }}
ccm:
  resources:
  - file:
    - defaults: {{ $OWN, mode: '0600' }}
    - $W/x: {{ sensitive: true, {item} }}
"
        ));
        for flags in [&["--noop", "--json"][..], &["--json"], &["--diff"], &[]] {
            let call = world.ccm(["apply", "site.yaml"].iter().chain(flags)).env("SECRET", CANARY);
            let outcome = call.run();
            outcome.exits(code).never_says(CANARY);
            let shown = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(shown.contains(&world.fill("$W/x")), "{outcome}");
        }
    }
}

#[test]
fn template_of_a_sensitive_resource_names_the_missing_member() {
    let world = World::new().manifest(&format!(
        "data: {{ db: {{ password: {CANARY} }} }}\nccm:\n  resources:\n    - file:\n        - $W/x:\n            \
         {{ $OWN, mode: '0600', sensitive: true, content: 'user {CANARY} ${{ Data.db.pasword }}' }}\n"
    ));
    for outcome in [world.validate(), world.apply()] {
        outcome.exits(2).never_says(CANARY);
        outcome.complains("`Data.db.pasword` has no value").complains("did you mean `password`?");
    }
}

#[test]
fn a_password_that_cannot_be_worked_out_is_not_quoted() {
    let archive = "- archive: { name: $W/a.tgz, url: 'http://localhost:1/a.tgz', $OWN, username: u, password: \"${ int(Environ.SECRET) }\" }";
    let world = World::new().manifest(archive);
    for flags in [&["--noop"][..], &["--json"], &[]] {
        let outcome = world.ccm(["apply", "site.yaml"].iter().chain(flags)).env("SECRET", CANARY).run();
        outcome.exits(2).never_says(CANARY).complains("a template in it cannot be expanded");
    }
}

/// Braces, quotes, dollars, backslashes and what stands between them.
fn texts() -> impl Strategy<Value = String> {
    let bits = proptest::sample::select(vec![
        "{",
        "}",
        "{{",
        "}}",
        "${",
        "$",
        "$$",
        "'",
        "\"",
        "`",
        "\\",
        "\\n",
        "#",
        " ",
        "\n",
        ": ",
        "- ",
        "%",
        "data.x",
        "nope",
        "1 + 1",
        "\u{e9}",
        "\u{1f600}",
        "{{ 1 + 1 }}",
        "${ 1 + 1 }",
        "{{{{",
        "$${",
        "null",
        "*a",
        "&b",
        "!c",
        "\t",
    ]);
    proptest::collection::vec(bits, 0..8).prop_map(|bits| bits.concat())
}

/// How a text is written so that it comes to itself.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (written, read) = match rest {
            _ if rest.starts_with("${") => ("$${", 2),
            _ if rest.starts_with("{{") => ("{{{{", 2),
            _ => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        out.push_str(written);
        rest = &rest[read..];
    }
    out
}

/// Runs a property with a few dozen texts: each case starts the program.
fn with_texts(cases: u32, check: impl Fn(&str)) {
    let config = random(cases, "tests/failed_cases/templates.txt");
    let run = TestRunner::new(config).run(&texts(), |text| {
        check(&text);
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

/// Every way into a manifest, the text at its end, and every way out.
#[test]
fn text_from_anywhere_comes_out_as_it_is() {
    with_texts(24, |text| {
        let ways = [
            "Data.own",
            "Data.given",
            "Data.outer",
            "Facts.given",
            "Environ.TEXT",
            "file('text')",
            "lookup('data.own')",
            "Data.copied",
        ];
        let item = |(at, way): (usize, &&str)| {
            format!(
                "        - $W/whole-{at}: {{ content: \"${{ {way} }}\" }}\n\
                 \x20       - $W/part-{at}: {{ content: \"[{{{{ {way} }}}}]\", control: {{ if: \"{way} == {way}\" }} }}\n\
                 \x20       - $W/twice-{at}: {{ content: \"${{ template(`[${{ {way} }}]`) }}\" }}\n"
            )
        };
        let items: String = ways.iter().enumerate().map(item).collect();
        let own = quoted(&escaped(text));
        let manifest = format!(
            "\
data:
  own: {own}
  copied: \"${{ Facts.given }}\"
ccm:
  resources:
    - file:
        - defaults: {{ $OWN, mode: '0644' }}
{items}    - file:
        - defaults: {{ $OWN, mode: '0644', content: \"${{ Facts.given }}\", alias: \"${{ Data.given }}\" }}
        - $W/default:
"
        );
        let world = World::new()
            .beside("text", text)
            .beside("outer.yaml", format!("data: {{ outer: {own} }}\n"))
            .manifest(&manifest);
        let given = format!("given={}", quoted(text));
        let outcome = world
            .ccm([
                "apply",
                "site.yaml",
                "--hiera",
                "outer.yaml",
                "--fact",
                &given,
                "--data",
                &given,
                "--json",
            ])
            .env("TEXT", text)
            .run();
        outcome.exits(0);
        for (at, way) in ways.iter().enumerate() {
            assert_eq!(world.read(&format!("whole-{at}")), text, "{way}");
            assert_eq!(world.read(&format!("part-{at}")), format!("[{text}]"), "{way}");
            assert_eq!(world.read(&format!("twice-{at}")), format!("[{text}]"), "{way}");
        }
        assert_eq!(world.read("default"), text);
        let event = outcome.event("/default");
        assert_eq!((&event["alias"], &event["properties"]["content"]), (&json!(text), &json!(text)));
    });
}

#[test]
fn text_from_anywhere_comes_out_of_ensure_as_it_is() {
    with_texts(12, |text| {
        // `.env` knows no line breaks but escaped ones.
        let dotenv =
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        let world = World::new()
            .beside(".env", format!("export TEXT=\"{dotenv}\"\n"))
            .beside(".hiera", format!("data: {{ outer: {} }}\n", quoted(&escaped(text))))
            .beside("text", text);
        let given = format!("given={}", quoted(text));
        for way in ["Environ.TEXT", "Data.outer", "Data.given", "Facts.given", "file('text')"] {
            ensure(
                &world,
                &["$W/x", "--content", &format!("${{ {way} }}"), "--data", &given, "--fact", &given],
            )
            .exits(0);
            assert_eq!(world.read("x"), text, "{way}");
        }
        ensure(&world, &["$W/x", "--content", &escaped(text)]).exits(0);
        assert_eq!(world.read("x"), text);
    });
}

#[test]
fn names_of_files_come_out_as_they_are() {
    with_texts(16, |text| {
        let name = text.replace(['/', '\n', '\t'], "_");
        let manifest = "\
- file:
    - defaults: { $OWN, mode: '0644' }
    - \"$W/${ Facts.name }.x\": { content: a }
    - \"$W/after\": { content: b, require: [\"file#$W/${ Facts.name }.x\"] }
";
        let world = World::new().manifest(manifest);
        world.ccm(["apply", "site.yaml", "--fact", &format!("name={}", quoted(&name))]).run().exits(0);
        assert_eq!(world.read(&format!("{name}.x")), "a");
        let world = World::new();
        ensure(
            &world,
            &["$W/${ Facts.name }.x", "--content", "a", "--fact", &format!("name={}", quoted(&name))],
        )
        .exits(0);
        assert_eq!(world.read(&format!("{name}.x")), "a");
    });
}

#[test]
fn what_begins_with_a_dash_is_no_option() {
    let world = World::new();
    ensure(&world, &["$W/-x", "--content", "--noop"]).exits(0);
    assert_eq!(world.read("-x"), "--noop");
    ensure(&world, &["$W/y", "--content", "${ Data.x }", "--data", "x=--force"]).exits(0);
    assert_eq!(world.read("y"), "--force");
    world
        .ccm(["ensure", "file", "--", "-x", "absent"])
        .run()
        .exits(2)
        .complains("path \"-x\" must be absolute");
    world.ccm(["eval", "-1"]).run().exits(0).says("-1");
    world.ccm(["eval", "-Data.x", "--data", "x=1"]).run().exits(0).says("-1");
    let world = World::new().manifest("- file: [{ '${ Facts.name }': { ensure: absent } }]");
    world
        .ccm(["apply", "site.yaml", "--fact", "name=-x"])
        .run()
        .exits(2)
        .complains("path \"-x\" must be absolute");
}

#[test]
fn values_that_grow_without_end_are_errors() {
    for expression in [
        "repeat('x', 1e9)",
        "map(1..1000000000, #)",
        "reduce(1..100, #acc + #acc, 'x')",
        "1..9223372036854775807",
    ] {
        let world = World::new();
        let outcome = world.ccm(["eval", expression]).run();
        assert_eq!(outcome.code, 2, "{outcome}");
        outcome.complains("expression:1:");
    }
    let world =
        World::new().beside("a.tmpl", format!("{}\n", "{{ len(template('a.tmpl') + '') }}".repeat(50)));
    world
        .ccm(["eval", "template('a.tmpl')"])
        .run()
        .exits(2)
        .complains("the template includes itself: a.tmpl -> a.tmpl");
    for number in 0..15 {
        let next = format!("{{{{ len(template('{}.tmpl')) }}}}", number + 1);
        fs::write(world.base().join(format!("{number}.tmpl")), next.repeat(20)).unwrap();
    }
    fs::write(world.base().join("15.tmpl"), "x").unwrap();
    world.ccm(["eval", "template('0.tmpl')"]).run().exits(2).complains("too deep");
}

#[test]
fn eval_prints_values_as_json_and_marks_mistakes() {
    let world = World::new();
    for (expression, value) in [
        ("1 + 2 * 3", json!(7)),
        ("'a' + \"b\"", json!("ab")),
        ("{a: [1, nil, true]}", json!({ "a": [1, null, true] })),
        ("Data.port", json!(8080)),
        ("Facts.role", json!("web")),
        ("Environ.HERE", json!("{{ 1 }}")),
        ("lookup('env.HERE')", json!("{{ 1 }}")),
        ("lookup('data.none', 'default')", json!("default")),
        ("lookup('data.null', 'default')", json!("default")),
        ("lookup('data.null')", json!(null)),
        ("lookup('data.port', 'default')", json!(8080)),
    ] {
        let call = world.ccm([
            "eval",
            expression,
            "--data",
            "port=8080",
            "--data",
            "null=null",
            "--fact",
            "role=web",
        ]);
        assert_eq!(call.env("HERE", "{{ 1 }}").run().exits(0).json(), value, "{expression}");
    }
    for (expression, printed) in [("6 / 2", "3\n"), ("7 / 2", "3.5\n"), ("mean([])", "0\n")] {
        assert_eq!(world.ccm(["eval", expression]).run().exits(0).stdout, printed, "{expression}");
    }
    for expression in ["1 / 0", "[1, {a: 1 / 0}]"] {
        let outcome = world.ccm(["eval", expression]).run();
        assert_eq!(outcome.exits(2).complains("+Inf is not a finite number").stdout, "");
    }
    world.ccm(["eval", "1 % 0"]).run().exits(2).complains("division by zero").complains("expression:1:5");
    world.ccm(["eval", "Data.a + \u{e9}"]).run().exits(2).complains("expression:1:10");
}
