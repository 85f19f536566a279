//! Connection to one server: time limits, proxy and trusted certificates.

use std::{
    io,
    os::unix::net::UnixStream,
    path::Path,
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};
use ureq::{
    Agent,
    unversioned::{
        resolver::DefaultResolver,
        transport::{ConnectProxyConnector, Connector, TcpConnector},
    },
};

use super::{
    CONNECT, HttpError,
    forward::Forward,
    probe::Trust,
    proxies::Proxy,
    severed::Guard,
    tls::{Authorities, ClientIdentity, Tls},
};
use crate::{
    host::interrupt::Interrupt,
    vocabulary::{Scheme, Url},
};

/// Options of a connection.
pub(super) struct ConnectionOptions<'a> {
    pub(super) url: &'a Url,
    pub(super) proxy: Option<&'a Proxy>,
    pub(super) ca_file: Option<&'a Path>,
    /// Client certificate.
    pub(super) identity: Option<ClientIdentity<'a>>,
    pub(super) trust: Trust,
    pub(super) time_left: Option<Duration>,
    pub(super) stall: Duration,
}

pub(super) fn agent(options: &ConnectionOptions, authorities: &Authorities) -> Result<Agent, HttpError> {
    // The connection to the proxy can use TLS, too.
    let is_secure = options.url.scheme() == Scheme::Https || options.proxy.is_some_and(Proxy::is_secure);
    let tls = Tls(is_secure.then(|| authorities.trusting(options)).transpose()?);
    let config = Agent::config_builder()
        .proxy(options.proxy.map(Proxy::route))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
        // A compressed body would have another checksum.
        .accept_encoding("identity")
        .max_idle_connections(0)
        .input_buffer_size(128 * 1024)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(options.stall))
        .timeout_per_read(Some(options.stall))
        .timeout_per_write(Some(options.stall))
        .timeout_global(options.time_left)
        .build();
    let connector = Forward(tls.clone())
        .chain(ConnectProxyConnector::default())
        .chain(TcpConnector::default())
        .chain(tls)
        .chain(Guard);
    Ok(Agent::with_parts(config, connector, DefaultResolver::default()))
}

/// Closes the connections of the agent when the program is asked to stop, because a blocked read would not notice it.
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
            // The thread cannot fail.
            let _ = watcher.join();
        }
    }
}
