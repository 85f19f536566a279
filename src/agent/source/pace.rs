//! How fast content has to arrive.
//!
//! A server that sends a byte every few seconds never stalls a single read, and would keep a source busy for ever.

use std::time::{Duration, Instant};

/// Content arrives if each window has at least this many bytes.
const WINDOW: Duration = Duration::from_secs(30);
const LEAST: u64 = 1024;

/// Measures one fetch.
#[derive(Debug)]
pub(super) struct Pace {
    begun: Instant,
    timeout: Duration,
    window: Instant,
    received: u64,
    /// Why the fetch ends.
    pub(super) verdict: Option<String>,
}

impl Pace {
    pub(super) fn new(now: Instant, timeout: Duration) -> Self {
        Self { begun: now, timeout, window: now, received: 0, verdict: None }
    }

    /// Counts bytes. Returns whether the fetch can go on.
    pub(super) fn received(&mut self, now: Instant, bytes: usize) -> bool {
        self.received += bytes as u64;
        if now.duration_since(self.begun) >= self.timeout {
            let timeout = crate::vocabulary::Duration::from(self.timeout);
            self.verdict = Some(format!("the fetch took longer than {timeout} (fetch_timeout)"));
        } else if now.duration_since(self.window) >= WINDOW {
            if self.received < LEAST {
                let (received, seconds) = (self.received, WINDOW.as_secs());
                self.verdict =
                    Some(format!("the source is stalled: {received} bytes in {seconds}s (minimum {LEAST})"));
            }
            (self.window, self.received) = (now, 0);
        }
        self.verdict.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives pieces of this many bytes at this interval, and returns the verdict and when it came.
    fn verdict(bytes: usize, interval: u64, timeout: u64) -> Option<(u64, String)> {
        let begun = Instant::now();
        let mut pace = Pace::new(begun, Duration::from_secs(timeout));
        for second in (0..3600).step_by(usize::try_from(interval).unwrap()) {
            if !pace.received(begun + Duration::from_secs(second), bytes) {
                return pace.verdict.map(|verdict| (second, verdict));
            }
        }
        None
    }

    #[test]
    fn slow_lines_are_steady_and_stalls_and_endless_fetches_end() {
        for (bytes, interval, timeout, expected) in [
            // One byte every five seconds.
            (1, 5, 600, Some((30, "the source is stalled: 7 bytes in 30s (minimum 1024)"))),
            (100, 10, 600, Some((30, "stalled"))),
            // A modem: 300 bytes each second, and 100 bytes each.
            (300, 1, 7200, None),
            (100, 1, 7200, None),
            (100, 1, 600, Some((600, "the fetch took longer than 10m (fetch_timeout)"))),
            (1 << 20, 1, 10, Some((10, "fetch_timeout"))),
        ] {
            let found = verdict(bytes, interval, timeout);
            match expected {
                None => assert_eq!(found, None, "{bytes} {interval}"),
                Some((second, text)) => {
                    let (found_second, found_text) = found.unwrap();
                    assert!(found_text.contains(text), "{found_text}");
                    assert!(found_second.abs_diff(second) <= interval, "{bytes} {interval}: {found_second}");
                }
            }
        }
    }
}
