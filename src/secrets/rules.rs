//! `.sops.yaml`: for whom the files of a directory are encrypted.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::{
    recipients::{RecipientError, check, encrypt_key},
    sops::{AgeKey, DataKey, Group, Metadata, RULES, Selection, split},
};
use crate::{
    document::{self, Diagnostic, Diagnostics, Entry, Node, Review, Source, Span},
    host::input::{self, InputError},
};

/// The name of the file.
pub(crate) const FILE: &str = ".sops.yaml";

const LARGEST: u64 = 1 << 20;

/// Keys of creation rules whose recipients only `sops` can encrypt for.
const OTHERS: [&str; 6] = ["pgp", "kms", "gcp_kms", "hckms", "azure_keyvault", "hc_vault_transit_uri"];

/// The creation rules of a directory.
pub(crate) struct Rules {
    directory: PathBuf,
    rules: Vec<Rule>,
}

/// A creation rule.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    path: Option<Regex>,
    pub(crate) groups: Vec<Vec<String>>,
    threshold: usize,
    pub(crate) selection: Selection,
    is_mac_only_encrypted: bool,
    /// Kinds of recipients that ccm cannot encrypt for.
    pub(crate) others: Vec<String>,
}

impl Rules {
    /// Finds the rules for a file: in its directory, or in the next one above that has them.
    pub(crate) fn find(file: &Path) -> Result<Option<Self>, Review> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        for directory in file.ancestors().skip(1) {
            let path = directory.join(FILE);
            let bytes = match input::read_file(&path, LARGEST) {
                Ok(bytes) => bytes,
                Err(InputError::Missing) => continue,
                Err(error) => return Err(unreadable(&path, error.to_string())),
            };
            let source = Source::read(path.display().to_string(), bytes)
                .map_err(|problem| unreadable(&path, problem.message))?;
            return match Self::parse(&source, directory) {
                Ok(rules) => Ok(Some(rules)),
                Err(diagnostics) => Err(Review { source, diagnostics }),
            };
        }
        Ok(None)
    }

    fn parse(source: &Source, directory: &Path) -> Result<Self, Diagnostics> {
        let root = document::parse(source)?;
        let rules = root.lookup("creation_rules").and_then(Node::as_seq).unwrap_or_default();
        let rules = rules.iter().map(Rule::parse).collect::<Result<_, Diagnostic>>()?;
        Ok(Self { directory: directory.to_owned(), rules })
    }

    /// Returns the first rule that matches a file.
    pub(crate) fn into_rule(self, file: &Path) -> Option<Rule> {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let below = file.strip_prefix(&self.directory).unwrap_or(&file).to_string_lossy().into_owned();
        self.rules.into_iter().find(|rule| rule.path.as_ref().is_none_or(|path| path.is_match(&below)))
    }
}

fn unreadable(path: &Path, reason: String) -> Review {
    let source = Source { name: path.display().to_string(), text: String::new() };
    Review { source, diagnostics: Diagnostic::error("invalid-rules", reason).into() }
}

fn invalid(message: impl Into<String>, span: Span) -> Diagnostic {
    Diagnostic::error("invalid-rules", message).at(span)
}

impl Rule {
    /// A rule for recipients that were named.
    pub(crate) fn of(recipients: Vec<String>) -> Self {
        Self { groups: vec![recipients], ..Self::default() }
    }

    fn parse(node: &Node) -> Result<Self, Diagnostic> {
        let Some(entries) = node.as_map() else {
            return Err(invalid("a creation rule must be a map", node.span));
        };
        let mut rule = Self::default();
        let mut selection: Option<Selection> = None;
        for Entry { key, key_span, value } in entries {
            let text =
                || value.as_str().ok_or_else(|| invalid(format!("`{key}` must be a string"), value.span));
            match key.as_str() {
                "path_regex" => {
                    let regex = Regex::new(text()?);
                    let problem = |_| invalid("`path_regex` is not a valid regular expression", value.span);
                    rule.path = Some(regex.map_err(problem)?);
                }
                "age" => rule.groups.insert(0, recipients(value)?),
                "key_groups" => {
                    let groups =
                        value.as_seq().ok_or_else(|| invalid("`key_groups` must be a list", value.span))?;
                    for group in groups {
                        rule.add_group(group)?;
                    }
                }
                "shamir_threshold" => {
                    let number = document::from_node(value);
                    rule.threshold = number.map_err(|error| invalid(error.message, value.span))?;
                }
                "mac_only_encrypted" => {
                    let truth = document::from_node(value);
                    rule.is_mac_only_encrypted = truth.map_err(|error| invalid(error.message, value.span))?;
                }
                name if OTHERS.contains(&name) => rule.others.push(name.to_owned()),
                name => {
                    if let Some(name) = RULES.iter().find(|known| **known == name) {
                        if selection.is_some() {
                            return Err(invalid(
                                "a rule has only one of the keys that select values",
                                *key_span,
                            ));
                        }
                        let found = Selection::new(name, text()?);
                        selection = Some(found.map_err(|error| invalid(error.to_string(), value.span))?);
                    }
                }
            }
        }
        rule.selection = selection.unwrap_or_default();
        Ok(rule)
    }

    fn add_group(&mut self, group: &Node) -> Result<(), Diagnostic> {
        let found = group.lookup("age").map(recipients).transpose()?.unwrap_or_default();
        let entries = group.as_map().unwrap_or_default();
        self.others.extend(entries.iter().filter(|entry| entry.key != "age").map(|entry| entry.key.clone()));
        self.groups.push(found);
        Ok(())
    }

    /// Returns all recipients, sorted, as documents are compared with.
    pub(crate) fn recipients(&self) -> Vec<String> {
        let mut all: Vec<String> = self.groups.iter().flatten().map(|recipient| normal(recipient)).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the recipients of a whole file.
    pub(crate) fn all(&self) -> Vec<String> {
        self.groups.iter().flatten().cloned().collect()
    }

    /// Encrypts a data key for the recipients.
    pub(crate) fn metadata(&self, key: &DataKey) -> Result<Metadata, RecipientError> {
        let groups: Vec<&Vec<String>> = self.groups.iter().filter(|group| !group.is_empty()).collect();
        let failed = |error: String| RecipientError::Failed(error);
        let count = u8::try_from(groups.len()).map_err(|_| failed("too many groups".to_owned()))?;
        let threshold = if self.threshold == 0 { groups.len() } else { self.threshold };
        let parts: Vec<Vec<u8>> = match count {
            0 => return Err(RecipientError::None),
            1 => vec![key.to_vec()],
            _ => {
                let least = u8::try_from(threshold).unwrap_or(u8::MAX).clamp(2, count);
                let parts = split(key, count, least).map_err(|error| failed(error.to_string()))?;
                parts.iter().map(|part| part.to_vec()).collect()
            }
        };
        let mut found = Vec::new();
        for (group, part) in groups.iter().zip(&parts) {
            let mut keys = Group::default();
            for recipient in *group {
                let encrypted = encrypt_key(recipient, part)?;
                keys.age.push(AgeKey { recipient: recipient.clone(), encrypted, span: Span::empty(0) });
            }
            found.push(keys);
        }
        Ok(Metadata {
            groups: found,
            threshold: if count > 1 { threshold.max(2) } else { 0 },
            last_modified: String::new(),
            last_modified_span: Span::empty(0),
            mac: String::new(),
            mac_span: Span::empty(0),
            selection: self.selection.clone(),
            is_mac_only_encrypted: self.is_mac_only_encrypted,
        })
    }
}

/// Returns the metadata of a document with other keys: its selection stays.
pub(crate) fn with_new_keys(document: &Metadata, keys: Metadata) -> Metadata {
    Metadata {
        selection: document.selection.clone(),
        is_mac_only_encrypted: document.is_mac_only_encrypted,
        ..keys
    }
}

/// Returns a recipient without the comment of an ssh key.
pub(crate) fn normal(recipient: &str) -> String {
    recipient.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn recipients(node: &Node) -> Result<Vec<String>, Diagnostic> {
    let mut found = Vec::new();
    let mut add = |text: &str, span: Span| -> Result<(), Diagnostic> {
        for recipient in text.split(',').map(str::trim).filter(|recipient| !recipient.is_empty()) {
            check(recipient).map_err(|error| invalid(error.to_string(), span))?;
            found.push(recipient.to_owned());
        }
        Ok(())
    };
    match (node.as_str(), node.as_seq()) {
        (Some(text), _) => add(text, node.span)?,
        (_, Some(items)) => {
            for item in items {
                add(
                    item.as_str().ok_or_else(|| invalid("a recipient must be a string", item.span))?,
                    item.span,
                )?;
            }
        }
        _ => return Err(invalid("`age` must be a string or a list", node.span)),
    }
    Ok(found)
}
