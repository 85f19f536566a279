//! Values on their way in and out, and objects that gather what is read of them and nothing else.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::Mutex;

use ccm_expr::{Map, Object, Path, Program, Template, Value};

/// Facts in three sections, which notes what was gathered.
struct Facts {
    gathered: Mutex<Vec<String>>,
}

impl Object for Facts {
    fn member(&self, name: &str) -> Option<Value> {
        if !self.names().iter().any(|known| known.as_ref() == name) {
            return None;
        }
        self.gathered.lock().unwrap().push(name.to_owned());
        let json = format!(r#"{{"info": {{"name": "{name}", "list": [1, 2]}}}}"#);
        Some(serde_json::from_str(&json).unwrap())
    }

    fn names(&self) -> Vec<Arc<str>> {
        vec!["host".into(), "cpu".into(), "memory".into()]
    }
}

/// Runs the work with facts, and returns what it came to and what was gathered for it.
fn gathering(work: impl Fn(&Map) -> String) -> (String, Vec<String>) {
    let facts = Arc::new(Facts { gathered: Mutex::default() });
    let environment = Map::from_iter([("Facts".into(), Value::Object(facts.clone()))]);
    let result = work(&environment);
    let gathered = facts.gathered.lock().unwrap().clone();
    (result, gathered)
}

fn evaluating(code: &str) -> (String, Vec<String>) {
    gathering(|environment| Program::compile(code).unwrap().evaluate(environment).unwrap().to_string())
}

#[test]
fn only_the_section_that_is_read_is_gathered() {
    let host = || vec!["host".to_owned()];
    assert_eq!(evaluating("Facts.host.info.name"), ("\"host\"".into(), host()));
    assert_eq!(evaluating("Facts['host'].info.list[1]"), ("2".into(), host()));
    assert_eq!(evaluating("Facts?.host?.info?.name"), ("\"host\"".into(), host()));
    assert_eq!(evaluating("get(Facts, 'host').info.name"), ("\"host\"".into(), host()));
    assert_eq!(evaluating("Facts.nothing ?? 1"), ("1".into(), vec![]));
    assert_eq!(evaluating("true ? 1 : Facts.host"), ("1".into(), vec![]));
}

#[test]
fn names_are_known_without_gathering() {
    assert_eq!(evaluating("'cpu' in Facts"), ("true".into(), vec![]));
    assert_eq!(evaluating("'disk' in Facts"), ("false".into(), vec![]));
    assert_eq!(evaluating("keys(Facts)"), ("[\"host\",\"cpu\",\"memory\"]".into(), vec![]));
    assert_eq!(evaluating("len(Facts)"), ("3".into(), vec![]));
    assert_eq!(evaluating("type(Facts)"), ("\"map\"".into(), vec![]));
}

#[test]
fn paths_and_templates_gather_no_more_than_expressions() {
    let find = |text: &str| {
        gathering(|environment| {
            Path::parse(text).unwrap().require(&Value::from(environment.clone())).unwrap().to_string()
        })
    };
    assert_eq!(find("Facts.cpu.info.name"), ("\"cpu\"".into(), vec!["cpu".into()]));
    assert_eq!(find("Facts.m*.info.name"), ("\"memory\"".into(), vec!["memory".into()]));
    assert_eq!(find("Facts.@keys.#"), ("3".into(), vec!["host".into(), "cpu".into(), "memory".into()]));
    let render = |environment: &Map| {
        Template::parse("a ${ Facts.cpu.info.name }").unwrap().render(environment).unwrap().text
    };
    assert_eq!(gathering(render), ("a cpu".into(), vec!["cpu".into()]));
}

#[test]
fn an_object_prints_and_compares_like_the_map_it_stands_for() {
    let (text, gathered) = evaluating("[Facts]");
    assert!(text.starts_with("[{\"host\":{\"info\":"), "{text}");
    assert_eq!(gathered.len(), 3);
    assert_eq!(evaluating("Facts == Facts").0, "true");
    assert_eq!(evaluating("Facts == {a: 1}").0, "false");
    assert_eq!(evaluating("len(values(Facts))").0, "3");
}

#[test]
fn json_keeps_its_order_and_its_types() {
    let text = r#"{"z":1,"a":[1.5,true,null,"x"],"m":{"k":{}}}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(value.to_string(), text);
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
    let json = serde_json::Value::from(&value);
    assert_eq!(json.to_string(), text);
    assert_eq!(Value::from(json), value);
}

#[test]
fn whole_numbers_beyond_64_bits_keep_their_digits_as_text() {
    let value: Value =
        serde_json::from_str("[9223372036854775807, 9223372036854775808, 1e400]").unwrap_or_default();
    // JSON itself refuses what no fraction can hold.
    assert_eq!(value, Value::Null);
    let value: Value = serde_json::from_str("[9223372036854775807, 18446744073709551615, 1e30]").unwrap();
    let kinds: Vec<_> = value.as_list().unwrap().iter().map(Value::type_name).collect();
    assert_eq!(kinds, ["int", "string", "float"]);
    assert_eq!(Value::from(u64::MAX), Value::from("18446744073709551615"));
    // What a fraction is written as reads back as the same fraction.
    let fraction = Value::Float(1.119_864_462_594_823_2e19);
    assert_eq!(serde_json::from_str::<Value>(&fraction.to_string()).unwrap(), fraction);
    assert_eq!(Value::from(serde_json::json!(u64::MAX)), Value::from("18446744073709551615"));
}

#[test]
fn fractions_are_written_as_in_text_and_never_as_null() {
    let written = |code: &str| {
        let value = Program::compile(code).unwrap().evaluate(&Map::new()).unwrap();
        serde_json::to_string(&value).map_err(|error| error.to_string())
    };
    assert_eq!(written("[6 / 2, 7 / 2, 1e30]").as_deref(), Ok("[3,3.5,1e+30]"));
    assert_eq!(written("{m: date('2023-08-14').Month()}").as_deref(), Ok("{\"m\":8}"));
    assert_eq!(written("[[1 / 0]]").unwrap_err(), "+Inf is not a finite number");
}

#[test]
fn cloning_shares() {
    let value: Value = serde_json::from_str(r#"{"a": [1, 2], "s": "text"}"#).unwrap();
    let (Some(one), Some(other)) = (value.member("a"), value.clone().member("a")) else {
        panic!("no member")
    };
    let (Value::List(one), Value::List(other)) = (one, other) else { panic!("no list") };
    assert!(Arc::ptr_eq(&one, &other));
}

#[test]
fn evaluating_hands_out_what_is_there_and_not_a_copy() {
    let environment =
        Map::from_iter([("Data".into(), serde_json::from_str::<Value>(r#"{"x": {"y": [1]}}"#).unwrap())]);
    let list = |value: Value| if let Value::List(items) = value { items } else { panic!("no list") };
    let held = list(environment["Data"].member("x").unwrap().member("y").unwrap());
    let found = list(Program::compile("Data.x.y").unwrap().evaluate(&environment).unwrap());
    assert!(Arc::ptr_eq(&held, &found));
    let root = Value::from(environment);
    let found = list(Path::parse("Data.x.y").unwrap().require(&root).unwrap());
    assert!(Arc::ptr_eq(&held, &found));
}

#[test]
fn names_that_an_expression_uses_can_be_listed() {
    let program = Program::compile("let a = Data.x; a + f(Facts.y) + len(Data.z) + map([1], b)[0]").unwrap();
    assert_eq!(program.variables().collect::<Vec<_>>(), ["Data", "Facts", "b"]);
    assert_eq!(program.functions().collect::<Vec<_>>(), ["f"]);
    let errors = program.check(&Map::from_iter([("Data".into(), Value::Null)]));
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["unknown variable `Facts`", "unknown variable `b`", "unknown function `f`"]);
}
