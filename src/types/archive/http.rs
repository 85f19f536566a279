//! The provider for HTTP and HTTPS servers.

use std::{
    collections::HashMap,
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    Action, Properties, Step, download,
    error::ArchiveError,
    extraction::{Extraction, Ready, Unpacked},
    hashing::HashedFile,
    state::ArchiveState,
};
use crate::{
    download::{BrokenDownload, DownloadRequest, Partial, UNVERIFIED, local, verified},
    host::{
        files::{self, Attributes, CopyInterrupted, TempFile},
        http::Body,
        unpack::{ArchiveFormat, UnpackError},
    },
    resource::{Context, Error},
    state::Fetched,
    vocabulary::{AbsolutePath, Algorithm, Checksum, Mode},
};

/// Archives over HTTP and HTTPS. Keeps interrupted downloads until the end of the run.
#[derive(Default)]
pub(crate) struct Http {
    partial: Mutex<HashMap<PathBuf, Partial>>,
}

impl Http {
    pub(super) fn enact(
        &self,
        want: &Properties,
        have: &ArchiveState,
        action: &Action,
        cx: &Context,
    ) -> Result<(), Error> {
        let done = self.take_steps(want, have, action, cx);
        let target = want.extract_parent.as_ref().map(AbsolutePath::as_path);
        let written = [want.name.as_path().parent(), target, target.and_then(Path::parent)];
        let settle = |directory| cx.state.write_journal.settle(directory, cx.interrupt());
        written.into_iter().flatten().for_each(settle);
        done
    }

    fn take_steps(
        &self,
        want: &Properties,
        have: &ArchiveState,
        action: &Action,
        cx: &Context,
    ) -> Result<(), Error> {
        let path = want.name.as_path();
        let mut ready = None;
        for step in &action.0 {
            match (step, have.target) {
                (Step::Remove | Step::CleanUp, _) => files::remove(path).map_err(local)?,
                (Step::Download, Some(target)) => {
                    ready = self.download(want, target, action, cx)?;
                }
                (Step::SetAttributes, Some(target)) => set_attributes(want, have, target, cx)?,
                (Step::TakeOver, Some(target)) => take_over(want, have, target, cx)?,
                (Step::Extract, Some(target)) => extract(want, have, target, ready.take(), cx)?,
                (_, None) => return Err(ArchiveError::UnknownAttributes.into()),
            }
        }
        Ok(())
    }

    /// Publishes the downloaded archive. If it is extracted while it is downloaded, returns the result as well.
    fn download(
        &self,
        want: &Properties,
        target: Attributes,
        action: &Action,
        cx: &Context,
    ) -> Result<Option<(Ready, Fetched)>, Error> {
        let path = want.name.as_path();
        let order = download::order(want, target, cx)?;
        let wanted = download::checksum(want, &order)?;
        if let Some(directory) = path.parent() {
            cx.state.write_journal.note(directory, cx.interrupt());
        }
        let partial = self.partial().remove(path);
        let (draft, part) = order.begin(partial)?;
        let extracts = action.0.contains(&Step::Extract);
        let extraction = want
            .format()
            .filter(|_| extracts)
            .and_then(|format| Extraction::new(want, target, cx).map(|extraction| (extraction, format)));
        let body = order.ask(part.as_ref());
        let (checksums, unpacked) =
            match body.and_then(|body| fetch(&order, &draft, body, wanted.as_ref(), extraction.as_ref())) {
                Ok(fetched) => fetched,
                Err(BrokenDownload { error, part }) => {
                    let partial = part.map(|part| (path.to_owned(), order.keep(draft, part)));
                    self.partial().extend(partial);
                    return Err(error);
                }
            };
        // Find conflicts while the old archive still exists.
        let ready = match (extraction, unpacked) {
            (Some((extraction, _)), Some(unpacked)) => Some(extraction.survey(unpacked)?),
            _ => None,
        };
        if want.checksum.is_none() && want.checksum_url.is_none() {
            cx.warn(UNVERIFIED);
        }
        draft.publish(target).map_err(local)?;
        let fetched = Fetched { origin: want.origin(), checksums };
        if want.remembers_origin() {
            cx.state.directory.keep_fetched(path, &fetched).map_err(ArchiveError::Unrecorded)?;
        }
        Ok(ready.map(|ready| (ready, fetched)))
    }

    fn partial(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Partial>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Downloads and verifies the archive, and extracts it at the same time if its format allows that.
fn fetch(
    order: &DownloadRequest,
    draft: &TempFile,
    body: Body,
    wanted: Option<&Checksum>,
    extraction: Option<&(Extraction, ArchiveFormat)>,
) -> Result<(Vec<Checksum>, Option<Unpacked>), BrokenDownload> {
    let algorithm = wanted.map_or(Algorithm::Sha256, Checksum::algorithm);
    let mut feed = order.receive(draft, body, algorithm)?;
    let verified = |feed| verified(feed, wanted);
    let Some((extraction, kind)) = extraction else {
        return Ok((verified(feed)?, None));
    };
    let refusal = |error| match (error, start_of(draft).filter(|_| !order.cx.is_sensitive())) {
        (error @ UnpackError::OtherKind { .. }, Some(start)) => {
            ArchiveError::NotAnArchive { archive: order.path.to_owned(), error, start }.into()
        }
        (error, _) => extraction.refusal(error),
    };
    if let ArchiveFormat::Tar(compression) = *kind {
        let unpacked = extraction.of_stream(&mut feed, compression);
        if feed.is_broken() {
            return Err(feed.broken());
        }
        if let Err(error @ (UnpackError::Files(_) | UnpackError::CopyInterrupted)) = unpacked {
            return Err(refusal(error).into());
        }
        // A wrong download explains more than the extraction error that it causes.
        return Ok((verified(feed)?, Some(unpacked.map_err(refusal)?)));
    }
    let checksums = verified(feed)?;
    Ok((checksums, Some(extraction.of_file(draft.file(), *kind).map_err(refusal)?)))
}

/// How much of a download that is not an archive a message shows.
const LONGEST: usize = 60;

/// Returns the first line of a download if it is text, such as a web page.
fn start_of(draft: &TempFile) -> Option<String> {
    let mut start = [0; 256];
    let count = draft.file().read_at(&mut start, 0).ok()?;
    let line = start[..count].trim_ascii_start().split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let is_text =
        !line.is_empty() && !line.contains(|c: char| c.is_control() && !c.is_whitespace() || c == '\u{fffd}');
    is_text.then(|| line.trim_end().chars().take(LONGEST).collect())
}

/// Extracts the archive, unless that is already done, and publishes its files.
fn extract(
    want: &Properties,
    have: &ArchiveState,
    target: Attributes,
    ready: Option<(Ready, Fetched)>,
    cx: &Context,
) -> Result<(), Error> {
    let Some(extraction) = Extraction::new(want, target, cx) else { return Ok(()) };
    let (ready, fetched) = match ready {
        Some(ready) => ready,
        None => from_disk(want, have, target, &extraction, cx)?,
    };
    extraction.publish(ready, fetched)?;
    if let Some(creates) = &want.creates
        && files::inspect(creates.as_path()).map_err(local)?.is_none()
    {
        return Err(ArchiveError::StillUncreated { creates: creates.clone() }.into());
    }
    Ok(())
}

/// Extracts the archive at its path, if its content is still the inspected one.
///
/// The extracted bytes are the hashed bytes: a tar archive is hashed while it is extracted. A zip archive, which is
/// read with seeks, is first copied to a file that no other process has open.
fn from_disk(
    want: &Properties,
    have: &ArchiveState,
    target: Attributes,
    extraction: &Extraction,
    cx: &Context,
) -> Result<(Ready, Fetched), Error> {
    let path = want.name.as_path();
    let format = want.format().ok_or_else(|| changed(want))?;
    let file = open(want)?;
    let mut hashed = HashedFile::new(&file, want.algorithm(), path, cx);
    let (unpacked, checksums) = match format {
        ArchiveFormat::Tar(compression) => {
            let unpacked = extraction.of_stream(&mut hashed, compression);
            (unpacked, hashed.finish()?)
        }
        ArchiveFormat::Zip => {
            let copy = TempFile::new(path, target.uid).map_err(local)?;
            let checksums = hashed.copy_to(&copy)?;
            (extraction.of_file(copy.file(), format), checksums)
        }
    };
    if checksums != have.checksums {
        return Err(changed(want));
    }
    let unpacked = unpacked.map_err(|error| extraction.refusal(error))?;
    Ok((extraction.survey(unpacked)?, Fetched { origin: want.origin(), checksums }))
}

/// Opens the archive at its path.
fn open(want: &Properties) -> Result<File, Error> {
    let opened = files::open_regular(want.name.as_path()).map_err(local)?;
    opened.and_then(|(file, _)| file).ok_or_else(|| changed(want))
}

fn changed(want: &Properties) -> Error {
    ArchiveError::Changed { path: want.name.as_path().to_owned() }.into()
}

/// Replaces the archive by a copy, if its content is still the inspected one.
fn take_over(want: &Properties, have: &ArchiveState, target: Attributes, cx: &Context) -> Result<(), Error> {
    let path = want.name.as_path();
    let file = open(want)?;
    let copy = TempFile::new(path, target.uid).map_err(local)?;
    let checksums = HashedFile::new(&file, want.algorithm(), path, cx).copy_to(&copy)?;
    if checksums != have.checksums {
        return Err(changed(want));
    }
    copy.publish(target).map_err(local)
}

/// Sets owner, group and mode of an archive that is otherwise up to date.
fn set_attributes(
    want: &Properties,
    have: &ArchiveState,
    target: Attributes,
    cx: &Context,
) -> Result<(), Error> {
    let Some(entry) = &have.entry else { return Err(changed(want)) };
    let mode = want.mode.map_or(entry.mode, Mode::bits);
    let tick = &mut || cx.tick().map_err(|_| CopyInterrupted);
    files::set_attributes(want.name.as_path(), entry, Attributes { mode, ..target }, tick).map_err(local)
}
