//! Fetches files over HTTP and HTTPS.
//!
//! A body is complete only if its length matches, is never held in memory, and comes only from the requested server:
//! ccm follows redirects itself, so that an HTTPS request never continues over HTTP, and credentials and headers for
//! one server are not sent to another.

mod agent;
mod body;
mod distrust;
mod error;
mod forward;
mod header;
mod probe;
mod proxies;
mod severed;
#[cfg(test)]
mod tests;
mod tls;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use ureq::http::{HeaderMap, HeaderValue, StatusCode, header as names};

use self::{
    agent::{ConnectionOptions, Watch},
    tls::Authorities,
};
pub(crate) use self::{
    body::{Body, Validator},
    error::HttpError,
    header::{check_name, check_value},
    probe::{Answer, Probe, Redirects, Trust},
    proxies::Proxies,
    tls::certificates,
};
use super::interrupt::Interrupt;
use crate::vocabulary::{Login, Scheme, Secret, Url};

/// How long a server may send nothing.
const STALL: Duration = Duration::from_secs(30);
/// How long finding and reaching a server may take.
const CONNECT: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 10;

/// Fetches things.
pub(crate) struct Client {
    proxies: Proxies,
    interrupt: Interrupt,
    authorities: Authorities,
    listener: Arc<dyn ProgressListener>,
    /// A server that sends nothing for this long has stalled.
    stall: Duration,
}

/// Is told how far a download has come.
pub(crate) trait ProgressListener: Send + Sync {
    /// Is told that so much has come of a file of that size, if the size is known.
    fn received(&self, from: &Url, so_far: u64, total: Option<u64>);
    /// Is told that no more will come.
    fn ended(&self);
}

/// What to fetch, and what to show to the server.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) url: &'a Url,
    /// Sent to the server of the URL and to no other.
    pub(crate) headers: &'a [(String, Secret)],
    /// User and password; without them those of the URL are used.
    pub(crate) login: Option<&'a Login>,
    /// Certificates of authorities to trust besides the system's.
    pub(crate) ca_file: Option<&'a Path>,
    pub(crate) deadline: Option<Instant>,
    /// What is there already of an earlier attempt.
    pub(crate) part: Option<&'a Part>,
    /// How many bytes the file may have.
    pub(crate) limit: Option<u64>,
    /// The version that is known: if the server still has it, it answers 304 and no body.
    pub(crate) unless: Option<&'a Validator>,
}

/// Whom a request goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// The one that user, password and headers are meant for.
    Asked,
    /// One that a redirect led to.
    Other,
}

/// The beginning of a file, and what the server called the version that it is of.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) length: u64,
    pub(crate) version: String,
    /// How long the whole file is, if the server said so.
    pub(crate) total: Option<u64>,
}

impl<'a> Request<'a> {
    pub(crate) fn of(url: &'a Url) -> Self {
        Self {
            url,
            headers: &[],
            login: None,
            ca_file: None,
            deadline: None,
            part: None,
            limit: None,
            unless: None,
        }
    }

    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

impl Client {
    pub(crate) fn new(proxies: Proxies, interrupt: Interrupt, listener: Arc<dyn ProgressListener>) -> Self {
        Self { proxies, interrupt, authorities: Authorities::default(), listener, stall: STALL }
    }

    /// Returns the same client with another interrupt.
    pub(super) fn with_interrupt(&self, interrupt: Interrupt) -> Self {
        Self::new(self.proxies.clone(), interrupt, Arc::clone(&self.listener))
    }

    /// Asks for a file and gives its body, of which nothing has been read yet.
    pub(crate) fn get(&self, request: &Request) -> Result<Body, HttpError> {
        let mut url = request.url.clone();
        let mut server = Server::Asked;
        for _ in 0..=MOST_REDIRECTS {
            let (response, watch) = self.ask(request, &url, server)?;
            if !is_redirect(response.status()) {
                return Body::of(response, watch, &url, request, self);
            }
            let target = follow(&url, response.headers())?;
            if !target.is_same_origin(&url) {
                server = Server::Other;
            }
            url = target;
        }
        Err(HttpError::TooManyRedirects { url: request.url.to_string(), limit: MOST_REDIRECTS })
    }

    /// Fetches a file of at most `limit` bytes and returns what it holds.
    pub(crate) fn fetch_small(&self, request: &Request, limit: u64) -> Result<Vec<u8>, HttpError> {
        self.get(&Request { limit: Some(limit), ..*request })?.read_whole()
    }

    fn ask(
        &self,
        request: &Request,
        url: &Url,
        server: Server,
    ) -> Result<(ureq::http::Response<ureq::Body>, Watch), HttpError> {
        if self.interrupt.requested().is_some() {
            return Err(HttpError::Interrupted);
        }
        let proxy = self.proxies.of(url)?;
        let options = ConnectionOptions {
            url,
            proxy: proxy.as_ref(),
            ca_file: request.ca_file,
            identity: None,
            trust: Trust::Verified,
            time_left: request.time_left(),
            stall: self.stall,
        };
        let agent = agent::agent(&options, &self.authorities)?;
        let watch = Watch::over(&agent, &self.interrupt)
            .map_err(|error| HttpError::Unreachable { url: url.to_string(), reason: error.to_string() })?;
        let mut asked = agent.get(url.bare());
        if let Some(headers) = asked.headers_mut() {
            fill(headers, request, server)?;
            if let Some(proxy) = proxy.as_ref().filter(|_| url.scheme() == Scheme::Http) {
                log_in(headers, names::PROXY_AUTHORIZATION, proxy.login());
            }
        }
        let failed = |error| {
            let error = HttpError::from_transport(error, url);
            match (self.interrupt.requested(), &proxy) {
                (Some(_), _) => HttpError::Interrupted,
                (None, Some(proxy)) => proxy.blame(error),
                (None, None) => error,
            }
        };
        Ok((asked.call().map_err(failed)?, watch))
    }
}

fn fill(headers: &mut HeaderMap, request: &Request, server: Server) -> Result<(), HttpError> {
    if server == Server::Asked {
        let login = request.login.cloned().or_else(|| request.url.login());
        log_in(headers, names::AUTHORIZATION, login);
        for (name, value) in request.headers {
            header::insert(headers, name, value.reveal())?;
        }
    }
    let known = match request.unless {
        Some(Validator::Tag(tag)) => Some((names::IF_NONE_MATCH, tag)),
        Some(Validator::Date(date)) => Some((names::IF_MODIFIED_SINCE, date)),
        None => None,
    };
    if let Some((name, version)) = known
        && let Ok(version) = version.parse()
    {
        headers.insert(name, version);
    }
    if let Some(Part { length, version, .. }) = request.part
        && let (Ok(range), Ok(version)) = (format!("bytes={length}-").parse(), version.parse())
    {
        headers.insert(names::RANGE, range);
        headers.insert(names::IF_RANGE, version);
    }
    Ok(())
}

/// Adds a header for basic authentication.
fn log_in(headers: &mut HeaderMap, name: names::HeaderName, login: Option<Login>) {
    let Some(Login { user, password }) = login else { return };
    let both = format!("{}:{}", user.reveal(), password.reveal());
    if let Ok(mut value) = format!("Basic {}", base64(both.as_bytes())).parse::<HeaderValue>() {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn follow(from: &Url, headers: &HeaderMap) -> Result<Url, HttpError> {
    let bad = |reason: String| HttpError::BadRedirect { from: from.to_string(), reason };
    let location = headers.get(names::LOCATION).and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| bad("it does not say where".to_owned()))?;
    let to = from.join(location).map_err(|error| bad(error.to_string()))?;
    match (from.scheme(), to.scheme()) {
        (Scheme::Https, Scheme::Http) => {
            Err(HttpError::Downgrade { from: from.to_string(), to: to.to_string() })
        }
        _ => Ok(to),
    }
}

/// Encodes bytes in base 64, for the one header that needs it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for letter in 0..4 {
            let value = (bits >> (18 - 6 * letter)) & 63;
            text.push(if letter <= group.len() { char::from(LETTERS[value as usize]) } else { '=' });
        }
    }
    text
}
