//! Mistakes that people make, each with the words that they get to read, before anything is touched.

use crate::support::World;

/// What is found: severity, place and message, then the help.
pub(crate) struct Mistake {
    pub(crate) manifest: &'static str,
    pub(crate) says: &'static str,
    help: &'static str,
}

const fn mistake(manifest: &'static str, says: &'static str, help: &'static str) -> Mistake {
    Mistake { manifest, says, help }
}

pub(crate) const DATA: &str =
    "data: { port: 8080, role: web, version: 1.10, mode: 420 }\nccm:\n  resources:\n";

/// The resources of manifests whose data is [`DATA`]; they begin at line 4.
pub(crate) const MISTAKES: &[Mistake] = &[
    // Late templates that depend on nothing that a run could change.
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: 'port ${ Data.prot }' } }]",
        "error 4: file#$W/a: `Data.prot` has no value",
        "did you mean `port`?",
    ),
    mistake(
        "- exec: [{ a: { command: \"echo ${ lookup('data.prot') }\" } }]",
        "error 4: exec#a: lookup: `data.prot` is missing: `data` has no `prot`",
        "did you mean `port`?",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: \"${ Data.port + 'x' }\" } }]",
        "error 4: file#$W/a: `+` cannot be applied to int and string",
        "make text of the left side with `string(...)`",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: '{{ port }}' } }]",
        "error 4: file#$W/a: unknown variable `port`",
        "did you mean `Data.port`?",
    ),
    mistake(
        "- file: [{ '$W/${HOME}': { $OWN, mode: '0644' } }]",
        "error 4: file#$W/${HOME}: unknown variable `HOME`",
        "did you mean `Environ.HOME`? write `$${HOME}` for the text `${HOME}`",
    ),
    // Files of the manifest.
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', source: motd.txt } }]",
        "error 4: file#$W/a: source: there is no $B/motd.txt",
        "did you mean `motd.text`?",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: \"${ file('motd.txt') }\" } }]",
        "error 4: file#$W/a: file: cannot read $B/motd.txt: no such file",
        "did you mean `motd.text`?",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: \"${ template('app.tmpl') }\" } }]",
        "error 4: file#$W/a: template: app.tmpl:2:8: `Data.prot` has no value",
        "did you mean `port`?",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: \"${ jinja('app.j2') }\" } }]",
        "error 4: file#$W/a: jinja: app.j2:2:11: `data.prot` has no value",
        "did you mean `port`?",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: \"${ template('block.tmpl') }\" } }]",
        "warning 4: file#$W/a: template: block.tmpl:2:1: `{% i` belongs to Jinja and stays as it is",
        "templates here are `{{ }}` and `${ }` with expressions such as `x ? \"a\" : \"b\"`; `jinja('FILE')` reads those of Jinja",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: '{{ Data.prt | default(1) }}' } }]",
        "error 4: file#$W/a: unknown function `default`",
        "give a default with `??`",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: '{{ range .list }}' } }]",
        "error 4: file#$W/a: unknown variable `range`",
        "there are no blocks in these templates: choose with `x ? \"a\" : \"b\"`, join lists with `join`, or write it for `jinja('FILE')`",
    ),
    mistake(
        "- apply: [{ app.yml: {} }]",
        "error 4: apply#app.yml: cannot read $B/app.yml: no such file",
        "did you mean `app.yaml`?",
    ),
    // Members that do not exist.
    mistake(
        "- exec: [{ 'true': { control: { if: \"Data.rol == 'web'\" } } }]",
        "warning 4: exec#true: `Data.rol` does not exist",
        "did you mean `Data.role`?",
    ),
    mistake(
        "- exec: [{ 'true': { control: { unless: \"Facts.famly == 'debian'\" } } }]",
        "warning 4: exec#true: `Facts.famly` does not exist",
        "did you mean `Facts.family`?",
    ),
    mistake(
        "- exec: [{ 'true': { cwd: \"${ Data.where == 'x' ? '/a' : '/' }\" } }]",
        "warning 4: exec#true: `Data.where` does not exist",
        "if it may be missing, give a default with `??` or read it with `?.`",
    ),
    mistake(
        "- exec: [{ 'true': { control: { if: Data.port } } }]",
        "error 4: exec#true: control.if must give a boolean, not int: `Data.port`",
        "",
    ),
    // A shell was expected.
    mistake(
        "- exec: [{ a: { command: 'ls | wc' } }]",
        "error 4: exec#a: `command` holds `|`, which only a shell would understand: the program would get it as an argument",
        "give `provider: shell`, or quote it if the program is to get it",
    ),
    mistake(
        "- exec: [{ a: { command: 'make; make install' } }]",
        "error 4: exec#a: `command` holds `make;`, which only a shell would understand: the program would get it as an argument",
        "give `provider: shell`, or quote it if the program is to get it",
    ),
    mistake(
        "- exec: [{ 'true': { unless: 'test -e /x && true' } }]",
        "error 4: exec#true: `unless` holds `&&`, which only a shell would understand: the program would get it as an argument",
        "give `provider: shell`, or quote it if the program is to get it",
    ),
    mistake(
        "- exec: [{ a: { command: 'ls $HOME' } }]",
        "warning 4: exec#a: `command` holds `$HOME`, but there is no shell: variables are not replaced",
        "give `provider: shell`; `${ Environ.NAME }` is ccm's own way; or quote it if it is meant as it is",
    ),
    mistake(
        "- exec: [{ a: { command: 'ls /tmp/*.log' } }]",
        "warning 4: exec#a: `command` holds `/tmp/*.log`, but there is no shell: names are not matched",
        "give `provider: shell`; or name each file; or quote it if it is meant as it is",
    ),
    mistake(
        "- exec: [{ a: { command: 'sort </etc/passwd' } }]",
        "warning 4: exec#a: `command` holds `</etc/passwd`, but there is no shell: nothing is read from there",
        "give `provider: shell`; or leave it out; or quote it if it is meant as it is",
    ),
    mistake(
        "- exec: [{ a: { command: 'ls ~/x' } }]",
        "warning 4: exec#a: `command` holds `~/x`, but there is no shell: it is not a home directory",
        "give `provider: shell`; `${ Environ.HOME }` is ccm's own way; or quote it if it is meant as it is",
    ),
    mistake(
        "- file: [{ ~/a: { $OWN, mode: '0644' } }]",
        "error 4: file#~/a: path \"~/a\" must be absolute: start it with /",
        "write `${ Environ.HOME }`",
    ),
    mistake(
        "- file: [{ '$W/[ab].conf': { $OWN, mode: '0644' } }]",
        "warning 4: file#$W/[ab].conf: `[ab]` in a name is part of the path as it is: it matches nothing else",
        "declare each file on its own",
    ),
    mistake(
        "- file: [{ $W/$USER: { $OWN, mode: '0644' } }]",
        "warning 4: file#$W/$USER: `$USER` in a name is not a variable: it is part of the path as it is",
        "write `${ Environ.USER }`",
    ),
    mistake(
        "- exec: [{ 'true': { refresh_only: true } }]",
        "warning 4: exec#true: `refresh_only` without `subscribe`: the command never runs",
        "name the resources whose change it is for: `subscribe: [\"file#/etc/app.conf\"]`",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', content: '{% if x %}${ Data.port }' } }]",
        "warning 4: file#$W/a: `{% i` belongs to Jinja and stays as it is",
        "templates here are `{{ }}` and `${ }` with expressions such as `x ? \"a\" : \"b\"`; `jinja('FILE')` reads those of Jinja",
    ),
    // Numbers that have no digits.
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '${ Data.mode }' } }]",
        "error 4: file#$W/a: mode: a mode is written in octal digits, and the number 420 has none",
        "write it as text: \"420\", or \"0644\" if 420 was made from that",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '4755' } }]",
        "error 4: file#$W/a: mode: mode \"4755\" is more than 0777: the other bits of a file are `setuid: true`, `setgid: true` and `sticky: true`",
        "",
    ),
    // Words of other tools and languages.
    mistake(
        "- service: [{ a: { enable: 1 } }]",
        "error 4: service#a: enable: expected true or false, found the number 1",
        "write true",
    ),
    mistake(
        "- exec: [{ 'true': { tries: '3' } }]",
        "error 4: exec#true: tries: expected a whole number from 1, found the string \"3\"",
        "write 3, without quotes",
    ),
    mistake(
        "- exec: [{ 'true': { returns: 0 } }]",
        "error 4: exec#true: returns: expected a list, found the number 0",
        "write a list: [0]",
    ),
    mistake(
        "- service: [{ a: { ensure: started } }]",
        "error 4: service#a: ensure: expected one of `running`, `stopped`, found the string \"started\"",
        "write `running` here instead",
    ),
    mistake(
        "- package: [{ a: { ensure: installed } }]",
        "error 4: package#a: ensure: \"installed\" is no state of a package; it has to be present, absent, purged, latest or a version",
        "write `present` here instead",
    ),
    mistake(
        "- package: [{ a: { version: 1.10 } }]",
        "error 4: package#a: unknown property `version`",
        "write the version as `ensure` here instead",
    ),
    mistake(
        "- service: [{ a: { enable: yes } }]",
        "error 4: service#a: enable: expected true or false, found the string \"yes\"",
        "`yes` is a string in YAML 1.2; write `true`",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', state: present } }]",
        "error 4: file#$W/a: unknown property `state`",
        "write `ensure` here instead",
    ),
    mistake(
        "- file: [{ a: { $OWN, mode: '0644', path: /etc/a } }]",
        "error 4: file#a: unknown property `path`",
        "write the path as the name of the resource here instead",
    ),
    mistake(
        "- file: [{ $W/a: { $OWN, mode: '0644', notify: x } }]",
        "error 4: file#$W/a: unknown property `notify`",
        "write `subscribe: [\"TYPE#NAME\"]` here instead, at the resource to refresh",
    ),
    mistake(
        "- exec: [{ a: { environment: ['=v'] } }]",
        "error 4: exec#a: environment: an entry that begins with \"=\" has no name: write KEY=value",
        "",
    ),
];

#[test]
fn each_mistake_is_told_before_anything_is_touched() {
    for Mistake { manifest, says, help } in MISTAKES {
        let world = World::new()
            .manifest(&format!("{DATA}    {manifest}\n"))
            .beside("motd.text", "hello\n")
            .beside("app.yaml", "[]\n")
            .beside("app.tmpl", "# app\nport = ${ Data.prot }\n")
            .beside("app.j2", "# app\nport = {{ data.prot }}\n")
            .beside("block.tmpl", "${ Data.port }\n{% if x %}\n");
        let before = world.tree();
        let outcome = world.ccm(["validate", "--json", "site.yaml"]).env("HOME", "/root").run();
        let base = world.base().display().to_string();
        let expected = world.fill(says).replace("$B", &base);
        let found: Vec<_> = outcome.json_lines();
        let told = |found: &serde_json::Value| {
            let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
            (format!("{} {}: {}", text("severity"), found["line"], text("message")), text("help"))
        };
        let told: Vec<_> = found.iter().map(told).collect();
        assert!(
            told.contains(&(expected, world.fill(help))),
            "{manifest}\nwanted: {says} [{help}]\nfound: {told:#?}"
        );
        outcome.exits(if says.starts_with("error") { 2 } else { 0 });
        assert_eq!(world.tree(), before, "{outcome}");
    }
}

#[test]
fn an_operator_of_a_shell_is_told_once() {
    for operator in ["|", "||", "&&", ";", ">", ">>", "<", "2>", "&", "2>&1"] {
        let world = World::new().manifest(&format!("- exec: [{{ a: {{ command: 'a {operator} b' }} }}]\n"));
        let found = world.ccm(["validate", "--json", "site.yaml"]).run().exits(2).json_lines();
        let messages: Vec<_> = found.iter().map(|found| found["message"].clone()).collect();
        let expected = format!(
            "exec#a: `command` holds `{operator}`, which only a shell would understand: \
             the program would get it as an argument"
        );
        assert_eq!(messages, [expected]);
    }
}

/// What looks like a mistake and is none.
const FINE: &[&str] = &[
    "- exec: [{ 'true': { control: { if: \"(Data.rol ?? '') == 'web'\" } } }]",
    "- exec: [{ 'true': { control: { if: \"Data?.rol == 'web'\" } } }]",
    "- exec: [{ 'true': { control: { if: \"'rol' in Data && Data.rol == 'web'\" } } }]",
    "- exec: [{ 'true': { control: { if: 'Data.rol != nil' } } }]",
    "- exec: [{ a: { command: \"true '|' \\\"&&\\\"\" } }]",
    "- exec: [{ a: { command: 'ls | wc', provider: shell } }]",
    "- exec: [{ a: { command: '[ -e /x ]' } }]",
    "- exec: [{ a: { command: 'sh -c \"echo $HOME\"' } }]",
    "- exec: [{ a: { command: \"find . -name '*.log' -exec true {} ;\", provider: shell } }]",
    // It is off here, and its templates are for other machines.
    "- exec: [{ a: { command: '${ Data.prot }', control: { if: 'false' } } }]",
    // Nobody knows yet what it will hold.
    "- exec: [{ a: { command: \"${ file('/nonexistent/x') }\" } }]",
    "- file: [{ $W/a: { $OWN, mode: 0644, content: 'v${ Data.version }' } }]",
    "- exec: [{ 'true': {} }, { 'false': { require: exec#true, control: { if: false } } }]",
];

#[test]
fn what_only_looks_like_a_mistake_is_not_told() {
    for manifest in FINE {
        let world = World::new().manifest(&format!("{DATA}    {manifest}\n"));
        let outcome = world.ccm(["validate", "--json", "site.yaml"]).run();
        assert_eq!(outcome.stdout, "", "{manifest}\n{outcome}");
        outcome.exits(0);
    }
}

#[test]
fn a_file_that_an_earlier_resource_may_make_is_a_warning() {
    for earlier in ["exec: [{ 'true': {} }]", "file: [{ $W/made.txt: { $OWN, mode: '0644', content: x } }]"] {
        let world = World::new().manifest(&format!(
            "- {earlier}\n- file: [{{ $W/a: {{ $OWN, mode: '0644', source: w/made.txt }} }}]\n"
        ));
        let outcome = world.validate();
        outcome
            .exits(0)
            .complains("warning[missing-file]: file#")
            .complains("source: there is no ")
            .complains("help: this is fine if an earlier resource makes it");
    }
}

#[test]
fn a_mode_in_json_is_text() {
    let world = World::new();
    let text = world.fill(r#"[{"file": {"$W/a": {"owner": "$UID", "group": "$GID", "mode": 420}}}]"#);
    let world = world.beside("site.json", text);
    let outcome = world.ccm(["validate", "site.json"]).run();
    outcome
        .exits(2)
        .complains("mode: a mode is written in octal digits, and the number 420 has none")
        .complains("help: write it as text: \"420\", or \"0644\" if 420 was made from that");
}

#[test]
fn a_number_keeps_its_text_until_somebody_calculates() {
    let manifest = "
data: { version: 1.10, hex: 0x1F }
ccm:
  resources:
    - file:
        - defaults: { $OWN, mode: '0644' }
        - $W/joined: { content: 'v${ Data.version } ${ Data.hex } ${ Facts.release } ${ Data.given }' }
        - $W/alone: { content: '${ Data.version }' }
        - $W/sum: { content: '${ Data.version + 1 } ${ Data.hex + 1 }' }
        - $W/compared: { content: '${ Data.version == 1.1 } ${ Data.version > 1 } ${ type(Data.version) }' }
        - $W/json: { content: '${ [Data.version, Data.hex] }' }
";
    let world = World::new().manifest(manifest);
    let flags = ["--data", "given=2.50", "--fact", "release=3.0"];
    world.apply_with(&flags).exits(0);
    for (name, content) in [
        ("joined", "v1.10 0x1F 3.0 2.50"),
        ("alone", "1.10"),
        ("sum", "2.1 32"),
        ("compared", "true true float"),
        ("json", "[1.10,31]"),
    ] {
        assert_eq!(std::fs::read_to_string(world.path(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn keys_for_editors_and_anchors_stand_at_the_top() {
    let world = World::new().manifest(
        "
$schema: https://example.net/manifest.json
x-owner: &own { $OWN, mode: '0644' }
ccm:
  resources:
    - file: [{ $W/a: { <<: *own } }]
",
    );
    world.validate().exits(0);
}

#[test]
fn utf_16_is_named() {
    let text: Vec<u8> = "data: {}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [text.clone(), [&[0xff, 0xfe], text.as_slice()].concat()] {
        let world = World::new().beside("site.yaml", bytes);
        world.validate().exits(2).complains("site.yaml: this is UTF-16 text").complains("UTF-8 encoding");
    }
}
