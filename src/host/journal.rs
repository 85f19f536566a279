//! Structured entries of the systemd journal, written in its native protocol.

use std::os::unix::net::UnixDatagram;

const SOCKET: &str = "/run/systemd/journal/socket";
const IDENTIFIER: &str = "ccm";

/// Severity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    Error = 3,
    Info = 6,
}

/// Writes an entry. A machine without the journal has none, and that is not an error.
pub(crate) fn write(priority: Priority, message: &str, fields: &[(&str, &str)]) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    // A full journal does not hold up a run.
    if socket.set_nonblocking(true).is_ok() {
        let _ = socket.send_to(&entry(priority, message, fields), SOCKET);
    }
}

fn entry(priority: Priority, message: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let number = (priority as u8).to_string();
    let own = [("SYSLOG_IDENTIFIER", IDENTIFIER), ("PRIORITY", number.as_str()), ("MESSAGE", message)];
    let mut text = Vec::new();
    for (name, value) in own.iter().chain(fields) {
        text.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            text.push(b'\n');
            text.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            text.push(b'=');
        }
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_line_endings_are_written_with_their_length() {
        let entry = entry(Priority::Error, "one\ntwo", &[("CCM_RUN", "x")]);
        let expected = [
            b"SYSLOG_IDENTIFIER=ccm\nPRIORITY=3\nMESSAGE\n".as_slice(),
            &7_u64.to_le_bytes(),
            b"one\ntwo\nCCM_RUN=x\n",
        ];
        assert_eq!(entry, expected.concat());
    }
}
