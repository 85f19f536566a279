//! Queries the kernel for interfaces and addresses through rtnetlink(7).
//!
//! The files in /proc do not show which IPv4 address is on which interface. A response is a sequence of messages. Each
//! has a header, a fixed part and attributes, all aligned to four bytes and in native byte order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::{
    io::{self, Errno},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
};

use crate::host::native_bytes::{u16_at, u32_at};

/// Kind of query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::facts) enum Question {
    Links,
    Addresses,
}

impl Question {
    /// `RTM_GETLINK` or `RTM_GETADDR`
    fn code(self) -> u16 {
        match self {
            Self::Links => 18,
            Self::Addresses => 22,
        }
    }

    /// Returns the path of the response in a recording of a machine.
    pub(in crate::facts) fn recording(self) -> &'static str {
        match self {
            Self::Links => "netlink/links",
            Self::Addresses => "netlink/addresses",
        }
    }
}

const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`: all objects.
const ALL: u16 = 0x301;

/// Returns the complete response, without the final message.
pub(in crate::facts) fn ask(question: Question) -> io::Result<Vec<u8>> {
    // Protocol 0 of this family is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &request(question), SendFlags::empty())?;
    let mut answer = Vec::new();
    // The maximum size of one part of a response.
    let mut buffer = vec![0; 32 * 1024];
    loop {
        // The next part is available as soon as the last one was received, so this never waits.
        let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
        let part = &buffer[..length];
        if part.is_empty() {
            return Err(Errno::PIPE);
        }
        for (kind, message) in messages(part) {
            match kind {
                DONE => return Ok(answer),
                ERROR => return Err(Errno::PROTO),
                _ => {
                    answer.extend_from_slice(message);
                    answer.resize(answer.len().next_multiple_of(4), 0);
                }
            }
        }
    }
}

fn request(question: Question) -> [u8; HEADER + 4] {
    let mut request = [0; HEADER + 4];
    let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&question.code().to_ne_bytes());
    request[6..8].copy_from_slice(&ALL.to_ne_bytes());
    request
}

/// A network interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mtu: u32,
    /// Hardware address; empty if there is none.
    pub(super) hardware_address: String,
    pub(super) flags: u32,
}

/// An address of an interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Index of the interface.
    pub(super) link: u32,
    pub(super) ip: IpAddr,
    pub(super) prefix_length: u8,
    /// Whether the address is permanent and primary.
    pub(super) is_preferred: bool,
}

/// Returns the interfaces in a response.
pub(super) fn links(answer: &[u8]) -> Vec<Link> {
    let bodies = messages(answer).filter(|(kind, _)| *kind == NEW_LINK);
    bodies.filter_map(|(_, message)| link(message.get(HEADER..)?)).collect()
}

fn link(body: &[u8]) -> Option<Link> {
    const FIXED: usize = 16;
    const HARDWARE: u16 = 1;
    const NAME: u16 = 3;
    const MTU: u16 = 4;
    let mut link = Link {
        index: u32_at(body, 4)?,
        name: String::new(),
        mtu: 0,
        hardware_address: String::new(),
        flags: u32_at(body, 8)?,
    };
    for (kind, value) in attributes(body.get(FIXED..)?) {
        match kind {
            NAME => {
                let name = String::from_utf8_lossy(value);
                name.trim_end_matches('\0').clone_into(&mut link.name);
            }
            MTU => link.mtu = u32_at(value, 0)?,
            HARDWARE if value.iter().any(|byte| *byte != 0) => {
                let bytes: Vec<String> = value.iter().map(|byte| format!("{byte:02x}")).collect();
                link.hardware_address = bytes.join(":");
            }
            _ => {}
        }
    }
    Some(link)
}

/// Returns the addresses in a response.
pub(super) fn addresses(answer: &[u8]) -> Vec<Address> {
    let bodies = messages(answer).filter(|(kind, _)| *kind == NEW_ADDRESS);
    bodies.filter_map(|(_, message)| address(message.get(HEADER..)?)).collect()
}

fn address(body: &[u8]) -> Option<Address> {
    const FIXED: usize = 8;
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    const FLAGS: u16 = 8;
    /// Flags of secondary or temporary, failed, deprecated and tentative addresses.
    const LESSER: u32 = 0x01 | 0x08 | 0x20 | 0x40;
    let (mut ip, mut own, mut flags) = (None, None, u32::from(*body.get(2)?));
    for (kind, value) in attributes(body.get(FIXED..)?) {
        match kind {
            ADDRESS => ip = parsed(value),
            // With both attributes, the other one is the address of the peer.
            LOCAL => own = parsed(value),
            FLAGS => flags = u32_at(value, 0)?,
            _ => {}
        }
    }
    Some(Address {
        link: u32_at(body, 4)?,
        ip: own.or(ip)?,
        prefix_length: *body.get(1)?,
        is_preferred: flags & LESSER == 0,
    })
}

fn parsed(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into());
    let v6 = || <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into());
    v4().or_else(v6)
}

/// Returns the messages of a response, each with its type and header.
fn messages(answer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = answer;
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let kind = u16_at(rest, 4)?;
        let message = cut(&mut rest, length, HEADER)?;
        Some((kind, message))
    })
}

/// Returns attributes, each with its type.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const HEADER: usize = 4;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let attribute = cut(&mut rest, length, HEADER)?;
        Some((kind, &attribute[HEADER..]))
    })
}

/// Takes `length` bytes and their padding. A length shorter than the header is malformed and ends the iteration.
fn cut<'a>(rest: &mut &'a [u8], length: usize, header: usize) -> Option<&'a [u8]> {
    let taken = rest.get(..length).filter(|taken| taken.len() >= header)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some(taken)
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    const LINKS: &[u8] = include_bytes!("../../../tests/fixtures/facts/alpine/netlink/links");
    const ADDRESSES: &[u8] = include_bytes!("../../../tests/fixtures/facts/alpine/netlink/addresses");

    #[test]
    fn an_answer_that_is_cut_short_gives_what_is_whole() {
        let (all_links, all_addresses) = (links(LINKS), addresses(ADDRESSES));
        assert!(!all_links.is_empty() && all_addresses.len() > 1);
        for length in 0..LINKS.len() {
            let found = links(&LINKS[..length]);
            assert_eq!(found[..], all_links[..found.len()]);
        }
        for length in 0..ADDRESSES.len() {
            let found = addresses(&ADDRESSES[..length]);
            assert_eq!(found[..], all_addresses[..found.len()]);
        }
    }

    #[test]
    fn an_answer_that_is_nonsense_comes_to_an_end() {
        for place in 0..LINKS.len() {
            for byte in [0, 1, 3, 4, 0x7f, 0xff] {
                let mut spoiled = LINKS.to_vec();
                spoiled[place] = byte;
                assert!(links(&spoiled).len() <= LINKS.len() / HEADER);
                assert!(addresses(&spoiled).len() <= LINKS.len() / HEADER);
            }
        }
        assert_eq!(links(&[0; 64]), []);
        assert_eq!(addresses(&[0xff; 64]), []);
    }

    #[test]
    fn the_kernel_answers() {
        let found = links(&ask(Question::Links).unwrap());
        assert!(found.iter().any(|link| link.index == 1), "{found:?}");
    }
}
