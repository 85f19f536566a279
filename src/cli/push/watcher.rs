//! Passes on what happens in a push: to the user, the history and the plans.

use serde_json::{Map, Value};

use super::{output::Show, plans::Writer, record::Record};
use crate::push::{HostResult, Listener};

/// Listens to a push.
pub(super) struct Watcher<'w, 'o> {
    pub(super) show: Show<'o>,
    pub(super) record: Option<&'w mut Record>,
    pub(super) writer: Option<Writer>,
}

impl Listener for Watcher<'_, '_> {
    fn started(&mut self, host: &str) {
        if let Some(record) = &mut self.record {
            record.started(host);
        }
        self.show.started(host);
    }

    fn event(&mut self, host: &str, event: Map<String, Value>) {
        self.show.event(host, event);
    }

    fn message(&mut self, host: &str, text: &str) {
        self.show.message(host, text);
    }

    fn finished(&mut self, result: &mut HostResult) {
        if let Some(writer) = &mut self.writer {
            writer.write(result);
        }
        if let Some(record) = &mut self.record {
            record.host(result);
        }
        self.show.finished(result);
    }

    fn notice(&mut self, text: &str) {
        self.show.notice(text);
    }
}
