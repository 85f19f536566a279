//! A file that is edited: what it holds, and what the steps make of that.

use std::{
    io::Read,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use super::{Properties, edit};
use crate::{
    host::files::{self, Digested, FileKind, UNKNOWN},
    resource::{Context, Error},
    template::PredictedText,
};

/// A larger file is not edited: all of it is held in memory.
const LARGEST: u64 = 64 << 20;

/// How often the time limit is checked while the steps are carried out.
const TICK: Duration = Duration::from_millis(50);

/// JSON and TOML documents nest.
const STACK: usize = 8 << 20;

/// A text before and after the steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) old: String,
    pub(super) new: String,
}

/// Reads the file as it is, or as a dry run predicts it, and carries out the steps on its text. Returns nothing where
/// nobody knows the text, or where there is no file whose text it could be.
pub(super) fn edited(
    want: &Properties,
    found: Option<&Digested>,
    cx: &Context,
) -> Result<Option<Edited>, Error> {
    let old = match found {
        None if want.create => Some(String::new()),
        None => return Err(absent(want)),
        Some(found) if found.entry.kind != FileKind::File => return Ok(None),
        Some(found) if found.sha256.as_deref() == Some(UNKNOWN) => None,
        Some(_) => old_text(want, cx)?,
    };
    let Some(old) = old else { return Ok(None) };
    let (edited, doubts) = carried_out(want, old, cx)?;
    if !cx.is_sensitive() {
        for doubt in doubts {
            cx.warn(doubt);
        }
    }
    Ok(Some(edited))
}

/// Carries out the steps, and returns what is doubtful about them, on a thread of its own, because a search with a regular expression cannot be stopped. After the time
/// limit or a signal, the thread is left behind and its result is dropped.
fn carried_out(want: &Properties, old: String, cx: &Context) -> Result<(Edited, Vec<String>), Error> {
    let (steps, path) = (want.edit.clone(), want.name.as_path().to_owned());
    let (done, result) = mpsc::sync_channel(1);
    let work = move || {
        let edited = edit::apply(&steps, &old, &path).map(|new| {
            let doubts = if new == old { Vec::new() } else { edit::doubts(&steps, &old, &path) };
            (Edited { old, new }, doubts)
        });
        let _ = done.send(edited);
    };
    let started = thread::Builder::new().name("edit".to_owned()).stack_size(STACK).spawn(work);
    started.map_err(|error| Error::new(format!("cannot start a thread: {error}")).on("edit"))?;
    loop {
        match result.recv_timeout(TICK) {
            Ok(edited) => return edited.map_err(|error| Error::new(error.to_string()).on("edit")),
            Err(RecvTimeoutError::Timeout) => cx.tick()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new("the steps were not carried out to their end").on("edit"));
            }
        }
    }
}

fn absent(want: &Properties) -> Error {
    Error::new(format!("{} does not exist, and so cannot be edited", want.name))
        .on("edit")
        .with_help("set `create: true`, with owner, group and mode, to begin with an empty file")
}

/// Returns the text of the file; `None` where a dry run cannot tell it.
fn old_text(want: &Properties, cx: &Context) -> Result<Option<String>, Error> {
    let prediction = cx.prediction.borrow();
    let mut path = prediction.files.place_on_disk(want.name.as_path());
    match prediction.text(want.name.as_path()) {
        Some(PredictedText::Text(text)) => return Ok(Some(text)),
        Some(PredictedText::Unknown | PredictedText::Nothing) => return Ok(None),
        Some(PredictedText::CopyOf(source)) => path = source,
        None => {}
    }
    let failed = |reason: String| Error::new(format!("cannot edit {}: {reason}", want.name)).on("edit");
    let Some((Some(file), _)) = files::open_regular(&path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        failed(format!("it is not UTF-8 text, from byte {} on", error.utf8_error().valid_up_to()))
    })?;
    Ok(Some(text))
}
