//! Proxies that fetch on behalf of others.
//!
//! Through a proxy to a server that speaks https the client opens a tunnel (`CONNECT`). What is fetched over http the
//! proxy is asked for itself: its first line names the whole address. Many proxies allow tunnels to port 443 alone.

use ureq::{
    http::{Uri, uri::Scheme},
    unversioned::transport::{
        Buffers, ConnectionDetails, Connector, Either, NextTimeout, TcpConnector, Transport,
    },
};

use super::tls::Tls;

/// Connects to the proxy of a request over http.
#[derive(Debug)]
pub(super) struct Forward(pub(super) Tls);

impl Connector for Forward {
    type Out = Either<(), Forwarded>;

    fn connect(&self, details: &ConnectionDetails, _: Option<()>) -> Result<Option<Self::Out>, ureq::Error> {
        let proxy = match details.config.proxy() {
            Some(proxy) if details.uri.scheme() == Some(&Scheme::HTTP) => proxy,
            _ => return Ok(None),
        };
        let to_proxy = ConnectionDetails {
            uri: proxy.uri(),
            addrs: details.resolver.resolve(proxy.uri(), details.config, details.timeout)?,
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: details.register_shutdown.clone(),
        };
        let connection = TcpConnector::default().connect(&to_proxy, None::<()>)?;
        let connection = self.0.connect(&to_proxy, connection)?.ok_or(ureq::Error::ConnectionFailed)?;
        let origin = Some(origin(details.uri));
        Ok(Some(Either::B(Forwarded { connection: Box::new(connection), origin })))
    }
}

fn origin(uri: &Uri) -> String {
    format!("http://{}", uri.authority().map(ToString::to_string).unwrap_or_default())
}

/// A connection to a proxy, over which one request is sent.
#[derive(Debug)]
pub(super) struct Forwarded {
    connection: Box<dyn Transport>,
    /// What is still to be put before the path in the first line.
    origin: Option<String>,
}

impl Transport for Forwarded {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.connection.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let Some(origin) = self.origin.take() else {
            return self.connection.transmit_output(amount, timeout);
        };
        let request = self.connection.buffers().output()[..amount].to_vec();
        let path = request.iter().position(|byte| *byte == b'/').unwrap_or(0);
        let request = [&request[..path], origin.as_bytes(), &request[path..]].concat();
        let room = self.connection.buffers().output().len().max(1);
        for piece in request.chunks(room) {
            self.connection.buffers().output()[..piece.len()].copy_from_slice(piece);
            self.connection.transmit_output(piece.len(), timeout)?;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.connection.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.connection.is_open()
    }
}
