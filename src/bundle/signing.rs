//! Signs with a private key that lies in a file, or with one that the ssh agent holds.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    },
};

use super::{
    LARGEST_SIGNATURE,
    key::PublicKey,
    sshsig::{armoured, to_sign},
};
use crate::{
    host::input::{self, InputError, UnreadableInput},
    secrets::ssh_wire::{Reader, Short, push_integer, push_string},
};

const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// The numbers of the ssh agent's protocol.
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const RSA_SHA2_512: u32 = 4;

/// Something that signs.
pub(crate) enum SigningKey {
    Ed25519(PublicKey, Box<Ed25519KeyPair>),
    Ecdsa(PublicKey, Box<EcdsaKeyPair>),
    /// A key that the ssh agent behind this socket holds.
    Agent(PublicKey, PathBuf),
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignError {
    #[error(transparent)]
    Unreadable(#[from] UnreadableInput),
    #[error("{} is neither a private nor a public key of ssh", .0.display())]
    NotAKey(PathBuf),
    #[error("{} {why}, and no ssh agent is running (SSH_AUTH_SOCK is not set): add the key to one with ssh-add", path.display())]
    NeedsAgent { path: PathBuf, why: &'static str },
    #[error("the ssh agent does not sign with this key: add it with ssh-add ({0})")]
    Refused(String),
    #[error("cannot talk to the ssh agent at {}: {error}", path.display())]
    Agent { path: PathBuf, error: io::Error },
    #[error("cannot read what is to be signed: {0}")]
    Content(io::Error),
    #[error("the key cannot sign")]
    Unusable,
}

impl SigningKey {
    /// Reads a private key. One that is protected by a passphrase, one of RSA, and a public key stand for those in the ssh
    /// agent, which `agent` leads to.
    pub(crate) fn read(path: &Path, agent: Option<&Path>) -> Result<Self, SignError> {
        let read = |path: &Path| {
            let bytes = input::read_file(path, LARGEST_SIGNATURE);
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let unreadable = |error: InputError| UnreadableInput { path: path.to_owned(), error };
        let text = read(path).map_err(unreadable)?;
        let with_agent = |key, why| match agent {
            Some(agent) => Ok(Self::Agent(key, agent.to_owned())),
            None => Err(SignError::NeedsAgent { path: path.to_owned(), why }),
        };
        if let Some(key) = public_key(&text) {
            return with_agent(key, "is a public key");
        }
        match private_key(&text) {
            Ok(Private::Open(key)) => Ok(key),
            Ok(Private::Locked(key)) if key.kind() == "ssh-rsa" => {
                with_agent(key, "is an RSA key, and only an ssh agent signs with RSA keys")
            }
            Ok(Private::Locked(key)) => {
                with_agent(key, "is protected by a passphrase or of a kind that only the agent signs with")
            }
            Err(_) => Err(SignError::NotAKey(path.to_owned())),
        }
    }

    /// Signs a file and returns the signature in its armour.
    pub(crate) fn sign(&self, file: impl Read) -> Result<String, SignError> {
        let message = to_sign(file).map_err(SignError::Content)?;
        let (key, signature) = match self {
            Self::Ed25519(key, pair) => (key, named("ssh-ed25519", pair.sign(&message).as_ref())),
            Self::Ecdsa(key, pair) => {
                let signed = pair.sign(&SystemRandom::new(), &message).map_err(|_| SignError::Unusable)?;
                let (r, s) = signed.as_ref().split_at(signed.as_ref().len() / 2);
                let mut both = Vec::new();
                push_integer(&mut both, r);
                push_integer(&mut both, s);
                (key, named(&key.kind(), &both))
            }
            Self::Agent(key, socket) => (key, ask_agent(key, &message, socket)?),
        };
        Ok(armoured(key, &signature))
    }
}

fn named(algorithm: &str, signature: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_string(&mut out, algorithm.as_bytes());
    push_string(&mut out, signature);
    out
}

fn public_key(text: &str) -> Option<PublicKey> {
    let mut words = text.split_whitespace();
    PublicKey::from_words(words.next()?, words.next()?)
}

enum Private {
    Open(SigningKey),
    /// Only its public half can be read.
    Locked(PublicKey),
}

fn private_key(text: &str) -> Result<Private, Short> {
    let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).ok_or(Short)?.0;
    let body: String = body.split_whitespace().collect();
    let blob = BASE64_STANDARD.decode(body).map_err(|_| Short)?;
    let mut parts = Reader(&blob);
    if parts.bytes(MAGIC.len())? != MAGIC {
        return Err(Short);
    }
    let cipher = parts.string()?;
    let _derivation = (parts.string()?, parts.string()?);
    if parts.number()? != 1 {
        return Err(Short);
    }
    let public = PublicKey(parts.string()?.to_vec());
    if cipher != b"none" {
        return Ok(Private::Locked(public));
    }
    let mut secret = Reader(parts.string()?);
    if secret.number()? != secret.number()? {
        return Err(Short);
    }
    match secret.string()? {
        b"ssh-ed25519" => {
            let point = secret.string()?;
            let seed = secret.string()?.get(..32).ok_or(Short)?;
            let pair = Ed25519KeyPair::from_seed_and_public_key(seed, point).map_err(|_| Short)?;
            Ok(Private::Open(SigningKey::Ed25519(public, Box::new(pair))))
        }
        b"ecdsa-sha2-nistp256" => ecdsa(public, secret, &ECDSA_P256_SHA256_FIXED_SIGNING, 32),
        b"ecdsa-sha2-nistp384" => ecdsa(public, secret, &ECDSA_P384_SHA384_FIXED_SIGNING, 48),
        _ => Ok(Private::Locked(public)),
    }
}

fn ecdsa(
    public: PublicKey,
    mut secret: Reader,
    algorithm: &'static ring::signature::EcdsaSigningAlgorithm,
    width: usize,
) -> Result<Private, Short> {
    let (_curve, point, number) = (secret.string()?, secret.string()?, secret.integer()?);
    let padding = width.checked_sub(number.len()).ok_or(Short)?;
    let number: Vec<u8> = std::iter::repeat_n(0, padding).chain(number.iter().copied()).collect();
    let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, &number, point, &SystemRandom::new());
    Ok(Private::Open(SigningKey::Ecdsa(public, Box::new(pair.map_err(|_| Short)?))))
}

#[expect(clippy::disallowed_methods, reason = "the socket that `SSH_AUTH_SOCK` names")]
fn ask_agent(key: &PublicKey, message: &[u8], socket: &Path) -> Result<Vec<u8>, SignError> {
    let failed = |error| SignError::Agent { path: socket.to_owned(), error };
    let mut request = vec![SIGN_REQUEST];
    push_string(&mut request, &key.0);
    push_string(&mut request, message);
    let flags = if key.kind() == "ssh-rsa" { RSA_SHA2_512 } else { 0 };
    request.extend(flags.to_be_bytes());
    let mut framed = Vec::new();
    push_string(&mut framed, &request);
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.write_all(&framed).map_err(failed)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(failed)?;
    let mut answer = Vec::new();
    let length = u64::from(u32::from_be_bytes(length)).min(LARGEST_SIGNATURE);
    stream.take(length).read_to_end(&mut answer).map_err(failed)?;
    let mut answer = Reader(&answer);
    match answer.bytes(1) {
        Ok([SIGN_RESPONSE]) => {
            answer.string().map(<[u8]>::to_vec).map_err(|_| SignError::Refused(key.fingerprint()))
        }
        _ => Err(SignError::Refused(key.fingerprint())),
    }
}
