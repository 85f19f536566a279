//! What a dry run can tell of an archive without asking anybody.

use super::{Action, Properties, Step, download::refusal, error::ArchiveError, state::ArchiveState};
use crate::{
    host::{
        files::{Attributes, Intent, Predicted, Prediction, UNKNOWN},
        http::{self, HttpError},
    },
    resource::{Context, Error, ResourceType},
    types::exec::Exec,
    vocabulary::{Algorithm, Scheme},
};

/// Fails as a real run would, as far as that can be told without the network, and remembers what it would have left.
pub(super) fn simulate(
    want: &Properties,
    have: &ArchiveState,
    action: &Action,
    cx: &Context,
) -> Result<(), Error> {
    let (path, mut prediction) = (want.name.as_path(), cx.prediction.borrow_mut());
    for step in &action.0 {
        match (step, have.target) {
            (Step::Remove | Step::CleanUp, _) => prediction.simulate(path, Intent::Remove, None)?,
            (Step::Download, Some(target)) => {
                check_authorities(want, &prediction, cx)?;
                let sha256 = want.checksum.as_ref().filter(|sum| sum.algorithm() == Algorithm::Sha256);
                let sha256 = sha256.map_or_else(|| UNKNOWN.to_owned(), ToString::to_string);
                prediction.simulate(path, Intent::Write(target), Some(sha256))?;
            }
            (Step::SetAttributes, Some(target)) => {
                prediction.simulate(path, Intent::SetAttributes(target), have.metadata.checksum.clone())?;
            }
            (Step::TakeOver, Some(target)) => {
                prediction.simulate(path, Intent::Write(target), have.metadata.checksum.clone())?;
            }
            (Step::Extract, Some(target)) => {
                if let Some(directory) = &want.extract_parent {
                    prediction.fill(directory.as_path(), Attributes { mode: 0o755, ..target })?;
                }
                if let Some(creates) = &want.creates {
                    prediction.assume(creates.as_path(), target.uid, target.gid);
                }
            }
            (_, None) => return Err(ArchiveError::UnknownAttributes.into()),
        }
    }
    Ok(())
}

/// The certificates in `ca_file` are read as the download reads them, if it does.
fn check_authorities(want: &Properties, prediction: &Prediction, cx: &Context) -> Result<(), Error> {
    let is_secure =
        [&want.url, &want.checksum_url].into_iter().flatten().any(|url| url.scheme() == Scheme::Https);
    let Some(path) = want.ca_file.as_ref().filter(|_| is_secure) else { return Ok(()) };
    let path = path.as_path();
    let found = match prediction.follow(path)? {
        None => http::certificates(path).map(drop),
        Some(Predicted::Nothing) => {
            let reason = "an earlier resource would have removed it".to_owned();
            Err(HttpError::CaFile { path: path.to_owned(), reason })
        }
        Some(_) => Ok(()),
    };
    let Err(error) = found.map_err(|error| refusal(error, "ca_file", cx)) else { return Ok(()) };
    if cx.touched().iter().any(|touched| touched.kind == Exec::NAME) {
        cx.warn(format!("{error}; an earlier command of this run may change that"));
        return Ok(());
    }
    Err(error)
}
