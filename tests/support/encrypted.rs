//! Writes documents in the format of SOPS, independently of the program.

use std::{
    fs,
    io::{Read, Write},
    iter,
    path::{Path, PathBuf},
};

use aes_gcm::{
    AeadInOut, AesGcm, KeyInit, Nonce,
    aead::{consts::U32, inout::InOutBuf},
    aes::Aes256,
};
use age::{
    armor::{ArmoredWriter, Format},
    secrecy::ExposeSecret,
    x25519::Identity,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha512};

use super::{World, sh, skip};

const MODIFIED: &str = "2026-01-02T03:04:05Z";

/// A person who writes encrypted documents, and the identity that opens them.
pub(crate) struct Author {
    identity: Identity,
}

impl Author {
    pub(crate) fn new() -> Self {
        Self { identity: Identity::generate() }
    }

    /// Returns the identity as a file has it.
    pub(crate) fn secret(&self) -> String {
        format!("{}\n", self.identity.to_string().expose_secret())
    }

    /// Writes the identity into a file next to the manifest and returns its path.
    pub(crate) fn identity(&self, world: &World) -> PathBuf {
        let path = world.base().join("identity.txt");
        fs::write(&path, self.secret()).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// Returns an encrypted document with these keys. Each has a value and its type, such as `str`.
    pub(crate) fn document(&self, entries: &[(&str, &str, &str)]) -> String {
        self.sealed("", "", entries)
    }

    /// Returns the same with its keys in the section `data`.
    pub(crate) fn data(&self, entries: &[(&str, &str, &str)]) -> String {
        self.sealed("data:\n", "data:", entries)
    }

    fn sealed(&self, begin: &str, path: &str, entries: &[(&str, &str, &str)]) -> String {
        let key = random();
        let (mut lines, mut mac) = (vec![begin.to_owned()], Sha512::new());
        let indent = if begin.is_empty() { "" } else { "  " };
        for (name, value, kind) in entries {
            mac.update(value);
            lines.push(format!("{indent}{name}: {}\n", seal(&key, value, &format!("{path}{name}:"), kind)));
        }
        let mac: String = mac.finalize().iter().map(|byte| format!("{byte:02X}")).collect();
        let (recipient, data_key) = (self.identity.to_public(), indented(&self.for_recipient(&key)));
        lines.concat()
            + &format!(
                "sops:\n  age:\n  - recipient: {recipient}\n    enc: |\n{data_key}  lastmodified: \"{MODIFIED}\"\n  mac: {}\n  \
             unencrypted_suffix: _unencrypted\n  version: 3.9.0\n",
                seal(&key, &mac, MODIFIED, "str"),
            )
    }

    fn for_recipient(&self, key: &[u8]) -> String {
        let recipient = self.identity.to_public();
        let encryptor = age::Encryptor::with_recipients(iter::once(&recipient as _)).unwrap();
        let armor = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor).unwrap();
        let mut writer = encryptor.wrap_output(armor).unwrap();
        writer.write_all(key).unwrap();
        String::from_utf8(writer.finish().unwrap().finish().unwrap()).unwrap()
    }
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).unwrap();
    bytes
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("      {line}\n")).collect()
}

fn seal(key: &[u8; 32], value: &str, path: &str, kind: &str) -> String {
    let iv = random();
    let mut data = value.as_bytes().to_vec();
    let cipher = AesGcm::<Aes256, U32>::new(key.into());
    let buffer = InOutBuf::from(data.as_mut_slice());
    let tag = cipher.encrypt_inout_detached(&Nonce::<U32>::from(iv), path.as_bytes(), buffer).unwrap();
    let [data, iv, tag] = [&data[..], &iv, &tag].map(|bytes| BASE64_STANDARD.encode(bytes));
    format!("ENC[AES256_GCM,data:{data},iv:{iv},tag:{tag},type:{kind}]")
}

/// Files of others, with their keys.
pub(crate) struct Corpus {
    directory: PathBuf,
}

/// A test vector of age: lines about the file, and the file.
pub(crate) struct Vector {
    pub(crate) name: String,
    header: String,
    pub(crate) file: Vec<u8>,
}

impl Corpus {
    /// Unpacks the files, if this machine has them.
    pub(crate) fn unpack(world: &World) -> Option<Self> {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpora/encrypted.tar.gz");
        if !archive.exists() {
            skip("needs ../shared/corpora/encrypted.tar.gz");
            return None;
        }
        sh(&format!("tar xzf {} && chmod -R go= .", archive.display()), world.base());
        Some(Self { directory: world.base().to_owned() })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    /// Returns the test vectors of age.
    pub(crate) fn vectors(&self) -> Vec<Vector> {
        let paths = fs::read_dir(self.path("age")).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| Vector::read(&path)).collect()
    }
}

impl Vector {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
        let header = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut vector = Self { name, header, file: bytes[end + 2..].to_vec() };
        if vector.field("compressed").as_deref() == Some("zlib") {
            let mut file = Vec::new();
            flate2::read::ZlibDecoder::new(&*vector.file).read_to_end(&mut file).unwrap();
            vector.file = file;
        }
        vector
    }

    /// Returns the values of a line that can be repeated.
    pub(crate) fn fields(&self, name: &str) -> Vec<String> {
        let lines = self.header.lines();
        lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned).collect()
    }

    pub(crate) fn field(&self, name: &str) -> Option<String> {
        self.fields(name).into_iter().next()
    }
}
