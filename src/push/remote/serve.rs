//! `ccm remote serve`: talks to the controller over standard input and output.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, inotify, memfd_create},
    io::Errno,
    process::{Signal, kill_process},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{
    super::{
        PROTOCOL,
        frame::{self, Frame},
        protocol::{RunId, ToController, ToTarget},
        version,
    },
    spool::{Spool, Spools},
    workspace::Input,
};
use crate::{
    host::{files::hex, process::CompanionCommand, scope::outside_session},
    state::StateDirectory,
};

/// Settings of the server.
pub(crate) struct Server<'a> {
    pub(crate) state: &'a StateDirectory,
    /// The program, to start the supervisor.
    pub(crate) program: &'a Path,
    /// Variables that configure ccm, which the run must not inherit.
    pub(crate) variables: &'a [String],
    /// Returns the digests of the encrypted parts in a file that no identity opens.
    pub(crate) unopened: &'a dyn Fn(&str, &[u8]) -> Vec<String>,
}

/// Number and kind of a stored message.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
    message: String,
}

/// Serves one connection until its end.
pub(crate) fn serve(server: &Server, input: impl AsFd + Read, mut output: impl Write) -> io::Result<()> {
    let mut input = input;
    frame::send(&mut output, &ToController::Hello { protocol: PROTOCOL, version: version() })?;
    let spools = Spools::open(server.state);
    loop {
        let Some(Frame::Message(content)) = frame::read(&mut input)? else { return Ok(()) };
        let (run, after) = match frame::parse(&content).map_err(io::Error::other)? {
            ToTarget::Begin { run, request, archive, sha256 } => {
                let Some(mut sent) = receive(&mut input, request, archive, &sha256)? else { return Ok(()) };
                if !unseal(server, &mut sent, &mut input, &mut output)? {
                    return Ok(());
                }
                if let Err(error) = start(server, &spools, &run, sent.into()) {
                    let reason = format!("the run cannot be started: {error}");
                    return frame::send(&mut output, &ToController::Refused { reason });
                }
                (run, 0)
            }
            ToTarget::Attach { run, after } => (run, after),
            ToTarget::Opened { .. } | ToTarget::Stop | ToTarget::Done => return Ok(()),
        };
        match spools.find(&run) {
            Some(spool) => {
                frame::send(&mut output, &ToController::Started)?;
                return stream(&spools, spool, after, input, output);
            }
            None => frame::send(&mut output, &ToController::Unknown)?,
        }
    }
}

/// Receives the input of a run into memory: the lengths of request and archive, the request, and the archive.
fn receive(input: &mut impl Read, request: usize, archive: usize, sha256: &str) -> io::Result<Option<File>> {
    let mut memory = File::from(memfd_create("ccm-push", MemfdFlags::CLOEXEC)?);
    memory.write_all(&(request as u64).to_be_bytes())?;
    memory.write_all(&(archive as u64).to_be_bytes())?;
    let mut digest = Sha256::new();
    let mut store = |bytes: &[u8]| {
        digest.update(bytes);
        memory.write_all(bytes)
    };
    if !receive_bytes(input, request + archive, &mut store)? {
        return Ok(None);
    }
    if hex(&digest.finalize()) != sha256 {
        return Err(io::Error::other("the input is damaged"));
    }
    memory.seek(SeekFrom::Start(0))?;
    Ok(Some(memory))
}

/// Receives bytes, and returns whether all of them arrived.
fn receive_bytes(
    input: &mut impl Read,
    mut missing: usize,
    store: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    while missing > 0 {
        let Some(Frame::Bytes(bytes)) = frame::read(input)? else { return Ok(false) };
        missing =
            missing.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("more input than announced"))?;
        store(&bytes)?;
    }
    Ok(true)
}

/// Asks the controller to open the encrypted data that no identity here opens, and adds its answer to the input of the run.
/// Returns whether the answer arrived.
fn unseal(
    server: &Server,
    sent: &mut File,
    input: &mut impl Read,
    output: &mut impl Write,
) -> io::Result<bool> {
    let mut read = Input::read(&mut *sent)?;
    if read.request.sealed {
        let mut digests = Vec::new();
        read.files(&mut |name, bytes| digests.extend((server.unopened)(name, bytes)))?;
        frame::send(output, &ToController::Sealed { digests })?;
        let Some(Frame::Message(content)) = frame::read(input)? else { return Ok(false) };
        let ToTarget::Opened { length } = frame::parse(&content).map_err(io::Error::other)? else {
            return Ok(false);
        };
        sent.seek(SeekFrom::End(0))?;
        if !receive_bytes(input, length, &mut |bytes| sent.write_all(bytes))? {
            return Ok(false);
        }
    }
    sent.seek(SeekFrom::Start(0))?;
    Ok(true)
}

/// Starts the supervisor, unless the run exists already.
fn start(server: &Server, spools: &Spools, run: &RunId, input: OwnedFd) -> io::Result<()> {
    let Some(events) = spools.create(run)? else { return Ok(()) };
    let mut words: Vec<OsString> =
        outside_session(&format!("ccm-push-{}", run.as_str())).into_iter().map(OsString::from).collect();
    words.push(server.program.into());
    let command = CompanionCommand::new(&words[0]).arguments(words.split_off(1));
    let command = command.arguments(["remote", "supervise"]);
    let command = server.variables.iter().fold(command, CompanionCommand::without_variable);
    command.directory(Path::new("/")).input(input).output(events).start()?.release();
    Ok(())
}

/// Sends the events of a run after `after`, and more of them as they come.
fn stream(
    spools: &Spools,
    mut spool: Spool,
    after: u64,
    mut input: impl AsFd + Read,
    mut output: impl Write,
) -> io::Result<()> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let interest = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE;
    // Without a watch, the file is read once a second.
    let _ = inotify::add_watch(&watch, spools.path(&spool), interest);
    let mut has_ended = false;
    // The first line is not an event.
    let mut is_first = true;
    loop {
        let is_abandoned = spool.is_abandoned();
        while let Some(line) = spool.next_line()? {
            if std::mem::take(&mut is_first) {
                continue;
            }
            let Ok(Numbered { n, message }) = serde_json::from_slice(&line) else { continue };
            if n > after {
                output.write_all(&frame::written(&line))?;
            }
            has_ended |= message == "end";
        }
        if is_abandoned && !has_ended {
            spools.remove(&spool);
            return frame::send(&mut output, &ToController::Died);
        }
        output.flush()?;
        if !wait(&watch, &input)? {
            continue;
        }
        let Some(Frame::Message(content)) = frame::read(&mut input)? else { return Ok(()) };
        match frame::parse(&content).map_err(io::Error::other)? {
            ToTarget::Stop => stop(&spool),
            ToTarget::Done if has_ended => {
                spools.remove(&spool);
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
}

/// Waits for events or for the controller; returns whether the controller has sent something.
fn wait(watch: &OwnedFd, input: &impl AsFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(input, PollFlags::IN), PollFd::new(watch, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let from_controller = !polled[0].revents().is_empty();
    while rustix::io::read(watch, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
    Ok(from_controller)
}

/// Stops the run at its next safe point.
fn stop(spool: &Spool) {
    if let Some(supervisor) = spool.supervisor() {
        let _ = kill_process(supervisor, Signal::TERM);
    }
}
