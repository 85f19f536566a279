//! Probes: short forms of frequent rules.

use std::fmt;

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value as Json, json};

use super::rules::{Item, Kind, Rules};
use crate::vocabulary::{Duration, ScalarText, Url};

/// URL that a server must respond at.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpProbe {
    /// URL to request.
    pub(super) url: String,
    /// Expected status, or a matcher for it. Default: 200 to 299.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Json>,
    /// Pattern, or list of patterns, that lines of the body must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contains: Option<Json>,
    /// Expected values at paths of a JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<serde_json::Map<String, Json>>,
}

/// Port that must accept connections.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TcpProbe {
    /// `[HOST:]PORT`; the default host is `localhost`.
    pub(super) address: ScalarText,
    /// Pattern that the server's greeting must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<String>,
}

/// File that must exist.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileProbe {
    /// Path of the file. A relative path starts at the directory of the manifest.
    pub(super) path: String,
    /// If true, the file must exist; if false, it must not.
    #[serde(default = "yes")]
    exists: bool,
    /// Pattern, or list of patterns, that lines of the file must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contains: Option<Json>,
}

/// Unit that must be active.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnitProbe {
    /// Name of the unit, such as `nginx`.
    pub(super) name: String,
    /// How long the unit must have been active without a restart.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    settled: Option<Duration>,
}

fn yes() -> bool {
    true
}

impl From<String> for HttpProbe {
    fn from(url: String) -> Self {
        Self { url, status: None, contains: None, json: None }
    }
}

impl From<String> for TcpProbe {
    fn from(address: String) -> Self {
        Self { address: address.as_str().into(), expect: None }
    }
}

impl From<String> for FileProbe {
    fn from(path: String) -> Self {
        Self { path, exists: true, contains: None }
    }
}

impl From<String> for UnitProbe {
    fn from(name: String) -> Self {
        Self { name, settled: None }
    }
}

/// Deserializes a probe that is a map, or only its subject.
pub(super) fn short_or_whole<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String> + Deserialize<'de>,
{
    struct Either<T>(std::marker::PhantomData<T>);
    impl<'de, T: From<String> + Deserialize<'de>> Visitor<'de> for Either<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a string or a map")
        }

        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok(T::from(text.to_owned()))
        }

        fn visit_i64<E>(self, number: i64) -> Result<T, E> {
            Ok(T::from(number.to_string()))
        }

        fn visit_u64<E>(self, number: u64) -> Result<T, E> {
            Ok(T::from(number.to_string()))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Either(std::marker::PhantomData)).map(Some)
}

/// Returns patterns as a list.
fn patterns(written: &Json) -> Json {
    if written.is_array() { written.clone() } else { json!([written]) }
}

impl HttpProbe {
    pub(super) fn rules(&self) -> Result<Rules, String> {
        let status = self.status.clone().unwrap_or(json!({ "and": [{ "ge": 200 }, { "lt": 300 }] }));
        let mut body = json!({ "status": status });
        match (&self.contains, &self.json) {
            (Some(_), Some(_)) => return Err("`contains` and `json` cannot be given together".to_owned()),
            (Some(contains), None) => body["body"] = patterns(contains),
            (None, Some(paths)) => body["body"] = json!({ "gjson": paths }),
            (None, None) => {}
        }
        Rules::of(Kind::Http, &self.url, body)
    }

    pub(super) fn name(&self) -> String {
        let address = Url::parse(&self.url).map(|url| {
            let bare = url.bare().clone();
            let rest = bare.split_once("://").map_or("", |(_, rest)| rest);
            let path = rest.find('/').map_or("", |at| &rest[at..]);
            format!("{}:{}{}", url.host(), url.port(), path.split(['?', '#']).next().unwrap_or_default())
        });
        format!("http {}", address.unwrap_or_default())
    }
}

impl TcpProbe {
    pub(super) fn rules(&self) -> Result<Rules, String> {
        let mut rules = Rules::of(Kind::Addr, &self.whole_address(), json!({ "reachable": true }))?;
        if let (Some(expect), Some(Item::Rule(rule))) = (&self.expect, rules.items.first_mut()) {
            rule.options.greeting = Some(expect.parse()?);
        }
        Ok(rules)
    }

    pub(super) fn whole_address(&self) -> String {
        let is_port = self.address.bytes().all(|byte| byte.is_ascii_digit());
        if is_port { format!("localhost:{}", &*self.address) } else { self.address.to_string() }
    }
}

impl FileProbe {
    pub(super) fn rules(&self) -> Result<Rules, String> {
        let mut body = json!({ "exists": self.exists });
        if let Some(contains) = &self.contains {
            body["contents"] = patterns(contains);
        }
        Rules::of(Kind::File, &self.path, body)
    }
}

impl UnitProbe {
    pub(super) fn rules(&self) -> Result<Rules, String> {
        let mut rules = Rules::of(Kind::Service, &self.name, json!({ "running": true }))?;
        if let Some(Item::Rule(rule)) = rules.items.first_mut() {
            rule.options.settled = self.settled.map(Duration::as_std);
        }
        Ok(rules)
    }
}
