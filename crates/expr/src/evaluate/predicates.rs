//! Functions that look at the elements of a list one by one.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Element, Evaluation, at, exhausted, mistyped, operators};
use crate::ast::{Binary, Node, Predicate, Span};
use crate::error::Result;
use crate::value::{Map, Value, compare};

impl<'a> Evaluation<'a> {
    pub(super) fn predicate(
        &mut self,
        predicate: Predicate,
        list: &'a Node,
        body: Option<&'a Node>,
        extra: Option<&'a Node>,
        span: Span,
    ) -> Result<Value> {
        let items = self.items(list)?;
        match predicate {
            Predicate::All => self.search(&items, body, Wanted::False).map(|found| found.is_none().into()),
            Predicate::Any => self.search(&items, body, Wanted::True).map(|found| found.is_some().into()),
            Predicate::None => self.search(&items, body, Wanted::True).map(|found| found.is_none().into()),
            Predicate::One => self.count(&items, body, list.span).map(|count| (count == 1).into()),
            Predicate::Count => self.count(&items, body, list.span).map(Value::Int),
            Predicate::Find => self.search(&items, body, Wanted::True).map(|found| element(&items, found)),
            Predicate::FindIndex => self.search(&items, body, Wanted::True).map(index),
            Predicate::FindLast => self.search_back(&items, body).map(|found| element(&items, found)),
            Predicate::FindLastIndex => self.search_back(&items, body).map(index),
            Predicate::Filter => self.filter(&items, body, span),
            Predicate::Map => self.mapped(&items, body, span),
            Predicate::Sum => self.sum(&items, body, span),
            Predicate::GroupBy => self.group(&items, body, span),
            Predicate::SortBy => self.sort(&items, body, extra, span),
            Predicate::Reduce => self.reduce(&items, body, extra, span),
        }
    }

    /// The elements to look at; those of a text are its characters. The elements of a secret are secret.
    fn items(&mut self, list: &'a Node) -> Result<Arc<Vec<Value>>> {
        match self.value(list)? {
            Value::Secret(secret) => {
                let items = self.elements_of(secret.reveal().clone(), list)?;
                self.budget.elements(items.len()).map_err(exhausted(list.span))?;
                Ok(Arc::new(items.iter().cloned().map(Value::secret).collect()))
            }
            value => self.elements_of(value, list),
        }
    }

    fn elements_of(&mut self, value: Value, list: &Node) -> Result<Arc<Vec<Value>>> {
        match value {
            Value::List(items) => Ok(items),
            Value::Str(text) => {
                self.budget.elements(text.len()).map_err(exhausted(list.span))?;
                Ok(Arc::new(text.chars().map(|letter| Value::from(letter.to_string())).collect()))
            }
            other => {
                let error = mistyped(list.span, "an array", &other);
                Err(match other {
                    Value::Null => error.with_help("give a default with `?? []`"),
                    Value::Map(_) | Value::Object(_) => {
                        error.with_help("`keys`, `values` and `toPairs` make arrays of maps")
                    }
                    _ => error,
                })
            }
        }
    }

    /// The value of the predicate for one element; the element itself when there is no predicate.
    fn of(&mut self, item: &Value, index: usize, body: Option<&'a Node>) -> Result<Value> {
        let Some(body) = body else { return Ok(item.clone()) };
        self.elements.push(Element { item: item.clone(), index, accumulator: None });
        let result = self.value(body);
        self.elements.pop();
        result
    }

    fn holds(&mut self, item: &Value, index: usize, body: Option<&'a Node>) -> Result<bool> {
        let value = self.of(item, index, body)?;
        // Only counting goes without a predicate, and has looked at the elements itself.
        let place = body.map(|body| body.span);
        match (value.as_bool(), place) {
            (Some(truth), _) => Ok(truth),
            (None, Some(place)) => {
                Err(at(place, format!("a predicate has to give a bool, found {}", value.type_name())))
            }
            (None, None) => Ok(false),
        }
    }

    fn search(&mut self, items: &[Value], body: Option<&'a Node>, wanted: Wanted) -> Result<Option<usize>> {
        for (index, item) in items.iter().enumerate() {
            if self.holds(item, index, body)? == (wanted == Wanted::True) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn search_back(&mut self, items: &[Value], body: Option<&'a Node>) -> Result<Option<usize>> {
        for (index, item) in items.iter().enumerate().rev() {
            if self.holds(item, index, body)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn count(&mut self, items: &[Value], body: Option<&'a Node>, list: Span) -> Result<i64> {
        let other = items.iter().find(|item| body.is_none() && item.as_bool().is_none());
        if let Some(other) = other {
            return Err(mistyped(list, "an array of bools", other)
                .with_help("give a predicate, or use `len` for the number of elements"));
        }
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            count += i64::from(self.holds(item, index, body)?);
        }
        Ok(count)
    }

    fn filter(&mut self, items: &[Value], body: Option<&'a Node>, span: Span) -> Result<Value> {
        let mut kept = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.holds(item, index, body)? {
                kept.push(item.clone());
            }
        }
        self.budget.elements(kept.len()).map_err(exhausted(span))?;
        Ok(kept.into())
    }

    fn mapped(&mut self, items: &[Value], body: Option<&'a Node>, span: Span) -> Result<Value> {
        self.budget.elements(items.len()).map_err(exhausted(span))?;
        self.keys(items, body).map(Value::from)
    }

    fn keys(&mut self, items: &[Value], body: Option<&'a Node>) -> Result<Vec<Value>> {
        items.iter().enumerate().map(|(index, item)| self.of(item, index, body)).collect()
    }

    fn sum(&mut self, items: &[Value], body: Option<&'a Node>, span: Span) -> Result<Value> {
        let mut sum = Value::Int(0);
        for (index, item) in items.iter().enumerate() {
            let value = self.of(item, index, body)?;
            let place = body.map_or(span, |body| body.span);
            // Lengths of time and texts have a sum as well, and no zero to start from.
            sum = if index == 0 && matches!(value.reveal(), Value::Duration(_) | Value::Str(_)) {
                value
            } else {
                operators::apply(Binary::Add, &sum, &value, &mut self.budget, [place; 3])?
            };
        }
        Ok(sum)
    }

    fn group(&mut self, items: &[Value], body: Option<&'a Node>, span: Span) -> Result<Value> {
        self.budget.elements(items.len()).map_err(exhausted(span))?;
        let mut groups: indexmap::IndexMap<Arc<str>, Vec<Value>> = indexmap::IndexMap::new();
        for (index, item) in items.iter().enumerate() {
            let key = match self.of(item, index, body)? {
                Value::Str(text) => text,
                other => self.key(&other, span)?.into(),
            };
            groups.entry(key).or_default().push(item.clone());
        }
        let map: Map = groups.into_iter().map(|(key, items)| (key, items.into())).collect();
        Ok(map.into())
    }

    fn sort(
        &mut self,
        items: &[Value],
        body: Option<&'a Node>,
        extra: Option<&'a Node>,
        span: Span,
    ) -> Result<Value> {
        let direction = match extra {
            None => Direction::Ascending,
            Some(node) => Direction::of(&self.value(node)?).map_err(|message| at(node.span, message))?,
        };
        self.budget.elements(items.len()).map_err(exhausted(span))?;
        let keys = self.keys(items, body)?;
        let mut keyed: Vec<_> = keys.into_iter().zip(items).collect();
        keyed.sort_by(|(left, _), (right, _)| direction.order(left, right));
        Ok(keyed.into_iter().map(|(_, item)| item.clone()).collect())
    }

    fn reduce(
        &mut self,
        items: &[Value],
        body: Option<&'a Node>,
        extra: Option<&'a Node>,
        span: Span,
    ) -> Result<Value> {
        let Some(body) = body else { return Err(at(span, "`reduce` needs a predicate")) };
        let mut rest = items.iter().enumerate();
        let mut accumulator = match (extra, extra.is_none().then(|| rest.next()).flatten()) {
            (Some(initial), _) => self.value(initial)?,
            (None, Some((_, first))) => first.clone(),
            (None, None) => return Err(at(span, "`reduce` of an empty array needs an initial value")),
        };
        for (index, item) in rest {
            self.elements.push(Element { item: item.clone(), index, accumulator: Some(accumulator) });
            let result = self.value(body);
            self.elements.pop();
            accumulator = result?;
            // This is the only way to nest values deeper than the text of the expression itself.
            self.budget.walk(&accumulator).map_err(exhausted(body.span))?;
        }
        Ok(accumulator)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    True,
    False,
}

fn element(items: &[Value], found: Option<usize>) -> Value {
    found.and_then(|place| items.get(place)).cloned().unwrap_or_default()
}

fn index(found: Option<usize>) -> Value {
    Value::Int(found.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1))
}

/// Which way a list is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

impl Direction {
    pub(crate) fn of(value: &Value) -> std::result::Result<Self, &'static str> {
        match value.as_str() {
            Some("asc") => Ok(Self::Ascending),
            Some("desc") => Ok(Self::Descending),
            _ => Err("the order is \"asc\" or \"desc\""),
        }
    }

    /// The order of two values in a sorted list. Values without an order between them are ordered by kind, so
    /// that any list has one.
    pub(crate) fn order(self, left: &Value, right: &Value) -> Ordering {
        let order = compare(left, right).unwrap_or_else(|| rank(left).cmp(&rank(right)));
        if self == Self::Descending { order.reverse() } else { order }
    }
}

fn rank(value: &Value) -> u8 {
    match value.settled() {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Float(number) if number.is_nan() => 3,
        Value::Int(_) | Value::Named(_) | Value::Float(_) | Value::Written(_) => 4,
        Value::Duration(_) => 5,
        Value::Time(_) => 6,
        Value::Str(_) => 7,
        Value::List(_) => 8,
        Value::Map(_) | Value::Object(_) => 9,
        Value::Zone(_) => 10,
        // The settled value is never one.
        Value::Secret(_) => 11,
    }
}
