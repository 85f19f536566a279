//! What can be known of a properties struct without writing it down a second time.

use std::fmt;

use schemars::Schema;
use serde_json::{Map, Value, json};

use super::{AnyType, Common};
use crate::vocabulary::schema::{inlined, keys};

/// One property as flags, help and manual see it.
pub(crate) struct Field {
    pub(crate) name: String,
    /// Other spellings of the name.
    pub(crate) aliases: Vec<&'static str>,
    /// Its doc comment.
    pub(crate) description: String,
    pub(crate) kind: FieldKind,
    /// Type of the value, in words.
    pub(crate) type_name: String,
    /// The value when nothing is said, if there is one worth saying.
    pub(crate) default: Option<String>,
    /// A flag that takes the value from a file, where the property offers one.
    pub(crate) file_flag: Option<String>,
    /// Whether its value is never shown.
    pub(crate) is_secret: bool,
}

/// The shape of a property's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Text,
    Number,
    Boolean,
    /// A boolean or this word.
    BooleanOr(String),
    /// One of a few words.
    Choice(Vec<String>),
    /// Several values of one shape.
    List(Box<FieldKind>),
    /// Texts by name.
    Map,
    /// Whatever values by name, which keep their types.
    Data,
    /// A value of whatever type, which it keeps.
    Any,
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Text => f.write_str("string"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("boolean"),
            Self::BooleanOr(word) => write!(f, "boolean or `{word}`"),
            Self::List(of) => write!(f, "list of {of}s"),
            Self::Map | Self::Data => f.write_str("map"),
            Self::Any => f.write_str("any value"),
            Self::Choice(words) => write!(f, "`{}`", words.join("`, `")),
        }
    }
}

/// Every property that a resource of this type can have, its own first.
pub(crate) fn fields(kind: &dyn AnyType) -> Vec<Field> {
    let mut fields = own_fields(kind.properties_schema());
    for (key, known) in spellings(kind) {
        if let Some(field) = fields.iter_mut().find(|field| field.name == known) {
            field.aliases.push(key);
        }
    }
    fields.extend(common_fields(kind));
    fields
}

/// The keys of a struct, each with the one under which the schema has it: another spelling stands behind that.
fn spelled(keys: &'static [&'static str], schema: &Schema) -> Vec<(&'static str, &'static str)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |key: &str| properties.is_some_and(|properties| properties.contains_key(key));
    let mut known = "";
    let spelling = |key: &&'static str| {
        if is_known(key) {
            known = key;
        }
        (*key, known)
    };
    keys.iter().map(spelling).collect()
}

/// The properties that every type has, less those that this one cannot use.
pub(crate) fn common_fields(kind: &dyn AnyType) -> Vec<Field> {
    let mut fields = own_fields(inlined::<Common>());
    fields.retain(|field| field.name != "subscribe" || kind.behavior().refreshes);
    fields
}

/// The properties that a schema describes.
pub(crate) fn own_fields(schema: &Schema) -> Vec<Field> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| field(name, schema)).collect()
}

fn field(name: &str, schema: &Value) -> Field {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    let default = schema.get("default").filter(|value| !value.is_null() && **value != json!([]));
    Field {
        name: name.to_owned(),
        aliases: Vec::new(),
        description: text("description").unwrap_or_default(),
        kind: shape(schema),
        type_name: type_name(schema),
        default: default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
        file_flag: text("x-file-flag"),
        is_secret: schema.get("x-secret") == Some(&json!(true)),
    }
}

/// Names the type of a value: the name that the schema gives, or its shape.
fn type_name(schema: &Value) -> String {
    if let Some(name) = schema.get("x-type").and_then(Value::as_str) {
        return name.to_owned();
    }
    let shape = shape(schema);
    if matches!(shape, FieldKind::BooleanOr(_)) {
        return shape.to_string();
    }
    let mut inner = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    if let Some(inner) = inner.find(|schema| schema.get("type") != Some(&json!("null"))) {
        return type_name(inner);
    }
    match (shape, schema.get("items")) {
        (FieldKind::List(_), Some(items)) => format!("list of {}s", type_name(items)),
        (shape, _) => shape.to_string(),
    }
}

/// How templates in a property are expanded.
#[derive(Clone, Debug)]
pub(crate) struct Expandable {
    pub(crate) key: &'static str,
    /// Only when the resource's turn comes.
    pub(crate) late: bool,
    /// Its value is the path of something that comes with the manifest, if it is relative.
    pub(crate) source: bool,
    /// Numbers stay numbers, so that it can be told that they are none of its words.
    pub(crate) numbers: bool,
    pub(crate) kind: FieldKind,
}

/// How templates in each property of a type are expanded.
pub(crate) fn expandables(kind: &dyn AnyType) -> Vec<Expandable> {
    let schemas = [(kind.keys(), kind.properties_schema()), (keys::<Common>(), inlined::<Common>())];
    let expandables = schemas.iter().flat_map(|(keys, schema)| {
        spelled(keys, schema).into_iter().filter_map(|(key, known)| {
            let schema = schema.get("properties")?.get(known)?;
            let has = |mark: &str| schema.get(mark) == Some(&json!(true));
            let mut types = schema.get("type").and_then(Value::as_array).into_iter().flatten();
            Some(Expandable {
                key,
                late: has("x-late"),
                source: has("x-source"),
                numbers: has("x-digits") || types.any(|of| of == "integer"),
                kind: shape(schema),
            })
        })
    });
    expandables.collect()
}

/// Other spellings of a type's properties, each with the one that the schema knows.
pub(crate) fn spellings(kind: &dyn AnyType) -> Vec<(&'static str, &'static str)> {
    let mut spellings = spelled(kind.keys(), kind.properties_schema());
    spellings.retain(|(key, known)| key != known);
    spellings
}

/// The properties of a type that hold secrets, whatever the resource says.
pub(crate) fn secret(kind: &dyn AnyType) -> Vec<String> {
    let schema = kind.properties_schema();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let secret = properties.filter(|(_, schema)| schema.get("x-secret") == Some(&json!(true)));
    secret.map(|(name, _)| name.clone()).collect()
}

/// Returns whether a property of a type becomes an argument of a program.
pub(crate) fn is_argument(kind: &dyn AnyType, key: &str) -> bool {
    let properties = kind.properties_schema().get("properties");
    properties.and_then(|all| all.get(key)?.get("x-argument")) == Some(&json!(true))
}

/// The shape that a schema describes. An optional value is described like the value itself.
fn shape(schema: &Value) -> FieldKind {
    if let Some(words) = choices(schema) {
        return FieldKind::Choice(words);
    }
    if let Some(inner) = schema.get("anyOf").and_then(Value::as_array) {
        let word = inner.iter().find_map(|schema| schema.get("const").and_then(Value::as_str));
        if let (Some(word), Some(Value::String(other))) =
            (word, inner.first().and_then(|first| first.get("type")))
            && other == "boolean"
        {
            return FieldKind::BooleanOr(word.to_owned());
        }
        let some = inner.iter().find(|schema| schema.get("type") != Some(&json!("null")));
        return some.map_or(FieldKind::Text, shape);
    }
    if ["type", "oneOf", "allOf", "const", "$ref"].iter().all(|key| schema.get(key).is_none()) {
        return FieldKind::Any;
    }
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    let is = |name: &str| types.iter().any(|of| of == name);
    if is("string") {
        FieldKind::Text
    } else if is("boolean") {
        FieldKind::Boolean
    } else if is("integer") || is("number") {
        FieldKind::Number
    } else if is("array") {
        FieldKind::List(Box::new(schema.get("items").map_or(FieldKind::Text, shape)))
    } else if is("object") && schema.get("additionalProperties").is_none_or(|more| *more == json!(true)) {
        FieldKind::Data
    } else if is("object") {
        FieldKind::Map
    } else {
        FieldKind::Text
    }
}

fn choices(schema: &Value) -> Option<Vec<String>> {
    let words = match (schema.get("enum"), schema.get("oneOf")) {
        (Some(Value::Array(words)), _) => words.clone(),
        (_, Some(Value::Array(cases))) => {
            cases.iter().map(|case| case.get("const").cloned()).collect::<Option<_>>()?
        }
        _ => return None,
    };
    Some(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// The schema of a map of properties of this type, the name among them.
pub(crate) fn declaration_schema(kind: &dyn AnyType) -> Value {
    let mut properties = Map::new();
    for schema in [kind.properties_schema(), inlined::<Common>()] {
        if let Some(Value::Object(more)) = schema.get("properties") {
            properties.extend(more.clone());
        }
    }
    for (key, known) in spelled(kind.keys(), kind.properties_schema()) {
        if let Some(mut other) = properties.get(known).filter(|_| key != known).cloned() {
            other["deprecated"] = true.into();
            other["description"] = format!("The same as `{known}`.").into();
            properties.insert(key.to_owned(), other);
        }
    }
    if !kind.behavior().refreshes {
        properties.shift_remove("subscribe");
    }
    if let Some(provider) = properties.get_mut("provider").and_then(Value::as_object_mut) {
        provider.remove("type");
        let names = kind.providers().into_iter().map(|candidate| json!(candidate.name));
        provider.insert("enum".to_owned(), names.chain([Value::Null]).collect());
    }
    let description = kind.properties_schema().get("description").cloned().unwrap_or_default();
    json!({ "type": "object", "description": description, "properties": properties, "additionalProperties": false })
}
