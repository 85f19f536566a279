//! Questions on the terminal whose answers are not shown.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
};

use age::secrecy::SecretString;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use crate::{secrets::Prompt, visible::visible};

/// The terminal of the process, even if its standard streams are redirected.
pub(super) struct Terminal;

impl Prompt for Terminal {
    fn passphrase(&self, what: &str) -> Option<SecretString> {
        let answer = ask(&format!("Passphrase for {}: ", visible(what))).ok()??;
        Some(SecretString::from(answer.as_str().to_owned()))
    }
}

/// Asks for a secret; `None` without an answer.
pub(super) fn ask(question: &str) -> io::Result<Option<Zeroizing<String>>> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let quiet = Quiet::begin(&terminal)?;
    (&terminal).write_all(question.as_bytes())?;
    let mut answer = Zeroizing::new(String::new());
    let read = BufReader::with_capacity(1, &terminal).read_line(&mut answer);
    drop(quiet);
    (&terminal).write_all(b"\n")?;
    let length = answer.trim_end_matches(['\n', '\r']).len();
    answer.truncate(length);
    Ok(Some(answer).filter(|_| read.is_ok_and(|count| count > 0)))
}

/// Asks a question whose answer is yes or no. An empty answer is the one in capitals.
pub(super) fn confirm(question: &str) -> io::Result<bool> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    (&terminal).write_all(question.as_bytes())?;
    let mut answer = String::new();
    BufReader::with_capacity(1, &terminal).read_line(&mut answer)?;
    Ok(match answer.trim().to_lowercase().as_str() {
        "" => question.contains("[Y/"),
        answer => answer == "y" || answer == "yes",
    })
}

/// Turns the echo of the terminal on again when it is dropped.
struct Quiet<'t> {
    terminal: &'t File,
    before: Termios,
}

impl<'t> Quiet<'t> {
    fn begin(terminal: &'t File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _gone = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}
