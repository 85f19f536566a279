//! Messages that wait on disk, in order and with a size limit.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
};

use super::posting::Posting;
use crate::host::files::{FileError, PrivateFolder};

/// Limits of the spool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { messages: 10_000, bytes: 16 << 20 }
    }
}

/// Messages of one run.
struct Segment {
    number: u64,
    /// Number of messages that were sent, and how many of them are recorded as sent.
    sent: usize,
    noted: usize,
    messages: usize,
    bytes: u64,
}

/// Position of a message in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    segment: u64,
    message: usize,
}

/// Messages in a directory: a file with lines for each run, and for a partly sent run a file with the progress.
pub(super) struct Spool {
    folder: PrivateFolder,
    limits: Limits,
    segments: VecDeque<Segment>,
    /// Messages of the first segment that were not sent yet.
    ahead: VecDeque<Posting>,
}

fn file_name(number: u64) -> String {
    format!("{number:020}.jsonl")
}

fn progress_name(number: u64) -> String {
    format!("{number:020}.sent")
}

impl Spool {
    /// Opens the files in a directory. Unreadable files are skipped when they are reached.
    pub(super) fn open(folder: PrivateFolder, limits: Limits) -> Result<Self, FileError> {
        folder.sweep(&mut || Ok(()))?;
        let mut numbers: Vec<u64> = folder
            .names()?
            .iter()
            .filter_map(|name| name.to_str()?.strip_suffix(".jsonl")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let mut spool = Self { folder, limits, segments: VecDeque::new(), ahead: VecDeque::new() };
        for number in numbers {
            let (messages, bytes) = spool
                .read(number)?
                .iter()
                .fold((0, 0), |(count, bytes), posting| (count + 1, bytes + posting.payload().len() as u64));
            let sent = spool.progress(number).min(messages);
            spool.segments.push_back(Segment { number, sent, noted: sent, messages, bytes });
        }
        Ok(spool)
    }

    /// Adds the messages of a run, and syncs them. Discards the oldest runs if there are too many, and returns the
    /// number of discarded messages.
    pub(super) fn add(&mut self, postings: &[Posting]) -> Result<usize, FileError> {
        let number = self.segments.back().map_or(0, |last| last.number + 1);
        // Of a run that exceeds the limit alone, keep the last messages, which include the summary.
        let kept = &postings[postings.len().saturating_sub(self.limits.messages)..];
        let lines: Vec<String> =
            kept.iter().filter_map(|posting| serde_json::to_string(posting).ok()).collect();
        let bytes = lines.iter().map(|line| line.len() as u64).sum();
        let mut dropped = postings.len() - kept.len();
        while self.segments.front().is_some() && self.is_too_much(kept.len(), bytes) {
            dropped += self.drop_first();
        }
        self.folder.replace(&file_name(number), |out: &mut dyn Write| {
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))
        })?;
        self.segments.push_back(Segment { number, sent: 0, noted: 0, messages: kept.len(), bytes });
        Ok(dropped)
    }

    fn is_too_much(&self, messages: usize, bytes: u64) -> bool {
        let waiting: usize = self.segments.iter().map(|segment| segment.messages - segment.sent).sum();
        let size: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        waiting + messages > self.limits.messages || size.saturating_add(bytes) > self.limits.bytes
    }

    /// Returns whether the spool is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.sent == segment.messages)
    }

    /// Returns the next message to send.
    pub(super) fn next(&mut self) -> Option<(Place, Posting)> {
        loop {
            let segment = self.segments.front()?;
            let (number, sent, messages) = (segment.number, segment.sent, segment.messages);
            if sent >= messages {
                self.drop_first();
                continue;
            }
            if self.ahead.is_empty() {
                // A file that became unreadable is lost; others are not.
                let read = self.read(number).unwrap_or_default();
                self.ahead = read.into_iter().skip(sent).collect();
            }
            match self.ahead.front() {
                Some(posting) => return Some((Place { segment: number, message: sent }, posting.clone())),
                None => drop(self.drop_first()),
            }
        }
    }

    /// Marks a message as sent. It might have been discarded meanwhile.
    pub(super) fn done(&mut self, place: Place) {
        let Some(segment) = self.segments.front_mut() else { return };
        if segment.number == place.segment && segment.sent == place.message {
            segment.sent += 1;
            self.ahead.pop_front();
            if segment.sent == segment.messages {
                self.drop_first();
            }
        }
    }

    /// Records how much of the first run was sent. If that fails, the server deduplicates resent messages by id.
    pub(super) fn note_progress(&mut self) {
        let Some(segment) = self.segments.front_mut().filter(|segment| segment.noted < segment.sent) else {
            return;
        };
        segment.noted = segment.sent;
        let (name, sent) = (progress_name(segment.number), segment.sent);
        let _ = self.folder.replace(&name, |out: &mut dyn Write| write!(out, "{sent}"));
    }

    /// Removes the oldest run, and returns the number of its unsent messages.
    fn drop_first(&mut self) -> usize {
        let Some(segment) = self.segments.pop_front() else { return 0 };
        self.ahead.clear();
        for name in [file_name(segment.number), progress_name(segment.number)] {
            let _ = self.folder.remove(OsStr::new(&name));
        }
        segment.messages - segment.sent
    }

    fn read(&self, number: u64) -> Result<Vec<Posting>, FileError> {
        let Some(file) = self.folder.open_file(&file_name(number))? else { return Ok(Vec::new()) };
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        Ok(lines.filter_map(|line| serde_json::from_str(&line).ok()).collect())
    }

    fn progress(&self, number: u64) -> usize {
        let file = self.folder.open_file(&progress_name(number)).ok().flatten();
        let line = file.and_then(|file| BufReader::new(file).lines().next()?.ok());
        line.and_then(|line| line.trim().parse().ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Map, json};

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ccm-spool-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn spool(&self, messages: usize) -> Spool {
            let folder = PrivateFolder::make(&self.0).unwrap();
            Spool::open(folder, Limits { messages, ..Limits::default() }).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn postings(ids: &[&str]) -> Vec<Posting> {
        let body = Map::from_iter([("a".to_owned(), json!(1))]);
        ids.iter().map(|id| Posting { id: (*id).to_owned(), body: body.clone() }).collect()
    }

    fn sent(spool: &mut Spool, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        while ids.len() < count
            && let Some((place, posting)) = spool.next()
        {
            ids.push(posting.id);
            spool.done(place);
        }
        ids
    }

    #[test]
    fn messages_go_out_in_order_and_once_across_restarts() {
        let folder = Folder::new("order");
        let mut spool = folder.spool(100);
        spool.add(&postings(&["a", "b"])).unwrap();
        spool.add(&postings(&["c", "d", "e"])).unwrap();
        assert_eq!(sent(&mut spool, 3), ["a", "b", "c"]);
        spool.note_progress();
        drop(spool);
        let mut spool = folder.spool(100);
        spool.add(&postings(&["f"])).unwrap();
        assert_eq!(sent(&mut spool, 9), ["d", "e", "f"]);
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "what was sent is gone from the disk");
    }

    #[test]
    fn the_oldest_runs_go_when_there_are_too_many_messages() {
        let folder = Folder::new("bound");
        let mut spool = folder.spool(4);
        assert_eq!(spool.add(&postings(&["a", "b"])).unwrap(), 0);
        assert_eq!(spool.add(&postings(&["c", "d"])).unwrap(), 0);
        assert_eq!(spool.add(&postings(&["e"])).unwrap(), 2);
        assert_eq!(spool.add(&postings(&["1", "2", "3", "4", "5", "6"])).unwrap(), 5);
        assert_eq!(sent(&mut spool, 9), ["3", "4", "5", "6"]);
    }

    #[test]
    fn a_torn_line_is_passed_over() {
        let folder = Folder::new("torn");
        let mut spool = folder.spool(100);
        spool.add(&postings(&["a", "b"])).unwrap();
        drop(spool);
        let file = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}{{\"id\": \"c")).unwrap();
        assert_eq!(sent(&mut folder.spool(100), 9), ["a", "b"]);
    }
}
