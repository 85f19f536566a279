//! Processes that outlive the login session that started them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use super::look;

/// Exists while systemd manages the machine: `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";

/// Returns the beginning of a command line that starts a program in a scope of its own. It is empty unless logind kills the
/// processes of a user at the end of a session (`KillUserProcesses=yes`).
pub(crate) fn outside_session(unit: &str) -> Vec<String> {
    if !look::is_directory(Path::new(BOOTED)) || !kills_user_processes() {
        return Vec::new();
    }
    let uid = rustix::process::geteuid();
    let manager = if uid.is_root() { "--system" } else { "--user" };
    if !uid.is_root() && !look::is_directory(Path::new(&format!("/run/user/{}/systemd", uid.as_raw()))) {
        return Vec::new();
    }
    let unit = format!("--unit={unit}");
    ["systemd-run", manager, "--scope", "--quiet", "--no-ask-password", "--collect", &unit, "--"]
        .map(str::to_owned)
        .to_vec()
}

fn kills_user_processes() -> bool {
    let mut command = Command::new("busctl");
    command.args(["get-property", "org.freedesktop.login1", "/org/freedesktop/login1"]);
    command.args(["org.freedesktop.login1.Manager", "KillUserProcesses"]);
    let finished = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    finished.is_ok_and(|finished| finished.stdout.starts_with(b"b true"))
}
