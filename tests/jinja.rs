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

/// Templates that took gigabytes or overflowed the stack, and the reason of the refusal.
#[test]
fn templates_that_need_too_much_memory_or_stack_fail_with_a_reason() {
    let double = |grow: &str| {
        format!(
            "{{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}}{{% for i in range(40) %}}{{% set ns.x = {grow} %}}{{% endfor %}}done"
        )
    };
    let deep = |grow: &str| {
        format!(
            "{{% set ns = namespace(x=[1]) %}}{{% for i in range(90000) %}}{{% set ns.x = {grow} %}}{{% endfor %}}done"
        )
    };
    let lines = "'x\n'*100000";
    let mut wrong = Vec::new();
    let (text, list, depth, operators) =
        ("a text of more than", "a list of more than", "deep", "operators in a row");
    for (template, expected) in [
        (format!("{{{{ 1{} }}}}", "+1".repeat(40_000)), operators),
        (format!("{{{{ Data.port{} }}}}", "|abs".repeat(40_000)), operators),
        (format!("{{{{ Data{} }}}}", ".x".repeat(40_000)), operators),
        (format!("{{% if {} 1 %}}{{% endif %}}", "not ".repeat(40_000)), operators),
        (format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(40_000)), "`elif`"),
        (double("ns.x ~ ns.x"), text),
        (double("ns.x + ns.x"), text),
        (double("ns.x * 2"), text),
        (double("ns.x|replace('x', 'xx')"), text),
        (double("[ns.x, ns.x]"), list),
        (double("(ns.x, ns.x)|join"), text),
        (double("{'a': ns.x, 'b': ns.x}"), list),
        (format!("{{{{ ({lines})|indent(1000000) }}}}"), text),
        ("{{ [1]|batch(900000000, 0) }}".to_owned(), list),
        ("{{ [1]|slice(900000000, 0) }}".to_owned(), list),
        ("{{ 'x'|format }}{{ '%900000000d'|format(1) }}".to_owned(), "a width of more than"),
        ("{{ ([0]*90000000)|list }}".to_owned(), list),
        (deep("[ns.x]"), depth),
        (deep("ns.x|batch(1)"), depth),
        (deep("namespace(x=ns.x)"), depth),
        (
            "{% for i in range(100000) %}{{ 'x'*1000 }}{% endfor %}".to_owned(),
            "the text is longer than",
        ),
        (
            format!(
                "{{% set page %}}{{% for i in range(90000) %}}{}{{% endfor %}}{{% endset %}}done",
                "x".repeat(100_000)
            ),
            "bytes of memory",
        ),
        (
            "{% set ns = namespace(all=[]) %}{% for i in range(90000) %}{% set ns.all = [('x' ~ i)*1000000, ns.all] %}{% endfor %}"
                .to_owned(),
            text,
        ),
        (
            "{% macro m(x, n) %}{% if n %}{{ m(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ m('xxxxxxxx', 90) }}".to_owned(),
            text,
        ),
        (format!("{{% raw %}}{{{{{{% endraw %}}{}", double("ns.x ~ ns.x")), text),
        (format!("{{# {{{{ ' #}}{}", double("ns.x ~ ns.x")), text),
    ] {
        let (page, outcome) = render(&template);
        let shown: String = template.chars().take(100).collect();
        assert_eq!(page, None, "{shown}");
        if !outcome.stderr.contains(expected) || ![1, 2].contains(&outcome.code) {
            wrong.push(format!("{shown}: exit status {}: {}", outcome.code, outcome.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn measuring_values_changes_neither_the_output_nor_the_position_of_an_error() {
    for (template, expected) in [
        ("{% for a in [1, 2] -%}\n  {{ a }};\n{%- endfor %}", "1;2;"),
        ("{% for a in [1, 2] %}\n{{ a }}\n{% endfor %}", "\n1\n\n2\n"),
        ("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"),
        ("{% set a, b = 1, 2 %}{{ a + b * 2 }}{{ -a + 2 }}{{ 2 ** 3 }}", "518"),
        ("{% set x = 'a' if Data.on else 'b' %}{{ x ~ 1 ~ 'c' }}", "a1c"),
        ("{% set x | upper %}a{% endset %}{{ x }}", "A"),
        ("{{ {'a': [1, 2]}['a'][1] }}{{ [3, 4][0] }}{{ ('a', 'b')[1] }}{{ 'ab'[0] }}", "23ba"),
        ("{{ 1 in [1] and 2 not in [1] }}{{ 3 is odd and (4 is even) }}", "truetrue"),
        ("{{ [1, 2, 3][1:]|join('-') }}{{ 'x-y'|split('-')|join }}{{ 'a'|indent(2, true) }}", "2-3xy  a"),
        ("{% macro m(a, b=[1]) %}{{ a }}{{ b[0] }}{% endmacro %}{{ m(1) }}", "11"),
        ("{% raw %}{{ [1 ~ }}{% endraw %}", "{{ [1 ~ }}"),
        ("{% with a = [1], b = 2 %}{{ a[0] + b }}{% endwith %}", "3"),
        ("{% filter upper|replace('A', 'B') %}a{% endfilter %}", "B"),
        ("{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(x) m() %}({{ x }}){% endcall %}", "(1)"),
    ] {
        let (page, outcome) = render(template);
        assert_eq!(page.as_deref(), Some(expected), "{template}\n{}", outcome.stderr);
    }
    let (_, outcome) = render("{% for a in [1] %}{{ 1 ~ 2 }}\n{{ [1] ~ Data.gone }}{% endfor %}");
    outcome.complains("page.j2:2:4: `Data.gone` has no value");
}
