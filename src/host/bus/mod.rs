//! systemd on the system bus: changes and properties of units.
//!
//! Implements a small part of D-Bus: authentication, method calls, responses and signals.

mod connection;
mod signals;
mod units;
mod wire;

pub(crate) use connection::Wait;
pub(crate) use signals::{UnitSignal, UnitSignals};
pub(crate) use units::{UnitBus, UnitFacts};

const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const SYSTEMD_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNITS: &str = "/org/freedesktop/systemd1/unit/";

/// Returns the object path of a unit: characters other than letters and digits, and a leading digit, are written as `_`
/// and their hexadecimal code.
fn unit_path(name: &str) -> String {
    let escaped = name.bytes().enumerate().map(|(place, byte)| {
        let is_plain = byte.is_ascii_alphabetic() || (place > 0 && byte.is_ascii_digit());
        if is_plain { char::from(byte).to_string() } else { format!("_{byte:02x}") }
    });
    [UNITS.to_owned()].into_iter().chain(escaped).collect()
}

/// Returns the name of the unit with an object path; `None` for other objects.
fn unit_of(path: &[u8]) -> Option<String> {
    let mut name = Vec::new();
    let mut rest = path.strip_prefix(UNITS.as_bytes())?;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'_') {
            Some(byte) => {
                name.push(byte);
                rest = &tail[2..];
            }
            None => {
                name.push(*first);
                rest = tail;
            }
        }
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_unit_leads_back_to_its_name() {
        for (name, escaped) in [
            ("nginx.service", "nginx_2eservice"),
            ("wg-quick@wg0.service", "wg_2dquick_40wg0_2eservice"),
            ("9p_x.mount", "_39p_5fx_2emount"),
            ("a\\x2b.service", "a_5cx2b_2eservice"),
        ] {
            assert_eq!(unit_path(name), format!("{UNITS}{escaped}"));
            assert_eq!(unit_of(unit_path(name).as_bytes()).as_deref(), Some(name));
        }
        assert_eq!(unit_of(b"/org/freedesktop/systemd1"), None);
    }
}
