//! Messages between the controller and `ccm remote` on a target.
//!
//! ```text
//! target      Hello                    version of the protocol and of ccm
//! controller  Begin, bytes             a run: its request and its files, then it starts
//! target      Sealed                   if the request asks for it: encrypted parts that no identity opens
//! controller  Opened, bytes            the parts that an identity of the controller opens
//!             Attach                   a run that is in progress: continue after an event
//! target      Started | Unknown | Refused
//!             Event*, End              numbered from 1, without gaps; or Died
//! controller  Stop                     the run stops at the next safe point
//!             Done                     the end has arrived: the target deletes the events
//! ```

use serde::{Deserialize, Serialize};

/// Version of the protocol.
pub(crate) const PROTOCOL: u32 = 1;

/// A message of the controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(super) enum ToTarget {
    /// Starts a run. `request` bytes of a [`Request`] and `archive` bytes of a tar archive follow.
    Begin {
        run: RunId,
        request: usize,
        archive: usize,
        sha256: String,
    },
    /// Continues with the events after `after` of a run.
    Attach {
        run: RunId,
        after: u64,
    },
    /// `length` bytes follow with the parts in plain text.
    Opened {
        length: usize,
    },
    Stop,
    Done,
}

/// A message of a target.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(super) enum ToController {
    Hello {
        protocol: u32,
        version: String,
    },
    /// Digests of the encrypted parts that no identity of the target opens.
    Sealed {
        digests: Vec<String>,
    },
    Started,
    /// The target has no run of this id.
    Unknown,
    /// Nothing was attempted.
    Refused {
        reason: String,
    },
    Event(Event),
    End(End),
    /// The process of the run is gone without an end.
    Died,
}

/// A line that the run printed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Event {
    pub(super) n: u64,
    pub(super) stream: Stream,
    pub(super) text: String,
    /// The line continues in the next event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) more: bool,
}

/// The end of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) n: u64,
    /// Exit status; `None` if a signal terminated the run.
    pub(super) exit: Option<u8>,
    /// Number of events that could not be stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stream {
    Out,
    Err,
}

/// Id of a run on all of its connections: 32 hexadecimal digits, chosen by the controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct RunId(String);

impl RunId {
    pub(super) fn new(random: &str) -> Self {
        Self(random.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id { Ok(Self(text)) } else { Err("not the id of a run") }
    }
}

/// Everything that a run on a target needs besides the files that all hosts get.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Request {
    /// Command line without the name of the program and without options that concern the controller.
    pub(crate) arguments: Vec<String>,
    /// Command line as the history records it.
    pub(crate) recorded: Vec<String>,
    /// Manifests in the order of the command line.
    pub(crate) manifests: Vec<Document>,
    /// Data that overrides data of the manifests, later documents over earlier ones.
    pub(crate) data: Vec<Document>,
    /// Facts that override facts of the target, later ones over earlier ones.
    pub(crate) facts: Vec<serde_json::Value>,
    /// Files that only this host gets: paths and texts.
    pub(crate) files: Vec<(String, String)>,
    /// Private key that opens encrypted data among these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<String>,
    /// Whether files have encrypted data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sealed: bool,
    /// Plan to apply, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<String>,
}

/// A document that the controller read, as a file among those that were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Document {
    /// Name for messages.
    pub(crate) name: String,
    /// Path of the file. Relative paths in the document start from its directory.
    pub(crate) path: String,
    pub(crate) origin: Origin,
}

/// Where the controller read a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    /// In a file.
    Local,
    /// On a server, in a bundle.
    Bundle,
    /// On a server, without other files.
    Alone,
}
