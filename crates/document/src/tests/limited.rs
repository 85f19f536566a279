//! Documents that ask for too much.

use super::{json, problems, told, tree};
use crate::from_node;
use std::fmt::Write;

#[test]
fn nesting_has_a_limit_in_every_notation() {
    let deep = 100_000;
    let indented: String = (0..300).fold(String::new(), |mut text, level| {
        let _ = writeln!(text, "{}a:", " ".repeat(level));
        text
    });
    for text in [
        "[".repeat(deep),
        "{\"a\":".repeat(deep),
        format!("{}{}", "[".repeat(200), "]".repeat(200)),
        format!("x: {}{}", "[".repeat(200), "]".repeat(200)),
        format!("x: {}1{}", "{a: ".repeat(200), "}".repeat(200)),
        "- ".repeat(deep),
        "? ".repeat(deep),
        indented,
    ] {
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.message.contains("128 deep")), "{found:?}");
    }
}

#[test]
fn what_is_just_deep_enough_can_be_used_like_anything_else() {
    for text in [
        format!("{}{}", "[".repeat(128), "]".repeat(128)),
        format!("x: {}{}", "[".repeat(127), "]".repeat(127)),
        "- ".repeat(128),
    ] {
        let node = tree(&text);
        let value: serde_json::Value = from_node(&node.clone()).unwrap();
        assert_eq!(serde_json::to_string(&value).unwrap(), json(&text));
    }
}

#[test]
fn an_alias_cannot_smuggle_depth_or_itself() {
    let mut text = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        let _ = writeln!(text, "a{level}: &a{level} [*a{}]", level - 1);
    }
    assert_eq!(told(&text), ["128:14 lists and maps are nested more than 128 deep"]);
    assert_eq!(told("a: &a [1, *a]\n"), ["1:11 the alias stands within the value that it repeats"]);
}

#[test]
fn alias_bombs_are_refused() {
    let mut nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(nodes, "a{level}: &a{level} [{items}]");
    }
    let mut bytes = format!("a: &a {}\n", "x".repeat(1_000_000));
    for copy in 0..200 {
        let _ = writeln!(bytes, "b{copy}: *a");
    }
    let many = format!("{}{}{}", "&a [".repeat(120), "x, ".repeat(20_000), "]".repeat(120));
    for text in [nodes, bytes, many] {
        let found = problems(&text);
        assert!(found[0].message.starts_with("anchors and aliases repeat more than"), "{found:?}");
    }
}

/// What the parser needs for a manifest of 10,000 resources; the bar is 60 ms on an idle machine.
#[test]
#[ignore = "a measurement, meaningful in release mode only"]
fn ten_thousand_resources_are_read_quickly() {
    let mut text = "ccm:\n  resources:\n    - file:\n".to_owned();
    for number in 0..10_000 {
        let _ = writeln!(
            text,
            "        - /srv/app/conf.d/part-{number:05}.conf:\n            ensure: present\n            owner: root\n            group: \"root\"\n            mode: \"0644\"\n            content: |\n              # managed: part {number}\n              listen = 127.0.0.1:{number}\n              name = worker-{number}\n              enabled = true"
        );
    }
    let accented = text.replacen("managed", "géré", 1);
    for text in [text, accented] {
        let source = super::source(&text);
        let best = (0..10)
            .map(|_| {
                let start = std::time::Instant::now();
                let node = crate::parse(&source).unwrap();
                let taken = start.elapsed();
                assert!(node.lookup("ccm").is_some());
                taken
            })
            .min()
            .unwrap();
        assert!(best.as_millis() <= 60, "{} bytes took {best:?}", text.len());
    }
}

/// A data file of 100 MB; watch the memory as well.
#[test]
#[ignore = "a measurement, meaningful in release mode only"]
fn a_data_file_of_a_hundred_megabytes_is_read() {
    let mut text = "hosts:\n".to_owned();
    while text.len() < 100_000_000 {
        let number = text.len();
        let _ =
            writeln!(text, "  host-{number}:\n    address: 10.0.0.1\n    roles: [web, db]\n    port: 8080");
    }
    let source = super::source(&text);
    drop(text);
    let start = std::time::Instant::now();
    let node = crate::parse(&source).unwrap();
    let taken = start.elapsed();
    assert!(node.lookup("hosts").unwrap().as_map().unwrap().len() > 1_000_000);

    assert!(taken.as_secs() <= 10, "{taken:?}");
}
