//! The identities of a run, looked for when the first of them is needed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD},
};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{
    age_file::{AgeError, no_match, stanzas},
    identity::{Found, Identity, NoPrompt, Place, Prompt, decrypt},
    sealed::digest_of_part,
    sops::{AgeKey, DataKey, Group, Metadata, Part, combine},
};
use crate::host::interrupt::Interrupt;

/// How ccm treats encrypted data that no identity opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WithoutKey {
    /// The data cannot be used.
    #[default]
    Fail,
    /// Placeholders of the same types stand for the values.
    Placeholders,
    /// Placeholders stand for the values, and no identity is looked for.
    NeverDecrypt,
}

/// The identities of a run.
pub(crate) struct Keyring {
    places: Vec<Place>,
    prompt: Arc<dyn Prompt>,
    interrupt: Option<Interrupt>,
    pub(crate) without_key: WithoutKey,
    loaded: OnceLock<Loaded>,
    placeholders: AtomicBool,
    /// Parts that a controller opened, by the digest of each.
    opened: HashMap<String, Zeroizing<Vec<u8>>>,
    /// Identities that a passphrase opened; `None` for one whose passphrase was not given.
    unlocked: Mutex<Vec<(usize, Arc<Vec<Identity>>)>>,
}

/// Identities of all places.
struct Loaded {
    identities: Vec<Identity>,
    warnings: Mutex<Vec<String>>,
    /// An identity that was named cannot be used.
    refusal: Option<String>,
}

/// Why a document does not open.
#[derive(Debug)]
pub(crate) enum NoKey {
    /// No identity is one of its recipients.
    NoIdentity { recipients: Vec<String>, tried: Vec<String> },
    /// An identity that was named cannot be used.
    Refused(String),
    /// The data for a recipient is damaged.
    Damaged { key: AgeKey, reason: String },
    /// The parts of several groups give no key.
    Parts,
}

impl Keyring {
    pub(crate) fn new(places: Vec<Place>, prompt: Arc<dyn Prompt>, interrupt: Interrupt) -> Self {
        Self { places, prompt, interrupt: Some(interrupt), without_key: WithoutKey::Fail, ..Self::none() }
    }

    /// A keyring without identities, for documents that are only inspected.
    pub(crate) fn none() -> Self {
        Self {
            places: Vec::new(),
            prompt: Arc::new(NoPrompt),
            interrupt: None,
            without_key: WithoutKey::NeverDecrypt,
            loaded: OnceLock::new(),
            placeholders: AtomicBool::new(false),
            opened: HashMap::new(),
            unlocked: Mutex::default(),
        }
    }

    /// Returns whether placeholders stand for some values.
    pub(crate) fn has_placeholders(&self) -> bool {
        self.placeholders.load(Ordering::Relaxed)
    }

    /// Records that placeholders stand for some values.
    pub(super) fn use_placeholders(&self) {
        self.placeholders.store(true, Ordering::Relaxed);
    }

    /// Returns what stops programs; `None` for a keyring that never starts one.
    pub(super) fn interrupt(&self) -> Option<&Interrupt> {
        self.interrupt.as_ref()
    }

    /// Sets how ccm treats encrypted data that no identity opens.
    pub(crate) fn without_key(self, without_key: WithoutKey) -> Self {
        Self { without_key, ..self }
    }

    /// Listens to no signals, for a program that reacts to them itself.
    pub(crate) fn without_signals(self) -> Self {
        Self { interrupt: Interrupt::never().ok(), ..self }
    }

    /// Adds parts that a controller opened.
    pub(crate) fn with_opened(self, opened: Vec<(String, Zeroizing<Vec<u8>>)>) -> Self {
        Self { opened: opened.into_iter().collect(), ..self }
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.get_or_init(|| {
            let (mut identities, mut warnings, mut refusal) = (Vec::new(), Vec::new(), None);
            let Some(interrupt) = &self.interrupt else {
                return Loaded { identities, warnings: Mutex::new(warnings), refusal };
            };
            for place in &self.places {
                match place.find(interrupt) {
                    Found::Identities(found) => identities.extend(found),
                    Found::Nothing => {}
                    Found::Ignored(reason) => warnings.push(reason),
                    Found::Refused(reason) => refusal = refusal.or(Some(reason)),
                }
            }
            Loaded { identities, warnings: Mutex::new(warnings), refusal }
        })
    }

    /// Returns why files at the usual places are not used, once.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        let Some(loaded) = self.loaded.get() else { return Vec::new() };
        std::mem::take(&mut *loaded.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the places of identities with their recipients, for messages.
    pub(crate) fn tried(&self) -> Vec<String> {
        let loaded = self.loaded();
        let shown = |identity: &Identity| match identity.recipients.first() {
            Some(recipient) if identity.is_locked() => {
                format!("{} ({}, locked)", identity.place, self::shown(recipient))
            }
            Some(recipient) => format!("{} ({})", identity.place, self::shown(recipient)),
            None => format!("{} (locked)", identity.place),
        };
        loaded.identities.iter().map(shown).collect()
    }

    /// Returns the recipients of all identities that were found.
    pub(crate) fn recipients(&self) -> Vec<String> {
        self.loaded().identities.iter().flat_map(|identity| identity.recipients.clone()).collect()
    }

    /// Decrypts a file in age format.
    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeError> {
        self.decrypt_for(None, bytes)
    }

    /// Decrypts a file that is for one recipient, if that is known: no passphrase of another recipient is asked for.
    fn decrypt_for(&self, recipient: Option<&str>, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeError> {
        let opened = (!self.opened.is_empty()).then(|| self.opened.get(&digest_of_part(bytes))).flatten();
        if let Some(plain) = opened {
            return Ok(plain.clone());
        }
        let loaded = self.loaded();
        if let Some(reason) = &loaded.refusal {
            return Err(AgeError::Refused(reason.clone()));
        }
        let mut keys = loaded.identities.iter().flat_map(Identity::open_keys);
        match decrypt(bytes, &mut keys) {
            Err(AgeError::NoMatch) => {}
            result => return result,
        }
        let stanzas = stanzas(bytes);
        for (at, identity) in loaded.identities.iter().enumerate() {
            if identity.is_locked_for(&stanzas)
                && recipient.is_none_or(|recipient| identity.can_be(recipient))
                && let Some(unlocked) = self.unlocked(at, identity)?
            {
                match decrypt(bytes, &mut unlocked.iter().flat_map(Identity::open_keys)) {
                    Err(AgeError::NoMatch) => {}
                    result => return result,
                }
            }
        }
        Err(no_match(&stanzas))
    }

    /// Decrypts a file in age format that a manifest names; `None` if a placeholder stands for it.
    pub(crate) fn open_file(&self, bytes: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
        let opened = match self.without_key {
            WithoutKey::NeverDecrypt => Err(AgeError::NoMatch),
            _ => self.decrypt(bytes),
        };
        match opened {
            Ok(plain) => Ok(Some(plain)),
            Err(AgeError::NoMatch) if self.without_key != WithoutKey::Fail => {
                self.use_placeholders();
                Ok(None)
            }
            Err(AgeError::NoMatch) => {
                let tried = self.tried();
                let tried = if tried.is_empty() { "none was found".to_owned() } else { tried.join(", ") };
                Err(format!("{} (identities tried: {tried})", AgeError::NoMatch))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Opens an identity with its passphrase, for which the user is asked once.
    fn unlocked(&self, at: usize, identity: &Identity) -> Result<Option<Arc<Vec<Identity>>>, AgeError> {
        let mut unlocked = self.unlocked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = unlocked.iter().find(|(known, _)| *known == at) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(passphrase) = self.prompt.passphrase(&identity.place) else {
            unlocked.push((at, Arc::default()));
            return Ok(None);
        };
        let opened = Arc::new(identity.unlock(passphrase)?);
        unlocked.push((at, Arc::clone(&opened)));
        Ok(Some(opened))
    }

    /// Returns the data key of a document.
    pub(crate) fn data_key(&self, metadata: &Metadata) -> Result<DataKey, NoKey> {
        if let Some(reason) = &self.loaded().refusal {
            return Err(NoKey::Refused(reason.clone()));
        }
        let no_identity = || NoKey::NoIdentity {
            recipients: metadata.recipients().iter().map(|recipient| shown(recipient)).collect(),
            tried: self.tried(),
        };
        let mut parts = Vec::new();
        for group in &metadata.groups {
            if let Some(part) = self.part(group)? {
                parts.push(part);
            }
            if parts.len() == metadata.threshold {
                break;
            }
        }
        if parts.len() < metadata.threshold || parts.is_empty() {
            return Err(no_identity());
        }
        if metadata.groups.len() > 1 {
            return combine(&parts).ok_or(NoKey::Parts);
        }
        let key: Result<[u8; 32], _> = parts[0].as_slice().try_into();
        key.map(Zeroizing::new).map_err(|_| NoKey::Parts)
    }

    /// Returns the part of the data key that a group has.
    fn part(&self, group: &Group) -> Result<Option<Part>, NoKey> {
        let known = self.recipients();
        let is_ours = |key: &&AgeKey| known.iter().any(|recipient| is_same(recipient, &key.recipient));
        let (ours, others): (Vec<&AgeKey>, Vec<&AgeKey>) = group.age.iter().partition(is_ours);
        let mut damaged = None;
        for key in ours.into_iter().chain(others) {
            match self.decrypt_for(Some(&key.recipient), key.encrypted.as_bytes()) {
                Ok(part) => return Ok(Some(part)),
                Err(AgeError::NoMatch | AgeError::Passphrase | AgeError::PostQuantum(_)) => {}
                Err(error) => {
                    damaged.get_or_insert(NoKey::Damaged { key: key.clone(), reason: error.to_string() });
                }
            }
        }
        damaged.map_or(Ok(None), Err)
    }
}

/// Returns a recipient as messages show it: a key of ssh by its fingerprint.
pub(crate) fn shown(recipient: &str) -> String {
    let mut words = recipient.split_whitespace();
    match (words.next(), words.next()) {
        (Some(kind), Some(key)) if kind.starts_with("ssh-") => match BASE64_STANDARD.decode(key) {
            Ok(key) => format!("{kind} SHA256:{}", BASE64_STANDARD_NO_PAD.encode(Sha256::digest(key))),
            Err(_) => kind.to_owned(),
        },
        _ => recipient.to_owned(),
    }
}

/// Returns whether two recipients are the same: the comment of an ssh key does not count.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.split_whitespace().take(2).eq(other.split_whitespace().take(2))
}
