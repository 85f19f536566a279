//! A connection, and the thread that keeps it.

use std::{
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerError};
use ccm_process::interrupt::Interrupt;
use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle};

use super::{
    NatsError,
    context::{self, Context, ContextChoice},
};

/// How long a server may take to let one in, and to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often a wait checks for signals.
const TICK: Duration = Duration::from_millis(100);
/// How long an answer can take after a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// Pauses between attempts to come back grow to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// A connection over which nothing comes is looked at this often.
const PING: Duration = Duration::from_mins(1);

/// What becomes of a connection that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// It is an error.
    GiveUp,
    /// It is tried for ever.
    Forever,
}

/// How the connection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) connected: bool,
    /// The servers of the context, without logins.
    pub(crate) server: String,
    /// How often it was made.
    pub(crate) connects: u64,
    /// What the server or the client complained of last, since it was connected.
    pub(crate) complaint: Option<String>,
}

/// A connection to one of the servers of a context.
pub(crate) struct Connection {
    pub(super) client: Client,
    context: ContextChoice,
    servers: String,
    /// What requests to `JetStream` begin with: `$JS.API`, or that of a domain.
    pub(super) api: String,
    shared: Arc<Shared>,
    opened: Instant,
    runtime: Handle,
    interrupt: Option<Interrupt>,
    /// Whether a wait was given up after a signal.
    gave_up: AtomicBool,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread tells everybody else.
#[derive(Default)]
pub(super) struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
    /// Called after each time that the connection was made or lost, or somebody complained of something new.
    listeners: Mutex<Vec<Listener>>,
}

type Listener = (u64, Box<dyn Fn(&Status) + Send + Sync>);

/// Something is called for as long as this is there.
pub(crate) struct Listening {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.shared.listeners().retain(|(number, _)| *number != self.number);
    }
}

impl Connection {
    /// Reads the context and opens a connection to one of its servers. With [`Persistence::Forever`] it returns at once,
    /// and the connection is made whenever a server is there.
    pub(crate) fn open(
        choice: &ContextChoice,
        persistence: Persistence,
        interrupt: Option<Interrupt>,
    ) -> Result<Self, NatsError> {
        let context = Context::read(choice)?;
        let servers = context.shown_servers();
        let api = match context.jetstream_domain.as_str() {
            "" => "$JS.API".to_owned(),
            domain => format!("$JS.{domain}.API"),
        };
        let shared = Arc::new(Shared::default());
        shared.status().server.clone_from(&servers);
        let options = options(&context, &shared, persistence)?;
        let addresses = context.servers();
        let connecting = async move { options.connect(addresses).await };
        let (stop, stopped) = oneshot::channel();
        let (done, opened) = mpsc::sync_channel(1);
        let work = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(done.send(Err(Failed::Runtime(error.to_string())))),
            };
            let handle = runtime.handle().clone();
            runtime.block_on(async move {
                let opened = match tokio::time::timeout(PATIENCE, connecting).await {
                    Ok(opened) => opened.map_err(Failed::Connect),
                    Err(_) => Err(Failed::TooSlow),
                };
                let is_open = opened.is_ok();
                let _ = done.send(opened.map(|client| (client, handle)));
                if is_open {
                    let _ = stopped.await;
                }
            });
        };
        let thread = thread::Builder::new().name("nats".to_owned()).spawn(work);
        let thread = thread.map_err(|error| NatsError::Client(error.to_string()))?;
        let opened = received(&opened, interrupt.as_ref(), Duration::ZERO)?;
        let opened = opened.ok_or_else(|| NatsError::Client("its thread ended".to_owned()))?;
        let (client, runtime) = opened.map_err(|failed| failed.explained(&servers))?;
        Ok(Self {
            client,
            context: choice.clone(),
            servers,
            api,
            shared,
            opened: Instant::now(),
            runtime,
            interrupt,
            gave_up: AtomicBool::new(false),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the context that it was opened with.
    pub(crate) fn context(&self) -> &ContextChoice {
        &self.context
    }

    /// Returns an error if the program was asked to stop: between the steps of a long exchange.
    pub(super) fn check_interrupt(&self) -> Result<(), NatsError> {
        let signal = self.interrupt.as_ref().and_then(Interrupt::requested);
        signal.map_or(Ok(()), |signal| Err(NatsError::Interrupted(signal)))
    }

    /// Returns how it is.
    pub(crate) fn status(&self) -> Status {
        self.shared.status().clone()
    }

    /// Has something called each time that the connection was made or lost, or somebody complained of something new, on
    /// the thread that keeps it.
    pub(crate) fn on_change(&self, listener: impl Fn(&Status) + Send + Sync + 'static) -> Listening {
        let mut listeners = self.shared.listeners();
        let number = listeners.last().map_or(0, |(last, _)| last + 1);
        listeners.push((number, Box::new(listener)));
        Listening { shared: Arc::clone(&self.shared), number }
    }

    /// Leaves a server that does not answer and connects anew.
    pub(crate) fn reconnect(&self) {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.force_reconnect().await });
    }

    /// Returns what messages call the servers.
    pub(super) fn servers(&self) -> String {
        self.servers.clone()
    }

    /// Returns an error unless there is a connection: what is sent without one goes out at some later time. The first
    /// connection is waited for as long as it may take to be made.
    pub(super) fn require_connected(&self) -> Result<(), NatsError> {
        let mut status = self.shared.status();
        while status.connects == 0 && self.opened.elapsed() < PATIENCE {
            self.check_interrupt()?;
            let left = PATIENCE.saturating_sub(self.opened.elapsed()).min(TICK);
            let waited = self.shared.changed.wait_timeout(status, left);
            status = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if status.connected {
            return Ok(());
        }
        Err(NatsError::Away { servers: self.servers(), reason: status.complaint.clone() })
    }

    /// Waits for something that the thread does, at most that long. After a signal, all waits together last one second.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, NatsError>> + Send + 'static,
    ) -> Result<T, NatsError> {
        if self.gave_up.load(Ordering::Relaxed) {
            self.check_interrupt()?;
        }
        self.require_connected()?;
        let (done, result) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            let _ = done.send(tokio::time::timeout(limit, work).await.ok());
        });
        let no_answer = || {
            let hint = self.shared.status().complaint.clone();
            NatsError::NoAnswer { servers: self.servers(), limit, hint }
        };
        let answer = received(&result, self.interrupt.as_ref(), AFTER_SIGNAL);
        if answer.is_err() {
            self.gave_up.store(true, Ordering::Relaxed);
        }
        answer?.flatten().unwrap_or_else(|| Err(no_answer()))
    }

    /// Lets something go on for as long as the connection is there.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.runtime.spawn(work).abort_handle()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A listener may hold the last connection: a thread does not wait for itself.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of what happened to the connection.
    fn take_note(&self, event: &Event) {
        let mut status = self.status();
        let before = status.clone();
        match event {
            Event::Connected => {
                (status.connected, status.complaint) = (true, None);
                status.connects += 1;
            }
            Event::Disconnected | Event::Closed => status.connected = false,
            Event::ServerError(ServerError::Other(complaint)) => status.complaint = Some(complaint.clone()),
            Event::ServerError(error) => status.complaint = Some(error.to_string()),
            Event::ClientError(error) => {
                let text = error.to_string();
                status.complaint = Some(text.trim_start_matches("nats: ").to_owned());
            }
            Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => return,
        }
        let now = status.clone();
        drop(status);
        if now == before {
            return;
        }
        self.changed.notify_all();
        self.listeners().iter().for_each(|(_, listener)| listener(&now));
    }
}

/// Waits for a result; `None` if none will come. After a signal, the wait lasts `grace` longer.
fn received<T>(
    result: &mpsc::Receiver<T>,
    interrupt: Option<&Interrupt>,
    grace: Duration,
) -> Result<Option<T>, NatsError> {
    let mut end = None;
    loop {
        match result.recv_timeout(TICK) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(signal) = interrupt.and_then(Interrupt::requested) {
            let end = *end.get_or_insert_with(|| Instant::now() + grace);
            if Instant::now() >= end {
                return Err(NatsError::Interrupted(signal));
            }
        }
    }
}

/// Why there is no connection.
enum Failed {
    Runtime(String),
    TooSlow,
    Connect(async_nats::ConnectError),
}

impl Failed {
    fn explained(self, servers: &str) -> NatsError {
        let servers = servers.to_owned();
        match self {
            Self::Runtime(reason) => NatsError::Client(reason),
            Self::TooSlow => too_slow(servers),
            Self::Connect(error) => match error.kind() {
                // The client has the same patience, and may lose it first.
                ConnectErrorKind::TimedOut => too_slow(servers),
                ConnectErrorKind::AuthorizationViolation => {
                    let reason =
                        "user, password, token, nkey or creds of the context are not accepted".to_owned();
                    NatsError::LoginRefused { servers, reason }
                }
                ConnectErrorKind::Authentication => {
                    NatsError::LoginRefused { servers, reason: innermost(&error) }
                }
                _ => NatsError::Unreachable { servers, reason: innermost(&error) },
            },
        }
    }
}

fn too_slow(servers: String) -> NatsError {
    NatsError::Unreachable { servers, reason: format!("no answer within {}s", PATIENCE.as_secs()) }
}

/// Returns what the last error of a chain says: `connection refused` and not `IO error`.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns how to connect: who one is, what is trusted, and how it is come back after a loss.
fn options(
    context: &Context,
    shared: &Arc<Shared>,
    persistence: Persistence,
) -> Result<ConnectOptions, NatsError> {
    let note = Arc::clone(shared);
    let was_connected = Arc::new(AtomicBool::new(false));
    let has_connected = Arc::clone(&was_connected);
    let mut options = ConnectOptions::new()
        .name("ccm")
        .connection_timeout(PATIENCE)
        .request_timeout(Some(PATIENCE))
        .ping_interval(PING)
        .reconnect_delay_callback(move |attempt| {
            pause(attempt, was_connected.load(Ordering::Relaxed), chance())
        })
        .event_callback(move |event| {
            if event == Event::Connected {
                has_connected.store(true, Ordering::Relaxed);
            }
            note.take_note(&event);
            std::future::ready(())
        });
    if persistence == Persistence::Forever {
        options = options.retry_on_initial_connect();
    }
    // The client would say that a file is missing, and not which.
    for path in [&context.ca, &context.cert, &context.key].into_iter().filter(|path| !path.is_empty()) {
        file(path)?;
    }
    if context.tls_first {
        options = options.tls_first();
    }
    if !context.inbox_prefix.is_empty() {
        options = options.custom_inbox_prefix(&context.inbox_prefix);
    }
    if !context.ca.is_empty() {
        options = options.add_root_certificates(context.ca.clone().into()).require_tls(true);
    }
    if !context.cert.is_empty() {
        options = options
            .add_client_certificate(context.cert.clone().into(), context.key.clone().into())
            .require_tls(true);
    }
    with_login(options, context)
}

/// Reads a file that a context names.
fn file(path: &str) -> Result<String, NatsError> {
    let unreadable = |reason: String| NatsError::Unreadable { path: path.into(), reason };
    context::read(Path::new(path)).map_err(|error| unreadable(error.to_string()))
}

/// Returns whether a line looks like the seed of a user's nkey: base 32, with the letters that say so.
fn is_user_seed(line: &str) -> bool {
    line.len() == 58
        && line.starts_with("SU")
        && line.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
}

fn with_login(options: ConnectOptions, context: &Context) -> Result<ConnectOptions, NatsError> {
    if !context.creds.is_empty() {
        let text = file(&context.creds)?;
        let reason = "not a file of credentials".to_owned();
        let refused = |_| NatsError::Unreadable { path: context.creds.clone().into(), reason };
        return options.credentials(&text).map_err(refused);
    }
    if !context.nkey.is_empty() {
        let text = file(&context.nkey)?;
        let seed = text.lines().map(str::trim).find(|line| is_user_seed(line));
        let reason = "not the seed of a user's nkey".to_owned();
        let refused = || NatsError::Unreadable { path: context.nkey.clone().into(), reason };
        return Ok(options.nkey(seed.ok_or_else(refused)?.to_owned()));
    }
    if !context.user.is_empty() {
        return Ok(options.user_and_password(context.user.clone(), context.password.clone()));
    }
    if !context.token.is_empty() {
        return Ok(options.token(context.token.clone()));
    }
    Ok(options)
}

/// Returns how long to wait before an attempt: not at all before the very first, and after a loss at random, so that a
/// fleet does not come back in one instant.
fn pause(attempt: usize, was_connected: bool, chance: f64) -> Duration {
    let steps = u32::try_from(attempt).unwrap_or(u32::MAX).saturating_sub(1).min(6);
    let longest = LONGEST_PAUSE.min(Duration::from_millis(100) * 2_u32.pow(steps));
    if attempt <= 1 && !was_connected { Duration::ZERO } else { longest.mul_f64(0.25 + 0.75 * chance) }
}

/// Returns a number between 0 and 1.
pub(super) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without the kernel's generator every machine waits the same time, and that is all.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_machines() {
        assert_eq!(pause(1, false, 0.9), Duration::ZERO);
        assert_eq!(pause(1, true, 1.0), Duration::from_millis(100));
        assert_eq!(pause(1, true, 0.0), Duration::from_millis(25));
        assert_eq!(pause(3, true, 1.0), Duration::from_millis(400));
        assert_eq!(pause(usize::MAX, true, 1.0), LONGEST_PAUSE);
        assert_eq!(pause(usize::MAX, true, 0.0), LONGEST_PAUSE / 4);
    }
}
