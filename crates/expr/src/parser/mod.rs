//! Reads tokens into a tree: operators by precedence, everything else by recursive descent.

mod call;
mod literal;
mod postfix;
mod primary;

use std::ops::Range;

use regex::Regex;

use crate::ast::{Binary, Comparison, Kind, Node, Unary};
use crate::error::{Error, Result};
use crate::lexer::{self, Kind as TokenKind, Token};
use crate::pattern;
use crate::value::Value;

/// How many brackets, predicates and operators may stand within each other while reading.
const DEEPEST_NESTING: usize = 120;
/// How deep the tree may become; long rows of operators make deep trees without any nesting.
const DEEPEST_TREE: u16 = 400;

/// How many names of the host an expression may use.
const MOST_NAMES: usize = 500;
/// How many constant patterns are kept ready.
const MOST_PATTERNS: usize = 50;

/// Names that are operators or statements, and so never variables.
const KEYWORDS: &[&str] =
    &["in", "not", "and", "or", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"];

/// A call of the host's whose first argument is a constant.
#[derive(Debug)]
pub(crate) struct ConstantCall {
    pub(crate) name: String,
    pub(crate) argument: Value,
    pub(crate) span: Range<usize>,
}

/// A name of the host that an expression uses, and where it does so first.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
}

/// The place of a name among those that the host has to know; new names are added.
fn place_of(name: &str, span: Range<usize>, known: &mut Vec<Reference>) -> Result<usize> {
    if let Some(place) = known.iter().position(|reference| reference.name == name) {
        return Ok(place);
    }
    if known.len() >= MOST_NAMES {
        return Err(Error::syntax(format!("expression uses more than {MOST_NAMES} names"), span));
    }
    known.push(Reference { name: name.to_owned(), span });
    Ok(known.len() - 1)
}

/// What reading a text results in.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Node,
    pub(crate) variables: Vec<Reference>,
    pub(crate) functions: Vec<Reference>,
    pub(crate) constant_calls: Vec<ConstantCall>,
    /// Whether it builds lists or maps out of values, which can share parts many times over.
    pub(crate) builds: bool,
}

pub(crate) fn parse(text: &str) -> Result<Parsed> {
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        nesting: 0,
        predicates: 0,
        locals: Vec::new(),
        variables: Vec::new(),
        functions: Vec::new(),
        constant_calls: Vec::new(),
        builds: false,
        patterns: 0,
    };
    if parser.current().kind == TokenKind::End {
        return Err(Error::syntax("expression is empty", 0..text.len()));
    }
    let root = parser.sequence()?;
    if parser.current().kind != TokenKind::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    let Parser { variables, functions, constant_calls, builds, .. } = parser;
    Ok(Parsed { root, variables, functions, constant_calls, builds })
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    nesting: usize,
    /// How many predicates surround this place.
    predicates: usize,
    /// The names made by `let` that can be used here.
    locals: Vec<&'a str>,
    variables: Vec<Reference>,
    functions: Vec<Reference>,
    constant_calls: Vec<ConstantCall>,
    builds: bool,
    patterns: usize,
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Pipe,
    Binary(Binary),
    Comparison(Comparison),
    Matches,
}

impl Operator {
    fn of(symbol: &str) -> Option<(Self, u16)> {
        Some(match symbol {
            "|" => (Self::Pipe, 0),
            "or" | "||" => (Self::Binary(Binary::Or), 10),
            "and" | "&&" => (Self::Binary(Binary::And), 15),
            "==" => (Self::Binary(Binary::Equal), 20),
            "!=" => (Self::Binary(Binary::NotEqual), 20),
            "<" => (Self::Comparison(Comparison::Less), 20),
            "<=" => (Self::Comparison(Comparison::LessOrEqual), 20),
            ">" => (Self::Comparison(Comparison::Greater), 20),
            ">=" => (Self::Comparison(Comparison::GreaterOrEqual), 20),
            "in" => (Self::Binary(Binary::In), 20),
            "matches" => (Self::Matches, 20),
            "contains" => (Self::Binary(Binary::Contains), 20),
            "startsWith" => (Self::Binary(Binary::StartsWith), 20),
            "endsWith" => (Self::Binary(Binary::EndsWith), 20),
            ".." => (Self::Binary(Binary::Range), 25),
            "+" => (Self::Binary(Binary::Add), 30),
            "-" => (Self::Binary(Binary::Subtract), 30),
            "*" => (Self::Binary(Binary::Multiply), 60),
            "/" => (Self::Binary(Binary::Divide), 60),
            "%" => (Self::Binary(Binary::Modulo), 60),
            "**" | "^" => (Self::Binary(Binary::Power), 100),
            "??" => (Self::Binary(Binary::Coalesce), 500),
            _ => return None,
        })
    }

    /// Whether `not` can stand before it.
    fn negatable(symbol: &str) -> bool {
        matches!(symbol, "in" | "matches" | "contains" | "startsWith" | "endsWith")
    }
}

impl<'a> Parser<'a> {
    fn current(&self) -> &Token<'a> {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn following(&self) -> &Token<'a> {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    /// The end of the token before this place.
    fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |before| self.tokens[before].span.end)
    }

    fn start(&self) -> usize {
        self.current().span.start
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    fn sees(&self, symbol: &str) -> bool {
        matches!(self.current().kind, TokenKind::Symbol(found) if found == symbol)
    }

    fn sees_word(&self, word: &str) -> bool {
        matches!(self.current().kind, TokenKind::Name(found) if found == word)
    }

    /// Passes over a symbol if it is there; says whether it was.
    fn accept(&mut self, symbol: &str) -> bool {
        let found = self.sees(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let token = self.current();
        let found = match &token.kind {
            TokenKind::End => "the end".to_owned(),
            TokenKind::Str(_) => "a string".to_owned(),
            _ => format!("`{}`", &self.text[token.span.clone()]),
        };
        let error = Error::syntax(format!("expected {wanted}, found {found}"), token.span.clone());
        match token.kind {
            TokenKind::Symbol("=") if wanted.starts_with("an operator") => {
                error.with_help("compare with `==`; only `let` assigns")
            }
            _ => error,
        }
    }

    /// Makes a node that begins at `start` and ends where reading has come to.
    fn node(&self, kind: Kind, start: usize) -> Result<Node> {
        Self::spanned(kind, start..self.end().max(start))
    }

    fn spanned(kind: Kind, span: Range<usize>) -> Result<Node> {
        let depth = kind.depth() + 1;
        if depth > DEEPEST_TREE {
            return Err(Error::syntax("expression has too many operators in a row", span)
                .with_help("split it with `let`, or use a list and a function such as `join` or `any`"));
        }
        Ok(Node { kind, span: span.into(), depth })
    }

    /// Goes one level deeper, unless that is too deep for the stack.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= DEEPEST_NESTING {
            return Err(Error::syntax("expression is nested too deeply", self.current().span.clone()));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Expressions with `;` between them; the value is that of the last.
    fn sequence(&mut self) -> Result<Node> {
        let start = self.start();
        let mut nodes = vec![self.expression(0)?];
        while self.accept(";") {
            if matches!(self.current().kind, TokenKind::End | TokenKind::Symbol(")" | "}")) {
                break;
            }
            nodes.push(self.expression(0)?);
        }
        match nodes.pop() {
            Some(only) if nodes.is_empty() => Ok(only),
            Some(last) => {
                nodes.push(last);
                self.node(Kind::Sequence(nodes), start)
            }
            None => Err(self.unexpected("an expression")),
        }
    }

    fn expression(&mut self, precedence: u16) -> Result<Node> {
        self.nested(|parser| {
            if precedence == 0 && parser.sees_word("let") {
                return parser.declaration();
            }
            if precedence == 0 && parser.sees_word("if") {
                return parser.branch();
            }
            let left = parser.operand()?;
            let node = parser.operators(left, precedence)?;
            if precedence == 0 { parser.conditional(node) } else { Ok(node) }
        })
    }

    /// The operator at this place, whether `not` stands before it, and how many tokens both are.
    fn operator(&self) -> Result<Option<(&'a str, Operator, u16, usize)>> {
        let symbol = |token: &Token<'a>| match token.kind {
            TokenKind::Symbol(symbol) => Some(symbol),
            TokenKind::Name(name) => Some(name),
            _ => None,
        };
        let Some(first) = symbol(self.current()) else { return Ok(None) };
        if first != "not" {
            return Ok(Operator::of(first).map(|(operator, precedence)| (first, operator, precedence, 1)));
        }
        match symbol(self.following()).filter(|second| Operator::negatable(second)) {
            Some(second) => {
                Ok(Operator::of(second).map(|(operator, precedence)| (second, operator, precedence, 2)))
            }
            None => Err(self.unexpected("an operator").with_help(
                "between two operands `not` needs `in`, `matches`, `contains`, `startsWith` or `endsWith` after it",
            )),
        }
    }

    fn operators(&mut self, mut left: Node, least: u16) -> Result<Node> {
        let start = std::ops::Range::<usize>::from(left.span).start;
        let mut mixing = false;
        while let Some((symbol, operator, precedence, tokens)) = self.operator()? {
            if precedence < least {
                break;
            }
            let coalesce = operator == Operator::Binary(Binary::Coalesce);
            if mixing && !coalesce && operator != Operator::Pipe {
                let message = format!("`??` and `{symbol}` cannot be mixed without parentheses");
                return Err(Error::syntax(message, self.current().span.clone())
                    .with_help("put parentheses around the part that belongs together"));
            }
            mixing = coalesce;
            self.at += tokens;
            left = self.operation(left, operator, precedence)?;
            if tokens == 2 {
                left = self.node(Kind::Unary(Unary::Not, Box::new(left)), start)?;
            }
        }
        Ok(left)
    }

    fn operation(&mut self, left: Node, operator: Operator, precedence: u16) -> Result<Node> {
        let start = Range::<usize>::from(left.span).start;
        match operator {
            Operator::Pipe => self.pipe(left),
            Operator::Comparison(first) => self.comparison(left, first, precedence),
            Operator::Matches => {
                let right = self.expression(precedence + 1)?;
                let regex = self.constant_pattern(&right)?;
                self.node(Kind::Matches(Box::new([left, right]), regex), start)
            }
            Operator::Binary(binary) => {
                // The power operator alone groups from the right.
                let right = self.expression(precedence + u16::from(binary != Binary::Power))?;
                let kind = match (binary, &right.kind) {
                    // What decides alone decides whatever the other side is.
                    (Binary::And, Kind::Constant(Value::Bool(false)))
                    | (Binary::Or, Kind::Constant(Value::Bool(true))) => right.kind,
                    _ => Kind::Binary(binary, Box::new([left, right])),
                };
                self.node(kind, start)
            }
        }
    }

    /// The pattern of a node that is a constant string, made once instead of at every evaluation. Each takes
    /// memory for as long as the program lives, so no more than a sane number are.
    fn constant_pattern(&mut self, node: &Node) -> Result<Option<Regex>> {
        match &node.kind {
            Kind::Constant(Value::Str(text)) if self.patterns < MOST_PATTERNS => {
                self.patterns += 1;
                pattern::compile(text, node.span.into()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// `a < b < c` means `a < b and b < c`.
    fn comparison(&mut self, left: Node, first: Comparison, precedence: u16) -> Result<Node> {
        let start = Range::<usize>::from(left.span).start;
        let mut comparison = first;
        let mut rest = Vec::new();
        loop {
            rest.push((comparison, self.expression(precedence + 1)?));
            let TokenKind::Symbol(symbol) = self.current().kind else { break };
            let Some((Operator::Comparison(next), _)) = Operator::of(symbol) else { break };
            self.advance();
            comparison = next;
        }
        self.node(Kind::Comparison(Box::new(left), rest), start)
    }

    /// `a ? b : c` and `a ?: c`.
    fn conditional(&mut self, mut node: Node) -> Result<Node> {
        let start = Range::<usize>::from(node.span).start;
        while self.accept("?") {
            if self.accept(":") {
                let otherwise = self.expression(0)?;
                node = self.node(Kind::Elvis(Box::new([node, otherwise])), start)?;
            } else {
                let then = self.expression(0)?;
                self.expect(":")?;
                let otherwise = self.expression(0)?;
                node = self.node(Kind::Conditional(Box::new([node, then, otherwise])), start)?;
            }
        }
        Ok(node)
    }
}
