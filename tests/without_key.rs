//! Encrypted data without a key: commands that change nothing use placeholders, and all others stop first.

use std::fs;

use crate::support::{Outcome, World, encrypted::Author};

/// A world whose data has one value of each type. No key opens it.
fn locked(resources: &str) -> World {
    let (world, author) = (World::new(), Author::new());
    encrypt(&world, &author, "before");
    manifest(world, resources)
}

fn manifest(world: World, resources: &str) -> World {
    let resources: String = resources.lines().map(|line| format!("    {line}\n")).collect();
    world.manifest(&format!(
        "data: {{ open: visible }}\nhierarchy: {{ order: [default], directory: layers, merge: deep }}\n\
         ccm:\n  resources:\n{resources}"
    ))
}

fn encrypt(world: &World, author: &Author, text: &str) {
    let layer = world.base().join("layers/default.yaml");
    fs::create_dir_all(layer.parent().unwrap()).unwrap();
    let entries = [
        ("text", text, "str"),
        ("mode", "0600", "str"),
        ("number", "5", "int"),
        ("flag", "True", "bool"),
        ("seconds", "30s", "str"),
        ("json", "{}", "str"),
    ];
    fs::write(layer, author.document(&entries)).unwrap();
}

#[track_caller]
fn run(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(arguments.iter().copied()).run()
}

/// Properties of several types, and functions that a placeholder is no argument of.
const TYPED: [&str; 9] = [
    "- file: [{ $W/x: { content: '${ Data.text }', $OWN, mode: '${ Data.mode }' } }]",
    "- file: [{ $W/x: { content: 'a', owner: '${ Data.text }', group: '${ Data.number }', mode: '0600' } }]",
    "- exec: [{ a: { stdin: x, command: 'true', timeout: '${ Data.seconds }' } }]",
    "- exec: [{ a: { stdin: x, command: 'true', tries: '${ Data.number }' } }]",
    "- file: [{ $W/x: { content: '${ int(Data.mode) + 1 }', $OWN, mode: '0600' } }]",
    "- file: [{ $W/x: { content: '${ fromJSON(Data.json) }', $OWN, mode: '0600' } }]",
    "- file: [{ $W/x: { content: '${ 10 / Data.number }', $OWN, mode: '0600' } }]",
    "- file: [{ $W/x: { control: { if: 'Data.flag' }, content: '${ Data.text | upper() }', $OWN, mode: '0600' } }]",
    "- archive: [{ $W/a.tar: { url: '${ Data.text }', $OWN } }]",
];

#[test]
fn placeholders_are_valid_for_properties_of_every_type() {
    for resource in TYPED {
        let world = locked(resource);
        run(&world, &["validate", "site.yaml"]).exits(0);
        run(&world, &["apply", "site.yaml", "--render"]).exits(0);
    }
}

#[test]
fn errors_that_need_no_key_are_found_without_one() {
    for (resource, message) in [
        ("- file: [{ $W/x: { content: '${ Data.txt }', $OWN, mode: '0600' } }]", "txt"),
        ("- file: [{ $W/x: { contnt: '${ Data.text }', $OWN, mode: '0600' } }]", "unknown property `contnt`"),
        ("- file: [{ $W/x: { content: '${ Data.text }', $OWN, mode: '0999' } }]", "mode"),
        ("- exec: [{ a: { tags: ['${ Data.text }'] } }]", "a secret value cannot be part of a name"),
    ] {
        run(&locked(resource), &["validate", "site.yaml"]).exits(2).complains(message);
    }
}

#[test]
fn commands_that_need_the_values_exit_with_status_2() {
    let world = locked("- file: [{ $W/x: { content: '${ Data.text }', $OWN, mode: '0600' } }]");
    for arguments in [
        &["apply", "site.yaml"][..],
        &["apply", "site.yaml", "--noop"],
        &["plan", "site.yaml"],
        &["plan", "site.yaml", "-o", "x.plan"],
        &["apply", "site.yaml", "--monitor-only"],
        &["eval", "Data.text", "--hiera", "site.yaml"],
        &["ensure", "file", "$W/y", "--content", "${ Data.text }", "--hiera", "site.yaml"],
    ] {
        let words: Vec<String> = arguments.iter().map(|word| world.fill(word)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run(&world, &words)
            .exits(2)
            .complains("no identity opens this encrypted document")
            .complains("recipients: age1")
            .complains("identities tried: ")
            .never_says("has no value");
    }
    assert!(!world.path("x").exists() && !world.path("y").exists() && !world.base().join("x.plan").exists());
}

#[test]
fn diff_without_a_key_reports_encrypted_values_that_changed() {
    let (world, author) = (World::new(), Author::new());
    encrypt(&world, &author, "before");
    let world = manifest(world, "- file: [{ $W/x: { content: 'a ${ Data.text }', $OWN, mode: '0600' } }]");
    let copy = |name: &str| {
        crate::support::sh(&format!("mkdir {name} && cp -r site.yaml layers {name}"), world.base());
    };
    copy("old");
    copy("same");
    encrypt(&world, &author, "after");
    copy("new");
    run(&world, &["diff", "old/site.yaml", "same/site.yaml"]).exits(0).says("no differences");
    let changed = run(&world, &["diff", "old/site.yaml", "new/site.yaml"]);
    changed.exits(0).says("content: changed (encrypted)");
    let identity = author.identity(&world);
    let with_key = ["diff", "old/site.yaml", "new/site.yaml", "--identity", identity.to_str().unwrap()];
    run(&world, &with_key).exits(0).says("content").never_says("before").never_says("after");
}

#[test]
fn group_and_host_variables_can_be_encrypted() {
    let (world, author) = (World::new(), Author::new());
    let world = world.beside("hosts.ini", "[web]\nweb1\nweb2\n");
    for (name, text) in [
        (
            "group_vars/web.yml",
            author.document(&[("password", "c4n4ry-group", "str"), ("flag", "True", "bool")]),
        ),
        ("host_vars/web1.yml", author.document(&[("pin", "4815162342", "int")])),
    ] {
        let path = world.base().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let listed = run(&world, &["hosts", "-i", "hosts.ini", "--json"]);
    let hosts = listed.exits(0).never_says("c4n4ry").never_says("ENC[").json();
    assert_eq!(hosts["hosts"][0]["variables"]["password"], "[secret]");
    assert_eq!(hosts["hosts"][0]["variables"]["pin"], "[secret]");

    // Data of hosts: the difference between two manifests for each of them.
    let site = |content: &str| {
        world.fill(&format!("- file: [{{ $W/x: {{ content: '{content}', $OWN, mode: '0600' }} }}]\n"))
    };
    fs::write(world.base().join("old.yaml"), site("old")).unwrap();
    fs::write(world.base().join("new.yaml"), site("${ Data.password }")).unwrap();
    let identity = author.identity(&world);
    let arguments =
        ["diff", "old.yaml", "new.yaml", "-i", "hosts.ini", "--identity", identity.to_str().unwrap()];
    run(&world, &arguments).exits(0).says("content: ").never_says("c4n4ry");
    run(&world, &arguments[..5]).exits(0).never_says("c4n4ry");

    let broken = fs::read_to_string(world.base().join("host_vars/web1.yml")).unwrap();
    fs::write(world.base().join("host_vars/web1.yml"), broken.split("sops:").next().unwrap()).unwrap();
    run(&world, &["hosts", "-i", "hosts.ini"]).exits(2).complains("the document has no section `sops`");
}

/// Adds a recipient that only the program `sops` can use.
fn with_pgp(text: &str) -> String {
    let (document, section) = text.split_once("sops:\n").unwrap();
    let key = "  pgp:\n  - created_at: \"2026-01-02T03:04:05Z\"\n    enc: none\n    fp: 7FB89715AADA920D65D25E63F9BA9DEBD03F57C0\n";
    format!("{document}sops:\n{key}{section}")
}

#[test]
fn program_sops_decrypts_what_only_it_can() {
    let (world, author) = (World::new(), Author::new());
    encrypt(&world, &author, "c4n4ry: ${ 1 }");
    let layer = world.base().join("layers/default.yaml");
    fs::write(&layer, with_pgp(&fs::read_to_string(&layer).unwrap())).unwrap();
    let resource = "- file: [{ $W/x: { content: '${ Data.text } ${ Data.number + 1 } ${ Data.flag }', $OWN, mode: '0600' } }]";
    let world = manifest(world, resource);
    let identity = author.identity(&world);
    fs::create_dir(world.base().join("bin")).unwrap();
    let program = |script: &str| {
        let path = world.base().join("bin/sops");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        crate::support::sh(
            "chmod 755 bin/sops && cp -p bin/sops bin/copy && mv -f bin/copy bin/sops",
            world.base(),
        );
    };
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", world.base().join("bin").display());
    let apply = |arguments: &[&str]| {
        let words = ["apply", "site.yaml"].iter().chain(arguments).copied();
        world.ccm(words).env("PATH", &path).run()
    };
    let help = "recipients: age1";
    apply(&[]).exits(2).complains(help).complains("install the program `sops`").complains("PGP 7FB89715");
    program("echo 'Failed to get the data key' >&2; exit 128");
    apply(&[])
        .exits(2)
        .complains(help)
        .complains("does not decrypt the document either: Failed to get the data key");
    program("echo 'text: other'");
    apply(&[]).exits(2).complains("the program `sops` printed another document");
    assert!(!world.path("x").exists());

    let real = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/sops/bin/sops");
    if !real.exists() {
        crate::support::skip("needs target/sops: `make test` installs it");
        return;
    }
    program(&format!("SOPS_AGE_KEY_FILE={} exec {} \"$@\"", identity.display(), real.display()));
    apply(&["--diff", "-vv"]).exits(0).never_says("c4n4ry");
    assert_eq!(world.read("x"), "c4n4ry: ${ 1 } 6 true");
    let broken = fs::read_to_string(&layer).unwrap().replacen("number:", "numbers:", 1);
    fs::write(&layer, broken).unwrap();
    apply(&[]).exits(2).complains("does not decrypt the document either");
}
