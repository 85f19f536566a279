//! Observes listening ports.

use std::net::IpAddr;

use super::super::lens::{Lens, Seen, Unseen};
use crate::{
    checks::{Port, Protocol, Rule},
    host::sockets::{self, Listener, Transport},
};

pub(super) fn look(property: &str, rule: &Rule, lens: &Lens) -> Seen {
    let port: Port = rule.subject.parse().map_err(Unseen::Not)?;
    let all = lens.listeners.get_or_init(|| sockets::listeners().map_err(|error| error.to_string()));
    let all =
        all.as_ref().map_err(|error| Unseen::Cannot(format!("the sockets cannot be listed: {error}")))?;
    let found: Vec<&Listener> = all.iter().filter(|listener| is_meant(listener, port)).collect();
    Ok(match property {
        "listening" => (!found.is_empty()).into(),
        _ => {
            let mut addresses: Vec<String> =
                found.iter().map(|listener| listener.address.to_string()).collect();
            addresses.dedup();
            addresses.into()
        }
    })
}

fn is_meant(listener: &Listener, Port { protocol, number }: Port) -> bool {
    let is_v4 = matches!(listener.address, IpAddr::V4(_));
    let (transport, family) = match protocol {
        Protocol::Tcp => (Transport::Tcp, is_v4 || listener.is_dual),
        Protocol::Tcp4 => (Transport::Tcp, is_v4),
        Protocol::Tcp6 => (Transport::Tcp, !is_v4),
        Protocol::Udp => (Transport::Udp, is_v4 || listener.is_dual),
        Protocol::Udp4 => (Transport::Udp, is_v4),
        Protocol::Udp6 => (Transport::Udp, !is_v4),
    };
    listener.port == number && listener.transport == transport && family
}
