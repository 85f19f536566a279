//! The steps as tables, and the promise that a second application changes nothing.

use std::path::Path;

use proptest::prelude::*;

use super::{EditError, Reason, Step, apply, problems};
use crate::document::{Source, from_node, parse};

fn steps(yaml: &str) -> Vec<Step> {
    let source =
        Source::read("edit", yaml.as_bytes().to_vec()).unwrap_or_else(|_| panic!("not text: {yaml}"));
    let node = parse(&source).unwrap_or_else(|_| panic!("not YAML: {yaml}"));
    from_node(&node).unwrap_or_else(|error| panic!("{}: {yaml}", error.message))
}

fn edited(yaml: &str, old: &str) -> Result<String, EditError> {
    apply(&steps(yaml), old, Path::new("/etc/app.conf"))
}

#[test]
fn every_step_does_what_its_table_says() {
    let rows = [
        // line
        ("[{line: b}]", "a\n", "a\nb\n"),
        ("[{line: b}]", "a", "a\nb\n"),
        ("[{line: b}]", "", "b\n"),
        ("[{line: b}]", "b\na\n", "b\na\n"),
        ("[{line: P no, match: '^#?P'}]", "#P yes\nx\n", "P no\nx\n"),
        ("[{line: P no, match: '^#?P'}]", "P a\nP b\n", "P a\nP no\n"),
        ("[{line: P no, match: '^#P'}]", "#P a\n#P b\n", "#P a\nP no\n"),
        ("[{line: n, after: '^b'}]", "b 1\nb 2\nc\n", "b 1\nb 2\nn\nc\n"),
        ("[{line: n, before: '^b'}]", "a\nb 1\nb 2\n", "a\nn\nb 1\nb 2\n"),
        ("[{line: n, after: '^z'}]", "a\n", "a\nn\n"),
        ("[{line: x, ensure: absent}]", "x\na\nx\n", "a\n"),
        ("[{line: x, match: '^x', ensure: absent}]", "x 1\na\nx 2\n", "a\n"),
        ("[{line: b}]", "a\r\n", "a\r\nb\r\n"),
        // block
        ("[{block: \"x\\ny\\n\"}]", "a\n", "a\n# BEGIN ccm\nx\ny\n# END ccm\n"),
        ("[{block: n, marker: m}]", "# BEGIN ccm m\nold\n# END ccm m\nz", "# BEGIN ccm m\nn\n# END ccm m\nz"),
        (
            "[{block: '1', marker: a}, {block: '2', marker: b}]",
            "",
            "# BEGIN ccm a\n1\n# END ccm a\n# BEGIN ccm b\n2\n# END ccm b\n",
        ),
        ("[{block: '', marker: m, ensure: absent}]", "a\n# BEGIN ccm m\nx\n# END ccm m\nb\n", "a\nb\n"),
        ("[{block: x, comment: '<!-- -->'}]", "", "<!-- BEGIN ccm -->\nx\n<!-- END ccm -->\n"),
        ("[{block: x, before: '^b'}]", "a\nb\n", "a\n# BEGIN ccm\nx\n# END ccm\nb\n"),
        // replace
        ("[{replace: 'Port [0-9]+', with: Port 2222}]", "Port 22\nPort 23\n", "Port 2222\nPort 2222\n"),
        ("[{replace: '^(a+)=1$', with: '$1=2'}]", "aa=1\nb\n", "aa=2\nb\n"),
        ("[{replace: none, with: x}]", "a\n", "a\n"),
        ("[{replace: '^(Port) 22$', with: '${1}_x $$1 $ $$'}]", "Port 22\n", "Port_x $1 $ $\n"),
        ("[{replace: '^(?<key>[a-z]+)=1$', with: '$key=2'}]", "a=1\n", "a=2\n"),
        ("[{replace: '^a$', with: b}]", "a\r\nc\r\na", "b\r\nc\r\nb"),
        ("[{replace: '^a.*$', with: b}]", "a 1\r\nc\r\n", "b\r\nc\r\n"),
        ("[{replace: '\\r$', with: ''}]", "a\r\nb\r\n", "a\nb\n"),
        // ini
        ("[{ini: {section: main, key: k, value: 1}}]", "[main]\nk=0\n", "[main]\nk=1\n"),
        (
            "[{ini: {section: main, key: k, value: 1}}]",
            "[main]\n; c\na = b\n\n[x]\n",
            "[main]\n; c\na = b\nk = 1\n\n[x]\n",
        ),
        ("[{ini: {section: main, key: k, value: 1}}]", "[x]\na=b\n", "[x]\na=b\n\n[main]\nk=1\n"),
        ("[{ini: {section: main, key: k, value: 1}}]", "", "[main]\nk = 1\n"),
        ("[{ini: {key: k, value: v}}]", "[x]\n", "k = v\n[x]\n"),
        ("[{ini: {section: a, key: k}, ensure: absent}]", "[a]\nk=1\n[b]\nk=1\n", "[a]\n[b]\nk=1\n"),
        ("[{ini: {section: a, key: k, ensure: absent}}]", "[a]\nk=1\n", "[a]\n"),
        ("[{ini: {section: main, key: k, value: true}}]", "[main]\nk : false\n", "[main]\nk : true\n"),
        ("[{ini: {key: k, value: 1}}]", "k = 1 ; comment\n", "k = 1 ; comment\n"),
        ("[{ini: {key: k, value: a}}]", "k = a #b\n", "k = a\n"),
        ("[{ini: {key: k, value: 2}}]", "k = 1\t# comment\n", "k = 2\t# comment\n"),
        ("[{ini: {key: k, value: '#fff'}}]", "k = #000 ; c\n", "k = #fff ; c\n"),
        ("[{ini: {key: k, value: x}}]", "k = sh -c \"a ; b\"\n", "k = x\n"),
        ("[{ini: {key: k, value: 'a ; b'}}]", "k = a ; b\n", "k = a ; b\n"),
        ("[{ini: {key: k, value: 'a ; b'}}]", "k = x ; c\n", "k = a ; b\n"),
        ("[{ini: {key: k, value: ''}}]", "k = x ; c\n", "k = \n"),
        ("[{ini: {key: k, value: 'a;b'}}]", "k = x;y\n", "k = a;b\n"),
        // keyvalue
        ("[{keyvalue: {key: vm.x, value: 10, separator: ' = '}}]", "# c\nvm.x=60\n", "# c\nvm.x = 10\n"),
        ("[{keyvalue: {key: vm.x, value: 10, separator: ' = '}}]", "vm.x=10\n", "vm.x=10\n"),
        ("[{keyvalue: {key: vm.x, value: 10}}]", "vm.xy=1\n", "vm.xy=1\nvm.x=10\n"),
        ("[{keyvalue: {key: Port, value: 22, separator: ' '}}]", "Ports 1\nPort\t21\n", "Ports 1\nPort 22\n"),
        ("[{keyvalue: {key: a}, ensure: absent}]", "a=1\nb=1\na = 2\n", "b=1\n"),
        // json
        (
            "[{json: {log: {level: info}, debug: null}}]",
            "{\"debug\": true, \"log\": {\"a\": 1}}\n",
            "{\n  \"log\": {\n    \"a\": 1,\n    \"level\": \"info\"\n  }\n}\n",
        ),
        ("[{json: {a: 1}}]", "{ \"a\":1 }", "{ \"a\":1 }"),
        (
            "[{json: {b: [1]}}]",
            "{\n    \"a\": 1\n}\n",
            "{\n    \"a\": 1,\n    \"b\": [\n        1\n    ]\n}\n",
        ),
        ("[{json: {a: 1}}]", "", "{\n  \"a\": 1\n}\n"),
        ("[{json: {b: 1}}]", "{\r\n\t\"a\": 1\r\n}\r\n", "{\r\n\t\"a\": 1,\r\n\t\"b\": 1\r\n}\r\n"),
        ("[{json: {a: 1.1, b: [100.0]}}]", r#"{"a":1.10,"b":[1e2]}"#, r#"{"a":1.10,"b":[1e2]}"#),
        ("[{json: {'é': 2}}]", r#"{"\u00e9":1,"\\\"":[]}"#, "{\n  \"\\u00e9\": 2,\n  \"\\\\\\\"\": []\n}"),
        ("[{json: {a: {b: 1, c: null}}}]", "{\"a\": [1]}\n", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"),
        // toml
        (
            "[{toml: {key: registry.mirror, value: x}}]",
            "# c\n[registry]\nmirror = \"y\" # why\n",
            "# c\n[registry]\nmirror = \"x\" # why\n",
        ),
        ("[{toml: {key: a.b, value: 1}}]", "x = 1\n", "x = 1\n\n[a]\nb = 1\n"),
        ("[{toml: {key: a.b}, ensure: absent}]", "[a]\nb = 1\nc = 2\n", "[a]\nc = 2\n"),
        ("[{toml: {key: a, value: [1, two]}}]", "", "a = [1, \"two\"]\n"),
    ];
    for (yaml, old, new) in rows {
        assert_eq!(edited(yaml, old).as_deref(), Ok(new), "{yaml} on {old:?}");
        assert_eq!(edited(yaml, new).as_deref(), Ok(new), "{yaml} a second time");
    }
}

#[test]
fn numbers_that_a_json_edit_does_not_name_stay_as_they_are_written() {
    for number in [
        "123456789012345678901",
        "18446744073709551616",
        "0.1234567890123456789012",
        "1.10",
        "1e2",
        "-0",
        "1E400",
        "-1.5E-7",
    ] {
        let (old, new) = (
            format!("{{\"id\": {number}, \"in\": [{number}]}}\n"),
            format!("{{\n  \"id\": {number},\n  \"in\": [\n    {number}\n  ],\n  \"x\": 1\n}}\n"),
        );
        assert_eq!(edited("[{json: {x: 1}}]", &old), Ok(new), "{number}");
    }
}

#[test]
fn json_that_is_nested_too_deep_is_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let error = edited("[{json: {x: 1}}]", &deep).unwrap_err();
    assert!(error.to_string().contains("nested more than 128 levels deep"), "{error}");
}

#[test]
fn a_step_that_cannot_be_applied_says_why() {
    let restless = Reason::Restless { pattern: "a".to_owned() };
    let open = Reason::BlockNotClosed { line: 2, end: "# END ccm".to_owned() };
    let closed = Reason::BlockNotOpened { line: 1, begin: "# BEGIN ccm".to_owned() };
    let rows = [
        ("[{replace: a, with: aa}]", "a\n", restless),
        ("[{block: x}]", "a\n# BEGIN ccm\n", open),
        ("[{block: x}]", "# END ccm\n", closed),
        ("[{block: x}]", "# BEGIN ccm\n# END ccm\n# BEGIN ccm\n# END ccm\n", Reason::BlockTwice { line: 3 }),
        ("[{block: '# END ccm'}]", "", Reason::NotStable),
        ("[{line: a}, {line: a, ensure: absent}]", "", Reason::Undone),
        ("[{toml: {key: a.b, value: 1}}]", "a = 1\n", Reason::NotATable { key: "a".to_owned() }),
        ("[{json: {x: 1}}]", r#"{"a":1,"b":{"c":1,"\u0063":2}}"#, Reason::KeyTwice { key: "c".to_owned() }),
    ];
    for (yaml, old, reason) in rows {
        assert_eq!(edited(yaml, old).map_err(|error| error.reason), Err(reason), "{yaml}");
    }
    assert_eq!(edited("[{json: {a: 1}}]", "{").unwrap_err().name, "json");
    assert_eq!(edited("[{line: a}, {toml: {key: a, value: 1}}]", "a = = 1\n").unwrap_err().number, 2);
}

#[test]
fn a_step_that_is_written_wrongly_says_how() {
    let rows = [
        ("[{}]", "needs one of line"),
        ("[{line: a, block: b}]", "does one thing, not line and block"),
        ("[{line: a, marker: b}]", "`marker` means nothing to `line`"),
        ("[{replace: a}]", "`replace` needs `with`"),
        ("[{replace: '^(a)$', with: '$1_x b'}]", "group `1_x`, which `^(a)$` does not have; `$${1}_x` is"),
        ("[{replace: '^(a)$', with: '${2}'}]", "names the group `2`"),
        (
            "[{replace: a, with: 'b $$ $HOME'}]",
            "names the group `HOME`, which `a` does not have; `$$HOME` is",
        ),
        ("[{line: \"a\\nb\"}]", "more than one line"),
        ("[{ini: {key: a}}]", "needs a `value`"),
        ("[{keyvalue: {key: a}}]", "needs a `value`"),
        ("[{toml: {key: a}}]", "needs a `value`"),
        ("[{toml: {key: 'a..b', value: 1}}]", "is not a key of TOML"),
    ];
    for (yaml, part) in rows {
        let found = problems(&steps(yaml));
        assert!(found.iter().any(|error| error.message.contains(part)), "{yaml}: {found:?}");
    }
}

#[test]
fn comments_are_written_as_the_file_writes_them() {
    for (name, begin) in
        [("x.sql", "-- BEGIN ccm\n"), ("x.xml", "<!-- BEGIN ccm -->\n"), ("x", "# BEGIN ccm\n")]
    {
        let text = apply(&steps("[{block: x}]"), "", Path::new(name)).unwrap();
        assert!(text.starts_with(begin), "{name}: {text}");
    }
}

/// Returns random steps over a few words, so that they meet in the files.
fn any_step() -> impl Strategy<Value = String> {
    let word = prop_oneof!["[ab#]{0,3}", "[ab]=[ab]", Just("[a]".to_owned()), Just("# END ccm".to_owned())];
    let pattern = prop_oneof![Just("^a"), Just("b$"), Just("a|b"), Just("^#?a"), Just("x*")];
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    (word, pattern, 0..9_u8).prop_map(move |(word, pattern, which)| {
        let (word, pattern) = (quoted(&word), quoted(pattern));
        match which {
            0 => format!("{{line: {word}}}"),
            1 => format!("{{line: {word}, match: {pattern}}}"),
            2 => format!("{{line: {word}, after: {pattern}, before: {pattern}}}"),
            3 => format!("{{line: {word}, match: {pattern}, ensure: absent}}"),
            4 => format!("{{block: {word}, before: {pattern}}}"),
            5 => format!("{{replace: {pattern}, with: {word}}}"),
            6 => format!("{{ini: {{section: a, key: b, value: {word}}}}}"),
            7 => format!("{{keyvalue: {{key: a, value: {word}}}}}"),
            _ => "{keyvalue: {key: a}, ensure: absent}".to_owned(),
        }
    })
}

proptest! {
    #[test]
    fn applied_to_its_own_result_an_edit_changes_nothing(
        steps in prop::collection::vec(any_step(), 1..4),
        old in "([ab#=\\[\\]]{0,4}(\r)?\n){0,6}[ab]{0,2}",
    ) {
        let yaml = format!("[{}]", steps.join(", "));
        if let Ok(new) = edited(&yaml, &old) {
            prop_assert_eq!(edited(&yaml, &new), Ok(new));
        }
    }
}
