//! Documents that ccm wrote, changed in one place at a time.

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::{Index, select},
};

use super::{
    Format, Reuse, Rule, document, new_data_key, quoted, reveal, seal,
    sops::{DataKey, Metadata, Selection, open},
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

/// Returns the places whose change must be noticed: keys, encrypted values, the MAC and its time.
fn authenticated(sealed: &str) -> Vec<usize> {
    let (mut places, mut at, mut is_section) = (Vec::new(), 0, false);
    for line in sealed.split_inclusive('\n') {
        let start = at;
        at += line.len();
        is_section |= ["sops:", "[sops]", "sops_"].iter().any(|mark| line.starts_with(mark));
        let name = line.trim_start().trim_start_matches("sops_");
        if !is_section || name.starts_with("mac") || name.starts_with("lastmodified") {
            places.extend(start..at);
        }
    }
    places.retain(|at| sealed.as_bytes()[*at].is_ascii_alphanumeric());
    places
}

proptest! {
    // With 40 changes of each document, these are 10,240 cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn change_of_one_bit_of_any_document_is_refused(
        format in select(vec![Format::Yaml, Format::Dotenv, Format::Ini]),
        // SOPS does not encrypt an empty value, so its key is not authenticated.
        entries in btree_map("[a-z]{1,8}", "[a-zA-Z0-9][ -~]{0,39}", 1..5),
        changes in vec((any::<Index>(), 0..8_u8), 40),
    ) {
        let line = |(key, value): (&String, &String)| match format {
            Format::Yaml => format!("{key}:\n  - {{ inner: {} }}\n", quoted(value)),
            Format::Dotenv => format!("{key}={value}\n"),
            Format::Ini => format!("{key} = {value}\n"),
        };
        let text: String = entries.iter().map(line).collect();
        let text = if format == Format::Ini { format!("[part]\n{text}") } else { text };
        let (sealed, key) = sealed(format, &text);
        prop_assume!(opened(sealed.as_bytes(), format, &key).is_some());
        let places = authenticated(&sealed);
        for (place, bit) in changes {
            let mut changed = sealed.clone().into_bytes();
            changed[places[place.index(places.len())]] ^= 1 << bit;
            let result = opened(&changed, format, &key);
            prop_assert!(result.is_none(), "{sealed}\n{}", String::from_utf8_lossy(&changed));
        }
    }
}

#[test]
fn comments_select_values_in_every_format() {
    for (format, text) in [
        (Format::Yaml, "# secret\na: not-shown\nb: is-shown\n"),
        (Format::Dotenv, "# secret\na=not-shown\nb=is-shown\n"),
        // As SOPS reads it, a comment of an INI file is about the key after the next one.
        (Format::Ini, "; secret\n[part]\na = not-shown\nb = is-shown\n"),
        (
            Format::Ini,
            "[part]\n# secret\na = is-shown\nb = not-shown\nc = is-shown\n; secret\nd = is-shown\n[next]\nb = is-shown\n",
        ),
    ] {
        let (_, recipient) = super::generate();
        let key = new_data_key().unwrap();
        let selection = Selection::new("encrypted_comment_regex", "secret").unwrap();
        let metadata = Metadata { selection, ..Rule::of(vec![recipient]).metadata(&key).unwrap() };
        let plain = Source { name: "test".to_owned(), text: text.to_owned() };
        let sealed = seal(&plain, format, &metadata, &key, None, &mut Reuse::default()).unwrap();
        assert!(!sealed.contains("not-shown") && sealed.contains("is-shown"), "{sealed}");
        assert!(opened(sealed.as_bytes(), format, &key).is_some());
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
