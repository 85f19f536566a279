//! Dry runs of archives, without network access.

use super::{Action, Properties, Step, error::ArchiveError, state::ArchiveState};
use crate::{
    download::refusal,
    host::{
        files::{Attributes, Intent, Predicted, UNKNOWN},
        http::{self, HttpError},
    },
    resource::{Content, Context, Effects, Error, PathEffect},
    vocabulary::{AbsolutePath, Algorithm, Scheme},
};

/// Fails if a real run would fail, as far as this is known without the network and not part of the effects.
pub(super) fn simulate(
    want: &Properties,
    have: &ArchiveState,
    action: &Action,
    cx: &Context,
) -> Result<(), Error> {
    let needs_attributes = |step: &Step| !matches!(step, Step::Remove | Step::CleanUp);
    if have.target.is_none() && action.0.iter().any(needs_attributes) {
        return Err(ArchiveError::UnknownAttributes.into());
    }
    if action.0.contains(&Step::Download) { check_authorities(want, cx) } else { Ok(()) }
}

/// Returns the effects of the steps.
pub(super) fn effects(want: &Properties, have: &ArchiveState, action: &Action) -> Effects {
    let mut paths = Vec::new();
    let of_archive = |intent, sha256, content| {
        let path = want.name.as_path().to_owned();
        PathEffect::Operation { path, intent, sha256, content }
    };
    for step in &action.0 {
        match (step, have.target) {
            (Step::Remove | Step::CleanUp, _) => {
                paths.push(of_archive(Intent::Remove, None, Content::Unknown));
            }
            (Step::Download, Some(target)) => {
                let sha256 = want.sum().filter(|sum| sum.algorithm() == Algorithm::Sha256);
                let sha256 = sha256.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
                paths.push(of_archive(Intent::Write(target), Some(sha256), Content::Unknown));
            }
            (Step::SetAttributes, Some(target)) => {
                let sha256 = have.metadata.checksum.clone();
                paths.push(of_archive(Intent::SetAttributes(target), sha256, Content::Kept));
            }
            (Step::TakeOver, Some(target)) => {
                let sha256 = have.metadata.checksum.clone();
                paths.push(of_archive(Intent::Write(target), sha256, Content::Kept));
            }
            (Step::Extract, Some(target)) => {
                let root = Attributes { mode: 0o755, ..target };
                let Attributes { uid, gid, .. } = target;
                let fill = |directory: &AbsolutePath| PathEffect::Filled {
                    directory: directory.as_path().to_owned(),
                    root,
                };
                let appear =
                    |path: &AbsolutePath| PathEffect::Appears { path: path.as_path().to_owned(), uid, gid };
                paths.extend(want.extract_parent.as_ref().map(fill));
                paths.extend(want.creates.as_ref().map(appear));
            }
            (_, None) => {}
        }
    }
    Effects { paths, ..Effects::default() }
}

/// Reads the certificates in `ca_file`, if the download would.
fn check_authorities(want: &Properties, cx: &Context) -> Result<(), Error> {
    let is_secure =
        [&want.url, &want.checksum_url].into_iter().flatten().any(|url| url.scheme() == Scheme::Https);
    let Some(path) = want.ca_file.as_ref().filter(|_| is_secure) else { return Ok(()) };
    let path = path.as_path();
    let found = match cx.prediction.borrow().files.follow(path)? {
        None => http::certificates(path).map(drop),
        Some(Predicted::Nothing) => {
            let reason = "an earlier resource would have removed it".to_owned();
            Err(HttpError::CaFile { path: path.to_owned(), reason })
        }
        Some(_) => Ok(()),
    };
    let Err(error) = found.map_err(|error| refusal(error, "ca_file", cx)) else { return Ok(()) };
    if cx.may_differ() {
        cx.assume(format!("{error}; assuming {} changes that", cx.suspects()));
        return Ok(());
    }
    Err(error)
}
