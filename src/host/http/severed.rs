//! Distinguishes broken connections from closed ones.
//!
//! A body without a length ends when the connection is closed. The client accepts a reset, and the end of a TLS
//! connection without `close_notify`, as such an end, so that an attacker who cuts the connection could truncate a
//! file. This module turns both into errors.

use std::io;

use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// The connection broke before the end of the body.
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

/// Connection that reports a break as an error of its own kind.
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
