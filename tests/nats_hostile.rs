//! NATS servers that send too much, or nothing.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{World, finish, ports, wait_until};

/// A connection of ccm to a server.
struct Peer {
    stream: TcpStream,
    reply: String,
}

impl Peer {
    /// Sends a message of a stream as the answer. Returns whether ccm still reads.
    fn send(&mut self, subject: &str, sequence: u64, pending: Option<u64>, payload: &[u8]) -> bool {
        let pending = pending.map(|count| format!("Nats-Num-Pending: {count}\r\n")).unwrap_or_default();
        let headers =
            format!("NATS/1.0\r\nNats-Subject: {subject}\r\nNats-Sequence: {sequence}\r\n{pending}\r\n");
        self.frame(&headers, payload)
    }

    fn end(&mut self) -> bool {
        self.frame("NATS/1.0 204 EOB\r\n\r\n", b"")
    }

    fn frame(&mut self, headers: &str, payload: &[u8]) -> bool {
        let frame =
            format!("HMSG {} {} {}\r\n{headers}", self.reply, headers.len(), headers.len() + payload.len());
        let bytes = [frame.as_bytes(), payload, b"\r\n"].concat();
        self.stream.write_all(&bytes).is_ok()
    }
}

/// Starts a server that answers each request for messages with `answer`, and a context that names it.
fn serve(world: &World, answer: impl Fn(&str, &mut Peer) + Send + Sync + 'static) {
    let listener = ports::listen();
    let folder = world.base().join("home/.config/nats/context");
    fs::create_dir_all(&folder).unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    fs::write(folder.join("CCM.json"), json!({ "url": url }).to_string()).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            converse(stream.unwrap(), &answer);
        }
    });
}

fn converse(mut stream: TcpStream, answer: &dyn Fn(&str, &mut Peer)) {
    let info = json!({
        "server_id": "S", "version": "2.12.0", "headers": true, "max_payload": 1 << 20, "proto": 1,
        "host": "127.0.0.1", "port": 4222, "server_name": "S", "go": "", "client_id": 1,
    });
    stream.write_all(format!("INFO {info}\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut inbox = (String::new(), String::new());
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["PING"] if stream.write_all(b"PONG\r\n").is_err() => return,
            ["SUB", subject, number] => inbox = ((*subject).to_owned(), (*number).to_owned()),
            ["PUB", subject, reply, _] if *reply == inbox.0 => {
                lines.read_line(&mut String::new()).unwrap();
                let reply = format!("{reply} {}", inbox.1);
                answer(subject, &mut Peer { stream: stream.try_clone().unwrap(), reply });
            }
            _ => {}
        }
    }
}

/// Describes an object, and answers requests for its chunks with `chunks`.
fn object(
    size: u64,
    chunks: impl Fn(&mut Peer) + Send + Sync + 'static,
) -> impl Fn(&str, &mut Peer) + Send + Sync + 'static {
    move |subject, peer| {
        if subject.contains(".$O.B.M.") {
            let info = json!({ "nuid": "N", "size": size, "chunks": u64::MAX, "digest": "SHA-256=AAAA" });
            peer.send("$O.B.M.x", 1, None, info.to_string().as_bytes());
        } else {
            chunks(peer);
        }
    }
}

#[test]
fn object_whose_chunks_never_end_is_an_error() {
    // Each page brings chunks, and none of them a byte of the object.
    for (sequences, reason) in [
        ([1, 2], "NATS gave an answer that makes no sense: chunks without content"),
        ([2, 2], "NATS gave an answer that makes no sense: message 2 after 3"),
        ([2, 1], "NATS gave an answer that makes no sense: message 1 after 3"),
    ] {
        let world = World::new();
        serve(
            &world,
            object(10, move |peer| {
                for sequence in sequences {
                    peer.send("$O.B.C.N", sequence, Some(1), b"");
                }
                peer.end();
            }),
        );
        let outcome = world.ccm(["apply", "obj://B/site.tar.gz"]).run();
        outcome.exits(2).complains(&format!("cannot read obj://B/site.tar.gz: {reason}\n"));
    }
}

#[test]
fn object_larger_than_its_bucket_announces_is_an_error() {
    let world = World::new();
    serve(
        &world,
        object(1 << 20, |peer| {
            for sequence in 1..=8 {
                peer.send("$O.B.C.N", sequence, Some(1), &vec![0; 512 << 10]);
            }
            peer.end();
        }),
    );
    let outcome = world.ccm(["apply", "obj://B/site.tar.gz"]).run();
    outcome.exits(2).complains("does not have the digest");
}

#[test]
fn answer_that_never_ends_is_an_error() {
    for payload in [0, 1 << 20] {
        let world =
            World::new().manifest("- exec: [{ x: { command: \"/bin/echo ${ kvGet('b', 'k') }\" } }]\n");
        serve(&world, move |_, peer| {
            let payload = vec![b'x'; payload];
            while peer.send("$KV.b.k", 1, Some(1), &payload) {}
        });
        let outcome = world.apply();
        outcome.exits(1).says("NATS sends more than 68MiB in one answer");
    }
}

/// Answers each page of registrations with entries of new addresses.
fn entries(padding: usize) -> impl Fn(&str, &mut Peer) + Send + Sync + 'static {
    let sequence = AtomicU64::new(1);
    move |_, peer| {
        for _ in 0..200 {
            let sequence = sequence.fetch_add(1, Ordering::Relaxed);
            let address = format!("10.{}.{}.{}", sequence >> 16, (sequence >> 8) & 255, sequence & 255);
            let payload = json!({
                "cluster": "c", "service": "s", "protocol": "p", "address": address, "port": 80,
                "annotations": { "padding": "x".repeat(padding) },
            });
            let subject = format!("choria.ccm.registration.v1.c.p.s.{}.1", address.replace('.', "_"));
            peer.send(&subject, sequence, Some(1), payload.to_string().as_bytes());
        }
        peer.end();
    }
}

#[test]
fn registrations_beyond_the_limit_are_an_error_that_names_it() {
    let world = World::new();
    serve(&world, entries(16 << 10));
    let query = || world.ccm(["registration", "query"]);
    let limit =
        "narrow the query, or raise the limit (CCM_MAX_REGISTRATIONS, or `max_registrations` of the agent)";
    for (call, size) in [(query(), "64MiB"), (query().env("CCM_MAX_REGISTRATIONS", "1MiB"), "1MiB")] {
        let reason = format!("stream \"REGISTRATION\" has more than {size} of registrations: {limit}");
        call.run().exits(2).complains(&reason);
    }
    let invalid = query().env("CCM_MAX_REGISTRATIONS", "many").run();
    invalid.exits(2).complains("CCM_MAX_REGISTRATIONS: \"many\" is not a size");
    // The agent has a setting of its own.
    let world = world
        .beside("site.yaml", "- exec: [{ x: { command: \"/bin/echo ${ len(registrations()) }\" } }]\n")
        .beside("agent.yaml", "manifests: [site.yaml]\nmax_registrations: 2MiB\n");
    let once = world.ccm(["agent", "--once", "--config", "agent.yaml"]).run();
    once.exits(1).complains("has more than 2MiB of registrations");
}

#[test]
fn wait_for_nats_ends_after_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let world =
            World::new().manifest("- exec: [{ x: { command: \"/bin/echo ${ kvGet('b', 'k') }\" } }]\n");
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_asked);
        serve(
            &world,
            // The chunks of an object bring a byte each, for as long as ccm reads; a key is never answered.
            move |subject, peer| {
                asked.store(true, Ordering::Relaxed);
                if subject.contains(".$O.B.M.") {
                    let info = json!({ "nuid": "N", "size": 1 << 30, "chunks": u64::MAX, "digest": "" });
                    peer.send("$O.B.M.x", 1, None, info.to_string().as_bytes());
                } else if !subject.contains("$KV") {
                    static SEQUENCE: AtomicU64 = AtomicU64::new(1);
                    peer.send("$O.B.C.N", SEQUENCE.fetch_add(1, Ordering::Relaxed), Some(1), b"x");
                    peer.end();
                }
            },
        );
        for arguments in [["apply", "obj://B/site.tar.gz"], ["apply", "site.yaml"]] {
            is_asked.store(false, Ordering::Relaxed);
            let child = world.ccm(arguments).start();
            wait_until("ccm to ask", || is_asked.load(Ordering::Relaxed));
            kill_process(Pid::from_child(&child), signal).unwrap();
            let outcome = finish(child, arguments.join(" "));
            // Without the signal, the first never ends and the second ends with another message.
            let name = if signal == Signal::TERM { "SIGTERM" } else { "SIGINT" };
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(text.contains(&format!("stopped by {name}")), "{text}");
        }
    }
}

#[test]
fn line_feed_in_an_annotation_forges_no_entry() {
    let world = World::new();
    let is_first = AtomicBool::new(true);
    serve(&world, move |_, peer| {
        if is_first.swap(false, Ordering::Relaxed) {
            let payload = json!({
                "cluster": "c", "service": "s", "protocol": "p", "address": "10.0.0.1", "port": 80,
                "annotations": { "note": "x\n10.0.0.2  80    c        p         s" },
            });
            peer.send(
                "choria.ccm.registration.v1.c.p.s.10_0_0_1.1",
                1,
                Some(0),
                payload.to_string().as_bytes(),
            );
        }
        peer.end();
    });
    let outcome = world.ccm(["registration", "query"]).run();
    outcome.exits(0).says("note=x\\n10.0.0.2");
    assert_eq!(outcome.stdout.lines().count(), 2, "{outcome}");
}
