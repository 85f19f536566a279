//! `.env` in the working directory.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use ccm_expr::{Map, Value};
use clap::Args;
use rustix::{fs::OFlags, io::Errno};

use super::failure::{Failure, warn};
use crate::{
    hiera::deep,
    host::{
        files,
        input::{self, Limits},
    },
    manifest::LoadInputs,
};

/// Whether `.env` in the working directory adds to the environment that templates see.
#[derive(Args)]
pub(super) struct DotenvFlags {
    /// Let .env in the working directory add to Environ
    #[arg(long, overrides_with = "no_read_env")]
    read_env: bool,
    /// Leave .env in the working directory alone
    #[arg(long, overrides_with = "read_env")]
    no_read_env: bool,
}

impl DotenvFlags {
    /// Returns whether no flag forbids to read `.env`.
    pub(super) fn allows(&self) -> bool {
        !self.no_read_env
    }

    /// Adds the variables of `.env` if the flags request it. Warns about an unread `.env` if no flag decides.
    pub(super) fn read(&self, load_inputs: LoadInputs) -> Result<LoadInputs, Failure> {
        let here = Path::new(".");
        if self.read_env {
            return with_dotenv(load_inputs, here);
        }
        if !self.no_read_env && here.join(".env").is_file() {
            warn(".env is not read: --read-env lets it add to Environ, --no-read-env leaves it alone");
        }
        Ok(load_inputs)
    }
}

pub(super) fn with_dotenv(mut load_inputs: LoadInputs, folder: &Path) -> Result<LoadInputs, Failure> {
    if let Some(bytes) = ours(&folder.join(".env"), load_inputs.limits)? {
        let text = String::from_utf8(bytes).map_err(|_| Failure::new(".env is not UTF-8 text"))?;
        // All of them are strings, and one string replaces another.
        let own = load_inputs.environ.clone();
        load_inputs.environ = deep(load_inputs.environ, &dotenv_values(&text)?).unwrap_or(own);
    }
    Ok(load_inputs)
}

/// Returns the content of a file if it exists and only its owner, the user or root, can have written it.
///
/// ccm checks the file that it opened, so that another user cannot replace the file in between.
pub(super) fn ours(path: &Path, limits: Limits) -> Result<Option<Vec<u8>>, Failure> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let failed = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            not_ours(path);
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    let is_ours = metadata.is_file() && files::is_ours(metadata.uid()) && metadata.mode() & 0o022 == 0;
    if !is_ours {
        not_ours(path);
        return Ok(None);
    }
    let read = input::read_to_end(file, limits.data);
    read.map(Some).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

fn not_ours(path: &Path) {
    let shown = path.display();
    warn(&format!("{shown} is ignored: it must be a file of yours or of root that nobody else may write"));
}

/// Parses `KEY=value` lines with quotes, comments and `export`, as shells do.
fn dotenv_values(text: &str) -> Result<Value, Failure> {
    let mut values = Map::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let broken = |reason: &str| Failure::new(format!(".env:{}: {reason}", number + 1));
        let (key, value) = line.split_once('=').ok_or_else(|| broken("not of the form KEY=value"))?;
        let key = key.trim_end();
        let is_name = |key: &str| key.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if key.is_empty() || !is_name(key) {
            return Err(broken("not the name of a variable"));
        }
        values.insert(key.into(), dotenv_value(value.trim()).map_err(broken)?.into());
    }
    Ok(values.into())
}

const UNCLOSED: &str = "a quote is not closed on its line; within double quotes, \\n is a line break";

/// Returns a value without its quotes and the comment after it.
fn dotenv_value(text: &str) -> Result<String, &'static str> {
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            text[1..].split_once('\'').map(|(value, rest)| (value.to_owned(), rest)).ok_or(UNCLOSED)?
        }
        Some('"') => double_quoted(&text[1..]).ok_or(UNCLOSED)?,
        Some('#') => return Ok(String::new()),
        _ => return Ok(text.split(" #").next().unwrap_or_default().trim_end().to_owned()),
    };
    match rest.trim_start() {
        "" => Ok(value),
        comment if comment.starts_with('#') => Ok(value),
        _ => Err("there is text after the closing quote; quote the value as a whole"),
    }
}

/// Returns the value up to the closing quote, and the rest of the text.
fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '"' => return Some((value, letters.as_str())),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}
