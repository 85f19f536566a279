//! The section `sops` of a document.

use jiff::Timestamp;

use super::selection::{InvalidRule, RULES, Selection};
use crate::document::{Diagnostic, Entry, Node, Span, Typed, Value};

/// The key of the section.
pub(crate) const SECTION: &str = "sops";

/// Kinds of keys that only other programs open, each with the field that identifies a key.
const OTHER_KEYS: [(&str, &str, &str); 6] = [
    ("pgp", "fp", "PGP"),
    ("kms", "arn", "AWS KMS"),
    ("gcp_kms", "resource_id", "GCP KMS"),
    ("hckms", "key_id", "HUAWEI CLOUD KMS"),
    ("azure_kv", "name", "Azure Key Vault"),
    ("hc_vault", "key_name", "Vault"),
];

/// How a document is encrypted.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    pub(crate) groups: Vec<Group>,
    /// How many groups are needed.
    pub(crate) threshold: usize,
    /// When the document was written; authenticated with the MAC.
    pub(crate) last_modified: String,
    pub(crate) last_modified_span: Span,
    /// The encrypted MAC.
    pub(crate) mac: String,
    pub(crate) mac_span: Span,
    pub(crate) selection: Selection,
    pub(crate) is_mac_only_encrypted: bool,
}

/// Keys of which each opens the same part of the data key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) age: Vec<AgeKey>,
    /// Keys that ccm cannot use, for messages.
    pub(crate) others: Vec<String>,
}

/// The data key, or a part of it, encrypted for a recipient.
#[derive(Clone, Debug)]
pub(crate) struct AgeKey {
    pub(crate) recipient: String,
    pub(crate) encrypted: String,
    pub(crate) span: Span,
}

/// Creates the error for a document that SOPS would not write.
pub(crate) fn invalid(message: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic::error("invalid-encrypted-document", message).at(span)
}

impl Metadata {
    /// Reads the section.
    pub(crate) fn of(entry: &Entry) -> Result<Self, Diagnostic> {
        let place = entry.key_span;
        if entry.value.as_map().is_none() {
            return Err(invalid(format!("`{SECTION}` must be a map, not {}", entry.value.kind()), place));
        }
        let section = &entry.value;
        let Some((mac, mac_span)) = text(section, "mac")? else {
            return Err(invalid("the document has no MAC: it was changed without its key", place)
                .with_help("restore `sops.mac`, or encrypt the document again from its plain text"));
        };
        let Some((last_modified, at)) = text(section, "lastmodified")? else {
            return Err(invalid("the document has no `sops.lastmodified`", place));
        };
        if last_modified.parse::<Timestamp>().is_err() {
            return Err(invalid("`sops.lastmodified` is not a time", at));
        }
        let groups = groups(section)?;
        let threshold = number(section, "shamir_threshold")?.unwrap_or(0);
        if groups.len() > 1 && threshold > groups.len() {
            let message =
                format!("`sops.shamir_threshold` is {threshold}, but there are {} groups", groups.len());
            return Err(invalid(message, place));
        }
        Ok(Self {
            threshold: if threshold == 0 { groups.len() } else { threshold },
            groups,
            last_modified: last_modified.to_owned(),
            last_modified_span: at,
            mac: mac.to_owned(),
            mac_span,
            selection: selection(section)?.unwrap_or_default(),
            is_mac_only_encrypted: truth(section, "mac_only_encrypted")?,
        })
    }

    /// Returns whether the document has recipients that only the program `sops` can use.
    pub(crate) fn has_others(&self) -> bool {
        self.groups.iter().any(|group| !group.others.is_empty())
    }

    /// Returns all recipients: those of age as they are written, others with their kind.
    pub(crate) fn recipients(&self) -> Vec<String> {
        let of_group = |group: &Group| {
            let age = group.age.iter().map(|key| key.recipient.clone());
            age.chain(group.others.iter().cloned()).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of_group).collect()
    }
}

/// Reads the selection rule; of several, SOPS would not say which one applies.
fn selection(section: &Node) -> Result<Option<Selection>, Diagnostic> {
    let mut found: Option<(Selection, Span)> = None;
    for name in RULES {
        let Some((text, span)) = text(section, name)?.filter(|(text, _)| !text.is_empty()) else { continue };
        if let Some((first, _)) = &found {
            let message = format!("`{}` and `{name}` exclude each other", first.name);
            return Err(invalid(message, span).with_help("keep one of them, and encrypt the document again"));
        }
        let selection =
            Selection::new(name, text).map_err(|error: InvalidRule| invalid(error.to_string(), span))?;
        found = Some((selection, span));
    }
    Ok(found.map(|(selection, _)| selection))
}

fn groups(section: &Node) -> Result<Vec<Group>, Diagnostic> {
    let several = section.lookup("key_groups").filter(|node| !node.is_null());
    let Some(several) = several else { return Ok(vec![group(section)?]) };
    let Some(items) = several.as_seq().filter(|items| !items.is_empty()) else {
        return Err(invalid("`sops.key_groups` must be a list of groups", several.span));
    };
    items.iter().map(group).collect()
}

fn group(node: &Node) -> Result<Group, Diagnostic> {
    let mut group = Group::default();
    for item in list(node, "age")? {
        let (Some((recipient, _)), Some((encrypted, span))) = (text(item, "recipient")?, text(item, "enc")?)
        else {
            return Err(invalid("a key of age needs `recipient` and `enc`", item.span));
        };
        group.age.push(AgeKey { recipient: recipient.to_owned(), encrypted: encrypted.to_owned(), span });
    }
    for (name, field, shown) in OTHER_KEYS {
        for item in list(node, name)? {
            let key = text(item, field)?.map_or("?", |(text, _)| text);
            group.others.push(format!("{shown} {key}"));
        }
    }
    Ok(group)
}

/// Returns the items of a list that can be missing or null.
fn list<'n>(node: &'n Node, key: &str) -> Result<&'n [Node], Diagnostic> {
    match node.lookup(key) {
        None => Ok(&[]),
        Some(list) if list.is_null() => Ok(&[]),
        Some(list) => list.as_seq().ok_or_else(|| invalid(format!("`{key}` must be a list"), list.span)),
    }
}

fn text<'n>(node: &'n Node, key: &str) -> Result<Option<(&'n str, Span)>, Diagnostic> {
    let Some(found) = node.lookup(key).filter(|found| !found.is_null()) else { return Ok(None) };
    match &found.value {
        // A time without quotes is text here, and so is a number.
        Value::Scalar(scalar) => Ok(Some((&scalar.text, found.span))),
        _ => Err(invalid(format!("`{key}` must be a string, not {}", found.kind()), found.span)),
    }
}

fn number(node: &Node, key: &str) -> Result<Option<usize>, Diagnostic> {
    let Some((text, span)) = text(node, key)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| invalid(format!("`{key}` must be a number"), span))
}

fn truth(node: &Node, key: &str) -> Result<bool, Diagnostic> {
    let Some(found) = node.lookup(key).filter(|found| !found.is_null()) else { return Ok(false) };
    let typed = match &found.value {
        Value::Scalar(scalar) => match scalar.typed() {
            Typed::Bool(truth) => Some(truth),
            // dotenv and INI have only strings.
            Typed::Str("true") => Some(true),
            Typed::Str("false" | "") => Some(false),
            _ => None,
        },
        _ => None,
    };
    typed.ok_or_else(|| invalid(format!("`{key}` must be true or false"), found.span))
}
