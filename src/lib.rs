//! ccm brings a machine to a declared state.

use std::process::ExitCode;

/// Runs the program with the process's own arguments and environment.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
