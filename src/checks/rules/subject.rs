//! What ports, addresses and versions in rules are made of.

use std::str::FromStr;

/// A port that somebody may be listening on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) protocol: Protocol,
    pub(crate) number: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Over IPv4, be it by a listener for both.
    Tcp,
    Tcp4,
    Tcp6,
    Udp,
    Udp4,
    Udp6,
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (protocol, number) = text.split_once(':').unwrap_or(("tcp", text));
        let protocol = match protocol {
            "tcp" => Protocol::Tcp,
            "tcp4" => Protocol::Tcp4,
            "tcp6" => Protocol::Tcp6,
            "udp" => Protocol::Udp,
            "udp4" => Protocol::Udp4,
            "udp6" => Protocol::Udp6,
            _ => return Err(format!("\"{text}\" is not a port: write it like 80, tcp6:80 or udp:53")),
        };
        match number.parse() {
            Ok(number) if number > 0 => Ok(Self { protocol, number }),
            _ => Err(format!("\"{text}\" is not a port: write it like 80, tcp6:80 or udp:53")),
        }
    }
}

/// A host and a port that can be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// A name, or an address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("\"{text}\" is not an address: write it like tcp://host:80");
        let rest = match text.split_once("://") {
            Some(("tcp", rest)) => rest,
            Some(("udp", _)) => {
                return Err(format!(
                    "\"{text}\" cannot be tried: whoever gets an UDP packet need not answer"
                ));
            }
            Some(_) => return Err(bad()),
            None => text,
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(bad)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        if host.is_empty() || bracketed.is_none() && host.contains([':', '[', ']', '/']) {
            return Err(bad());
        }
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

/// A version of a package and how the installed one has to stand to it, in the order of the package manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionWanted {
    pub(crate) relation: &'static str,
    pub(crate) version: String,
}

impl FromStr for VersionWanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let relations = [">=", "<=", "!=", ">", "<", "="];
        let found = relations.into_iter().find_map(|sign| Some((sign, text.trim().strip_prefix(sign)?)));
        let (relation, version) = found.unwrap_or(("=", text));
        let version = version.trim_start_matches('=').trim();
        if version.is_empty() || version.contains(char::is_whitespace) {
            return Err(format!("\"{text}\" is not a version with its relation: write it like \">=1.2\""));
        }
        Ok(Self { relation, version: version.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_addresses_are_read_or_refused() {
        let port = |protocol, number| Ok(Port { protocol, number });
        for (text, expected) in [
            ("80", port(Protocol::Tcp, 80)),
            ("tcp:80", port(Protocol::Tcp, 80)),
            ("tcp6:443", port(Protocol::Tcp6, 443)),
            ("udp:53", port(Protocol::Udp, 53)),
        ] {
            assert_eq!(text.parse::<Port>(), expected);
        }
        for text in ["", "0", "65536", "http:80", "tcp:", "tcp:x", "80:tcp"] {
            assert!(text.parse::<Port>().is_err(), "{text}");
        }
        let address = |host: &str, port| Ok(Address { host: host.to_owned(), port });
        for (text, expected) in
            [("tcp://h:80", address("h", 80)), ("h:80", address("h", 80)), ("[::1]:80", address("::1", 80))]
        {
            assert_eq!(text.parse::<Address>(), expected);
        }
        for text in ["udp://h:53", "h", "h:", ":80", "::1:80", "http://h:80", "h:99999", "h/x:80"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
