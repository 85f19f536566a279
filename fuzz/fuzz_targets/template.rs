//! Any text as a template: text or an error that is placed within it, and nothing expanded twice.
#![no_main]

use ccm_expr::{Map, Template, Value, has_template};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let environment = Map::from_iter([
        ("i".into(), Value::Int(1)),
        ("s".into(), Value::from("{{ i }} ${ i }")),
        ("n".into(), Value::Null),
    ]);
    match Template::parse(text).and_then(|template| template.render(&environment)) {
        Ok(rendered) if !has_template(text) => assert_eq!(rendered, text),
        Ok(_) => {}
        Err(error) => assert!(text.get(error.span.clone()).is_some(), "{error} at {:?}", error.span),
    }
});
