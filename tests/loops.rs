//! `for_each`: one item of a list, repeated for each element of a list or map.

use std::fmt::Write as _;

use crate::support::World;

/// A list of files with what is common to them.
fn files(items: &str) -> String {
    format!("- file:\n    - defaults: {{ $OWN, mode: \"0644\" }}\n{items}")
}

#[test]
fn an_item_is_repeated_for_each_element_of_an_expression_in_order() {
    let world = World::new().manifest(
        "\
data:
  sites: [{ name: b, port: 80 }, { name: a, port: 81 }]
ccm:
  resources:
    - file:
        - defaults: { $OWN, mode: \"0644\" }
        - for_each: Data.sites
          \"$W/{{ each.name }}\":
            content: \"{{ index }}: ${ each.port }\\n\"
",
    );
    let run = world.apply();
    run.exits(0);
    assert!(run.stdout.find("w/b").unwrap() < run.stdout.find("w/a").unwrap(), "{run}");
    assert_eq!((world.read("b"), world.read("a")), ("0: 80\n".to_owned(), "1: 81\n".to_owned()));
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn a_list_or_a_map_can_be_written_out_and_may_hold_templates() {
    let world = World::new().manifest(&files(
        "    - for_each: { one: \"${ 1 + 0 }\", two: [x, y] }\n      $W/{{ each.key }}: { content: \"${ each.value }\" }\n    \
         - for_each: [p, \"{{ 'q' }}\"]\n      $W/{{ each }}{{ index }}: { content: \"\" }\n",
    ));
    world.apply().exits(0);
    assert_eq!((world.read("one"), world.read("two")), ("1".to_owned(), "[\"x\",\"y\"]".to_owned()));
    assert_eq!((world.read("p0"), world.read("q1")), (String::new(), String::new()));
}

#[test]
fn the_form_with_a_name_key_is_repeated_too() {
    let world = World::new().manifest(
        "\
- file:
    for_each: [a, b]
    name: $W/{{ each }}
    $OWN
    mode: \"0644\"
    content: \"\"
"
        .replace("$OWN", "owner: \"$UID\"\n    group: \"$GID\"")
        .as_str(),
    );
    world.apply().exits(0).says("w/a").says("w/b");
}

#[test]
fn late_templates_and_conditions_see_the_element() {
    let world = World::new().file("seed", "S").manifest(&files(
        "    - for_each: [{ n: a, on: true }, { n: b, on: false }, { n: c }]\n      $W/{{ each.n }}:\n        \
         content: \"${ file('$W/seed') + each.n }\"\n        control: { if: \"each.on ?? true\" }\n",
    ));
    let run = world.apply_with(&["-v"]);
    run.exits(0).says("skipped: control.if is false");
    assert_eq!((world.read("a"), world.read("c")), ("Sa".to_owned(), "Sc".to_owned()));
    assert!(!world.path("b").exists(), "{run}");
}

#[test]
fn references_name_what_came_out() {
    let world = World::new().manifest(&format!(
        "{}- exec:\n    - for_each: [a, b]\n      \"/bin/echo {{{{ each }}}}\":\n        refresh_only: true\n        \
         subscribe: [\"file#$W/{{{{ each }}}}\"]\n",
        files("    - for_each: [a, b]\n      $W/{{ each }}: { content: \"\" }\n")
    ));
    world.apply().exits(0).says("2 refreshed");
    let broken = World::new().manifest(&files(
        "    - for_each: [a]\n      $W/{{ each }}: { content: \"\", require: [\"file#$W/{{ each }}x\"] }\n",
    ));
    broken.validate().exits(2).complains("is not declared");
}

#[test]
fn no_element_is_no_resource() {
    let world = World::new().manifest(&files("    - for_each: []\n      $W/{{ each }}: { content: \"\" }\n"));
    world.apply().exits(0).says("0 resources");
}

#[test]
fn two_elements_with_one_name_are_an_error_that_quotes_the_element() {
    let world = World::new().manifest(&files(
        "    - for_each: [{ n: a, v: 1 }, { n: b }, { n: a, v: 2 }]\n      $W/{{ each.n }}: { content: \"\" }\n",
    ));
    world
        .validate()
        .exits(2)
        .complains("is declared twice, here for element 2, {\"n\":\"a\",\"v\":2}")
        .complains("element 0 gives the same name");
}

#[test]
fn a_name_that_another_item_gives_too_is_shown_where_that_stands() {
    let world = World::new().manifest(&files(
        "    - for_each: [a]\n      $W/{{ each }}: { content: \"\" }\n    - $W/a: { content: \"\" }\n",
    ));
    let run = world.validate();
    run.exits(2).complains("is declared twice").complains("first declared here");
    assert!(!run.stderr.contains("gives the same name"), "{run}");
    // A place in another file is no place in this one, though it has the same number.
    let item = "- exec:\n    - for_each: [a]\n      \"/bin/echo {{ each }}\": {}\n";
    let world = World::new()
        .beside("child.yaml", item)
        .manifest(&format!("{item}- apply: [{{ child.yaml: {{}} }}]\n"));
    let run = world.validate();
    run.exits(2).complains("is declared twice").complains("(first declared here: site.yaml:3:7)");
    assert!(!run.stderr.contains("gives the same name"), "{run}");
}

#[test]
fn an_element_of_a_sensitive_item_is_not_quoted() {
    for (element, properties) in [
        ("{ n: a, password: canary }", "sensitive: true"),
        ("{ n: a, password: canary }", "content: \"${ each.password }\""),
        ("{ n: a, word: canary }", "sensitive: true"),
    ] {
        let world = World::new().manifest(&files(&format!(
            "    - for_each: [{element}, {element}]\n      $W/{{{{ each.n }}}}: {{ {properties} }}\n"
        )));
        let run = world.validate();
        run.exits(2).complains("here for element 1");
        assert!(!run.stderr.contains("canary"), "{run}");
    }
}

#[test]
fn what_is_no_list_or_map_is_an_error_that_quotes_it() {
    for (expression, said) in [
        ("Data.port", "for_each needs a list or a map, `Data.port` is int"),
        ("Data.prot", "for_each: `Data.prot` has no value"),
        ("\"[\"", "for_each"),
        ("8080", "for_each needs a list or a map, `8080` is int"),
    ] {
        let world = World::new().manifest(&format!(
            "\
data: {{ port: 80 }}
ccm:
  resources:
    - exec:
        - for_each: {expression}
          \"{{{{ each }}}}\": {{}}
"
        ));
        world.validate().exits(2).complains(said).complains("exec#{{ each }}: ").complains("site.yaml:5:");
    }
}

#[test]
fn of_what_a_sensitive_item_is_repeated_for_nothing_is_said() {
    for for_each in ["int('canary')", "\"'canary'\"", "[\"${ int('canary') }\"]"] {
        let world = World::new().manifest(&format!(
            "- exec:\n    - for_each: {for_each}\n      \"{{{{ each }}}}\": {{ sensitive: true }}\n"
        ));
        let run = world.validate();
        run.exits(2).complains("exec#{{ each }}: for_each cannot be worked out").never_says("canary");
    }
}

#[test]
fn a_member_that_an_element_lacks_is_named_with_the_nearest() {
    let world = World::new()
        .manifest(&files("    - for_each: [{ name: a }]\n      $W/{{ each.nane }}: { content: \"\" }\n"));
    world.validate().exits(2).complains("element 0, {\"name\":\"a\"}").complains("did you mean `name`?");
}

#[test]
fn what_is_wrong_for_every_element_is_said_once() {
    let world = World::new()
        .manifest(&files("    - for_each: [a, b, c]\n      $W/{{ each }}: { content: \"\", ower: root }\n"));
    let run = world.validate();
    run.exits(2).complains("the same is wrong for 2 other elements");
    assert_eq!(run.stderr.matches("ower").count(), 2, "the message and the line: {run}");
    let world = World::new()
        .manifest(&files("    - for_each: [a, b]\n      $W/{{ each }}: { content: \"\", ower: root }\n"));
    let run = world.validate();
    run.exits(2).complains("the same is wrong for 1 other element\n");
}

#[test]
fn it_has_no_place_in_a_map_of_names_or_among_properties() {
    for manifest in [
        "- exec: { for_each: [a], \"{{ each }}\": {} }\n",
        "- exec:\n    - \"{{ each }}\": { for_each: [a] }\n",
        "- exec:\n    - for_each: [a]\n",
        "- exec:\n    - for_each: [a]\n      defaults: { cwd: / }\n    - \"true\": {}\n",
    ] {
        World::new().manifest(manifest).validate().exits(2).complains("for_each");
    }
}

#[test]
fn what_an_element_registers_is_rendered_with_the_element() {
    let world = World::new().files(
        "- $W/domain: { content: example.org }
- for_each: [a, b]
  $W/{{ each }}:
    content: x
    register_when_stable:
      - { cluster: prod, service: web, protocol: http, address: \"{{ each }}.{{ file('$W/domain') }}\" }",
    );
    let rendered = world.apply_with(&["--render"]);
    rendered.exits(0).says("each");
    world.beside("again.yaml", &rendered.stdout).ccm(["validate", "again.yaml"]).run().exits(0);
}

#[test]
fn what_is_rendered_says_what_came_out_and_does_the_same() {
    let world = World::new().file("seed", "S").manifest(&files(
        "    - for_each: [a, b]\n      $W/{{ each }}: { content: \"{{ file('$W/seed') }}${ each }{{ index }}\", control: { if: each == 'b' } }\n",
    ));
    let rendered = world.apply_with(&["--render"]);
    rendered.exits(0);
    assert!(!rendered.stdout.contains("for_each"), "{rendered}");
    let again = world.beside("again.yaml", &rendered.stdout);
    again.ccm(["apply", "again.yaml"]).run().exits(0);
    assert_eq!(again.read("b"), "Sb1");
    assert!(!again.path("a").exists());
}

#[test]
fn ten_thousand_elements_are_ten_thousand_resources() {
    let mut elements = String::new();
    for element in 0..10_000 {
        write!(elements, "{element}, ").unwrap();
    }
    let world = World::new().manifest(&files(&format!(
        "    - for_each: [{elements}]\n      $W/{{{{ each }}}}: {{ content: \"{{{{ index }}}}\" }}\n"
    )));
    world.validate().exits(0).says("10000 resources");
}
