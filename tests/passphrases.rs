//! Keys and files that a passphrase protects: ccm asks for it on a terminal, once.

use std::fs;

use crate::support::{Outcome, World, encrypted::Corpus, has, sh};

/// Runs a program on a terminal and answers each of its questions. The program cannot print more than it is asked for.
const TERMINAL: &str = r#"
import os, pty, sys
answer, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
printed, answered = b"", 0
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    printed += data
    if printed.count(b"Passphrase for ") > answered and printed.endswith(b": "):
        answered += 1
        os.write(terminal, answer + b"\n")
sys.stdout.buffer.write(printed.replace(b"\r\n", b"\n"))
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Runs the program on a terminal, where the user answers questions with a passphrase.
#[track_caller]
fn on_terminal(world: &World, passphrase: &str, arguments: &[&str]) -> Outcome {
    fs::write(world.base().join("terminal.py"), TERMINAL).unwrap();
    let wrapper = ["python3", "terminal.py", passphrase];
    world.ccm(arguments.iter().copied()).under(wrapper).run()
}

#[track_caller]
fn encrypt(world: &World, file: &str, value: &str, recipient: &str) {
    let arguments = ["secret", "set", file, "password", "--recipient", recipient];
    world.ccm(arguments).input(value).run().exits(0);
}

/// A world with an Ed25519 key `ed` that the passphrase `open sesame` protects, and the age recipient of the key.
fn locked() -> Option<(World, String)> {
    if !has("ssh-keygen") || !has("python3") {
        return None;
    }
    let world = World::new();
    sh("ssh-keygen -q -t ed25519 -N 'open sesame' -f ed", world.base());
    encrypt(&world, "probe.yaml", "x", "age1yt3tfqlfrwdwx0z0ynwplcr6qxcxfaqycuprpmy89nr83ltx74tqdpszlw");
    let tried = world.ccm(["secret", "show", "probe.yaml", "--force", "--identity", "ed"]).run();
    let tried = &tried.exits(2).complains("locked").stderr;
    let start = tried.find("ed (age1").expect("the recipient of a locked key is known") + 4;
    let recipient = tried[start..].split([',', ')']).next().unwrap().to_owned();
    Some((world, recipient))
}

#[test]
fn locked_key_opens_data_for_both_of_its_recipients() {
    let Some((world, recipient)) = locked() else { return };
    let public = fs::read_to_string(world.base().join("ed.pub")).unwrap();
    fs::create_dir(world.base().join("layers")).unwrap();
    encrypt(&world, "layers/a.yaml", "one", &recipient);
    encrypt(&world, "layers/b.yaml", "two", public.trim());
    let world = world.manifest(
        "data: {}\nhierarchy: { order: [a, b], directory: layers, merge: deep }\nccm:\n  resources:\n    \
         - file: [{ $W/x: { content: '${ Data.password }', $OWN, mode: '0600' } }]\n",
    );
    let apply = ["apply", "site.yaml", "--identity", "ed"];
    let outcome = on_terminal(&world, "open sesame", &apply);
    let outcome = outcome.exits(0).never_says("open sesame");
    assert_eq!(outcome.stdout.matches("Passphrase for ").count(), 1, "{}", outcome.stdout);
    assert_eq!(world.read("x"), "two");
    on_terminal(&world, "guess", &apply).exits(2).says("passphrase is wrong").never_says("guess");
    world
        .ccm(apply)
        .run()
        .exits(2)
        .complains("no identity opens this encrypted document")
        .complains("locked");
}

#[test]
fn data_for_others_asks_for_no_passphrase() {
    let Some((world, _)) = locked() else { return };
    let show = ["secret", "show", "probe.yaml", "--force", "--identity", "ed"];
    on_terminal(&world, "open sesame", &show).exits(2).never_says("Passphrase");
}

#[test]
fn files_with_a_passphrase_are_opened_on_a_terminal_and_refused_by_manifests() {
    let world = World::new();
    let Some(corpus) = Corpus::unpack(&world) else { return };
    if !has("python3") {
        return;
    }
    let mut count = 0;
    for vector in corpus.vectors() {
        let Some(passphrase) = vector.field("passphrase") else { continue };
        count += 1;
        fs::write(world.base().join("file.age"), &vector.file).unwrap();
        let decrypt = ["secret", "decrypt", "file.age", "-o", "out"];
        let outcome = on_terminal(&world, &passphrase, &decrypt);
        if vector.field("expect").as_deref() == Some("success") {
            outcome.exits(0);
            let digest = sh("sha256sum out && rm out", world.base());
            assert_eq!(digest.split(' ').next(), vector.field("payload").as_deref(), "{}", vector.name);
            let world = World::new()
                .beside("file.age", &vector.file)
                .manifest("- file: [{ $W/x: { source: file.age, $OWN, mode: '0600' } }]\n");
            let apply = on_terminal(&world, &passphrase, &["apply", "site.yaml"]);
            apply.exits(2).says("it is encrypted with a passphrase").never_says("Passphrase for");
        } else {
            outcome.exits(2);
            assert!(!world.base().join("out").exists(), "{}: partial output", vector.name);
        }
    }
    assert_eq!(count, 11);
}
