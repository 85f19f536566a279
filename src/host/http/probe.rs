//! Requests of health checks, which accept any response.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use ureq::http::{HeaderMap, Request as HttpRequest};

use super::{
    Client, HttpError, MOST_REDIRECTS,
    agent::{self, ConnectionOptions, Watch},
    follow, header, is_redirect, log_in, names,
    proxies::Proxy,
    tls::ClientIdentity,
};
use crate::{
    host::files,
    vocabulary::{Login, Scheme, Secret, Url},
};

/// A request with its options.
pub(crate) struct Probe<'a> {
    pub(crate) url: &'a Url,
    pub(crate) method: &'a str,
    pub(crate) headers: &'a [(String, Secret)],
    pub(crate) body: &'a str,
    pub(crate) login: Option<Login>,
    pub(crate) ca_file: Option<&'a Path>,
    /// Client certificate and its key.
    pub(crate) identity: Option<(&'a Path, &'a Path)>,
    pub(crate) proxy: Option<&'a str>,
    pub(crate) trust: Trust,
    pub(crate) redirects: Redirects,
    pub(crate) timeout: Duration,
}

/// Whether the server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Verified,
    Anybody,
}

/// Whether redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    Followed,
    Shown,
}

/// Response of a server.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Headers as `Name: value`, sorted.
    pub(crate) headers: Vec<String>,
    /// Beginning of the body.
    pub(crate) body: Vec<u8>,
    pub(crate) time: Duration,
}

/// Maximum size of the body that is read.
const LARGEST_BODY: usize = 1 << 20;

impl Client {
    /// Sends the request and returns the response, whatever its status. Follows at most ten redirects.
    pub(crate) fn probe(&self, probe: &Probe) -> Result<Answer, HttpError> {
        let begun = Instant::now();
        let mut url = probe.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let left = probe.timeout.saturating_sub(begun.elapsed());
            let (response, watch) = self.pose(probe, &url, left)?;
            let leads_on = is_redirect(response.status()) && probe.redirects == Redirects::Followed;
            if leads_on {
                url = follow(&url, response.headers())?;
                continue;
            }
            let (parts, body) = response.into_parts();
            let mut reader = body.into_with_config().limit(u64::MAX).reader();
            let body = self.beginning(&mut reader, &url);
            drop(watch);
            let (status, headers) = (parts.status.as_u16(), lines(&parts.headers));
            return Ok(Answer { status, headers, body: body?, time: begun.elapsed() });
        }
        Err(HttpError::TooManyRedirects { url: probe.url.to_string(), limit: MOST_REDIRECTS })
    }

    fn beginning(&self, reader: &mut impl std::io::Read, url: &Url) -> Result<Vec<u8>, HttpError> {
        let (mut body, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
        while body.len() < LARGEST_BODY {
            let read = files::read(reader, &mut buffer);
            if self.interrupt.requested().is_some() {
                return Err(HttpError::Interrupted);
            }
            match read {
                Ok(0) => break,
                Ok(count) => body.extend_from_slice(&buffer[..count]),
                Err(error) => return Err(HttpError::from_io(error, url)),
            }
        }
        body.truncate(LARGEST_BODY);
        Ok(body)
    }

    fn pose(
        &self,
        probe: &Probe,
        url: &Url,
        left: Duration,
    ) -> Result<(ureq::http::Response<ureq::Body>, Watch), HttpError> {
        if self.interrupt.requested().is_some() {
            return Err(HttpError::Interrupted);
        }
        let given = probe.proxy.map(|proxy| Proxy::given(proxy, url)).transpose()?;
        let proxy = match given {
            Some(proxy) => Some(proxy),
            None => self.proxies.of(url)?,
        };
        let options = ConnectionOptions {
            url,
            proxy: proxy.as_ref(),
            ca_file: probe.ca_file,
            identity: probe.identity.map(|(certificate, key)| ClientIdentity { certificate, key }),
            trust: probe.trust,
            time_left: Some(left),
            stall: self.stall,
        };
        let agent = agent::agent(&options, &self.authorities)?;
        let unreachable = |reason: String| HttpError::Unreachable { url: url.to_string(), reason };
        let watch = Watch::over(&agent, &self.interrupt).map_err(|error| unreachable(error.to_string()))?;
        let mut request = HttpRequest::builder().method(probe.method).uri(url.bare());
        if let Some(headers) = request.headers_mut() {
            if url.is_same_origin(probe.url) {
                log_in(headers, names::AUTHORIZATION, probe.login.clone().or_else(|| probe.url.login()));
                for (name, value) in probe.headers {
                    header::insert(headers, name, value.reveal())?;
                }
            }
            if let Some(proxy) = proxy.as_ref().filter(|_| url.scheme() == Scheme::Http) {
                log_in(headers, names::PROXY_AUTHORIZATION, proxy.login());
            }
        }
        let bad = |_| HttpError::Protocol {
            url: url.to_string(),
            reason: "it cannot be asked like this".to_owned(),
        };
        let failed = |error| {
            let error = HttpError::from_transport(error, url);
            match (self.interrupt.requested(), &proxy) {
                (Some(_), _) => HttpError::Interrupted,
                (None, Some(proxy)) => proxy.blame(error),
                (None, None) => error,
            }
        };
        let response = if probe.body.is_empty() {
            agent.run(request.body(()).map_err(bad)?)
        } else {
            agent.run(request.body(probe.body.to_owned()).map_err(bad)?)
        };
        Ok((response.map_err(failed)?, watch))
    }
}

/// Returns headers as sorted lines.
fn lines(headers: &HeaderMap) -> Vec<String> {
    let line = |(name, value): (&names::HeaderName, &ureq::http::HeaderValue)| {
        format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    let mut lines: Vec<String> = headers.iter().map(line).collect();
    lines.sort();
    lines
}
