//! `ccm secret edit`, `set` and `show`

use std::io::{IsTerminal, Read};

use clap::Args;
use zeroize::Zeroizing;

use super::{
    Exit, Failure, FileArgument, KeyFlags, Output, RecipientFlags, editor, format_of, problems, write,
};
use crate::{
    cli::prompt,
    document::{Diagnostics, Node, Source, pair, to_value},
    host::look,
    secrets::{
        Format, Keyring, NewValue, Reuse, Revealed, document, new_data_key, no_key, reveal, seal,
        set as set_value,
    },
};

/// Arguments of `ccm secret edit`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret edit secrets/web.yaml")]
pub(super) struct EditArguments {
    #[command(flatten)]
    file: FileArgument,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    recipients: RecipientFlags,
}

/// Arguments of `ccm secret set`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret set secrets/web.yaml db.password <password.txt")]
pub(super) struct SetArguments {
    #[command(flatten)]
    file: FileArgument,
    /// Path of the value, with dots between keys
    path: String,
    /// The value is JSON, not a string
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    recipients: RecipientFlags,
}

/// Arguments of `ccm secret show`.
#[derive(Args)]
#[command(after_help = "Example:\n  ccm secret show secrets/web.yaml db.password")]
pub(super) struct ShowArguments {
    #[command(flatten)]
    file: FileArgument,
    /// Path of one value, with dots between keys
    path: Option<String>,
    /// Print also if the output is not a terminal
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

/// A document in plain text, with everything needed to encrypt it again.
pub(super) struct Opened {
    pub(super) source: Source,
    pub(super) format: Format,
    pub(super) revealed: Revealed,
    pub(super) metadata: crate::secrets::Metadata,
    pub(super) key: crate::secrets::DataKey,
}

/// Opens an encrypted document.
pub(super) fn open(file: &std::path::Path, keyring: &Keyring) -> Result<Opened, Failure> {
    let (source, format) = (super::source(file)?, format_of(file));
    let failed = |diagnostics| problems(&source, diagnostics);
    let parsed = format.read(&source).map_err(failed)?;
    if parsed.diagnostics.has_errors() {
        return Err(failed(parsed.diagnostics));
    }
    let Some(found) = document(&parsed.root, format, &source).map_err(failed)? else {
        return Err(Failure::new(format!("{} is not encrypted", source.name)));
    };
    let key = keyring.data_key(&found.metadata);
    keyring.take_warnings().iter().for_each(|text| crate::cli::failure::warn(text));
    let key = key.map_err(|error| failed(no_key(error, found.metadata_span).into()))?;
    let revealed = reveal(&source, format, &key).map_err(failed)?;
    Ok(Opened { metadata: found.metadata, source, format, revealed, key })
}

/// Encrypts a new document for the recipients of its rule.
pub(super) fn create(plain: &Source, format: Format, rule: &crate::secrets::Rule) -> Result<String, Failure> {
    let key = new_data_key().map_err(|error| Failure::new(error.to_string()))?;
    let metadata = rule.metadata(&key).map_err(|error| Failure::new(error.to_string()))?;
    seal(plain, format, &metadata, &key, None, &mut Reuse::default()).map_err(|found| problems(plain, found))
}

fn plain_source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

pub(super) fn edit(arguments: EditArguments, output: &Output) -> Result<Exit, Failure> {
    let file = &arguments.file.file;
    if !std::io::stdin().is_terminal() {
        crate::cli::failure::error("`ccm secret edit` needs a terminal: use `ccm secret set` in scripts");
        return Ok(Exit::Failed);
    }
    if !look::is_there(file) {
        let rule = arguments.recipients.rule(file)?;
        let seal = |text: &str| {
            let plain = plain_source(&file.display().to_string(), text);
            let key = new_data_key().map_err(|error| Err(Failure::new(error.to_string())))?;
            let metadata = rule.metadata(&key).map_err(|error| Err(Failure::new(error.to_string())))?;
            seal(&plain, format_of(file), &metadata, &key, None, &mut Reuse::default()).map_err(Ok)
        };
        return match editor::edit(file, "", seal)? {
            Some(sealed) => write(file, sealed.as_bytes(), 0o644).map(|()| Exit::Success),
            None => Ok(Exit::Success),
        };
    }
    let keyring = arguments.keys.keyring(output)?;
    let Opened { source, format, revealed, metadata, key } = open(file, &keyring)?;
    let seal_again = |text: &str| {
        let plain = plain_source(&source.name, text);
        let mut reuse = reveal(&source, format, &key).map_err(Ok::<Diagnostics, Failure>)?.reuse;
        seal(&plain, format, &metadata, &key, Some(&revealed.section), &mut reuse).map_err(Ok)
    };
    match editor::edit(file, &revealed.text, seal_again)? {
        Some(sealed) => write(file, sealed.as_bytes(), 0o644).map(|()| Exit::Success),
        None => Ok(Exit::Success),
    }
}

/// Returns the names of a path.
fn names(path: &str) -> Result<Vec<String>, Failure> {
    let pair = pair(&format!("{path}=")).map_err(|error| Failure::new(error.to_string()))?;
    Ok(pair.names)
}

pub(super) fn set(arguments: SetArguments, output: &Output) -> Result<Exit, Failure> {
    let file = arguments.file.file.clone();
    let names = names(&arguments.path)?;
    let format = format_of(&file);
    let is_new = !look::is_there(&file);
    let rule = if is_new { Some(arguments.recipients.rule(&file)?) } else { None };
    let keyring = arguments.keys.keyring(output)?;
    let opened = if is_new { None } else { Some(open(&file, &keyring)?) };
    let value = value(arguments.json, &arguments.path)?;
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    let before: Zeroizing<String> = match &opened {
        Some(opened) => Zeroizing::new(opened.revealed.text.as_str().to_owned()),
        None => Zeroizing::new(if is_json { "{\n}\n".to_owned() } else { String::new() }),
    };
    let plain = plain_source(&file.display().to_string(), &before);
    let parsed = format.read(&plain).map_err(|found| problems(&plain, found))?;
    let text = set_value(&plain, &parsed.root, format, &names, &value)
        .map_err(|reason| Failure::new(format!("{}: {reason}", arguments.path)))?;
    let new = plain_source(&plain.name, &text);
    let sealed = match (opened, rule) {
        (Some(Opened { format, mut revealed, metadata, key, .. }), _) => {
            if text == *before {
                return Ok(Exit::Success);
            }
            seal(&new, format, &metadata, &key, Some(&revealed.section), &mut revealed.reuse)
                .map_err(|found| problems(&new, found))?
        }
        (None, Some(rule)) => create(&new, format, &rule)?,
        (None, None) => return Err(Failure::new("there is nothing to encrypt for")),
    };
    write(&file, sealed.as_bytes(), 0o644)?;
    Ok(Exit::Success)
}

/// Reads the value from standard input, or asks for it on the terminal.
fn value(is_json: bool, path: &str) -> Result<NewValue, Failure> {
    let text = if std::io::stdin().is_terminal() {
        let answer =
            prompt::ask(&format!("Value of {path}: ")).map_err(|error| Failure::new(error.to_string()))?;
        answer.ok_or_else(|| Failure::new("no value was given"))?
    } else {
        let mut text = Zeroizing::new(String::new());
        std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::new(error.to_string()))?;
        let length = text.strip_suffix('\n').map_or(text.len(), str::len);
        text.truncate(length);
        text
    };
    if !is_json {
        return Ok(NewValue::Text(text.as_str().to_owned()));
    }
    let json = serde_json::from_str(&text);
    json.map(NewValue::Json).map_err(|_| Failure::new("the value is not JSON"))
}

pub(super) fn show(arguments: ShowArguments, output: &mut Output) -> Result<Exit, Failure> {
    permit(arguments.force)?;
    let keyring = arguments.keys.keyring(output)?;
    let file = &arguments.file.file;
    let opened = open(file, &keyring)?;
    let Some(path) = &arguments.path else {
        output.text(&opened.revealed.text);
        return Ok(Exit::Success);
    };
    let plain = plain_source(&opened.source.name, &opened.revealed.text);
    let parsed = opened.format.read(&plain).map_err(|found| problems(&opened.source, found))?;
    let found = names(path)?.iter().try_fold(&parsed.root, |node: &Node, name| match node.as_seq() {
        Some(items) => items.get(name.parse::<usize>().ok()?),
        None => node.lookup(name),
    });
    let Some(node) = found else { return Err(Failure::new(format!("{}: there is no `{path}`", plain.name))) };
    let value = to_value(node);
    match value.as_str() {
        Some(text) if text.ends_with('\n') => output.text(text),
        Some(text) => output.line(text),
        None => output.line(&value.to_text()),
    }
    Ok(Exit::Success)
}

/// Refuses to print secrets where they would be stored.
pub(super) fn permit(force: bool) -> Result<(), Failure> {
    if force || std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::new("secrets are printed to a terminal only: --force prints them anyway"))
}
