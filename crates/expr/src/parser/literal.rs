//! Lists and maps written out.

use super::Parser;
use crate::ast::{Kind, Node};
use crate::error::Result;
use crate::lexer::Kind as TokenKind;
use crate::value::{Map, Value, key_text};

impl Parser<'_> {
    pub(super) fn list(&mut self) -> Result<Node> {
        let start = self.start();
        let items = self.items("[", "]")?;
        // A constant list is made once, not at every evaluation.
        let constants: Option<Vec<Value>> = items.iter().map(constant).collect();
        let kind = constants.map_or(Kind::List(items), |values| Kind::Constant(values.into()));
        self.builds |= matches!(kind, Kind::List(_));
        self.node(kind, start)
    }

    /// Expressions with commas between them, a comma after the last being allowed.
    pub(super) fn items(&mut self, open: &str, close: &str) -> Result<Vec<Node>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.accept(close) {
            items.push(self.expression(0)?);
            if !self.accept(",") && !self.sees(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
        Ok(items)
    }

    pub(super) fn map(&mut self) -> Result<Node> {
        let start = self.start();
        self.expect("{")?;
        let mut entries = Vec::new();
        while !self.accept("}") {
            let key = self.key()?;
            self.expect(":")?;
            entries.push((key, self.expression(0)?));
            if !self.accept(",") && !self.sees("}") {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
        let constants: Option<Map> = entries
            .iter()
            .map(|(key, value)| Some((key_text(&constant(key)?).into(), constant(value)?)))
            .collect();
        let kind = constants.map_or(Kind::Map(entries), |values| Kind::Constant(values.into()));
        self.builds |= matches!(kind, Kind::Map(_));
        self.node(kind, start)
    }

    fn key(&mut self) -> Result<Node> {
        let start = self.start();
        let key = match &self.current().kind {
            TokenKind::Name(name) => Value::from(*name),
            TokenKind::Str(text) => Value::Str(text.clone()),
            TokenKind::Int(number) => Value::from(number.to_string()),
            TokenKind::Float(number) => Value::from(number.to_string()),
            TokenKind::Symbol("(") => {
                self.advance();
                let node = self.sequence()?;
                self.expect(")")?;
                return Ok(node);
            }
            _ => {
                return Err(self
                    .unexpected("a key")
                    .with_help("a key is a name, a string, a number, or an expression in parentheses"));
            }
        };
        self.advance();
        self.node(Kind::Constant(key), start)
    }
}

fn constant(node: &Node) -> Option<Value> {
    if let Kind::Constant(value) = &node.kind { Some(value.clone()) } else { None }
}
