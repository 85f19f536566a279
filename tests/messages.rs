//! Everything that `ccm validate` reports about a manifest, word for word.

use crate::support::World;

/// A manifest, and all diagnostics about it: severity, line, column and message, then the help after ` | `.
type Case = (&'static str, &'static [&'static str]);

/// Checks that exactly these diagnostics are reported, in this order.
pub(crate) fn check(cases: &[Case], world: impl Fn() -> World) {
    let mut wrong = String::new();
    for (manifest, expected) in cases {
        let world = world().manifest(manifest);
        let outcome = world.ccm(["validate", "--json", "site.yaml"]).run();
        let found: Vec<String> = outcome
            .json_lines()
            .iter()
            .map(|line| {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                let help = line["help"].as_str().map(|help| format!(" | {help}")).unwrap_or_default();
                format!("{} {}:{} {}{help}", text("severity"), line["line"], line["column"], text("message"))
            })
            .collect();
        let expected: Vec<String> = expected.iter().map(|text| world.fill(text)).collect();
        let has_error = found.iter().any(|line| line.starts_with("error"));
        outcome.exits(if has_error { 2 } else { 0 });
        if found != expected {
            wrong += &format!("{manifest}\n   found: {found:#?}\nexpected: {expected:#?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn expressions_that_never_end_are_reported() {
    check(
        &[
            (
                "data: { l: [a] }\nccm:\n  resources:\n    - exec:\n        - x:\n            command: /bin/echo ${ join(map(Data.l, \"x\" + #), \",\") }\n",
                &[
                    "error 6:22 exec#x: YAML ends this value at ` #`, inside the expression that begins with `${ join(` | put the value in quotes: without them, ` #` begins a comment",
                ],
            ),
            (
                "data: { l: [a] }\nccm:\n  resources:\n    - file:\n        - $W/a:\n            content: ${ join(map(Data.l, \"x\" + #), \",\") }\n            owner: \"$UID\"\n            group: \"$GID\"\n            mode: \"0644\"\n",
                &[
                    "error 6:22 file#$W/a: YAML ends this value at ` #`, inside the expression that begins with `${ join(` | put the value in quotes: without them, ` #` begins a comment",
                ],
            ),
            (
                "data: { l: [a] }\nccm:\n  resources:\n    - exec:\n        - /bin/echo ${ join(map(Data.l, \"x\" + #), \",\") }: {}\n",
                &[
                    "error 5:11 YAML ends this value at ` #`, inside the expression that begins with `${ join(` | put the value in quotes: without them, ` #` begins a comment",
                ],
            ),
            (
                "data: { l: [a] }\nccm:\n  resources:\n    - exec:\n        - for_each: ${ filter(Data.l, # != \"b\") }\n          /bin/echo {{ each }}: {}\n",
                &[
                    "error 5:21 exec#/bin/echo {{ each }}: YAML ends this value at ` #`, inside the expression that begins with `${ filter(` | put the value in quotes: without them, ` #` begins a comment",
                ],
            ),
            (
                "- exec: [{ x: { command: '/bin/echo {{ Data.x' } }]",
                &[
                    "warning 1:37 exec#x: `{{ Data.` begins an expression that never ends, and stays as it is | end it with `}}`, or begin it with `{{{{` if it is meant as text",
                ],
            ),
            (
                "- exec: [{ '/bin/echo ${ Facts.os': {} }]",
                &[
                    "warning 1:23 exec#/bin/echo ${ Facts.os: `${ Facts.` begins an expression that never ends, and stays as it is | end it with `}`, or begin it with `$${` if it is meant as text",
                ],
            ),
            (
                "- exec: [{ x: { command: 'echo ${ Data.password', sensitive: true } }]",
                &[
                    "warning 1:32 exec#x: an expression in it is probably not what was meant | its text may be secret and is not shown: try the expression with `ccm eval`",
                ],
            ),
            (
                "data:\n  a: ${ Facts.os\n  b: x # ${ Facts.os\noverrides: { x: { a: 'x {{ Environ.A }' } }\nhierarchy: { order: [x] }\nccm: { resources: [] }\n",
                &[
                    "warning 2:6 `${ Facts.` begins an expression that never ends, and stays as it is | end it with `}`, or begin it with `$${` if it is meant as text",
                    "warning 4:25 `{{ Environ.` begins an expression that never ends, and stays as it is | end it with `}}`, or begin it with `{{{{` if it is meant as text",
                ],
            ),
            (
                "- file:\n    - $W/a: { $OWN, mode: '0644',\n        content: \"${ template('torn.tmpl') }\" }",
                &[
                    "warning 3:18 file#$W/a: template: torn.tmpl:2:3: `${ Data.` begins an expression that never ends, and stays as it is | end it with `}`, or begin it with `$${` if it is meant as text",
                ],
            ),
            ("- exec: [{ x: { command: 'echo ${HOME', provider: shell } }]", &[]),
        ],
        || World::new().beside("torn.tmpl", "a\nb ${ Data.port\n"),
    );
}
