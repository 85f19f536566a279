//! Tables of expressions with their results and their errors, written from the language's definition.
//!
//! One case a line, `expression => result`; `## ` begins a heading.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use ccm_expr::{Arguments, CallError, Environment, Map, Program, Value};

const VARIABLES: &str = r#"{
    "str": "hello", "n": 7, "nothing": null, "array": [1, 2, 3, 4, 5],
    "user": {"name": "Anna", "age": 30, "tags": ["a", "b"], "address": null},
    "users": [{"name": "Anna", "age": 30}, {"name": "Bert", "age": 25}, {"name": "Carl", "age": 41}]
}"#;

struct World(Map);

impl World {
    fn new() -> Self {
        let variables: Value = serde_json::from_str(VARIABLES).unwrap();
        Self(variables.as_map().unwrap().clone())
    }
}

impl Environment for World {
    fn variable(&self, name: &str) -> Option<Value> {
        self.0.variable(name)
    }

    fn variable_names(&self) -> Vec<String> {
        self.0.variable_names()
    }

    fn function_names(&self) -> &[&str] {
        &["double", "lookup"]
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        match (name, &**arguments) {
            ("double", [Value::Int(number)]) => Ok(Value::Int(number * 2)),
            ("double", [_, ..]) => Err(CallError::at(0, "expected an int").with_help("give it a number")),
            _ => Err(CallError::new("nothing is there")),
        }
    }

    fn now(&self) -> jiff::Timestamp {
        "2024-02-03T04:05:06Z".parse().unwrap()
    }
}

/// The lines of a table, without headings.
fn table(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with("## ") && !line.is_empty());
    lines.map(|line| line.rsplit_once(" => ").unwrap_or_else(|| panic!("no result in `{line}`")))
}

#[test]
fn expressions_have_their_results() {
    let world = World::new();
    let mut failures = Vec::new();
    for (code, want) in table(include_str!("language/results.txt")) {
        let wanted: Value = serde_json::from_str(want).unwrap_or_else(|error| panic!("{code}: {error}"));
        match Program::compile(code).and_then(|program| program.evaluate(&world)) {
            Ok(value) if same(&wanted, &value) => {}
            Ok(value) => failures.push(format!("{code}\n  want {want}\n  have {value:?}")),
            Err(error) => {
                failures.push(format!("{code}\n  want {want}\n  error {error} at {:?}", error.span));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Equal and of the same type, through and through; durations are written as their nanoseconds, months
/// and days of the week as their numbers.
fn same(want: &Value, have: &Value) -> bool {
    match (want, have) {
        (Value::Int(want), Value::Duration(have)) => want == have,
        (Value::Int(want), Value::Named(have)) => *want == have.number(),
        (Value::List(want), Value::List(have)) => {
            want.len() == have.len() && want.iter().zip(have.iter()).all(|(want, have)| same(want, have))
        }
        (Value::Map(want), Value::Map(have)) => {
            want.len() == have.len()
                && want.iter().zip(have.iter()).all(|(want, have)| want.0 == have.0 && same(want.1, have.1))
        }
        _ => want == have && want.type_name() == have.type_name(),
    }
}

/// Each line of the table: the expression, the bytes that are marked, their text, the message, and the help.
#[test]
fn mistakes_are_named_and_placed() {
    let world = World::new();
    let mut failures = Vec::new();
    for (code, want) in table(include_str!("language/errors.txt")) {
        let have = match Program::compile(code).and_then(|program| program.evaluate(&world)) {
            Ok(value) => format!("a value: {value:?}"),
            Err(error) => {
                let marked = &code[error.span.clone()];
                let help = error.help.map(|help| format!(" [{help}]")).unwrap_or_default();
                format!("{}..{} `{marked}` {}{help}", error.span.start, error.span.end, error.kind)
            }
        };
        if have != want {
            failures.push(format!("{code} => {have}"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
