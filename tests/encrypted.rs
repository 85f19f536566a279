//! Encrypted data: documents in the format of SOPS, read with identities of age and ssh.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::support::{Outcome, World, sh, skip};

/// Files of others, with their keys.
struct Corpus {
    directory: PathBuf,
}

impl Corpus {
    /// Unpacks the files, if this machine has them.
    fn unpack(world: &World) -> Option<Self> {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/encrypted.tar.gz");
        if !archive.exists() {
            skip("needs ../shared/corpora/encrypted.tar.gz");
            return None;
        }
        sh(&format!("tar xzf {} && chmod -R go= .", archive.display()), world.base());
        Some(Self { directory: world.base().to_owned() })
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }
}

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
