//! The socket through which `ccm agent status` and `ccm agent run` talk to a running agent: one line of JSON each way.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mailbox::Sender;

/// More callers at once are told to come again.
const MOST_CALLERS: usize = 8;
const LONGEST_LINE: u64 = 64 * 1024;
/// How long a caller may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Command {
    /// To know how things are.
    Status,
    /// That everything is applied now, and to know what came of it.
    Run,
}

/// A run that somebody asked for, and where to tell what came of it.
pub(crate) struct Asked(pub(crate) mpsc::Sender<Value>);

/// Answers callers, in threads of its own, for as long as the program runs.
pub(crate) fn listen(path: &Path, status: Arc<Mutex<Value>>, ask: Sender<Asked>) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    // The folder is closed to others; so is the socket.
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600))?;
    let callers = Arc::new(AtomicUsize::new(0));
    thread::Builder::new().name("control".to_owned()).stack_size(128 * 1024).spawn(move || {
        for caller in listener.incoming().flatten() {
            if callers.fetch_add(1, Ordering::Relaxed) >= MOST_CALLERS {
                callers.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (status, ask, callers) = (Arc::clone(&status), ask.clone(), Arc::clone(&callers));
            let answer = move || {
                // A caller that goes away is answered no more.
                let _ = serve(&caller, &status, &ask);
                callers.fetch_sub(1, Ordering::Relaxed);
            };
            let _ = thread::Builder::new().name("caller".to_owned()).stack_size(256 * 1024).spawn(answer);
        }
    })?;
    Ok(())
}

fn serve(caller: &UnixStream, status: &Mutex<Value>, ask: &Sender<Asked>) -> io::Result<()> {
    caller.set_read_timeout(Some(PATIENCE))?;
    caller.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(caller.take(LONGEST_LINE)).read_line(&mut line)?;
    let wanted: Result<Value, _> = serde_json::from_str(&line);
    let command = wanted.ok().and_then(|wanted| serde_json::from_value(wanted["command"].clone()).ok());
    let answer = match command {
        Some(Command::Status) => status.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        Some(Command::Run) => {
            let (sender, receiver) = mpsc::channel();
            let asked = ask.send(Asked(sender)).is_ok();
            let answer = if asked { receiver.recv().ok() } else { None };
            answer.unwrap_or_else(|| json!({ "error": "the agent is ending" }))
        }
        None => json!({ "error": "unknown command" }),
    };
    let mut caller = caller;
    writeln!(caller, "{answer}")
}

/// Asks a running agent something and returns its answer.
pub(crate) fn call(path: &Path, command: Command) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    writeln!(stream, "{}", json!({ "command": command }))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}
