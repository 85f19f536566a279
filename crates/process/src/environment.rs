//! What a command finds in its environment before anything is added to it.

use std::env;

use super::Command;

/// Where an environment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// All that this program was started with.
    Own,
    /// What somebody has who just logged in.
    Login,
}

/// What a login has from the machine and not from the user: where programs are, how to speak, what time it is and how
/// to reach the network. Proxies are known in both spellings.
const OF_THE_MACHINE: [&str; 13] = [
    "PATH",
    "LANG",
    "TZ",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

impl Command<'_> {
    pub(super) fn set_environment(&self, spawning: &mut std::process::Command) {
        if self.base == Base::Login {
            let kept = OF_THE_MACHINE.iter().filter_map(|name| Some((name, env::var_os(name)?)));
            spawning.env_clear().envs(kept);
        }
        spawning.envs(self.environment.iter().map(|(key, value)| (key, value)));
        if let Some(path) = &self.search_path {
            spawning.env("PATH", path);
        }
    }
}
