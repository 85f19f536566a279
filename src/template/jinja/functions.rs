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

use super::{super::fleet, NeededFile, values::Spellings};

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

/// What a template wants to know and the engine cannot be given: it has no scope, which reads files and asks the fleet. What
/// is not here yet is noted, answered between two renderings, and found here by the next.
#[derive(Clone, Default)]
pub(super) struct Answers(Arc<Mutex<Asked>>);

#[derive(Default)]
struct Asked {
    answers: HashMap<Question, Result<Value, String>>,
    next: Option<Question>,
}

/// What a template wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// What a file holds.
    File(NeededFile),
    /// What a function gives for these arguments, in JSON.
    Call(&'static str, String),
}

impl Answers {
    /// Returns what a file holds, if it was read.
    pub(super) fn file(&self, needed: NeededFile) -> Result<String, Error> {
        self.get(Question::File(needed)).map(|text| text.as_str().unwrap_or_default().to_owned())
    }

    fn get(&self, question: Question) -> Result<Value, Error> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match asked.answers.get(&question) {
            Some(Ok(answer)) => Ok(answer.clone()),
            Some(Err(problem)) => Err(failed(problem.clone())),
            None => {
                let error = failed(format!("{question:?} was not answered yet"));
                asked.next = Some(question);
                Err(error)
            }
        }
    }

    /// Answers what the last rendering lacked. Returns whether there was something.
    pub(super) fn answer_next(&self, answer: impl FnOnce(&Question) -> Result<Value, String>) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(question) = asked.next.take() else { return false };
        let answer = answer(&question);
        asked.answers.insert(question, answer);
        true
    }
}

/// Adds `lookup`, `file` and the functions on text.
pub(super) fn add(
    environment: &mut Environment,
    root: impl Fn(&str) -> Value + Send + Sync + 'static,
    answers: &Answers,
    spellings: &Spellings,
) {
    let found = spellings.clone();
    environment.add_function("lookup", move |path: String, default: Option<JinjaValue>| {
        lookup(&path, default, &root(&path), &found)
    });
    for name in ["file", "readFile"] {
        let answers = answers.clone();
        environment.add_function(name, move |path: String| answers.file(NeededFile::Read(path)));
    }
    for name in fleet::FUNCTIONS {
        let (answers, spellings) = (answers.clone(), spellings.clone());
        environment.add_function(*name, move |arguments: Rest<JinjaValue>| {
            ask(&answers, name, &arguments, &spellings)
        });
    }
    let (answers, given) = (answers.clone(), spellings.clone());
    environment.set_unknown_method_callback(move |_, value, name, _| match name {
        fleet::METHOD => ask(&answers, "prometheusFileSD", std::slice::from_ref(value), &given),
        _ => Err(ErrorKind::UnknownMethod.into()),
    });
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

fn ask(
    answers: &Answers,
    name: &'static str,
    arguments: &[JinjaValue],
    spellings: &Spellings,
) -> Result<JinjaValue, Error> {
    let arguments: Vec<Value> = arguments.iter().map(|argument| spellings.from_jinja(argument)).collect();
    let arguments = serde_json::to_string(&arguments).map_err(|error| failed(error.to_string()))?;
    answers.get(Question::Call(name, arguments)).map(|value| spellings.to_jinja(&value))
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
    let values: Map =
        values.map(|(name, value)| (name.as_str().into(), spellings.from_jinja(value))).collect();
    let program = Program::compile(&format!("{name}({})", names.join(", ")));
    let value = program.and_then(|program| program.evaluate(&values));
    value.map(|value| spellings.to_jinja(&value)).map_err(|error| failed(format!("{name}: {}", error.kind)))
}

pub(super) fn failed(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
