//! Any bytes as a document: a tree whose values are all inside the source, or errors at places that exist.
#![no_main]

use ccm_document::{Colour, Node, Source, Span, Value, read, render, to_value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::read("fuzz", bytes.to_vec()) else { return };
    let found = match read(&source) {
        Ok(parsed) => {
            walk(&parsed.root, &source);
            to_value(&parsed.root);
            parsed.diagnostics
        }
        Err(diagnostics) => diagnostics,
    };
    for diagnostic in found.iter() {
        diagnostic.span.iter().for_each(|span| assert_inside(*span, &source));
    }
    render(&found, &source, Colour::Off);
});

fn walk(node: &Node, source: &Source) {
    assert_inside(node.span, source);
    match &node.value {
        Value::Scalar(scalar) => drop(scalar.typed()),
        Value::Seq(items) => items.iter().for_each(|item| walk(item, source)),
        Value::Map(entries) => entries.iter().for_each(|entry| {
            assert_inside(entry.key_span, source);
            walk(&entry.value, source);
        }),
    }
}

fn assert_inside(span: Span, source: &Source) {
    assert!(source.text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is not in the source");
}
