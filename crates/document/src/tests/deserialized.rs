//! Rust values from documents.

use super::{source, tree};
use crate::{NodeError, RAW_SCALAR, from_node};
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Properties {
    #[serde(alias = "contents")]
    content: Option<String>,
    #[serde(default)]
    ensure: Ensure,
    #[serde(default)]
    tries: u8,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    returns: Vec<i32>,
    #[serde(default)]
    mode: Option<Raw>,
    #[serde(default)]
    ratio: Option<f64>,
    #[serde(default)]
    limit: Option<Limit>,
    #[serde(default)]
    environment: BTreeMap<Name, String>,
    #[serde(default)]
    pair: Option<(u8, u8)>,
    #[serde(default)]
    delay: Option<Delay>,
}

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Ensure {
    #[default]
    Present,
    Absent,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Limit {
    None,
    Bytes(u64),
    Range { from: u64, to: u64 },
    Both(u8, u8),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
struct Name(String);

#[derive(Debug, PartialEq, Serialize)]
struct Raw(String);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsWritten;
        impl<'de> Visitor<'de> for AsWritten {
            type Value = Raw;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a mode such as \"0644\"")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Raw, D::Error> {
                String::deserialize(inner).map(Raw)
            }
        }
        deserializer.deserialize_newtype_struct(RAW_SCALAR, AsWritten)
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct Delay(u64);

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let seconds = text.strip_suffix('s').and_then(|digits| digits.parse().ok());
        seconds
            .map(Delay)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a duration such as `30s`")))
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, NodeError> {
    from_node(&tree(text))
}

#[test]
fn a_struct_is_read_from_a_map() {
    let text = "content: 'x'\nensure: absent\ntries: 3\nforce: true\nreturns: [0, -1]\nmode: 0o644\nratio: 2\n\
                limit: {range: {from: 1, to: 2}}\nenvironment: {A: b}\npair: [1, 2]\ndelay: 30s\n";
    let properties: Properties = read(text).unwrap();
    let expected = Properties {
        content: Some("x".to_owned()),
        ensure: Ensure::Absent,
        tries: 3,
        force: true,
        returns: vec![0, -1],
        mode: Some(Raw("0o644".to_owned())),
        ratio: Some(2.0),
        limit: Some(Limit::Range { from: 1, to: 2 }),
        environment: BTreeMap::from([(Name("A".to_owned()), "b".to_owned())]),
        pair: Some((1, 2)),
        delay: Some(Delay(30)),
    };
    assert_eq!(properties, expected);
}

#[test]
fn a_raw_scalar_keeps_its_digits() {
    for (text, expected) in
        [("0644", "0644"), ("0o644", "0o644"), ("'x'", "x"), ("true", "true"), ("1_0", "1_0")]
    {
        assert_eq!(read::<Raw>(text).unwrap(), Raw(expected.to_owned()));
    }
    assert_eq!(read::<Raw>("[1]").unwrap_err().message, "expected a mode such as \"0644\", found a list");
    assert_eq!(read::<Raw>("~").unwrap_err().message, "expected a mode such as \"0644\", found nothing");
}

#[test]
fn errors_say_what_was_expected_where_and_in_which_property() {
    let cases = [
        ("content: 123", "1:10 content: expected a string, found the number 123 (quote it: \"123\")"),
        ("content: true", "1:10 content: expected a string, found the boolean true (quote it: \"true\")"),
        ("content: [x]", "1:10 content: expected a string, found a list"),
        ("tries: 300", "1:8 tries: expected a whole number from 0 to 255, found the number 300"),
        ("tries: -1", "1:8 tries: expected a whole number from 0 to 255, found the number -1"),
        (
            "tries: '3'",
            "1:8 tries: expected a whole number from 0 to 255, found the string \"3\" (write 3, without quotes)",
        ),
        ("tries:", "1:7 tries: expected a whole number from 0 to 255, found nothing"),
        ("tries: 1.0", "1:8 tries: expected a whole number from 0 to 255, found the number 1.0"),
        (
            "force: yes",
            "1:8 force: expected true or false, found the string \"yes\" (`yes` is a string in YAML 1.2; write `true`)",
        ),
        ("returns: [0, x]", "1:14 returns: expected a whole number, found the string \"x\""),
        ("returns: 0", "1:10 returns: expected a list, found the number 0 (write a list: [0])"),
        ("ratio: x", "1:8 ratio: expected a number, found the string \"x\""),
        (
            "ensure: presnt",
            "1:9 ensure: expected one of `present`, `absent`, found the string \"presnt\" (did you mean `present`?)",
        ),
        ("ensure: []", "1:9 ensure: expected one of `present`, `absent`, found a list"),
        (
            "limit: {bytes: x}",
            "1:16 limit: expected a whole number that is not negative, found the string \"x\"",
        ),
        ("limit: bytes", "1:8 limit: `bytes` needs a value: write `bytes: ...`"),
        ("limit: {none: 1}", "1:15 limit: `none` takes no value"),
        ("limit: {range: {from: 1}}", "1:16 limit: the key `to` is missing"),
        (
            "limit: {bites: 1}",
            "1:9 limit: expected one of `none`, `bytes`, `range`, `both`, found the string \"bites\" (did you mean `bytes`?)",
        ),
        ("environment: {A: 1}", "1:18 environment: expected a string, found the number 1 (quote it: \"1\")"),
        ("environment: x", "1:14 environment: expected a map, found the string \"x\""),
        ("pair: [1, 2, 3]", "1:14 pair: the list has more items than expected"),
        ("pair: [1]", "1:7 pair: expected a list of 2, found a list of 1"),
        ("delay: soon", "1:8 delay: `soon` is not a duration such as `30s`"),
        ("tries: 1\ncontnet: x", "2:1 contnet: unknown key `contnet` (did you mean `content`?)"),
        ("content: x\ncontents: y\nforce: true", "2:1 contents: `content` is given twice, under two names"),
        ("[]", "1:1 -: expected a map, found a list"),
        ("", "1:1 -: expected a map, found nothing"),
    ];
    for (text, expected) in cases {
        let error = read::<Properties>(text).unwrap_err();
        let (line, column) = source(text).line_column(error.span.unwrap().start);
        let help = error.help.map_or(String::new(), |help| format!(" ({help})"));
        let key = error.key.as_deref().unwrap_or("-");
        assert_eq!(format!("{line}:{column} {key}: {}{help}", error.message), expected, "{text:?}");
    }
}

#[test]
fn an_unknown_key_like_no_other_is_answered_with_the_known_ones() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its fields' names matter")]
    struct Small {
        first: Option<u8>,
        second: Option<u8>,
    }
    let error = read::<Small>("zzz: 1").unwrap_err();
    assert_eq!(error.help.as_deref(), Some("known keys are `first`, `second`"));
}

#[test]
fn enums_take_every_form() {
    assert_eq!(read::<Limit>("none").unwrap(), Limit::None);
    assert_eq!(read::<Limit>("none:").unwrap(), Limit::None);
    assert_eq!(read::<Limit>("bytes: 3").unwrap(), Limit::Bytes(3));
    assert_eq!(read::<Limit>("both: [1, 2]").unwrap(), Limit::Both(1, 2));
    assert_eq!(read::<Vec<Ensure>>("[present, 'absent']").unwrap(), [Ensure::Present, Ensure::Absent]);
    assert_eq!(read::<BTreeMap<Ensure, u8>>("{absent: 1}").unwrap(), BTreeMap::from([(Ensure::Absent, 1)]));
}
