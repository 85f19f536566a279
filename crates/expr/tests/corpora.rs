//! The expressions and results that the language's own tests are made of, when they are at hand: more of what the tables in
//! `language/` hold.

#![allow(clippy::disallowed_methods, reason = "a test reads what it is about")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{io::Write, path::PathBuf};

use ccm_expr::{Arguments, CallError, Environment, Map, Program, Value};

/// The text of a corpus, or nothing when it is not there.
fn corpus(name: &str) -> Option<String> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("CCM_CORPORA").map_or(beside, PathBuf::from);
    std::fs::read_to_string(folder.join(name)).ok()
}

/// Says that there is no corpus. That is no failure anywhere: the tables in `language/` are the project's own.
fn skipped(name: &str) {
    let line = format!("skipped: no corpus {name}; set CCM_CORPORA to the folder that has it\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Variables from JSON, and one function.
struct Variables(Map);

impl Environment for Variables {
    fn variable(&self, name: &str) -> Option<Value> {
        self.0.variable(name)
    }

    fn variable_names(&self) -> Vec<String> {
        self.0.variable_names()
    }

    fn function_names(&self) -> &[&str] {
        &["fn"]
    }

    fn call(&self, _: &str, _: &Arguments<'_>) -> Result<Value, CallError> {
        Ok(Value::Bool(false))
    }
}

fn map(json: &str) -> Map {
    let value: Value = serde_json::from_str(json).unwrap();
    value.as_map().unwrap().clone()
}

fn evaluate(code: &str, environment: &dyn Environment) -> Result<Value, String> {
    let shown = |error: ccm_expr::Error| format!("{error} at {:?}", error.span);
    Program::compile(code).and_then(|program| program.evaluate(environment)).map_err(shown)
}

const BYTES: &str =
    "a string of Go can hold any bytes; here text is always Unicode and anything else an error";
const LETTERS: &str = "the elements of a string are bytes in Go, which are numbers; here they are characters";
const TYPED_NIL: &str = "a missing group is a nil array in Go; here nil has no type and is not an array";

/// Cases about what only Go has, with the reason why they differ here.
const OWN_WAY: &[(&str, &str)] = &[
    ("b'\\u0041'", BYTES),
    ("fromBase64(toJSON(ok))", BYTES),
    ("fromBase64(toJSON(true))", BYTES),
    ("fromBase64(type(false))", BYTES),
    ("fromBase64(type(ok))", BYTES),
    ("fromBase64(type(true))", BYTES),
    ("-sum(str ?? 0)", LETTERS),
    ("groupBy(str ?? f64, # ^ #)", LETTERS),
    ("none(str ?? ok, f64 >= #)", LETTERS),
    ("flatten(groupBy(list, #).i)", TYPED_NIL),
    ("groupBy(array, foo).foobar | groupBy(0)", TYPED_NIL),
    ("groupBy(groupBy(array, ok).i, #?.[ok][.f64:])", TYPED_NIL),
    ("int(i / 0)", "Go leaves open what infinity is as a whole number; here it is an error"),
];

fn own_way(code: &str) -> bool {
    OWN_WAY.iter().any(|(own, reason)| *own == code && !reason.is_empty())
}

#[test]
fn expressions_have_the_results_of_the_language() {
    let Some(text) = corpus("expr-results.json") else { return skipped("expr-results.json") };
    let corpus: serde_json::Value = serde_json::from_str(&text).unwrap();
    let shared = map(&corpus["variables"].to_string());
    let mut builtin = shared.clone();
    builtin.extend(map(
        r#"{"ArrayOfInt": [1, 2, 3], "arr": [1, 2, 3], "x": 42, "m": {"a": 1, "b": 2}, "json": "[\"1\"]",
            "arrStr": ["1", "2", "3"]}"#,
    ));
    let mut failures = Vec::new();
    for case in corpus["cases"].as_array().unwrap() {
        let code = case["code"].as_str().unwrap();
        if own_way(code) {
            continue;
        }
        let environment = if case["env"] == "builtin" { &builtin } else { &shared };
        let mut environment = environment.clone();
        // These two come from a table with lists of its own.
        if code == "reverse(ArrayOfInt)" || code == "reverse(ArrayOfFloat)" {
            environment.extend(map(r#"{"ArrayOfInt": [2, 1, 3], "ArrayOfFloat": [3.0, 2.0, 1.0]}"#));
        }
        let result = evaluate(code, &Variables(environment));
        let want = Value::from(case["want"].clone());
        if !agrees(&want, &result) {
            failures.push(format!("{code}\n  want {want}\n  have {result:?}"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A text that reads like an error of the language stands for any error.
fn agrees(want: &Value, result: &Result<Value, String>) -> bool {
    let message = ["invalid", "cannot", "not enough", "too many", "reflect:"];
    match (want, result) {
        (Value::Str(text), Err(_)) => message.iter().any(|start| text.starts_with(start)),
        // The range is larger than what an evaluation may make.
        (Value::Int(-1), Err(error)) => error.contains("more than"),
        (want, Ok(value)) => want == value && (want.type_name() == value.type_name()),
        (_, Err(_)) => false,
    }
}

#[test]
fn expressions_that_must_run_do() {
    let Some(text) = corpus("expr-compiles.txt") else { return skipped("expr-compiles.txt") };
    // The last is named in arguments of calls that never happen.
    let environment = Variables(map(
        r#"{"ok": true, "i": 1, "str": "str", "f64": 0.5, "array": [1, 2, 3, 4, 5], "foo": {"Bar": "foo"},
            "list": [{"Bar": "bar"}, {"Bar": "baz"}], "foobar": null}"#,
    ));
    let failures: Vec<_> = text
        .lines()
        .filter(|code| !own_way(code))
        .filter_map(|code| evaluate(code, &environment).err().map(|error| format!("{code}\n  {error}")))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn paths_have_the_results_of_their_syntax() {
    let Some(text) = corpus("gjson.json") else { return skipped("gjson.json") };
    let corpus: serde_json::Value = serde_json::from_str(&text).unwrap();
    let document = Value::from(corpus["document"].clone());
    let mut failures = Vec::new();
    for case in corpus["cases"].as_array().unwrap() {
        let path = case["path"].as_str().unwrap();
        let found = ccm_expr::Path::parse(path).unwrap().find(&document).unwrap();
        let want = (case["exists"] == true).then(|| Value::from(case["want"].clone()));
        if found != want {
            failures.push(format!("{path}\n  want {want:?}\n  have {found:?}"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
