//! Secret values: every result that is computed from one is secret, and nothing that is shown contains one.

use std::sync::Arc;

use ccm_expr::{
    Arguments, CallError, Doubt, Environment, MASK, Map, Path, Program, Template, Value, function_names,
};

/// Variables, and `hide(value)`, which marks a value as secret.
struct World(Map);

impl World {
    fn new() -> Self {
        let user = Map::from_iter([
            ("name".into(), "Anna".into()),
            ("password".into(), Value::secret("canary")),
            ("pin".into(), Value::secret(7_i64)),
            ("admin".into(), Value::secret(true)),
            ("nothing".into(), Value::secret(Value::Null)),
            ("list".into(), vec!["a".into(), Value::secret("canary")].into()),
            ("json".into(), Value::secret(r#"{"canary": ["canary", true]}"#)),
        ]);
        Self(Map::from_iter([("user".into(), user.into())]))
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
        &["hide", "plain", "double", "lookup"]
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        match (name, &**arguments) {
            ("hide", [value]) => Ok(Value::secret(value.clone())),
            ("plain", [Value::Str(text)]) => Ok(Value::Str(text.clone())),
            ("double", [Value::Int(number)]) => Ok(Value::Int(number * 2)),
            (_, arguments) => Err(CallError::at(0, format!("no result for {arguments:?}"))),
        }
    }

    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn note(&self, doubt: Doubt) {
        assert!(!format!("{doubt:?}").contains("canary"), "{doubt:?}");
    }
}

fn evaluate(code: &str) -> Value {
    let program = Program::compile(code).unwrap_or_else(|error| panic!("{code}: {error}"));
    program.evaluate(&World::new()).unwrap_or_else(|error| panic!("{code}: {error}"))
}

/// The value without the marks in it.
fn revealed(value: &Value) -> Value {
    match value.reveal() {
        Value::List(items) => items.iter().map(revealed).collect(),
        Value::Map(entries) => Value::from(
            entries.iter().map(|(name, value)| (Arc::clone(name), revealed(value))).collect::<Map>(),
        ),
        other => other.clone(),
    }
}

/// Each line: an expression, its value, and the value as it is shown.
#[test]
fn results_of_secrets_are_secret_except_booleans() {
    let mut failures = Vec::new();
    for line in include_str!("language/secrets.txt").lines() {
        if line.is_empty() || line.starts_with("## ") {
            continue;
        }
        let [code, value, shown] = line.splitn(3, " => ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let found = evaluate(code);
        let have = format!("{} => {found}", revealed(&found));
        if have != format!("{value} => {shown}") {
            failures.push(format!("{code} => {have}"));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_function_is_in_the_table_of_secrets() {
    let table = include_str!("language/secrets.txt");
    let missing: Vec<_> = function_names()
        .filter(|name| !["now"].contains(name) && !table.contains(&format!("{name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn errors_do_not_quote_secrets() {
    for code in [
        "int(user.password)",
        "float(user.password)",
        "duration(user.password)",
        "timezone(user.password)",
        "date(user.password)",
        "fromJSON(user.password)",
        "fromBase64(user.password)",
        "double(user.password)",
        "lookup(user.password)",
        "\"x\" matches (user.password + \"(\")",
        "user.password + 1",
        "-user.password",
        "user.password[user.pin]",
        "[1][user.pin]",
        "user.password.first",
        "user.password ? 1 : 2",
        "user.password < 1",
        "{(user.password): 1}",
        "groupBy(user.list, #)",
        "fromPairs([[user.password, 1]])",
        "join([user.password, 1])",
        "count([user.password])",
        "filter([user.password], #)",
        "1 .. user.password",
        "fromJSON(user.json).canarx.x",
    ] {
        let error = Program::compile(code).unwrap().evaluate(&World::new()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{code}: {error:?}");
    }
}

#[test]
fn output_of_a_secret_is_masked() {
    let user = World::new().variable("user").unwrap();
    let json = serde_json::Value::from(&user).to_string();
    for shown in [format!("{user:?}"), user.to_string(), serde_json::to_string(&user).unwrap(), json] {
        assert!(!shown.contains("canary") && shown.contains(MASK), "{shown}");
    }
    assert_eq!(user.member("password").unwrap().to_text(), MASK);
}

#[test]
fn template_with_a_secret_is_secret() {
    for (text, value, is_secret) in [
        ("p = ${ user.password }", "p = canary", true),
        ("l = ${ user.list }", "l = [\"a\",\"canary\"]", true),
        ("n = ${ user.name }", "n = Anna", false),
        ("a = ${ user.admin ? \"yes\" : \"no\" }", "a = yes", false),
    ] {
        let rendered = Template::parse(text).unwrap().render(&World::new()).unwrap();
        assert_eq!((rendered.text.as_str(), rendered.is_secret), (value, is_secret), "{text}");
        let evaluated = Template::parse(text).unwrap().evaluate(&World::new()).unwrap();
        assert_eq!((evaluated.is_secret(), evaluated == value.into()), (is_secret, true), "{text}");
    }
}

#[test]
fn path_to_a_secret_is_secret() {
    let root = Value::from(World::new().0);
    for (path, value, shown) in [
        ("user.password", "\"canary\"", "\"[secret]\""),
        ("user.list", "[\"a\",\"canary\"]", "[\"a\",\"[secret]\"]"),
        ("user.list.#", "2", "2"),
        ("user.list.#(%\"can*\")", "\"canary\"", "\"[secret]\""),
        ("user.list.@tostr", "\"[\\\"a\\\", \\\"canary\\\"]\"", "\"[secret]\""),
        ("user.json.@fromstr.canary.0", "\"canary\"", "\"[secret]\""),
        ("user.json.@fromstr.@keys", "[\"canary\"]", "\"[secret]\""),
        (
            "user.{name,password}",
            r#"{"name":"Anna","password":"canary"}"#,
            r#"{"name":"Anna","password":"[secret]"}"#,
        ),
    ] {
        let found = Path::parse(path).unwrap().require(&root).unwrap();
        assert_eq!(
            (revealed(&found).to_string().as_str(), found.to_string().as_str()),
            (value, shown),
            "{path}"
        );
    }
}

/// The language does the same with secrets as with other values.
#[test]
fn secrets_change_no_result() {
    const VARIABLES: &str = r#"{
        "str": "hello", "n": 7, "nothing": null, "array": [1, 2, 3, 4, 5],
        "user": {"name": "Anna", "age": 30, "tags": ["a", "b"], "address": null},
        "users": [{"name": "Anna", "age": 30}, {"name": "Bert", "age": 25}, {"name": "Carl", "age": 41}]
    }"#;
    fn hidden(value: &Value) -> Value {
        match value {
            Value::List(items) => items.iter().map(hidden).collect(),
            Value::Map(entries) => Value::from(
                entries.iter().map(|(name, value)| (Arc::clone(name), hidden(value))).collect::<Map>(),
            ),
            other => Value::secret(other.clone()),
        }
    }
    let plain: Value = serde_json::from_str(VARIABLES).unwrap();
    let worlds = [&plain, &hidden(&plain)].map(|value| World(value.as_map().unwrap().clone()));
    let mut compared = 0;
    for line in include_str!("language/results.txt").lines().filter(|line| !line.starts_with("## ")) {
        let Some((code, _)) = line.rsplit_once(" => ") else { continue };
        let [open, secret] = worlds.each_ref().map(|world| Program::compile(code).unwrap().evaluate(world));
        match (open, secret) {
            (Ok(open), Ok(secret)) => assert_eq!(revealed(&secret), open, "{code}"),
            // Names of members are shown.
            (Ok(_), Err(error)) => assert!(error.to_string().contains("cannot be a key"), "{code}: {error}"),
            (open, _) => assert!(open.is_err(), "{code}"),
        }
        compared += 1;
    }
    assert!(compared > 400, "{compared}");
}
