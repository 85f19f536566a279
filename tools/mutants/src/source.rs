//! Putting all changes of a file into its text, each behind its switch.

use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{LineColumn, Span as TokenSpan};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::change::{Change, Genre, Place};

/// A file with switches in it.
pub(crate) struct Switched {
    pub(crate) text: String,
    /// What stands in the text because of which changes, by bytes; the narrower of two comes first.
    pub(crate) owners: Vec<(Range<usize>, Vec<u32>)>,
    /// The changes that no switch can hold.
    pub(crate) without: Vec<u32>,
}

/// Puts the changes, each with its number, into the text of a file.
pub(crate) fn switch(text: &str, changes: &[(u32, &Change)]) -> Switched {
    let file = syn::parse_file(text).expect("source that compiles");
    let mut places = Places { text, lines: Lines::of(text), changes, wraps: Vec::new(), const_depth: 0 };
    places.visit_file(&file);
    let mut switched = render(text, &mut places.wraps);
    let switches = places.wraps.iter().filter(|wrap| !wrap.before.is_empty());
    let held: BTreeSet<u32> = switches.flat_map(|wrap| wrap.numbers.iter().copied()).collect();
    switched.without =
        changes.iter().map(|(number, _)| *number).filter(|number| !held.contains(number)).collect();
    switched
}

/// Text in front of and behind a part of the source.
struct Wrap {
    part: Range<usize>,
    /// Pieces of the text in front, those with a number for one change alone.
    before: Vec<(String, Option<u32>)>,
    behind: &'static str,
    numbers: Vec<u32>,
}

/// Finds where the changes belong.
struct Places<'a> {
    text: &'a str,
    lines: Lines,
    changes: &'a [(u32, &'a Change)],
    wraps: Vec<Wrap>,
    /// Whether this is evaluated by the compiler, which reads no switches.
    const_depth: usize,
}

impl<'a> Places<'a> {
    fn bytes(&self, span: TokenSpan) -> Range<usize> {
        self.lines.byte(self.text, span.start())..self.lines.byte(self.text, span.end())
    }

    fn source(&self, node: &impl Spanned) -> &'a str {
        &self.text[self.bytes(node.span())]
    }

    /// The changes of a kind that begin at a place.
    fn at(&self, genre: Genre, place: TokenSpan) -> Vec<(u32, &'a Change)> {
        let here = Place { line: place.start().line, column: place.start().column + 1 };
        let fits =
            |change: &Change| change.genre == genre && change.span.start == here && self.const_depth == 0;
        self.changes.iter().filter(|(_, change)| fits(change)).copied().collect()
    }

    /// Has an expression replaced by others where their changes are in force.
    fn choose(&mut self, node: TokenSpan, others: Vec<(u32, String)>) {
        if others.is_empty() {
            return;
        }
        let mut before = vec![("(".to_owned(), None)];
        for (number, other) in &others {
            before.push((format!("if {} {{ {other} }} else ", on(*number)), Some(*number)));
        }
        before.push(("{ ".to_owned(), None));
        let numbers = others.into_iter().map(|(number, _)| number).collect();
        self.wraps.push(Wrap { part: self.bytes(node), before, behind: " })", numbers });
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        self.const_depth += usize::from(signature.constness.is_some());
        let Some(first) = block.stmts.first() else { return };
        let changes = self.at(Genre::FnValue, first.span());
        // Where the type of what is returned cannot be named, the compiler may complain of what was there before.
        let numbers = changes.iter().map(|(number, _)| *number).collect();
        self.wraps.push(Wrap { part: self.bytes(block.span()), before: Vec::new(), behind: "", numbers });
        for (number, change) in changes {
            let begin = self.bytes(block.brace_token.span.open()).end;
            let text = format!(" if {} {{ return {}; }} ", on(number), change.replacement);
            self.wraps.push(Wrap {
                part: begin..begin,
                before: vec![(text, Some(number))],
                behind: "",
                numbers: vec![number],
            });
        }
    }
}

impl Visit<'_> for Places<'_> {
    fn visit_item_fn(&mut self, item: &syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        self.const_depth -= usize::from(item.sig.constness.is_some());
    }

    fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
        self.const_depth -= usize::from(item.sig.constness.is_some());
    }

    fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
        self.const_depth -= usize::from(item.default.is_some() && item.sig.constness.is_some());
    }

    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        self.const_depth += 1;
        visit::visit_item_const(self, item);
        self.const_depth -= 1;
    }

    fn visit_impl_item_const(&mut self, item: &syn::ImplItemConst) {
        self.const_depth += 1;
        visit::visit_impl_item_const(self, item);
        self.const_depth -= 1;
    }

    fn visit_item_static(&mut self, item: &syn::ItemStatic) {
        self.const_depth += 1;
        visit::visit_item_static(self, item);
        self.const_depth -= 1;
    }

    fn visit_expr_binary(&mut self, node: &syn::ExprBinary) {
        if !has_let(&node.left) && !has_let(&node.right) {
            let (left, right) = (self.source(&node.left), self.source(&node.right));
            let changes = self.at(Genre::BinaryOperator, node.op.span());
            let others = changes
                .iter()
                .map(|(number, change)| (*number, format!("{left} {} {right}", change.replacement)));
            self.choose(node.span(), others.collect());
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &syn::ExprUnary) {
        let operand = self.source(&node.expr);
        let changes = self.at(Genre::UnaryOperator, node.op.span());
        let others =
            changes.iter().map(|(number, change)| (*number, format!("{}{operand}", change.replacement)));
        self.choose(node.span(), others.collect());
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_struct(&mut self, node: &syn::ExprStruct) {
        let whole = self.bytes(node.span());
        let mut others = Vec::new();
        for (index, field) in node.fields.iter().enumerate() {
            let from = self.bytes(field.span()).start;
            let next = node.fields.iter().nth(index + 1).map(|next| self.bytes(next.span()).start);
            let dots = node.dot2_token.map(|dots| self.bytes(dots.span()).start);
            let to = next.or(dots).unwrap_or(whole.end - 1);
            for (number, _) in self.at(Genre::StructField, field.span()) {
                others.push((
                    number,
                    format!("{}{}", &self.text[whole.start..from], &self.text[to..whole.end]),
                ));
            }
        }
        self.choose(node.span(), others);
        visit::visit_expr_struct(self, node);
    }

    fn visit_expr_match(&mut self, node: &syn::ExprMatch) {
        // What the compiler says of arms that are missing, it says of what is matched.
        let arms = node.arms.iter().flat_map(|arm| self.at(Genre::MatchArm, arm.span()));
        let numbers = arms.map(|(number, _)| number).collect();
        self.wraps.push(Wrap { part: self.bytes(node.expr.span()), before: Vec::new(), behind: "", numbers });
        visit::visit_expr_match(self, node);
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        let gone: Vec<u32> = self.at(Genre::MatchArm, arm.span()).iter().map(|(number, _)| *number).collect();
        let mut before: Vec<(String, Option<u32>)> =
            gone.iter().map(|number| (format!("!{} && ", on(*number)), Some(*number))).collect();
        match &arm.guard {
            None if !gone.is_empty() => {
                let end = self.bytes(arm.pat.span()).end;
                before.insert(0, (" if ".to_owned(), None));
                self.wraps.push(Wrap { part: end..end, before, behind: "true", numbers: gone });
            }
            Some((_, guard)) if !has_let(guard) => {
                let mut numbers = gone;
                let guards = self.at(Genre::MatchArmGuard, guard.span());
                let (on_true, on_false): (Vec<_>, Vec<_>) =
                    guards.into_iter().partition(|(_, change)| change.replacement == "true");
                before.extend(
                    on_false.iter().map(|(number, _)| (format!("!{} && ", on(*number)), Some(*number))),
                );
                before.push(("(".to_owned(), None));
                before.extend(
                    on_true.iter().map(|(number, _)| (format!("{} || ", on(*number)), Some(*number))),
                );
                numbers.extend(on_true.iter().chain(&on_false).map(|(number, _)| *number));
                if !numbers.is_empty() {
                    self.wraps.push(Wrap { part: self.bytes(guard.span()), before, behind: ")", numbers });
                }
            }
            _ => {}
        }
        visit::visit_arm(self, arm);
    }
}

/// Whether the expression binds names for what follows it.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(node) => has_let(&node.left) || has_let(&node.right),
        _ => false,
    }
}

fn on(number: u32) -> String {
    format!("::ccm_mutants_switch::on({number})")
}

/// Writes the text with what is wrapped around its parts.
fn render(source: &str, wraps: &mut [Wrap]) -> Switched {
    // The wider of two that begin at the same place opens first.
    wraps.sort_by_key(|wrap| (wrap.part.start, usize::MAX - wrap.part.end));
    let (mut text, mut owners, mut open, mut read) =
        (String::new(), Vec::new(), Vec::<(usize, &Wrap)>::new(), 0);
    let close = |text: &mut String, owners: &mut Vec<_>, read: &mut usize, (begun, wrap): (usize, &Wrap)| {
        text.push_str(&source[*read..wrap.part.end]);
        *read = wrap.part.end;
        text.push_str(wrap.behind);
        owners.push((begun..text.len(), wrap.numbers.clone()));
    };
    for wrap in wraps.iter() {
        while let Some(last) =
            open.pop_if(|(_, last)| last.part.end <= wrap.part.start && last.part != wrap.part)
        {
            close(&mut text, &mut owners, &mut read, last);
        }
        text.push_str(&source[read..wrap.part.start]);
        read = wrap.part.start;
        open.push((text.len(), wrap));
        for (piece, number) in &wrap.before {
            let begun = text.len();
            text.push_str(piece);
            owners.extend(number.map(|number| (begun..text.len(), vec![number])));
        }
    }
    while let Some(last) = open.pop() {
        close(&mut text, &mut owners, &mut read, last);
    }
    text.push_str(&source[read..]);
    owners.sort_by_key(|(range, _)| range.len());
    Switched { text, owners, without: Vec::new() }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn byte(&self, text: &str, place: LineColumn) -> usize {
        let line = self.0[place.line - 1];
        text[line..].char_indices().nth(place.column).map_or(text.len(), |(at, _)| line + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Span;

    const TEXT: &str = "\
fn chosen(a: i32, b: Option<i32>) -> bool {
    match b {
        Some(b) if b > a => !known(a),
        None => S { a, b }.is_new(),
        _ => a + 1 > 2,
    }
}

const fn fixed() -> i32 {
    1 + 1
}
";

    fn change(genre: Genre, line: usize, text: &str, replacement: &str) -> Change {
        let column = TEXT.lines().nth(line - 1).unwrap().find(text).unwrap() + 1;
        Change {
            name: String::new(),
            file: String::new(),
            function: None,
            genre,
            replacement: replacement.to_owned(),
            span: Span { start: Place { line, column } },
        }
    }

    #[test]
    fn every_change_stands_behind_its_switch_and_the_rest_as_it_was() {
        let changes = [
            (change(Genre::FnValue, 2, "match", "true"), "{ if ON(1) { return true; } \n"),
            (change(Genre::MatchArm, 3, "Some", ""), "Some(b) if !ON(2) && ("),
            (change(Genre::MatchArmGuard, 3, "b > a", "true"), "(ON(3) || "),
            (change(Genre::BinaryOperator, 3, "> a", "<"), "(if ON(4) { b < a } else { b > a })"),
            (change(Genre::UnaryOperator, 3, "!", ""), "(if ON(5) { known(a) } else { !known(a) })"),
            (change(Genre::MatchArm, 4, "None", ""), "None if !ON(6) && true =>"),
            (
                change(Genre::StructField, 4, "b }", ""),
                "(if ON(7) { S { a, } } else { S { a, b } }).is_new()",
            ),
            (change(Genre::BinaryOperator, 5, "+", "*"), "(if ON(8) { a * 1 } else { a + 1 }) > 2"),
        ];
        let numbered: Vec<(u32, &Change)> = (1..).zip(changes.iter().map(|(change, _)| change)).collect();
        let switched = switch(TEXT, &numbered);
        assert!(switched.without.is_empty(), "{:?}", switched.without);
        syn::parse_file(&switched.text).expect("source that compiles");
        let text = switched.text.replace("::ccm_mutants_switch::on(", "ON(");
        for (_, expected) in changes {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert_eq!(switch(TEXT, &[]).text, TEXT);
    }

    #[test]
    fn what_the_compiler_works_out_has_no_switch() {
        let change = change(Genre::BinaryOperator, 10, "+", "*");
        let switched = switch(TEXT, &[(1, &change)]);
        assert_eq!((switched.text.as_str(), &switched.without[..]), (TEXT, &[1][..]));
    }
}
