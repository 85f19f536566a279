//! Observes addresses that accept connections.

use std::{
    io::{self, Read},
    net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs},
    os::fd::OwnedFd,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt},
};

use super::super::lens::{Lens, Seen, Unseen};
use crate::checks::{Address, Rule};

const TIMEOUT: Duration = Duration::from_millis(500);

/// Default time limit for the greeting of a server.
const GREETING: Duration = Duration::from_secs(5);

/// Maximum size of a greeting.
const LONGEST_GREETING: usize = 64 << 10;

/// Connects to an address, and waits for the greeting if it matters.
pub(super) fn reachable(rule: &Rule, lens: &Lens) -> Seen {
    let address: Address = rule.subject.parse().map_err(Unseen::Not)?;
    let own = rule.options.timeout.unwrap_or(TIMEOUT);
    let deadline = Instant::now() + lens.within(own);
    let left = || deadline.saturating_duration_since(Instant::now());
    let Some(found) = resolve(&address.host, address.port, left()) else { return Ok(false.into()) };
    for place in found {
        let stream = match open(place, rule.options.local_address, left(), lens) {
            Ok(stream) => stream,
            Err(Errno::ADDRNOTAVAIL) if rule.options.local_address.is_some() => {
                return Err(Unseen::Cannot("the local address is none of this machine".to_owned()));
            }
            Err(_) => {
                lens.tick()?;
                continue;
            }
        };
        let Some(pattern) = &rule.options.greeting else { return Ok(true.into()) };
        let said =
            listen(stream, lens.within(rule.options.timeout.unwrap_or(GREETING)), |text| pattern.holds(text));
        lens.tick()?;
        return if pattern.holds(&said) {
            Ok(true.into())
        } else {
            Err(Unseen::Not(format!("it said {:?}: {pattern}", said.lines().next().unwrap_or_default())))
        };
    }
    Ok(false.into())
}

/// Resolves a host name; `None` if it is unknown or the time limit is exceeded.
pub(super) fn resolve(host: &str, port: u16, limit: Duration) -> Option<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(vec![SocketAddr::new(address, port)]);
    }
    let (tell, told) = mpsc::channel();
    let host = host.to_owned();
    // The system resolver has no time limit.
    let ask = move || {
        let _ = tell.send((host.as_str(), port).to_socket_addrs().map(Iterator::collect));
    };
    thread::Builder::new().name("resolve".to_owned()).spawn(ask).ok()?;
    told.recv_timeout(limit).ok()?.ok()
}

/// Connects, optionally from a local address, within the time limit and until ccm is asked to stop.
fn open(to: SocketAddr, from: Option<IpAddr>, limit: Duration, lens: &Lens) -> Result<TcpStream, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(from) = from {
        bind(&socket, &SocketAddr::new(from, 0))?;
    }
    match connect(&socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
            let mut waiting =
                [PollFd::new(&socket, PollFlags::OUT), PollFd::new(&lens.host.interrupt, PollFlags::IN)];
            poll(&mut waiting, Some(&limit))?;
            if waiting[0].revents().is_empty() {
                return Err(Errno::TIMEDOUT);
            }
            sockopt::socket_error(&socket)??;
        }
        Err(errno) => return Err(errno),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).map_err(|_| Errno::IO)?;
    Ok(stream)
}

/// Reads the greeting of a server until it is sufficient, the server closes the connection, or the time limit is
/// exceeded.
fn listen(mut stream: TcpStream, limit: Duration, is_enough: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + limit;
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let text = String::from_utf8_lossy(&said).into_owned();
        let is_over = left.is_zero() || said.len() > LONGEST_GREETING || !said.is_empty() && is_enough(&text);
        if is_over || stream.set_read_timeout(Some(left)).is_err() {
            return text;
        }
        match stream.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return text,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
        }
    }
}
