//! The command line of `ssh`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use super::{Destination, stub::Become};
use crate::host::process::CompanionCommand;

/// How hosts are reached.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    /// `ssh` or a replacement.
    pub(crate) program: OsString,
    /// `KEY=VALUE` for `-o`.
    pub(crate) options: Vec<String>,
    /// Text of the user's ssh configuration, in lower case.
    pub(crate) configuration: String,
    /// From the start of `ssh` to the marker.
    pub(crate) connect_timeout: Duration,
    /// User to become; hosts of an inventory can differ.
    pub(crate) becomes: Become,
    /// Program and socket for questions; `None` if no terminal can answer.
    pub(crate) askpass: Option<(PathBuf, PathBuf)>,
}

/// Names the socket for questions to `ccm` when it runs as the askpass program of `ssh`.
pub(crate) const ASKPASS_SOCKET: &str = "CCM_ASKPASS_SOCKET";
/// Names the host of the question.
pub(crate) const ASKPASS_HOST: &str = "CCM_ASKPASS_HOST";

impl Transport {
    /// Returns the command that runs `remote` on a host.
    pub(super) fn command(&self, host: &Destination, remote: &str) -> CompanionCommand {
        let mut command = CompanionCommand::new(&self.program).arguments(self.arguments(host, remote));
        if let Some((program, socket)) = &self.askpass {
            command = command
                .variable("SSH_ASKPASS", program)
                .variable("SSH_ASKPASS_REQUIRE", "force")
                .variable(ASKPASS_SOCKET, socket)
                .variable(ASKPASS_HOST, &host.name)
                .default_variable("DISPLAY", ":0");
        }
        command
    }

    fn arguments(&self, host: &Destination, remote: &str) -> Vec<String> {
        let mut arguments = vec!["-T".to_owned()];
        let mut option = |option: &str| arguments.extend(["-o".to_owned(), option.to_owned()]);
        self.options.iter().for_each(|given| option(given));
        if self.askpass.is_none() {
            option("BatchMode=yes");
        }
        for (key, value) in [("ConnectTimeout", "10"), ("ServerAliveInterval", "15")] {
            if !self.sets(key) {
                option(&format!("{key}={value}"));
            }
        }
        // A session of the user can set these for a terminal, where another command fails with them.
        option("RemoteCommand=none");
        option("ClearAllForwardings=yes");
        if let Some(port) = host.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        if let Some(user) = &host.user {
            arguments.extend(["-l".to_owned(), user.clone()]);
        }
        if let Some(key) = &host.key {
            arguments.extend(["-i".to_owned(), key.clone()]);
        }
        arguments.extend(host.arguments.iter().cloned());
        arguments.extend(["--".to_owned(), host.address.clone(), remote.to_owned()]);
        arguments
    }

    /// Returns whether the user sets an option.
    fn sets(&self, key: &str) -> bool {
        let key = key.to_lowercase();
        self.options.iter().any(|option| option.to_lowercase().starts_with(&key))
            || self.configuration.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport() -> Transport {
        Transport {
            program: "ssh".into(),
            options: vec!["ConnectTimeout=3".to_owned()],
            configuration: String::new(),
            connect_timeout: Duration::from_secs(30),
            becomes: Become::Nothing,
            askpass: None,
        }
    }

    #[test]
    fn options_of_the_user_come_first_and_the_destination_follows_two_hyphens() {
        let host = Destination::parse("ann@web1:2222").unwrap();
        let expected = "-T -o ConnectTimeout=3 -o BatchMode=yes -o ServerAliveInterval=15 -o RemoteCommand=none \
                        -o ClearAllForwardings=yes -p 2222 -l ann -- web1 true";
        assert_eq!(transport().arguments(&host, "true").join(" "), expected);
    }

    #[test]
    fn configuration_of_the_user_replaces_defaults() {
        let transport = Transport { configuration: "serveraliveinterval 5\n".to_owned(), ..transport() };
        let arguments = transport.arguments(&Destination::parse("web1").unwrap(), "true");
        assert!(!arguments.iter().any(|argument| argument.starts_with("ServerAlive")), "{arguments:?}");
    }
}
