//! Texts and what becomes of them.

mod deserialized;
mod generated;
mod limited;
mod rendered;
mod spans;
mod trees;
mod values;

use super::{Diagnostics, Node, Source, parse};

pub(super) fn source(text: &str) -> Source {
    Source { name: "site.yaml".to_owned(), text: text.to_owned() }
}

pub(super) fn tree(text: &str) -> Node {
    parse(&source(text)).unwrap_or_else(|problems| panic!("{text:?}: {problems:?}"))
}

pub(super) fn problems(text: &str) -> Diagnostics {
    match parse(&source(text)) {
        Ok(node) => panic!("{text:?} was accepted: {node:?}"),
        Err(problems) => problems,
    }
}

/// The tree as JSON.
pub(super) fn json(text: &str) -> String {
    serde_json::to_string(&tree(text)).unwrap()
}

/// `line:column message` of every problem.
pub(super) fn told(text: &str) -> Vec<String> {
    let source = source(text);
    problems(text)
        .iter()
        .map(|problem| {
            let (line, column) = source.line_column(problem.span.unwrap().start);
            format!("{line}:{column} {}", problem.message)
        })
        .collect()
}
