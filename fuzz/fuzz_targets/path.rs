//! Any text as a path: a value or an error that is placed within the text, never a panic.
#![no_main]

use ccm_expr::{Path, Value};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let root: Value = serde_json::from_str(
        r#"{"a": {"b": [1, {"c": "x"}, [2, [3]]]}, "l": [{"k": 1, "v": true}, {"k": 2, "v": "0"}], "s": "{\"x\":1}", "n": null}"#,
    )
    .unwrap();
    match Path::parse(text).and_then(|path| path.require(&root)) {
        Ok(value) => drop(value.to_string()),
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{error} at {:?}", error.span),
    }
});
