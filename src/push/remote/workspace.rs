//! The input of a run on a target, held in memory.

use std::{
    io::{self, Read, Write},
    path::{Component, Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use rustix::{
    fs::statfs,
    process::{getegid, geteuid},
};
use zeroize::Zeroizing;

use super::super::{
    opened::{Opened, decode},
    protocol::{Document, Origin, Request},
};
use crate::{
    host::{
        files::{Attributes, CopyInterrupted, PrivateFolder, Staging},
        input,
        unpack::{Compression, Limits, Rules, unpack_tar},
    },
    manifest::Location,
};

/// Magic numbers of tmpfs and ramfs, from `linux/magic.h`.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Name of the file with the plan. Other files are in directories with numbers as names.
const PLAN: &str = "plan";

/// Largest request.
const LARGEST: u64 = 1 << 30;

/// The files of a run, in a file system in memory that other users cannot read. Dropping it removes them.
pub(crate) struct Workspace {
    files: Staging,
    /// Path of the plan to apply.
    plan: Option<PathBuf>,
}

/// The input of a run, as `serve` stores it: lengths, the request, a compressed archive, and opened data.
pub(crate) struct Input<R> {
    pub(crate) request: Request,
    archive: Vec<u8>,
    rest: R,
}

impl<R: Read> Input<R> {
    pub(crate) fn read(mut input: R) -> io::Result<Self> {
        let mut length = || {
            let mut length = [0; 8];
            input.read_exact(&mut length).map(|()| u64::from_be_bytes(length).min(LARGEST))
        };
        let lengths = [length()?, length()?];
        let [request, archive] = lengths.map(|length| {
            let mut bytes = Vec::new();
            input.by_ref().take(length).read_to_end(&mut bytes).map(|_| bytes)
        });
        let request = serde_json::from_slice(&request?).map_err(io::Error::other)?;
        Ok(Self { request, archive: archive?, rest: input })
    }

    /// Passes the files of the request and the archive on.
    pub(super) fn files(&mut self, file: &mut dyn FnMut(&str, &[u8])) -> io::Result<()> {
        for (name, text) in &self.request.files {
            file(name, text.as_bytes());
        }
        if self.archive.is_empty() {
            return Ok(());
        }
        let mut archive = tar::Archive::new(GzDecoder::new(self.archive.as_slice()));
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            file(&name, &bytes);
        }
        Ok(())
    }

    /// Returns encrypted data that the controller opened.
    pub(crate) fn opened(&mut self) -> io::Result<Opened> {
        let mut text = Zeroizing::new(Vec::new());
        self.rest.by_ref().take(LARGEST).read_to_end(&mut text)?;
        Ok(decode(&text))
    }
}

impl Workspace {
    /// Stores the files of a request and of its archive. `runtime` is `XDG_RUNTIME_DIR`.
    pub(crate) fn new<R>(input: &Input<R>, runtime: Option<PathBuf>) -> Result<Self, String> {
        let Input { request, archive, .. } = input;
        let folder = folder(runtime)?;
        let failed = |error: &dyn std::fmt::Display| format!("cannot store the input of the run: {error}");
        let _ = folder.sweep(&mut || Ok(()));
        let mut files = Staging::new(&folder.path().join("input"), Attributes::own(0o700))
            .map_err(|error| failed(&error))?;
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let rules = Rules { uid, gid, strip_components: 0, limits: Limits::default() };
        let mut tick = || Ok::<(), CopyInterrupted>(());
        if !archive.is_empty() {
            unpack_tar(archive.as_slice(), Compression::Gzip, &mut files, &rules, &mut tick)
                .map_err(|error| failed(&error))?;
        }
        for (path, text) in &request.files {
            let path = inside(path)?;
            if let Some(parent) = path.parent() {
                make_directories(&mut files, parent).map_err(|error| failed(&error))?;
            }
            let mut file = files.make_file(path).map_err(|error| failed(&error))?;
            file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
        }
        let mut plan = None;
        if let Some(encoded) = &request.plan {
            let content = BASE64_STANDARD.decode(encoded).map_err(|error| failed(&error))?;
            let mut file = files.make_file(Path::new(PLAN)).map_err(|error| failed(&error))?;
            file.write_all(&content).map_err(|error| failed(&error))?;
            plan = Some(files.path().join(PLAN));
        }
        Ok(Self { files, plan })
    }

    /// Returns the path of the plan to apply.
    pub(crate) fn plan(&self) -> Option<&Path> {
        self.plan.as_deref()
    }

    /// Returns where a document is read from.
    pub(crate) fn location(&self, document: &Document) -> Result<Location, String> {
        let Document { name, path, origin } = document;
        let file = self.files.path().join(inside(path)?);
        let name = name.clone();
        if *origin != Origin::Local {
            return Ok(Location::Fetched { name, file, stands_alone: *origin == Origin::Alone });
        }
        let bytes =
            input::read_file(&file, LARGEST).map_err(|error| format!("cannot read `{name}`: {error}"))?;
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Location::Open { name, folder, bytes })
    }
}

fn make_directories(files: &mut Staging, path: &Path) -> Result<(), crate::host::files::FileError> {
    let mut made = PathBuf::new();
    for part in path.components() {
        made.push(part);
        if !crate::host::look::is_directory(&files.path().join(&made)) {
            files.make_directory(&made)?;
        }
    }
    Ok(())
}

/// Returns a path that stays in the workspace.
fn inside(path: &str) -> Result<&Path, String> {
    let path = Path::new(path);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside { Ok(path) } else { Err("the request has a path that leads out of it".to_owned()) }
}

/// Returns a folder in memory that other users cannot read.
fn folder(runtime: Option<PathBuf>) -> Result<PrivateFolder, String> {
    let of_root = geteuid().is_root().then(|| PathBuf::from("/run"));
    let own = format!("ccm-push-{}", geteuid().as_raw());
    for base in of_root.into_iter().chain(runtime).chain([PathBuf::from("/dev/shm")]) {
        let is_in_memory = statfs(&base)
            .is_ok_and(|found| u32::try_from(found.f_type).is_ok_and(|magic| IN_MEMORY.contains(&magic)));
        if is_in_memory && let Ok(folder) = PrivateFolder::make(&base.join(&own)) {
            return Ok(folder);
        }
    }
    Err("no file system in memory for the input of the run: /run, $XDG_RUNTIME_DIR and /dev/shm are not usable".to_owned())
}
