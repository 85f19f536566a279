//! A decrypted value is written where a resource wants it, and appears nowhere else.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

use crate::support::{Outcome, World, encrypted::Author};

/// Decrypted values, which occur nowhere but in files that contain them.
const PASSWORD: &str = "c4n4ry-pa55word";
const PIN: &str = "4815162342";

/// A world whose data has a `password` and a `pin`, both encrypted.
struct Secrets {
    world: World,
    identity: PathBuf,
}

impl Secrets {
    fn new(resources: &str) -> Self {
        let author = Author::new();
        let world = World::new();
        let layer = world.base().join("layers/default.yaml");
        fs::create_dir_all(layer.parent().unwrap()).unwrap();
        let text = author.document(&[
            ("password", PASSWORD, "str"),
            ("pin", PIN, "int"),
            ("flag", "True", "bool"),
            ("json", &format!("{{\"{PASSWORD}\": [\"{PASSWORD}\"]}}"), "str"),
            ("template", "${ Facts.hostname } {{ 1 + 1 }}", "str"),
        ]);
        fs::write(layer, text).unwrap();
        let site = format!(
            "data: {{ open: visible, users: [{{ name: a }}, {{ name: b }}] }}\n\
             hierarchy: {{ order: [default], directory: layers, merge: deep }}\n\
             ccm:\n  resources:\n{}",
            resources.lines().map(|line| format!("    {line}\n")).collect::<String>()
        );
        let world = world.manifest(&site);
        let identity = author.identity(&world);
        Self { world, identity }
    }

    /// Runs the program with the identity, and checks its output.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Outcome {
        let call = self.world.ccm(arguments.iter().copied());
        let outcome = call.env("SOPS_AGE_KEY_FILE", self.identity.to_str().unwrap()).run();
        for needle in needles() {
            outcome.never_says(&String::from_utf8_lossy(&needle));
        }
        outcome
    }

    #[track_caller]
    fn apply(&self, flags: &[&str]) -> Outcome {
        self.run(&[&["apply", "site.yaml"], flags].concat())
    }

    /// Nothing that the program keeps contains a secret or its digest, and no other file of the world either.
    #[track_caller]
    fn kept(&self, managed: &[&str]) {
        let managed: Vec<PathBuf> = managed.iter().map(|name| self.world.path(name)).collect();
        search(self.world.base(), &managed);
    }
}

/// The secrets in the forms in which they could appear.
fn needles() -> Vec<Vec<u8>> {
    let mut needles = Vec::new();
    for secret in [PASSWORD, PIN] {
        let digest = Sha256::digest(secret).to_vec();
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let encoded = BASE64_STANDARD.encode(secret);
        let encoded = encoded.trim_end_matches('=');
        needles.extend([secret.into(), hex.into_bytes(), encoded[..encoded.len() - 1].into()]);
    }
    needles
}

#[track_caller]
fn search(directory: &Path, managed: &[PathBuf]) {
    // The digests of the files that contain a secret are as secret as the files.
    let digests: Vec<Vec<u8>> = managed
        .iter()
        .filter_map(|path| fs::read(path).ok())
        .flat_map(|content| {
            let digest = Sha256::digest(content).to_vec();
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            [digest, hex.into_bytes()]
        })
        .collect();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if managed.contains(&path) || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            search(&path, managed);
            continue;
        }
        let content = fs::read(&path).unwrap();
        for needle in needles().iter().chain(&digests) {
            let found = content.windows(needle.len()).any(|window| window == needle);
            let [all, needle] = [&content, needle].map(|bytes| String::from_utf8_lossy(bytes));
            assert!(!found, "{} contains {needle}:\n{all}", path.display());
        }
    }
}

/// Runs that change nothing.
const DRY: &[&[&str]] =
    &[&["--noop", "--diff", "--json"], &["--noop", "-vv"], &["--render"], &["--render", "--json"]];

/// Runs that apply the manifest; each case has one of them.
const REAL: &[&[&str]] =
    &[&["--diff", "-vv"], &["--json", "--diff"], &["-v", "--metrics-file", "metrics"], &[]];

/// Resources, the files that contain a secret afterwards, and the exit status.
const CASES: &[(&str, &[&str], i32)] = &[
    ("- file: [{ $W/x: { content: 'password = ${ Data.password }', $OWN, mode: '0600' } }]", &["x"], 0),
    ("- file: [{ $W/x: { content: '${ Data.pin }', $OWN, mode: '0600' } }]", &["x"], 0),
    ("- file: [{ $W/x: { content: '${ toBase64(Data.password) }', $OWN, mode: '0600' } }]", &["x"], 0),
    (
        "- file: [{ $W/x: { content: \"${ join(map([Data.password], # + '!'), ',') }\", $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    (
        "- file: [{ $W/x: { content: \"${ jinja('{{ Data.password | upper | lower }}') }\", $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    (
        "- file: [{ $W/x: { content: \"${ template('a ${ Data.password }') }\", $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    ("- file: [{ $W/x: { content: '${ fromJSON(Data.json) }', $OWN, mode: '0600' } }]", &["x"], 0),
    (
        "- file: [{ $W/x: { edit: [{ line: 'password=${ Data.password }', match: '^password=' }], create: true, $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    ("- file: [{ $W/x: { ensure: link, target: '/nowhere/${ Data.password }', force: true } }]", &["x"], 0),
    // A failure does not quote it.
    ("- file: [{ $W/no/x: { content: '${ Data.password }', $OWN, mode: '0600' } }]", &[], 1),
    ("- file: [{ $W/x: { content: a, mode: '0600', owner: '${ Data.password }', group: '0' } }]", &[], 1),
    (
        "- file: [{ $W/x: { content: '${ Data.password }', validate: 'false %s', $OWN, mode: '0600' } }]",
        &[],
        1,
    ),
    ("- file: [{ $W/x: { source: 'http://127.0.0.1:1/${ Data.password }', $OWN, mode: '0600' } }]", &[], 1),
    // Commands print it.
    (
        "- exec: [{ a: { command: 'sh -c \"echo $TOKEN\"', environment: ['TOKEN=${ Data.password }'], logoutput: true } }]",
        &[],
        0,
    ),
    (
        "- exec: [{ a: { command: 'sh -c \"echo $TOKEN; exit 3\"', environment: ['TOKEN=${ Data.pin }'] } }]",
        &[],
        1,
    ),
    ("- exec: [{ a: { command: cat, stdin: 'x ${ Data.password } y', logoutput: true } }]", &[], 0),
    ("- exec: [{ a: { command: 'no-such-program', stdin: '${ Data.password }' } }]", &[], 1),
    // An argument is refused before the program starts.
    ("- exec: [{ a: { command: 'touch $W/started ${ Data.password }' } }]", &[], 1),
    ("- exec: [{ a: { command: 'touch $W/started', unless: 'test a = ${ Data.password }' } }]", &[], 1),
    // A fact of a secret is secret.
    (
        "- fact: [{ learnt: { command: \"sh -c 'echo x$TOKEN'\", environment: ['TOKEN=${ Data.password }'] } }]\n\
         - file: [{ $W/x: { content: '${ Facts.learnt }', $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    // Loops and included manifests.
    (
        "- file: [{ for_each: '[{ n: 1, p: Data.password }]', '$W/x': { content: '${ each.p }', $OWN, mode: '0600' } }]",
        &["x"],
        0,
    ),
    ("- apply: [{ child.yaml: { data: { token: 'x${ Data.password }' } } }]", &["child"], 0),
    ("- apply: [{ child.yaml: {} }]\n- exec: [{ a: { command: 'true' } }]", &["child"], 0),
    // Health checks.
    (
        "- exec: [{ a: { command: 'true', health_checks: [{ command: 'sh -c \"echo $TOKEN; exit 2\"', environment: ['TOKEN=${ Data.password }'], tries: 1 }] } }]",
        &[],
        1,
    ),
    (
        "- exec: [{ a: { command: 'true', health_checks: [{ command: 'echo ${ Data.password }', tries: 1 }] } }]",
        &[],
        1,
    ),
    // A tree of templates.
    ("- scaffold: [{ $W/t: { source: tree, $OWN } }]", &["t/x"], 0),
    ("- scaffold: [{ $W/t: { source: tree, data: { password: '${ Data.password }' }, $OWN } }]", &["t/x"], 0),
    // Another server gets it, and no one else.
    (
        "- archive: [{ $W/a.tar: { url: 'http://127.0.0.1:1/a.tar', headers: { X-Token: '${ Data.password }' }, $OWN, tries: 1 } }]",
        &[],
        1,
    ),
];

fn world_of(resources: &str) -> Secrets {
    let secrets = Secrets::new(resources);
    let base = secrets.world.base();
    let child =
        "- file: [{ $W/child: { content: \"${ Data?.token ?? Data.password }\", $OWN, mode: '0600' } }]";
    fs::write(base.join("child.yaml"), secrets.world.fill(child)).unwrap();
    fs::create_dir(base.join("tree")).unwrap();
    fs::write(base.join("tree/x"), "password = {{ Data.password }}\n").unwrap();
    secrets
}

#[test]
fn decrypted_value_appears_only_in_the_managed_file() {
    for (at, (resources, managed, status)) in CASES.iter().enumerate() {
        let secrets = world_of(resources);
        for mode in DRY {
            let outcome = secrets.apply(mode);
            if mode.contains(&"--render") {
                outcome.exits(0);
            }
        }
        secrets.apply(REAL[at % REAL.len()]).exits(*status);
        for name in *managed {
            let path = secrets.world.path(name);
            assert!(path.is_symlink() || path.is_file(), "{resources}");
        }
        assert!(!secrets.world.path("started").exists(), "{resources}");
        for command in COMMANDS {
            secrets.run(command);
        }
        for name in *managed {
            let path = secrets.world.path(name).to_str().unwrap().to_owned();
            secrets.run(&["blame", &path]);
            let status = secrets.run(&["status", "file", &path, "--json"]).exits(0).json();
            assert!(status["metadata"].get("checksum").is_none(), "{status:#}");
        }
        secrets.kept(managed);
        for command in [&["undo", "last", "--noop", "--diff"][..], &["undo", "last", "--diff", "--json"]] {
            secrets.run(command);
        }
        secrets.kept(managed);
    }
}

/// Commands about the machine and the runs.
const COMMANDS: &[&[&str]] = &[
    &["history", "--json"],
    &["history", "show", "last"],
    &["history", "show", "last", "--json"],
    &["history", "verify"],
    &["validate", "site.yaml", "-v"],
    &["hiera", "parse", "site.yaml"],
    &["hiera", "parse", "site.yaml", "--json"],
];

#[test]
fn change_of_a_decrypted_value_shows_neither_the_old_nor_the_new_one() {
    for (resources, managed, status) in CASES {
        let secrets = world_of(resources);
        for name in *managed {
            let path = secrets.world.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("password = {PASSWORD}-before\n")).unwrap();
        }
        secrets.apply(&["--diff", "-vv"]).exits(*status);
        secrets.run(&["history", "show", "last", "--json"]);
        secrets.kept(managed);
    }
}

#[test]
fn eval_masks_decrypted_values() {
    let secrets = Secrets::new("[]");
    for (expression, shown) in [
        ("Data.password", "[secret]"),
        ("Data.pin + 1", "[secret]"),
        ("[Data.open, Data.password]", "visible"),
        ("Data", "[secret]"),
        ("Data.password == 'x'", "false"),
        ("keys(fromJSON(Data.json))", "[secret]"),
        ("lookup('data.password')", "[secret]"),
    ] {
        let outcome = secrets.run(&["eval", expression, "--hiera", "site.yaml"]);
        outcome.exits(0).says(shown);
    }
    secrets.run(&["eval", "int(Data.password)", "--hiera", "site.yaml"]).exits(2);
}

#[test]
fn decrypted_value_is_literal_text() {
    for content in ["Data.template", "template(Data.template)", "jinja(Data.template)"] {
        let secrets = Secrets::new(&format!(
            "- file: [{{ $W/x: {{ content: '${{ {content} }}', $OWN, mode: '0600' }} }}]"
        ));
        secrets.apply(&[]).exits(0);
        assert_eq!(secrets.world.read("x"), "${ Facts.hostname } {{ 1 + 1 }}", "{content}");
    }
}

#[test]
fn decrypted_value_in_a_name_or_reference_is_an_error_with_its_position() {
    for resource in [
        "- exec: [{ 'a ${ Data.password }': {} }]",
        "- exec: [{ a: { alias: '${ Data.password }' } }]",
        "- exec: [{ a: { require: ['exec#${ Data.password }'] } }]",
        "- exec: [{ a: { tags: ['${ Data.password }'] } }]",
        "- exec: [{ for_each: '[Data.password]', 'a ${ each }': {} }]",
        "- package: [{ a: { ensure: '${ Data.password }' } }]",
    ] {
        let secrets = Secrets::new(resource);
        secrets.apply(&["--json"]).exits(2);
        for command in [&["apply", "site.yaml"][..], &["validate", "site.yaml"]] {
            secrets
                .run(command)
                .exits(2)
                .complains("a secret value cannot be part of a name or reference")
                .complains("site.yaml:5:");
        }
        secrets.kept(&[]);
    }
}

#[test]
fn untrusted_template_does_not_see_decrypted_values() {
    if !crate::support::is_root() {
        return;
    }
    let secrets =
        Secrets::new("- file: [{ $W/x: { content: \"${ template('theirs.txt') }\", $OWN, mode: '0600' } }]");
    let theirs = secrets.world.base().join("theirs.txt");
    fs::write(&theirs, "${ Data.pin ?? 'nothing' }").unwrap();
    std::os::unix::fs::chown(&theirs, Some(crate::support::NOBODY), None).unwrap();
    secrets.apply(&[]).exits(0);
    assert_eq!(secrets.world.read("x"), "nothing");
}

/// Returns whether the kernel dumps the memory of the program when a child aborts it.
fn dumps_core(secrets: &Secrets) -> bool {
    let call = secrets.world.ccm(["apply", "site.yaml"]);
    let call = call.env("SOPS_AGE_KEY_FILE", secrets.identity.to_str().unwrap());
    let mut child = call.under(["sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"]).start();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(6), "{status}");
    status.core_dumped()
}

#[test]
fn memory_with_decrypted_values_is_not_dumped() {
    const ABORT: &str = "- exec: [{ abort: { command: \"sh -c 'kill -ABRT $PPID'\" } }]";
    assert!(!dumps_core(&Secrets::new(ABORT)));
}
