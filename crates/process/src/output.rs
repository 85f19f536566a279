//! What a program wrote: kept within a bound, and cut into lines for whoever watches.

use std::borrow::Cow;

/// Rewrites an output while it arrives, before any of it is kept or shown.
pub trait Filter {
    /// Returns the bytes that can be shown now that `bytes` have arrived. A filter can hold bytes back.
    fn pass<'b>(&mut self, bytes: &'b [u8]) -> Cow<'b, [u8]>;
    /// Returns the bytes that were held back, at the end of the output.
    fn finish(&mut self) -> Vec<u8>;
}

/// Which of its two outputs a program wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How much of each output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The last whole lines that fit into this many bytes.
    Tail(usize),
    /// Everything. More than this many bytes end the program: its output is useless in part.
    Whole(usize),
    /// The first this many bytes of standard output, and the last of standard error.
    Head(usize),
}

/// What was kept of one output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The bytes that were kept.
    pub bytes: Vec<u8>,
    /// How many bytes were written before those that were kept; with [`Keep::Head`], after them.
    pub dropped: u64,
}

impl Output {
    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.dropped == 0
    }

    /// The output as text, with what is not UTF-8 replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Receives one output and keeps what it was told to keep.
pub(super) struct Collector {
    keep: Keep,
    bytes: Vec<u8>,
    dropped: u64,
}

impl Collector {
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, bytes: Vec::new(), dropped: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (Keep::Tail(limit) | Keep::Whole(limit)) = self.keep else { return self.push_to_head(bytes) };
        self.bytes.extend_from_slice(bytes);
        // Cutting only at twice the size moves every byte once on average.
        if self.bytes.len() > limit.saturating_mul(2) {
            self.drop_front(self.bytes.len() - limit);
        }
    }

    fn push_to_head(&mut self, bytes: &[u8]) {
        let Keep::Head(limit) = self.keep else { return };
        let kept = bytes.len().min(limit.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.dropped += (bytes.len() - kept) as u64;
    }

    /// More was written than may be: see [`Keep::Whole`].
    pub(super) fn overflowed(&self) -> bool {
        matches!(self.keep, Keep::Whole(limit) if self.dropped > 0 || self.bytes.len() > limit)
    }

    pub(super) fn finish(mut self) -> Output {
        let (Keep::Tail(limit) | Keep::Whole(limit)) = self.keep else {
            return Output { bytes: self.bytes, dropped: self.dropped };
        };
        if self.bytes.len() > limit {
            self.drop_front(self.bytes.len() - limit);
        }
        if self.dropped > 0 {
            // A single line that is longer than all that is kept is still worth its end.
            let line = self.bytes.iter().position(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
            if line < self.bytes.len() {
                self.drop_front(line);
            }
        }
        Output { bytes: self.bytes, dropped: self.dropped }
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.dropped += count as u64;
    }
}

/// The longest piece of a line that is handed on at once.
pub(super) const LONGEST_LINE: usize = 8 * 1024;

/// Cuts a stream of bytes into lines of text.
#[derive(Default)]
pub(super) struct Lines {
    unfinished: Vec<u8>,
}

impl Lines {
    /// Hands on every line that `bytes` completes, without its end. A line that is too long comes in pieces.
    pub(super) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.unfinished.extend_from_slice(part);
            if self.unfinished.last() == Some(&b'\n') {
                self.unfinished.pop();
                if self.unfinished.last() == Some(&b'\r') {
                    self.unfinished.pop();
                }
                self.emit_pieces(&mut line);
                line(&String::from_utf8_lossy(&self.unfinished));
                self.unfinished.clear();
            } else {
                self.emit_pieces(&mut line);
            }
        }
    }

    /// Hands on what is left when no line end follows.
    pub(super) fn finish(mut self, line: impl FnOnce(&str)) {
        if !self.unfinished.is_empty() {
            line(&String::from_utf8_lossy(&self.unfinished));
            self.unfinished.clear();
        }
    }

    fn emit_pieces(&mut self, line: &mut impl FnMut(&str)) {
        let mut rest = self.unfinished.as_slice();
        while rest.len() > LONGEST_LINE {
            let (piece, after) = rest.split_at(whole_characters(&rest[..LONGEST_LINE]));
            line(&String::from_utf8_lossy(piece));
            rest = after;
        }
        let done = self.unfinished.len() - rest.len();
        self.unfinished.drain(..done);
    }
}

/// The length of `bytes` without a character at its end that is cut in two.
fn whole_characters(bytes: &[u8]) -> usize {
    // A character has at most four bytes, of which only the first is not a continuation.
    let start = bytes.iter().rev().take(4).position(|&byte| byte & 0b1100_0000 != 0b1000_0000);
    let Some(start) = start.map(|back| bytes.len() - 1 - back).filter(|&start| start > 0) else {
        return bytes.len();
    };
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(keep: Keep, chunks: &[&[u8]]) -> Output {
        let mut collector = Collector::new(keep);
        for chunk in chunks {
            collector.push(chunk);
        }
        collector.finish()
    }

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut lines = Lines::default();
        for chunk in chunks {
            lines.push(chunk, |line| seen.push(line.to_owned()));
        }
        lines.finish(|line| seen.push(line.to_owned()));
        seen
    }

    #[test]
    fn short_output_is_kept_whole() {
        let output = collect(Keep::Tail(100), &[b"one\n", b"two"]);
        assert_eq!(output, Output { bytes: b"one\ntwo".to_vec(), dropped: 0 });
    }

    #[test]
    fn a_tail_begins_with_a_whole_line_and_counts_what_is_gone() {
        let output = collect(Keep::Tail(10), &[b"first\nsecond\n", b"third\n4th\n"]);
        assert_eq!(output.text(), "4th\n");
        assert_eq!(output.dropped, 19);
    }

    #[test]
    fn a_head_is_the_beginning_and_counts_what_is_gone() {
        let output = collect(Keep::Head(8), &[b"first\n", b"second\n", b"third\n"]);
        assert_eq!((output.text().as_ref(), output.dropped), ("first\nse", 11));
    }

    #[test]
    fn the_end_of_an_overlong_line_is_kept() {
        assert_eq!(collect(Keep::Tail(4), &[b"abcdefgh"]).text(), "efgh");
        assert_eq!(collect(Keep::Tail(4), &[b"abcdefgh\n"]).text(), "fgh\n");
    }

    #[test]
    fn the_memory_of_a_tail_is_bounded() {
        let mut collector = Collector::new(Keep::Tail(1000));
        for _ in 0..10_000 {
            collector.push(b"0123456789\n");
            assert!(collector.bytes.len() <= 2000);
        }
        let output = collector.finish();
        assert_eq!(output.dropped + output.bytes.len() as u64, 110_000);
    }

    #[test]
    fn the_whole_overflows_one_byte_past_its_limit() {
        let mut collector = Collector::new(Keep::Whole(3));
        collector.push(b"abc");
        assert!(!collector.overflowed());
        collector.push(b"d");
        assert!(collector.overflowed());
    }

    #[test]
    fn lines_are_cut_wherever_the_chunks_end() {
        assert_eq!(lines(&[b"on", b"e\ntwo\r\n\nth", b"ree"]), ["one", "two", "", "three"]);
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(lines(&[b"a\xff\xfeb\n"]), ["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn a_character_split_between_chunks_stays_whole() {
        let euro = "€".as_bytes();
        assert_eq!(lines(&[&euro[..1], &euro[1..], b"\n"]), ["€"]);
    }

    #[test]
    fn an_endless_line_comes_in_pieces_that_do_not_cut_characters() {
        let longest = "x".repeat(LONGEST_LINE);
        assert_eq!(lines(&[longest.as_bytes(), b"\n"]), [longest]);
        let text = format!("a{}", "€".repeat(LONGEST_LINE));
        let pieces = lines(&[text.as_bytes(), b"\n"]);
        assert!(pieces.len() > 2);
        assert!(pieces.iter().all(|piece| piece.len() <= LONGEST_LINE));
        assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn only_a_character_that_is_cut_in_two_is_held_back() {
        for (bytes, whole) in [
            (b"ab".as_slice(), 2),
            ("a€".as_bytes(), 4),
            (&"a€".as_bytes()[..3], 1),
            (&"a€".as_bytes()[..2], 1),
            // No more of it will make these a character.
            (b"a\xff", 2),
            (b"a\x80\x80\x80\x80", 5),
            // Nothing would be left.
            (&"€".as_bytes()[..2], 2),
            (b"", 0),
        ] {
            assert_eq!(whole_characters(bytes), whole, "{bytes:?}");
        }
    }

    #[test]
    fn endless_garbage_comes_in_pieces_too() {
        let pieces = lines(&[&vec![0x80; 3 * LONGEST_LINE]]);
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|piece| piece.chars().all(|c| c == '\u{fffd}')));
    }
}
