//! Properties that hold for every text.

use super::source;
use crate::document::{Colour, Diagnostic, Node, Span, Value, from_node, parse, render};
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

fn check(text: &str) -> Result<(), TestCaseError> {
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
            prop_assert!(render(&problems, &source, Colour::Off).starts_with("error: "));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
        let node = parse(&source(&text)).map_err(|problems| TestCaseError::fail(format!("{text:?} {problems:?}")))?;
        prop_assert_eq!(serde_json::to_value(&node).unwrap(), value, "{}", text);
    }
}
