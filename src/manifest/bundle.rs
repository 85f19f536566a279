//! Manifests that come packed together with their files.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::process::{getegid, geteuid};

use super::source::{BrokenBundle, DATA_FILE, IN_A_FOLDER, Unreadable};
use crate::{
    host::{
        Host,
        files::{Attributes, CopyInterrupted, FileError, Staging, TempFile},
        http::Request,
        input::{self, UnreadableInput},
        look,
        unpack::{self, ArchiveFormat, Limits, Rules},
    },
    nats::{Address, Nats, ObjectError},
    state::LocalState,
    vocabulary::Url,
};

/// Larger bundles are not downloaded.
const LARGEST_DOWNLOAD: u64 = 1 << 30;

/// A bundle that is unpacked where nobody else can look; gone when dropped.
pub(crate) struct Bundle(Staging);

impl Bundle {
    /// Unpacks a bundle that lies in a file.
    pub(super) fn open(
        path: &Path,
        kind: ArchiveFormat,
        host: &Host,
        state: &LocalState,
    ) -> Result<Self, Unreadable> {
        let archive =
            input::open_file(path).map_err(|error| UnreadableInput { path: path.to_owned(), error })?;
        Self::unpack(&archive, kind, &path.display().to_string(), host, state)
    }

    /// Downloads a bundle and unpacks it.
    pub(super) fn download(
        url: &Url,
        kind: ArchiveFormat,
        host: &Host,
        state: &LocalState,
    ) -> Result<Self, Unreadable> {
        let draft = draft(state, host, &url.to_string())?;
        let broken = |error: FileError| Unreadable::Bundle { name: url.to_string(), reason: error.into() };
        let request = Request { limit: Some(LARGEST_DOWNLOAD), ..Request::of(url) };
        let mut body = host.http.get(&request).map_err(Unreadable::Http)?;
        let mut buffer = vec![0; 128 * 1024];
        loop {
            let count = body.next(&mut buffer).map_err(Unreadable::Http)?;
            if count == 0 {
                break;
            }
            draft.file().write_all(&buffer[..count]).map_err(|error| broken(draft.explain(&error)))?;
        }
        Self::unpack(draft.file(), kind, &url.to_string(), host, state)
    }

    /// Fetches a bundle from an object store and unpacks it.
    pub(super) fn fetch(
        address: &Address,
        kind: ArchiveFormat,
        nats: &Nats,
        host: &Host,
        state: &LocalState,
    ) -> Result<Self, Unreadable> {
        let draft = draft(state, host, &address.to_string())?;
        let failed = |error: ObjectError| Unreadable::Object { address: address.clone(), error };
        let connection = nats.connection().map_err(|error| failed(error.into()))?;
        connection.fetch(address, LARGEST_DOWNLOAD, &mut draft.file()).map_err(failed)?;
        Self::unpack(draft.file(), kind, &address.to_string(), host, state)
    }

    /// Unpacks a bundle that is open.
    pub(crate) fn unpack(
        archive: &File,
        kind: ArchiveFormat,
        name: &str,
        host: &Host,
        state: &LocalState,
    ) -> Result<Self, Unreadable> {
        let refused = |reason: BrokenBundle| Unreadable::Bundle { name: name.to_owned(), reason };
        let folder = folder(state, name.to_owned())?;
        state.write_journal.note(&folder, &host.interrupt);
        let mut staging = Staging::new(&folder.join("unpacked"), Attributes::own(0o700))
            .map_err(|error| refused(error.into()))?;
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let rules = Rules { uid, gid, strip_components: 0, limits: Limits::default() };
        let mut tick = || host.interrupt.requested().map_or(Ok(()), |_| Err(CopyInterrupted));
        unpack::unpack_file(archive, kind, &mut staging, &rules, &mut tick)
            .map_err(|error| refused(error.into()))?;
        Ok(Self(staging))
    }

    /// Returns the directory that it was unpacked to, which is removed when dropped.
    pub(super) fn into_staging(self) -> Staging {
        self.0
    }

    /// Returns the directory that it was extracted to.
    pub(crate) fn root(&self) -> PathBuf {
        self.0.path()
    }

    /// Returns the folder in it that holds the manifest: its root, or the only folder there.
    #[expect(clippy::disallowed_methods, reason = "it was unpacked into a private folder")]
    pub(crate) fn folder(&self) -> io::Result<Option<PathBuf>> {
        let root = self.0.path();
        if look::is_file(&root.join(IN_A_FOLDER)) {
            return Ok(Some(root));
        }
        let mut entries = fs::read_dir(&root)?.collect::<io::Result<Vec<_>>>()?;
        let only = entries.pop().filter(|_| entries.is_empty()).map(|entry| entry.path());
        Ok(only.filter(|folder| look::is_file(&folder.join(IN_A_FOLDER))))
    }

    /// Returns the data in it, if it is a bundle with data.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        Some(self.0.path().join(DATA_FILE)).filter(|file| look::is_file(file))
    }
}

/// Begins the file that a bundle is fetched into. It never gets its name: it is read through its descriptor and gone with
/// it.
fn draft(state: &LocalState, host: &Host, name: &str) -> Result<TempFile, Unreadable> {
    let folder = folder(state, name.to_owned())?;
    state.write_journal.note(&folder, &host.interrupt);
    let begun = TempFile::new(&folder.join("download"), geteuid().as_raw());
    begun.map_err(|error| Unreadable::Bundle { name: name.to_owned(), reason: error.into() })
}

/// Returns where bundles are unpacked: a folder that nobody else can use.
fn folder(state: &LocalState, name: String) -> Result<PathBuf, Unreadable> {
    if state.directory.is_none() {
        return Err(Unreadable::Bundle { name, reason: BrokenBundle::Nowhere });
    }
    let made = state.directory.make_folder("bundles");
    made.map(|folder| folder.path().to_owned())
        .map_err(|error| Unreadable::Bundle { name, reason: error.into() })
}
