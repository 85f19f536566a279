//! Trees as values, and back.

use std::sync::Arc;

use super::tree;
use crate::{Span, Style, Value, from_value, to_value};

#[test]
fn scalars_become_values_of_their_type() {
    let cases = [
        ("~", ccm_expr::Value::Null),
        ("true", true.into()),
        ("-7", ccm_expr::Value::Int(-7)),
        ("1.5", 1.5.into()),
        ("'1.5'", "1.5".into()),
        ("yes", "yes".into()),
        ("0x10", ccm_expr::Value::Int(16)),
        ("18446744073709551615", "18446744073709551615".into()),
    ];
    for (text, expected) in cases {
        let value = to_value(&tree(text));
        assert_eq!(value.type_name(), expected.type_name(), "{text:?}");
        assert_eq!(value, expected, "{text:?}");
    }
}

#[test]
fn maps_keep_their_order() {
    let value = to_value(&tree("{z: [1, {b: x}], a: ~}"));
    assert_eq!(value.to_string(), r#"{"z":[1,{"b":"x"}],"a":null}"#);
}

#[test]
fn a_tree_that_was_a_value_means_the_same() {
    for text in [
        "~",
        "false",
        "12",
        "2.0",
        "-0.0",
        "1e300",
        "1e-9",
        ".inf",
        "-.inf",
        "'12'",
        "''",
        "{a: [1, 2.5, 'null'], 'b.c': {}, d: []}",
    ] {
        let value = to_value(&tree(text));
        let again = to_value(&from_value(&value, Span::default()));
        assert_eq!(again.type_name(), value.type_name(), "{text:?}");
        assert_eq!(again, value, "{text:?}");
    }
    let not_a_number = from_value(&f64::NAN.into(), Span::default());
    assert!(matches!(to_value(&not_a_number), ccm_expr::Value::Float(number) if number.is_nan()));
}

#[test]
fn text_that_was_a_value_is_final() {
    let node = from_value(&"${ secret }".into(), Span::new(3, 9));
    assert_eq!(node.span, Span::new(3, 9));
    assert!(matches!(&node.value, Value::Scalar(scalar) if scalar.style == Style::Literal));
    assert_eq!(node.as_str(), Some("${ secret }"));
}

#[test]
fn a_duration_becomes_text_that_reads_as_one() {
    let node = from_value(&ccm_expr::Value::Duration(90_000_000_000), Span::default());
    assert_eq!(node.as_str(), Some("1m30s"));
}

#[test]
fn an_object_becomes_a_map() {
    struct Pair;
    impl ccm_expr::Object for Pair {
        fn member(&self, name: &str) -> Option<ccm_expr::Value> {
            Some(name.into())
        }
        fn names(&self) -> Vec<Arc<str>> {
            vec!["b".into(), "a".into()]
        }
    }
    let node = from_value(&ccm_expr::Value::Object(Arc::new(Pair)), Span::default());
    assert_eq!(serde_json::to_string(&node).unwrap(), r#"{"b":"b","a":"a"}"#);
}
