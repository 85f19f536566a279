//! What follows an operand: members, indexes, slices and method calls.

use std::ops::Range;

use super::Parser;
use crate::ast::{Kind, Link, Node};
use crate::error::Result;
use crate::lexer::Kind as TokenKind;

impl Parser<'_> {
    pub(super) fn postfix(&mut self, mut node: Node) -> Result<Node> {
        let start = Range::<usize>::from(node.span).start;
        let mut chained = false;
        loop {
            let optional = self.sees("?.");
            let dotted = optional || self.sees(".");
            if dotted {
                self.advance();
            }
            chained |= optional;
            let link = if optional { Link::Optional } else { Link::Plain };
            if self.sees("[") && (optional || !dotted) {
                node = self.subscript(node, start, link)?;
            } else if dotted {
                node = self.member(node, start, link)?;
            } else if chained {
                let span = node.span.into();
                return Self::spanned(Kind::Chain(Box::new(node)), span);
            } else {
                return Ok(node);
            }
        }
    }

    fn member(&mut self, node: Node, start: usize, link: Link) -> Result<Node> {
        let TokenKind::Name(name) = self.current().kind else {
            return Err(self
                .unexpected("the name of a member")
                .with_help("write `[\"...\"]` or `[0]` for members that are not plain names"));
        };
        self.advance();
        let base = Box::new(node);
        let name = name.into();
        let kind = if self.sees("(") {
            let arguments = self.items("(", ")")?;
            Kind::Method { base, name, arguments, link }
        } else {
            Kind::Member { base, name, link }
        };
        self.node(kind, start)
    }

    fn subscript(&mut self, node: Node, start: usize, link: Link) -> Result<Node> {
        self.advance();
        let from = if self.sees(":") { None } else { Some(self.expression(0)?) };
        if self.accept(":") {
            let to = if self.sees("]") { None } else { Some(Box::new(self.expression(0)?)) };
            self.expect("]")?;
            return self.node(Kind::Slice { base: Box::new(node), from: from.map(Box::new), to }, start);
        }
        self.expect("]")?;
        let Some(index) = from else { return Err(self.unexpected("an index")) };
        self.node(Kind::Index { pair: Box::new([node, index]), link }, start)
    }
}
