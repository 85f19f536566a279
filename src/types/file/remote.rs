//! Content that is downloaded.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Properties;
use crate::{
    download::{BrokenDownload, CHUNK, DownloadRequest, Hashes, Partial, UNVERIFIED, verified},
    host::files::{self, Attributes, Digested, FileKind, TempFile, UNKNOWN},
    resource::{Context, Error},
    state::Downloaded,
    vocabulary::{Algorithm, Checksum, Size, Url},
};

/// What is left of downloads that broke off, until the run ends.
#[derive(Default)]
pub(super) struct Downloads {
    partial: Mutex<HashMap<PathBuf, Partial>>,
}

impl Downloads {
    /// Downloads the content and puts it at its place, if it is what it should be.
    pub(super) fn fetch(
        &self,
        want: &Properties,
        url: &Url,
        attributes: Attributes,
        cx: &Context,
        publish: impl FnOnce(TempFile) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = want.name.as_path();
        let order = order(want, url, attributes.uid, cx);
        let partial = self.partial().remove(path);
        let (draft, part) = order.begin(partial)?;
        let fetched = order.ask(part.as_ref()).and_then(|body| {
            let version = body.version().map(str::to_owned);
            let feed = order.receive(&draft, body, algorithm(want))?;
            Ok((verified(feed, want.sum())?, version))
        });
        let (checksums, version) = match fetched {
            Ok(fetched) => fetched,
            Err(BrokenDownload { error, part }) => {
                let partial = part.map(|part| (path.to_owned(), order.keep(draft, part)));
                self.partial().extend(partial);
                return Err(error);
            }
        };
        if want.checksum.is_none() {
            cx.warn(UNVERIFIED);
        }
        publish(draft)?;
        let sha256 = checksums.first().map(ToString::to_string).unwrap_or_default();
        if want.sum().is_none() {
            let downloaded = Downloaded::new(url, version, sha256);
            let kept = cx.state.directory.keep_downloaded(path, &downloaded);
            kept.map_err(|error| Error::new(format!("cannot record the download: {error}")))?;
        }
        Ok(())
    }

    fn partial(&self) -> MutexGuard<'_, HashMap<PathBuf, Partial>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A larger file is refused.
fn largest() -> u64 {
    Size::gibibytes(16).bytes()
}

fn order<'a, 'c>(
    want: &'a Properties,
    url: &'a Url,
    owner: u32,
    cx: &'a Context<'c>,
) -> DownloadRequest<'a, 'c> {
    DownloadRequest {
        path: want.name.as_path(),
        owner,
        url,
        headers: want.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        login: None,
        ca_file: None,
        limit: largest(),
        property: "source",
        cx,
    }
}

fn algorithm(want: &Properties) -> Algorithm {
    want.sum().map_or(Algorithm::Sha256, Checksum::algorithm)
}

/// Returns the SHA-256 that the file is to have, [`UNKNOWN`] where a download has to tell. That is the one of the file
/// that is there, when it has the wanted checksum or is the version that the server still has.
pub(super) fn checksum(
    want: &Properties,
    url: &Url,
    found: Option<&Digested>,
    cx: &Context,
) -> Result<String, Error> {
    let found = found.filter(|found| found.entry.kind == FileKind::File);
    let found = found.and_then(|found| found.sha256.as_ref()).filter(|sha256| *sha256 != UNKNOWN);
    match (want.sum(), found) {
        (Some(wanted @ Checksum::Sha256(_)), _) => Ok(wanted.to_string()),
        (_, None) => Ok(UNKNOWN.to_owned()),
        (Some(wanted), Some(sha256)) => {
            let is_wanted = hashes(want, cx)?.contains(wanted);
            Ok(if is_wanted { sha256.clone() } else { UNKNOWN.to_owned() })
        }
        (None, Some(sha256)) => {
            let is_current = is_current(want, url, sha256, cx)?;
            Ok(if is_current { sha256.clone() } else { UNKNOWN.to_owned() })
        }
    }
}

/// Returns the checksums of the file that is there.
fn hashes(want: &Properties, cx: &Context) -> Result<Vec<Checksum>, Error> {
    let path = cx.prediction.borrow().files.place_on_disk(want.name.as_path());
    let Some((Some(mut file), _)) = files::open_regular(&path)? else { return Ok(Vec::new()) };
    let mut hashes = Hashes::new(algorithm(want));
    let mut buffer = vec![0; CHUNK];
    loop {
        cx.tick()?;
        match files::read(&mut file, &mut buffer) {
            Ok(0) => return Ok(hashes.finish()),
            Ok(count) => hashes.update(&buffer[..count]),
            Err(error) => return Err(Error::new(format!("cannot read {}: {error}", want.name))),
        }
    }
}

/// Returns whether the file that is there is the version that the server has. The server is asked for the file, and what
/// it begins to send is not read.
fn is_current(want: &Properties, url: &Url, sha256: &str, cx: &Context) -> Result<bool, Error> {
    let kept = cx.state.directory.downloaded(want.name.as_path()).unwrap_or_else(|error| {
        cx.warn(format!("{error}; it is downloaded again"));
        None
    });
    let Some(kept) = kept.filter(|kept| kept.is_from(url) && kept.sha256 == sha256) else {
        return Ok(false);
    };
    let order = order(want, url, 0, cx);
    let body = order.ask(None).map_err(|BrokenDownload { error, .. }| error)?;
    match (kept.version.as_deref(), body.version()) {
        (None, None) => {
            cx.warn("the server tells neither an ETag nor when the file was modified: it stays as it is");
            Ok(true)
        }
        (before, now) => Ok(before == now),
    }
}
