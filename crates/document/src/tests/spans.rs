//! Where values are.

use super::{source, tree};
use crate::{Node, Span, Value};

fn slice(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

/// The text of every node, outermost first, keys with a colon.
fn slices(text: &str) -> Vec<String> {
    fn walk(text: &str, node: &Node, into: &mut Vec<String>) {
        into.push(slice(text, node.span).to_owned());
        match &node.value {
            Value::Scalar(_) => {}
            Value::Seq(items) => items.iter().for_each(|item| walk(text, item, into)),
            Value::Map(entries) => {
                for entry in entries {
                    into.push(format!("{}:", slice(text, entry.key_span)));
                    walk(text, &entry.value, into);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(text, &tree(text), &mut found);
    found
}

#[test]
fn a_span_is_the_text_of_its_value() {
    let cases: [(&str, &[&str]); 19] = [
        ("a: b # c\nd: 'e'  # 'f'\n", &["a: b # c\nd: 'e'", "a:", "b", "d:", "'e'"]),
        ("a: \"x\\\"y\" # \"z\"\n", &["a: \"x\\\"y\"", "a:", "\"x\\\"y\""]),
        ("a: 'it''s' \n", &["a: 'it''s'", "a:", "'it''s'"]),
        ("é: ü # ñ\nb: 日本 \n", &["é: ü # ñ\nb: 日本", "é:", "ü", "b:", "日本"]),
        ("a: 'é' # ü\r\nb: x\r\n", &["a: 'é' # ü\r\nb: x", "a:", "'é'", "b:", "x"]),
        ("\u{feff}a: b\n", &["a: b", "a:", "b"]),
        ("a:\t b\n", &["a:\t b", "a:", "b"]),
        ("a: |\n  x é\n  y\n\n\nb: 1\n", &["a: |\n  x é\n  y\n\n\nb: 1", "a:", "|\n  x é\n  y", "b:", "1"]),
        ("a: | # |\nb: &n >\n  x\n", &["a: | # |\nb: &n >\n  x", "a:", "| # |", "b:", ">\n  x"]),
        ("- |-\n  x\n- # >\n  |\n  y\n", &["- |-\n  x\n- # >\n  |\n  y", "|-\n  x", "|\n  y"]),
        ("a: >-\n  x\n\n# c\n", &["a: >-\n  x", "a:", ">-\n  x"]),
        ("a: x\n  y\nb: z\n", &["a: x\n  y\nb: z", "a:", "x\n  y", "b:", "z"]),
        (
            "a: { b: [1, 2 ] } # c\n",
            &["a: { b: [1, 2 ] }", "a:", "{ b: [1, 2 ] }", "b:", "[1, 2 ]", "1", "2"],
        ),
        (
            "a:\n  - x\n  - y: 1\n\nb: 1\n",
            &["a:\n  - x\n  - y: 1\n\nb: 1", "a:", "- x\n  - y: 1", "x", "y: 1", "y:", "1", "b:", "1"],
        ),
        ("a:\n- x\nb: 1\n", &["a:\n- x\nb: 1", "a:", "- x", "x", "b:", "1"]),
        ("[a: b, c]", &["[a: b, c]", "a: b", "a:", "b", "c"]),
        (
            "a: &n !!str 12\nb: &m\n  c: d\n",
            &["a: &n !!str 12\nb: &m\n  c: d", "a:", "12", "b:", "c: d", "c:", "d"],
        ),
        ("a: &n x\nb: *n # c\n", &["a: &n x\nb: *n", "a:", "x", "b:", "*n"]),
        (
            " {\"é\" : \"\\u00e9\" , \"b\": [ -1.5 ] } ",
            &[
                "{\"é\" : \"\\u00e9\" , \"b\": [ -1.5 ] }",
                "\"é\":",
                "\"\\u00e9\"",
                "\"b\":",
                "[ -1.5 ]",
                "-1.5",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(slices(text), expected, "{text:?}");
    }
}

#[test]
fn nothing_is_where_the_value_would_be() {
    let cases = [
        ("a:\nb: 1\n", "a", 2),
        ("b: 1\na: # c\n", "a", 7),
        ("{a, b: 1}", "a", 2),
        ("{a: , b: 1}", "a", 3),
        ("? a\n\n\nb: 1\n", "a", 3),
        ("a: !!null\nb: 1", "a", 3),
    ];
    for (text, key, at) in cases {
        assert_eq!(tree(text).lookup(key).unwrap().span.start, at, "{text:?}");
    }
    assert_eq!(tree("- a\n-\n- b\n").as_seq().unwrap()[1].span, Span { start: 5, end: 5 });
}

#[test]
fn columns_are_characters_and_lines_end_at_newlines() {
    let source = source("\u{feff}é: x\r\nb: ü\n");
    assert_eq!(source.line_column(3), (1, 1));
    assert_eq!(source.line_column(5), (1, 2));
    assert_eq!(source.line_column(10), (2, 1));
    assert_eq!(source.line_column(13), (2, 4));
    assert_eq!(source.line_column(14), (2, 4), "within a character");
    assert_eq!(source.line_column(999), (3, 1));
}

#[test]
fn bytes_that_are_not_text_are_named_with_their_line() {
    let problem = crate::Source::read("site.yaml", b"a: 1\nb: \xff\n".to_vec()).unwrap_err();
    assert_eq!(problem.message, "site.yaml:2:4: not UTF-8 text (byte 0xff)");
    let source = crate::Source::read("x", "\u{feff}a: 1".as_bytes().to_vec()).unwrap();
    assert_eq!(source.text, "a: 1");
}
