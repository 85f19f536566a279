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
            .complains("warning: unknown rule `@requires` of data `port`\n --> site.yaml:3:5\n")
            .complains("help: did you mean `@require`?")
            .complains("warning: file#")
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
                "file#{name}: `*` and `?` in a name are characters of the path: they match nothing else"
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
