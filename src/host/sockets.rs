//! Who is listening, as the kernel knows it.

use std::{
    collections::HashSet,
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::native_bytes::{u16_at, u32_at};

/// A socket that waits for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) transport: Transport,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Whether one on `::` takes IPv4 too.
    pub(crate) is_dual: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// `TCP_LISTEN`, and what an unconnected UDP socket is in.
const LISTEN: &str = "0A";
const UNCONNECTED: &str = "07";

/// Returns all sockets on which something can be received. What the kernel has no table of, nobody listens on.
pub(crate) fn listeners() -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for (file, transport, state) in [
        ("tcp", Transport::Tcp, LISTEN),
        ("tcp6", Transport::Tcp, LISTEN),
        ("udp", Transport::Udp, UNCONNECTED),
        ("udp6", Transport::Udp, UNCONNECTED),
    ] {
        match fs::read_to_string(format!("/proc/net/{file}")) {
            Ok(table) => {
                listeners.extend(table.lines().skip(1).filter_map(|line| row(line, transport, state)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // Where the kernel cannot be asked, one on `::` counts as dual.
    let only_v6 = only_v6().unwrap_or_default();
    for listener in &mut listeners {
        let is_any = listener.address == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        listener.is_dual = is_any && !only_v6.contains(&listener.port);
    }
    Ok(listeners)
}

/// Reads a line of one of the tables: number, local address, remote address, state, ...
fn row(line: &str, transport: Transport, wanted: &str) -> Option<Listener> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    let is_unconnected = remote.ends_with(":0000");
    if state != wanted || !is_unconnected {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listener { transport, address: address_of(address)?, port, is_dual: false })
}

/// Reads an address: words of four bytes, each as the machine has it in memory.
fn address_of(text: &str) -> Option<IpAddr> {
    let words: Option<Vec<u32>> =
        (0..text.len() / 8).map(|at| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()).collect();
    let bytes: Vec<u8> = words?.into_iter().flat_map(u32::to_ne_bytes).collect();
    let v4 = || <[u8; 4]>::try_from(bytes.as_slice()).ok().map(|bytes| IpAddr::from(Ipv4Addr::from(bytes)));
    let v6 = || <[u8; 16]>::try_from(bytes.as_slice()).ok().map(|bytes| IpAddr::from(Ipv6Addr::from(bytes)));
    v4().or_else(v6)
}

/// Returns the ports on which listeners take IPv6 and nothing else: what only `sock_diag(7)` tells.
fn only_v6() -> rustix::io::Result<HashSet<u16>> {
    const HEADER: usize = 16;
    const FIXED: usize = 72;
    const V6_ONLY: u16 = 11;
    const DONE: u16 = 3;
    const TCP: u8 = 6;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
    let mut request = [0_u8; HEADER + 56];
    let length = u32::try_from(request.len()).unwrap_or_default();
    request[..4].copy_from_slice(&length.to_ne_bytes());
    // `SOCK_DIAG_BY_FAMILY`, and `NLM_F_REQUEST | NLM_F_DUMP`.
    request[4..6].copy_from_slice(&20_u16.to_ne_bytes());
    request[6..8].copy_from_slice(&0x301_u16.to_ne_bytes());
    // Family, protocol, no extensions; then the states as bits, of which the one for listening.
    request[HEADER] = 10;
    request[HEADER + 1] = TCP;
    request[HEADER + 4..HEADER + 8].copy_from_slice(&(1_u32 << 10).to_ne_bytes());
    send(&socket, &request, SendFlags::empty())?;
    let mut ports = HashSet::new();
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return Ok(ports);
        }
        while let Some(size) = u32_at(rest, 0).map(|size| size as usize).filter(|size| *size >= HEADER) {
            let Some(message) = rest.get(..size) else { break };
            if u16_at(message, 4) == Some(DONE) {
                return Ok(ports);
            }
            // Behind four bytes of states the port stands as the network has it.
            let port =
                message.get(HEADER + 4..HEADER + 6).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
            let mut attributes = message.get(HEADER + FIXED..).unwrap_or_default();
            while let Some(length) = u16_at(attributes, 0).map(usize::from).filter(|length| *length >= 4) {
                let Some(attribute) = attributes.get(..length) else { break };
                if let (Some(V6_ONLY), Some(1), Some(port)) = (u16_at(attribute, 2), attribute.get(4), port) {
                    ports.insert(port);
                }
                attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn rows_of_listeners_are_read_and_others_passed_over() {
        let row = |line, transport, state| row(line, transport, state);
        let tcp =
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1";
        let found = row(tcp, Transport::Tcp, LISTEN).unwrap();
        assert_eq!((found.address.to_string().as_str(), found.port), ("127.0.0.1", 8080));
        let connected = tcp.replace(" 0A ", " 01 ");
        assert_eq!(row(&connected, Transport::Tcp, LISTEN), None);
        let v6 = "0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A x";
        assert_eq!(row(v6, Transport::Tcp, LISTEN).unwrap().address.to_string(), "::1");
        for line in ["", "x", "0: zz:1 1:0000 0A", "0: 0100007F 0:0000 0A"] {
            assert_eq!(row(line, Transport::Tcp, LISTEN), None, "{line}");
        }
    }

    #[test]
    fn a_listener_for_both_is_told_from_one_for_ipv6_only() {
        // The standard library makes listeners that take IPv4 too, where the machine is set up so.
        let Ok(both) = TcpListener::bind("[::]:0") else {
            crate::skip::skip("needs IPv6");
            return;
        };
        let port = both.local_addr().unwrap().port();
        let found = listeners().unwrap();
        let own = found.iter().find(|listener| listener.port == port).unwrap();
        let is_only =
            fs::read_to_string("/proc/sys/net/ipv6/bindv6only").is_ok_and(|text| text.trim() == "1");
        assert_eq!(own.is_dual, !is_only, "{own:?}");
    }
}
