//! Any text as an expression: a value or an error that is placed within the text, never a panic.
#![no_main]

use ccm_expr::{Map, Program, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let environment: Map = serde_json::from_str::<Value>(
        r#"{"ok": true, "i": 1, "f": 0.5, "s": "str", "a": [1, 2, "x", null], "m": {"k": {"n": [1]}}}"#,
    )
    .unwrap()
    .as_map()
    .unwrap()
    .clone();
    match Program::compile(text).and_then(|program| program.evaluate(&environment)) {
        Ok(value) => drop(value.to_string()),
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{error} at {:?}", error.span),
    }
});
