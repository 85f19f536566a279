//! The `ccm` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ccm::main()
}
