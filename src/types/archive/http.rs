//! The provider for servers that speak http or https.

use std::{
    collections::HashMap,
    io::Seek,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    Action, Properties, Step,
    download::{Broken, Feed, Order, Partial},
    extraction::{Extraction, Ready, Unpacked, unrecorded},
    failure::{hopeless, local},
    state::{ArchiveState, hash},
};
use crate::{
    host::{
        files::{self, Attributes, TempFile},
        http::Body,
        unpack::{ArchiveFormat, UnpackError},
    },
    resource::{Context, Error},
    state::Fetched,
    vocabulary::{AbsolutePath, Algorithm, Checksum, Mode},
};

/// Archives over http and https; what is left of broken downloads is kept until the run ends.
#[derive(Default)]
pub(crate) struct Http {
    partial: Mutex<HashMap<PathBuf, Partial>>,
}

pub(super) fn unknown_attributes() -> Error {
    Error::new("owner and group are not known")
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
        written.into_iter().flatten().for_each(|directory| cx.memory.write_journal.settle(directory));
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
                (Step::SetAttributes, Some(target)) => set_attributes(want, have, target)?,
                (Step::Extract, Some(target)) => extract(want, target, ready.take(), cx)?,
                (_, None) => return Err(unknown_attributes()),
            }
        }
        Ok(())
    }

    /// Puts the archive at its place; where it is also to be unpacked and can be on the way, gives that too.
    fn download(
        &self,
        want: &Properties,
        target: Attributes,
        action: &Action,
        cx: &Context,
    ) -> Result<Option<(Ready, Fetched)>, Error> {
        let path = want.name.as_path();
        let order = Order::of(want, target, cx)?;
        let wanted = order.checksum()?;
        if let Some(directory) = path.parent() {
            cx.memory.write_journal.note(directory);
        }
        let partial = self.partial().remove(path);
        let (draft, part) = order.begin(partial)?;
        let extraction = match want.kind() {
            Some(kind) if action.0.contains(&Step::Extract) => {
                Some((Extraction::new(want, target, cx)?, kind))
            }
            _ => None,
        };
        let body = order.ask(part.as_ref());
        let (checksums, unpacked) =
            match body.and_then(|body| fetch(&order, &draft, body, wanted.as_ref(), extraction.as_ref())) {
                Ok(fetched) => fetched,
                Err(Broken { error, part }) => {
                    let partial = part.map(|part| (path.to_owned(), order.keep(draft, part)));
                    self.partial().extend(partial);
                    return Err(error);
                }
            };
        // What stands in the way of its files is found out while the old archive is still there.
        let ready = match (extraction, unpacked) {
            (Some((extraction, _)), Some(unpacked)) => Some(extraction.survey(unpacked)?),
            _ => None,
        };
        draft.publish(target).map_err(local)?;
        let fetched = Fetched { origin: want.origin(), checksums };
        if want.checksum_url.is_some() {
            cx.memory.directory.keep_fetched(path, &fetched).map_err(|error| unrecorded(&error))?;
        }
        Ok(ready.map(|ready| (ready, fetched)))
    }

    fn partial(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Partial>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fetches the archive into its draft and checks it, unpacking it on the way where its kind allows that.
fn fetch(
    order: &Order,
    draft: &TempFile,
    body: Body,
    wanted: Option<&Checksum>,
    extraction: Option<&(Extraction, ArchiveFormat)>,
) -> Result<(Vec<Checksum>, Option<Unpacked>), Broken> {
    let algorithm = wanted.map_or(Algorithm::Sha256, Checksum::algorithm);
    let mut feed = Feed::new(draft, body, algorithm, order.cx)?;
    let verified = |feed| verified(feed, wanted, order.cx);
    let Some((extraction, kind)) = extraction else {
        return Ok((verified(feed)?, None));
    };
    let refusal = |error| extraction.refusal(error);
    if let ArchiveFormat::Tar(compression) = *kind {
        let unpacked = extraction.of_stream(&mut feed, compression);
        if feed.is_broken() {
            return Err(feed.broken());
        }
        if let Err(error @ (UnpackError::Files(_) | UnpackError::CopyInterrupted)) = unpacked {
            return Err(refusal(error).into());
        }
        // That the download is not what it should be says more than that it cannot be unpacked.
        return Ok((verified(feed)?, Some(unpacked.map_err(refusal)?)));
    }
    let checksums = verified(feed)?;
    Ok((checksums, Some(extraction.of_file(draft.file(), *kind).map_err(refusal)?)))
}

/// The checksums of the whole download, if it is what it should be.
fn verified(feed: Feed, wanted: Option<&Checksum>, cx: &Context) -> Result<Vec<Checksum>, Broken> {
    let checksums = feed.finish()?;
    let Some(wanted) = wanted.filter(|wanted| !checksums.contains(wanted)) else { return Ok(checksums) };
    let message = match checksums.last() {
        // From the checksum of a secret it could be guessed.
        Some(found) if !cx.sensitive => format!("the download has the checksum {found}, not {wanted}"),
        _ => "the download has another checksum than the one that is wanted".to_owned(),
    };
    let help = "either the checksum is that of another version, or the download was tampered with";
    Err(hopeless(message).on("checksum").with_help(help).into())
}

/// Unpacks the archive, unless that was done on the way, and puts its files in place.
fn extract(
    want: &Properties,
    target: Attributes,
    ready: Option<(Ready, Fetched)>,
    cx: &Context,
) -> Result<(), Error> {
    let extraction = Extraction::new(want, target, cx)?;
    let (ready, fetched) = match ready {
        Some(ready) => ready,
        None => from_disk(want, &extraction, cx)?,
    };
    extraction.publish(ready, fetched)?;
    if let Some(creates) = &want.creates
        && files::inspect(creates.as_path()).map_err(local)?.is_none()
    {
        let message =
            format!("failed to reach desired state: the archive was unpacked, but {creates} is not there");
        let help = "name a file that is in the archive; `strip_components` changes where it goes";
        return Err(hopeless(message).on("creates").with_help(help));
    }
    Ok(())
}

/// Unpacks the archive that lies at its path.
fn from_disk(want: &Properties, extraction: &Extraction, cx: &Context) -> Result<(Ready, Fetched), Error> {
    let path = want.name.as_path();
    let changed = || Error::new(format!("{} was changed by somebody else meanwhile", path.display()));
    let kind = want.kind().ok_or_else(changed)?;
    let Some((Some(mut file), _)) = files::open_regular(path).map_err(local)? else {
        return Err(changed());
    };
    let algorithm = want.checksum.as_ref().map_or(Algorithm::Sha256, Checksum::algorithm);
    let checksums = hash(&file, algorithm, path, cx)?;
    if want.checksum.as_ref().is_some_and(|wanted| !checksums.contains(wanted)) {
        return Err(changed());
    }
    file.rewind().map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
    let unpacked = extraction.of_file(&file, kind).map_err(|error| extraction.refusal(error))?;
    Ok((extraction.survey(unpacked)?, Fetched { origin: want.origin(), checksums }))
}

/// Repairs owner, group and mode of an archive that is otherwise right.
fn set_attributes(want: &Properties, have: &ArchiveState, target: Attributes) -> Result<(), Error> {
    let Some(entry) = &have.entry else { return Err(Error::new("the archive is not there")) };
    let mode = want.mode.map_or(entry.mode, Mode::bits);
    files::set_attributes(want.name.as_path(), entry, Attributes { mode, ..target }).map_err(local)
}
