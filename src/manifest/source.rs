//! Where a manifest comes from.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::bundle::Bundle;
use crate::{
    document::{Diagnostic, Source},
    host::{
        Host,
        files::FileError,
        http::{HttpError, Request},
        input::{self, InputError, UnreadableInput},
        look,
        unpack::{ArchiveFormat, UnpackError},
    },
    nats::{self, Nats, NatsError, ObjectError, Store},
    state::{LocalState, StateError},
    template::Provenance,
    vocabulary::{Url, has_scheme},
};

/// The file that a folder or bundle has to hold to be a manifest.
pub(crate) const IN_A_FOLDER: &str = "manifest.yaml";

/// The file of a bundle with data.
pub(crate) const DATA_FILE: &str = "data.yaml";

/// Where a manifest or data comes from.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// A file, a folder that holds `manifest.yaml`, or a bundle.
    Path(PathBuf),
    /// A file or bundle on a web server.
    Url(Url),
    /// An object, which may be a bundle, or a key in a NATS bucket.
    Nats(nats::Address),
    /// Standard input.
    Stdin,
    /// A file that was read already: its name and folder, and what it holds.
    Open { name: String, folder: PathBuf, bytes: Vec<u8> },
    /// A file that was fetched before, what to call it, and whether no other files came with it.
    Fetched { name: String, file: PathBuf, stands_alone: bool },
}

/// A manifest or data that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    File(#[from] UnreadableInput),
    #[error("cannot read standard input: {0}")]
    Stdin(InputError),
    #[error("{0}")]
    Http(HttpError),
    #[error("cannot read {address}: {error}")]
    Object { address: nats::Address, error: ObjectError },
    #[error("cannot read {address}: {error}")]
    Key { address: nats::Address, error: NatsError },
    #[error("cannot read {address}: it is not there, or was deleted")]
    NoKey { address: nats::Address },
    #[error("{address} has {size} bytes, more than the {limit} that are allowed")]
    LargeKey { address: nats::Address, size: usize, limit: u64 },
    #[error("bundle {name}: {reason}")]
    Bundle { name: String, reason: BrokenBundle },
    #[error("bundle {name} holds no {IN_A_FOLDER} at its root or in its only folder")]
    NoManifest { name: String },
    #[error("bundle {name} holds no {DATA_FILE} at its root")]
    NoData { name: String },
    #[error("{}", .0.message)]
    NotText(Diagnostic),
}

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenBundle {
    #[error("no state directory to unpack it in: set HOME, XDG_STATE_HOME or --state-dir")]
    Nowhere,
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Archive(#[from] UnpackError),
    #[error(transparent)]
    Folder(#[from] io::Error),
}

impl Unreadable {
    /// Returns advice for the user.
    pub(crate) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Http(error @ HttpError::Tls { .. }) => error.hint(),
            _ => None,
        }
    }
}

/// What was read.
pub(super) struct Origin {
    pub(super) source: Source,
    /// Where relative paths start.
    pub(super) folder: PathBuf,
    pub(super) provenance: Provenance,
    /// Keeps the files of a bundle for as long as they are needed.
    pub(super) bundle: Option<Bundle>,
    /// Whether no files came with it, as from an address that is not a bundle's.
    pub(super) stands_alone: bool,
}

impl Location {
    /// Reads an argument: `-` is standard input, what begins with a scheme is an address, everything else is a path.
    /// An address with another scheme than http, https, obj or kv is an error, in which it is not quoted.
    pub(crate) fn from_argument(argument: &str) -> Result<Self, String> {
        if argument == "-" {
            return Ok(Self::Stdin);
        }
        if let Some(address) = nats::Address::from_argument(argument) {
            return address.map(Self::Nats).map_err(|error| error.to_string());
        }
        if has_scheme(argument) {
            return Url::parse(argument).map(Self::Url).map_err(|error| error.to_string());
        }
        Ok(Self::Path(argument.into()))
    }

    /// Reads it; what is larger than `limit` bytes is refused.
    pub(super) fn read(
        &self,
        host: &Host,
        state: &LocalState,
        nats: &Nats,
        limit: u64,
    ) -> Result<Origin, Unreadable> {
        match self {
            Self::Stdin => {
                let bytes = input::read_stdin(limit, &host.interrupt).map_err(Unreadable::Stdin)?;
                origin("<stdin>".to_owned(), bytes, Path::new("."))
            }
            Self::Open { name, folder, bytes } => origin(name.clone(), bytes.clone(), folder),
            Self::Fetched { name, file: path, stands_alone } => {
                let origin = file(path, name.clone(), input::read_file(path, limit))?;
                Ok(Origin { provenance: Provenance::Remote, stands_alone: *stands_alone, ..origin })
            }
            Self::Path(path) => match ArchiveFormat::of(&path.to_string_lossy())
                .filter(|_| look::is_file(path))
            {
                Some(kind) => {
                    bundled(Bundle::open(path, kind, host, state)?, &path.display().to_string(), limit)
                }
                None => {
                    let path = if look::is_directory(path) { path.join(IN_A_FOLDER) } else { path.clone() };
                    let read = input::read_argument(&path, limit, &host.interrupt);
                    file(&path, path.display().to_string(), read)
                }
            },
            Self::Url(url) => {
                let origin = match ArchiveFormat::of(&url.file_name()) {
                    Some(kind) => bundled(Bundle::download(url, kind, host, state)?, &url.to_string(), limit),
                    None => {
                        let bytes =
                            host.http.fetch_small(&Request::of(url), limit).map_err(Unreadable::Http)?;
                        alone(url.to_string(), bytes)
                    }
                };
                origin.map(|origin| Origin { provenance: Provenance::Remote, ..origin })
            }
            Self::Nats(address) => {
                let origin = match (address.store, ArchiveFormat::of(&address.key)) {
                    (Store::Objects, Some(kind)) => {
                        bundled(Bundle::fetch(address, kind, nats, host, state)?, &address.to_string(), limit)
                    }
                    (Store::Objects, None) => alone(address.to_string(), object(address, nats, limit)?),
                    (Store::KeyValue, _) => alone(address.to_string(), value(address, nats, limit)?),
                };
                origin.map(|origin| Origin { provenance: Provenance::Remote, ..origin })
            }
        }
    }
}

/// Returns what an object holds.
fn object(address: &nats::Address, nats: &Nats, limit: u64) -> Result<Vec<u8>, Unreadable> {
    let failed = |error: ObjectError| Unreadable::Object { address: address.clone(), error };
    let connection = nats.connection().map_err(|error| failed(error.into()))?;
    let mut bytes = Vec::new();
    connection.fetch(address, limit, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Returns what a key holds.
fn value(address: &nats::Address, nats: &Nats, limit: u64) -> Result<Vec<u8>, Unreadable> {
    let value = nats.connection().and_then(|connection| connection.value(address));
    let value = value.map_err(|error| Unreadable::Key { address: address.clone(), error })?;
    let Some(entry) = value else { return Err(Unreadable::NoKey { address: address.clone() }) };
    let size = entry.value.len();
    if size as u64 > limit {
        return Err(Unreadable::LargeKey { address: address.clone(), size, limit });
    }
    Ok(entry.value)
}

fn bundled(bundle: Bundle, name: &str, limit: u64) -> Result<Origin, Unreadable> {
    let folder = bundle
        .folder()
        .map_err(|error| Unreadable::Bundle { name: name.to_owned(), reason: error.into() })?;
    let Some(folder) = folder else { return Err(Unreadable::NoManifest { name: name.to_owned() }) };
    let path = folder.join(IN_A_FOLDER);
    let origin = file(&path, format!("{name}/{IN_A_FOLDER}"), input::read_file(&path, limit))?;
    Ok(Origin { bundle: Some(bundle), ..origin })
}

fn file(path: &Path, name: String, read: Result<Vec<u8>, InputError>) -> Result<Origin, Unreadable> {
    let bytes = read.map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    origin(name, bytes, folder.unwrap_or(Path::new(".")))
}

/// A document from an address, with which no files came.
fn alone(name: String, bytes: Vec<u8>) -> Result<Origin, Unreadable> {
    origin(name, bytes, Path::new(".")).map(|origin| Origin { stands_alone: true, ..origin })
}

fn origin(name: String, bytes: Vec<u8>, folder: &Path) -> Result<Origin, Unreadable> {
    let source = Source::read(name, bytes).map_err(Unreadable::NotText)?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    Ok(Origin { source, folder, provenance: Provenance::Local, bundle: None, stands_alone: false })
}
