//! Members, indexes, slices and methods of values.

use std::sync::Arc;

use super::ranges::{place, slice, whole};
use super::{Evaluation, at, blamed, exhausted, of_nil};
use crate::ast::{Kind, Link, Node, Span};
use crate::dates;
use crate::environment::{Doubt, DoubtKind};
use crate::error::{Error, Result};
use crate::suggest::{closest, did_you_mean};
use crate::value::{Place, Value};

impl<'a> Evaluation<'a> {
    /// The value of a row of members, or nothing when a `?.` cut it short.
    pub(super) fn chained(&mut self, node: &'a Node) -> Result<Option<Place<'a>>> {
        self.budget.steps(1).map_err(exhausted(node.span))?;
        let (base, link) = match &node.kind {
            Kind::Member { base, name, .. } if matches!(base.kind, Kind::Env) => {
                return Ok(Some(Place::Owned(self.environment.variable(name).unwrap_or_default())));
            }
            Kind::Member { base, link, .. } | Kind::Method { base, link, .. } => (base.as_ref(), *link),
            Kind::Index { pair, link } => (&pair[0], *link),
            Kind::Slice { base, .. } => (base.as_ref(), Link::Plain),
            _ => return self.place(node).map(Some),
        };
        let Some(value) = self.base(base, link)? else { return Ok(None) };
        self.part(value, base, node).map(Some)
    }

    /// What a member, an index, a slice or a method takes of a value. Rows of them recurse without it: a row of hundreds
    /// has to fit on the stack.
    fn part(&mut self, value: Place<'a>, base: &'a Node, node: &'a Node) -> Result<Place<'a>> {
        if !value.is_secret() {
            return self.part_of_bare(value, base, node);
        }
        let noted = self.doubts.len();
        let revealed = Place::Owned(value.reveal().clone());
        let part = self.part_of_bare(revealed, base, node).map_err(Error::masked)?;
        // Doubts name the members of a map.
        self.doubts.truncate(noted);
        Ok(Place::Owned(part.into_value().derived()))
    }

    fn part_of_bare(&mut self, value: Place<'a>, base: &'a Node, node: &'a Node) -> Result<Place<'a>> {
        match &node.kind {
            Kind::Member { name, .. } => {
                if value.is_null() {
                    return Err(self.nil_has_no(name, base));
                }
                let owner = (*value).clone();
                let found = member(value, name, base.span, node.span)?;
                if found.is_null() {
                    self.note_missing(&owner, name, base, node.span);
                }
                Ok(found)
            }
            Kind::Index { pair, .. } => {
                let [_, index] = pair.as_ref();
                let index_value = self.place(index)?;
                if index_value.is_secret() {
                    let found = self.index(value, index_value.reveal(), base.span, index.span);
                    return Ok(Place::Owned(found.map_err(Error::masked)?.into_value().derived()));
                }
                let owner = (*value).clone();
                let found = self.index(value, &index_value, base.span, index.span)?;
                if let (Value::Str(name), Value::Null) = (&*index_value, &*found) {
                    self.note_missing(&owner, name, base, node.span);
                }
                Ok(found)
            }
            Kind::Slice { from, to, .. } => {
                let (from, from_is_secret) = self.bound(from.as_deref())?;
                let (to, to_is_secret) = self.bound(to.as_deref())?;
                let part = slice(&value, from, to, base.span)?;
                if let Value::List(items) = &part {
                    self.budget.elements(items.len()).map_err(exhausted(node.span))?;
                } else if let Value::Str(text) = &part {
                    self.budget.bytes(text.len()).map_err(exhausted(node.span))?;
                }
                Ok(Place::Owned(part.derived_if(from_is_secret || to_is_secret)))
            }
            Kind::Method { name, arguments: nodes, .. } => {
                let (arguments, secrets) = self.arguments(nodes)?;
                let answer = match self.environment.method(&value, name, &arguments) {
                    Some(answer) => answer.map_err(|error| blamed(error, name, nodes, node.span)),
                    None => method(&value, name, &arguments, node.span),
                };
                if secrets.is_empty() {
                    return answer.map(Place::Owned);
                }
                answer.map(|value| Place::Owned(value.derived())).map_err(Error::masked)
            }
            _ => Ok(value),
        }
    }

    /// Takes down that a member of one of the host's variables does not exist, unless the expression reckons with it.
    fn note_missing(&mut self, owner: &Value, name: &str, base: &Node, span: Span) {
        let is_map = matches!(owner, Value::Map(_) | Value::Object(_));
        if self.leniency > 0 || !is_map {
            return;
        }
        let Some(base) = self.written(base) else { return };
        let names = owner.member_names();
        if names.iter().any(|known| known.as_ref() == name) {
            return;
        }
        let near = closest(name, names.iter().map(AsRef::as_ref));
        let kind = DoubtKind::MissingMember {
            path: format!("{base}.{name}"),
            suggestion: near.map(|near| format!("{base}.{near}")),
        };
        self.doubts.push(Doubt { kind, place: None, span: span.into() });
    }

    /// Returns the doubt about comparing a member with a constant that differs only by case.
    pub(super) fn differs_by_case(
        &self,
        binary: super::Binary,
        member: &Node,
        value: &Value,
        other: &Node,
        span: Span,
    ) -> Option<Doubt> {
        let (Kind::Constant(Value::Str(constant)), Value::Str(value)) = (&other.kind, value) else {
            return None;
        };
        let is_compared = matches!(binary, super::Binary::Equal | super::Binary::NotEqual);
        let differs = is_compared && constant != value && constant.to_lowercase() == value.to_lowercase();
        let path = differs.then(|| self.written(member)).flatten()?;
        let kind =
            DoubtKind::CaseComparison { path, value: value.to_string(), constant: constant.to_string() };
        Some(Doubt { kind, place: None, span: span.into() })
    }

    /// The text of a variable and members of it; nothing for anything else.
    fn written(&self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Global(place) => Some(self.variables.get(*place)?.name.clone()),
            Kind::Member { base, name, .. } => Some(format!("{}.{name}", self.written(base)?)),
            _ => None,
        }
    }

    /// What stands before the dot or bracket; nothing if the row ends here.
    fn base(&mut self, node: &'a Node, link: Link) -> Result<Option<Place<'a>>> {
        Ok(self.chained(node)?.filter(|value| !(link == Link::Optional && value.is_null())))
    }

    /// The problem with reading a member of nil, which mostly is a mistyped name just before it.
    fn nil_has_no(&mut self, name: &str, base: &'a Node) -> Error {
        let error = of_nil(base.span, format!("cannot read `{name}` of nil"));
        if let Kind::Member { base: owner, name: mistyped, .. } = &base.kind
            && let Ok(Some(owner)) = self.chained(owner)
        {
            let names = owner.member_names();
            if !names.iter().any(|known| known == mistyped)
                && let Some(help) = did_you_mean(mistyped, names)
            {
                return error.with_help(format!("there is no `{mistyped}`; {help}"));
            }
        }
        error.with_help(format!("write `?.{name}` if it may be missing"))
    }

    /// A bound of a slice, and whether it is secret.
    fn bound(&mut self, node: Option<&'a Node>) -> Result<(Option<i64>, bool)> {
        let Some(node) = node else { return Ok((None, false)) };
        let value = self.place(node)?;
        Ok((Some(whole(&value, node.span)?), value.is_secret()))
    }

    fn index(&mut self, value: Place<'a>, index: &Value, base: Span, span: Span) -> Result<Place<'a>> {
        match &*value {
            Value::Map(_) | Value::Object(_) => match index {
                Value::Str(name) => member(value, &Arc::clone(name), base, span),
                other => {
                    let name = self.key(other, span)?;
                    member(value, &name, base, span)
                }
            },
            Value::List(items) => {
                let place = position(whole(index, span)?, items.len(), span)?;
                Ok(value.element(place).unwrap_or(Place::Owned(Value::Null)))
            }
            Value::Str(text) => {
                let place = position(whole(index, span)?, text.chars().count(), span)?;
                let letter = text.chars().nth(place).map(String::from).unwrap_or_default();
                Ok(Place::Owned(Value::from(letter)))
            }
            Value::Null => Err(of_nil(base, "cannot read an element of nil")
                .with_help("write `?.[...]` if it may be missing")),
            other => Err(at(base, format!("{} has no elements", other.type_name()))),
        }
    }
}

fn member<'a>(value: Place<'a>, name: &str, base: Span, span: Span) -> Result<Place<'a>> {
    match &*value {
        // A member that is not there is nil, so that `??` can give a default.
        Value::Map(_) | Value::Object(_) => Ok(value.member(name).unwrap_or(Place::Owned(Value::Null))),
        Value::Null => Err(of_nil(base, format!("cannot read `{name}` of nil"))
            .with_help(format!("write `?.{name}` if it may be missing"))),
        Value::List(_) => Err(at(span, format!("array has no member `{name}`"))
            .with_help(format!("`map(list, .{name})` reads it of every element, `[0]` is the first"))),
        other => Err(at(span, format!("{} has no member `{name}`", other.type_name()))),
    }
}

fn position(index: i64, length: usize, span: Span) -> Result<usize> {
    place(index, length).ok_or_else(|| {
        at(span, format!("index {index} is out of range of {length} elements"))
            .with_help("`get(list, index)` gives nil instead")
    })
}

fn method(value: &Value, name: &str, arguments: &[Value], span: Span) -> Result<Value> {
    if value.is_null() {
        return Err(of_nil(span, format!("cannot call `{name}` of nil"))
            .with_help(format!("write `?.{name}(...)` if it may be missing")));
    }
    if let Some(result) = dates::method(value, name, arguments) {
        return result.map_err(|message| at(span, format!("{name}: {message}")));
    }
    let help = did_you_mean(name, dates::method_names(value))
        .unwrap_or_else(|| format!("functions are called as `{name}(value)` or `value | {name}()`"));
    Err(at(span, format!("{} has no method `{name}`", value.type_name())).with_help(help))
}
