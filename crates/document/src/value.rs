//! Converts trees to values of expressions and back.

use ccm_expr::Map;

use super::{Entry, Node, Scalar, Span, Style, Typed, Value};

/// Returns the value of a tree, each scalar with the type that its text denotes.
pub fn to_value(node: &Node) -> ccm_expr::Value {
    match &node.value {
        Value::Seq(items) => items.iter().map(to_value).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.as_str().into(), to_value(&entry.value)));
            entries.collect::<Map>().into()
        }
        Value::Scalar(scalar) if scalar.is_secret => ccm_expr::Value::secret(of_scalar(scalar)),
        Value::Scalar(scalar) => of_scalar(scalar),
    }
}

fn of_scalar(scalar: &Scalar) -> ccm_expr::Value {
    match scalar.typed() {
        Typed::Null => ccm_expr::Value::Null,
        Typed::Bool(truth) => truth.into(),
        Typed::Int(number) => ccm_expr::Value::written(number, &scalar.text),
        Typed::UInt(number) => ccm_expr::Value::written(number, &scalar.text),
        Typed::Float(number) => ccm_expr::Value::written(number, &scalar.text),
        Typed::Str(text) => text.into(),
    }
}

/// Returns the tree of a value, with the same span for every node. Strings are literal: their templates are not
/// expanded. Times, durations and time zones become strings. All scalars of a secret value are secret.
pub fn from_value(value: &ccm_expr::Value, span: Span) -> Node {
    let value = match value {
        ccm_expr::Value::Null => plain("null".to_owned()),
        ccm_expr::Value::Bool(truth) => plain(truth.to_string()),
        ccm_expr::Value::Int(number) => number_text(number.to_string()),
        ccm_expr::Value::Named(named) => number_text(named.number().to_string()),
        ccm_expr::Value::Float(number) => number_text(fraction(*number)),
        ccm_expr::Value::Written(_) => number_text(value.to_text()),
        ccm_expr::Value::List(items) => Value::Seq(items.iter().map(|item| from_value(item, span)).collect()),
        ccm_expr::Value::Map(entries) => map(entries, span),
        ccm_expr::Value::Object(object) => map(&object.contents(), span),
        ccm_expr::Value::Secret(secret) => {
            let mut node = from_value(secret.reveal(), span);
            node.mark_secret();
            return node;
        }
        ccm_expr::Value::Str(_)
        | ccm_expr::Value::Time(_)
        | ccm_expr::Value::Duration(_)
        | ccm_expr::Value::Zone(_) => Value::Scalar(Scalar::new(value.to_text(), Style::Literal)),
    };
    Node { value, span }
}

fn map(entries: &Map, span: Span) -> Value {
    let entry = |(key, value): (&std::sync::Arc<str>, &ccm_expr::Value)| Entry {
        key: key.as_ref().to_owned(),
        key_span: span,
        value: from_value(value, span),
    };
    Value::Map(entries.iter().map(entry).collect())
}

fn plain(text: String) -> Value {
    Value::Scalar(Scalar::new(text, Style::Plain))
}

/// A number without written digits.
fn number_text(text: String) -> Value {
    Value::Scalar(Scalar::new(text, Style::Computed))
}

/// Formats a float so that it is read back as the same float: `2.0` and not `2`.
fn fraction(number: f64) -> String {
    if number.is_nan() {
        ".nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        format!("{number:?}")
    }
}
