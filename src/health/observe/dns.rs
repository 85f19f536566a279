//! Observes DNS records: a query over UDP (RFC 1035) to the server of the machine or to another server.

use std::{
    cell::OnceCell,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use super::{
    super::lens::{Lens, Unseen},
    Observer,
    addresses::resolve,
};
use crate::checks::{Observed, Rule};

const TIMEOUT: Duration = Duration::from_millis(500);
const PORT: u16 = 53;

/// Supported record types with their numbers.
const TYPES: [(&str, u16); 9] = [
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("CAA", 257),
];

/// Sends the query when the first property is requested. Without a type or server, uses the system resolver.
pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let found: OnceCell<Result<Vec<String>, String>> = OnceCell::new();
    Box::new(move |property| {
        let own = rule.options.timeout.unwrap_or(TIMEOUT);
        let found = found.get_or_init(|| look_up(rule, lens.within(own)));
        lens.tick()?;
        match (found, property) {
            (Ok(addresses), "resolvable") => Ok((!addresses.is_empty()).into()),
            (Ok(addresses), _) => Ok(Observed::from(addresses.clone())),
            (Err(error), _) => Err(Unseen::Cannot(error.clone())),
        }
    })
}

fn look_up(rule: &Rule, limit: Duration) -> Result<Vec<String>, String> {
    let typed = rule.subject.split_once(':').and_then(|(kind, name)| {
        let (kind, number) = TYPES.iter().find(|(known, _)| *known == kind)?;
        Some((*kind, *number, name))
    });
    let (kind, name) = match (typed, &rule.options.server) {
        (None, None) => {
            let found = resolve(&rule.subject, 0, limit).unwrap_or_default();
            return Ok(found.into_iter().map(|address| address.ip().to_string()).collect());
        }
        (Some((_, number, name)), _) => (Some(number), name),
        (None, Some(_)) => (None, rule.subject.as_str()),
    };
    let server = server(rule.options.server.as_deref(), limit)?;
    let deadline = Instant::now() + limit;
    let mut found = Vec::new();
    for kind in kind.map_or(vec![1, 28], |kind| vec![kind]) {
        let left = deadline.saturating_duration_since(Instant::now());
        found.extend(ask(server, name, kind, left).unwrap_or_default());
    }
    Ok(found)
}

/// Returns the server to query: the given one, or the first of the machine.
fn server(given: Option<&str>, limit: Duration) -> Result<SocketAddr, String> {
    let text = match given {
        Some(given) => given.to_owned(),
        None => {
            let settings = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
            let named = settings.lines().find_map(|line| line.trim().strip_prefix("nameserver"));
            named.map_or("127.0.0.1".to_owned(), |server| server.trim().to_owned())
        }
    };
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let (host, port) = match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, port),
        _ => (text.as_str(), PORT),
    };
    let found = resolve(host, port, limit).unwrap_or_default();
    found.first().copied().ok_or_else(|| format!("the server \"{text}\" is not known"))
}

/// Queries a server for records of one type; `None` if no matching response arrives in time.
fn ask(server: SocketAddr, name: &str, kind: u16, limit: Duration) -> Option<Vec<String>> {
    let any: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(server).ok()?;
    let mut id = [0; 2];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty()).ok()?;
    let question = question(name, kind)?;
    // Recursion is desired, and there is one question.
    let request = [&id[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &question].concat();
    socket.send(&request).ok()?;
    let deadline = Instant::now() + limit;
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        socket.set_read_timeout(Some(left).filter(|left| !left.is_zero())).ok()?;
        if left.is_zero() {
            return None;
        }
        let length = socket.recv(&mut buffer).ok()?;
        let answer = &buffer[..length];
        if answer.get(..2) == Some(&id[..]) && answer.get(12..12 + question.len()) == Some(&question[..]) {
            return records(answer, 12 + question.len(), kind);
        }
    }
}

/// Encodes a question: labels, type and class.
fn question(name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut question = Vec::new();
    for label in name.trim_end_matches('.').split('.') {
        question.push(u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length))?);
        question.extend_from_slice(label.as_bytes());
    }
    question.push(0);
    question.extend(kind.to_be_bytes());
    question.extend([0, 1]);
    Some(question)
}

/// Returns the records of the requested type in a response.
fn records(answer: &[u8], start: usize, kind: u16) -> Option<Vec<String>> {
    let count = u16_at(answer, 6)?;
    let mut at = start;
    let mut found = Vec::new();
    for _ in 0..count {
        let (_, after) = name_at(answer, at)?;
        let length = usize::from(u16_at(answer, after + 8)?);
        let data = after + 10;
        let bytes = answer.get(data..data + length)?;
        if u16_at(answer, after)? == kind {
            found.extend(record(answer, data, bytes, kind));
        }
        at = data + length;
    }
    Some(found)
}

/// Returns one record in text form.
fn record(answer: &[u8], at: usize, bytes: &[u8], kind: u16) -> Option<String> {
    let name = |at: usize| Some(format!("{}.", name_at(answer, at)?.0));
    match kind {
        1 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).to_string()),
        28 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        2 | 5 | 12 => name(at),
        15 => Some(format!("{} {}", u16_at(bytes, 0)?, name(at + 2)?)),
        33 => Some(format!(
            "{} {} {} {}",
            u16_at(bytes, 0)?,
            u16_at(bytes, 2)?,
            u16_at(bytes, 4)?,
            name(at + 6)?
        )),
        16 => {
            let (mut text, mut rest) = (Vec::new(), bytes);
            while let Some((length, after)) = rest.split_first() {
                let length = usize::from(*length).min(after.len());
                text.extend_from_slice(&after[..length]);
                rest = &after[length..];
            }
            Some(String::from_utf8_lossy(&text).into_owned())
        }
        _ => {
            let tag = usize::from(*bytes.get(1)?);
            let text = |range| bytes.get(range).map(String::from_utf8_lossy);
            Some(format!("{} {} {}", bytes.first()?, text(2..2 + tag)?, text(2 + tag..bytes.len())?))
        }
    }
}

/// Decodes a name, which can be continued elsewhere in the response, and returns the position of the next field.
fn name_at(answer: &[u8], mut at: usize) -> Option<(String, usize)> {
    let (mut labels, mut end) = (Vec::new(), None);
    // Limits names that refer to themselves.
    for _ in 0..128 {
        let length = usize::from(*answer.get(at)?);
        match length {
            0 => return Some((labels.join("."), end.unwrap_or(at + 1))),
            0xc0.. => {
                end.get_or_insert(at + 2);
                at = usize::from(u16_at(answer, at)? & 0x3fff);
            }
            _ => {
                labels.push(String::from_utf8_lossy(answer.get(at + 1..at + 1 + length)?).into_owned());
                at += 1 + length;
            }
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_also_where_names_go_on_elsewhere() {
        let question = question("a.example", 15).unwrap();
        let mut answer = vec![0, 0, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
        answer.extend(&question);
        let start = answer.len();
        answer.extend([0xc0, 12, 0, 15, 0, 1, 0, 0, 0, 9, 0, 9, 0, 10, 4, b'm', b'a', b'i', b'l', 0xc0, 14]);
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1]);
        assert_eq!(records(&answer, start, 15).unwrap(), ["10 mail.example."]);
        assert_eq!(records(&answer, start, 1).unwrap(), ["192.0.2.1"]);
        for cut in start..answer.len() {
            assert_eq!(records(&answer[..cut], start, 15), None, "{cut}");
        }
    }

    #[test]
    fn a_name_that_leads_to_itself_comes_to_an_end() {
        assert_eq!(name_at(&[0xc0, 0], 0), None);
        assert_eq!(question("a..b", 1), None);
    }
}
