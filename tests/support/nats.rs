//! A NATS server of a test's own, and a client that knows just enough of the protocol to fill it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use base64::{Engine, engine::general_purpose::URL_SAFE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{PATIENCE, World, free_port, ports, skip, wait_until};

/// A server with `JetStream`, which is ended with the test.
pub(crate) struct NatsServer {
    folder: PathBuf,
    port: u16,
    arguments: Vec<String>,
    process: Option<Child>,
}

/// Whether a stream answers requests that go past its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectGets {
    Allowed,
    Refused,
}

/// Returns the server's program: the one that `make test` installs, or one that can be called.
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/nats/bin/nats-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let called = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    std::env::var_os("CCM_NATS_SERVER")
        .map(PathBuf::from)
        .into_iter()
        .chain([installed])
        .chain(called)
        .find(|program| program.is_file())
}

impl NatsServer {
    /// Starts a server; `None` where there is no program for it.
    pub(crate) fn start(world: &World) -> Option<Self> {
        Self::with(world, &[])
    }

    /// Starts a server with more arguments.
    pub(crate) fn with(world: &World, arguments: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            skip("needs nats-server: `make test` installs it");
            return None;
        };
        let port = free_port();
        let folder = world.base().join("nats");
        fs::create_dir_all(&folder).unwrap();
        let mut words = vec![program.to_string_lossy().into_owned()];
        words.extend(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"].map(str::to_owned));
        words.push(folder.join("store").to_string_lossy().into_owned());
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        let mut server = Self { folder, port, arguments: words, process: None };
        server.go_on();
        server.context(world, "CCM", &json!({}));
        Some(server)
    }

    /// Starts it again where it was.
    pub(crate) fn go_on(&mut self) {
        let log = fs::File::create(self.folder.join("log")).unwrap();
        let mut command = Command::new(&self.arguments[0]);
        command.args(&self.arguments[1..]).stdout(Stdio::null()).stderr(log).stdin(Stdio::null());
        self.process = Some(command.spawn().expect("nats-server starts"));
        wait_until("nats-server listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Forgets everything that it keeps. It must not run.
    pub(crate) fn forget(&self) {
        fs::remove_dir_all(self.folder.join("store")).unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Writes a context of the `nats` program that leads here.
    pub(crate) fn context(&self, world: &World, name: &str, more: &Value) {
        let mut context = json!({ "url": self.url() });
        context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let folder = world.base().join("home/.config/nats/context");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.json")), context.to_string()).unwrap();
    }

    /// Connects to it.
    pub(crate) fn client(&self) -> NatsClient {
        NatsClient::connect(self.port, &json!({}))
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A way to a server that can be cut: connections stay open, and nothing comes through them any more.
pub(crate) struct Cable {
    port: u16,
    /// Connections with a lower number are cut.
    cut: Arc<AtomicUsize>,
    count: Arc<AtomicUsize>,
}

impl Cable {
    /// Lays a way to a port.
    pub(crate) fn to(server: u16) -> Self {
        Self::from(ports::listen(), server)
    }

    /// Lays a way to a port from wherever somebody listens.
    pub(crate) fn from(listener: TcpListener, server: u16) -> Self {
        let port = listener.local_addr().unwrap().port();
        let (cut, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let cable = Self { port, cut: Arc::clone(&cut), count: Arc::clone(&count) };
        thread::spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                let Ok(there) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let both = [(here.try_clone(), there.try_clone()), (Ok(there), Ok(here))];
                for (from, to) in both {
                    let (mut from, mut to, cut) = (from.unwrap(), to.unwrap(), Arc::clone(&cut));
                    thread::spawn(move || {
                        let mut buffer = [0; 4096];
                        while let Ok(length @ 1..) = from.read(&mut buffer) {
                            let is_through = number >= cut.load(Ordering::SeqCst);
                            if is_through && to.write_all(&buffer[..length]).is_err() {
                                break;
                            }
                        }
                    });
                }
            }
        });
        cable
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connections that there are.
    pub(crate) fn cut(&self) {
        self.cut.store(self.count.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

/// A connection that speaks the protocol.
pub(crate) struct NatsClient {
    stream: BufReader<TcpStream>,
    last: u64,
}

/// A message that was received.
#[derive(Clone, Debug)]
pub(crate) struct NatsMessage {
    pub(crate) subject: String,
    pub(crate) headers: String,
    pub(crate) payload: Vec<u8>,
}

impl NatsMessage {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap()
    }
}

impl NatsClient {
    pub(crate) fn connect(port: u16, login: &Value) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Self { stream: BufReader::new(stream), last: 0 };
        assert!(client.line().starts_with("INFO"));
        let mut options = json!({ "verbose": false, "headers": true, "no_responders": true });
        options.as_object_mut().unwrap().extend(login.as_object().unwrap().clone());
        client.send(&format!("CONNECT {options}\r\nPING\r\n"));
        assert_eq!(client.line(), "PONG");
        client
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Begins to listen.
    pub(crate) fn subscribe(&mut self, subject: &str) {
        self.last += 1;
        let number = self.last;
        self.send(&format!("SUB {subject} {number}\r\nPING\r\n"));
        assert_eq!(self.line(), "PONG");
    }

    /// Returns the next message of a subject that is listened to.
    pub(crate) fn next(&mut self) -> NatsMessage {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split(' ').collect();
            let length = |word: &str| word.parse::<usize>().unwrap();
            let (head, total) = match words.as_slice() {
                ["MSG", .., total] => (0, length(total)),
                ["HMSG", .., head, total] => (length(head), length(total)),
                ["PING"] => {
                    self.send("PONG\r\n");
                    continue;
                }
                _ => panic!("{line}"),
            };
            let mut bytes = vec![0; total + 2];
            self.stream.read_exact(&mut bytes).unwrap();
            bytes.truncate(total);
            let payload = bytes.split_off(head);
            let headers = String::from_utf8(bytes).unwrap();
            return NatsMessage { subject: words[1].to_owned(), headers, payload };
        }
    }

    fn publish_to(&mut self, subject: &str, reply: &str, payload: &[u8]) {
        let mut bytes =
            format!("PUB {subject} {reply} {}\r\n", payload.len()).replace("  ", " ").into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        self.stream.get_mut().write_all(&bytes).unwrap();
    }

    fn publish_with_headers(&mut self, subject: &str, reply: &str, headers: &str, payload: &[u8]) {
        let head = format!("NATS/1.0\r\n{headers}\r\n\r\n");
        let total = head.len() + payload.len();
        let mut bytes = format!("HPUB {subject} {reply} {} {total}\r\n{head}", head.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        self.stream.get_mut().write_all(&bytes).unwrap();
    }

    /// Asks and returns the answer.
    pub(crate) fn request(&mut self, subject: &str, payload: &[u8]) -> NatsMessage {
        self.last += 1;
        let (number, inbox) = (self.last, format!("_INBOX.test.{}", self.last));
        self.send(&format!("SUB {inbox} {number}\r\n"));
        self.publish_to(subject, &inbox, payload);
        let answer = self.next();
        self.send(&format!("UNSUB {number}\r\n"));
        answer
    }

    /// Asks `JetStream`, which must agree.
    #[track_caller]
    pub(crate) fn api(&mut self, request: &str, payload: &Value) -> Value {
        let answer = self.request(&format!("$JS.API.{request}"), payload.to_string().as_bytes()).json();
        assert!(answer.get("error").is_none(), "{request}: {answer}");
        answer
    }

    /// Publishes to a stream, which must take it.
    #[track_caller]
    pub(crate) fn put(&mut self, subject: &str, headers: Option<&str>, payload: &[u8]) {
        self.last += 1;
        let (number, inbox) = (self.last, format!("_INBOX.test.{}", self.last));
        self.send(&format!("SUB {inbox} {number}\r\n"));
        match headers {
            Some(headers) => self.publish_with_headers(subject, &inbox, headers, payload),
            None => self.publish_to(subject, &inbox, payload),
        }
        let answer = self.next();
        self.send(&format!("UNSUB {number}\r\n"));
        assert!(answer.headers.is_empty() && answer.json().get("error").is_none(), "{answer:?}");
    }

    pub(crate) fn make_keys(&mut self, bucket: &str, direct: DirectGets) {
        let stream = json!({
            "name": format!("KV_{bucket}"), "subjects": [format!("$KV.{bucket}.>")], "max_msgs_per_subject": 1,
            "discard": "new", "allow_rollup_hdrs": true, "deny_delete": true, "storage": "file", "num_replicas": 1,
            "allow_direct": direct == DirectGets::Allowed,
        });
        self.api(&format!("STREAM.CREATE.KV_{bucket}"), &stream);
    }

    pub(crate) fn put_key(&mut self, bucket: &str, key: &str, value: &str) {
        self.put(&format!("$KV.{bucket}.{key}"), None, value.as_bytes());
    }

    pub(crate) fn delete_key(&mut self, bucket: &str, key: &str) {
        self.put(&format!("$KV.{bucket}.{key}"), Some("KV-Operation: DEL"), b"");
    }

    pub(crate) fn make_objects(&mut self, bucket: &str, direct: DirectGets) {
        let stream = json!({
            "name": format!("OBJ_{bucket}"), "subjects": [format!("$O.{bucket}.C.>"), format!("$O.{bucket}.M.>")],
            "discard": "new", "allow_rollup_hdrs": true, "storage": "file", "num_replicas": 1,
            "allow_direct": direct == DirectGets::Allowed,
        });
        self.api(&format!("STREAM.CREATE.OBJ_{bucket}"), &stream);
    }

    /// Puts an object as other clients do: chunks under a new name, then the description in place of the old one, then the
    /// old chunks go.
    pub(crate) fn put_object(&mut self, bucket: &str, key: &str, content: &[u8], chunk: usize) {
        let old = self.object(bucket, key);
        let nuid = format!("{:022}", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos());
        let chunks = content.chunks(chunk).count();
        for part in content.chunks(chunk) {
            self.put(&format!("$O.{bucket}.C.{nuid}"), None, part);
        }
        let digest = format!("SHA-256={}", URL_SAFE.encode(Sha256::digest(content)));
        self.describe(
            bucket,
            key,
            &json!({
                "name": key, "bucket": bucket, "nuid": nuid, "size": content.len(), "chunks": chunks,
                "digest": digest, "mtime": "0001-01-01T00:00:00Z", "options": { "max_chunk_size": chunk },
            }),
        );
        if let Some(old) = old.and_then(|old| Some(old["nuid"].as_str()?.to_owned())) {
            self.purge_chunks(bucket, &old);
        }
    }

    pub(crate) fn delete_object(&mut self, bucket: &str, key: &str) {
        let old = self.object(bucket, key).unwrap();
        let nuid = old["nuid"].as_str().unwrap().to_owned();
        let gone =
            json!({ "name": key, "bucket": bucket, "nuid": nuid, "size": 0, "chunks": 0, "deleted": true });
        self.describe(bucket, key, &gone);
        self.purge_chunks(bucket, &nuid);
    }

    /// Says of an object what it is.
    pub(crate) fn describe(&mut self, bucket: &str, key: &str, description: &Value) {
        let subject = format!("$O.{bucket}.M.{}", URL_SAFE.encode(key));
        self.put(&subject, Some("Nats-Rollup: sub"), description.to_string().as_bytes());
    }

    pub(crate) fn object(&mut self, bucket: &str, key: &str) -> Option<Value> {
        let subject = format!("$O.{bucket}.M.{}", URL_SAFE.encode(key));
        let request = json!({ "last_by_subj": subject }).to_string();
        let answer = self.request(&format!("$JS.API.STREAM.MSG.GET.OBJ_{bucket}"), request.as_bytes()).json();
        let data = answer["message"]["data"].as_str()?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        serde_json::from_slice(&bytes).ok()
    }

    pub(crate) fn purge_chunks(&mut self, bucket: &str, nuid: &str) {
        self.api(
            &format!("STREAM.PURGE.OBJ_{bucket}"),
            &json!({ "filter": format!("$O.{bucket}.C.{nuid}") }),
        );
    }

    pub(crate) fn delete_stream(&mut self, stream: &str) {
        self.api(&format!("STREAM.DELETE.{stream}"), &json!({}));
    }

    /// Returns what a stream holds: the subject, headers and payload of each message.
    pub(crate) fn messages(&mut self, stream: &str) -> Vec<NatsMessage> {
        let state = self.api(&format!("STREAM.INFO.{stream}"), &json!({}))["state"].clone();
        let decode = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            base64::engine::general_purpose::STANDARD.decode(text).unwrap()
        };
        let (first, last) = (state["first_seq"].as_u64().unwrap(), state["last_seq"].as_u64().unwrap());
        let mut messages = Vec::new();
        for sequence in first.max(1)..=last {
            let request = json!({ "seq": sequence }).to_string();
            let answer = self.request(&format!("$JS.API.STREAM.MSG.GET.{stream}"), request.as_bytes()).json();
            let message = &answer["message"];
            if let Some(subject) = message["subject"].as_str() {
                messages.push(NatsMessage {
                    subject: subject.to_owned(),
                    headers: String::from_utf8(decode(&message["hdrs"])).unwrap(),
                    payload: decode(&message["data"]),
                });
            }
        }
        messages
    }
}
