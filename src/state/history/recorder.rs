//! Recording a run.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use jiff::Timestamp;

use super::{
    HistoryStore, Objects, Secrecy, StateDirectory, StateError,
    record::{Change, Done, End, FORMAT, HostRun, Line, ManifestDigest, Start},
};
use crate::host::files::FileError;

/// Records one run. Nothing is written before the first change, or before the end of a run without changes.
pub(crate) struct Recorder {
    state: StateDirectory,
    start: Start,
    open: Option<Open>,
    /// Whether the first line is written.
    is_begun: bool,
    next: u32,
}

struct Open {
    store: HistoryStore,
    file: File,
    name: String,
    public: Objects,
    secret: Option<Objects>,
}

impl Recorder {
    /// Begins the record of a run.
    pub(crate) fn new(state: StateDirectory, start: Start) -> Self {
        Self { state, start, open: None, is_begun: false, next: 0 }
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> &str {
        &self.start.run
    }

    /// Returns how the run was started.
    pub(crate) fn start(&self) -> &Start {
        &self.start
    }

    /// Adds manifests to the record of a run that has not changed anything yet.
    pub(crate) fn add_manifests(&mut self, manifests: Vec<ManifestDigest>) {
        self.start.manifests.extend(manifests);
    }

    /// Whether a change was recorded.
    pub(crate) fn has_changes(&self) -> bool {
        self.next > 0
    }

    /// Returns the store of copies for a resource.
    pub(crate) fn objects(&mut self, secrecy: Secrecy) -> Result<&Objects, StateError> {
        let open = self.open()?;
        if secrecy == Secrecy::Public {
            return Ok(&open.public);
        }
        if open.secret.is_none() {
            open.secret = Some(open.store.objects(Secrecy::Secret)?);
        }
        Ok(open.secret.as_ref().unwrap_or(&open.public))
    }

    /// Records changes before they are made, and returns their numbers. They and the copies of replaced contents are on
    /// disk when this returns.
    pub(crate) fn record(&mut self, changes: &mut [Change]) -> Result<(), StateError> {
        let (is_first, before) = (!self.is_begun, self.next);
        let mut lines = Vec::with_capacity(changes.len() + 1);
        if is_first {
            lines.push(Line::Begin(self.start.clone()));
        }
        for change in changes.iter_mut() {
            self.start.run.clone_into(&mut change.run);
            change.number = self.next;
            self.next += 1;
            lines.push(Line::Change(Box::new(change.clone())));
        }
        let appended = self.append(&lines, true);
        self.is_begun |= appended.is_ok();
        if appended.is_err() && is_first {
            self.next = before;
        }
        appended
    }

    /// Writes the first line of a run that is recorded even if it is killed before its first change.
    pub(crate) fn begin(&mut self) -> Result<(), StateError> {
        self.append(&[Line::Begin(self.start.clone())], true)?;
        self.is_begun = true;
        Ok(())
    }

    /// Records the state of a push on a host.
    pub(crate) fn host(&mut self, host: HostRun) -> Result<(), StateError> {
        let run = self.start.run.clone();
        self.append(&[Line::Host { run, host }], false)
    }

    /// Records that a change was made.
    pub(crate) fn complete(&mut self, mut done: Done) -> Result<(), StateError> {
        self.start.run.clone_into(&mut done.run);
        self.append(&[Line::Done(Box::new(done))], false)
    }

    /// Ends the record of the run.
    pub(crate) fn finish(&mut self, mut end: End) -> Result<(), StateError> {
        self.start.run.clone_into(&mut end.run);
        end.end = Timestamp::now().to_string();
        if !self.is_begun {
            let start = self.start.clone();
            return self.append(&[Line::Run { start, outcome: end }], false);
        }
        self.append(&[Line::End(end)], true)
    }

    /// Notes which run this run undid, if it did.
    pub(crate) fn mark_undone(&mut self) -> Result<(), StateError> {
        match self.start.undo_of.clone() {
            Some(undone) => self.open()?.store.mark_undone(&undone),
            None => Ok(()),
        }
    }

    /// Applies the limits of the history.
    pub(crate) fn prune(&mut self, limits: super::Limits) -> Result<(), StateError> {
        let Some(open) = &self.open else { return Ok(()) };
        open.store.prune(limits, std::slice::from_ref(&self.start.run)).map(drop)
    }

    fn open(&mut self) -> Result<&mut Open, StateError> {
        if self.open.is_none() {
            let store = self.state.make_history()?;
            let month = self.start.start.get(..7).unwrap_or("0000-00");
            let name = format!("{month}.jsonl");
            let is_new = store.folder.look(name.as_ref())?.is_none();
            let file = store.folder.make_to_append(&name)?;
            if is_new {
                store.folder.sync()?;
            }
            let public = store.objects(Secrecy::Public)?;
            self.open = Some(Open { store, file, name, public, secret: None });
        }
        self.open.as_mut().ok_or(StateError::Interrupted)
    }

    fn append(&mut self, lines: &[Line], is_vital: bool) -> Result<(), StateError> {
        let mut text = Vec::new();
        let open = self.open()?;
        let path = open.store.folder.path().join(&open.name);
        let failed = |error| StateError::Io { path: path.clone(), error };
        for line in lines {
            text.extend_from_slice(format!("{{\"v\":{FORMAT},").as_bytes());
            let json = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
            text.extend_from_slice(&json[1..]);
            text.push(b'\n');
        }
        if is_vital {
            open.public.sync()?;
            open.secret.as_ref().map_or(Ok(()), Objects::sync)?;
        }
        let _lock = open.store.lock()?;
        // Pruning replaces the file.
        let metadata = open.file.metadata().map_err(failed)?;
        if !is_current(&open.store, &open.name, &metadata)? {
            open.file = open.store.folder.make_to_append(&open.name)?;
        }
        if is_torn(&mut open.file).map_err(failed)? {
            text.insert(0, b'\n');
        }
        open.file.write_all(&text).map_err(failed)?;
        if is_vital {
            open.file.sync_data().map_err(failed)?;
        }
        Ok(())
    }
}

fn is_current(store: &HistoryStore, name: &str, metadata: &std::fs::Metadata) -> Result<bool, FileError> {
    use std::os::unix::fs::MetadataExt;
    let found = store.folder.look(Path::new(name).as_os_str())?;
    Ok(found.is_some_and(|found| (found.dev, found.ino) == (metadata.dev(), metadata.ino())))
}

/// Whether a kill cut the last line of a file short.
fn is_torn(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
