//! Which kind of source an address leads to.

use std::{sync::Arc, time::Duration};

use super::source::{Address, HttpSource, LocalSource, NatsSource, Opening, Unsupported};
use crate::{
    host::{http::Proxies, interrupt::Interrupt},
    nats::Connection,
};

/// What sources need to be opened.
#[derive(Clone)]
pub(crate) struct Openings {
    pub(crate) proxies: Proxies,
    pub(crate) interrupt: Interrupt,
    /// How long one fetch from a web server can take.
    pub(crate) fetch_timeout: Duration,
    /// The connection to NATS, where the configuration asks for one.
    pub(crate) connection: Option<Arc<Connection>>,
}

impl Openings {
    /// Returns what opens the source behind an address, in the thread that it will live in.
    pub(crate) fn of(&self, address: &Address) -> Opening {
        let Self { proxies, interrupt, fetch_timeout, connection } = self.clone();
        match address.clone() {
            Address::Path(path) => Box::new(|_| Box::new(LocalSource(path))),
            Address::Http(url) => {
                Box::new(move |_| Box::new(HttpSource::new(url, proxies, interrupt, fetch_timeout)))
            }
            Address::Nats(address) => Box::new(|waker| match connection {
                Some(connection) => Box::new(NatsSource::new(connection, address, waker)),
                None => Box::new(Unsupported),
            }),
        }
    }
}
