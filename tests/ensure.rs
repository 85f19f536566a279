//! The commands besides `apply`: one resource by flags, its state, schemas, completions and manual pages.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{NOBODY, Outcome, World, is_root, sh};

const OWN: [&str; 6] = ["--owner", "$UID", "--group", "$GID", "--mode", "0644"];

fn ensure(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["ensure", "file"].iter().chain(arguments)).run()
}

#[test]
fn a_file_is_ensured_by_flags() {
    let world = World::new();
    let arguments = [&["$W/x", "--content", "hello"], &OWN[..]].concat();
    ensure(&world, &arguments).exits(0).reports(&world.fill("file#$W/x"), "created the file");
    assert_eq!((world.read("x").as_str(), world.tree().item("x").unwrap().mode), ("hello", 0o644));
    ensure(&world, &arguments).exits(0).reports(&world.fill("file#$W/x"), "unchanged");
    ensure(&world, &["$W/x", "absent"]).exits(0).reports(&world.fill("file#$W/x"), "removed the file");
    assert!(world.tree().names().is_empty());
    ensure(&world, &[&["$W/a/d", "directory"], &OWN[..4], &["--mode", "0700"]].concat())
        .exits(0)
        .says("created directory");
    assert_eq!(world.tree().item("a/d").unwrap().mode, 0o700);
    let outcome = ensure(&world, &["$W/a", "absent"]);
    outcome.exits(1).says("not empty").says("command line:1:").says("help: ");
    assert_eq!(outcome.stdout.matches("force: true").count(), 1, "{outcome}");
    let event = ensure(&world, &["$W/a", "absent", "--json"]).exits(1).event("/a");
    assert!(event["error"][0].as_str().unwrap().contains("force: true"), "{event:#}");
    ensure(&world, &["$W/a", "absent", "--force", "--no-force"]).exits(1);
    ensure(&world, &["$W/a", "absent", "--force"]).exits(0);
    assert!(world.tree().names().is_empty());
}

#[test]
fn every_property_is_a_flag() {
    let world = World::new().beside("source", "content");
    let arguments = [
        &["$W/x", "present", "--source", "source"],
        &OWN[..],
        &["--alias", "it", "--provider", "posix", "--timeout", "1m", "--tries", "2", "--try-sleep", "1s"],
        &["--control", "if=true", "--control", "unless=false", "--json"],
    ]
    .concat();
    let event = ensure(&world, &arguments).event("/x");
    let expected = json!({
        "name": world.fill("$W/x"), "ensure": "present", "source": "source", "owner": world.fill("$UID"),
        "group": world.fill("$GID"), "mode": "0644", "alias": "it", "provider": "posix",
        "control": { "if": "true", "unless": "false" }, "timeout": "1m", "tries": 2, "try_sleep": "1s",
    });
    assert_eq!(event["properties"], expected);
    assert_eq!(event["failed"], false);
    let help = world.ccm(["ensure", "file", "--help"]).run();
    let schema = world.ccm(["schema", "manifest"]).run().json();
    for property in schema["definitions"]["file"]["properties"].as_object().unwrap().keys() {
        let flag = property.replace('_', "-");
        if !["name", "ensure", "contents", "for_each"].contains(&property.as_str()) {
            help.says(&format!("--{flag}"));
        }
    }
}

#[test]
fn content_comes_from_an_argument_or_a_file() {
    let world = World::new().beside("text", "from a file\n").beside("binary", b"\xff");
    for (arguments, content) in [
        (["--content", ""], ""),
        (["--content", "--dashed"], "--dashed"),
        (["--content", "yes"], "yes"),
        (["--content", "0644"], "0644"),
        (["--content-file", "text"], "from a file\n"),
    ] {
        ensure(&world, &[&["$W/x"], &arguments[..], &OWN[..]].concat()).exits(0);
        assert_eq!(world.read("x"), content, "{arguments:?}");
    }
    ensure(&world, &[&["$W/x", "--content-file", "missing"], &OWN[..]].concat())
        .exits(2)
        .complains("cannot read missing");
    ensure(&world, &[&["$W/x", "--content-file", "binary"], &OWN[..]].concat())
        .exits(2)
        .complains("is not UTF-8")
        .complains("--source");
    ensure(&world, &[&["$W/x", "--content-file", "text", "--content", "x"], &OWN[..]].concat())
        .exits(2)
        .complains("cannot be used with");
}

#[test]
fn ensure_has_dry_runs_diffs_json_and_exit_codes() {
    let world = World::new();
    let x = [&["$W/x", "--content", "hello\n"], &OWN[..]].concat();
    ensure(&world, &[&x[..], &["--noop"]].concat())
        .exits(0)
        .says("Would have created the file")
        .says("+hello");
    assert!(world.tree().names().is_empty());
    ensure(&world, &[&x[..], &["--noop", "--no-diff"]].concat()).exits(0).never_says("+hello");
    ensure(&world, &[&x[..], &["--noop", "--detailed-exitcode"]].concat()).exits(3);
    let outcome = ensure(&world, &[&x[..], &["--json"]].concat());
    assert_eq!(outcome.exits(0).event("/x")["changed"], true);
    assert_eq!(outcome.json_lines().len(), 2, "the event, and the summary last");
    assert_eq!(outcome.summary()["changed_resources"], 1);
    ensure(&world, &[&x[..], &["--detailed-exitcode"]].concat()).exits(0);
    ensure(&world, &[&["$W/no/x", "--content", "x"], &OWN[..]].concat()).exits(1).says("does not exist");
}

#[test]
fn wrong_flags_are_marked_in_the_command_line() {
    let world = World::new();
    let outcome = world
        .ccm(["ensure", "file", "/x", "--content", "a b", "--owner", "0", "--group", "0", "--mode", "0999"])
        .run();
    outcome.exits(2);
    assert_eq!(
        outcome.stderr,
        "\
error[invalid-value]: file#/x: mode: \"0999\" is not a mode: write it in octal digits (0 to 7), such as \"0644\"
 --> command line:1:63
  |
1 | ccm ensure file /x --content 'a b' --owner 0 --group 0 --mode 0999
  |                                                               ^^^^

error: 1 error in command line
"
    );
    for (arguments, message) in [
        (&["x", "absent"][..], "path \"x\" must be absolute"),
        (&["/x", "gone"], "invalid value 'gone'"),
        (
            &["/x", "--owner", "0:0", "--group", "0"],
            "--owner USER:GROUP and --group cannot be given together",
        ),
        (&["/x", "absent", "--nosuch"], "unexpected argument '--nosuch'"),
        (&["/x", "absent", "--tries", "none"], "tries: "),
        (&["/x", "absent", "--require", "x"], "\"x\" is not a reference"),
        (&["/x", "absent", "--control", "if"], "is not of the form KEY=VALUE"),
        (&["/x", "absent", "--provider", "none"], "known providers: posix"),
    ] {
        ensure(&world, arguments).exits(2).complains(message);
    }
}

#[test]
fn status_shows_what_is_there_as_yaml_or_json() {
    let world = World::new().file("x", "x").dir("d").link("l", "$W/x");
    for (name, ensure) in [("x", "present"), ("d", "directory"), ("l", "link"), ("none", "absent")] {
        let path = format!("$W/{name}");
        let state = world.ccm(["status", "file", &path, "--json"]).run().exits(0).json();
        let keys: Vec<_> = state.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["protocol", "type", "name", "ensure", "metadata"]);
        assert_eq!((&state["ensure"], &state["name"]), (&json!(ensure), &json!(world.fill(&path))));
        let yaml = world.ccm(["status", "file", &path]).run();
        yaml.exits(0).says("\nprotocol: io.choria.ccm.v1.resource.file.state\n");
        assert!(yaml.stdout.starts_with(&format!("ensure: {ensure}\n")), "{yaml}");
    }
    let link = world.ccm(["status", "file", "$W/l", "--json"]).run().json();
    assert_eq!(link["metadata"]["extended"], json!({ "type": "symlink", "target": world.fill("$W/x") }));
    assert!(link["metadata"].get("checksum").is_none());
    world.ccm(["status", "file", "x"]).run().exits(2).complains("must be absolute");
}

fn manifest_validator() -> jsonschema::Validator {
    let schema = World::new().ccm(["schema", "manifest"]).run().exits(0).json();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_schema_of_manifests_accepts_what_the_program_accepts_and_refuses_what_it_refuses() {
    let validator = manifest_validator();
    let attributes = r#""owner": "root", "group": 0, "mode": "0644""#;
    for (manifest, valid) in [
        ("[]", true),
        ("{}", false),
        ("null", false),
        (r#"{"ccm": {"resources": []}}"#, true),
        (r#"[{"file": [{"/a": {"content": "x", "owner": "root", "group": 0, "mode": 420}}]}]"#, false),
        (r#"{"ccm": null, "data": {"a": 1}, "hierarchy": {}, "overrides": {}}"#, false),
        (
            r#"{"ccm": {"fail_on_error": true, "pre_message": "a", "post_message": "b", "resources": []}}"#,
            true,
        ),
        (r#"[{"file": [{"/a": {"content": "x", ATTRIBUTES}}]}]"#, true),
        (r#"[{"file": [{"defaults": {ATTRIBUTES}}, {"/a": null}, {"/b": {}}]}]"#, true),
        (r#"[{"file": {"/a": {"ensure": "absent", "force": true}}}]"#, true),
        (r#"[{"file": {"name": "/a", "ensure": "directory", ATTRIBUTES}}]"#, true),
        (
            r#"[{"file": [{"/a": {"ensure": "absent", "require": [], "tries": 3, "timeout": "5s", "alias": "a"}}]}]"#,
            true,
        ),
        (r#"[{"file": [{"/a": {"ensure": "absent", "control": {"if": true, "unless": "false"}}}]}]"#, true),
        (r#"[{"file": [{"/a": {"contents": "x", ATTRIBUTES, "sensitive": true}}]}]"#, true),
        (
            r#"{"hierarchy": {"order": ["a", "os:${ Facts.os ?? '' }"], "merge": "deep"}, "ccm": {"resources": []}}"#,
            true,
        ),
        (
            r#"{"data": {"yes": true}, "ccm": {"fail_on_error": "${ Data.yes }", "pre_message": "{{ 1 }}", "resources": []}}"#,
            true,
        ),
        (r#"[{"file": {"name": "/{{ 'a' }}", "ensure": "${ 'absent' }", "force": "${ true }"}}]"#, true),
        (
            r#"[{"file": [{"/a": {"content": "x", "owner": "${ 'root' }", "group": "${ 0 }", "mode": "{{ '0644' }}"}}]}]"#,
            true,
        ),
        (
            r#"[{"file": [{"/b": {"ensure": "absent"}}, {"/a": {"ensure": "absent", "tries": "${ 3 }", "timeout": "{{ 5 }}s", "sensitive": "${ false }", "require": ["file#{{ '/b' }}"]}}]}]"#,
            true,
        ),
        (r#"[{"file": [{"/a": {"ensure": "absent", "require": "${ [] }"}}]}]"#, true),
        (
            r#"[{"archive": [{"/a.tgz": {"url": "{{ 'http://x' }}/a.tgz", "checksum": "{{ repeat('a', 64) }}", "owner": "root", "group": "root", "headers": {"a": "${ 'b' }"}}}]}]"#,
            true,
        ),
        (r#"[{"exec": [{"/bin/true": {"returns": ["${ 1 }"], "environment": "${ ['A=b'] }"}}]}]"#, true),
        (r#"[{"file": [{"/a": {"ensure": "absent", "control": "${ true }"}}]}]"#, false),
        (r#"{"hierarchy": {"merge": "dep"}}"#, false),
        (r#"{"hierarchy": {"order": "a"}}"#, false),
        (r#"{"hierarchy": {"order": [1]}}"#, false),
        (r#"{"hierarchy": {"ordr": []}}"#, false),
        (r#"{"hierarchy": null}"#, false),
        (r#"{"overrides": []}"#, false),
        (r#"{"overrides": {"a": 1}}"#, false),
        (r#"[{"file": [{"/a": {"contents": 1, ATTRIBUTES}}]}]"#, false),
        (r#"[{"file": [{"/a": {"ensure": "absent", "force": "yes"}}]}]"#, false),
        (r#""text""#, false),
        (r#"{"resources": []}"#, false),
        (r#"{"ccm": {"resorces": []}}"#, false),
        (r#"{"ccm": {"fail_on_error": "maybe"}}"#, false),
        (r#"[{"fiel": []}]"#, false),
        (r#"[{"file": [], "other": []}]"#, false),
        (r#"[{"file": ["/a"]}]"#, false),
        (r#"[{"file": [{"/a": {"contnt": "x"}}]}]"#, false),
        (r#"[{"file": [{"/a": {"ensure": "gone"}}]}]"#, false),
        (r#"[{"file": [{"/a": {"content": 1, ATTRIBUTES}}]}]"#, false),
        (
            r#"[{"file": [{"/a": {"content": "x", "owner": "root", "group": "root", "mode": "0999"}}]}]"#,
            false,
        ),
        (r#"[{"file": [{"/a": {"ensure": "absent", "tries": 0}}]}]"#, false),
        (r#"[{"file": [{"/a": {"ensure": "absent", "require": ["motd"]}}]}]"#, false),
        (r#"[{"file": [{"/a": {"ensure": "absent", "subscribe": ["file#/b"]}}]}]"#, false),
        (r#"[{"file": {"name": "/a", "contnt": "x"}}]"#, false),
    ] {
        let manifest = manifest.replace("ATTRIBUTES", attributes);
        let world = World::new().manifest(&manifest);
        let document: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(world.validate().code == 0, valid, "the program about {manifest}");
        assert_eq!(validator.is_valid(&document), valid, "the schema about {manifest}");
    }
}

#[test]
fn schemas_are_schemas() {
    for name in ["manifest", "request", "response", "event"] {
        let outcome = World::new().ccm(["schema", name]).run();
        let schema = outcome.exits(0).json();
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        assert_eq!(schema.as_object().unwrap().keys().next().unwrap(), "$schema", "{name}");
        let mentions = if name == "manifest" { 2 } else { 1 };
        assert_eq!(outcome.stdout.matches("\"$schema\"").count(), mentions, "{name}");
    }
}

/// The script is one that the shell understands; a shell that is not there has nothing to complain about.
#[test]
fn completions_are_scripts_that_ask_the_program() {
    for (shell, check) in [("bash", &["-n"][..]), ("zsh", &["-n"]), ("fish", &["--no-execute"])] {
        let world = World::new();
        let script = world.ccm(["completions", shell]).run().exits(0).says("CCM_COMPLETE").stdout.clone();
        fs::write(world.base().join("script"), script).unwrap();
        let checked = Command::new(shell)
            .args(check)
            .arg("script")
            .current_dir(world.base())
            .stderr(Stdio::piped())
            .output();
        if let Ok(output) = checked {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// What a shell is offered behind these words; the last one has been begun.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let line = [&["--", "ccm"], words].concat();
    let index = words.len().to_string();
    let call = world.ccm(line).env("CCM_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", &index);
    call.run().exits(0).stdout.lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_the_manifest_the_machine_and_the_types() {
    let manifest =
        "- file:\n    - /a: { tags: [web, blue] }\n    - '/b-${ Facts.x }':\n- service: [{ nginx: }]\n";
    let world = World::new().beside("site.yaml", manifest).dir("folder").file("file", "");
    for (words, expected, unexpected) in [
        (&["ap"][..], &["apply"][..], &["status"][..]),
        (&["ensure", "ser"], &["service"], &["file"]),
        (
            &["apply", "site.yaml", "--only", ""],
            &["file#/a", "service#nginx", "tag:blue", "tag:web"],
            &["file#/b"],
        ),
        (&["apply", "site.yaml", "--skip", "file#"], &["file#/a"], &["service#nginx"]),
        (&["apply", "missing.yaml", "--only", ""], &[], &["file#/a"]),
        (&["ensure", "exec", "x", "--provider", ""], &["posix", "shell"], &["systemd"]),
        (&["ensure", "file", "/x", "--owner", "ro"], &["root"], &["daemon"]),
        (&["ensure", "file", "/x", "--group", ""], &["root", "daemon"], &[]),
        (&["ensure", "service", "x", "ru"], &["running"], &["stopped"]),
        (&["status", "user", "roo"], &["root"], &[]),
        (&["apply", "si"], &["site.yaml"], &[]),
        (&["schema", ""], &["manifest", "event"], &[]),
        (&["status", "file", "si"], &["site.yaml"], &[]),
        (&["check", "si"], &["site.yaml"], &[]),
        (&["reg"], &["registration"], &["r "]),
    ] {
        let said = offered(&world, words);
        assert!(expected.iter().all(|word| said.iter().any(|said| said == word)), "{words:?}: {said:?}");
        assert!(
            !said.iter().any(|said| unexpected.iter().any(|word| said.starts_with(word))),
            "{words:?}: {said:?}"
        );
    }
    let folders = offered(&world, &["man", &world.fill("$W/fo")]);
    assert_eq!(folders, [world.fill("$W/folder/")], "only folders are meant");
    assert!(offered(&world, &["man", &world.fill("$W/fi")]).is_empty());
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let world = World::new();
    world.ccm(["man", "$W"]).run().exits(0);
    let names = world.tree().names();
    for page in
        ["ccm.1", "ccm-apply.1", "ccm-ensure.1", "ccm-ensure-file.1", "ccm-status.1", "ccm-manifest.5"]
    {
        assert!(names.iter().any(|name| name == page), "{page} is not among {names:?}");
        assert!(world.read(page).contains(".TH"));
    }
    world.ccm(["man", "$W/nowhere"]).run().exits(2).complains("cannot write manual pages");
}

#[test]
fn help_and_version_are_for_standard_output() {
    let world = World::new();
    for arguments in [&["--help"][..], &["apply", "--help"], &["ensure", "file", "--help"], &["--version"]] {
        let outcome = world.ccm(arguments).run();
        assert!(outcome.exits(0).stderr.is_empty() && !outcome.stdout.is_empty(), "{outcome}");
    }
    world.ccm(["--version"]).run().says(concat!("ccm ", env!("CARGO_PKG_VERSION")));
}

/// A command that shows a line and does not create what it should.
const TALKATIVE: &str =
    "{ command: \"sh -c 'echo out; echo err >&2'\", creates: /no/such/file, logoutput: true }";

#[test]
fn what_json_has_no_place_for_goes_to_standard_error() {
    let world = World::new().manifest(&format!("- exec: {{ talk: {TALKATIVE} }}"));
    let told = |outcome: &Outcome| {
        outcome.exits(0).complains("exec#talk: out\n").complains("exec#talk: err\n");
        outcome.complains("warning: exec#talk: ").complains("/no/such/file");
        assert_eq!(outcome.stderr.lines().count(), 3, "{outcome}");
    };
    told(&world.apply_with(&["--json"]));
    let flags = ["--command", "sh -c 'echo out; echo err >&2'", "--creates", "/no/such/file", "--logoutput"];
    told(&world.ccm(["ensure", "exec", "talk", "--json"].iter().chain(&flags)).run());
    let properties =
        json!({ "name": "talk", "command": flags[1], "creates": "/no/such/file", "logoutput": true });
    let protocol = "io.choria.ccm.v1.resource.ensure.request";
    let request = json!({ "protocol": protocol, "type": "exec", "properties": properties }).to_string();
    for how in ["pipe", "serve"] {
        let outcome = world.ccm(["ensure", "api", how]).input(&request).run();
        told(&outcome);
        assert_eq!(outcome.json()["state"]["changed"], true);
    }
    // People read both where they read the rest.
    assert!(world.apply().says("exec#talk: out").says("warning: ").stderr.is_empty());
    // Nothing of a sensitive resource is shown anywhere.
    let world =
        world.manifest(&format!("- exec: {{ talk: {} }}", TALKATIVE.replace('}', ", sensitive: true }")));
    world.apply_with(&["--json"]).exits(0).never_says("out\n").never_says("err\n");
}

#[test]
fn a_variable_that_is_empty_is_as_good_as_none() {
    let world = World::new().manifest("[]");
    let variables = ["CCM_STATE_DIR", "CCM_SESSION_STORE", "CCM_HIERA_DATA"];
    // A dry run leaves the state directory alone, which without the variable is not the test's own.
    for command in
        [&["apply", "site.yaml", "--noop"][..], &["ensure", "exec", "true", "--noop"], &["eval", "1"]]
    {
        let call = variables.iter().fold(world.ccm(command), |call, variable| call.env(variable, ""));
        call.run().exits(0);
    }
    world.ccm(["session", "report"]).env("CCM_SESSION_STORE", "").run().exits(2).complains("no session: set");
    // An argument is something that somebody wrote.
    for flag in ["--state-dir", "--session", "--hiera"] {
        world.ccm(["ensure", "file", "$W/x", "absent", flag, ""]).run().exits(2).complains(flag);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure_but_leaves_no_session_that_nobody_knows_of() {
    let world = World::new();
    for arguments in [&["eval", "1"][..], &["session", "new", "--directory", "other"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_ccm"));
        command.args(arguments).current_dir(world.base()).stdout(writer);
        let output = command.env("CCM_STATE_DIR", world.state()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
    assert!(!world.base().join("other").exists());
}

#[test]
fn commands_that_only_look_need_no_place_for_memory() {
    if !is_root() {
        return;
    }
    let world =
        World::new().manifest("- file: [{ $W/x: { ensure: absent } }]").beside("data.yaml", "data: {}");
    let homeless = |arguments: &[&str]| {
        let without = ["env", "-u", "HOME", "-u", "XDG_STATE_HOME", "-u", "CCM_STATE_DIR"];
        world.ccm(arguments).under(without).uid(NOBODY).run()
    };
    for arguments in [
        &["validate", "site.yaml"][..],
        &["status", "file", "$W/x"],
        &["status", "archive", "$W/x.tgz"],
        &["eval", "1 + 1", "--manifest", "site.yaml"],
        &["hiera", "parse", "data.yaml"],
    ] {
        let outcome = homeless(arguments);
        outcome.exits(0);
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
    homeless(&["apply", "site.yaml"]).exits(2).complains("no state directory: set HOME");
    sh("tar -czf b.tgz --transform 's/site/manifest/' site.yaml", world.base());
    homeless(&["validate", "b.tgz"]).exits(2).complains("no state directory to unpack it in: set HOME");
}

#[test]
fn another_spelling_of_a_property_is_a_flag_too() {
    let world = World::new();
    ensure(&world, &[&["$W/x", "--contents", "text"], &OWN[..]].concat()).exits(0);
    assert_eq!(world.read("x"), "text");
    ensure(&world, &["$W/x", "--contents", "a", "--content", "b"]).exits(2).complains("multiple times");
    let arguments = ["ensure", "exec", "touch $W/y", "--refreshonly", "--no-refreshonly"];
    world.ccm(arguments).run().exits(0);
    assert!(world.path("y").exists());
    world.ccm(["ensure", "file", "--help"]).run().exits(0).never_says("--contents");
}

#[test]
fn content_can_come_from_standard_input() {
    let world = World::new();
    let arguments = ["ensure", "file", "$W/x", "--content-file", "-"].iter().chain(&OWN);
    world.ccm(arguments.clone()).input("piped\n").run().exits(0);
    assert_eq!(world.read("x"), "piped\n");
    world.ccm(arguments).input([0xff]).run().exits(2).complains("--content-file: - is not UTF-8 text");
}

#[test]
fn help_is_a_command_as_well() {
    let world = World::new();
    let help = |arguments: &[&str]| world.ccm(arguments).run().exits(0).stdout.clone();
    assert_eq!(help(&["help"]), help(&["--help"]));
    assert_eq!(help(&["help", "apply"]), help(&["apply", "--help"]));
    assert_eq!(help(&["help", "ensure", "file"]), help(&["ensure", "file", "--help"]));
    world.ccm(["help", "nothing"]).run().exits(2);
}
