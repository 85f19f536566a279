//! A web server of one's own, on the loopback interface only, that can also do wrong: stall, cut short, lie, redirect,
//! and demand a password.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A server that answers until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
}

/// What somebody asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Method, target and version.
    pub(crate) line: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_str())
    }

    /// The first byte that a `Range` header asks for.
    pub(crate) fn range(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What is answered.
#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Arc<Vec<u8>>,
    from: usize,
    manner: Manner,
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With its true length.
    Whole,
    /// In chunks.
    Chunked,
    /// Without saying how long it is.
    Unmeasured,
    /// With a length that is more or less than the truth.
    Claiming(usize),
    /// With its true length, and the connection closed after this many bytes.
    Cut(usize),
    /// With its true length, and then silence after this many bytes.
    Stall(usize),
    /// With its true length, bit by bit, over about this long.
    Slow(Duration),
    /// Without saying how long it is, and the connection cut after this many bytes: over TLS without a word, else with a
    /// reset.
    Severed(usize),
    /// The connection is closed without a word.
    Silent,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Arc::default(), from: 0, manner: Manner::Whole }
    }

    pub(crate) fn body(body: impl Into<Arc<Vec<u8>>>) -> Self {
        Self { body: body.into(), ..Self::status(200) }
    }

    pub(crate) fn redirect(location: &str) -> Self {
        Self::status(302).header("Location", location)
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn manner(self, manner: Manner) -> Self {
        Self { manner, ..self }
    }

    /// Sends only what comes after the first bytes, if the request asks for that and means this version.
    pub(crate) fn resumable(self, request: &Request, version: &str) -> Self {
        let reply = self.header("ETag", version).header("Accept-Ranges", "bytes");
        match request.range().filter(|_| request.header("if-range").is_none_or(|wanted| wanted == version)) {
            Some(from) if from < reply.body.len() => {
                let range = format!("bytes {from}-{}/{}", reply.body.len() - 1, reply.body.len());
                Self { status: 206, from, ..reply.header("Content-Range", &range) }
            }
            _ => reply,
        }
    }

    fn send(&self, to: &mut dyn Write, stopped: &AtomicBool) -> io::Result<()> {
        let body = &self.body[self.from..];
        let (announced, sent) = match self.manner {
            Manner::Silent => return Ok(()),
            Manner::Whole | Manner::Slow(_) => (Some(body.len()), body.len()),
            Manner::Chunked | Manner::Unmeasured => (None, body.len()),
            Manner::Severed(length) => (None, length.min(body.len())),
            Manner::Claiming(length) => (Some(length), body.len()),
            Manner::Cut(length) | Manner::Stall(length) => (Some(body.len()), length.min(body.len())),
        };
        write!(to, "HTTP/1.1 {} Status\r\nConnection: close\r\n", self.status)?;
        for (name, value) in &self.headers {
            write!(to, "{name}: {value}\r\n")?;
        }
        if let Some(length) = announced {
            write!(to, "Content-Length: {length}\r\n")?;
        }
        if self.manner == Manner::Chunked {
            write!(to, "Transfer-Encoding: chunked\r\n\r\n")?;
            for piece in body.chunks(10_000) {
                write!(to, "{:x}\r\n", piece.len())?;
                to.write_all(piece)?;
                to.write_all(b"\r\n")?;
            }
            to.write_all(b"0\r\n\r\n")?;
        } else {
            to.write_all(b"\r\n")?;
            let (bits, pause) = match self.manner {
                Manner::Slow(time) => (50, time / 50),
                _ => (1, Duration::ZERO),
            };
            for bit in body[..sent].chunks(sent.div_ceil(bits).max(1)) {
                to.write_all(bit)?;
                to.flush()?;
                thread::sleep(pause);
            }
        }
        to.flush()?;
        while matches!(self.manner, Manner::Stall(_)) && !stopped.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// A certificate and its key, made for a test.
pub(crate) struct Identity {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

impl Identity {
    /// One that signs itself, for a host.
    pub(crate) fn of(host: &str) -> Self {
        Self::with(host, |_| {})
    }

    /// One that signs itself and could sign others, as `openssl req -x509` makes them.
    pub(crate) fn of_authority(host: &str) -> Self {
        Self::with(host, |wishes| wishes.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained))
    }

    /// One of an authority whose time is over.
    pub(crate) fn of_expired_authority(host: &str) -> Self {
        Self::with(host, |wishes| {
            wishes.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            wishes.not_before = rcgen::date_time_ymd(2000, 1, 1);
            wishes.not_after = rcgen::date_time_ymd(2001, 1, 1);
        })
    }

    /// One whose time is over.
    pub(crate) fn expired(host: &str) -> Self {
        Self::with(host, |wishes| {
            wishes.not_before = rcgen::date_time_ymd(2000, 1, 1);
            wishes.not_after = rcgen::date_time_ymd(2001, 1, 1);
        })
    }

    fn with(host: &str, change: impl FnOnce(&mut rcgen::CertificateParams)) -> Self {
        let mut wishes = rcgen::CertificateParams::new(vec![host.to_owned()]).expect("a host");
        change(&mut wishes);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = wishes.self_signed(&key).expect("a certificate");
        Self { certificate, key }
    }

    /// What a client has to trust.
    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// The key that goes with it.
    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    fn config(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.der().clone()], key)
            .expect("a certificate with its key");
        Arc::new(config)
    }
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, answer)
    }

    /// A server that speaks https.
    pub(crate) fn secure(
        identity: &Identity,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(identity.config()), answer)
    }

    /// A server that sends one body, whatever it is asked for.
    pub(crate) fn of(body: Vec<u8>) -> Self {
        let body = Arc::new(body);
        Self::start(move |_| Reply::body(Arc::clone(&body)))
    }

    fn listen(
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Self {
            address: listener.local_addr().expect("an address"),
            scheme: if tls.is_some() { "https" } else { "http" },
            requests: Arc::default(),
            stopped: Arc::default(),
        };
        let (requests, stopped, answer) =
            (Arc::clone(&server.requests), Arc::clone(&server.stopped), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let (requests, stopped, answer, tls) =
                    (Arc::clone(&requests), Arc::clone(&stopped), Arc::clone(&answer), tls.clone());
                thread::spawn(move || serve(stream, tls, &requests, &stopped, &*answer));
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The same address by the name of the machine instead of its number.
    pub(crate) fn url_by_name(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    /// The address with something before the host.
    pub(crate) fn url_with(&self, credentials: &str, path: &str) -> String {
        format!("{}://{credentials}@{}{path}", self.scheme, self.address)
    }

    /// Everything that was asked for so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // The listener wakes up to see it.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers one request. A client that leaves early is its own business.
fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    requests: &Mutex<Vec<Request>>,
    stopped: &AtomicBool,
    answer: &dyn Fn(&Request) -> Reply,
) {
    let _ = match tls {
        None => converse(&mut &stream, requests, stopped, answer).map(|manner| {
            if matches!(manner, Manner::Severed(_)) {
                // Closed like this, the connection is reset.
                let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
            }
        }),
        Some(config) => {
            let Ok(connection) = ServerConnection::new(config) else { return };
            let mut stream = StreamOwned::new(connection, stream);
            converse(&mut stream, requests, stopped, answer).and_then(|manner| {
                if !matches!(manner, Manner::Severed(_)) {
                    stream.conn.send_close_notify();
                }
                stream.flush()
            })
        }
    };
}

fn converse(
    stream: &mut (impl Read + Write),
    requests: &Mutex<Vec<Request>>,
    stopped: &AtomicBool,
    answer: &dyn Fn(&Request) -> Reply,
) -> io::Result<Manner> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(Manner::Silent);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.first().cloned().unwrap_or_default();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let header =
        |line: &String| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let request = Request { line, path, headers: lines.iter().skip(1).filter_map(header).collect() };
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    let reply = answer(&request);
    reply.send(stream.get_mut(), stopped)?;
    Ok(reply.manner)
}
