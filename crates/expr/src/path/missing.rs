//! Where a path that leads nowhere stops.

use std::ops::Range;

use super::{Kind, Path, Segment, evaluate};
use crate::budget::{Budget, Memory};
use crate::error::{Error, ErrorKind};
use crate::suggest::closest;
use crate::value::Value;

/// How many of the names that exist are listed when none is close.
const LISTED: usize = 10;

/// The first part of a path that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The part as it is written.
    pub segment: String,
    /// Where it stands in the path.
    pub span: Range<usize>,
    /// The path up to it, which exists; empty at the root.
    pub parent: String,
    /// What kind of value the parent is.
    pub parent_type: &'static str,
    /// The names that exist there; places of elements for a list.
    pub names: Vec<String>,
    /// The name that was probably meant.
    pub suggestion: Option<String>,
}

impl Path {
    /// The first part of this path that is not there, or nothing if all of it is.
    #[must_use]
    pub fn missing(&self, root: &Value) -> Option<Missing> {
        let mut prefix: Vec<&[Segment]> = Vec::new();
        for stage in &self.stages {
            prefix.push(&[]);
            for count in 1..=stage.len() {
                let before = prefix.clone();
                prefix.pop();
                prefix.push(&stage[..count]);
                let found =
                    evaluate::stages(prefix.iter().copied(), root, &mut Budget::new(Memory::default()));
                if !matches!(found, Ok(None)) {
                    continue;
                }
                let parent =
                    evaluate::stages(before, root, &mut Budget::new(Memory::default())).ok().flatten()?;
                return Some(self.stopped(&stage[count - 1], &parent));
            }
        }
        None
    }

    fn stopped(&self, segment: &Segment, parent: &Value) -> Missing {
        let names: Vec<String> = match parent {
            Value::List(items) => (0..items.len()).map(|place| place.to_string()).collect(),
            other => other.member_names().iter().map(|name| name.as_ref().to_owned()).collect(),
        };
        let suggestion = match &segment.kind {
            Kind::Name { name, .. } if !matches!(parent, Value::List(_)) => {
                closest(name, names.iter().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        };
        Missing {
            segment: self.text[segment.span.clone()].to_owned(),
            span: segment.span.clone(),
            parent: self.text[..segment.span.start].trim_end_matches(['.', '|']).to_owned(),
            parent_type: parent.type_name(),
            names,
            suggestion,
        }
    }
}

impl Missing {
    pub(crate) fn to_error(&self, path: &str) -> Error {
        let kind = ErrorKind::MissingPath { path: path.to_owned(), missing: Box::new(self.clone()) };
        Error { help: self.help(), ..Error::new(kind, self.span.clone()) }
    }

    /// The problem in words, for a path with this text.
    pub(crate) fn message(&self, path: &str) -> String {
        let place =
            if self.parent.is_empty() { "there is".to_owned() } else { format!("`{}` has", self.parent) };
        match self.parent_type {
            "array" if self.segment.bytes().all(|digit| digit.is_ascii_digit()) => {
                format!(
                    "`{path}` is missing: {place} {} elements, and `{}` is beyond them",
                    self.names.len(),
                    self.segment
                )
            }
            "map" | "array" => format!("`{path}` is missing: {place} no `{}`", self.segment),
            other => format!("`{path}` is missing: {place} no members, it is {other}"),
        }
    }

    fn help(&self) -> Option<String> {
        match (&self.suggestion, self.parent_type) {
            (Some(name), _) => Some(format!("did you mean `{name}`?")),
            (None, "map") if self.names.is_empty() => Some("nothing is there at all".to_owned()),
            (None, "map") => {
                let more = if self.names.len() > LISTED { ", ..." } else { "" };
                let listed: Vec<_> = self.names.iter().take(LISTED).map(String::as_str).collect();
                Some(format!("there is {}{more}", listed.join(", ")))
            }
            (None, "array") => Some("use `#` for all elements, or a place such as `0`".to_owned()),
            _ => None,
        }
    }
}
