//! Documents that ccm wrote, changed in one place at a time.

use super::{
    Format, Reuse, Rule, document, new_data_key, reveal, seal,
    sops::{DataKey, open},
};
use crate::document::{Source, to_value};

/// A document that is encrypted for a new key of age, with its data key.
fn sealed(format: Format, text: &str) -> (String, DataKey) {
    let (_, recipient) = super::generate();
    let key = new_data_key().unwrap();
    let metadata = Rule::of(vec![recipient]).metadata(&key).unwrap();
    let plain = Source { name: "test".to_owned(), text: text.to_owned() };
    let sealed = seal(&plain, format, &metadata, &key, None, &mut Reuse::default());
    (sealed.unwrap_or_else(|problems| panic!("{problems:?}")), key)
}

/// Returns the values of a document, unless it is refused.
fn opened(text: &[u8], format: Format, key: &DataKey) -> Option<String> {
    let source = Source::read("test", text.to_vec()).ok()?;
    let parsed = format.read(&source).ok().filter(|parsed| !parsed.diagnostics.has_errors())?;
    let document = document(&parsed.root, format, &source).ok()??;
    let root = open(document, key, &source).ok()?.root;
    Some(to_value(&root).to_text())
}

const YAML: &str = "# a comment\na: one # inline\nb:\n  - two\n  - {c: 3, d: true, e: 1.5}\nplain_unencrypted: 0644\nf: |\n  x\n  y\n";

#[test]
fn document_that_was_sealed_opens_and_reads_the_same() {
    for (format, text) in [
        (Format::Yaml, YAML),
        (Format::Yaml, "{\"a\": \"x\", \"b\": [1, null, \"\"], \"c\": {}}\n"),
        (Format::Dotenv, "# comment\nA=one\nB=two\\nlines\n"),
        (Format::Ini, "; comment\n[one]\na = x\n; more\nb = `y;z`\n"),
    ] {
        let (sealed, key) = sealed(format, text);
        assert!(!sealed.contains("one #") && opened(sealed.as_bytes(), format, &key).is_some(), "{sealed}");
        let source = Source { name: "test".to_owned(), text: sealed.clone() };
        let revealed = reveal(&source, format, &key).unwrap();
        let plain = |text: &str| {
            let source = Source { name: "test".to_owned(), text: text.to_owned() };
            to_value(&format.read(&source).unwrap().root).to_text()
        };
        assert_eq!(plain(&revealed.text), plain(text), "{}", revealed.text.as_str());
        let again = Source { name: "test".to_owned(), text: revealed.text.as_str().to_owned() };
        let metadata =
            document(&format.read(&source).unwrap().root, format, &source).unwrap().unwrap().metadata;
        let mut reuse = revealed.reuse;
        let again = seal(&again, format, &metadata, &key, Some(&revealed.section), &mut reuse).unwrap();
        let is_kept = |line: &&str| !line.contains("mac") && !line.contains("lastmodified");
        let lines = |text: &str| text.lines().filter(is_kept).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&again), lines(&sealed), "values that did not change keep their text");
    }
}

#[test]
fn every_change_of_one_bit_is_refused() {
    for (format, text) in [
        (Format::Yaml, "first: one\nsecond:\n  - three: 4\n"),
        (Format::Dotenv, "FIRST=one\nSECOND=two\n"),
        (Format::Ini, "[part]\nfirst = one\n"),
    ] {
        let (sealed, key) = sealed(format, text);
        assert!(opened(sealed.as_bytes(), format, &key).is_some());
        let mut places: Vec<usize> = Vec::new();
        for pattern in
            ["ENC[AES256_GCM", "lastmodified", "mac", "first", "second", "three", "FIRST", "SECOND", "part"]
        {
            for (start, _) in sealed.match_indices(pattern) {
                let line = &sealed[start..];
                places.extend(start..start + line.find('\n').unwrap_or(line.len()));
            }
        }
        places.sort_unstable();
        places.dedup();
        // Keys of age open with other bytes than these.
        places.retain(|at| !sealed[..*at].rsplit('\n').next().unwrap().contains("map_enc"));
        let is_significant = |at: usize| {
            let byte = sealed.as_bytes()[at];
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'[' | b']' | b',')
        };
        for at in places.into_iter().filter(|at| is_significant(*at)) {
            for bit in 0..8 {
                let mut changed = sealed.clone().into_bytes();
                changed[at] ^= 1 << bit;
                let result = opened(&changed, format, &key);
                assert!(result.is_none(), "bit {bit} of byte {at}: {}", String::from_utf8_lossy(&changed));
            }
        }
    }
}

#[test]
fn values_that_move_to_another_key_are_refused() {
    let (sealed, key) = sealed(Format::Yaml, "a: one\nb: two\nc_unencrypted: three\n");
    let swapped = sealed.replacen("a: ", "x: ", 1).replacen("b: ", "a: ", 1).replacen("x: ", "b: ", 1);
    for (changed, what) in [
        (swapped, "two values are exchanged"),
        (sealed.replace("three", "four"), "a value in plain text is changed"),
        (sealed.replace("c_unencrypted: three\n", ""), "a value in plain text is removed"),
        (sealed.replacen("\nb: ", "\nb_unencrypted: ", 1), "a key selects plain text"),
        (sealed.replacen("c_unencrypted", "c", 1), "a value in plain text would be encrypted"),
        (sealed.replace("    mac: ", "    mad: "), "the MAC is missing"),
        (sealed[..sealed.find("sops:").unwrap()].to_owned(), "the section is missing"),
        (sealed.replace("unencrypted_suffix: ", "encrypted_suffix: "), "the selection is changed"),
    ] {
        assert_ne!(changed, sealed, "{what}");
        assert_eq!(opened(changed.as_bytes(), Format::Yaml, &key), None, "{what}");
    }
}

#[test]
fn anchors_are_refused_in_both_directions() {
    let (_, recipient) = super::generate();
    let key = new_data_key().unwrap();
    let metadata = Rule::of(vec![recipient]).metadata(&key).unwrap();
    let plain = Source { name: "test".to_owned(), text: "a: &x 1\nb: *x\n".to_owned() };
    assert!(seal(&plain, Format::Yaml, &metadata, &key, None, &mut Reuse::default()).is_err());
    let (sealed, key) = sealed(Format::Yaml, "a: one\nb_unencrypted: 1\n");
    let anchored = sealed.replacen("b_unencrypted: 1", "b_unencrypted: &x 1", 1);
    assert_ne!(anchored, sealed);
    assert_eq!(opened(anchored.as_bytes(), Format::Yaml, &key), None);
}
