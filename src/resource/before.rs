//! The state that undo restores after an action.

use serde_json::{Map, Value};

/// The state that undo restores after an action. Each type specifies it before it acts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Before {
    /// The paths that the effects of the action name. The engine keeps their contents and attributes.
    Paths,
    /// The paths that the effects of the action name, and then a resource as in [`Before::Resource`]: a type that changes files
    /// and the running system restores both.
    PathsAndResource { properties: Map<String, Value>, relies_on: &'static [&'static str] },
    /// A resource of the same type with these properties, if the given values of its state are still those that the action
    /// left. An empty list stands for all values.
    Resource {
        properties: Map<String, Value>,
        relies_on: &'static [&'static str],
        /// Whether the paths that the effects of the action name are kept, too.
        has_paths: bool,
        /// Whether the properties contain a secret.
        is_secret: bool,
    },
    /// Nothing, because the effects of a command are unknown, unless an `exec` resource with these properties undoes it.
    Command(Option<Map<String, Value>>),
}

impl Before {
    /// A resource of the same type with the given properties; null values are left out.
    pub(crate) fn resource(properties: Value, relies_on: &'static [&'static str]) -> Self {
        Self::Resource { properties: given(properties), relies_on, has_paths: false, is_secret: false }
    }

    /// The paths, and then a resource of the same type with the given properties; null values are left out.
    pub(crate) fn paths_and_resource(properties: Value, relies_on: &'static [&'static str]) -> Self {
        Self::PathsAndResource { properties: given(properties), relies_on }
    }

    /// Keeps the paths that the effects of the action name, too.
    pub(crate) fn with_paths(mut self) -> Self {
        if let Self::Resource { has_paths, .. } = &mut self {
            *has_paths = true;
        }
        self
    }

    /// Encrypts the properties if they contain a secret.
    pub(crate) fn secret_if(mut self, has_secret: bool) -> Self {
        if let Self::Resource { is_secret, .. } = &mut self {
            *is_secret = has_secret;
        }
        self
    }
}

fn given(properties: Value) -> Map<String, Value> {
    let mut properties = match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    };
    properties.retain(|_, value| !value.is_null());
    properties
}
