//! Serves metrics over HTTP: `/metrics`, `/healthz` and `/readyz`, and nothing else.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::metrics::SOURCE_AGE;
use crate::{
    host::system_file,
    metrics::{Kind, Metric, Metrics, metric},
};

/// If more callers are connected, the oldest is disconnected: slow callers must not keep others out.
const MOST_CALLERS: usize = 32;
/// How long a caller can take to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_HEAD: usize = 8 * 1024;

/// What is served.
pub(crate) struct Exported {
    pub(crate) metrics: Metrics,
    /// Whether the first run has ended.
    pub(crate) is_ready: AtomicBool,
    /// The sources, and when their content was fetched.
    pub(crate) sources: Mutex<Vec<(String, Option<Timestamp>)>>,
}

/// Serves metrics on an address such as `127.0.0.1:9100` or `:9100`, in threads of its own.
pub(crate) fn serve(address: &str, exported: Arc<Exported>) -> io::Result<()> {
    let listener = bind(address)?;
    let callers = Arc::new(Callers::default());
    thread::Builder::new().name("metrics".to_owned()).stack_size(128 * 1024).spawn(move || {
        for caller in listener.incoming().flatten() {
            let Ok(number) = callers.admit(&caller) else { continue };
            let (exported, own) = (Arc::clone(&exported), Arc::clone(&callers));
            let answer = move || {
                let _ = reply(caller, &exported);
                own.release(number);
            };
            let started =
                thread::Builder::new().name("scrape".to_owned()).stack_size(256 * 1024).spawn(answer);
            if started.is_err() {
                callers.release(number);
            }
        }
    })?;
    Ok(())
}

/// The callers that are connected, oldest first.
#[derive(Default)]
struct Callers(Mutex<(u64, VecDeque<(u64, TcpStream)>)>);

impl Callers {
    /// Takes note of a caller, and disconnects the oldest if there are too many.
    fn admit(&self, caller: &TcpStream) -> io::Result<u64> {
        let caller = caller.try_clone()?;
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, connected) = &mut *callers;
        *last += 1;
        connected.push_back((*last, caller));
        if connected.len() > MOST_CALLERS
            && let Some((_, oldest)) = connected.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(*last)
    }

    fn release(&self, number: u64) {
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        callers.1.retain(|(known, _)| *known != number);
    }
}

#[expect(clippy::disallowed_methods, reason = "metrics are read through this port")]
fn bind(address: &str) -> io::Result<TcpListener> {
    match address.strip_prefix(':').map(str::parse::<u16>) {
        Some(Ok(port)) => TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
            .or_else(|_| TcpListener::bind(("0.0.0.0", port))),
        _ => TcpListener::bind(address.to_socket_addrs()?.collect::<Vec<_>>().as_slice()),
    }
}

fn reply(mut caller: TcpStream, exported: &Exported) -> io::Result<()> {
    let Some(head) = head(&mut caller)? else { return Ok(()) };
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", exported.text()),
        ("GET" | "HEAD", "/healthz") => ("200 OK", "ok\n".to_owned()),
        ("GET" | "HEAD", "/readyz") if exported.is_ready.load(Ordering::Relaxed) => {
            ("200 OK", "ok\n".to_owned())
        }
        ("GET" | "HEAD", "/readyz") => {
            ("503 Service Unavailable", "the first run has not ended\n".to_owned())
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let shown = if method == "HEAD" { "" } else { body.as_str() };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{shown}",
        body.len()
    );
    send(&mut caller, answer.as_bytes())
}

/// Sends all of an answer in time, or fails.
fn send(caller: &mut TcpStream, mut answer: &[u8]) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !answer.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        caller.set_write_timeout(Some(left))?;
        match caller.write(answer)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => answer = &answer[count..],
        }
    }
    Ok(())
}

/// Reads the head of a request; `None` if it is too long or does not come in time.
fn head(caller: &mut TcpStream) -> io::Result<Option<String>> {
    let end = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > LONGEST_HEAD {
            return Ok(None);
        }
        caller.set_read_timeout(Some(left))?;
        match caller.read(&mut buffer)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

impl Exported {
    fn text(&self) -> String {
        let now = Timestamp::now();
        for (source, fetched) in self.sources.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(fetched) = fetched {
                // A clock that was set back makes nothing younger than new.
                let age = now.duration_since(*fetched).as_secs_f64().max(0.0);
                self.metrics.set(&SOURCE_AGE, &[source], age);
            }
        }
        let mut text = self.metrics.text();
        text.push_str(&process());
        text
    }
}

/// Returns what Prometheus wants to know of every process.
fn process() -> String {
    let stat = system_file::read("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold anything, also blanks and brackets.
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0.0);
    // The kernel counts in hundredths of a second, whatever it ticks in.
    let ticks = 100.0;
    let boot = system_file::read("/proc/stat").unwrap_or_default();
    let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")).and_then(|time| time.parse().ok());
    let page = number(rustix::param::page_size());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or(f64::INFINITY, |limit| number(usize::try_from(limit).unwrap_or(usize::MAX)));
    let metrics = Metrics::counting();
    for (metric, value) in PROCESS.iter().zip([
        (field(14) + field(15)) / ticks,
        field(24) * page,
        field(23),
        boot.unwrap_or(0.0) + field(22) / ticks,
        number(system_file::count("/proc/self/fd")),
        limit,
    ]) {
        metrics.set(metric, &[], value);
    }
    metrics.text()
}

/// What is told of the process.
const PROCESS: [Metric; 6] = [
    metric("process_cpu_seconds_total", "Time spent on a processor", Kind::Counter, &[]),
    metric("process_resident_memory_bytes", "Memory in use", Kind::Gauge, &[]),
    metric("process_virtual_memory_bytes", "Memory reserved", Kind::Gauge, &[]),
    metric("process_start_time_seconds", "When the program was started", Kind::Gauge, &[]),
    metric("process_open_fds", "Open descriptors", Kind::Gauge, &[]),
    metric("process_max_fds", "Most open descriptors", Kind::Gauge, &[]),
];

/// Returns a number as metrics have them. Beyond four thousand million of anything nobody counts.
fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
