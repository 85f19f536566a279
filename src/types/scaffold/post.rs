//! Commands for files that were written.

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Properties, state::Write};
use crate::{
    host::process::Exit,
    resource::{Context, Draft, Drafts, Error},
    state::Processed,
    types::command_line::{CommandLine, Readiness, Role, Settings, Through, words_of},
    vocabulary::Glob,
};

/// What stands for the path of a file in a command.
const PLACE: &str = "{}";

/// A command for files whose names fit a pattern.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
#[schemars(inline, with = "BTreeMap<String, String>")]
pub(crate) struct Post {
    pattern: Glob,
    command: String,
}

impl TryFrom<BTreeMap<String, String>> for Post {
    type Error = String;

    fn try_from(map: BTreeMap<String, String>) -> Result<Self, String> {
        let mut entries = map.into_iter();
        match (entries.next(), entries.next()) {
            (Some((pattern, command)), None) => {
                let pattern = Glob::try_from(pattern).map_err(|error| error.to_string())?;
                Ok(Self { pattern, command })
            }
            _ => Err("expected one pattern and its command, such as `\"*.go\": gofmt -w`".to_owned()),
        }
    }
}

impl From<Post> for BTreeMap<String, String> {
    fn from(Post { pattern, command }: Post) -> Self {
        Self::from([(pattern.into(), command)])
    }
}

impl Post {
    /// Returns what is wrong with the command.
    pub(super) fn problem(&self) -> Option<Error> {
        let pattern = String::from(self.pattern.clone());
        let reason = words_of(&self.command).err()?;
        Some(Error::new(format!("the command for `{pattern}` {reason}")).on("post"))
    }

    /// The command line for a file.
    fn line(&self, path: &Path) -> Result<String, Error> {
        let path = path.to_string_lossy();
        let words =
            words_of(&self.command).map_err(|reason| Error::new(format!("`post` {reason}")).on("post"))?;
        let mut words: Vec<String> = words.iter().map(|word| word.replace(PLACE, &path)).collect();
        if !self.command.contains(PLACE) {
            words.push(path.into_owned());
        }
        Ok(shell_words::join(words))
    }
}

/// Returns the commands for a place in the tree.
pub(super) fn commands<'w>(want: &'w Properties, place: &Path) -> Vec<&'w Post> {
    want.post.iter().filter(|post| post.pattern.matches(place)).collect()
}

/// Returns what tells a file and its commands from every other.
pub(super) fn fingerprint(sha256: &str, commands: &[&Post]) -> String {
    let commands = commands.iter().map(|post| format!("\0{}", post.command));
    sha256.to_owned() + &commands.collect::<String>()
}

/// Runs the commands for the copy of a file before the file appears. They can change its content and mode.
pub(super) fn process(want: &Properties, file: &Write, drafts: &Drafts, cx: &Context) -> Result<(), Error> {
    let Some(draft) = drafts.find(&file.path) else { return Ok(()) };
    for post in commands(want, &file.place) {
        let text = post.line(&draft.copy)?;
        let line = line(&text);
        let finished = line.run(cx).map_err(|error| at_target(error, &draft, file))?;
        if finished.exit != Exit::Code(0) {
            return Err(at_target(line.failed(&finished, &[], cx), &draft, file));
        }
    }
    if drafts.read_again(&file.path)?.is_none() {
        let message = format!("{} is gone after its commands have run", file.path.display());
        return Err(Error::new(message).on("post"));
    }
    Ok(())
}

/// Shows the path of the file instead of that of its copy.
fn at_target(error: Error, draft: &Draft, file: &Write) -> Error {
    let (copy, path) = (draft.copy.display().to_string(), file.path.display().to_string());
    Error { message: error.message.replace(&copy, &path), ..error }
}

/// Records the result of the commands for a file that was published: nothing else shows what a command does to a file.
pub(super) fn keep(want: &Properties, file: &Write, draft: &Draft, cx: &Context) -> Result<(), Error> {
    let commands = commands(want, &file.place);
    if commands.is_empty() {
        return Ok(());
    }
    let before = file.attributes.map_or(draft.attributes.mode, |attributes| attributes.mode);
    let keep = || {
        let made_of = cx.stored_digest(fingerprint(&file.sha256, &commands))?;
        let left = cx.stored_digest(draft.sha256.clone())?;
        let processed = Processed::new(&made_of, left, before, draft.attributes.mode);
        cx.state.directory.keep_processed(&file.path, &processed)
    };
    keep().map_err(|error| Error::new(format!("cannot record that the commands have run: {error}")))
}

/// Fails as the commands for a file would if one certainly could not be started.
pub(super) fn simulate(want: &Properties, file: &Write, cx: &Context) -> Result<(), Error> {
    for post in commands(want, &file.place) {
        let text = post.line(&file.path)?;
        if let Readiness::Open(error) = line(&text).readiness(cx)? {
            cx.assume(format!("{}; assuming {} changes that", error.message, cx.suspects()));
        }
    }
    Ok(())
}

fn line(text: &str) -> CommandLine<'_> {
    CommandLine { role: Role::Post, text, through: Through::Nothing, settings: Settings::default() }
}
