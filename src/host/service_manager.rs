//! Notifications to systemd (`sd_notify(3)`): one datagram per message.

use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Service manager that started this program, if it expects notifications. Clones share the socket.
#[derive(Clone, Default)]
pub(crate) struct ServiceManager {
    socket: Option<Arc<UnixDatagram>>,
    /// Watchdog timeout.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Connects to the socket in `NOTIFY_SOCKET`. A name that begins with `@` is an abstract socket.
    pub(crate) fn connect(socket: Option<&OsStr>, watchdog: Option<Duration>) -> io::Result<Self> {
        let Some(name) = socket.filter(|name| !name.is_empty()) else { return Ok(Self::default()) };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        Ok(Self { socket: Some(Arc::new(socket)), watchdog })
    }

    /// Returns how often to call [`ServiceManager::alive`]: half of the watchdog timeout.
    pub(crate) fn pulse(&self) -> Option<Duration> {
        self.watchdog.map(|watchdog| watchdog / 2)
    }

    /// Notifies that the program has started.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Notifies that the program is stopping.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Notifies that the configuration is being reloaded; [`ServiceManager::ready`] ends this state.
    pub(crate) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Sends a status text in one line.
    pub(crate) fn status(&self, text: &str) {
        self.tell(&format!("STATUS={}", text.replace('\n', " ")));
    }

    /// Resets the watchdog.
    pub(crate) fn alive(&self) {
        if self.watchdog.is_some() {
            self.tell("WATCHDOG=1");
        }
    }

    /// Keeps resetting the watchdog until the returned guard is dropped, for long work with time limits of its own.
    pub(crate) fn busy(&self) -> Busy {
        let Some(pulse) = self.pulse() else { return Busy { end: None, thread: None } };
        let (end, ended) = mpsc::channel::<()>();
        let manager = self.clone();
        let go_on = move || {
            while ended.recv_timeout(pulse) == Err(mpsc::RecvTimeoutError::Timeout) {
                manager.alive();
            }
        };
        let thread = thread::Builder::new().name("alive".to_owned()).stack_size(64 * 1024).spawn(go_on);
        Busy { end: Some(end), thread: thread.ok() }
    }

    fn tell(&self, message: &str) {
        if let Some(socket) = &self.socket {
            // A service manager that does not read its socket is not an error of the program.
            let _ = socket.send(message.as_bytes());
        }
    }
}

/// Work in progress.
pub(crate) struct Busy {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The thread cannot fail.
            let _ = thread.join();
        }
    }
}
