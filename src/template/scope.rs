//! What expressions can see: facts, data and the environment, and the functions that look into them.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    path::{Path as FilePath, PathBuf},
    rc::Rc,
    sync::Arc,
};

use ccm_expr::{
    Arguments, CallError, Environment, ErrorKind, Exhausted, Map, Memory, MissingMember, Path, Program, Value,
};

use super::{Element, Learned, fleet, functions, version::version_compare};
use crate::nats::Nats;

/// What expressions can see.
pub(crate) struct Scope {
    pub(super) facts: Value,
    /// What is learned in the run, which the facts have on top.
    pub(super) learned: Option<Learned>,
    /// Nothing while the data is being made.
    data: Option<Value>,
    /// Nothing in data that comes from elsewhere: whoever serves it is not to learn of it.
    environ: Option<Value>,
    pub(super) working_directory: PathBuf,
    missing: Missing,
    reach: Reach,
    /// What all expressions of a run hold together.
    memory: Memory,
    pub(super) lifetime: Lifetime,
    /// The value that a rule is about, where there is one.
    subject: Option<Value>,
    /// The element that the resource is repeated for, where it is.
    element: Option<Element>,
    /// What the functions ask that look beyond this machine.
    pub(super) nats: Option<Arc<Nats>>,
    /// What files would hold in a dry run.
    prediction: Option<Rc<dyn TextPrediction>>,
    /// Paths that were looked up, read once.
    paths: RefCell<HashMap<String, Rc<Path>>>,
    /// How many calls of `template` are inside each other.
    pub(super) depth: Cell<usize>,
    /// How many calls of `template` the outermost of them has led to.
    pub(super) calls: Cell<usize>,
    /// Members that were read and do not exist.
    pub(super) missing_members: RefCell<Vec<MissingMember>>,
    /// Whether a file was read.
    pub(super) has_read: Cell<bool>,
}

/// Tells what files would hold after the earlier resources of a dry run.
pub(crate) trait TextPrediction {
    /// Returns what a file would hold; `None` when that is what it holds on disk.
    fn text(&self, path: &FilePath) -> Option<PredictedText>;
}

/// What a dry run would have left at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PredictedText {
    Text(String),
    /// The text of another file.
    CopyOf(PathBuf),
    /// There is a file, and nobody knows what it holds.
    Unknown,
    Nothing,
}

/// What a look-up without a default gives for a path that leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    Error,
    Empty,
}

/// Whoever reads data while it is made would read something else afterwards.
const UNMADE: &str = "is not available while the data is being made";
const MADE_FROM: &str = "data is made from Facts and Environ";
const MORE: &str = "CCM_MEMORY_LIMIT allows more, for example CCM_MEMORY_LIMIT=2GiB";
const ELSEWHERE: &str = "is not available in data that comes from an address";
const KEPT: &str = "use it in resources, or in data that lies on this machine";
const IN_RESOURCES: &str = "use it in the properties of resources, and give them what they need as data";

/// Which files expressions can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Machine,
    /// Those that come with the manifest, under relative paths: others may be written before they are to be read.
    Manifest,
    /// None: data and the order of a hierarchy say nothing about the machine but what its facts do.
    Nothing,
}

/// How long the values of templates are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// They become part of the manifest or its data.
    Run,
    /// They are gone when the turn of their resource is over.
    Turn,
}

/// Where a document was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// On this machine.
    Local,
    /// From a web server.
    Remote,
}

/// What only resources can use.
const READERS: &[&str] = &["file", "readFile", "template", "jinja"];
const FOR_DATA: &[&str] = &["lookup", "versionCompare"];
pub(super) const FUNCTIONS: &[&str] = &[
    "lookup",
    "file",
    "readFile",
    "template",
    "jinja",
    "versionCompare",
    "kvGet",
    "registrations",
    "prometheusFileSD",
];

impl Scope {
    /// A scope without data.
    pub(crate) fn new(facts: Value, environ: Value, working_directory: PathBuf) -> Self {
        Self {
            facts,
            learned: None,
            data: None,
            environ: Some(environ),
            memory: Memory::default(),
            lifetime: Lifetime::Run,
            working_directory,
            missing: Missing::Error,
            reach: Reach::Machine,
            subject: None,
            element: None,
            nats: None,
            prediction: None,
            paths: RefCell::default(),
            depth: Cell::new(0),
            calls: Cell::new(0),
            missing_members: RefCell::default(),
            has_read: Cell::new(false),
        }
    }

    /// The same scope with this data.
    pub(crate) fn with_data(&self, data: Value) -> Self {
        Self { data: Some(data), ..self.like() }
    }

    /// The same scope in which paths that lead nowhere give this.
    pub(crate) fn with_missing(&self, missing: Missing) -> Self {
        Self { missing, ..self.like() }
    }

    /// The same scope for a rule about a value, with the functions that rules have.
    pub(crate) fn about(&self, value: Value) -> Self {
        Self { subject: Some(value), ..self.like() }
    }

    /// The same scope for a resource that is repeated for this element.
    pub(crate) fn within(&self, element: &Element) -> Self {
        Self { element: Some(element.clone()), ..self.like() }
    }

    /// The same scope as long as nothing was applied.
    pub(crate) fn before_run(&self) -> Self {
        Self { reach: Reach::Manifest, ..self.like() }
    }

    /// The same scope with this memory for all expressions.
    pub(crate) fn with_memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The same scope in which a fleet can be asked.
    pub(crate) fn with_nats(self, nats: Arc<Nats>) -> Self {
        Self { nats: Some(nats), ..self }
    }

    /// The same scope for templates whose values are gone after the turn of their resource.
    pub(crate) fn for_turns(self) -> Self {
        Self { lifetime: Lifetime::Turn, ..self }
    }

    /// Returns a value that is kept from now on, if there is memory for it; `text` is the template it came from.
    pub(super) fn keep(&self, value: Value, text: &str) -> Result<Value, ccm_expr::Error> {
        if self.lifetime == Lifetime::Run {
            self.memory.keep(&value).map_err(|exhausted| ccm_expr::Error {
                kind: Box::new(exhausted.into()),
                span: 0..text.len(),
                help: None,
            })?;
        }
        Ok(value)
    }

    /// Returns whether there was no memory for a value that was to be kept, so that nothing more needs to be tried.
    pub(super) fn is_exhausted(&self) -> bool {
        self.lifetime == Lifetime::Run && self.memory.is_exhausted()
    }

    /// The same scope for templates in data and in the order of a hierarchy, which read no files.
    pub(crate) fn for_data(&self, provenance: Provenance) -> Self {
        let environ = self.environ.clone().filter(|_| provenance == Provenance::Local);
        Self { reach: Reach::Nothing, environ, ..self.like() }
    }

    fn like(&self) -> Self {
        Self {
            learned: self.learned.clone(),
            environ: self.environ.clone(),
            memory: self.memory.clone(),
            lifetime: self.lifetime,
            data: self.data.clone(),
            missing: self.missing,
            reach: self.reach,
            subject: self.subject.clone(),
            element: self.element.clone(),
            nats: self.nats.clone(),
            prediction: self.prediction.clone(),
            depth: self.depth.clone(),
            calls: self.calls.clone(),
            ..Self::new(self.facts.clone(), Value::Null, self.working_directory.clone())
        }
    }

    /// Whether a file can be read now.
    pub(super) fn reaches(&self, path: &str) -> bool {
        match self.reach {
            Reach::Machine => true,
            Reach::Manifest => FilePath::new(path).is_relative(),
            Reach::Nothing => false,
        }
    }

    pub(crate) fn data(&self) -> &Value {
        self.data.as_ref().unwrap_or(&Value::Null)
    }

    /// The same scope in a run that reads files as they are predicted.
    pub(crate) fn with_prediction(&self, prediction: Rc<dyn TextPrediction>) -> Self {
        Self { prediction: Some(prediction), ..self.like() }
    }

    /// Returns the members that were read since this was last asked and do not exist, each once.
    pub(crate) fn take_missing_members(&self) -> Vec<MissingMember> {
        let mut missing = self.missing_members.take();
        let mut seen = Vec::new();
        missing.retain(|member| {
            let place = (member.path.clone(), member.place.clone(), member.span.clone());
            let is_new = !seen.contains(&place);
            seen.push(place);
            is_new
        });
        missing
    }

    /// Returns whether a file was read since this was last asked.
    pub(super) fn take_has_read(&self) -> bool {
        self.has_read.take()
    }

    /// Returns where relative paths start.
    pub(crate) fn working_directory(&self) -> &FilePath {
        &self.working_directory
    }

    /// What would be in a file by now, if a dry run had a say in it.
    pub(super) fn predicted(&self, path: &FilePath) -> Option<PredictedText> {
        self.prediction.as_ref()?.text(path)
    }

    /// The same error with what this scope knows about it: the name that was probably meant, for a member that does not
    /// exist has no value, which alone does not say that it was misspelt; or that the data is not there yet.
    pub(crate) fn advise(&self, error: ccm_expr::Error) -> ccm_expr::Error {
        let unavailable = |message: String, help: &str| ccm_expr::Error {
            kind: Box::new(ErrorKind::Unavailable(message)),
            help: Some(help.to_owned()),
            span: error.span.clone(),
        };
        let written = match error.kind.innermost() {
            ErrorKind::UnknownVariable { name } if name.eq_ignore_ascii_case("data") => {
                return unavailable(format!("`{name}` {UNMADE}"), MADE_FROM);
            }
            ErrorKind::UnknownVariable { name } if name.eq_ignore_ascii_case("environ") => {
                return unavailable(format!("`{name}` {ELSEWHERE}"), KEPT);
            }
            ErrorKind::UnknownVariable { name } => {
                return match self.owner_of(name) {
                    Some(help) => ccm_expr::Error { help: Some(help), ..error },
                    None => error,
                };
            }
            ErrorKind::UnknownFunction { name } if READERS.contains(&name.as_str()) => {
                return unavailable(format!("`{name}` cannot be used in data: it reads files"), IN_RESOURCES);
            }
            ErrorKind::UnknownFunction { name } if fleet::FUNCTIONS.contains(&name.as_str()) => {
                return unavailable(format!("`{name}` cannot be used in data"), IN_RESOURCES);
            }
            ErrorKind::Limit(Exhausted::Memory { .. }) => {
                return ccm_expr::Error { help: Some(MORE.to_owned()), ..error };
            }
            ErrorKind::NoValue { expression } => expression,
            _ => return error,
        };
        let Some((root, rest)) = written.split_once('.') else { return error };
        let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        let root = root.to_ascii_lowercase();
        let is_element = root == "each" && self.element.is_some();
        if !["facts", "data", "environ"].contains(&root.as_str()) && !is_element || !is_plain(rest) {
            return error;
        }
        let known = match &self.element {
            Some(element) if is_element => {
                [("each".into(), element.each.clone())].into_iter().collect::<Map>().into()
            }
            _ => self.root(&root),
        };
        let missing = Path::parse(&format!("{root}.{rest}")).ok().and_then(|path| path.missing(&known));
        match missing.and_then(|missing| missing.suggestion) {
            Some(name) => ccm_expr::Error { help: Some(format!("did you mean `{name}`?")), ..error },
            None => error,
        }
    }

    /// Says where a word that is no variable stands: people write `{{ port }}` and `${HOME}`.
    fn owner_of(&self, name: &str) -> Option<String> {
        let owners =
            [("Data", self.data.as_ref()), ("Environ", self.environ.as_ref()), ("Facts", Some(&self.facts))];
        let has = |value: Option<&Value>| value.is_some_and(|value| value.member(name).is_some());
        let (owner, _) = owners.into_iter().find(|(_, value)| has(*value))?;
        let text = match owner {
            "Environ" => format!(" write `$${{{name}}}` for the text `${{{name}}}`"),
            _ => String::new(),
        };
        Some(format!("did you mean `{owner}.{name}`?{text}"))
    }

    /// The value of a whole expression.
    pub(crate) fn evaluate(&self, program: &Program) -> Result<Value, ccm_expr::Error> {
        program.evaluate(self)
    }

    fn lookup(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let (path, default) = match arguments {
            [path] => (path, None),
            [path, default] => (path, Some(default)),
            _ => return Err(CallError::new("lookup takes a path and, if you like, a default")),
        };
        let Some(text) = path.as_str() else {
            return Err(CallError::at(0, format!("the path must be a string, not {}", path.type_name())));
        };
        if self.data.is_none() && text.split(['.', '|']).next() == Some("data") {
            return Err(CallError::at(0, format!("`{text}` {UNMADE}")).with_help(MADE_FROM));
        }
        let is_environ = matches!(text.split(['.', '|']).next(), Some("environ" | "env"));
        if self.environ.is_none() && is_environ {
            return Err(CallError::at(0, format!("`{text}` {ELSEWHERE}")).with_help(KEPT));
        }
        let path = self.path(text)?;
        let root = self.root(text);
        let found = match (default, self.missing) {
            (Some(default), _) => path
                .find(&root)
                .map(|found| found.filter(|found| !found.is_null()).unwrap_or_else(|| default.clone())),
            (None, Missing::Error) => path.require(&root),
            (None, Missing::Empty) => path.find(&root).map(Option::unwrap_or_default),
        };
        found.map_err(|error| CallError { argument: Some(0), ..error.into() })
    }

    fn path(&self, text: &str) -> Result<Rc<Path>, CallError> {
        if let Some(path) = self.paths.borrow().get(text) {
            return Ok(Rc::clone(path));
        }
        let path = Path::parse(text).map_err(|error| CallError { argument: Some(0), ..error.into() })?;
        let path = Rc::new(path);
        self.paths.borrow_mut().insert(text.to_owned(), Rc::clone(&path));
        Ok(path)
    }

    /// What paths start from; `env` is another name for `environ`.
    fn root(&self, path: &str) -> Value {
        self.roots().of(path)
    }

    /// What paths start from, for others who look things up.
    pub(super) fn roots(&self) -> Roots {
        let (facts, data, environ) = (self.facts.clone(), self.data.clone(), self.environ.clone());
        Roots { facts, data, environ }
    }

    /// All variables and their values.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, Value)> {
        self.variable_names().into_iter().filter_map(|name| {
            let value = self.variable(&name)?;
            Some((name, value))
        })
    }

    /// Says which member was probably meant by a path that leads nowhere.
    pub(super) fn nearest(&self, written: &str) -> Option<String> {
        let expression = written.to_owned();
        let kind = Box::new(ErrorKind::NoValue { expression });
        self.advise(ccm_expr::Error { kind, span: 0..0, help: None }).help
    }
}

/// What paths start from.
pub(super) struct Roots {
    facts: Value,
    data: Option<Value>,
    environ: Option<Value>,
}

impl Roots {
    pub(super) fn of(&self, path: &str) -> Value {
        let environ = if path.split(['.', '|']).next() == Some("env") { "env" } else { "environ" };
        let entries =
            [("facts", Some(&self.facts)), ("data", self.data.as_ref()), (environ, self.environ.as_ref())];
        let known = entries.into_iter().filter_map(|(name, value)| Some((name.into(), value?.clone())));
        known.collect::<Map>().into()
    }
}

impl Environment for Scope {
    fn variable(&self, name: &str) -> Option<Value> {
        match name {
            "Facts" | "facts" => Some(self.facts.clone()),
            "Data" | "data" => self.data.clone(),
            "Environ" | "environ" => self.environ.clone(),
            "value" => self.subject.clone(),
            "each" => self.element.as_ref().map(|element| element.each.clone()),
            "index" => self
                .element
                .as_ref()
                .map(|element| Value::from(i64::try_from(element.index).unwrap_or(i64::MAX))),
            _ => None,
        }
    }

    fn variable_names(&self) -> Vec<String> {
        let names = ["Facts", "Data", "Environ", "facts", "data", "environ"].into_iter();
        let names = names.chain(self.subject.as_ref().map(|_| "value"));
        let names = names.chain(self.element.iter().flat_map(|_| ["each", "index"]));
        names
            .filter(|name| self.data.is_some() || !name.eq_ignore_ascii_case("data"))
            .filter(|name| self.environ.is_some() || !name.eq_ignore_ascii_case("environ"))
            .map(str::to_owned)
            .collect()
    }

    fn function_names(&self) -> &[&str] {
        match (&self.subject, self.reach) {
            (Some(_), _) => functions::FOR_RULES,
            (None, Reach::Nothing) => FOR_DATA,
            (None, _) => FUNCTIONS,
        }
    }

    fn note_missing(&self, missing: MissingMember) {
        let variable = missing.path.split('.').next().unwrap_or_default();
        if ["facts", "data", "environ"].contains(&variable.to_ascii_lowercase().as_str()) {
            self.missing_members.borrow_mut().push(missing);
        }
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn check_call(&self, name: &str, argument: &Value) -> Option<CallError> {
        if name == "jinja" { self.check_jinja(argument) } else { None }
    }

    fn method(&self, value: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, CallError>> {
        let is_known = name == fleet::METHOD && arguments.is_empty();
        is_known.then(|| fleet::prometheus_file_sd(value))
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        match name {
            "lookup" => self.lookup(arguments),
            "file" | "readFile" => self.file(arguments),
            "template" => self.template(arguments),
            "jinja" => self.jinja(arguments),
            "versionCompare" => version_compare(arguments),
            name if fleet::FUNCTIONS.contains(&name) => self.ask_fleet(name, arguments),
            _ => functions::check(name, arguments),
        }
    }
}
