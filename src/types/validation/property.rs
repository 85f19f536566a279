//! Validation of new content before ccm publishes it.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::json;

use crate::vocabulary::command_words;

/// Validator of new content.
#[derive(Clone, Debug)]
pub(crate) enum Validate {
    /// Commands that must all succeed.
    Commands(Vec<ValidateCommand>),
    /// Data format that the content must have.
    Format(DataFormat),
}

/// A data format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataFormat {
    Json,
    Yaml,
    Toml,
}

/// Command that validates a file.
#[derive(Clone, Debug)]
pub(crate) struct ValidateCommand {
    written: String,
    words: Vec<Vec<Part>>,
}

/// Part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// `%s`: the path of the file.
    File,
}

impl ValidateCommand {
    fn parse(written: &str) -> Result<Self, String> {
        let split = command_words::split(written).map_err(|reason| format!("`{written}` {reason}"))?;
        if let Some(reason) = command_words::operator(written) {
            return Err(format!("`{written}` {reason}; give each command as an item of a list"));
        }
        let words = split.iter().map(|word| parts(word, written)).collect::<Result<_, _>>()?;
        Ok(Self { written: written.to_owned(), words })
    }

    /// Returns the command as it is written.
    pub(crate) fn as_written(&self) -> &str {
        &self.written
    }

    /// Returns whether the command names the file with `%s`.
    pub(super) fn names_file(&self) -> bool {
        self.words.iter().flatten().any(|part| *part == Part::File)
    }

    /// Returns the words with the path of the file in place of `%s`.
    pub(super) fn with_file(&self, path: &str) -> Vec<String> {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::File => path.to_owned(),
        };
        self.words.iter().map(|parts| parts.iter().map(text).collect()).collect()
    }
}

impl Validate {
    /// Returns the commands, if all of them validate the configuration as a whole: none has a `%s`.
    pub(crate) fn joint(&self) -> &[ValidateCommand] {
        match self {
            Self::Commands(commands) if !commands.iter().any(ValidateCommand::names_file) => commands,
            _ => &[],
        }
    }
}

/// Splits a word into its parts: `%s` is the file and `%%` a percent sign.
fn parts(word: &str, written: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut letters = word.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '%' { letters.next() } else { None }) {
            ('%', Some('s')) => {
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::File);
            }
            ('%', Some('%')) => text.push('%'),
            ('%', other) => {
                let sign: String = ['%'].into_iter().chain(other).collect();
                return Err(format!(
                    "`{sign}` in `{written}` means nothing: write `%s` for the path of the file, and `%%` for a percent sign"
                ));
            }
            (letter, _) => text.push(letter),
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

impl<'de> Deserialize<'de> for Validate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Validate;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a command, a list of commands, or a map with `format`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Validate, E> {
        Ok(Validate::Commands(vec![ValidateCommand::parse(text).map_err(E::custom)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Validate, A::Error> {
        let mut commands = Vec::new();
        while let Some(text) = items.next_element::<String>()? {
            commands.push(ValidateCommand::parse(&text).map_err(de::Error::custom)?);
        }
        if commands.is_empty() {
            return Err(de::Error::custom("there is no command"));
        }
        Ok(Validate::Commands(commands))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Validate, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            format: DataFormat,
        }
        let Form { format } = Form::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Validate::Format(format))
    }
}

impl Serialize for Validate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Commands(commands) => match commands.as_slice() {
                [one] => one.written.serialize(serializer),
                all => serializer.collect_seq(all.iter().map(|command| &command.written)),
            },
            Self::Format(format) => json!({ "format": format }).serialize(serializer),
        }
    }
}

impl JsonSchema for Validate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Validate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
            {
                "type": "object",
                "properties": { "format": { "type": "string", "enum": ["json", "yaml", "toml"] } },
                "required": ["format"],
                "additionalProperties": false
            }
        ] })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_goes_into_words_and_nowhere_else() {
        let command = ValidateCommand::parse("visudo -cf %s --x='a %s' 100%%").unwrap();
        assert!(command.names_file());
        assert_eq!(command.with_file("/a b"), ["visudo", "-cf", "/a b", "--x=a /a b", "100%"]);
        assert!(!ValidateCommand::parse("nginx -t").unwrap().names_file());
        assert!(!ValidateCommand::parse("date +%%s").unwrap().names_file());
    }

    #[test]
    fn other_percent_signs_are_refused() {
        for text in ["date +%d", "a %", "a 5% b", "x %S", "a | b", "", "'open"] {
            assert!(ValidateCommand::parse(text).is_err(), "{text}");
        }
        let error = ValidateCommand::parse("date +%d").unwrap_err();
        assert!(error.contains("`%d`") && error.contains("`%s`") && error.contains("`%%`"), "{error}");
    }
}
