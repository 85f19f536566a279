//! What texts with expressions come to.

use super::{Template, has_template, only_expression};
use crate::value::{Map, Value};

fn environment() -> Map {
    let json = r#"{"x": 1, "name": "web", "list": [1, "a"], "map": {"a": {"b": 2}}, "nothing": null,
                   "evil": "{{ x }} ${ x }"}"#;
    serde_json::from_str::<Value>(json).unwrap().as_map().unwrap().clone()
}

fn value(text: &str) -> Value {
    Template::parse(text).unwrap().evaluate(&environment()).unwrap()
}

#[test]
fn texts_come_to_what_the_contract_says() {
    let cases = [
        ("", ""),
        ("plain", "plain"),
        ("a {{ x }} b", "a 1 b"),
        ("a ${ x } b", "a 1 b"),
        ("${x}${x}", "11"),
        ("{{{{ x }}", "{{ x }}"),
        ("$${ x }", "${ x }"),
        ("$$${ x }", "$${ x }"),
        ("${{ x }}", "$1"),
        ("${{ x }} and {{x}}", "$1 and 1"),
        ("{{ x", "{{ x"),
        ("${ x", "${ x"),
        ("a {{ b ${ x }", "a {{ b 1"),
        ("${ don't }", "${ don't }"),
        ("$x {y} {", "$x {y} {"),
        ("$", "$"),
        ("{{ '}}' }}!", "}}!"),
        ("{{ \"\\\"}}\" }}!", "\"}}!"),
        ("${ '}' }!", "}!"),
        ("${ `}` }!", "}!"),
        ("${ {a: {b: name}}.a.b }!", "web!"),
        ("{{ {a: {b: name}}.a.b }}!", "web!"),
        ("{{ {a: 1}}}!", "{\"a\":1}!"),
        ("{{{a: 1}}}!", "{\"a\":1}!"),
        ("${ map.a }!", "{\"b\":2}!"),
        ("list: {{ list }}", "list: [1,\"a\"]"),
        ("{{ evil }}!", "{{ x }} ${ x }!"),
        ("\u{e9}{{ x }}\u{1f600}", "\u{e9}1\u{1f600}"),
        ("{{ 7 / 2 }} {{ 4 / 2 }} {{ true }}", "3.5 2 true"),
        ("${{{{", "${{"),
        ("{{ x }}\n", "1\n"),
    ];
    for (text, want) in cases {
        assert_eq!(value(text), Value::from(want), "{text}");
    }
}

#[test]
fn exactly_one_expression_keeps_its_type() {
    assert_eq!(value("{{ x }}"), Value::Int(1));
    assert_eq!(value("${ list }"), Value::from(vec![Value::Int(1), "a".into()]));
    assert_eq!(value("{{ nothing }}"), Value::Null);
    assert_eq!(value(" {{ x }}"), Value::from(" 1"));
    assert_eq!(value("{{ evil }}"), Value::from("{{ x }} ${ x }"));
    assert_eq!(Template::parse("{{ x }}").unwrap().render(&environment()).unwrap().text, "1");
}

#[test]
fn a_division_by_zero_names_the_expression() {
    for text in ["a {{ x / 0 }}", "a {{ -x / 0 }}", "a {{ 0.0 / 0 }}", "{{ x / 0 }}"] {
        let error = Template::parse(text).unwrap().evaluate(&environment()).unwrap_err();
        assert!(error.to_string().ends_with("` is not a finite number"), "{error}");
        assert_eq!(error.span.end, text.len());
    }
    for text in ["a {{ [1, x / 0] }}", "{{ {a: [x / 0]} }}"] {
        let error = Template::parse(text).unwrap().render(&environment()).unwrap_err();
        assert!(error.to_string().ends_with("` holds a number that is not finite"), "{error}");
        assert_eq!(error.span.end, text.len());
    }
}

#[test]
fn escaped_text_comes_to_itself() {
    for text in [
        "",
        "plain",
        "{",
        "{{",
        "{{{",
        "{{{{",
        "{{{{{",
        "${",
        "$${",
        "$$${",
        "${{",
        "${{{",
        "${{{{",
        "${${",
        "{${",
        "{{${",
        "{$",
        "${ x }",
        "{{ x }}",
        "a {{ x }} b ${ x } c $${ x } d",
        "$",
        "$$",
        "}}",
        "{{ '}}' }}",
        "\u{e9}{{\u{e9}${",
    ] {
        let written = super::escape(text);
        let template = Template::parse(&written).unwrap();
        assert_eq!(template.render(&environment()).unwrap().text, text, "{written}");
        assert!(template.expressions().next().is_none(), "{written}");
    }
}

#[test]
fn an_expression_alone_is_found_in_its_brackets() {
    for (text, inner) in [
        ("${ x }", Some(" x ")),
        (" {{ x }} ", Some(" x ")),
        ("${x}\n", Some("x")),
        ("${ {a: 1}.a }", Some(" {a: 1}.a ")),
    ] {
        assert_eq!(only_expression(text).map(|range| &text[range]), inner, "{text}");
    }
    for text in ["", "x", "${ x } y", "${ x }${ x }", "$${ x }", "${ x", "{{{{ x }}"] {
        assert_eq!(only_expression(text), None, "{text}");
    }
}

#[test]
fn nil_is_no_value_for_whom_it_will_not_do() {
    let error = Template::parse("{{ nothing }}").unwrap().require(&environment()).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.span), ("`nothing` has no value", 0..13));
    assert_eq!(Template::parse("{{ x }}").unwrap().require(&environment()).unwrap(), Value::Int(1));
}

#[test]
fn nil_within_text_names_the_expression() {
    let error = Template::parse("a {{ nothing }}").unwrap().evaluate(&environment()).unwrap_err();
    assert_eq!(error.to_string(), "`nothing` has no value");
    assert_eq!(error.span, 2..15);
}

#[test]
fn errors_are_placed_in_the_whole_text() {
    let error = Template::parse("ab {{ 1 + }}").unwrap_err();
    assert_eq!((error.to_string().as_str(), error.span), ("expected an expression, found the end", 10..10));
    let error = Template::parse("ab ${ nmae }").unwrap().evaluate(&environment()).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.span), ("unknown variable `nmae`", 6..10));
    assert_eq!(error.help.as_deref(), Some("did you mean `name`?"));
    let error = Template::parse("x {{ map.a.b.c }}").unwrap().evaluate(&environment()).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.span), ("int has no member `c`", 5..14));
}

#[test]
fn a_shell_variable_gets_told_how_to_stay_text() {
    let error = Template::parse("echo ${HOME}").unwrap().evaluate(&environment()).unwrap_err();
    assert_eq!(error.help.as_deref(), Some("write `$${HOME}` for the text `${HOME}`"));
    let error = Template::parse("{{ }}").unwrap_err();
    assert!(error.help.unwrap().contains("`{{{{`"));
}

#[test]
fn all_unknown_names_are_found_without_evaluating() {
    let template = Template::parse("{{ a ?? b }} ${ c() } {{ x }}").unwrap();
    let errors = template.check(&environment());
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["unknown variable `a`", "unknown variable `b`", "unknown function `c`"]);
    assert_eq!(errors[2].span, 16..17);
}

#[test]
fn the_quick_check_misses_no_template() {
    for text in ["{{", "${", "a{{b", "a${b", "{ {{", "$${", "{{{{"] {
        assert!(has_template(text), "{text}");
    }
    for text in ["", "{", "$", "{ {", "$ {", "}}", "a{b}c"] {
        assert!(!has_template(text), "{text}");
    }
}

#[test]
fn a_text_of_openers_takes_no_time() {
    let text = "{{ ${ ".repeat(300);
    assert_eq!(value(&text), Value::from(text.as_str()));
    for text in ["{{ ${ ".repeat(1_000_000), "${ { ".repeat(100_000) + "}", "${ '".repeat(100_001) + "}"] {
        let error = Template::parse(&text).unwrap_err();
        assert!(error.to_string().contains("never close"), "{error}");
    }
}
