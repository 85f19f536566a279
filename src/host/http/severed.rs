//! Connections that break are told from connections that are closed.
//!
//! A body without a length ends where the connection is closed. The client takes a reset, and a TLS connection that ends
//! without the server's `close_notify`, for such an end; whoever can cut the connection would decide how much of a file
//! arrives. Here these errors are given another kind, so that they stay errors.

use std::io;

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// The connection broke; nobody said that the body was at its end.
#[derive(Debug, thiserror::Error)]
#[error("the connection broke")]
pub(super) struct Severed;

/// Wraps every connection.
#[derive(Debug)]
pub(super) struct Guard;

impl<In: Transport> Connector<In> for Guard {
    type Out = Guarded<In>;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        Ok(chained.map(Guarded))
    }
}

/// A connection whose breaking is an error of its own kind.
#[derive(Debug)]
pub(super) struct Guarded<T>(T);

impl<T: Transport> Transport for Guarded<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.0.await_input(timeout).map_err(|error| match error {
            ureq::Error::Io(error) if is_break(&error) => ureq::Error::Io(io::Error::other(Severed)),
            error => error,
        })
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}

fn is_break(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | ConnectionAborted | ConnectionReset)
}
