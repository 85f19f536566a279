//! Everything that `ccm validate` reports about a manifest, word for word.

use std::{fmt::Write, path::Path};

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
            let _ = write!(wrong, "{manifest}\n   found: {found:#?}\nexpected: {expected:#?}\n");
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

/// Names that hold more than a name: one error each, with the property that the rest belongs to.
#[test]
fn names_with_a_version_an_instance_or_a_directory_are_reported_once() {
    check(
        &[
            (
                "- package:\n    - bash=5.2:",
                &[
                    "error 2:7 package#bash=5.2: package name contains dangerous characters: \"bash=5.2\"; the name \"bash=5.2\" contains '=': only letters, digits and . _ + : ~ - are allowed | write `bash` as the name, with `ensure: \"5.2\"`",
                ],
            ),
            (
                "- service:\n    - wg-quick@wg0:",
                &[
                    "error 2:7 service#wg-quick@wg0: service name contains dangerous characters: \"wg-quick@wg0\"; the name \"wg-quick@wg0\" contains '@': only letters, digits and . _ + : ~ - are allowed | choose a name without `@`, such as `wg-quick`, and add `unit: wg-quick@wg0`",
                ],
            ),
            (
                "- service:\n    - /etc/systemd/system/app.service:",
                &[
                    "error 2:7 service#/etc/systemd/system/app.service: service name contains dangerous characters: \"/etc/systemd/system/app.service\"; the name \"/etc/systemd/system/app.service\" contains '/': only letters, digits and . _ + : ~ - are allowed | write the name without the directory: `app.service`",
                ],
            ),
            (
                "- group:\n    - \"%ops\": { gid: 5 }",
                &[
                    "error 2:7 group#%ops: \"%ops\" cannot be the name of an account: it contains '%'; use letters, digits, _ . -",
                ],
            ),
        ],
        World::new,
    );
}

#[test]
fn types_of_other_tools_are_named_with_their_replacement() {
    let expected = |name: &str, instead: &str| format!("error 1:3 unknown type `{name}` | use {instead}");
    for (name, instead) in [
        ("template", "`file` with `content: \"${ template('FILE') }\"`"),
        ("include", "`apply`, which runs another manifest"),
        ("copy", "`file` with `source: FILE`"),
        ("apt_repository", "`file` for the definition of the repository, before the `package`"),
        ("lineinfile", "`file` with `edit`"),
        ("shell", "`exec` with `provider: shell`"),
        ("systemd", "`service`, with a `file` for the unit"),
    ] {
        let world = World::new().manifest(&format!("- {name}: [{{ x: {{}} }}]\n"));
        let outcome = world.ccm(["validate", "--json", "site.yaml"]).run();
        outcome.exits(2);
        let lines = outcome.json_lines();
        let text = |key: &str| lines[0][key].as_str().unwrap().to_owned();
        let found = format!(
            "error {}:{} {} | {}",
            lines[0]["line"],
            lines[0]["column"],
            text("message"),
            text("help")
        );
        assert_eq!(found, expected(name, instead));
    }
}

#[test]
fn values_of_the_wrong_kind_are_reported_with_the_way_to_write_them() {
    check(
        &[
            (
                "- user: [{ a: { comment: [a, b] } }]",
                &[
                    "error 1:26 user#a: comment: expected a string, found a list | put the value in quotes if it is meant as text",
                ],
            ),
            (
                "- user: [{ a: { comment: { a: b } } }]",
                &[
                    "error 1:26 user#a: comment: expected a string, found a map | put the value in quotes if it is meant as text",
                ],
            ),
            (
                "- group:\n    - %ops: {}\n",
                &[
                    "error 2:7 no text begins with this character unless it is in quotes | put the whole value in quotes",
                ],
            ),
            (
                "- user: [{ a: { uid: 0100 } }]",
                &[
                    "error 1:22 user#a: uid: a number cannot begin with a zero: 0100 | write 100, or 64 if it is meant as octal",
                ],
            ),
            (
                "- user: [{ a: { uid: 0180 } }]",
                &["error 1:22 user#a: uid: a number cannot begin with a zero: 0180 | write 180"],
            ),
            (
                "- exec: [{ a: { sensitive: true, timeout: [1] } }]",
                &[
                    "error 1:43 exec#a: timeout: expected a string, found a list | put the value in quotes if it is meant as text",
                ],
            ),
            (
                "- file:\n    - $W/a:\n        content: |\n        one\n        two\n",
                &[
                    "error 4:9 the text of `content` is not indented | indent each line of the text deeper than `content`",
                ],
            ),
        ],
        World::new,
    );
}

#[test]
fn conditions_references_and_loops_are_explained() {
    check(
        &[
            (
                "- exec:\n    - /bin/a: { require: exec#/bin/b }\n    - /bin/b: { subscribe: exec#/bin/c }\n    - /bin/c: { require: [exec#/bin/a] }\n",
                &[
                    "error 2:26 exec#/bin/a: requires itself: exec#/bin/a -> exec#/bin/b -> exec#/bin/c -> exec#/bin/a | remove one of these references",
                ],
            ),
            (
                "- exec: [{ /bin/a: { control: 'Facts.os == \"linux\"' } }]",
                &[
                    "error 1:31 exec#/bin/a: control: expected a map, found the string \"Facts.os == \\\"linux\\\"\" | write `control: { if: EXPRESSION }`",
                ],
            ),
            (
                "data: { on: 'false' }\nccm:\n  resources:\n    - exec: [{ /bin/a: { control: { if: Data.on } } }]",
                &[
                    "error 4:41 exec#/bin/a: control.if must give a boolean, not string: `Data.on` | \"false\" is a string: write true or false without quotes, or compare with `==`",
                ],
            ),
            (
                "- exec: [{ '/bin/a {{ item }}': {} }]",
                &[
                    "error 1:23 exec#/bin/a {{ item }}: unknown variable `item` | `each` is the element of a `for_each`, and `index` its position: only a resource with `for_each` has them",
                ],
            ),
            (
                "- exec: [{ /bin/a: { control: { if: each.on } } }]",
                &[
                    "error 1:37 exec#/bin/a: unknown variable `each` | `each` is the element of a `for_each`, and `index` its position: only a resource with `for_each` has them",
                ],
            ),
            (
                "- exec: [{ for_each: [1], '/bin/a {{ item }}': {} }]",
                &[
                    "error 1:38 exec#/bin/a {{ item }}: unknown variable `item` (element 0, 1) | did you mean `each`?",
                ],
            ),
            (
                "- exec: [{ a: { command: \"echo ${ template('a.tmpl') }\" } }]",
                &[
                    "error 1:35 exec#a: template: a.tmpl:1:4: template: b.tmpl:1:13: template: the template includes itself: a.tmpl -> b.tmpl -> a.tmpl | templates have no blocks that could end this; write it for `jinja('FILE')`",
                ],
            ),
            (
                "- exec: [{ a: { command: \"echo ${ jinja('a.j2') }\" } }]",
                &[
                    "error 1:35 exec#a: jinja: a.j2:1:4: templates or macros use each other without end, or too deeply | does a.j2 include itself?",
                ],
            ),
        ],
        || {
            World::new()
                .beside("a.tmpl", "${ template('b.tmpl') }")
                .beside("b.tmpl", "${ template('a.tmpl') }")
                .beside("a.j2", "{% include 'a.j2' %}")
        },
    );
}

#[test]
fn comparison_of_a_fact_that_fails_only_by_case_is_reported() {
    let manifest = "- exec: [{ /bin/a: { control: { if: 'Facts.family == \"Debian\"' } } }]\n";
    let world = World::new().manifest(manifest);
    let check = |family: &str, expected: &str| {
        let outcome = world.ccm(["validate", "site.yaml", "--fact", &format!("family={family}")]).run();
        outcome.exits(0);
        assert_eq!(outcome.stderr, expected, "{family}");
    };
    check("Debian", "");
    check("redhat", "");
    check(
        "debian",
        "\
warning[case-comparison]: exec#/bin/a: `Facts.family` is \"debian\", which never equals \"Debian\": only the case differs
 --> site.yaml:1:38
  |
1 | - exec: [{ /bin/a: { control: { if: 'Facts.family == \"Debian\"' } } }]
  |                                      ^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: compare with \"debian\"

",
    );
}

#[test]
fn properties_of_links_and_files_of_cron_that_have_no_effect_are_reported() {
    check(
        &[
            (
                "- file:\n    - /srv/a: { ensure: link, target: /srv/b, mode: '0644', owner: root }\n",
                &[
                    "warning 2:53 file#/srv/a: `mode` has no effect on a link | set it on the target, in a `file` of its own",
                ],
            ),
            (
                "- file:\n    - /srv/a: { ensure: link, target: /srv/b, owner: root }\n",
                &[
                    "warning 2:54 file#/srv/a: `owner` has no effect on a link | set it on the target, in a `file` of its own",
                ],
            ),
            (
                "- file:\n    - defaults: { owner: root, group: root, mode: '0644' }\n    - /srv/a: { ensure: link, target: /srv/b }\n",
                &[],
            ),
            (
                "- file:\n    - defaults: { owner: root, group: root, mode: '0644' }\n    - /etc/cron.d/a: { content: '* * * * * root true' }\n    - /etc/cron.d/b: { content: \"* * * * * root true\\n\" }\n",
                &[
                    "warning 3:33 file#/etc/cron.d/a: the last line has no newline, and cron ignores such a line | write the content as a block (`|`), or end it with \"\\n\" in double quotes",
                ],
            ),
        ],
        World::new,
    );
}

#[test]
fn downloads_templates_zones_and_secrets_are_doubted() {
    check(
        &[
            (
                "- file:\n    - $W/a:\n        source: https://example.com/a\n        owner: root\n        group: root\n        mode: '0644'\n",
                &[
                    "warning 3:17 file#$W/a: without `checksum`, ccm accepts any content | give the SHA-256 of the file as `checksum`, or `checksum: none`",
                ],
            ),
            (
                "- file: [{ $W/a: { source: 'https://example.com/a', checksum: none, $OWN, mode: '0644' } }]",
                &[],
            ),
            (
                "- archive:\n    - $W/a.tar.gz:\n        url: https://example.com/a.tar.gz\n        owner: root\n        group: root\n",
                &[
                    "warning 3:14 archive#$W/a.tar.gz: without `checksum`, ccm accepts any content | give the SHA-256 of the file as `checksum`, or `checksum: none`",
                ],
            ),
            (
                "- archive:\n    - $W/a.tar.gz: { url: 'https://example.com/a.tar.gz', checksum: none, owner: root, group: root }\n",
                &[],
            ),
            (
                "- file:\n    - $W/a:\n        source: a.tmpl\n        owner: root\n        group: root\n        mode: '0644'\n",
                &[
                    "warning 3:17 file#$W/a: `{{ }}` in a.tmpl is copied as it is, not expanded | if it is a template, write `content: \"${ template('a.tmpl') }\"`",
                ],
            ),
            (
                "- file:\n    - $W/a:\n        source: a.j2\n        owner: root\n        group: root\n        mode: '0644'\n",
                &[
                    "warning 3:17 file#$W/a: `{% %}` in a.j2 is copied as it is, not expanded | if it is a template, write `content: \"${ jinja('a.j2') }\"`",
                ],
            ),
            (
                "data: { db: { Root_Password: x } }\nccm:\n  resources:\n    - exec:\n        - x:\n            command: mysql -p{{ Data.db.Root_Password }} app\n",
                &[
                    "warning 6:22 exec#x: all users can list the arguments of a command, and `Data.db.Root_Password` is probably a secret | hand it over in `environment` or `stdin`",
                ],
            ),
            (
                "data: { db: { password: x } }\nccm:\n  resources:\n    - exec:\n        - x:\n            command: mysql\n            environment: ['MYSQL_PWD={{ Data.db.password }}']\n",
                &[],
            ),
        ],
        || World::new().beside("a.tmpl", "port {{ Data.port }}\n").beside("a.j2", "{% if x %}y{% endif %}\n"),
    );
    if Path::new("/usr/share/zoneinfo").is_dir() {
        check(
            &[(
                "- file:\n    - /etc/localtime:\n        ensure: link\n        target: /usr/share/zoneinfo/Europe/Berln\n",
                &[
                    "warning 4:17 file#/etc/localtime: there is no time zone /usr/share/zoneinfo/Europe/Berln | `timedatectl list-timezones` lists the time zones of a machine",
                ],
            )],
            World::new,
        );
    }
}

#[test]
fn notes_are_shown_only_if_they_are_wanted() {
    let world = World::new().manifest("- exec: [{ /bin/a: {} }, { /bin/b: { creates: /b } }]\n");
    let validate = |arguments: &[&str]| world.ccm(["validate", "site.yaml"].iter().chain(arguments)).run();
    assert_eq!(validate(&[]).exits(0).stderr, "");
    validate(&["--strict"]).exits(0);
    let noted = validate(&["-v", "--strict"]);
    noted.exits(0);
    assert_eq!(
        noted.stderr,
        "\
note[no-guard]: exec#/bin/a: the command runs in every run, because the resource has no guard
 --> site.yaml:1:12
  |
1 | - exec: [{ /bin/a: {} }, { /bin/b: { creates: /b } }]
  |            ^^^^^^
  |
  = help: add `creates`, `onlyif`, `unless` or `refresh_only`, or leave it so if it is meant

"
    );
}

#[test]
fn eval_rejects_a_name_that_does_not_exist() {
    let world = World::new();
    let eval = |expression: &str| world.ccm(["eval", expression]).run();
    eval("Facts.typo").exits(2).complains("error[missing-member]: `Facts.typo` does not exist");
    eval("Facts.typo ?? 1").exits(0).says("1\n");
}
