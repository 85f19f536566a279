//! Ports that belong to one test for as long as it runs, also while nobody listens there.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU32, Ordering},
};

/// The kernel gives none of these to a connection or to a listener that asks for any port; its range usually begins at 32768.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// Listens at a port of this machine that no other test is given.
///
/// A port that the kernel chose may be chosen again for somebody else the moment that it is free: a test that closes it, and
/// expects that nobody is there or that it can have it back, would depend on what its neighbours do.
pub(crate) fn listen() -> TcpListener {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    // Test processes that run side by side begin at different places.
    let begin = std::process::id().wrapping_mul(97) % count;
    for _ in PORTS {
        let number = (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % count + PORTS.start;
        let port = u16::try_from(number).expect("a port");
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener;
        }
    }
    panic!("no port is free");
}
