//! Proxies for plain HTTP.
//!
//! For HTTPS, the client opens a tunnel through the proxy (`CONNECT`). For HTTP, the client sends the request to the
//! proxy with the complete URL in its first line, because many proxies allow tunnels only to port 443.

use ureq::{
    http::{Uri, uri::Scheme},
    unversioned::transport::{
        Buffers, ConnectionDetails, Connector, Either, NextTimeout, TcpConnector, Transport,
    },
};

use super::tls::Tls;

/// Connects to the proxy of an HTTP request.
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

/// Connection to a proxy for one request.
#[derive(Debug)]
pub(super) struct Forwarded {
    connection: Box<dyn Transport>,
    /// Scheme and host that still have to be inserted into the first line.
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
