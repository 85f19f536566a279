//! Calls of functions: the language's own, those that take a predicate, and the host's.

use std::ops::Range;

use super::{ConstantCall, Parser, place_of};
use crate::ast::{Kind, Node, Predicate};
use crate::builtins;
use crate::error::{Error, Result};
use crate::lexer::Kind as TokenKind;

impl<'a> Parser<'a> {
    /// `left | name(...)` is `name(left, ...)`.
    pub(super) fn pipe(&mut self, left: Node) -> Result<Node> {
        let TokenKind::Name(name) = self.current().kind else {
            return Err(self.unexpected("the name of a function").with_help("`a | f(b)` means `f(a, b)`"));
        };
        let node = self.call(name, Some(left))?;
        self.postfix(node)
    }

    /// Reads from the name on.
    pub(super) fn call(&mut self, name: &'a str, piped: Option<Node>) -> Result<Node> {
        let token = self.current().span.clone();
        let start = piped.as_ref().map_or(token.start, |node| Range::<usize>::from(node.span).start);
        self.advance();
        if !self.sees("(") {
            return Err(self.unexpected("`(`").with_help(format!("call the function with `{name}()`")));
        }
        if let Some(predicate) = Predicate::named(name) {
            let kind = self.predicate_call(predicate, name, piped)?;
            return self.node(kind, start);
        }
        let mut arguments: Vec<Node> = piped.into_iter().collect();
        arguments.extend(self.items("(", ")")?);
        let span = start..self.end();
        let kind = match builtins::find(name) {
            Some(builtin) => {
                builtin.check(arguments.len()).map_err(|message| Error::syntax(message, span.clone()))?;
                Kind::Builtin(builtin, arguments)
            }
            None => {
                if let Some(Kind::Constant(argument)) = arguments.first().map(|node| &node.kind) {
                    let (name, argument) = (name.to_owned(), argument.clone());
                    self.constant_calls.push(ConstantCall { name, argument, span: span.clone() });
                }
                Kind::Call(place_of(name, token, &mut self.functions)?, arguments)
            }
        };
        Self::spanned(kind, span)
    }

    fn predicate_call(&mut self, predicate: Predicate, name: &str, piped: Option<Node>) -> Result<Kind> {
        self.expect("(")?;
        let list = match piped {
            Some(list) => list,
            None if self.sees(")") => return Err(self.missing(name, "a list")),
            None => {
                let list = self.expression(0)?;
                self.separator()?;
                list
            }
        };
        let mut body = None;
        if !self.sees(")") {
            body = Some(Box::new(self.predicate_body()?));
            self.separator()?;
        } else if !predicate.optional_body() {
            return Err(self.missing(name, "a list and a predicate"));
        }
        let mut extra = None;
        if predicate.takes_extra() && !self.sees(")") {
            extra = Some(Box::new(self.expression(0)?));
            self.separator()?;
        }
        self.expect(")")?;
        Ok(Kind::Predicate { predicate, list: Box::new(list), body, extra })
    }

    fn missing(&self, name: &str, wanted: &str) -> Error {
        Error::syntax(format!("`{name}` needs {wanted}"), self.current().span.clone())
            .with_help(format!("for example `{name}(list, # == 1)`"))
    }

    /// The comma after an argument, which the last one may go without.
    fn separator(&mut self) -> Result<()> {
        if self.sees(")") || self.accept(",") { Ok(()) } else { Err(self.unexpected("`,` or `)`")) }
    }

    /// An expression about `#`, in braces or not.
    fn predicate_body(&mut self) -> Result<Node> {
        self.predicates += 1;
        let body = if self.sees("{") { self.braced_body() } else { self.expression(0) };
        self.predicates -= 1;
        let body = body?;
        if self.sees(";") {
            return Err(self.unexpected("`)`").with_help("put braces around the predicate: `{ ...; ... }`"));
        }
        Ok(body)
    }

    fn braced_body(&mut self) -> Result<Node> {
        self.advance();
        let body = self.sequence()?;
        if self.sees(":") {
            return Err(self
                .unexpected("`}`")
                .with_help("write a map in a predicate as `{ {name: value} }`"));
        }
        self.expect("}")?;
        Ok(body)
    }
}

impl Predicate {
    fn optional_body(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    fn takes_extra(self) -> bool {
        matches!(self, Self::SortBy | Self::Reduce)
    }
}
