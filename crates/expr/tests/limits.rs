//! Nothing that can be written runs, grows or nests without end, and nothing panics.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use ccm_expr::{Environment, Error, ErrorKind, Exhausted, Map, Memory, Path, Program, Template, Value};
use proptest::prelude::*;

fn environment() -> Map {
    let json = r#"{"ok": true, "i": 1, "f": 0.5, "str": "str", "none": null, "array": [1, 2.5, "x", null, true],
        "foo": {"Bar": "foo", "n": {"m": [1, {"k": "v"}]}}, "list": [{"a": 1}, {"a": 2, "b": "z"}]}"#;
    serde_json::from_str::<Value>(json).unwrap().as_map().unwrap().clone()
}

fn evaluate(code: &str) -> Result<Value, Error> {
    Program::compile(code)?.evaluate(&environment())
}

fn message(code: &str) -> String {
    evaluate(code).unwrap_err().to_string()
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let many = 100_000;
    for text in [
        "(".repeat(1_000_000),
        "[".repeat(many),
        "{a:".repeat(many),
        "-".repeat(many),
        "not ".repeat(many),
        "!".repeat(many),
        "1+".repeat(many) + "1",
        "1**".repeat(many) + "1",
        "a?.".repeat(many) + "a",
        "a.".repeat(many) + "a",
        "a[".repeat(many),
        "true?".repeat(many),
        "map([],".repeat(many),
        "let a=1;".repeat(many) + "a",
        "if true {".repeat(many),
        "1|f(".repeat(many),
        "nil??".repeat(many) + "1",
        "/*".repeat(many),
        "\"".repeat(many + 1),
        (0..many).map(|place| format!("a{place},")).fold("[".to_owned(), |text, name| text + &name) + "]",
    ] {
        assert!(Program::compile(&text).is_err());
    }
}

#[test]
fn what_people_write_is_not_too_deep() {
    let sum = vec!["1"; 300].join(" + ");
    assert_eq!(evaluate(&sum).unwrap(), Value::Int(300));
    let any = vec!["str == 'x'"; 200].join(" or ");
    assert_eq!(evaluate(&any).unwrap(), Value::Bool(false));
    let parentheses = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(evaluate(&parentheses).unwrap(), Value::Int(1));
    let lets: Vec<_> = (0..50).map(|place| format!("let x{place} = {place}; ")).collect();
    assert_eq!(evaluate(&(lets.concat() + "x0 + x49")).unwrap(), Value::Int(49));
    let items = vec!["1"; 10_000].join(",");
    assert_eq!(evaluate(&format!("len([{items}])")).unwrap(), Value::Int(10_000));
}

/// The deepest trees that are accepted fit on the stack of a thread, also without optimisation.
#[test]
fn the_deepest_that_is_accepted_can_be_evaluated() {
    let deepest = |make: &dyn Fn(usize) -> String| {
        let accepted = (1..1000).take_while(|count| Program::compile(&make(*count)).is_ok()).last().unwrap();
        let _ = evaluate(&make(accepted));
        accepted
    };
    assert!(deepest(&|count| "1 + ".repeat(count) + "1") > 300);
    assert!(deepest(&|count| "foo?.".repeat(count) + "a") > 300);
    assert!(deepest(&|count| format!("{}1{}", "(".repeat(count), ")".repeat(count))) > 50);
    assert!(deepest(&|count| format!("{}1{}", "[".repeat(count), "]".repeat(count))) > 50);
    assert!(deepest(&|count| format!("{}i{}", "map([1], ".repeat(count), ")".repeat(count))) > 50);
    assert!(deepest(&|count| format!("{}i{}", "map([1], {[#, ".repeat(count), "]})".repeat(count))) > 30);
    assert!(deepest(&|count| format!("{}i{}", "string(len([".repeat(count), "]))".repeat(count))) > 30);
    assert!(deepest(&|count| format!("{}i{}", "{a: ".repeat(count), "}".repeat(count))) > 50);
    assert!(deepest(&|count| format!("{}1", "ok ? ok : ".repeat(count))) > 50);
    assert!(deepest(&|count| format!("{}1", "ok and ok ? ".repeat(count)) + &" : 2".repeat(count)) > 50);
    assert!(deepest(&|count| format!("{}x0", "let x0 = [i]; ".repeat(count))) > 50);
    assert!(deepest(&|count| "-".repeat(count) + "i") > 50);
    assert!(deepest(&|count| "1 ** ".repeat(count) + "i") > 50);
    assert!(deepest(&|count| format!("{}i{}", "array[".repeat(count), "]".repeat(count))) > 50);
}

#[test]
fn programs_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<Template>();
    shared::<Path>();
    shared::<Value>();
    shared::<Error>();
}

#[test]
fn growth_is_bounded() {
    assert!(message("1..9223372036854775807").contains("elements"));
    assert!(message("-9223372036854775807..9223372036854775807").contains("elements"));
    assert!(message("repeat('abc', 9223372036854775807)").contains("bytes"));
    assert!(message("reduce(1..100, #acc + #acc, 'abcdef')").contains("bytes"));
    assert!(message("reduce(1..100, concat(#acc, #acc), [1])").contains("more than"));
    assert!(message("reduce(1..100, replace(#acc, 'a', #acc), 'aa')").contains("bytes"));
    assert!(message("join(map(1..1000, repeat('x', 100000)))").contains("bytes"));
    assert!(message("map(1..1000, map(1..1000, map(1..1000, 1)))").contains("more than"));
    assert!(message("all(1..1000, all(1..1000, all(1..1000, true)))").contains("more than"));
}

#[test]
fn values_that_share_their_parts_cannot_blow_up() {
    let doubled = "reduce(1..60, [#acc, #acc], 1)";
    assert!(message(doubled).contains("more than"));
    let doubling = |place| format!("let x{place} = [x{}, x{}]; ", place - 1, place - 1);
    let lets = (1..60).map(doubling).collect::<Vec<_>>().concat();
    for end in ["x59", "toJSON(x59)", "x59 == [x58, x58]", "flatten(x59)", "string(x59)", "{(x59): 1}"] {
        let code = format!("let x0 = 1; {lets}{end}");
        // Those that share the very same parts are equal without looking.
        if !end.contains("==") {
            assert!(message(&code).contains("more than"), "{end}");
        }
    }
    assert!(message("reduce(1..100000, [#acc], 1)").contains("deep"));
    assert!(message("reduce(1..100000, { {a: #acc} }, 1)").contains("deep"));
}

#[test]
fn patterns_are_bounded() {
    assert!(evaluate("'x' matches '(a{1000}){1000}'").is_err());
    assert!(evaluate("'x' matches repeat('(', 10000)").is_err());
    let many = vec!["'x' matches '(a{1000}){9}'"; 1000].join(", ");
    assert_eq!(evaluate(&format!("any([{many}], #)")).unwrap(), Value::Bool(false));
    assert!(message("filter(1..5000, 'x' matches string(#))").contains("steps"));
    assert_eq!(evaluate("len(filter(1..5000, 'x' matches str))").unwrap(), Value::Int(0));
    assert_eq!(evaluate("repeat('a', 10000) matches '^(a+)+$'").unwrap(), Value::Bool(true));
    assert_eq!(evaluate("(repeat('a', 10000) + 'b') matches '^(a+)+$'").unwrap(), Value::Bool(false));
}

#[test]
fn numbers_at_the_edge_do_not_panic() {
    for code in [
        "abs(-9223372036854775807 - 1)",
        "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) % -1",
        "int(1e19)",
        "int(0.0 / 0)",
        "sort([0.0 / 0, 1, 0.0 / 0, 2])",
        "median([0.0 / 0, 1])",
        "max(0.0 / 0, 1)",
        "array[9223372036854775807]",
        "array[-9223372036854775807 - 1]",
        "array[-9223372036854775807 - 1:9223372036854775807]",
        "duration('2562047h') * 9223372036854775807",
        "date('9999-12-31') + duration('2562047h')",
        "date('0000-01-01') - duration('2562047h')",
        "date('2023-02-30')",
        "date('9999-12-31') + 9999 * duration('2562047h')",
        "date('9999-12-31') - date('0000-01-01')",
        "bitshl(1, 9223372036854775807)",
        "take([1], 9223372036854775807)",
        "split('a', 'b', 9223372036854775807)",
        "replace('a', '', 'b', 9223372036854775807)",
        "toJSON(1 / 0)",
        "duration('-2562047h47m16.854775807s').Abs()",
        "duration('2562047h').Round(duration('2562047h'))",
    ] {
        // Either a value or an error; coming back at all is what is asked.
        let _ = evaluate(code);
    }
    assert_eq!(evaluate("(-9223372036854775807 - 1) % -1").unwrap(), Value::Int(0));
}

/// Words and symbols of the language, so that random rows of them often mean something.
const WORDS: &[&str] = &[
    "1",
    "0",
    "-1",
    "2.5",
    "\"a\"",
    "'b'",
    "`c`",
    "true",
    "false",
    "nil",
    "ok",
    "i",
    "f",
    "str",
    "none",
    "array",
    "foo",
    "list",
    "foo.Bar",
    "foo.n.m",
    "#",
    "#acc",
    "#index",
    ".a",
    "?.",
    ".",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    ";",
    "?",
    "??",
    "?:",
    "|",
    "||",
    "&&",
    "and",
    "or",
    "not",
    "!",
    "in",
    "not in",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "^",
    "..",
    "let x =",
    "x",
    "if",
    "else",
    "$env",
    "map(",
    "filter(",
    "reduce(",
    "sortBy(",
    "groupBy(",
    "sum(",
    "count(",
    "all(array,",
    "len(",
    "string(",
    "int(",
    "float(",
    "toJSON(",
    "fromJSON(",
    "keys(",
    "values(",
    "first(",
    "last(",
    "flatten(",
    "concat(",
    "uniq(",
    "sort(",
    "reverse(",
    "join(",
    "split(",
    "replace(",
    "repeat(",
    "max(",
    "min(",
    "mean(",
    "median(",
    "duration('1h')",
    "date('2023-01-02')",
    "now()",
    ".Format(",
    ".Year()",
    "get(",
    "take(",
    "bitshl(",
    "toPairs(",
    "fromPairs(",
    "::",
    "1..3",
    "//",
    "/*",
    "*/",
    "\\",
    "\"",
    "'",
    "@",
];

fn token_soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..24).prop_map(|words| words.join(" "))
}

/// Expressions that are well-formed, nested at random.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "1", "-3", "2.5", "0", "'a'", "''", "true", "nil", "i", "f", "str", "none", "array", "foo",
            "list", "foo.n.m", "array[0]", "(1..3)", "[]", "{}",
        ][..],
    );
    leaf.prop_map(String::from).prop_recursive(5, 60, 3, |inner| {
        let operators = prop::sample::select(
            &[
                "+", "-", "*", "/", "%", "**", "==", "!=", "<", ">=", "and", "or", "in", "contains", "..",
                "matches",
            ][..],
        );
        let functions = prop::sample::select(
            &[
                "len", "string", "toJSON", "keys", "values", "flatten", "sort", "uniq", "reverse", "first",
                "max", "mean", "int", "abs", "type", "sum", "upper", "join", "toPairs", "median",
            ][..],
        );
        let predicates = prop::sample::select(
            &[
                "map",
                "filter",
                "all",
                "any",
                "none",
                "one",
                "find",
                "findLastIndex",
                "groupBy",
                "sortBy",
                "reduce",
                "sum",
            ][..],
        );
        prop_oneof![
            (inner.clone(), operators, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (functions, inner.clone()).prop_map(|(name, argument)| format!("{name}({argument})")),
            (predicates, inner.clone(), inner.clone())
                .prop_map(|(name, list, body)| format!("{name}({list}, ({body}))")),
            (inner.clone(), inner.clone()).prop_map(|(list, key)| format!("map({list}, [#, {key}, #index])")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} ?? {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}?.[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let x = {a}; [x, {b}, x])")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}:]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{{k: {a}, ({b}): 1}}")),
        ]
    })
}

/// Whatever comes back, its place lies within the text and on the borders of characters.
fn placed(text: &str, error: &Error) {
    assert!(text.get(error.span.clone()).is_some(), "{error} at {:?} in {text:?}", error.span);
    assert!(!error.to_string().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_never_panics(text in token_soup()) {
        if let Err(error) = evaluate(&text) {
            placed(&text, &error);
        }
    }

    #[test]
    fn any_text_never_panics(text in "\\PC*") {
        if let Err(error) = evaluate(&text) {
            placed(&text, &error);
        }
        if let Err(error) = Template::parse(&text).and_then(|template| template.evaluate(&environment())) {
            placed(&text, &error);
        }
        let root = Value::from(environment());
        if let Err(error) = Path::parse(&text).and_then(|path| path.require(&root)) {
            placed(&text, &error);
        }
    }

    #[test]
    fn well_formed_expressions_are_read_and_never_panic(text in expression()) {
        // Only patterns that are no regular expressions are refused while reading.
        let program = Program::compile(&text);
        if let Err(error) = &program {
            prop_assert!(error.to_string().starts_with("bad pattern"), "{error}: {text}");
        }
        if let Err(error) = program.and_then(|program| program.evaluate(&environment())) {
            placed(&text, &error);
        }
    }

    #[test]
    fn evaluating_twice_gives_the_same(text in expression()) {
        if let Ok(program) = Program::compile(&text) {
            let once = program.evaluate(&environment()).map(|value| value.to_string());
            let twice = program.evaluate(&environment()).map(|value| value.to_string());
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn template_soup_never_panics(
        parts in prop::collection::vec(prop::sample::select(&["{{", "}}", "${", "}", "{", "$", "'", "\"", "`", " i ", "é", "\\"][..]), 0..20)
    ) {
        let text = parts.concat();
        if let Err(error) = Template::parse(&text).and_then(|template| template.evaluate(&environment())) {
            placed(&text, &error);
        }
    }

    #[test]
    fn text_without_templates_is_itself(text in "[^{]*") {
        prop_assert!(!ccm_expr::has_template(&text));
        prop_assert_eq!(Template::parse(&text).unwrap().evaluate(&Map::new()).unwrap(), Value::from(text));
    }

    #[test]
    fn escaped_text_is_itself(text in "[a-z{}$ '\"]*") {
        let escaped = text.replace("{{", "{{{{").replace("${", "$${");
        // Rows of braces and dollars that run into each other have no escape of their own.
        prop_assume!(!text.contains("{{{") && !text.contains("$$") && !text.contains("${{"));
        prop_assert_eq!(Template::parse(&escaped).unwrap().render(&Map::new()).unwrap().text, text);
    }

    #[test]
    fn path_soup_never_panics(
        parts in prop::collection::vec(prop::sample::select(&[
            "foo", "list", "array", "a", "Bar", "n", "0", "1", "#", "#(", ")", ")#", "a==", "\"z\"", "~true", "%", "!%", "*", "?",
            ".", ".", ".", "|", "@reverse", "@flatten:{\"deep\":true}", "@tostr", "@fromstr", "@group", "@keys", "@join",
            "{", "}", "[", "]", ",", ":", "!", "\\", "é", "\"",
        ][..]), 0..16)
    ) {
        let text = parts.concat();
        let root = Value::from(environment());
        if let Err(error) = Path::parse(&text).and_then(|path| path.require(&root)) {
            placed(&text, &error);
        }
    }

    #[test]
    fn json_survives_the_way_through_a_value(number in any::<f64>(), whole in any::<i64>(), text in "\\PC*") {
        let value = Value::from(vec![Value::Int(whole), Value::from(text.as_str()), Value::Float(number)]);
        let back: Value = serde_json::from_str(&value.to_string()).unwrap();
        prop_assert_eq!(&back.as_list().unwrap()[..2], &value.as_list().unwrap()[..2]);
        if number.is_finite() {
            prop_assert_eq!(&back, &value);
        }
    }
}

#[test]
fn map_pays_for_every_element_it_makes() {
    assert_eq!(evaluate("1..600000 | len()").unwrap(), Value::Int(600_000));
    assert_eq!(evaluate("1..400000 | map(# + 1) | len()").unwrap(), Value::Int(400_000));
    let message = message("1..600000 | map(# + 1) | len()");
    assert_eq!(message, "the expression makes more than 1000000 list or map elements");
}

#[test]
fn what_is_not_a_number_compares_false() {
    for nan in ["0.0 / 0", "(0.0 / 0) + 1"] {
        for operator in ["==", "<", ">", "<=", ">="] {
            for (left, right) in [(nan, nan), (nan, "1"), ("1.5", nan)] {
                let code = format!("({left}) {operator} ({right})");
                assert_eq!(evaluate(&code).unwrap(), Value::Bool(false), "{code}");
            }
        }
        assert_eq!(evaluate(&format!("({nan}) != ({nan})")).unwrap(), Value::Bool(true), "{nan}");
    }
}

#[test]
fn memory_is_shared_by_evaluations_and_given_back_at_their_end() {
    struct Host(Memory);
    impl Environment for Host {
        fn variable(&self, _: &str) -> Option<Value> {
            None
        }
        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }
        fn memory(&self) -> Memory {
            self.0.clone()
        }
    }
    let host = Host(Memory::new(10_000));
    let program = Program::compile("repeat('x', 6000)").unwrap();
    let first = program.evaluate(&host).unwrap();
    program.evaluate(&host).unwrap();
    assert!(!host.0.is_exhausted());
    // From now on one of them is kept.
    host.0.keep(&first).unwrap();
    let error = program.evaluate(&host).unwrap_err();
    assert_eq!(error.kind.innermost(), &ErrorKind::Limit(Exhausted::Memory { limit: 10_000 }));
    assert!(host.0.is_exhausted());
}
