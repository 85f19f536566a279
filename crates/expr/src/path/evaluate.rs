//! Follows a path.

use super::{Kind, Path, Segment};
use crate::budget::{Budget, Exhausted};
use crate::path::query::Query;
use crate::path::wildcard::Wildcard;
use crate::value::{Map, Place, Value};

pub(super) fn follow(path: &Path, root: &Value, budget: &mut Budget) -> Result<Option<Value>, Exhausted> {
    let found = stages(path.stages.iter().map(Vec::as_slice), root, budget)?;
    Ok(found.map(Place::into_value))
}

/// Follows the segments of each stage in turn.
pub(super) fn stages<'a, 's>(
    stages: impl IntoIterator<Item = &'s [Segment]>,
    root: &'a Value,
    budget: &mut Budget,
) -> Result<Option<Place<'a>>, Exhausted> {
    let mut current = Place::Borrowed(root);
    for segments in stages {
        match stage(segments, current, budget)? {
            Some(found) => current = found,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

fn stage<'a>(
    segments: &[Segment],
    start: Place<'a>,
    budget: &mut Budget,
) -> Result<Option<Place<'a>>, Exhausted> {
    let mut current = start;
    for (index, segment) in segments.iter().enumerate() {
        budget.steps(1)?;
        if current.is_secret() {
            let bare = Place::Owned(current.reveal().clone());
            let found = stage(&segments[index..], bare, budget)?;
            return Ok(found.map(|found| Place::Owned(found.into_value().derived())));
        }
        let rest = &segments[index + 1..];
        let found = match &segment.kind {
            Kind::Name { name, place } => match (&*current, place) {
                (Value::List(_), Some(place)) => current.element(*place),
                _ => current.member(name),
            },
            Kind::Wildcard(wildcard) => first_member(current, wildcard, budget)?,
            Kind::Elements => {
                let Value::List(items) = &*current else { return Ok(None) };
                if rest.is_empty() {
                    return Ok(Some(Place::Owned(Value::Int(
                        i64::try_from(items.len()).unwrap_or(i64::MAX),
                    ))));
                }
                return each(items.iter(), rest, budget).map(Some);
            }
            Kind::All(query) => {
                let Value::List(items) = &*current else { return Ok(None) };
                let matching = matching(items, query, budget)?;
                return each(matching.into_iter(), rest, budget).map(Some);
            }
            Kind::First(query) => first_element(current, query, budget)?,
            Kind::Modifier(modifier) => modifier.apply(current.into_value(), budget)?.map(Place::Owned),
            Kind::List(paths) => Some(Place::Owned(list(paths, &current, budget)?)),
            Kind::Map(entries) => Some(Place::Owned(map(entries, &current, budget)?)),
            Kind::Literal(value) => Some(Place::Owned(value.clone())),
        };
        match found {
            Some(found) => current = found,
            None => return Ok(None),
        }
    }
    Ok(Some(current))
}

fn first_member<'a>(
    value: Place<'a>,
    wildcard: &Wildcard,
    budget: &mut Budget,
) -> Result<Option<Place<'a>>, Exhausted> {
    let names = value.member_names();
    budget.steps(names.len())?;
    let name = names.into_iter().find(|name| wildcard.matches(name));
    Ok(name.and_then(|name| value.member(&name)))
}

fn first_element<'a>(
    value: Place<'a>,
    query: &Query,
    budget: &mut Budget,
) -> Result<Option<Place<'a>>, Exhausted> {
    let Value::List(items) = &*value else { return Ok(None) };
    for (place, item) in items.iter().enumerate() {
        if query.holds(item, budget)? {
            return Ok(value.element(place));
        }
    }
    Ok(None)
}

fn matching<'v>(items: &'v [Value], query: &Query, budget: &mut Budget) -> Result<Vec<&'v Value>, Exhausted> {
    let mut matching = Vec::new();
    for item in items {
        if query.holds(item, budget)? {
            matching.push(item);
        }
    }
    Ok(matching)
}

/// What the rest of the stage leads to from each element, where it leads anywhere.
fn each<'v>(
    items: impl Iterator<Item = &'v Value>,
    rest: &[Segment],
    budget: &mut Budget,
) -> Result<Place<'static>, Exhausted> {
    let mut found = Vec::new();
    for item in items {
        budget.elements(1)?;
        found.extend(stage(rest, Place::Borrowed(item), budget)?.map(Place::into_value));
    }
    Ok(Place::Owned(found.into()))
}

fn list(paths: &[Path], value: &Value, budget: &mut Budget) -> Result<Value, Exhausted> {
    budget.elements(paths.len())?;
    let mut found = Vec::new();
    for path in paths {
        found.extend(follow(path, value, budget)?);
    }
    Ok(found.into())
}

fn map(entries: &[(String, Path)], value: &Value, budget: &mut Budget) -> Result<Value, Exhausted> {
    budget.elements(entries.len())?;
    let mut found = Map::new();
    for (name, path) in entries {
        if let Some(value) = follow(path, value, budget)? {
            found.insert(name.as_str().into(), value);
        }
    }
    Ok(found.into())
}
