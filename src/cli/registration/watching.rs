//! `ccm registration watch`

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use serde_json::json;

use super::{Format, failed};
use crate::{
    cli::{
        failure::{self, Failure},
        output::Output,
    },
    host::interrupt::Interrupt,
    nats::{Connection, Delivery, Nats},
    registration::{Change, Filter, change},
    visible::visible_line,
};

/// How soon a signal is heeded.
const LOOK: Duration = Duration::from_millis(200);

/// Prints what comes and goes until a signal asks to stop.
pub(super) fn watch(
    nats: &Nats,
    filter: &Filter,
    format: Format,
    interrupt: &Interrupt,
    output: &mut Output,
) -> Result<(), Failure> {
    let connection = nats.connection().map_err(|error| failed(error, nats))?;
    let (sender, deliveries) = mpsc::channel();
    let (stream, subjects) = (&nats.registration_stream, filter.subjects());
    let begin = |connection: &Connection, from| connection.watch(stream, &subjects, from, &sender);
    let mut watch = Some(begin(connection, None).map_err(|error| failed(error, nats))?);
    let on_change = sender.clone();
    let _listening = connection.on_change(move |status| {
        // Nobody reads it any more when the program ends.
        let _ = on_change.send(if status.connected { Delivery::Reconnected } else { Delivery::Lost });
    });
    let mut next = None;
    loop {
        match deliveries.recv_timeout(LOOK) {
            Ok(Delivery::Message(message)) => {
                next = Some(message.sequence + 1);
                if let Some(change) = change(&message) {
                    print(&change, format, output);
                    output.flush();
                }
            }
            Ok(Delivery::Lost) => drop(watch.take()),
            Ok(Delivery::Reconnected) => {
                drop(watch.take());
                match begin(connection, next) {
                    Ok(again) => watch = Some(again),
                    // A stream that is not there yet after a restart comes a little later.
                    Err(error) if error.may_pass() => drop(sender.send(Delivery::Reconnected)),
                    Err(error) => failure::error(&error.to_string()),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if interrupt.requested().is_some() || output.loss().is_some() {
            return Ok(());
        }
    }
}

fn print(change: &Change, format: Format, output: &mut Output) {
    let line = match (change, format) {
        (Change::Entry(entry), Format::Json) => json!({ "action": "update", "entry": entry }).to_string(),
        (Change::Removal { reason, cluster, protocol, service, address, id }, Format::Json) => json!({
            "action": "remove", "reason": reason,
            "entry": { "cluster": cluster, "service": service, "protocol": protocol, "address": address, "id": id },
        })
        .to_string(),
        (Change::Entry(entry), _) => {
            let port = entry.port.map(|port| format!(" port {}", port.number())).unwrap_or_default();
            let ttl = entry.ttl.map(|ttl| format!(" ttl {ttl}")).unwrap_or_default();
            format!(
                "+ {} {} {} {}{port} priority {}{ttl}",
                entry.cluster,
                entry.protocol,
                entry.service,
                entry.address.as_str(),
                entry.priority.number()
            )
        }
        (Change::Removal { reason, cluster, protocol, service, address, id }, _) => {
            format!("- {cluster} {protocol} {service} {address} {id}: {reason}")
        }
    };
    match format {
        Format::Json => output.line(&line),
        _ => output.message(&visible_line(&line)),
    }
}
