//! Operands: literals, names, brackets, prefix operators, `let` and `if`.

use super::{KEYWORDS, Parser, place_of};
use crate::ast::{Kind, Node, Pointer, Unary};
use crate::error::{Error, Result};
use crate::lexer::Kind as TokenKind;
use crate::value::Value;

/// How tightly a prefix operator binds, on the scale of the operators between operands.
const NOT_PRECEDENCE: u16 = 50;
const SIGN_PRECEDENCE: u16 = 90;

impl<'a> Parser<'a> {
    pub(super) fn operand(&mut self) -> Result<Node> {
        let start = self.start();
        let prefix = match self.current().kind {
            TokenKind::Symbol("!") | TokenKind::Name("not") => Some((Unary::Not, NOT_PRECEDENCE)),
            TokenKind::Symbol("-") => Some((Unary::Minus, SIGN_PRECEDENCE)),
            TokenKind::Symbol("+") => Some((Unary::Plus, SIGN_PRECEDENCE)),
            _ => None,
        };
        if let Some((unary, precedence)) = prefix {
            self.advance();
            let operand = self.expression(precedence)?;
            let node = self.node(unary_kind(unary, operand), start)?;
            return self.postfix(node);
        }
        let node = self.primary()?;
        self.postfix(node)
    }

    fn primary(&mut self) -> Result<Node> {
        let start = self.start();
        let constant = match &self.current().kind {
            TokenKind::Int(number) => Value::Int(*number),
            TokenKind::Float(number) => Value::Float(*number),
            TokenKind::Str(text) => Value::Str(text.clone()),
            TokenKind::Name(name) => {
                let name = *name;
                return self.name(name);
            }
            TokenKind::Symbol(symbol) => {
                let symbol = *symbol;
                return self.bracket(symbol);
            }
            TokenKind::End => return Err(self.unexpected("an expression")),
        };
        self.advance();
        self.node(Kind::Constant(constant), start)
    }

    fn bracket(&mut self, symbol: &str) -> Result<Node> {
        let start = self.start();
        match symbol {
            "(" => {
                self.advance();
                let mut node = self.sequence()?;
                self.expect(")")?;
                node.span = (start..self.end()).into();
                Ok(node)
            }
            "[" => self.list(),
            "{" => self.map(),
            "#" => {
                self.advance();
                let glued = self.current().span.start == self.end();
                let pointer = match self.current().kind {
                    TokenKind::Name(name) if glued => {
                        self.advance();
                        match name {
                            "acc" => Pointer::Accumulator,
                            "index" => Pointer::Index,
                            _ => {
                                return Err(Error::syntax(
                                    format!("unknown pointer `#{name}`"),
                                    start..self.end(),
                                )
                                .with_help("there are `#`, `#index` and, in `reduce`, `#acc`"));
                            }
                        }
                    }
                    _ => Pointer::Item,
                };
                self.pointer(pointer, start)
            }
            // The dot stays for the member that follows it.
            "." => self.pointer(Pointer::Item, start),
            "::" => {
                self.advance();
                match self.current().kind {
                    TokenKind::Name(name) => self.call(name, None),
                    _ => Err(self.unexpected("the name of a function")),
                }
            }
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn pointer(&self, pointer: Pointer, start: usize) -> Result<Node> {
        if self.predicates == 0 {
            let written = if self.end() > start { "#" } else { "." };
            return Err(Error::syntax(
                format!("`{written}` has no element to refer to here"),
                start..start + 1,
            )
            .with_help("it is the current element within functions such as `filter` and `map`"));
        }
        Self::spanned(Kind::Pointer(pointer), start..self.end().max(start))
    }

    fn name(&mut self, name: &'a str) -> Result<Node> {
        let start = self.start();
        if KEYWORDS.contains(&name) {
            return Err(self.unexpected("an expression"));
        }
        let kind = match name {
            "true" => Kind::Constant(Value::Bool(true)),
            "false" => Kind::Constant(Value::Bool(false)),
            "nil" => Kind::Constant(Value::Null),
            "$env" => Kind::Env,
            _ if matches!(self.following().kind, TokenKind::Symbol("(")) => return self.call(name, None),
            _ => {
                let local = self.locals.iter().rposition(|local| *local == name).map(Kind::Local);
                let span = self.current().span.clone();
                local.map_or_else(|| place_of(name, span, &mut self.variables).map(Kind::Global), Ok)?
            }
        };
        self.advance();
        self.node(kind, start)
    }

    /// `let name = value; body`.
    pub(super) fn declaration(&mut self) -> Result<Node> {
        let start = self.start();
        self.advance();
        let TokenKind::Name(name) = self.current().kind else {
            return Err(self.unexpected("a name for the variable"));
        };
        if KEYWORDS.contains(&name) || matches!(name, "true" | "false" | "nil" | "$env") {
            return Err(Error::syntax(
                format!("`{name}` cannot be the name of a variable"),
                self.current().span.clone(),
            ));
        }
        self.advance();
        self.expect("=")?;
        let value = self.expression(0)?;
        self.expect(";")?;
        self.locals.push(name);
        let body = self.sequence();
        self.locals.pop();
        self.node(Kind::Let(Box::new([value, body?])), start)
    }

    /// `if condition { then } else { otherwise }`, with `else if` for more of them.
    pub(super) fn branch(&mut self) -> Result<Node> {
        let start = self.start();
        self.advance();
        let condition = self.expression(0)?;
        let then = self.block()?;
        if !self.sees_word("else") {
            return Err(self.unexpected("`else`").with_help("an `if` has a value in both cases"));
        }
        self.advance();
        let otherwise = if self.sees_word("if") { self.nested(Self::branch)? } else { self.block()? };
        self.node(Kind::Conditional(Box::new([condition, then, otherwise])), start)
    }

    fn block(&mut self) -> Result<Node> {
        self.expect("{")?;
        let node = self.sequence()?;
        self.expect("}")?;
        Ok(node)
    }
}

/// A sign before a number is part of the number.
fn unary_kind(unary: Unary, operand: Node) -> Kind {
    match (unary, &operand.kind) {
        (Unary::Minus, Kind::Constant(Value::Int(number))) => Kind::Constant(Value::Int(-number)),
        (Unary::Minus, Kind::Constant(Value::Float(number))) => Kind::Constant(Value::Float(-number)),
        _ => Kind::Unary(unary, Box::new(operand)),
    }
}
