//! What is found in manifests and data: errors and warnings, each at its place, for people and for programs.

use serde_json::json;

use crate::support::World;

const SUSPICIOUS: &str = "
data:
  # @requires
  port: 80
ccm:
  resources:
    - file:
        - $W/*.conf: { $OWN, mode: '0644' }
";

#[test]
fn a_warning_shows_its_line_and_stops_nothing() {
    let world = World::new().manifest(SUSPICIOUS);
    for outcome in [world.validate(), world.apply()] {
        outcome
            .exits(0)
            .complains("warning[unknown-rule]: unknown rule `@requires` of data `port`\n --> site.yaml:3:5\n")
            .complains("help: did you mean `@require`?")
            .complains("warning[glob-in-name]: file#")
            .complains(" --> site.yaml:8:11\n");
    }
    assert!(world.path("*.conf").is_file());
}

#[test]
fn validate_prints_all_diagnostics_as_json_lines() {
    let world = World::new().manifest(&SUSPICIOUS.replace("mode: '0644'", "mode: '0644', contant: x"));
    let outcome = world.ccm(["validate", "--json", "site.yaml"]).run();
    outcome.exits(2);
    let name = world.path("*.conf").display().to_string();
    let expected = [
        json!({
            "id": "unknown-rule", "severity": "warning", "message": "unknown rule `@requires` of data `port`",
            "file": "site.yaml", "line": 3, "column": 5, "help": "did you mean `@require`?",
        }),
        json!({
            "id": "glob-in-name", "severity": "warning",
            "message": format!(
                "file#{name}: `*` in a name is part of the path as it is: it matches nothing else"
            ),
            "file": "site.yaml", "line": 8, "column": 11, "help": "declare each file on its own",
        }),
        json!({
            "id": "unknown-property", "severity": "error",
            "message": format!("file#{name}: unknown property `contant`"),
            "file": "site.yaml", "line": 8, "column": outcome.json_lines()[2]["column"],
            "help": "did you mean `content`?",
        }),
    ];
    assert_eq!(outcome.json_lines(), expected, "{outcome}");
    assert_eq!(outcome.stderr, "");
    world.ccm(["validate", "--json", "site.yaml"]).run().exits(2);
    let good = World::new().manifest("[]");
    let outcome = good.ccm(["validate", "--json", "site.yaml"]).run();
    outcome.exits(0);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn every_item_of_a_list_that_is_no_good_is_told() {
    let places = |manifest: &str| {
        let world = World::new().manifest(manifest);
        let lines = world.ccm(["validate", "--json", "site.yaml"]).run().exits(2).json_lines();
        let place =
            |line: &serde_json::Value| (line["line"].as_u64().unwrap(), line["column"].as_u64().unwrap());
        lines.iter().map(place).collect::<Vec<_>>()
    };
    let manifest =
        "- exec:\n    - 'true':\n        environment: [A, B=c, D]\n        require: [x, [y], {}]\n";
    assert_eq!(places(manifest), [(3, 23), (3, 31), (4, 19), (4, 22), (4, 27)]);
    // What a list has besides is looked at as ever, and one of which nothing is left is told once.
    let manifest = "- exec:\n    - 'true': { require: [x, 'file#/none', y], tags: [' '] }\n";
    assert_eq!(places(manifest), [(2, 27), (2, 30), (2, 44), (2, 55)]);
    let many = format!("- exec: [{{ 'true': {{ require: [{}] }} }}]", "x, ".repeat(10_000));
    assert!(places(&many).len() < 100);
}

#[test]
fn strictly_a_warning_is_an_error() {
    let world = World::new().manifest(SUSPICIOUS);
    for command in [&["validate", "--strict"][..], &["apply", "--strict"]] {
        let outcome = world.ccm(command.iter().chain(&["site.yaml"])).run();
        outcome
            .exits(2)
            .complains("error[unknown-rule]: unknown rule `@requires` of data `port`\n --> site.yaml:3:5\n")
            .complains("2 errors in site.yaml");
    }
    assert!(!world.path("*.conf").exists());
    let outcome = world.ccm(["validate", "--strict", "--json", "site.yaml"]).run();
    let severities: Vec<_> =
        outcome.exits(2).json_lines().iter().map(|line| line["severity"].clone()).collect();
    assert_eq!(severities, ["error", "error"]);
    World::new().manifest("[]").ccm(["apply", "--strict", "site.yaml"]).run().exits(0);
    // Also beside an error, and in each of several manifests.
    let world =
        world.beside("bad.yaml", SUSPICIOUS.replace("- $W/*.conf: { $OWN, mode: '0644' }", "- x: { y: z }"));
    let outcome = world.ccm(["validate", "--strict", "--json", "bad.yaml", "site.yaml"]).run();
    let found: Vec<_> = outcome
        .exits(2)
        .json_lines()
        .iter()
        .map(|line| format!("{} {}", line["file"].as_str().unwrap(), line["severity"].as_str().unwrap()))
        .collect();
    assert!(found.iter().all(|line| line.ends_with(" error")), "{outcome}");
    assert!(found.contains(&"bad.yaml error".to_owned()) && found.contains(&"site.yaml error".to_owned()));
}

#[test]
fn validate_prints_all_diagnostics_as_sarif() {
    let world = World::new().beside(
        "my site.yaml",
        "\
data:
  # @requires
  port: 80
ccm: { resources: [fiel: []] }
",
    );
    let outcome = world.ccm(["validate", "--sarif", "my site.yaml"]).run();
    let log = outcome.exits(2).json();
    assert_eq!(outcome.stderr, "");
    assert_eq!(
        (&log["version"], &log["runs"][0]["tool"]["driver"]["name"]),
        (&json!("2.1.0"), &json!("ccm"))
    );
    let results = log["runs"][0]["results"].as_array().unwrap();
    let place = |start: [u64; 2], end: [u64; 2]| {
        json!([{ "physicalLocation": {
            "artifactLocation": { "uri": "my%20site.yaml" },
            "region": { "startLine": start[0], "startColumn": start[1], "endLine": end[0], "endColumn": end[1] },
        } }])
    };
    let found: Vec<_> = results.iter().map(|result| (&result["ruleId"], &result["level"])).collect();
    let expected = [(&json!("unknown-rule"), &json!("warning")), (&json!("unknown-type"), &json!("error"))];
    assert_eq!(found, expected, "{outcome}");
    assert_eq!(results[0]["locations"], place([2, 5], [2, 14]), "{outcome}");
    assert_eq!(results[1]["locations"], place([4, 20], [4, 24]), "{outcome}");
    assert_eq!(
        results[0]["message"]["text"],
        "unknown rule `@requires` of data `port`\nhelp: did you mean `@require`?"
    );
    let rules: Vec<_> = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["id"])
        .collect();
    assert_eq!(rules, ["unknown-rule", "unknown-type"]);
    // Without anything to say it is still a log, and one that says when a manifest could not be read.
    let log = world.ccm(["validate", "--sarif", "none.yaml"]).run().exits(2).json();
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
    assert_eq!(log["runs"][0]["results"], json!([]));
}
