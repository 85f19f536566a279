//! What systemd tells of its units: that something about one changed. What the state of the unit is, is asked elsewhere.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use super::{
    BUS, BUS_PATH, MANAGER, SYSTEMD, SYSTEMD_PATH,
    connection::Connection,
    unit_of,
    wire::{Answer, Arguments, Call, Header, Kind},
};

/// A connection to the bus on which signals about units arrive.
pub(crate) struct UnitSignals(Connection);

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnitSignal {
    /// The state of one unit.
    Unit(String),
    /// Which units are enabled, or what they are.
    Files,
}

impl UnitSignals {
    /// Connects to the bus and asks for signals about units.
    pub(crate) fn connect() -> io::Result<Self> {
        let mut connection = Connection::open()?;
        let rule = |what: &str| format!("type='signal',sender='{SYSTEMD}',{what}");
        let rules = [
            rule(
                "interface='org.freedesktop.DBus.Properties',path_namespace='/org/freedesktop/systemd1/unit'",
            ),
            rule("member='UnitFilesChanged'"),
        ];
        let rules = rules.each_ref().map(|rule| [rule.as_str()]);
        let listen = |rule| Call {
            to: BUS,
            path: BUS_PATH,
            interface: BUS,
            member: "AddMatch",
            arguments: Arguments::Texts(rule),
            answer: Answer::Unwanted,
        };
        let subscribe = Call {
            to: SYSTEMD,
            path: SYSTEMD_PATH,
            interface: MANAGER,
            member: "Subscribe",
            arguments: Arguments::None,
            answer: Answer::Unwanted,
        };
        connection.send(&[listen(&rules[0]), listen(&rules[1]), subscribe])?;
        Ok(Self(connection))
    }

    /// Returns what has changed since; an error when the bus is gone.
    pub(crate) fn take(&mut self) -> io::Result<Vec<UnitSignal>> {
        let messages = self.0.receive()?;
        let mut signals: Vec<UnitSignal> = messages.iter().filter_map(|message| signal(message)).collect();
        signals.sort();
        signals.dedup();
        Ok(signals)
    }
}

impl AsFd for UnitSignals {
    /// Readable when something was told.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns what a message tells of units, if it is a signal about some.
fn signal(message: &[u8]) -> Option<UnitSignal> {
    let header = Header::read(message).filter(|header| header.kind == Kind::Signal)?;
    if header.member == Some(b"UnitFilesChanged") {
        return Some(UnitSignal::Files);
    }
    unit_of(header.path?).map(UnitSignal::Unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &str, member: &str) -> Vec<u8> {
        let arguments = Arguments::Texts(&["x"]);
        Call { to: SYSTEMD, path, interface: "a.b", member, arguments, answer: Answer::Wanted }.message(7)
    }

    #[test]
    fn the_unit_of_a_signal_is_read_from_its_path() {
        let mut message =
            message("/org/freedesktop/systemd1/unit/wg_2dquick_40wg0_2eservice", "PropertiesChanged");
        assert_eq!(signal(&message), None, "a call is no signal");
        message[1] = 4;
        assert_eq!(signal(&message), Some(UnitSignal::Unit("wg-quick@wg0.service".to_owned())));
        for cut in 0..message.len() {
            let _ = signal(&message[..cut]);
        }
    }

    #[test]
    fn changed_unit_files_concern_all_units() {
        let mut message = message(SYSTEMD_PATH, "UnitFilesChanged");
        message[1] = 4;
        assert_eq!(signal(&message), Some(UnitSignal::Files));
    }
}
