//! Ways in for fuzzers: encrypted data with keys that every fuzzer knows.

use std::sync::LazyLock;

use zeroize::Zeroizing;

use super::{
    Format, Keyring, Rule, bech32, decrypt_vault, document, identity, placeholders, read, reveal, seal,
    sops::{self, DataKey, Metadata, Reuse},
};
use crate::document::{Node, Source, Value, to_value};

static KEY: LazyLock<DataKey> = LazyLock::new(|| Zeroizing::new([7; 32]));

/// Metadata of a document whose data key is known. Its recipient does not matter.
static METADATA: LazyLock<Option<Metadata>> = LazyLock::new(|| {
    let (_, recipient) = identity::generate();
    Rule::of(vec![recipient]).metadata(&KEY).ok()
});

const FORMATS: [Format; 3] = [Format::Yaml, Format::Dotenv, Format::Ini];

/// Reads bytes as an encrypted document of each format. Only panics matter here.
pub(crate) fn read_document(bytes: &[u8]) {
    let Ok(source) = Source::read("fuzz", bytes.to_vec()) else { return };
    let keyring = Keyring::none();
    for format in FORMATS {
        let _read = read(&source, format, &keyring);
        let _revealed = reveal(&source, format, &KEY);
        let Ok(parsed) = format.read(&source) else { continue };
        if let Ok(Some(found)) = document(&parsed.root, format, &source) {
            let _placeholders = placeholders(found, &source);
        }
    }
}

/// Encrypts a document and opens it again: what ccm wrote has the same values, and the same text for an editor.
pub(crate) fn seal_document(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let Ok(plain) = Source::read("fuzz", rest.to_vec()) else { return };
    let Some(metadata) = &*METADATA else { return };
    let Ok(sealed) = seal(&plain, format, metadata, &KEY, None, &mut Reuse::default()) else { return };
    let before = format.read(&plain).map(|parsed| value(&parsed.root));
    let sealed = Source { name: "fuzz".to_owned(), text: sealed };
    let parsed = format.read(&sealed).expect("a sealed document is valid");
    assert!(!parsed.diagnostics.has_errors(), "{}", sealed.text);
    let found = document(&parsed.root, format, &sealed).expect("it has a section").expect("it is encrypted");
    let opened =
        sops::open(found, &KEY, &sealed).unwrap_or_else(|error| panic!("{error:?}\n{}", sealed.text));
    assert_eq!(before.ok(), Some(value(&opened.root)), "{}", sealed.text);
    let Ok(revealed) = reveal(&sealed, format, &KEY) else { return };
    let revealed = Source { name: "fuzz".to_owned(), text: revealed.text.to_string() };
    let again = format.read(&revealed).map(|parsed| value(&parsed.root));
    assert_eq!(again.ok(), Some(value(&opened.root)), "{}", revealed.text);
}

/// Returns the values of a document, decrypted ones included.
fn value(root: &Node) -> String {
    let mut root = root.clone();
    show_secrets(&mut root);
    if root.is_null() { "{}".to_owned() } else { to_value(&root).to_text() }
}

fn show_secrets(node: &mut Node) {
    match &mut node.value {
        Value::Scalar(scalar) => scalar.is_secret = false,
        Value::Seq(items) => items.iter_mut().for_each(show_secrets),
        Value::Map(entries) => entries.iter_mut().for_each(|entry| show_secrets(&mut entry.value)),
    }
}

/// Reads bytes as a file in age format, as identities, and as a file of Ansible Vault.
pub(crate) fn read_keys(bytes: &[u8]) {
    let Ok(own) = identity::parse(&bech32::secret_key(&[7; 32]), "fuzz") else { return };
    let _opened = identity::decrypt(bytes, &mut own.iter().flat_map(identity::Identity::open_keys));
    let text = String::from_utf8_lossy(bytes);
    let _identities = identity::parse(&text, "fuzz");
    let _vault = decrypt_vault(&text, b"fuzz");
}
