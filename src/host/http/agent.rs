//! One connection to one server: time limits, proxy and whom to trust.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::Path,
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};
use ureq::{
    Agent, Proxy,
    tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem},
};

use super::{CONNECT, HttpError};
use crate::{
    host::interrupt::Interrupt,
    vocabulary::{Scheme, Secret, Url},
};

/// The authorities that the system trusts, read when the first https connection is made.
#[derive(Default)]
pub(super) struct Authorities(OnceLock<Vec<Certificate<'static>>>);

impl Authorities {
    fn of_the_system(&self) -> &[Certificate<'static>] {
        // What cannot be read is not trusted: the connection says so.
        let load = || {
            let found = rustls_native_certs::load_native_certs().certs;
            found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
        };
        self.0.get_or_init(load)
    }

    fn with(&self, file: Option<&Path>) -> Result<Vec<Certificate<'static>>, HttpError> {
        let mut all = self.of_the_system().to_vec();
        if let Some(path) = file {
            let failed = |reason: String| HttpError::CaFile { path: path.to_owned(), reason };
            let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
            let known = all.len();
            for item in parse_pem(&text) {
                match item {
                    Ok(PemItem::Certificate(certificate)) => all.push(certificate),
                    Ok(_) => {}
                    Err(_) => return Err(failed("it is not in PEM form".to_owned())),
                }
            }
            if all.len() == known {
                return Err(failed("it holds no certificate in PEM form".to_owned()));
            }
        }
        Ok(all)
    }
}

/// What a connection is to be like.
pub(super) struct Wishes<'a> {
    pub(super) url: &'a Url,
    pub(super) proxy: Option<&'a Secret>,
    pub(super) ca_file: Option<&'a Path>,
    pub(super) time_left: Option<Duration>,
    pub(super) stall: Duration,
}

pub(super) fn agent(wishes: &Wishes, authorities: &Authorities) -> Result<Agent, HttpError> {
    let url = wishes.url;
    let proxy = wishes.proxy.map(|proxy| Proxy::new(proxy.reveal())).transpose();
    let proxy = proxy
        .ok()
        .filter(|proxy| {
            proxy.as_ref().is_none_or(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https")))
        })
        .ok_or_else(|| HttpError::Proxy {
            url: url.to_string(),
            reason: "its URL is not one of http or https".to_owned(),
        })?;
    // Also the way to the proxy may be over TLS.
    let is_secure = url.scheme() == Scheme::Https
        || proxy.as_ref().is_some_and(|proxy| proxy.uri().scheme_str() == Some("https"));
    let trusted = if is_secure { authorities.with(wishes.ca_file)? } else { Vec::new() };
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(trusted)))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
        // A transformed body would have another checksum.
        .accept_encoding("identity")
        .max_idle_connections(0)
        .input_buffer_size(128 * 1024)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(wishes.stall))
        .timeout_per_read(Some(wishes.stall))
        .timeout_per_write(Some(wishes.stall))
        .timeout_global(wishes.time_left)
        .build();
    Ok(Agent::new_with_config(config))
}

/// Ends the agent's connections when the program is asked to stop, which a blocked read would not notice.
pub(super) struct Watch {
    end: Option<UnixStream>,
    watcher: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn over(agent: &Agent, interrupt: &Interrupt) -> io::Result<Self> {
        let (end, ended) = UnixStream::pair()?;
        let (agent, interrupt) = (agent.clone(), interrupt.clone());
        let watch = move || {
            let mut events = [PollFd::new(&interrupt, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
            while poll(&mut events, None) == Err(rustix::io::Errno::INTR) {}
            if !events[0].revents().is_empty() {
                agent.shutdown();
            }
        };
        let watcher = thread::Builder::new().name("watch".to_owned()).spawn(watch)?;
        Ok(Self { end: Some(end), watcher: Some(watcher) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(watcher) = self.watcher.take() {
            // It does nothing that could fail.
            let _ = watcher.join();
        }
    }
}
