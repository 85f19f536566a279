//! The format of plan files: a header line, a zstd frame of JSON lines, and a trailer line.
//!
//! The trailer has the SHA-256 of everything before it, and a MAC of that with the key of the state directory. The MAC binds
//! the plan to the machine: a plan that was altered on its way is refused before anything in it is decompressed.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ruzstd::{
    decoding::StreamingDecoder,
    encoding::{CompressionLevel, compress_to_vec},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    draft::Drafted,
    record::{Header, ManifestRecord, PROTOCOL, Step},
};
use crate::{host::files::hex, state::StateIdentity};

/// By these bytes a plan file is recognized.
pub(crate) const FIRST_BYTES: &[u8] = br#"{"protocol":"io.choria.ccm.v1.plan","#;

/// Largest size of the decompressed part.
const LARGEST: u64 = 4 << 30;
/// Separates the MAC from all other uses of the key.
const MAC_LABEL: &str = "ccm plan: mac 1\n";

/// A plan that was read from a file.
pub(crate) struct PlanFile {
    pub(crate) header: Header,
    pub(crate) manifests: Vec<ManifestRecord>,
    /// Contents by digest.
    pub(crate) contents: BTreeMap<String, Vec<u8>>,
    /// SHA-256 of the file before the trailer. It names the plan in the history.
    pub(crate) digest: String,
}

/// A file that is not an undamaged plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("the file is damaged: {0}")]
    Damaged(String),
}

/// The last line of a plan.
#[derive(Serialize, Deserialize)]
struct Trailer {
    sha256: String,
    mac: String,
}

/// A line of the compressed part.
#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum Line {
    Content {
        digest: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The content in base64 if it is not UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// A manifest without its steps.
    Manifest(ManifestRecord),
    /// A step of the last manifest.
    Step(Box<Step>),
}

impl Drafted {
    /// Returns the plan file.
    pub(crate) fn encode(mut self, identity: &StateIdentity) -> Result<Vec<u8>, serde_json::Error> {
        let mut lines = Vec::new();
        let mut add = |line: &Line| {
            serde_json::to_writer(&mut lines, line)?;
            lines.push(b'\n');
            Ok::<(), serde_json::Error>(())
        };
        for (digest, content) in std::mem::take(&mut self.contents) {
            let (text, data) = match String::from_utf8(content) {
                Ok(text) => (Some(text), None),
                Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
            };
            add(&Line::Content { digest, text, data })?;
        }
        for mut manifest in self.manifests {
            let steps = std::mem::take(&mut manifest.steps);
            add(&Line::Manifest(manifest))?;
            for step in steps {
                add(&Line::Step(Box::new(step)))?;
            }
        }
        let frame = compress_to_vec(lines.as_slice(), CompressionLevel::Fastest);
        PROTOCOL.clone_into(&mut self.header.protocol);
        self.header.length = frame.len() as u64;
        let mut file = serde_json::to_vec(&self.header)?;
        file.push(b'\n');
        file.extend(frame);
        let sha256 = hex(&Sha256::digest(&file));
        let mac = mac(identity, &sha256);
        file.extend(serde_json::to_vec(&Trailer { sha256, mac })?);
        file.push(b'\n');
        Ok(file)
    }
}

/// The parts of a file whose digest is right.
pub(crate) struct Envelope<'f> {
    pub(crate) header: Header,
    frame: &'f [u8],
    digest: String,
    mac: String,
}

impl<'f> Envelope<'f> {
    /// Takes a file apart. Nothing in it is decompressed.
    pub(crate) fn open(file: &'f [u8]) -> Result<Self, PlanError> {
        let damaged = |reason: &str| PlanError::Damaged(reason.to_owned());
        let end = file.iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it ends early"))?;
        let header: Header =
            serde_json::from_slice(&file[..end]).map_err(|_| damaged("the header is not valid"))?;
        let rest = &file[end + 1..];
        let length = usize::try_from(header.length).ok().filter(|length| *length <= rest.len());
        let length = length.ok_or_else(|| damaged("it ends early"))?;
        let (frame, trailer) = rest.split_at(length);
        let trailer: Trailer =
            serde_json::from_slice(trailer).map_err(|_| damaged("the last line is not valid"))?;
        let digest = hex(&Sha256::digest(&file[..=end + length]));
        if digest != trailer.sha256 || !trailer_is_canonical(&rest[length..], &trailer) {
            return Err(damaged("its digest does not match"));
        }
        Ok(Self { header, frame, digest, mac: trailer.mac })
    }

    /// Returns whether the MAC was computed with this key.
    pub(crate) fn is_authentic(&self, identity: &StateIdentity) -> bool {
        let own = format!("{MAC_LABEL}{}", self.digest);
        identity.verify_keyed_hash(own.as_bytes(), &self.mac)
    }

    /// Decompresses the steps.
    pub(crate) fn decode(self) -> Result<PlanFile, PlanError> {
        let Self { header, frame, digest, .. } = self;
        let damaged = |reason: String| PlanError::Damaged(reason);
        let decoder = StreamingDecoder::new(frame).map_err(|error| damaged(error.to_string()))?;
        let mut plan = PlanFile { header, manifests: Vec::new(), contents: BTreeMap::new(), digest };
        for line in BufReader::new(decoder.take(LARGEST)).split(b'\n') {
            let line = line.map_err(|error| damaged(error.to_string()))?;
            let line = serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
            plan.add(line).ok_or_else(|| damaged("its parts do not belong together".to_owned()))?;
        }
        Ok(plan)
    }
}

/// Nothing can be hidden in the last line, which the digest does not cover.
fn trailer_is_canonical(bytes: &[u8], trailer: &Trailer) -> bool {
    let expected = serde_json::to_vec(trailer).unwrap_or_default();
    bytes.strip_suffix(b"\n") == Some(expected.as_slice())
}

impl PlanFile {
    fn add(&mut self, line: Line) -> Option<()> {
        match line {
            Line::Content { digest, text, data } => {
                let content = match (text, data) {
                    (Some(text), _) => text.into_bytes(),
                    (None, data) => STANDARD.decode(data?).ok()?,
                };
                self.contents.insert(digest, content);
            }
            Line::Manifest(manifest) => self.manifests.push(manifest),
            Line::Step(mut step) => {
                step.complete();
                self.manifests.last_mut()?.steps.push(*step);
            }
        }
        Some(())
    }

    /// Returns all steps in order.
    pub(crate) fn steps(&self) -> Vec<&Step> {
        self.manifests.iter().flat_map(ManifestRecord::flattened).collect()
    }
}

fn mac(identity: &StateIdentity, sha256: &str) -> String {
    hex(&identity.keyed_hash(format!("{MAC_LABEL}{sha256}").as_bytes()))
}
