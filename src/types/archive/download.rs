//! Fetching an archive: to a private file beside its place, hashed on the way, and unpacked on the way where that can be.

use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    time::Instant,
};

use super::{
    Properties, checksums,
    error::{ArchiveError, local},
    hashing::{CHUNK, Hashes},
};
use crate::{
    host::{
        files::{Attributes, FileError, TempFile},
        http::{Body, HttpError, Part, Request},
    },
    resource::{Context, Error},
    vocabulary::{AbsolutePath, Algorithm, Checksum, Login, Secret, Url},
};

/// A list of checksums is not longer than this.
const LONGEST_LIST: u64 = 4 << 20;

/// The beginning of a download that broke off, to be taken up by the next attempt.
pub(super) struct Partial {
    url: Url,
    draft: TempFile,
    part: Part,
}

/// A download in progress: what comes in is written, hashed and handed on.
pub(super) struct HashedDownload<'a, 'c> {
    draft: &'a TempFile,
    body: Body,
    /// How much is still to be read from what an earlier attempt left.
    replay: u64,
    /// How much there is so far.
    length: u64,
    hashes: Hashes,
    cx: &'a Context<'c>,
    failure: Option<Failure>,
}

/// Why a download broke off.
enum Failure {
    Http(HttpError),
    File(FileError),
    Stopped(Error),
}

/// Who is asked for what, with which secrets.
pub(super) struct DownloadRequest<'a, 'c> {
    pub(super) want: &'a Properties,
    /// Owner, group and mode of the archive.
    pub(super) target: Attributes,
    pub(super) cx: &'a Context<'c>,
    url: &'a Url,
    headers: Vec<(String, Secret)>,
    login: Option<Login>,
    deadline: Option<Instant>,
}

impl<'a, 'c> DownloadRequest<'a, 'c> {
    pub(super) fn of(want: &'a Properties, target: Attributes, cx: &'a Context<'c>) -> Result<Self, Error> {
        let url = want.url.as_ref().ok_or(ArchiveError::Missing { property: "url" })?;
        let headers = want.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let login = want.username.as_ref().map(|user| Login {
            user: user.clone(),
            password: want.password.clone().unwrap_or_else(|| Secret::new("")),
        });
        let deadline = cx.time_left().and_then(|left| Instant::now().checked_add(left));
        Ok(Self { want, target, cx, url, headers, login, deadline })
    }

    fn request<'r>(&'r self, part: Option<&'r Part>) -> Request<'r> {
        Request {
            headers: &self.headers,
            login: self.login.as_ref(),
            ca_file: self.want.ca_file.as_ref().map(AbsolutePath::as_path),
            deadline: self.deadline,
            part,
            limit: Some(self.want.max_download().bytes()),
            ..Request::of(self.url)
        }
    }

    /// Returns what the download has to hash to.
    pub(super) fn checksum(&self) -> Result<Option<Checksum>, Error> {
        let Some(url) = &self.want.checksum_url else { return Ok(self.want.checksum.clone()) };
        let mut request = Request { url, ..self.request(None) };
        if !url.is_same_origin(self.url) {
            request = Request { headers: &[], login: None, ..request };
        }
        let text = self.cx.host.http.fetch_small(&request, LONGEST_LIST);
        let text = text.map_err(|error| refusal(error, "checksum_url", self.cx))?;
        let name = self.want.name.as_path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let remote = self.url.file_name();
        let found = checksums::find(&String::from_utf8_lossy(&text), &[&remote, &name]);
        found.map(Some).ok_or_else(|| ArchiveError::NotListed { url: url.clone(), file: remote }.into())
    }

    /// Returns where the download is written to, and what an earlier attempt left there.
    pub(super) fn begin(&self, partial: Option<Partial>) -> Result<(TempFile, Option<Part>), Error> {
        match partial.filter(|partial| partial.url == *self.url) {
            Some(Partial { draft, part, .. }) => Ok((draft, Some(part))),
            None => Ok((TempFile::new(self.want.name.as_path(), self.target.uid).map_err(local)?, None)),
        }
    }

    /// Asks for the file, or for what is still missing of it.
    pub(super) fn ask(&self, part: Option<&Part>) -> Result<Body, BrokenDownload> {
        let get = |part| self.cx.host.http.get(&self.request(part));
        let answer = match (get(part), part) {
            // The server cannot go on from there.
            (Err(HttpError::WrongRange { .. }), Some(_)) => get(None),
            (answer, _) => answer,
        };
        answer.map_err(|error| BrokenDownload {
            part: part.cloned().filter(|_| error.is_passing()),
            error: refusal(error, "url", self.cx),
        })
    }

    /// Returns what is kept of a download that broke off.
    pub(super) fn keep(&self, draft: TempFile, part: Part) -> Partial {
        Partial { url: self.url.clone(), draft, part }
    }
}

impl<'a, 'c> HashedDownload<'a, 'c> {
    pub(super) fn new(
        draft: &'a TempFile,
        body: Body,
        wanted: Algorithm,
        cx: &'a Context<'c>,
    ) -> Result<Self, Error> {
        let start = body.start();
        let mut file = draft.file();
        // Of what is there already, only as much counts as the server goes on from.
        let ready = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(0)));
        ready.map_err(|error| local(draft.explain(&error)))?;
        Ok(Self { draft, body, replay: start, length: 0, hashes: Hashes::new(wanted), cx, failure: None })
    }

    /// Reads what is left and gives the checksums of all.
    pub(super) fn finish(mut self) -> Result<Vec<Checksum>, BrokenDownload> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => return Ok(self.hashes.finish()),
                Ok(_) => {}
                Err(_) => return Err(self.broken()),
            }
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns why it broke off, and what can be kept.
    pub(super) fn broken(self) -> BrokenDownload {
        let part = self.part();
        let (error, is_passing) = match self.failure {
            Some(Failure::Http(error)) => {
                let is_passing = error.is_passing();
                (refusal(error, "url", self.cx), is_passing)
            }
            Some(Failure::File(error)) => (local(error), false),
            Some(Failure::Stopped(error)) => (error, true),
            None => (Error::new("the download broke off"), false),
        };
        BrokenDownload { error, part: part.filter(|_| is_passing) }
    }

    /// Returns what there is of the file, if the server can be asked for the rest.
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

/// A download that broke off.
pub(super) struct BrokenDownload {
    pub(super) error: Error,
    /// What can be kept of it.
    pub(super) part: Option<Part>,
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

/// Returns the failure of a request, or why it was stopped.
pub(super) fn refusal(error: HttpError, property: &'static str, cx: &Context) -> Error {
    cx.tick().err().unwrap_or_else(|| ArchiveError::Download { error, property }.into())
}
