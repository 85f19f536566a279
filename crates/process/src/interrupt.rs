//! Signals that ask the program to stop.
//!
//! A signal only sets a mark. A long operation checks the mark between two steps, or polls the descriptor together with its
//! own, and stops at a safe point.
//!
//! A user who presses Ctrl-C again does not want to wait: a second SIGINT kills the running commands and terminates the program
//! immediately. A thread does this, because the others can be blocked.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::low_level::{emulate_default_handler, pipe, unregister};

/// Signals within this time are one request: `timeout` signals a process and then its group.
const ONE_REQUEST: Duration = Duration::from_millis(50);

/// A signal that asks the program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal is gone.
    Hangup,
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager or `kill`.
    Terminate,
}

impl Signal {
    const ALL: [Signal; 3] = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];

    /// Returns the number that the kernel uses for it.
    pub fn number(self) -> i32 {
        match self {
            Signal::Hangup => SIGHUP,
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
        }
    }

    /// Returns the value of the mark after this signal. Zero means no signal.
    fn mark(self) -> usize {
        match self {
            Signal::Hangup => 1,
            Signal::Interrupt => 2,
            Signal::Terminate => 3,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signal::Hangup => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        })
    }
}

/// Reports whether a signal has requested the program to stop. Clones share one mark.
#[derive(Clone)]
pub struct Interrupt(Arc<Shared>);

struct Shared {
    mark: Arc<AtomicUsize>,
    /// Readable from the first signal on, because nothing reads from it.
    wake: UnixStream,
    /// Keeps `wake` open: a closed socket would be readable.
    waker: UnixStream,
    registered: Vec<SigId>,
    /// Called before the program terminates immediately.
    on_abort: Arc<Mutex<Vec<Killer>>>,
    /// How long a running command may continue after the signal.
    grace: Duration,
    /// Time at which the signal was first noticed.
    seen: OnceLock<Instant>,
}

/// Reports SIGHUP, which requests a service to reload its configuration.
pub struct Hangups {
    wake: UnixStream,
    registered: SigId,
}

type Killer = (u64, Box<dyn Fn() + Send>);

/// A registration of [`Interrupt::on_abort`], which ends when it is dropped.
pub struct OnAbort {
    number: u64,
    killers: Arc<Mutex<Vec<Killer>>>,
}

impl Drop for OnAbort {
    fn drop(&mut self) {
        let mut killers = self.killers.lock().unwrap_or_else(PoisonError::into_inner);
        killers.retain(|(number, _)| *number != self.number);
    }
}

impl Interrupt {
    /// Starts listening for SIGHUP, SIGINT and SIGTERM.
    ///
    /// If SIGHUP was ignored when the program started, as with `nohup`, it stays ignored. SIGINT and SIGTERM do not: shells
    /// start background jobs with SIGINT ignored.
    pub fn install() -> io::Result<Self> {
        Self::listen(&Signal::ALL, Duration::ZERO)
    }

    /// Starts listening as a service: SIGHUP is a request to reload, and a running command has `grace` to finish after a
    /// request to stop. No command is started during that time.
    pub fn install_for_service(grace: Duration) -> io::Result<(Self, Hangups)> {
        let interrupt = Self::listen(&[Signal::Interrupt, Signal::Terminate], grace)?;
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let registered = pipe::register(SIGHUP, waker)?;
        Ok((interrupt, Hangups { wake, registered }))
    }

    fn listen(signals: &[Signal], grace: Duration) -> io::Result<Self> {
        let mut shared = Shared::quiet()?;
        shared.grace = grace;
        // Instead of ending the program, writing beyond the limit of file sizes then fails. Unlike a signal that is
        // ignored, one that is listened to means to the programs started from here what it always does.
        shared.registered.push(signal_hook::flag::register(SIGXFSZ, Arc::default())?);
        let hangup_is_ignored = ignored_signals() & (1 << (SIGHUP - 1)) != 0;
        for &signal in signals {
            let number = signal.number();
            if signal == Signal::Hangup && hangup_is_ignored {
                continue;
            }
            // The actions of a signal run in the order of registration: who wakes up finds the mark.
            let mark = Arc::clone(&shared.mark);
            shared.registered.push(signal_hook::flag::register_usize(number, mark, signal.mark())?);
            shared.registered.push(pipe::register(number, shared.waker.try_clone()?)?);
        }
        // One that came between the two has left its mark and woken nobody.
        if shared.mark.load(Ordering::Relaxed) != 0 {
            (&shared.waker).write_all(&[0])?;
        }
        shared.end_at_once_when_asked_again()?;
        Ok(Self(Arc::new(shared)))
    }

    /// Registers `kill` to be called before the program terminates immediately, until the returned value is dropped.
    pub fn on_abort(&self, kill: impl Fn() + Send + 'static) -> OnAbort {
        let killers = Arc::clone(&self.0.on_abort);
        let mut held = killers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = held.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        held.push((number, Box::new(kill)));
        drop(held);
        OnAbort { number, killers }
    }

    /// Returns an interrupt that no signal reaches.
    pub fn never() -> io::Result<Self> {
        Ok(Self(Arc::new(Shared::quiet()?)))
    }

    /// Returns the latest signal, if one arrived. Once it returns a signal, it always does.
    pub fn requested(&self) -> Option<Signal> {
        let mark = self.0.mark.load(Ordering::Relaxed);
        let signal = Signal::ALL.into_iter().find(|signal| signal.mark() == mark)?;
        self.0.seen.get_or_init(Instant::now);
        Some(signal)
    }

    /// Returns the signal and the remaining grace period of running commands; `None` if no signal arrived.
    pub fn grace_left(&self) -> Option<(Signal, Duration)> {
        let signal = self.requested()?;
        let since = self.0.seen.get().map(Instant::elapsed).unwrap_or_default();
        Some((signal, self.0.grace.saturating_sub(since)))
    }

    /// Waits for this time, or until a signal arrives.
    pub fn pause(&self, pause: Duration) -> Option<Signal> {
        let started = Instant::now();
        loop {
            let left = pause.saturating_sub(started.elapsed());
            if left.is_zero() || self.requested().is_some() {
                return self.requested();
            }
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            // After any wake-up, clock and mark decide whether to continue.
            let _ = poll(&mut [PollFd::new(self, PollFlags::IN)], Some(&left));
        }
    }
}

/// Standard input, which can be read until its end or until a signal arrives.
#[derive(Clone, Copy)]
pub struct Stdin<'a>(pub &'a Interrupt);

impl io::Read for Stdin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(self.0, PollFlags::IN)];
        while let Err(error) = poll(&mut fds, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        match self.0.requested() {
            Some(signal) => Err(io::Error::other(format!("stopped by {signal}"))),
            None => Ok(rustix::io::read(&stdin, buffer)?),
        }
    }
}

impl AsFd for Interrupt {
    /// Becomes readable with the first signal and stays readable.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

impl Shared {
    fn quiet() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        Ok(Self {
            mark: Arc::default(),
            wake,
            waker,
            registered: Vec::new(),
            on_abort: Arc::default(),
            grace: Duration::ZERO,
            seen: OnceLock::new(),
        })
    }

    fn end_at_once_when_asked_again(&mut self) -> io::Result<()> {
        let (mut requests, request) = UnixStream::pair()?;
        self.registered.push(pipe::register(SIGINT, request)?);
        let on_abort = Arc::clone(&self.on_abort);
        // Where no thread can be started, a second signal does what the first one did.
        let _ = thread::Builder::new().name("abort".to_owned()).stack_size(64 * 1024).spawn(move || {
            if asked_again(&mut requests) {
                on_abort.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|(_, kill)| kill());
                let _ = emulate_default_handler(SIGINT);
            }
        });
        Ok(())
    }
}

impl Hangups {
    /// Returns whether SIGHUP arrived since the last call.
    pub fn take(&mut self) -> bool {
        let mut any = false;
        while let Ok(1..) = self.wake.read(&mut [0; 64]) {
            any = true;
        }
        any
    }
}

impl AsFd for Hangups {
    /// Readable after a SIGHUP until [`Hangups::take`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Hangups {
    fn drop(&mut self) {
        unregister(self.registered);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
    }
}

/// Waits for a second request; returns false when the signal handler was removed.
fn asked_again(requests: &mut UnixStream) -> bool {
    let mut first: Option<Instant> = None;
    // One byte for each signal; end of file when the handler is removed.
    while let Ok(1..) = requests.read(&mut [0]) {
        if first.get_or_insert_with(Instant::now).elapsed() > ONE_REQUEST {
            return true;
        }
    }
    false
}

/// Returns the ignored signals of this process as a bit mask, with the lowest bit for signal 1.
fn ignored_signals() -> u64 {
    // Without /proc, listening is the safe choice.
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::{send, turn};

    fn readable(interrupt: &Interrupt, seconds: i64) -> bool {
        let mut fds = [PollFd::new(interrupt, PollFlags::IN)];
        loop {
            match poll(&mut fds, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })) {
                // The signal itself, delivered to this thread.
                Err(rustix::io::Errno::INTR) => {}
                ready => break ready.unwrap() == 1,
            }
        }
    }

    #[test]
    fn each_signal_leaves_its_mark_and_keeps_the_descriptor_readable() {
        let _turn = turn();
        for signal in Signal::ALL {
            let interrupt = Interrupt::install().unwrap();
            assert_eq!(interrupt.requested(), None);
            assert!(!readable(&interrupt, 0));
            send(signal.number());
            assert!(readable(&interrupt, 30), "{signal} woke nobody");
            assert_eq!(interrupt.clone().requested(), Some(signal));
            assert!(readable(&interrupt, 0), "the descriptor must stay readable");
        }
    }

    #[test]
    fn a_pause_is_over_in_time_or_when_a_signal_comes() {
        let _turn = turn();
        let interrupt = Interrupt::install().unwrap();
        let started = Instant::now();
        assert_eq!(interrupt.pause(Duration::from_millis(30)), None);
        assert!(started.elapsed() >= Duration::from_millis(30));
        send(Signal::Terminate.number());
        assert_eq!(interrupt.pause(Duration::MAX), Some(Signal::Terminate));
    }

    #[test]
    fn one_that_is_never_asked_sees_no_signal() {
        let _turn = turn();
        let listening = Interrupt::install().unwrap();
        let never = Interrupt::never().unwrap();
        send(Signal::Interrupt.number());
        assert!(readable(&listening, 30));
        assert_eq!(never.requested(), None);
        assert!(!readable(&never, 0));
    }

    #[test]
    fn hangups_that_were_ignored_at_the_start_stay_ignored() {
        let name = "interrupt::tests::with_hangups_ignored_alone";
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", "trap '' HUP; exec \"$0\" --exact \"$1\" --ignored"])
            .args([std::env::current_exe().unwrap().as_os_str(), name.as_ref()])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }

    #[test]
    #[ignore = "needs a process that ignores SIGHUP: `hangups_that_were_ignored_at_the_start_stay_ignored` gives it one"]
    fn with_hangups_ignored_alone() {
        let interrupt = Interrupt::install().unwrap();
        assert_eq!(ignored_signals() & 0b1, 0b1, "SIGHUP is the first signal");
        send(Signal::Hangup.number());
        assert!(!readable(&interrupt, 0));
        send(Signal::Terminate.number());
        assert!(readable(&interrupt, 30));
    }
}
