//! What documents mean.

use super::{json, told, tree};
use crate::{Style, plain_yaml};
use std::fs;
use std::path::PathBuf;

#[test]
fn yaml_becomes_the_tree_it_describes() {
    let cases = [
        ("", "null"),
        ("# nothing\n", "null"),
        ("---\n", "null"),
        ("\u{feff}a: 1\n", r#"{"a":1}"#),
        ("\u{feff}{\"a\": 1}", r#"{"a":1}"#),
        ("a: 1\r\nb: x y\r\n", r#"{"a":1,"b":"x y"}"#),
        ("a:\nb: ~\nc: ''\n", r#"{"a":null,"b":null,"c":""}"#),
        ("- 1\n- true\n- yes\n- 1.5\n- '2'\n", r#"[1,true,"yes",1.5,"2"]"#),
        ("a: |\n  one\n  two\nb: >-\n  one\n  two\n", r#"{"a":"one\ntwo\n","b":"one two"}"#),
        ("a: one\n  two\n\n  three\n", r#"{"a":"one two\nthree"}"#),
        ("{a: 1, b: [x, {c: d}], e}", r#"{"a":1,"b":["x",{"c":"d"}],"e":null}"#),
        ("[a: b, c]", r#"[{"a":"b"},"c"]"#),
        ("8080: x\ntrue: y\n1.50: z\n", r#"{"8080":"x","true":"y","1.50":"z"}"#),
        ("\"null\": x\n\"\": y\n", r#"{"null":"x","":"y"}"#),
        ("--- {a: 1}\n...\n", r#"{"a":1}"#),
        ("a:\n- 1\n- 2\n", r#"{"a":[1,2]}"#),
        ("é: ü\nb: 日本\n", r#"{"é":"ü","b":"日本"}"#),
        ("a: \"x\\u00e9\\n\"\n", "{\"a\":\"xé\\n\"}"),
        ("%YAML 1.2\n---\na: 1\n", r#"{"a":1}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(json(text), expected, "{text:?}");
    }
}

#[test]
fn json_is_read_as_json() {
    let cases = [
        (r#"{"a": "\/ \ud83d\ude00 \u00e9 \b\f\n\r\t\"\\"}"#, r#"{"a":"/ 😀 é \b\f\n\r\t\"\\"}"#),
        (
            r#" [1, -0.5, 1e3, 1E-2, true, false, null, "1", {}, []] "#,
            r#"[1,-0.5,1000.0,0.01,true,false,null,"1",{},[]]"#,
        ),
        ("{\n\t\"a\":\t1\n}", r#"{"a":1}"#),
        (
            r#"{"a":[18446744073709551615,-9223372036854775808]}"#,
            r#"{"a":[18446744073709551615,-9223372036854775808]}"#,
        ),
        // Not JSON, but YAML.
        (r#"{"a": 1,}"#, r#"{"a":1}"#),
        ("[a, 'b']", r#"["a","b"]"#),
        ("[01]", "[1]"),
        ("{\"a\": 1} # end", r#"{"a":1}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(json(text), expected, "{text:?}");
    }
}

#[test]
fn a_scalar_keeps_what_was_written() {
    let node = tree("mode: 0644\nowner: '0'\ncontent: |\n  x\n");
    let texts: Vec<_> = node
        .as_map()
        .unwrap()
        .iter()
        .map(|entry| match &entry.value.value {
            crate::Value::Scalar(scalar) => (scalar.text.as_str(), scalar.style),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, [("0644", Style::Plain), ("0", Style::Quoted), ("x\n", Style::Quoted)]);
}

#[test]
fn aliases_repeat_what_their_anchor_names() {
    assert_eq!(json("a: &x {k: [1]}\nb: *x\n"), r#"{"a":{"k":[1]},"b":{"k":[1]}}"#);
    assert_eq!(json("a: &x text\n*x : v\n"), r#"{"a":"text","text":"v"}"#);
    assert_eq!(json("- &x 1\n- &x 2\n- *x\n"), "[1,2,2]");
}

#[test]
fn a_merge_key_adds_what_is_not_written() {
    let text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n";
    let cases = [
        ("it:\n  x: 0\n  <<: *base\n  b: 9\n", r#"{"x":0,"a":1,"b":9}"#),
        ("it:\n  <<: [*base, *more]\n", r#"{"a":1,"b":2,"c":4}"#),
        ("it:\n  <<: {z: 1}\n", r#"{"z":1}"#),
        ("it:\n  '<<': 1\n", r#"{"<<":1}"#),
    ];
    for (more, expected) in cases {
        let node = tree(&format!("{text}{more}"));
        assert_eq!(serde_json::to_string(node.lookup("it").unwrap()).unwrap(), expected, "{more}");
    }
    assert_eq!(
        told("a:\n  <<: 12\n"),
        ["2:7 the merge key `<<` takes a map or a list of maps, not a number"]
    );
    assert_eq!(
        told("a:\n  <<: [{}, x]\n"),
        ["2:12 the merge key `<<` takes a map or a list of maps, not a string"]
    );
}

#[test]
fn tags_of_the_core_schema_are_honoured() {
    let cases = [
        ("!!str 123", r#""123""#),
        ("! 123", r#""123""#),
        ("!!int '12'", "12"),
        ("!!float 1", "1.0"),
        ("!!bool 'true'", "true"),
        ("!!null ''", "null"),
        ("!!str", r#""""#),
        ("!!map {a: !!seq [1]}", r#"{"a":[1]}"#),
        ("a: &x !!str 1\nb: !!str &y 2\n", r#"{"a":"1","b":"2"}"#),
        ("!<tag:yaml.org,2002:str> 1", r#""1""#),
    ];
    for (text, expected) in cases {
        assert_eq!(json(text), expected, "{text:?}");
    }
}

#[test]
fn other_tags_are_problems_that_name_them() {
    assert_eq!(
        told("a: !vault x\nb: &n !!binary aGk=\nc: !x [1]\nd: !!int x\ne: !!seq {}\n"),
        [
            "1:4 the tag `!vault` is not known here",
            "2:7 the tag `!!binary` is not known here",
            "3:4 the tag `!x` is not known here",
            "4:4 this value is not what its tag `!!int` says",
            "5:4 the tag `!!seq` is not known here",
        ]
    );
}

#[test]
fn every_wrong_key_is_reported_with_the_first_of_its_kind() {
    assert_eq!(
        told("a: 1\nb: {c: 1, c: 2}\na: 2\n? [x]\n: 1\n~: 2\na: 3\n"),
        [
            "2:11 the key `c` is given twice",
            "4:3 a key must be text, this is a list",
            "6:1 a key is missing",
            "3:1 the key `a` is given twice",
            "7:1 the key `a` is given twice",
        ]
    );
    assert_eq!(told(r#"{"a": 1, "a": 2}"#), ["1:10 the key `a` is given twice"]);
    let many = (0..40).map(|key| format!("k{}: 1", key % 39)).collect::<Vec<_>>().join("\n");
    assert_eq!(told(&many), ["40:1 the key `k0` is given twice"]);
}

#[test]
fn a_template_that_was_not_quoted_is_a_problem() {
    assert_eq!(told("name: {{ lookup('x') }}\n"), ["1:8 a key must be text, this is a map"]);
}

#[test]
fn a_source_holds_one_document() {
    assert_eq!(told("a: 1\n---\nb: 2\n"), ["2:1 a second document begins here"]);
    assert_eq!(told("---\n---\n"), ["2:1 a second document begins here"]);
}

#[test]
fn syntax_errors_are_told_where_they_are() {
    let cases = [
        ("a:\n\tb: 1\n", "2:1 a tab cannot indent"),
        ("a:\n  b: 1\n\tc: 1\n", "3:1 a tab cannot indent"),
        ("a: x\n\ty\n", "2:1 a tab cannot indent"),
        ("a: \"x\n\ty\"\n", "2:1 a tab cannot indent"),
        ("- \t- a\n", "1:3 a tab cannot indent"),
        ("a: 'x\nb: 1\n", "1:4 this quote is never closed"),
        ("a: \"x\n", "1:4 this quote is never closed"),
        ("  a: \"x\n b: c\"\n", "1:6 this quote is never closed"),
        ("a: 1\nb\nc: 2\n", "2:1 expected `:` after this key"),
        ("a: 1\nb\n", "2:1 expected `:` after this key"),
        ("a:\n  - x\n  y\n", "3:3 expected `:` after this key"),
        ("a: b: c\n", "1:5 a `:` is not possible here"),
        ("a: 1\n  b: 2\n", "2:4 a `:` is not possible here"),
        ("a:\n    b: 1\n  c: 2\n", "3:3 expected a key here"),
        ("- a\n b: 1\n", "2:3 a `:` is not possible here"),
        ("a: [1, 2\nb: 3\n", "2:2 a `:` is not possible here"),
        ("a: {b: 1\n", "1:4 this bracket is never closed"),
        ("a: ]\n", "1:4 this bracket was never opened"),
        ("a: \"x\" y\n", "1:8 there is more text behind the closing quote"),
        ("a: 'it's'\n", "1:8 there is more text behind the closing quote"),
        ("a: *x\n", "1:4 this alias names no anchor"),
        ("a: * x\n", "1:4 expected the name of an anchor"),
        ("a: @x\n", "1:4 no text begins with this character unless it is in quotes"),
        ("a: %x\n", "1:4 no text begins with this character unless it is in quotes"),
        ("a: \"\\d\"\n", "1:5 this `\\` begins no escape that YAML knows"),
        ("a: \"\\ud83d\\ude00\"\n", "1:5 this escape is not a character"),
        ("a: - b\n", "1:4 a list cannot begin here"),
        ("a: |\n    x\n  y\n", "3:3 expected a key here"),
        ("a: x # c\n  y\n", "1:6 a comment cannot interrupt a text of several lines"),
        ("a: \0\n", "1:4 the text contains a NUL character"),
        ("a: !h!x y\n", "1:4 this tag is not known here"),
        ("{\"a\": tru", "1:7 expected a value"),
        ("{\"a\": \"x}", "1:7 this quote is never closed"),
        ("{\"a\": 1 \"b\": 2}", "1:12 expected `,` or `}` here"),
        ("[\"\\ud800\"]", "1:3 this escape is not a character"),
        ("[1e999]", "1:2 this number is too large"),
        ("é: 'x", "1:4 this quote is never closed"),
        ("a: |x\n", "1:4 not valid YAML: did not find expected comment or line break"),
        ("key with: colon: inside\n", "1:16 a `:` is not possible here"),
        ("a: &\n", "1:4 expected the name of an anchor"),
        ("# c\n%YAML 1.2\n%a # é\n---\n'", "3:1 the directive `%a` is not known here"),
        ("a:b\nc: d\n", "2:2 a `:` is not possible here"),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text), [expected], "{text:?}");
    }
}

#[test]
fn what_people_write_needs_no_parser_of_all_of_yaml() {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = fs::read_to_string(&path).unwrap();
                assert!(plain_yaml::read(&text).is_some(), "{}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 5, "{count}");
}
