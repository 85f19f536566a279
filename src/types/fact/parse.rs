//! Parses the output of a command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::{self, Source, to_value};

/// Format of the output of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Parse {
    /// String, without its last newline.
    #[default]
    Text,
    /// List of lines.
    Lines,
    /// JSON document.
    Json,
    /// YAML document.
    Yaml,
}

impl Parse {
    /// Returns the value of the output, or the reason why it cannot be parsed.
    pub(super) fn value(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                Ok(text.strip_suffix('\r').unwrap_or(text).into())
            }
            Self::Lines => Ok(text.lines().collect()),
            Self::Json => serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}")),
            Self::Yaml => {
                let source = Source { name: "the output".to_owned(), text: text.to_owned() };
                let node = document::parse(&source).map_err(|_| "it is not YAML".to_owned())?;
                serde_json::to_value(to_value(&node)).map_err(|error| error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_becomes_what_it_is_said_to_be() {
        for (parse, text, expected) in [
            (Parse::Text, "1.2\n", Some(json!("1.2"))),
            (Parse::Text, "1.2\r\n", Some(json!("1.2"))),
            (Parse::Text, "a\n\n", Some(json!("a\n"))),
            (Parse::Text, "", Some(json!(""))),
            (Parse::Lines, "a\nb\n", Some(json!(["a", "b"]))),
            (Parse::Lines, "", Some(json!([]))),
            (Parse::Json, "{\"a\":[1]}", Some(json!({ "a": [1] }))),
            (Parse::Json, "{", None),
            (Parse::Yaml, "a: [1, x]\n", Some(json!({ "a": [1, "x"] }))),
            (Parse::Yaml, "a: [", None),
        ] {
            assert_eq!(parse.value(text).ok(), expected, "{parse:?} {text:?}");
        }
    }
}
