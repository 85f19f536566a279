//! Requests of an archive.

use super::{Properties, checksums, error::ArchiveError};
use crate::{
    download::{DownloadRequest, refusal},
    host::{files::Attributes, http::Request},
    resource::{Context, Error},
    vocabulary::{AbsolutePath, Checksum, Login, Secret},
};

/// Maximum size of a checksum file.
const LONGEST_LIST: u64 = 4 << 20;

/// Returns the request for the archive.
pub(super) fn order<'a, 'c>(
    want: &'a Properties,
    target: Attributes,
    cx: &'a Context<'c>,
) -> Result<DownloadRequest<'a, 'c>, Error> {
    let login = want.username.as_ref().map(|user| Login {
        user: user.clone(),
        password: want.password.clone().unwrap_or_else(|| Secret::new("")),
    });
    Ok(DownloadRequest {
        path: want.name.as_path(),
        owner: target.uid,
        url: want.url.as_ref().ok_or_else(|| Error::new("`url` is missing").on("url"))?,
        headers: want.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        login,
        ca_file: want.ca_file.as_ref().map(AbsolutePath::as_path),
        limit: want.max_download().bytes(),
        property: "url",
        cx,
    })
}

/// Returns the expected checksum of the download.
pub(super) fn checksum(want: &Properties, order: &DownloadRequest) -> Result<Option<Checksum>, Error> {
    let Some(url) = &want.checksum_url else { return Ok(want.sum().cloned()) };
    let mut request = Request { url, ..order.request(None) };
    if !url.is_same_origin(order.url) {
        request = Request { headers: &[], login: None, ..request };
    }
    let text = order.cx.host.http.fetch_small(&request, LONGEST_LIST);
    let text = text.map_err(|error| refusal(error, "checksum_url", order.cx))?;
    let name = want.name.as_path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let remote = order.url.file_name();
    let found = checksums::find(&String::from_utf8_lossy(&text), &[&remote, &name]);
    found.map(Some).ok_or_else(|| ArchiveError::NotListed { url: url.clone(), file: remote }.into())
}
