//! Evaluates the tree.
//!
//! Values that come from the host or from constants are looked at where they are: `Data.a.b` copies nothing but
//! the reference to what it finds.

mod access;
mod operators;
mod predicates;
mod ranges;

pub(crate) use predicates::Direction;
pub(crate) use ranges::place;

use std::ops::Range;
use std::sync::Arc;

use regex::Regex;

use crate::ast::{Binary, Kind, Node, Pointer, Span, Unary};
use crate::budget::{Budget, Exhausted};
use crate::builtins::maps::SECRET_KEY;
use crate::builtins::{Builtin, Context};
use crate::environment::{Arguments, CallError, Doubt, Environment};
use crate::error::{Error, ErrorKind, Result};
use crate::parser::Reference;
use crate::value::{Map, Place, Value, key_text};

/// One run of a program.
pub(crate) struct Evaluation<'a> {
    globals: &'a [Value],
    variables: &'a [Reference],
    functions: &'a [Reference],
    environment: &'a dyn Environment,
    locals: Vec<Value>,
    elements: Vec<Element>,
    patterns: Vec<(String, Regex)>,
    budget: Budget,
    /// What was probably not meant.
    pub(crate) doubts: Vec<Doubt>,
    /// How many operators around this one say that something may be missing.
    leniency: usize,
}

/// What a predicate is looking at.
struct Element {
    item: Value,
    index: usize,
    accumulator: Option<Value>,
}

/// What the values do not allow, at the node at `span`.
fn at(span: Span, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Value(message.into()), Range::from(span))
}

/// A value of another type is needed at the node at `span`.
fn mistyped(span: Span, wanted: &'static str, found: &Value) -> Error {
    Error::new(ErrorKind::Type { wanted, found: found.type_name() }, Range::from(span))
}

/// Something is asked of nil at the node at `span`.
fn of_nil(span: Span, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Nil(message.into()), Range::from(span))
}

/// As [`at`], but where one of the values is nil that is what it is about.
fn unfit(span: Span, values: &[&Value], message: impl Into<String>) -> Error {
    if values.iter().any(|value| value.is_null()) { of_nil(span, message) } else { at(span, message) }
}

fn exhausted(span: Span) -> impl FnOnce(Exhausted) -> Error {
    move |problem| Error::new(problem.into(), Range::from(span))
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(
        globals: &'a [Value],
        variables: &'a [Reference],
        functions: &'a [Reference],
        environment: &'a dyn Environment,
    ) -> Self {
        Self {
            globals,
            variables,
            functions,
            environment,
            locals: Vec::new(),
            elements: Vec::new(),
            patterns: Vec::new(),
            budget: Budget::new(environment.memory()),
            doubts: Vec::new(),
            leniency: 0,
        }
    }

    /// Evaluates where the expression itself says that something may be missing.
    fn lenient<T>(&mut self, evaluate: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.leniency += 1;
        let result = evaluate(self);
        self.leniency -= 1;
        result
    }

    /// Whether a value that was built here is small enough to hand out.
    pub(crate) fn affordable(&mut self, value: &Value, node: &Node) -> Result<()> {
        self.budget.walk(value).map_err(exhausted(node.span))
    }

    pub(crate) fn value(&mut self, node: &'a Node) -> Result<Value> {
        self.place(node).map(Place::into_value)
    }

    fn place(&mut self, node: &'a Node) -> Result<Place<'a>> {
        match &node.kind {
            Kind::Constant(value) => Ok(Place::Borrowed(value)),
            Kind::Global(place) => Ok(Place::Borrowed(&self.globals[*place])),
            Kind::Member { .. } | Kind::Index { .. } | Kind::Method { .. } | Kind::Slice { .. } => {
                // A row that is cut short has no value.
                Ok(self.chained(node)?.unwrap_or(Place::Owned(Value::Null)))
            }
            Kind::Chain(inner) => {
                let value = self.lenient(|this| this.chained(inner))?;
                Ok(value.unwrap_or(Place::Owned(Value::Null)))
            }
            _ => self.made(node).map(Place::Owned),
        }
    }

    /// The value of a node that makes one.
    fn made(&mut self, node: &'a Node) -> Result<Value> {
        self.budget.steps(1).map_err(exhausted(node.span))?;
        match &node.kind {
            Kind::Local(place) => Ok(self.locals.get(*place).cloned().unwrap_or_default()),
            Kind::Env => self.env(node.span),
            Kind::Pointer(pointer) => self.pointer(*pointer, node.span),
            Kind::Unary(unary, operand) => self.unary(*unary, operand),
            Kind::Binary(binary, pair) => self.binary(*binary, pair, node.span),
            Kind::Comparison(first, rest) => self.comparison(first, rest),
            Kind::Matches(pair, regex) => self.matches(pair, regex.as_ref()),
            Kind::Conditional(nodes) => {
                let [condition, then, otherwise] = nodes.as_ref();
                let chosen = if self.truth(condition)? { then } else { otherwise };
                self.value(chosen)
            }
            Kind::Elvis(nodes) => {
                let [condition, otherwise] = nodes.as_ref();
                if self.truth(condition)? { Ok(Value::Bool(true)) } else { self.value(otherwise) }
            }
            Kind::Let(nodes) => self.declaration(&nodes[0], &nodes[1]),
            Kind::Sequence(nodes) => nodes.iter().try_fold(Value::Null, |_, node| self.value(node)),
            Kind::List(items) => self.list(items, node.span),
            Kind::Map(entries) => self.map(entries, node.span),
            Kind::Builtin(builtin, arguments) => self.builtin(builtin, arguments, node.span),
            Kind::Predicate { predicate, list, body, extra } => {
                self.predicate(*predicate, list, body.as_deref(), extra.as_deref(), node.span)
            }
            Kind::Call(place, arguments) => self.call(*place, arguments, node.span),
            _ => self.value(node),
        }
    }

    /// The value of a node that has to be a boolean.
    fn truth(&mut self, node: &'a Node) -> Result<bool> {
        let value = self.place(node)?;
        value.as_bool().ok_or_else(|| {
            mistyped(node.span, "a bool", &value)
                .with_help("compare it with something, for example `!= nil` or `== \"\"`")
        })
    }

    fn pointer(&mut self, pointer: Pointer, span: Span) -> Result<Value> {
        // The reader refuses pointers outside of predicates.
        let element = self.elements.last().ok_or_else(|| at(span, "`#` has no element to refer to here"))?;
        match pointer {
            Pointer::Item => Ok(element.item.clone()),
            Pointer::Index => Ok(Value::Int(i64::try_from(element.index).unwrap_or(i64::MAX))),
            Pointer::Accumulator => {
                element.accumulator.clone().ok_or_else(|| at(span, "`#acc` exists only in `reduce`"))
            }
        }
    }

    fn unary(&mut self, unary: Unary, operand: &'a Node) -> Result<Value> {
        if unary == Unary::Not {
            return Ok(Value::Bool(!self.truth(operand)?));
        }
        let operand_value = self.place(operand)?;
        let (value, is_secret) = (operand_value.settled().clone(), operand_value.is_secret());
        let result = match (unary, &value) {
            (Unary::Plus, Value::Named(named)) => Ok(Value::Int(named.number())),
            (Unary::Minus, Value::Named(named)) => Ok(Value::Int(-named.number())),
            (Unary::Plus, Value::Int(_) | Value::Float(_) | Value::Duration(_)) => Ok(value),
            (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
            (Unary::Minus, Value::Int(number)) => {
                number.checked_neg().map(Value::Int).ok_or_else(|| operators::overflow(operand.span))
            }
            (Unary::Minus, Value::Duration(length)) => {
                length.checked_neg().map(Value::Duration).ok_or_else(|| operators::overflow(operand.span))
            }
            _ => Err(mistyped(operand.span, "a number", &value)),
        };
        result.map(|value| value.derived_if(is_secret))
    }

    fn binary(&mut self, binary: Binary, pair: &'a [Node; 2], span: Span) -> Result<Value> {
        let [left, right] = pair;
        match binary {
            Binary::And if !self.truth(left)? => Ok(Value::Bool(false)),
            Binary::Or if self.truth(left)? => Ok(Value::Bool(true)),
            Binary::And | Binary::Or => {
                let value = self.value(right)?;
                Ok(if value.as_bool().is_some() { value.reveal().clone() } else { value })
            }
            Binary::Coalesce => {
                let value = self.lenient(|this| this.value(left))?;
                if value.is_null() { self.value(right) } else { Ok(value) }
            }
            Binary::In if matches!(right.kind, Kind::Env) => {
                let name = self.place(left)?;
                let known =
                    name.reveal().as_str().is_some_and(|name| self.environment.variable(name).is_some());
                Ok(Value::Bool(known))
            }
            _ => {
                // Whoever compares with nil knows that there may be nothing.
                let asks = matches!(binary, Binary::Equal | Binary::NotEqual)
                    && pair.iter().any(|node| matches!(node.kind, Kind::Constant(Value::Null)));
                let both = |this: &mut Self| -> Result<(Place<'a>, Place<'a>)> {
                    Ok((this.place(left)?, this.place(right)?))
                };
                let (left_value, right_value) = if asks { self.lenient(both)? } else { both(self)? };
                self.doubts.extend(operators::mixed(binary, &left_value, &right_value, span));
                // A secret never matches: the doubt quotes both values.
                self.doubts.extend(self.differs_by_case(binary, left, &left_value, right, span));
                self.doubts.extend(self.differs_by_case(binary, right, &right_value, left, span));
                operators::apply(
                    binary,
                    &left_value,
                    &right_value,
                    &mut self.budget,
                    [left.span, right.span, span],
                )
            }
        }
    }

    fn declaration(&mut self, value: &'a Node, body: &'a Node) -> Result<Value> {
        let value = self.value(value)?;
        self.locals.push(value);
        let result = self.value(body);
        self.locals.pop();
        result
    }

    fn list(&mut self, items: &'a [Node], span: Span) -> Result<Value> {
        self.budget.elements(items.len()).map_err(exhausted(span))?;
        items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>>>().map(Value::from)
    }

    fn map(&mut self, entries: &'a [(Node, Node)], span: Span) -> Result<Value> {
        self.budget.elements(entries.len()).map_err(exhausted(span))?;
        let mut map = Map::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.place(key)?;
            let name = match &*key {
                Value::Str(name) => name.clone(),
                other => self.key(other, span)?.into(),
            };
            let value = self.value(value)?;
            map.insert(name, value);
        }
        Ok(map.into())
    }

    /// The name under which a map holds what belongs to a value.
    fn key(&mut self, value: &Value, span: Span) -> Result<String> {
        if value.is_secret() {
            return Err(at(span, SECRET_KEY));
        }
        self.budget.walk(value).map_err(exhausted(span))?;
        let text = key_text(value);
        self.budget.bytes(text.len()).map_err(exhausted(span))?;
        Ok(text)
    }

    fn env(&mut self, span: Span) -> Result<Value> {
        let names = self.environment.variable_names();
        self.budget.elements(names.len()).map_err(exhausted(span))?;
        let variables = names.into_iter().filter_map(|name| {
            let value = self.environment.variable(&name)?;
            Some((name.into(), value))
        });
        Ok(variables.collect::<Map>().into())
    }

    fn builtin(&mut self, builtin: &Builtin, arguments: &'a [Node], span: Span) -> Result<Value> {
        let (values, secrets) = self.arguments(arguments)?;
        let is_secret = !secrets.is_empty();
        let mut context = Context { budget: &mut self.budget, environment: self.environment, is_secret };
        let result = (builtin.run)(&mut context, &values);
        let is_secret = context.is_secret;
        result.map(|value| value.derived_if(is_secret)).map_err(|error| {
            let error = blamed(error, builtin.name, arguments, span);
            if is_secret { error.masked() } else { error }
        })
    }

    fn call(&mut self, place: usize, arguments: &'a [Node], span: Span) -> Result<Value> {
        let (values, secrets) = self.arguments(arguments)?;
        let is_secret = !secrets.is_empty();
        let name = &self.functions[place].name;
        let given = Arguments { values: &values, nodes: arguments, secrets: &secrets };
        let value = self.environment.call(name, &given).map_err(|error| {
            let error = blamed(error, name, arguments, span);
            if is_secret { error.masked() } else { error }
        })?;
        // Text that nobody else has was made for this call.
        if let Value::Str(text) = &value
            && Arc::strong_count(text) == 1
        {
            self.budget.hold(text.len() as u64).map_err(exhausted(span))?;
        }
        Ok(value.derived_if(is_secret))
    }

    /// Returns the arguments of a call without marks, and the positions of secrets among them.
    fn arguments(&mut self, nodes: &'a [Node]) -> Result<(Vec<Value>, Vec<usize>)> {
        let mut secrets = Vec::new();
        let mut values = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let value = self.value(node)?;
            if value.is_secret() {
                secrets.push(position);
            }
            values.push(if value.is_secret() { value.reveal().clone() } else { value });
        }
        Ok((values, secrets))
    }
}

/// A failed call, placed at the argument that is to blame.
fn blamed(error: CallError, name: &str, arguments: &[Node], span: Span) -> Error {
    let culprit = error.argument.and_then(|place| arguments.get(place));
    Error {
        kind: Box::new(ErrorKind::Call { function: name.to_owned(), kind: Box::new(error.kind) }),
        span: culprit.map_or(span, |node| node.span).into(),
        help: error.help,
    }
}
