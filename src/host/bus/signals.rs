//! Signals of systemd about changed units. The new state has to be queried separately.

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

/// Connection to the bus that receives signals about units.
pub(crate) struct UnitSignals(Connection);

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnitSignal {
    /// The state of one unit.
    Unit(String),
    /// The set of units, or their enablement.
    Files,
}

impl UnitSignals {
    /// Connects to the bus and subscribes to signals about units.
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

    /// Returns the changes since the last call; an error if the connection is closed.
    pub(crate) fn take(&mut self) -> io::Result<Vec<UnitSignal>> {
        let messages = self.0.receive()?;
        let mut signals: Vec<UnitSignal> = messages.iter().filter_map(|message| signal(message)).collect();
        signals.sort();
        signals.dedup();
        Ok(signals)
    }
}

impl AsFd for UnitSignals {
    /// Readable when a signal has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the change that a message reports, if it is a signal about units.
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
