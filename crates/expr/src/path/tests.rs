//! Paths over one document, from the syntax's own description.

use super::Path;
use crate::error::ErrorKind;
use crate::value::Value;

const DOCUMENT: &str = r#"{
  "name": {"first": "Tom", "last": "Anderson"},
  "age": 37,
  "children": ["Sara", "Alex", "Jack"],
  "fav.movie": "Deer Hunter",
  "a*b": 1, "a?c": 2, "0": "zero", "": "empty", "@key": "v",
  "friends": [
    {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
    {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
    {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
  ],
  "vals": [{"a": 1, "b": true}, {"a": 2, "b": false}, {"a": 3, "b": "1"}, {"a": 4, "b": null}, {"a": 5}],
  "nested": [[1, [2, 3]], 4],
  "objs": [{"a": 1, "c": 1}, {"b": 2, "c": 2}],
  "cols": {"id": [1, 2], "n": ["x", "y"], "skip": 1},
  "s": "{\"x\":1}", "bad": "{"
}"#;

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

fn find(path: &str) -> Option<Value> {
    Path::parse(path).unwrap_or_else(|error| panic!("{path}: {error}")).find(&document()).unwrap()
}

#[test]
fn paths_lead_to_values() {
    let cases = [
        ("name.last", r#""Anderson""#),
        ("age", "37"),
        ("children", r#"["Sara","Alex","Jack"]"#),
        ("children.0", r#""Sara""#),
        ("0", r#""zero""#),
        ("friends.1.first", r#""Roger""#),
        ("child*.2", r#""Jack""#),
        ("c?ildren.0", r#""Sara""#),
        ("*.first", r#""Tom""#),
        ("fav\\.movie", r#""Deer Hunter""#),
        ("a\\*b", "1"),
        ("a\\?c", "2"),
        ("@key", r#""v""#),
        ("friends.#", "3"),
        ("friends.#.age", "[44,68,47]"),
        ("friends.#.nets.#", "[3,2,2]"),
        ("friends.#.nets.0", r#"["ig","fb","ig"]"#),
        ("friends.#.missing", "[]"),
        ("friends.#(last==\"Murphy\").first", r#""Dale""#),
        ("friends.#(last=\"Murphy\").first", r#""Dale""#),
        ("friends.#[last=\"Murphy\"].first", r#""Dale""#),
        ("friends.#(last==\"Murphy\")#.first", r#"["Dale","Jane"]"#),
        ("friends.#(last!=\"Murphy\")#.first", r#"["Roger"]"#),
        ("friends.#(age>45)#.last", r#"["Craig","Murphy"]"#),
        ("friends.#(age>=47)#.age", "[68,47]"),
        ("friends.#(age<47)#.age", "[44]"),
        ("friends.#(age<=47)#.age", "[44,47]"),
        ("friends.#(first%\"D*\").last", r#""Murphy""#),
        ("friends.#(first!%\"D*\").last", r#""Craig""#),
        ("friends.#( last == \"Craig\" ).age", "68"),
        ("friends.#(last==\"Nobody\")#", "[]"),
        ("friends.#(nets)#.first", r#"["Dale","Roger","Jane"]"#),
        ("children.#(!%\"*a*\")", r#""Alex""#),
        ("children.#(%\"*a*\")#", r#"["Sara","Jack"]"#),
        ("children.#(>\"B\")#", r#"["Sara","Jack"]"#),
        ("friends.#(nets.#(==\"fb\"))#.first", r#"["Dale","Roger"]"#),
        ("friends.#(nets.#(==\"ig\"))#.first", r#"["Dale","Jane"]"#),
        ("vals.#(b==true)#.a", "[1]"),
        ("vals.#(b!=true)#.a", "[2,3]"),
        ("vals.#(b==~true)#.a", "[1,3]"),
        ("vals.#(b==~false)#.a", "[2,4,5]"),
        ("vals.#(b==~null)#.a", "[4,5]"),
        ("vals.#(b==~*)#.a", "[1,2,3,4]"),
        ("vals.#(b!=~*)#.a", "[5]"),
        ("friends|0.first", r#""Dale""#),
        ("friends|#", "3"),
        ("friends.#(last=\"Murphy\")#.0", "[]"),
        ("friends.#(last=\"Murphy\")#|0.first", r#""Dale""#),
        ("friends.#(last=\"Murphy\")#.#", "[]"),
        ("friends.#(last=\"Murphy\")#|#", "2"),
        ("children.@reverse", r#"["Jack","Alex","Sara"]"#),
        ("children.@reverse.0", r#""Jack""#),
        ("children|@reverse|0", r#""Jack""#),
        ("name.@reverse", r#"{"last":"Anderson","first":"Tom"}"#),
        ("age.@reverse", "37"),
        ("name.@this.first", r#""Tom""#),
        ("@this.age", "37"),
        ("name.@pretty:{\"sortKeys\":true}.first", r#""Tom""#),
        ("name.@ugly", r#"{"first":"Tom","last":"Anderson"}"#),
        ("name.@valid.first", r#""Tom""#),
        ("nested.@flatten", "[1,[2,3],4]"),
        ("nested.@flatten:{\"deep\":true}", "[1,2,3,4]"),
        ("objs.@join", r#"{"a":1,"c":2,"b":2}"#),
        ("name.@keys", r#"["first","last"]"#),
        ("name.@values", r#"["Tom","Anderson"]"#),
        ("children.@keys", "[null,null,null]"),
        ("age.@tostr", r#""37""#),
        ("s.@fromstr.x", "1"),
        ("s.@fromstr.@tostr", r#""{\"x\": 1}""#),
        ("cols.@group", r#"[{"id":1,"n":"x"},{"id":2,"n":"y"}]"#),
        ("friends.#.nets|@flatten|#", "7"),
        ("friends.#.nets.@reverse", r#"[["tw","fb","ig"],["tw","fb"],["tw","ig"]]"#),
        (
            "{name.first,age,\"the_murphys\":friends.#(last=\"Murphy\")#.first}",
            r#"{"first":"Tom","age":37,"the_murphys":["Dale","Jane"]}"#,
        ),
        ("[name.first,age,nothing]", r#"["Tom",37]"#),
        ("name.{first,\"l\":last}", r#"{"first":"Tom","l":"Anderson"}"#),
        ("friends.#.{age,first}|1", r#"{"age":68,"first":"Roger"}"#),
        ("{children.#}", r#"{"_":3}"#),
        (
            "{age,\"c\":!\"Happysoft\",\"e\":!true,\"n\":!-1.5,\"l\":![1,2]}",
            r#"{"age":37,"c":"Happysoft","e":true,"n":-1.5,"l":[1,2]}"#,
        ),
        ("!\"a.b\"", r#""a.b""#),
        ("[]", "[]"),
        ("{fav\\.movie}", r#"{"fav.movie":"Deer Hunter"}"#),
    ];
    for (path, want) in cases {
        let want: Value = serde_json::from_str(want).unwrap();
        assert_eq!(find(path), Some(want), "{path}");
    }
}

#[test]
fn paths_lead_nowhere() {
    for path in [
        "nothing",
        "name.middle",
        "children.3",
        "children.-1",
        "children.first",
        "age.x",
        "friends.#(last=\"Murphy\")#|first",
        "friends.#(last==\"Nobody\")",
        "friends.#(nets==\"x\")",
        "name.#",
        "age.#.x",
        "name.",
        "bad.@fromstr",
        "age.@group",
        "zz*",
    ] {
        assert_eq!(find(path), None, "{path}");
    }
}

#[test]
fn paths_that_cannot_be_read_say_where() {
    let cases = [
        ("", "path is empty", 0..0),
        ("a.#(b", "bracket is not closed", 2..5),
        ("{a", "bracket is not closed", 0..2),
        ("[a]b", "expected `.` or `|` here", 3..4),
        ("[a,,b]", "a path is missing here", 3..3),
    ];
    for (path, message, span) in cases {
        let error = Path::parse(path).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.span), (message, span), "{path}");
    }
    assert!(Path::parse(&"[".repeat(10_000)).is_err());
    assert!(Path::parse(&format!("{}a{}", "[".repeat(1000), "]".repeat(1000))).is_err());
    assert!(Path::parse(&"a.".repeat(1_000_000)).is_err());
}

#[test]
fn a_missing_part_names_what_is_there() {
    let error = |path: &str| {
        let error = Path::parse(path).unwrap().require(&document()).unwrap_err();
        (error.to_string(), error.span, error.help.unwrap_or_default())
    };
    assert_eq!(
        error("name.frist"),
        ("`name.frist` is missing: `name` has no `frist`".into(), 5..10, "did you mean `first`?".into())
    );
    assert_eq!(
        error("name.zebra.x"),
        ("`name.zebra.x` is missing: `name` has no `zebra`".into(), 5..10, "there is first, last".into())
    );
    assert_eq!(error("nmae").2, "did you mean `name`?");
    assert_eq!(
        error("children.7").0,
        "`children.7` is missing: `children` has 3 elements, and `7` is beyond them"
    );
    assert_eq!(error("age.x").0, "`age.x` is missing: `age` has no members, it is int");
    assert_eq!(error("friends.#(age>100).first").1, 8..18);
    let missing = Path::parse("friends.0.frist").unwrap().missing(&document()).unwrap();
    assert_eq!((missing.parent.as_str(), missing.segment.as_str()), ("friends.0", "frist"));
    assert_eq!(missing.names, ["first", "last", "age", "nets"]);
    assert!(Path::parse("age").unwrap().missing(&document()).is_none());
}

#[test]
fn a_short_path_cannot_make_an_endless_value() {
    let doubling = vec!["[@this,@this]"; 60].join("|");
    let error = Path::parse(&doubling).unwrap().find(&document()).unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Limit(_)), "{error}");
    let flattened = format!("{doubling}|@flatten:{{\"deep\":true}}");
    assert!(Path::parse(&flattened).unwrap().find(&document()).is_err());
    assert!(Path::parse(&format!("{doubling}|@tostr")).unwrap().find(&document()).is_err());
}
