//! Starts the process that guards a run until it is confirmed.

use std::{
    ffi::OsString,
    fs::File,
    io,
    path::Path,
    process::{Command, Stdio},
};

use super::{look, process::Detached};

/// Exists while systemd manages the machine: `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";

/// A guard that was started.
pub(crate) enum Guard {
    Service,
    Process(Detached),
}

impl Guard {
    /// Starts a guard: as a transient service that is restarted if it dies, or without systemd as a process.
    pub(crate) fn start(program: &Path, arguments: &[OsString], unit: &str) -> io::Result<Self> {
        if is_service_possible() {
            service(program, arguments, unit).map(|()| Self::Service)
        } else {
            Detached::start(program, arguments).map(Self::Process)
        }
    }

    /// Returns whether the guard is known to have ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Service => false,
            Self::Process(process) => process.has_ended(),
        }
    }
}

/// Whether guards are services of the system.
pub(crate) fn is_service_possible() -> bool {
    rustix::process::geteuid().is_root() && look::is_directory(Path::new(BOOTED))
}

/// Opens the program that this process runs. That works even if the file was replaced or removed meanwhile.
pub(crate) fn running_program() -> io::Result<File> {
    File::open("/proc/self/exe")
}

fn service(program: &Path, arguments: &[OsString], unit: &str) -> io::Result<()> {
    let mut command = Command::new("systemd-run");
    command.args(["--system", "--quiet", "--no-ask-password", "--collect"]).arg(format!("--unit={unit}"));
    command.arg("--description=ccm: undo a run that is not confirmed");
    let properties =
        ["Type=exec", "Restart=on-failure", "RestartSec=1", "StartLimitIntervalSec=0", "OOMPolicy=continue"];
    command.args(properties.map(|property| format!("--property={property}")));
    command.arg("--property=OOMScoreAdjust=-900").arg("--property=TimeoutStopSec=60");
    command.arg("--").arg(program).args(arguments).current_dir("/");
    let finished = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let finished = finished.map_err(|error| io::Error::new(error.kind(), format!("systemd-run: {error}")))?;
    if finished.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&finished.stderr);
    Err(io::Error::other(format!("systemd-run: {}", text.trim())))
}
