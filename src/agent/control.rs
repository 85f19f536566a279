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
#[expect(clippy::disallowed_methods, reason = "the socket is in a private folder")]
pub(crate) fn listen(path: &Path, status: Arc<Mutex<Value>>, ask: Sender<Asked>) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    // The folder is closed to others; so is the socket.
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600))?;
    let callers = Arc::new(AtomicUsize::new(0));
    thread::Builder::new().name("control".to_owned()).stack_size(128 * 1024).spawn(move || {
        for caller in listener.incoming().flatten().map(Arc::new) {
            let (status, ask, own) = (Arc::clone(&status), ask.clone(), Arc::clone(&caller));
            let is_served = Place::take(&callers).is_some_and(|place| {
                let answer = move || {
                    // A caller that goes away is answered no more.
                    let _ = serve(&own, &status, &ask);
                    drop(place);
                };
                let thread = thread::Builder::new().name("caller".to_owned()).stack_size(256 * 1024);
                thread.spawn(answer).is_ok()
            });
            if !is_served {
                let _ = refuse(&caller);
            }
        }
    })?;
    Ok(())
}

/// The place of a caller among those that are served; free again when it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place, if one is free.
    fn take(callers: &Arc<AtomicUsize>) -> Option<Self> {
        let next = |count| (count < MOST_CALLERS).then_some(count + 1);
        callers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(Self(Arc::clone(callers)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells a caller to come again. Nothing is read from it, and a line always has room, so that nobody else waits.
fn refuse(mut caller: &UnixStream) -> io::Result<()> {
    caller.set_nonblocking(true)?;
    let error = format!("the agent is busy: {MOST_CALLERS} others wait for its answer; try again later");
    writeln!(caller, "{}", json!({ "error": error }))
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
#[expect(clippy::disallowed_methods, reason = "the socket of the agent on this machine")]
pub(crate) fn call(path: &Path, command: Command) -> io::Result<Value> {
    let mut stream = UnixStream::connect(path)?;
    // One that is busy answers and hangs up before it has heard the question.
    let is_asked = writeln!(stream, "{}", json!({ "command": command }));
    let mut line = String::new();
    let is_read = BufReader::new(stream).read_line(&mut line);
    if line.is_empty() {
        is_asked.and(is_read)?;
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::agent::mailbox::Mailbox;

    #[test]
    fn whoever_comes_when_all_places_are_taken_is_told_and_a_place_that_is_left_is_free() {
        let folder = std::env::temp_dir().join(format!("ccm-control-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("agent.sock");
        let mailbox: Mailbox<Asked> = Mailbox::new().unwrap();
        let status = Arc::new(Mutex::new(json!({ "pid": 1 })));
        listen(&path, status, mailbox.sender(|asked| asked)).unwrap();
        let call = |command| call(&path, command).unwrap();
        let is_busy =
            |answer: &Value| answer["error"].as_str().is_some_and(|error| error.contains("is busy"));
        // A thread that has answered leaves its place a moment later.
        let insist = |command| {
            iter::repeat_with(|| call(command)).take(1_000_000).find(|answer| !is_busy(answer)).unwrap()
        };
        for _ in 0..2 {
            let mut asked = Vec::new();
            thread::scope(|scope| {
                let waiting: Vec<_> =
                    (0..MOST_CALLERS).map(|_| scope.spawn(|| insist(Command::Run))).collect();
                while asked.len() < MOST_CALLERS {
                    asked.extend(mailbox.take());
                    thread::yield_now();
                }
                for _ in 0..3 {
                    let refused = call(Command::Status);
                    assert!(is_busy(&refused), "{refused}");
                }
                for Asked(answer) in asked.drain(..) {
                    answer.send(json!({ "failed": 0 })).unwrap();
                }
                for caller in waiting {
                    assert_eq!(caller.join().unwrap(), json!({ "failed": 0 }));
                }
            });
            assert_eq!(insist(Command::Status), json!({ "pid": 1 }));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
