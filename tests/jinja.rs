//! Templates with blocks: `jinja('file-or-text')`.

use crate::support::{Outcome, World};

/// What a template comes to, and what was said on the way.
fn render(template: &str) -> (Option<String>, Outcome) {
    let world = World::new()
        .beside("page.j2", template)
        .beside("part.j2", "[{{ Data.port }}]\n{{ Data.gone }}\n")
        .beside("plain.txt", "plain")
        .manifest(
            "\
data: { port: 8080, on: true, none: null, sites: [a, b], version: 1.10, versions: [1.20, 3], plain: 2.5, map: { k: [1, 2] } }
ccm:
  resources:
    - file:
        - $W/page: { $OWN, mode: \"0644\", content: \"${ jinja('page.j2') }\" }
",
        );
    let outcome = world.apply();
    let text = world.path("page").exists().then(|| world.read("page"));
    (text, outcome)
}

#[test]
fn blocks_values_filters_and_functions_work() {
    for (template, expected) in [
        ("{% for site in Data.sites %}{{ loop.index }}{{ site }};{% endfor %}\n", "1a;2b;\n"),
        ("{% if Data.on -%}\n  yes\n{%- endif %}", "yes"),
        (
            "{{ Data.on }} {{ not Data.on }} {{ Data.port + 1 }} {{ Data.map }}",
            "true false 8081 {\"k\":[1,2]}",
        ),
        ("{{ Data.sites }}", "[\"a\",\"b\"]"),
        ("<{{ '<&>' }}>", "<<&>>"),
        ("{{ lookup('data.port') }} {{ lookup('data.nope', 'none') }}", "8080 none"),
        ("{{ file('plain.txt') | upper }}", "PLAIN"),
        ("{{ 'a-b' | trimPrefix('a-') }} {{ repeat('x', 3) }} {{ hasSuffix('abc', 'c') }}", "b xxx true"),
        ("{{ Data.gone | default('-') }}{% if Data.gone is defined %}!{% endif %}", "-"),
        ("{% set x = 1 %}{{ x }}{% macro m(a) %}({{ a }}){% endmacro %}{{ m(2) }}", "1(2)"),
        (
            "{{ Data.version }} {{ Data.version * 2 }} {{ Data.versions }} {{ lookup('data.version') }} {{ 1.5 }} {{ Data.plain }}",
            "1.10 2.2 [1.20,3] 1.10 1.5 2.5",
        ),
        ("{% for v in Data.versions %}{{ v }};{% endfor %}{{ Data.version > 1.05 }}", "1.20;3;true"),
        ("two lines\n\n", "two lines\n\n"),
        ("<{{ 'on' if not Data.on }}>", "<>"),
        ("{{ Facts.os is string }}{{ facts.os == Facts.os }}", "truetrue"),
    ] {
        let (text, outcome) = render(template);
        assert_eq!(text.as_deref(), Some(expected), "{template} {outcome}");
    }
}

#[test]
fn a_file_elsewhere_is_read_when_the_turn_comes() {
    let world = World::new().beside("page.j2", "<{{ file(Data.made) }}>").manifest(
        "\
data: { made: $W/made }
ccm:
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - $W/made: { content: text }
        - $W/page: { content: \"{{ jinja('page.j2') }}\" }
",
    );
    world.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]).says("+<text>");
    world.apply().exits(0);
    assert_eq!(world.read("page"), "<text>");
}

#[test]
fn a_template_is_also_a_text() {
    let world = World::new().manifest(
        "\
- file:
    - $W/page: { $OWN, mode: \"0644\", content: \"${ jinja('{% for n in [1, 2] %}{{ n }},{% endfor %}') }\" }
",
    );
    world.apply().exits(0);
    assert_eq!(world.read("page"), "1,2,");
}

#[test]
fn what_has_no_value_is_an_error_at_its_line_that_names_the_nearest() {
    for (template, said) in [
        ("\n\n{{ Data.prot }}", vec!["page.j2:3:4: `Data.prot` has no value", "did you mean `port`?"]),
        ("{{ Data.prot | upper }}", vec!["`Data.prot` has no value", "did you mean `port`?"]),
        ("{% set p = Data.prot %}\n{{ p }}", vec!["page.j2:2:4: `Data.prot` has no value"]),
        ("{{ Data.port.x }}", vec!["`Data.port.x` has no value"]),
        ("{{ Data.sites[9] }}", vec!["`Data.sites[9]` has no value"]),
        ("{{ [] | first }}", vec!["page.j2:1:9: undefined value"]),
        ("\n{{ Data.none }}", vec!["page.j2:2:4: none has no text"]),
        ("{{ Data.port | nofilter }}", vec!["page.j2:1", "nofilter"]),
        ("{% include 'part.j2' %}", vec!["part.j2:2:4: `Data.gone` has no value"]),
        ("\n{{ lookup('data.prot') }}", vec!["page.j2:2", "data.prot", "did you mean `port`"]),
        ("{{ file('nothing.txt') }}", vec!["page.j2:1", "cannot read", "nothing.txt"]),
    ] {
        let (text, outcome) = render(template);
        outcome.exits(2);
        assert_eq!(text, None, "{outcome}");
        for said in said {
            outcome.complains(said);
        }
    }
}

#[test]
fn broken_templates_are_found_when_the_manifest_is_loaded() {
    for (template, said) in [
        ("a\n{% if Data.on %}\nb\n", "page.j2:"),
        ("a\n{{ Dat.port }}", "page.j2:2:4: there is no variable `Dat`"),
        ("{{ 1 + }}", "page.j2:1"),
    ] {
        let (_, outcome) = render(template);
        outcome.exits(2).complains(said).complains("site.yaml:5:");
    }
}

#[test]
fn data_cannot_use_templates_with_blocks() {
    let world = World::new().manifest(
        "\
data: { a: \"${ jinja('x.j2') }\" }
ccm: { resources: [] }
",
    );
    world.validate().exits(2).complains("cannot be used in data");
}
