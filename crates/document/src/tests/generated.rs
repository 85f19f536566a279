//! Properties that hold for every text.

use super::source;
use crate::parse::all_of_yaml;
use crate::{Colour, Diagnostic, Node, Span, Value, from_node, parse, plain_yaml, render};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let text =
        prop_oneof![".{0,12}", "[ -~]{0,12}", "(yes|null|~|0o17|1e3|- a|a: b|#|'|\"|\n){1,3}", "\\PC{0,6}"];
    let number = prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        any::<u64>().prop_map(serde_json::Value::from),
        any::<f64>()
            .prop_filter("JSON has no infinity", |value| value.is_finite())
            .prop_map(serde_json::Value::from),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        number,
        text.clone().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Pieces of manifests, good and broken.
fn any_yaml() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "a",
        "é",
        "日",
        "b: ",
        "- ",
        "\n",
        "\r\n",
        "\n  ",
        "\n    ",
        "\t",
        " ",
        "'",
        "\"",
        "''",
        "\\",
        "\\u00e9",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "?",
        "? ",
        "&a ",
        "*a ",
        "!x ",
        "!!str ",
        "!<",
        "|",
        "|\n",
        ">-\n  ",
        "# c",
        " # é\n",
        "---\n",
        "...\n",
        "<<: ",
        "%",
        "@",
        "~",
        "1",
        "0o17",
        "\u{feff}",
        "\0",
        "\u{85}",
        "\u{2028}",
        "%TAG ! x\n",
        "null: ",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_span(text: &str, span: Span) -> Result<(), TestCaseError> {
    prop_assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} of {text:?}");
    Ok(())
}

fn check_node(text: &str, node: &Node) -> Result<(), TestCaseError> {
    check_span(text, node.span)?;
    match &node.value {
        Value::Scalar(_) => {}
        Value::Seq(items) => {
            for item in items {
                check_node(text, item)?;
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                check_span(text, entry.key_span)?;
                check_node(text, &entry.value)?;
            }
        }
    }
    Ok(())
}

/// Where the quick reader makes a tree, it is the parser's.
fn check_quick(text: &str) -> Result<(), TestCaseError> {
    if let Some(quick) = plain_yaml::read(text) {
        let parsed =
            all_of_yaml(text).map_err(|problems| TestCaseError::fail(format!("{text:?} {problems:?}")))?;
        prop_assert!(parsed.diagnostics.is_empty(), "{:?} {:?}", text, parsed.diagnostics);
        prop_assert_eq!(format!("{quick:?}"), format!("{:?}", parsed.root), "{:?}", text);
    }
    Ok(())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    check_quick(text)?;
    let source = source(text);
    match parse(&source) {
        Ok(node) => {
            check_node(text, &node)?;
            let _: serde_json::Value =
                from_node(&node).map_err(|error| TestCaseError::fail(error.message))?;
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty());
            for Diagnostic { span, also, .. } in problems.iter() {
                prop_assert!(span.is_some());
                for span in span.iter().chain(also.iter().map(|(span, _)| span)) {
                    check_span(text, *span)?;
                }
            }
            prop_assert!(render(&problems, &source, Colour::Off).starts_with("error["));
        }
    }
    Ok(())
}

/// Chooses among the ways to write the same thing.
struct Hand(u64);

impl Hand {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn choose<'a>(&mut self, ways: &[&'a str]) -> &'a str {
        ways[usize::try_from(self.below(ways.len() as u64)).unwrap()]
    }

    fn scalar(&mut self) -> &'static str {
        self.choose(&[
            "x",
            "1.5",
            "x y",
            "a:b",
            "a#b",
            "-1",
            "http://x/y?z=1&b",
            "\"q # r\"",
            "'q'",
            "\"a\\n\\tb\"",
            "\"\\u00e9\"",
            "'it''s'",
            "{}",
            "[ ]",
            "{a: b, c: \"d\"}",
            "[a, 'b', {c: [d]}]",
            "{a: [1, 2], }",
            "{ }",
            "\"{{ x }}\"",
            "~",
            "null",
            "é",
            "\"é\"",
            "\"a: b\"",
            "x, y",
            "''",
            "\"\"",
            "$x",
            "100%",
            ".",
            "/a/b",
            "-x",
            "[a,b]",
            "[ a , b ]",
            "{ a: b }",
            "x{{ y }}",
            "a [b]",
        ])
    }

    /// Ends a line, mostly in the plainest way.
    fn end(&mut self) -> &'static str {
        match self.below(12) {
            0 => self.choose(&[" # c", "  ", " #c: d", "\n", "\n  ", "\n# c", "\n        # c", "\n\n"]),
            _ => "",
        }
    }

    fn literal(&mut self, indent: usize, out: &mut String) {
        out.push_str(self.choose(&["|", "|", "|-", "| ", "|+", ">"]));
        for line in 0..=self.below(4) {
            let more = " ".repeat(usize::try_from(self.below(8).saturating_sub(5)).unwrap());
            let text =
                self.choose(&["x", "a: b", "# c", "- d", "", "", "  ", "é", "\tx", "x  ", "\"", "{{ x }}"]);
            let margin = if text.is_empty() && line > 0 { 0 } else { indent };
            out.extend(["\n", &" ".repeat(margin), &more, text]);
        }
    }

    /// Writes a list or map whose lines begin at a column, from where the first of them begins.
    fn block(&mut self, column: usize, depth: u64, out: &mut String) {
        let is_list = self.below(2) == 0;
        for number in 0..=self.below(3) {
            if number > 0 {
                let end = self.end();
                out.extend([end, "\n", &" ".repeat(column)]);
            }
            let indicator = if is_list {
                "-".to_owned()
            } else {
                let key = self.choose(&["kN", "\"kN\"", "'k N'", "k.N", "808N", "k N", "éN", "/k:N"]);
                key.replace('N', &number.to_string()) + ":"
            };
            out.push_str(&indicator);
            match self.below(8) {
                0 => {}
                1 | 2 if depth > 0 => {
                    let end = self.end();
                    let step = if is_list { 2 } else { usize::try_from(self.below(3)).unwrap() * 2 };
                    out.extend([end, "\n", &" ".repeat(column + step)]);
                    self.block(column + step, depth - 1, out);
                }
                3 if depth > 0 && is_list => {
                    out.push(' ');
                    self.block(column + 2, depth - 1, out);
                }
                4 => {
                    out.push(' ');
                    self.literal(column + 2, out);
                }
                _ => {
                    out.push_str(self.choose(&[" ", " ", "  "]));
                    out.push_str(self.scalar());
                }
            }
        }
    }
}

/// A document as people write it.
fn any_document() -> impl Strategy<Value = String> {
    any::<u64>().prop_map(|seed| {
        let (mut hand, mut text) = (Hand(seed), String::new());
        text.push_str(hand.choose(&["", "", "", "# c\n", "\n"]));
        hand.block(0, 3, &mut text);
        text.push_str(hand.choose(&["\n", "\n", "\n", "", "\n\n", " \n", "\n# c", "\r\n", "\n...\n"]));
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_are_read_quickly_as_the_parser_reads_them(
        text in any_document(), at in any::<Index>(), cut in 0..4usize, piece in any_yaml(),
    ) {
        check(&text)?;
        let mut damaged = text;
        let at = damaged.floor_char_boundary(at.index(damaged.len() + 1));
        let end = damaged.ceil_char_boundary((at + cut).min(damaged.len()));
        let piece = &piece[..piece.floor_char_boundary(6)];
        damaged.replace_range(at..end, piece);
        check(&damaged)?;
    }

    #[test]
    fn any_text_is_a_tree_or_problems(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn pieces_of_yaml_are_a_tree_or_problems(text in any_yaml()) {
        check(&text)?;
    }

    #[test]
    fn a_damaged_document_is_a_tree_or_problems(value in any_json(), at in any::<Index>(), piece in any_yaml()) {
        for mut text in [serde_saphyr::to_string(&value).unwrap(), value.to_string()] {
            let at = text.floor_char_boundary(at.index(text.len()));
            text.insert_str(at, &piece);
            check(&text)?;
        }
    }

    #[test]
    fn json_is_read_as_it_was_written(value in any_json()) {
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let node = parse(&source(&text)).map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
            check_node(&text, &node)?;
            prop_assert_eq!(serde_json::to_value(&node).unwrap(), value.clone());
        }
    }

    #[test]
    fn yaml_is_read_as_it_was_written(value in any_json()) {
        let text = serde_saphyr::to_string(&value).unwrap();
        check_quick(&text)?;
        let node = parse(&source(&text)).map_err(|problems| TestCaseError::fail(format!("{text:?} {problems:?}")))?;
        prop_assert_eq!(serde_json::to_value(&node).unwrap(), value, "{}", text);
    }
}
