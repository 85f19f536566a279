//! The environment of a command before variables are added.

use std::env;

use super::Command;

/// Initial environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The environment of this process.
    Own,
    /// The environment of a login.
    Login,
}

/// Variables of a login that depend on the machine and not on the user: `PATH`, language, time zone and proxies. Programs
/// read proxies in both spellings.
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

/// A private key, which commands do not inherit.
const PRIVATE_KEY: &str = "SOPS_AGE_KEY";

impl Command<'_> {
    pub(super) fn set_environment(&self, spawning: &mut std::process::Command) {
        if self.base == Base::Login {
            let kept = OF_THE_MACHINE.iter().filter_map(|name| Some((name, env::var_os(name)?)));
            spawning.env_clear().envs(kept);
        }
        spawning.env_remove(PRIVATE_KEY);
        spawning.envs(self.environment.iter().map(|(key, value)| (key, value)));
        if let Some(path) = &self.search_path {
            spawning.env("PATH", path);
        }
    }
}
