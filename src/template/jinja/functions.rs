//! What templates can call besides the engine's own filters and functions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ccm_expr::{Map, Path, Program, Value};
use minijinja::{
    Environment, Error, ErrorKind,
    value::{Rest, Value as JinjaValue},
};

use super::{NeededFile, values::Spellings};

/// The expression language's functions on text.
const STRINGS: &[&str] = &[
    "trim",
    "trimPrefix",
    "trimSuffix",
    "upper",
    "lower",
    "split",
    "splitAfter",
    "replace",
    "repeat",
    "join",
    "indexOf",
    "lastIndexOf",
    "hasPrefix",
    "hasSuffix",
];

/// Of these the engine has filters that do the same and more.
const OWN_FILTERS: &[&str] = &["trim", "upper", "lower", "split", "replace", "join"];

/// The files that a template reads. The engine cannot be given the scope, which reads them: a file that is not here yet is
/// noted, read between two renderings, and found here by the next.
#[derive(Clone, Default)]
pub(super) struct Files(Arc<Mutex<Wanted>>);

#[derive(Default)]
struct Wanted {
    read: HashMap<NeededFile, Result<String, String>>,
    next: Option<NeededFile>,
}

impl Files {
    /// Returns what a file holds, if it was read.
    pub(super) fn get(&self, needed: NeededFile) -> Result<String, Error> {
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted.read.get(&needed) {
            Some(Ok(text)) => Ok(text.clone()),
            Some(Err(problem)) => Err(failed(problem.clone())),
            None => {
                let unread = failed(format!("{} was not read yet", needed.path()));
                wanted.next = Some(needed);
                Err(unread)
            }
        }
    }

    /// Reads the file that the last rendering lacked. Returns whether there was one.
    pub(super) fn read_next(&self, read: impl FnOnce(&NeededFile) -> Result<String, String>) -> bool {
        let mut wanted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(needed) = wanted.next.take() else { return false };
        let text = read(&needed);
        wanted.read.insert(needed, text);
        true
    }
}

/// Adds `lookup`, `file` and the functions on text.
pub(super) fn add(
    environment: &mut Environment,
    root: impl Fn(&str) -> Value + Send + Sync + 'static,
    files: &Files,
    spellings: &Spellings,
) {
    let found = spellings.clone();
    environment.add_function("lookup", move |path: String, default: Option<JinjaValue>| {
        lookup(&path, default, &root(&path), &found)
    });
    for name in ["file", "readFile"] {
        let files = files.clone();
        environment.add_function(name, move |path: String| files.get(NeededFile::Read(path)));
    }
    for name in STRINGS {
        let given = spellings.clone();
        let call = move |arguments: &[JinjaValue]| call(name, arguments, &given);
        let own = call.clone();
        environment.add_function(*name, move |arguments: Rest<JinjaValue>| own(&arguments));
        if !OWN_FILTERS.contains(name) {
            environment.add_filter(*name, move |value: JinjaValue, arguments: Rest<JinjaValue>| {
                call(&[&[value], &arguments[..]].concat())
            });
        }
    }
}

fn lookup(
    path: &str,
    default: Option<JinjaValue>,
    root: &Value,
    spellings: &Spellings,
) -> Result<JinjaValue, Error> {
    let path = Path::parse(path).map_err(|error| failed(error.to_string()))?;
    let found = match default {
        Some(default) => match path.find(root) {
            Ok(Some(found)) if !found.is_null() => Ok(found),
            Ok(_) => return Ok(default),
            Err(error) => Err(error),
        },
        None => path.require(root),
    };
    found.map(|found| spellings.to_jinja(&found)).map_err(|error| match &error.help {
        Some(help) => failed(format!("{}; {help}", error.kind)),
        None => failed(error.kind.to_string()),
    })
}

/// Calls a function of the expression language.
fn call(name: &str, arguments: &[JinjaValue], spellings: &Spellings) -> Result<JinjaValue, Error> {
    let names: Vec<String> = (0..arguments.len()).map(|place| format!("argument{place}")).collect();
    let values = names.iter().zip(arguments);
    let values: Map = values.map(|(name, value)| (name.as_str().into(), spellings.to_value(value))).collect();
    let program = Program::compile(&format!("{name}({})", names.join(", ")));
    let value = program.and_then(|program| program.evaluate(&values));
    value.map(|value| spellings.to_jinja(&value)).map_err(|error| failed(format!("{name}: {}", error.kind)))
}

pub(super) fn failed(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
