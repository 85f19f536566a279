//! The thread that asks one source.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::{
    Answer, FetchError, LocalSource, Opening, Source, Version,
    pace::Pace,
    waker::{Call, Waker},
};
use crate::{
    agent::{chance, mailbox::Sender},
    host::files::{TempFile, hex},
};

/// How far a change that a whole fleet is told of in one moment is spread.
pub(crate) const SPREAD: Duration = Duration::from_secs(2);

/// How soon a source is asked again that told of a change and then had nothing new. A NATS server tells its subscribers of a
/// message before its stream has stored it, which it usually has a moment later.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Asks one source from a thread of its own, until it is dropped.
pub(crate) struct Fetcher {
    waker: Waker,
    forgets: Arc<AtomicBool>,
}

/// What a fetcher has to tell.
pub(crate) enum News {
    /// The source has what is known.
    Same,
    /// The source has something that was not seen before.
    Arrived(Box<Arrival>),
    /// There is no answer that can be used.
    Failed(FetchError),
}

/// Content that was fetched and that nobody has judged yet.
pub(crate) struct Arrival {
    /// The file, under a temporary name beside the place it is meant for.
    pub(crate) draft: TempFile,
    /// The name that it will have in the folder of the source.
    pub(crate) name: String,
    pub(crate) version: Option<Version>,
    /// The SHA-256 of the content.
    pub(crate) digest: String,
    /// The signature beside it, if that is asked for.
    pub(crate) signature: Option<Result<Vec<u8>, FetchError>>,
}

/// What a fetcher knows and how it works.
pub(crate) struct Orders {
    /// The folder of the source in the cache.
    pub(crate) folder: PathBuf,
    /// The version and digest of what is in force, or of what was refused.
    pub(crate) seen: Seen,
    pub(crate) poll: Duration,
    /// How long one fetch can take.
    pub(crate) timeout: Duration,
    /// How far changes from far away are spread.
    pub(crate) spread: Duration,
    pub(crate) signatures: Signatures,
}

/// Whether signatures are fetched with the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signatures {
    Wanted,
    Unwanted,
}

/// What was seen last of a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) version: Option<Version>,
    pub(crate) digest: Option<String>,
    /// The SHA-256 of the signature that did not fit, if that is why the content was refused.
    pub(crate) signature: Option<String>,
}

impl Fetcher {
    /// Starts the thread. `tell` carries what it finds.
    pub(crate) fn start(opening: Opening, orders: Orders, tell: Sender<News>) -> io::Result<Self> {
        let waker = Waker::default();
        let (own, forgets) = (waker.clone(), Arc::new(AtomicBool::new(false)));
        let is_forgotten = Arc::clone(&forgets);
        thread::Builder::new().name("source".to_owned()).stack_size(512 * 1024).spawn(move || {
            let source = opening(own.clone());
            Asking { source, orders, waker: own, tell, is_forgotten }.go_on();
        })?;
        Ok(Self { waker, forgets })
    }

    /// Asks the source now.
    pub(crate) fn ask(&self) {
        self.waker.ask();
    }

    /// Takes what was fetched last for never seen: it is fetched again at the next poll.
    pub(crate) fn forget(&self) {
        self.forgets.store(true, Ordering::Relaxed);
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.waker.end();
    }
}

struct Asking {
    source: Box<dyn Source>,
    orders: Orders,
    waker: Waker,
    tell: Sender<News>,
    is_forgotten: Arc<AtomicBool>,
}

impl Asking {
    /// Asks until nobody listens any more.
    fn go_on(mut self) {
        // When to ask again for a change that was told of and is not found yet.
        let mut again = [].iter();
        loop {
            let news = self.ask().unwrap_or_else(News::Failed);
            let is_over = matches!(news, News::Failed(FetchError::Interrupted));
            if matches!(news, News::Arrived(_)) {
                again = [].iter();
            }
            if self.tell.send(news).is_err() || is_over {
                return;
            }
            // Agents that were started in one moment do not ask in one moment for ever.
            let poll = chance::jittered(self.orders.poll);
            match self.waker.wait(again.next().map_or(poll, |pause| poll.min(*pause))) {
                Call::Ended => return,
                Call::Changed => {
                    again = AGAIN.iter();
                    if self.waker.wait(chance::up_to(self.orders.spread)) == Call::Ended {
                        return;
                    }
                }
                Call::Time | Call::Asked => {}
            }
        }
    }

    fn ask(&mut self) -> Result<News, FetchError> {
        if self.is_forgotten.swap(false, Ordering::Relaxed) {
            self.orders.seen = Seen::default();
        }
        let signature_changed = self.signature_changed()?;
        let seen = &self.orders.seen;
        let known = seen.version.as_ref().filter(|_| !signature_changed);
        let pace = Pace::new(Instant::now(), self.orders.timeout);
        let mut out = Draft { pace: Some(pace), ..Draft::new(&self.orders.folder) };
        let answer = self.source.fetch(known, &mut out);
        if let Some(verdict) = out.pace.take().and_then(|pace| pace.verdict) {
            return Err(FetchError::Away(verdict));
        }
        let version = match answer? {
            Answer::Same => return Ok(News::Same),
            Answer::New(version) => version,
        };
        let (draft, name, digest) = out.finish()?;
        if seen.digest.as_ref() == Some(&digest) && !signature_changed {
            self.orders.seen.version = version;
            return Ok(News::Same);
        }
        let wants_signature = self.orders.signatures == Signatures::Wanted;
        let signature = wants_signature.then(|| self.source.signature());
        let told = signature.as_ref().and_then(|signature| signature.as_ref().ok());
        self.orders.seen = Seen {
            version: version.clone(),
            digest: Some(digest.clone()),
            signature: wants_signature.then(|| hash_of(told.map(Vec::as_slice).unwrap_or_default())),
        };
        Ok(News::Arrived(Box::new(Arrival { draft, name, version, digest, signature })))
    }

    /// Whether there is another signature beside content that was refused for its signature.
    fn signature_changed(&mut self) -> Result<bool, FetchError> {
        let Some(refused) = self.orders.seen.signature.clone() else { return Ok(false) };
        match self.source.signature() {
            Ok(signature) => Ok(hash_of(&signature) != refused),
            Err(FetchError::Interrupted) => Err(FetchError::Interrupted),
            Err(_) => Ok(false),
        }
    }
}

/// Returns the SHA-256 of some bytes in hexadecimal.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Reads a file of this machine, unless it is the one that is known.
pub(crate) fn fetch_local(path: PathBuf, folder: &Path, known: Option<&str>) -> News {
    let mut source = LocalSource(path);
    let mut read = || {
        let mut hash = HashOnly(Sha256::new());
        source.fetch(None, &mut hash)?;
        if known == Some(&hex(&hash.0.finalize())) {
            return Ok(News::Same);
        }
        let mut out = Draft::new(folder);
        source.fetch(None, &mut out)?;
        let (draft, name, digest) = out.finish()?;
        Ok(News::Arrived(Box::new(Arrival { draft, name, version: None, digest, signature: None })))
    };
    read().unwrap_or_else(News::Failed)
}

/// A file in the folder of a source that is hashed while it is written. It is made for the first bytes: most answers have none.
struct Draft<'f> {
    folder: &'f Path,
    begun: Option<(TempFile, String)>,
    hash: Sha256,
    /// How fast the content has to arrive, if it comes from another machine.
    pace: Option<Pace>,
}

impl<'f> Draft<'f> {
    fn new(folder: &'f Path) -> Self {
        Self { folder, begun: None, hash: Sha256::new(), pace: None }
    }

    /// Returns the file, its name to be, and the digest of its content.
    fn finish(self) -> Result<(TempFile, String, String), FetchError> {
        let begun = self.begun.map_or_else(|| begin(self.folder), Ok);
        let (draft, name) = begun.map_err(FetchError::Unwritten)?;
        Ok((draft, name, hex(&self.hash.finalize())))
    }
}

/// Begins a file in the folder of a source, under a name that no other has.
fn begin(folder: &Path) -> io::Result<(TempFile, String)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = format!("content-{now}");
    let draft = TempFile::new(&folder.join(&name), geteuid().as_raw());
    draft.map(|draft| (draft, name)).map_err(|error| io::Error::other(error.to_string()))
}

impl Write for Draft<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pace.as_mut().is_some_and(|pace| !pace.received(Instant::now(), bytes.len())) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let begun = self.begun.take().map_or_else(|| begin(self.folder), Ok)?;
        let count = self.begun.insert(begun).0.file().write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.begun.as_ref().map_or(Ok(()), |(draft, _)| draft.file().flush())
    }
}

/// Hashes what is written and keeps nothing.
struct HashOnly(Sha256);

impl Write for HashOnly {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::agent::{mailbox::Mailbox, waiting::wait};

    /// A source that tells of a change when it was asked once, and has it only when it was asked twice more.
    struct Hasty {
        waker: Waker,
        asked: u32,
    }

    impl Source for Hasty {
        fn fetch(&mut self, known: Option<&Version>, into: &mut dyn Write) -> Result<Answer, FetchError> {
            self.asked += 1;
            if self.asked == 1 {
                self.waker.changed();
            }
            let version = Version(if self.asked < 4 { "one" } else { "two" }.to_owned());
            if known == Some(&version) {
                return Ok(Answer::Same);
            }
            into.write_all(version.0.as_bytes())?;
            Ok(Answer::New(Some(version)))
        }

        fn signature(&mut self) -> Result<Vec<u8>, FetchError> {
            Ok(Vec::new())
        }
    }

    fn orders(folder: &Path, seen: Seen) -> Orders {
        Orders {
            folder: folder.to_owned(),
            seen,
            poll: Duration::from_hours(1),
            timeout: Duration::from_mins(10),
            spread: Duration::ZERO,
            signatures: Signatures::Unwanted,
        }
    }

    #[test]
    fn an_answer_without_content_makes_no_file() {
        let waker = Waker::default();
        let seen = Seen { version: Some(Version("one".to_owned())), ..Seen::default() };
        let mut asking = Asking {
            source: Box::new(Hasty { waker: waker.clone(), asked: 1 }),
            orders: orders(Path::new("/nowhere"), seen),
            waker,
            tell: Mailbox::new().unwrap().sender(|news: News| news),
            is_forgotten: Arc::default(),
        };
        assert!(matches!(asking.ask(), Ok(News::Same)));
        asking.orders.seen = Seen::default();
        assert!(matches!(asking.ask(), Err(FetchError::Unwritten(_))));
    }

    #[test]
    fn a_change_that_was_told_of_before_it_was_stored_is_asked_for_again() {
        let folder = std::env::temp_dir().join(format!("ccm-fetcher-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let orders = orders(&folder, Seen::default());
        let mailbox = Mailbox::new().unwrap();
        let tell = mailbox.sender(|news: News| news);
        let opening: Opening = Box::new(|waker| Box::new(Hasty { waker, asked: 0 }));
        let fetcher = Fetcher::start(opening, orders, tell).unwrap();
        let (mut arrived, end) = (Vec::new(), Instant::now() + Duration::from_mins(10));
        while arrived.len() < 2 && Instant::now() < end {
            wait(&[mailbox.as_fd()], Some(end));
            for news in mailbox.take() {
                if let News::Arrived(arrival) = news {
                    arrived.push(arrival.version.map(|Version(version)| version).unwrap_or_default());
                }
            }
        }
        assert_eq!(arrived, ["one", "two"]);
        drop(fetcher);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
