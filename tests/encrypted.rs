//! Encrypted data: documents in the format of SOPS, read with identities of age and ssh.

use std::{fs, path::Path};

use crate::support::{Outcome, World, encrypted::Corpus, has, sh, skip};

/// A manifest whose data is in files of `layers`, and that writes some of it into a file.
const SITE: &str = "\
data: {}
hierarchy: { order: [default], directory: layers, merge: deep }
ccm:
  resources:
    - file:
        - $W/out: { $OWN, mode: \"0600\", content: \"${ CONTENT }\" }
";

fn site(content: &str) -> World {
    World::new().manifest(&SITE.replace("CONTENT", content))
}

fn layer(world: &World, name: &str, content: impl AsRef<[u8]>) {
    let path = world.base().join("layers").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[track_caller]
fn apply(world: &World, arguments: &[&str]) -> Outcome {
    world.ccm(["apply", "site.yaml", "--no-diff"].iter().chain(arguments)).run()
}

fn written(world: &World) -> String {
    fs::read_to_string(world.path("out")).unwrap()
}

#[test]
fn document_of_others_opens_with_each_of_its_keys() {
    let world = site("Data.test_key + join(Data.a_list, '') + Data.nested.test.file");
    let Some(corpus) = Corpus::unpack(&world) else { return };
    layer(&world, "default.yaml", fs::read(corpus.path("sops/secrets.yaml")).unwrap());
    for key in ["sops/age-keys.txt", "sops/ssh-ed25519-key"] {
        let _ = fs::remove_file(world.path("out"));
        apply(&world, &["--identity", &corpus.path(key)]).exits(0);
        assert_eq!(written(&world), "test_valuee1e3another value", "{key}");
    }
    let hidden = world.ccm(["hiera", "parse", "site.yaml", "--identity", &corpus.path("sops/age-keys.txt")]);
    let hidden = hidden.run();
    let hidden = &hidden.exits(0).stdout;
    assert!(!hidden.contains("test_value") && hidden.contains("[secret]"), "{hidden}");
}

#[test]
fn documents_for_pgp_only_are_refused_with_their_fingerprints() {
    let world = site("Data.x");
    let Some(corpus) = Corpus::unpack(&world) else { return };
    for (from, to) in [
        ("sops/secrets.json", "default.json"),
        ("sops/secrets.ini", "default.ini"),
        ("sops/secrets.env", "default.env"),
        ("sops/secrets.bin", "default.json"),
    ] {
        let _ = fs::remove_dir_all(world.base().join("layers"));
        layer(&world, to, fs::read(corpus.path(from)).unwrap());
        apply(&world, &["--identity", &corpus.path("sops/age-keys.txt")])
            .exits(2)
            .complains("no identity opens this encrypted document")
            .complains("PGP 7FB89715AADA920D65D25E63F9BA9DEBD03F57C0")
            .complains("age1yt3tfqlfrwdwx0z0ynwplcr6qxcxfaqycuprpmy89nr83ltx74tqdpszlw");
        assert!(!world.path("out").exists());
    }
}

/// Returns the recipient of a new key of the user, in the usual place.
fn init(world: &World) -> String {
    world.ccm(["secret", "init"]).run().exits(0).stdout.trim().to_owned()
}

#[track_caller]
fn secret(world: &World, arguments: &[&str], input: &str) -> Outcome {
    world.ccm(["secret"].iter().chain(arguments)).input(input).run()
}

/// Returns a program that `make test` installs below `target`.
fn tool(path: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(path);
    if !path.exists() {
        skip(&format!("needs {}: `make test` installs it", path.display()));
        return None;
    }
    Some(path.to_str().unwrap().to_owned())
}

const PLAIN: &str = "\
# The database
db:
    password: hunter2 # of the owner
    hosts: [one, two]
    port: 5432
    empty: \"\"
    nothing: null
    multi: |
        one
          two
name_unencrypted: shown
";

#[test]
fn value_is_set_shown_and_applied() {
    let world = site("Data.db.password");
    let recipient = init(&world);
    let world = world.beside(".sops.yaml", format!("creation_rules: [{{ age: {recipient} }}]\n"));
    for file in ["layers/default.yaml", "layers/default.json", "layers/default.ini"] {
        fs::create_dir_all(world.base().join("layers")).unwrap();
        secret(&world, &["set", file, "db.password"], "canary-one\n").exits(0);
        let stored = fs::read_to_string(world.base().join(file)).unwrap();
        assert!(!stored.contains("canary"), "{stored}");
        secret(&world, &["show", file, "db.password"], "").exits(2).complains("--force");
        let shown = secret(&world, &["show", file, "db.password", "--force"], "");
        assert_eq!(shown.exits(0).stdout, "canary-one\n");
        apply(&world, &[]).exits(0).never_says("canary");
        assert_eq!(written(&world), "canary-one");
        fs::remove_file(world.base().join(file)).unwrap();
    }
}

#[test]
fn without_a_key_nothing_is_applied_and_validate_uses_placeholders() {
    let world = site("Data.db.password");
    let recipient = init(&world);
    layer(&world, "default.yaml", "");
    fs::remove_file(world.base().join("layers/default.yaml")).unwrap();
    secret(&world, &["set", "layers/default.yaml", "db.password", "--recipient", &recipient], "x").exits(0);
    fs::remove_dir_all(world.base().join("home/.config")).unwrap();
    world.ccm(["validate", "site.yaml"]).run().exits(0);
    for arguments in [&[][..], &["--noop"]] {
        apply(&world, arguments).exits(2).complains(&recipient).complains("identities tried: ");
    }
    let misspelt = world.manifest(&SITE.replace("CONTENT", "Data.db.pasword"));
    misspelt.ccm(["validate", "site.yaml"]).run().exits(2).complains("pasword");
}

#[test]
fn rekey_follows_the_rule_and_check_finds_differences() {
    let world = World::new();
    let first = init(&world);
    let other = "age1yt3tfqlfrwdwx0z0ynwplcr6qxcxfaqycuprpmy89nr83ltx74tqdpszlw";
    let rule = |keys: &str| {
        fs::write(world.base().join(".sops.yaml"), format!("creation_rules: [{{ age: \"{keys}\" }}]\n"))
    };
    rule(&first).unwrap();
    secret(&world, &["set", "a.yaml", "password"], "xK9#mQ2$vL").exits(0);
    secret(&world, &["check"], "").exits(0).says("1 encrypted document");
    let before = fs::read_to_string(world.base().join("a.yaml")).unwrap();
    secret(&world, &["rekey"], "").exits(0);
    assert_eq!(
        fs::read_to_string(world.base().join("a.yaml")).unwrap(),
        before,
        "nothing to do changes nothing"
    );
    rule(&format!("{first},{other}")).unwrap();
    secret(&world, &["check"], "").exits(1).complains("the recipients are not those of .sops.yaml");
    secret(&world, &["rekey"], "").exits(0).says("a.yaml: encrypted for 2 recipients");
    secret(&world, &["check"], "").exits(0);
    let value = |text: &str| text.lines().next().unwrap().to_owned();
    let added = fs::read_to_string(world.base().join("a.yaml")).unwrap();
    assert_eq!(value(&added), value(&before), "values stay when a recipient is added");
    rule(&first).unwrap();
    secret(&world, &["rekey"], "").exits(0);
    let removed = fs::read_to_string(world.base().join("a.yaml")).unwrap();
    assert_ne!(value(&removed), value(&before), "values are encrypted again when a recipient is removed");
    fs::write(world.base().join("b.yaml"), "api_token: xK9#mQ2$vL\n").unwrap();
    secret(&world, &["check"], "")
        .exits(1)
        .complains("this looks like a secret, named `api_token`")
        .never_says("xK9");
}

#[test]
fn programs_of_others_read_documents_of_ccm_and_back() {
    let (Some(sops), world) = (tool("sops/bin/sops"), World::new()) else { return };
    let recipient = init(&world);
    let key = world.base().join("home/.config/sops/age/keys.txt");
    let files = [
        ("a.yaml", PLAIN),
        ("a.json", "{\n  \"a\": {\"b\": [1, 2.5, true, null, \"x\"]},\n  \"c\": \"\"\n}\n"),
        ("a.env", "# comment\nA=one\nB=two\\nlines\n"),
        ("a.ini", "[one]\na = x\nb = y\n"),
    ];
    let decrypt = |file: &str| {
        sh(
            &format!("SOPS_AGE_KEY_FILE={} {sops} decrypt --output-type json {file}", key.display()),
            world.base(),
        )
    };
    for (name, text) in files {
        fs::write(world.base().join(name), text).unwrap();
        sh(&format!("{sops} encrypt --age {recipient} {name} >sops.{name}"), world.base());
        let format = name.split_once('.').unwrap().1;
        let shown = secret(&world, &["show", &format!("sops.{name}"), "--force"], "");
        fs::write(world.base().join(format!("shown.{name}")), &shown.exits(0).stdout).unwrap();
        // Written by ccm: the same document in another process and with one more value.
        let path = if format == "ini" { "one.added" } else { "added" };
        secret(&world, &["set", &format!("sops.{name}"), path], "more").exits(0);
        assert!(decrypt(&format!("sops.{name}")).contains("\"more\""), "{name}");
        let new = format!("new.{name}");
        secret(&world, &["set", &new, path, "--recipient", &recipient], "more").exits(0);
        assert!(decrypt(&new).contains("\"more\""), "{name}");
    }
    let shown = fs::read_to_string(world.base().join("shown.a.yaml")).unwrap();
    for part in ["password: hunter2", "# of the owner", "port: 5432", "multi: |\n", "name_unencrypted: shown"]
    {
        assert!(shown.contains(part) || shown.contains(&part.replace("# ", "#")), "{part}: {shown}");
    }
}

#[test]
fn second_reader_opens_documents_of_ccm() {
    let (Some(reader), world) = (tool("sops-age/node_modules/sops-age/package.json"), World::new()) else {
        return;
    };
    let recipient = init(&world);
    secret(&world, &["set", "a.yaml", "db.password", "--recipient", &recipient], "canary-two").exits(0);
    let directory = Path::new(&reader).parent().unwrap();
    let script = format!(
        "import {{ decryptSops }} from '{}/dist/index.js';
         import fs from 'node:fs';
         const secretKey = fs.readFileSync('home/.config/sops/age/keys.txt', 'utf8').split('\\n')[1];
         console.log(JSON.stringify(await decryptSops({{ path: 'a.yaml', secretKey }})));",
        directory.display()
    );
    fs::write(world.base().join("read.mjs"), script).unwrap();
    assert_eq!(sh("node read.mjs", world.base()).trim(), r#"{"db":{"password":"canary-two"}}"#);
}

#[test]
fn age_reads_whole_files_of_ccm_and_back() {
    if !has("age") || !has("ssh-keygen") {
        return;
    }
    let world = World::new().beside("plain", "content\n");
    let recipient = init(&world);
    sh("ssh-keygen -q -t ed25519 -N '' -f ed && ssh-keygen -q -t rsa -b 2048 -N '' -f rsa", world.base());
    let public = |name: &str| fs::read_to_string(world.base().join(name)).unwrap().trim().to_owned();
    let (ed, rsa) = (public("ed.pub"), public("rsa.pub"));
    secret(
        &world,
        &["encrypt", "plain", "--recipient", &recipient, "--recipient", &ed, "--recipient", &rsa],
        "",
    )
    .exits(0);
    secret(&world, &["encrypt", "plain", "--recipient", &recipient], "")
        .exits(2)
        .complains("plain.age exists");
    for key in ["home/.config/sops/age/keys.txt", "ed", "rsa"] {
        assert_eq!(sh(&format!("age -d -i {key} plain.age"), world.base()), "content\n", "{key}");
        let decrypted = secret(&world, &["decrypt", "plain.age", "--force", "--identity", key], "");
        assert_eq!(decrypted.exits(0).stdout, "content\n", "{key}");
    }
    sh(&format!("age -a -r {recipient} -o armored plain"), world.base());
    secret(&world, &["decrypt", "armored", "-o", "out"], "").exits(0);
    assert_eq!(fs::read_to_string(world.base().join("out")).unwrap(), "content\n");
}

#[test]
fn vectors_of_age_give_the_expected_result() {
    let world = World::new();
    let Some(corpus) = Corpus::unpack(&world) else { return };
    let mut count = 0;
    for vector in corpus.vectors() {
        let field = |name: &str| vector.field(name);
        if field("passphrase").is_some() {
            continue;
        }
        count += 1;
        let (name, identity) = (&vector.name, vector.fields("identity").join("\n"));
        let world = World::new().beside("file.age", &vector.file);
        fs::write(world.base().join("key"), &identity).unwrap();
        sh("chmod 600 key", world.base());
        let outcome = secret(&world, &["decrypt", "file.age", "-o", "out", "--identity", "key"], "");
        let is_supported = !identity.contains("AGE-SECRET-KEY-PQ-");
        if field("expect").as_deref() == Some("success") && is_supported {
            outcome.exits(0);
            let digest = sh("sha256sum out", world.base());
            assert_eq!(digest.split(' ').next(), field("payload").as_deref(), "{name}");
        } else {
            outcome.exits(2);
            assert!(!world.base().join("out").exists(), "{name}: partial output");
            if !is_supported {
                outcome.complains("post-quantum");
            }
        }
    }
    assert_eq!(count, 68, "all files without a passphrase");
}

#[test]
fn vault_of_ansible_is_imported() {
    let Some(vault) = tool("ansible/bin/ansible-vault") else { return };
    let world =
        World::new().beside("vault.yml", "db:\n  password: canary-three\n").beside("pw", "open sesame\n");
    let recipient = init(&world);
    sh(&format!("{vault} encrypt --vault-password-file pw vault.yml 2>/dev/null"), world.base());
    let import = |password: &str, to: &str| {
        let arguments = ["import", "--ansible-vault", "vault.yml", "--password-file", password, "-o", to];
        secret(&world, &[&arguments[..], &["--recipient", &recipient]].concat(), "")
    };
    import("pw", "new.yaml").exits(0);
    let shown = secret(&world, &["show", "new.yaml", "db.password", "--force"], "");
    assert_eq!(shown.exits(0).stdout, "canary-three\n");
    fs::write(world.base().join("wrong"), "guess").unwrap();
    import("wrong", "other.yaml").exits(2).complains("the vault password is wrong");
    assert!(!world.base().join("other.yaml").exists());
}

#[test]
fn identity_that_others_can_read_is_refused() {
    let world = site("Data.x");
    let recipient = init(&world);
    fs::create_dir_all(world.base().join("layers")).unwrap();
    secret(&world, &["set", "layers/default.yaml", "x", "--recipient", &recipient], "value").exits(0);
    sh(
        "cp home/.config/sops/age/keys.txt open.txt && chmod 644 open.txt home/.config/sops/age/keys.txt",
        world.base(),
    );
    apply(&world, &["--identity", "open.txt"])
        .exits(2)
        .complains("open.txt is accessible to other users (mode 0644)");
    apply(&world, &[]).exits(2).complains("identities tried: ");
    sh("chmod 600 open.txt", world.base());
    apply(&world, &["--identity", "open.txt"]).exits(0).complains("keys.txt is accessible to other users");
    assert_eq!(written(&world), "value");
}

#[test]
fn whole_files_are_decrypted_by_source_and_by_the_function() {
    let world = World::new().beside("secret", "canary-four\n").manifest(
        "\
- file:
    - defaults: { $OWN, mode: \"0600\" }
    - $W/a: { source: secret.age }
    - $W/b: { content: \"x {{ age('secret.age') }}\" }
    - $W/c: { source: secret.age, decrypt: false }
",
    );
    let recipient = init(&world);
    secret(&world, &["encrypt", "secret", "--recipient", &recipient], "").exits(0);
    let applied = world.ccm(["apply", "site.yaml", "--diff"]).run();
    applied.exits(0).never_says("canary");
    let read = |name: &str| fs::read(world.path(name)).unwrap();
    assert_eq!(read("a"), b"canary-four\n");
    assert_eq!(read("b"), b"x canary-four\n");
    assert_eq!(read("c"), fs::read(world.base().join("secret.age")).unwrap());
    world.ccm(["apply", "site.yaml"]).run().exits(0).counts([0, 3, 0, 0]);
    fs::remove_dir_all(world.base().join("home/.config")).unwrap();
    sh("rm w/a", world.base());
    world.ccm(["apply", "site.yaml"]).run().exits(2).complains("no identity opens it");
    world.ccm(["validate", "site.yaml"]).run().exits(0);
}
