//! Downloads to a private file next to the target: hashed while they arrive, resumed after an interruption, and
//! invisible to other users until they are verified.
//!
//! Types that download share this module. Publishing the file is up to the type.

mod error;
mod hashing;
mod headers;

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    time::Instant,
};

use self::error::DownloadError;
pub(crate) use self::{
    error::{local, refusal},
    hashing::{CHUNK, Hashes},
    headers::problems as header_problems,
};
use crate::{
    host::{
        files::{FileError, TempFile},
        http::{Body, HttpError, Part, Request},
    },
    resource::{Context, Error, Warning},
    vocabulary::{Algorithm, Checksum, Login, Secret, Url},
};

/// What a run reports when it downloads without a checksum.
pub(crate) const UNVERIFIED: &str =
    "the download is not verified: give its SHA-256 as `checksum`, or `checksum: none` to accept any content";

/// Warns about a download that no checksum verifies.
pub(crate) fn unverified(property: &'static str) -> Warning {
    Warning {
        id: "no-checksum",
        message: "without `checksum`, ccm accepts any content".to_owned(),
        property: Some(property),
        help: Some("give the SHA-256 of the file as `checksum`, or `checksum: none`".to_owned()),
    }
}

/// First part of an interrupted download, which the next attempt resumes.
pub(crate) struct Partial {
    url: Url,
    draft: TempFile,
    part: Part,
}

/// A download in progress: writes, hashes and forwards the data.
pub(crate) struct HashedDownload<'a, 'c> {
    draft: &'a TempFile,
    body: Body,
    /// Number of bytes that are still to be read from the part of an earlier attempt.
    replay: u64,
    /// Number of bytes so far.
    length: u64,
    hashes: Hashes,
    cx: &'a Context<'c>,
    property: &'static str,
    failure: Option<Failure>,
}

/// Reason why a download was interrupted.
enum Failure {
    Http(HttpError),
    File(FileError),
    Stopped(Error),
}

/// Request for a file, with the credentials.
pub(crate) struct DownloadRequest<'a, 'c> {
    /// Target path of the file.
    pub(crate) path: &'a Path,
    /// UID of the future owner.
    pub(crate) owner: u32,
    pub(crate) url: &'a Url,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) login: Option<Login>,
    pub(crate) ca_file: Option<&'a Path>,
    /// Maximum size in bytes.
    pub(crate) limit: u64,
    /// Property that contains the URL.
    pub(crate) property: &'static str,
    pub(crate) cx: &'a Context<'c>,
}

impl<'c> DownloadRequest<'_, 'c> {
    /// Returns the request for the complete file, or for the rest of it.
    pub(crate) fn request<'r>(&'r self, part: Option<&'r Part>) -> Request<'r> {
        Request {
            headers: &self.headers,
            login: self.login.as_ref(),
            ca_file: self.ca_file,
            deadline: self.cx.time_left().and_then(|left| Instant::now().checked_add(left)),
            part,
            limit: Some(self.limit),
            ..Request::of(self.url)
        }
    }

    /// Returns the file to write to, and the part of an earlier attempt in it.
    pub(crate) fn begin(&self, partial: Option<Partial>) -> Result<(TempFile, Option<Part>), Error> {
        match partial.filter(|partial| partial.url == *self.url) {
            Some(Partial { draft, part, .. }) => Ok((draft, Some(part))),
            None => Ok((TempFile::new(self.path, self.owner).map_err(local)?, None)),
        }
    }

    /// Requests the file, or the missing rest of it.
    pub(crate) fn ask(&self, part: Option<&Part>) -> Result<Body, BrokenDownload> {
        let get = |part| self.cx.host.http.get(&self.request(part));
        let answer = match (get(part), part) {
            // The server cannot resume there.
            (Err(HttpError::WrongRange { .. }), Some(_)) => get(None),
            (answer, _) => answer,
        };
        answer.map_err(|error| BrokenDownload {
            part: part.cloned().filter(|_| error.is_passing()),
            error: refusal(error, self.property, self.cx),
        })
    }

    /// Begins to write and hash the response.
    pub(crate) fn receive<'d>(
        &'d self,
        draft: &'d TempFile,
        body: Body,
        wanted: Algorithm,
    ) -> Result<HashedDownload<'d, 'c>, Error> {
        let start = body.start();
        let mut file = draft.file();
        // Keep only as many existing bytes as the server skips.
        let ready = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(0)));
        ready.map_err(|error| local(draft.explain(&error)))?;
        let (hashes, property) = (Hashes::new(wanted), self.property);
        Ok(HashedDownload {
            draft,
            body,
            replay: start,
            length: 0,
            hashes,
            cx: self.cx,
            property,
            failure: None,
        })
    }

    /// Returns the part to keep of an interrupted download.
    pub(crate) fn keep(&self, draft: TempFile, part: Part) -> Partial {
        Partial { url: self.url.clone(), draft, part }
    }
}

impl HashedDownload<'_, '_> {
    /// Reads the rest of the response and returns the checksums of the complete file.
    pub(crate) fn finish(mut self) -> Result<Vec<Checksum>, BrokenDownload> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return Ok(self.hashes.finish()),
                Ok(_) => {}
                Err(_) => return Err(self.broken()),
            }
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the reason of the interruption, and the part that can be kept.
    pub(crate) fn broken(self) -> BrokenDownload {
        let part = self.part();
        let (error, is_passing) = match self.failure {
            Some(Failure::Http(error)) => {
                let is_passing = error.is_passing();
                (refusal(error, self.property, self.cx), is_passing)
            }
            Some(Failure::File(error)) => (local(error), false),
            Some(Failure::Stopped(error)) => (error, true),
            None => (Error::new("the download broke off"), false),
        };
        BrokenDownload { error, part: part.filter(|_| is_passing) }
    }

    /// Returns the part of the file, if the server can resume.
    fn part(&self) -> Option<Part> {
        let version = self.body.version().filter(|_| self.length > 0)?.to_owned();
        Some(Part { length: self.length, version, total: self.body.total() })
    }

    fn step(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        self.cx.tick().map_err(Failure::Stopped)?;
        let mut file = self.draft.file();
        let count = if self.replay > 0 {
            let most = usize::try_from(self.replay).map_or(buffer.len(), |left| left.min(buffer.len()));
            let read = file.read(&mut buffer[..most]);
            let count = read.map_err(|error| Failure::File(self.draft.explain(&error)))?;
            self.replay = if count == 0 { 0 } else { self.replay - count as u64 };
            count
        } else {
            let count = self.body.next(buffer).map_err(Failure::Http)?;
            file.write_all(&buffer[..count]).map_err(|error| Failure::File(self.draft.explain(&error)))?;
            count
        };
        self.hashes.update(&buffer[..count]);
        self.length += count as u64;
        Ok(count)
    }
}

/// An interrupted download.
pub(crate) struct BrokenDownload {
    pub(crate) error: Error,
    /// Part of the file that can be kept.
    pub(crate) part: Option<Part>,
}

impl From<Error> for BrokenDownload {
    /// Keeps nothing of the download.
    fn from(error: Error) -> Self {
        Self { error, part: None }
    }
}

impl From<FileError> for BrokenDownload {
    fn from(error: FileError) -> Self {
        local(error).into()
    }
}

impl Read for HashedDownload<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.step(buffer).map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("the download broke off")
        })
    }
}

/// Returns the checksums of the complete download, if they match the expected one.
pub(crate) fn verified(
    feed: HashedDownload,
    wanted: Option<&Checksum>,
) -> Result<Vec<Checksum>, BrokenDownload> {
    let is_secret = feed.cx.is_sensitive();
    let checksums = feed.finish()?;
    let Some(wanted) = wanted.filter(|wanted| !checksums.contains(wanted)) else { return Ok(checksums) };
    Err(Error::from(match checksums.last() {
        Some(found) if !is_secret => {
            DownloadError::OtherChecksum { found: found.clone(), wanted: wanted.clone() }
        }
        _ => DownloadError::OtherSecretChecksum,
    })
    .into())
}
