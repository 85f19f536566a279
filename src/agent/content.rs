//! What a source sent, ready to be loaded.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use super::source::{Address, LocalSource, Purpose};
use crate::{
    bundle,
    host::{
        input::{self, UnreadableInput},
        unpack::ArchiveFormat,
    },
    manifest::{Bundle, DATA_FILE, IN_A_FOLDER, Location, Unreadable},
    run::Machine,
};

/// What a source sent: a document, or a bundle that was unpacked where nobody else can look.
pub(crate) struct Content {
    kind: Kind,
}

enum Kind {
    /// A document from far away.
    Document {
        name: String,
        file: PathBuf,
    },
    /// A copy of a document of this machine, whose relative paths start where it was found.
    Copy {
        name: String,
        file: PathBuf,
        folder: PathBuf,
    },
    Bundle {
        location: Location,
        _unpacked: Box<Bundle>,
    },
}

impl Content {
    /// Makes content of a file that was fetched from an address.
    pub(crate) fn open(
        address: &Address,
        purpose: Purpose,
        file: &Path,
        machine: &Machine,
    ) -> Result<Self, Unreadable> {
        if let Some(kind) = archive_format(address, file)? {
            return Self::unpack(address, purpose, kind, file, machine);
        }
        let name = address.to_string();
        let file = file.to_owned();
        let kind = match address {
            Address::Path(path) => {
                let found = LocalSource(path.clone()).file();
                let folder = found.parent().unwrap_or(Path::new("/")).to_owned();
                Kind::Copy { name: found.display().to_string(), file, folder }
            }
            _ => Kind::Document { name, file },
        };
        Ok(Self { kind })
    }

    fn unpack(
        address: &Address,
        purpose: Purpose,
        kind: ArchiveFormat,
        file: &Path,
        machine: &Machine,
    ) -> Result<Self, Unreadable> {
        let name = address.to_string();
        let unpacked = Bundle::unpack(&opened(file)?, kind, &name, &machine.host, &machine.state)?;
        if purpose == Purpose::Data {
            let Some(file) = unpacked.data() else { return Err(Unreadable::NoData { name }) };
            let name = format!("{name}/{DATA_FILE}");
            let location = Location::Fetched { name, file, stands_alone: true };
            return Ok(Self { kind: Kind::Bundle { location, _unpacked: Box::new(unpacked) } });
        }
        let folder = unpacked.folder();
        let folder =
            folder.map_err(|error| Unreadable::Bundle { name: name.clone(), reason: error.into() })?;
        let Some(folder) = folder else { return Err(Unreadable::NoManifest { name }) };
        let location = match address {
            Address::Path(_) => Location::Path(folder),
            _ => Location::Fetched {
                name: format!("{name}/{IN_A_FOLDER}"),
                file: folder.join(IN_A_FOLDER),
                stands_alone: false,
            },
        };
        Ok(Self { kind: Kind::Bundle { location, _unpacked: Box::new(unpacked) } })
    }

    /// Returns where it can be loaded from.
    pub(crate) fn location(&self, limit: u64) -> Result<Location, Unreadable> {
        Ok(match &self.kind {
            Kind::Document { name, file } => {
                Location::Fetched { name: name.clone(), file: file.clone(), stands_alone: true }
            }
            Kind::Bundle { location, .. } => location.clone(),
            Kind::Copy { name, file, folder } => {
                let bytes = input::read_file(file, limit);
                let bytes = bytes.map_err(|error| UnreadableInput { path: file.clone(), error })?;
                Location::Open { name: name.clone(), folder: folder.clone(), bytes }
            }
        })
    }
}

fn opened(file: &Path) -> Result<File, Unreadable> {
    Ok(input::open_file(file).map_err(|error| UnreadableInput { path: file.to_owned(), error })?)
}

/// Returns what kind of bundle a file is: its name tells, or the first bytes of a name that does not.
pub(crate) fn archive_format(address: &Address, file: &Path) -> Result<Option<ArchiveFormat>, Unreadable> {
    Ok(bundle::format_of(&address.file_name(), &opened(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_files_came_with_a_document_from_far_away() {
        let kind = Kind::Document { name: "kv://DATA/common".to_owned(), file: PathBuf::from("/nowhere") };
        let location = Content { kind }.location(0).unwrap();
        assert!(matches!(location, Location::Fetched { stands_alone: true, .. }), "{location:?}");
    }
}
