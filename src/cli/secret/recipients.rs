//! `ccm secret recipients`

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::{Exit, Failure, Output};
use crate::{
    host::input::{self, InputError},
    secrets::{check_recipient, normal},
};

/// Public halves of the host keys that ccm uses as identities, the preferred one first.
const KEYS: [&str; 2] = ["/etc/ssh/ssh_host_ed25519_key.pub", "/etc/ssh/ssh_host_rsa_key.pub"];

/// A public key is never larger.
const LARGEST: u64 = 64 << 10;

/// Print the ssh key of this machine, or of other machines, as a recipient
///
/// A recipient is for `.sops.yaml`. Its host opens the data with its ssh key, so you do not have to distribute keys.
#[derive(Args)]
#[command(after_help = "Examples:\n  ccm secret recipients\n  ccm secret recipients -i hosts.ini --on web")]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let recipient = of_host()?;
    if arguments.json {
        let document = json!({ "protocol": "io.choria.ccm.v1.secret.recipients", "recipients": [recipient] });
        output.line(&document.to_string());
    } else {
        output.line(&recipient);
    }
    Ok(Exit::Success)
}

/// Returns the recipient that the ssh host key of this machine opens.
fn of_host() -> Result<String, Failure> {
    for path in KEYS {
        let bytes = match input::read_file(Path::new(path), LARGEST) {
            Ok(bytes) => bytes,
            Err(InputError::Missing) => continue,
            Err(error) => return Err(Failure::new(format!("cannot read {path}: {error}"))),
        };
        let recipient = normal(&String::from_utf8_lossy(&bytes));
        return match check_recipient(&recipient) {
            Ok(()) => Ok(recipient),
            Err(error) => Err(Failure::new(format!("{path}: {error}"))),
        };
    }
    Err(Failure::new(format!("this machine has no ssh host key: neither {} nor {}", KEYS[0], KEYS[1])))
}
