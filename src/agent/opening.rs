//! Which kind of source an address leads to.

use super::source::{Address, HttpSource, LocalSource, Opening};
use crate::host::{http::Proxies, interrupt::Interrupt};

/// What sources need to be opened.
#[derive(Clone)]
pub(crate) struct Openings {
    pub(crate) proxies: Proxies,
    pub(crate) interrupt: Interrupt,
}

impl Openings {
    /// Returns what opens the source behind an address, in the thread that it will live in.
    pub(crate) fn of(&self, address: &Address) -> Opening {
        let Self { proxies, interrupt } = self.clone();
        match address.clone() {
            Address::Path(path) => Box::new(|_| Box::new(LocalSource(path))),
            Address::Http(url) => Box::new(|_| Box::new(HttpSource::new(url, proxies, interrupt))),
            Address::Object { .. } | Address::KeyValue { .. } => {
                Box::new(|_| Box::new(super::source::Unsupported))
            }
        }
    }
}
