//! One encrypted value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::{
    AeadInOut, AesGcm, KeyInit, Nonce, Tag,
    aead::{consts::U32, inout::InOutBuf},
    aes::Aes256,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

/// Begins every encrypted value.
pub(crate) const PREFIX: &str = "ENC[AES256_GCM,";

/// Length of the data key and of each nonce.
pub(super) const KEY_LENGTH: usize = 32;

/// AES-256-GCM with the nonces of SOPS, which are longer than usual.
type Aead = AesGcm<Aes256, U32>;

/// The data key of a document.
pub(crate) type DataKey = Zeroizing<[u8; KEY_LENGTH]>;

/// The type of a value before it was encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Str,
    Int,
    Float,
    Bool,
    Bytes,
    Time,
    Comment,
}

/// Why a value cannot be decrypted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error("is not of the form ENC[AES256_GCM,data:...,iv:...,tag:...,type:...]")]
    Form,
    #[error("has `{0}` that is not canonical base64")]
    Encoding(&'static str),
    #[error("has `{part}` of {found} bytes instead of {expected}")]
    Length { part: &'static str, found: usize, expected: usize },
    #[error("has the unknown type `{0}`")]
    UnknownType(String),
    #[error("was changed, moved to another key, or encrypted with another data key")]
    Forged,
    #[error("is not a {0} in its canonical form")]
    NotCanonical(&'static str),
    #[error("is not UTF-8 text")]
    NotText,
}

/// The parts of an encrypted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    data: Vec<u8>,
    iv: [u8; KEY_LENGTH],
    pub(super) tag: [u8; 16],
    pub(crate) kind: Kind,
}

/// Encrypts and decrypts the values of one document.
pub(crate) struct Cipher(Box<Aead>);

impl Kind {
    const ALL: [(&'static str, Self); 7] = [
        ("str", Self::Str),
        ("int", Self::Int),
        ("float", Self::Float),
        ("bool", Self::Bool),
        ("bytes", Self::Bytes),
        ("time", Self::Time),
        ("comment", Self::Comment),
    ];

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("str", |(name, _)| name)
    }

    /// Returns whether a text is one that SOPS writes for this type. The format does not authenticate the type.
    fn is_canonical(self, text: &str) -> bool {
        match self {
            Self::Str | Self::Bytes | Self::Comment => true,
            Self::Int => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
            Self::Float => text.parse::<f64>().is_ok_and(|number| float(number) == text),
            Self::Bool => matches!(text, "True" | "False"),
            Self::Time => text.parse::<Timestamp>().is_ok(),
        }
    }
}

/// Formats a number as the format demands: the fewest digits that identify it, without an exponent.
pub(super) fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    number.to_string()
}

impl Sealed {
    pub(crate) fn parse(text: &str) -> Result<Self, ValueError> {
        let inner = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(']'));
        let mut parts = inner.ok_or(ValueError::Form)?.split(',');
        let mut part = |name: &str| {
            let part = parts.next().and_then(|part| part.strip_prefix(name)?.strip_prefix(':'));
            part.ok_or(ValueError::Form)
        };
        let (data, iv, tag, kind) = (part("data")?, part("iv")?, part("tag")?, part("type")?);
        if parts.next().is_some() {
            return Err(ValueError::Form);
        }
        let known = Kind::ALL.iter().find(|(name, _)| *name == kind);
        let (_, kind) = known.ok_or_else(|| ValueError::UnknownType(kind.to_owned()))?;
        Ok(Self { data: decoded("data", data)?, iv: exact("iv", iv)?, tag: exact("tag", tag)?, kind: *kind })
    }
}

impl std::fmt::Display for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let encoded = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        let (data, iv, tag) = (encoded(&self.data), encoded(&self.iv), encoded(&self.tag));
        write!(f, "{PREFIX}data:{data},iv:{iv},tag:{tag},type:{}]", self.kind.name())
    }
}

/// Decodes base64, and refuses spellings that another encoder would not write: they would let a document change unnoticed.
fn decoded(part: &'static str, text: &str) -> Result<Vec<u8>, ValueError> {
    BASE64_STANDARD.decode(text).map_err(|_| ValueError::Encoding(part))
}

fn exact<const N: usize>(part: &'static str, text: &str) -> Result<[u8; N], ValueError> {
    let bytes = decoded(part, text)?;
    let found = bytes.len();
    bytes.try_into().map_err(|_| ValueError::Length { part, found, expected: N })
}

impl Cipher {
    pub(crate) fn new(key: &DataKey) -> Self {
        Self(Box::new(Aead::new((&**key).into())))
    }

    /// Returns the text of a value. `path` is authenticated with it.
    pub(crate) fn open(&self, sealed: &Sealed, path: &str) -> Result<Zeroizing<String>, ValueError> {
        let mut bytes = Zeroizing::new(sealed.data.clone());
        let (nonce, tag) = (Nonce::<U32>::from(sealed.iv), Tag::from(sealed.tag));
        let buffer = InOutBuf::from(bytes.as_mut_slice());
        self.0
            .decrypt_inout_detached(&nonce, path.as_bytes(), buffer, &tag)
            .map_err(|_| ValueError::Forged)?;
        let text = str::from_utf8(&bytes).map_err(|_| ValueError::NotText)?;
        if !sealed.kind.is_canonical(text) {
            return Err(ValueError::NotCanonical(sealed.kind.name()));
        }
        Ok(Zeroizing::new(text.to_owned()))
    }

    /// Encrypts the text of a value with a new nonce.
    pub(crate) fn seal(&self, text: &str, kind: Kind, path: &str) -> Result<Sealed, RandomError> {
        let mut data = text.as_bytes().to_vec();
        let iv = random()?;
        let buffer = InOutBuf::from(data.as_mut_slice());
        let tag = self
            .0
            .encrypt_inout_detached(&Nonce::<U32>::from(iv), path.as_bytes(), buffer)
            .map_err(|_| RandomError)?;
        Ok(Sealed { data, iv, tag: tag.into(), kind })
    }
}

/// The system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system does not provide random numbers")]
pub(crate) struct RandomError;

pub(crate) fn random<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(bytes)
}

/// Returns a new data key.
pub(crate) fn new_data_key() -> Result<DataKey, RandomError> {
    random().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_opens_only_at_its_path() {
        let cipher = Cipher::new(&new_data_key().unwrap());
        let sealed = cipher.seal("a secret", Kind::Str, "a:b:").unwrap();
        let written = sealed.to_string();
        let read = Sealed::parse(&written).unwrap();
        assert_eq!(read, sealed);
        assert_eq!(cipher.open(&read, "a:b:").unwrap().as_str(), "a secret");
        assert_eq!(cipher.open(&read, "a:c:").unwrap_err(), ValueError::Forged);
        let other = Cipher::new(&new_data_key().unwrap());
        assert_eq!(other.open(&read, "a:b:").unwrap_err(), ValueError::Forged);
    }

    #[test]
    fn value_must_be_canonical_for_its_type() {
        let cipher = Cipher::new(&new_data_key().unwrap());
        for (kind, good, bad) in [
            (Kind::Int, &["0", "-7", "5432"][..], &["+1", "01", "1.0", "", "99999999999999999999"][..]),
            (Kind::Float, &["1.5", "1", "-0", "NaN", "+Inf"], &["1.50", "1e3", ".5", "", "inf"]),
            (Kind::Bool, &["True", "False"], &["true", "1", ""]),
            (Kind::Time, &["2026-01-02T03:04:05Z"], &["2026-01-02", ""]),
        ] {
            for text in good {
                let sealed = cipher.seal(text, kind, "").unwrap();
                assert_eq!(cipher.open(&sealed, "").unwrap().as_str(), *text, "{kind:?}");
            }
            for text in bad {
                let sealed = cipher.seal(text, kind, "").unwrap();
                assert_eq!(
                    cipher.open(&sealed, "").unwrap_err(),
                    ValueError::NotCanonical(kind.name()),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn other_spellings_of_a_value_are_refused() {
        let cipher = Cipher::new(&new_data_key().unwrap());
        let good = cipher.seal("four", Kind::Str, "").unwrap().to_string();
        for (from, to) in [
            ("ENC[AES256_GCM,", "ENC[AES256_GCM, "),
            (",iv:", ",IV:"),
            (",tag:", ",tag: "),
            ("type:str]", "type:text]"),
            ("type:str]", "type:str] "),
            ("type:str]", "type:str,more:x]"),
            ("=,iv", ",iv"),
        ] {
            assert!(good.contains(from), "{good} {from}");
            assert!(Sealed::parse(&good.replacen(from, to, 1)).is_err(), "{to}");
        }
        let short = "ENC[AES256_GCM,data:AA==,iv:AAAA,tag:AAAA,type:str]";
        let error = ValueError::Length { part: "iv", found: 3, expected: 32 };
        assert_eq!(Sealed::parse(short).unwrap_err(), error);
    }
}
