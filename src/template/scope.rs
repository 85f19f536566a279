//! What expressions can see: facts, data and the environment, and the functions that look into them.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    path::{Path as FilePath, PathBuf},
    rc::Rc,
    sync::Arc,
};

use ccm_expr::{Arguments, CallError, Doubt, DoubtKind, Environment, Memory, Path, Program, Value};

use super::{
    Element, Learned, author::without_secrets, fleet, foreign::Suspect, functions, jet,
    version::version_compare,
};
use crate::{nats::Nats, secrets::Keyring};

/// What expressions can see.
pub(crate) struct Scope {
    pub(super) facts: Value,
    /// What is learned in the run, which the facts have on top.
    pub(super) learned: Option<Learned>,
    /// Nothing while the data is being made.
    pub(super) data: Option<Value>,
    /// Data files of this machine that do not exist.
    absent: Rc<[String]>,
    /// Nothing in data that comes from elsewhere: whoever serves it is not to learn of it.
    pub(super) environ: Option<Value>,
    pub(super) working_directory: PathBuf,
    pub(super) missing: Missing,
    reach: Reach,
    /// What all expressions of a run hold together.
    memory: Memory,
    pub(super) lifetime: Lifetime,
    /// The value that a rule is about, where there is one.
    subject: Option<Value>,
    /// The element that the resource is repeated for, where it is.
    pub(super) element: Option<Element>,
    /// What the functions ask that look beyond this machine.
    pub(super) nats: Option<Arc<Nats>>,
    /// Opens encrypted files.
    pub(super) keyring: Option<Arc<Keyring>>,
    /// What files would hold in a dry run.
    prediction: Option<Rc<dyn TextPrediction>>,
    /// Paths that were looked up, read once.
    pub(super) paths: RefCell<HashMap<String, Rc<Path>>>,
    /// The calls of `template` that are in progress, each with its file if it names one.
    pub(super) templates: RefCell<Vec<Option<String>>>,
    /// How many calls of `template` the outermost of them has led to.
    pub(super) calls: Cell<usize>,
    /// What expressions did that was probably not meant.
    pub(super) doubts: RefCell<Vec<Doubt>>,
    /// Signs of other template languages in files that `template` read before the run.
    suspects: RefCell<Vec<Suspect>>,
    /// Whether a file was read.
    pub(super) has_read: Cell<bool>,
    /// Digests of the template files that were read, by path. Scopes that are made from this one add to them.
    pub(super) template_files: Rc<RefCell<BTreeMap<PathBuf, String>>>,
    /// Whether a fleet was to be asked before the run.
    pub(super) waits_for_fleet: Cell<bool>,
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
    /// The text of another file, as that is on disk.
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

const FOR_DATA: &[&str] = &["lookup", "versionCompare"];
pub(super) const FUNCTIONS: &[&str] = &[
    "lookup",
    "file",
    "readFile",
    "age",
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
            absent: Rc::default(),
            environ: Some(environ),
            memory: Memory::default(),
            lifetime: Lifetime::Run,
            working_directory,
            missing: Missing::Error,
            reach: Reach::Machine,
            subject: None,
            element: None,
            nats: None,
            keyring: None,
            prediction: None,
            paths: RefCell::default(),
            templates: RefCell::default(),
            calls: Cell::new(0),
            doubts: RefCell::default(),
            suspects: RefCell::default(),
            has_read: Cell::new(false),
            template_files: Rc::default(),
            waits_for_fleet: Cell::new(false),
        }
    }

    /// The same scope with this data.
    pub(crate) fn with_data(&self, data: Value) -> Self {
        Self { data: Some(data), ..self.like() }
    }

    /// Returns the same scope, which knows that these data files do not exist.
    pub(crate) fn without_files(&self, absent: Vec<String>) -> Self {
        Self { absent: absent.into(), ..self.like() }
    }

    /// Returns advice that names the data files that do not exist.
    pub(crate) fn absent_files(&self) -> Option<String> {
        match &*self.absent {
            [] => None,
            [only] => Some(format!("the data file {only} does not exist")),
            several => Some(format!("these data files do not exist: {}", several.join(", "))),
        }
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

    /// The same scope with identities for encrypted files.
    pub(crate) fn with_keyring(self, keyring: Arc<Keyring>) -> Self {
        Self { keyring: Some(keyring), ..self }
    }

    /// Returns whether placeholders stand for secrets that no identity opened.
    pub(crate) fn has_placeholders(&self) -> bool {
        self.keyring.as_ref().is_some_and(|keyring| keyring.has_placeholders())
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

    /// Returns how many bytes expressions and templates can still use.
    pub(super) fn memory_left(&self) -> u64 {
        self.memory.left()
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

    /// The same scope for a template that an untrusted user can write: pure functions, data and facts without secrets.
    pub(crate) fn for_untrusted(&self) -> Self {
        let data = self.data.clone().map(without_secrets);
        let element = self.element.clone();
        let element = element.map(|element| Element { each: without_secrets(element.each), ..element });
        let facts = without_secrets(self.facts.clone());
        Self {
            reach: Reach::Nothing,
            environ: None,
            nats: None,
            keyring: None,
            data,
            element,
            facts,
            ..self.like()
        }
    }

    fn like(&self) -> Self {
        Self {
            learned: self.learned.clone(),
            environ: self.environ.clone(),
            memory: self.memory.clone(),
            lifetime: self.lifetime,
            data: self.data.clone(),
            absent: Rc::clone(&self.absent),
            missing: self.missing,
            reach: self.reach,
            subject: self.subject.clone(),
            element: self.element.clone(),
            nats: self.nats.clone(),
            keyring: self.keyring.clone(),
            prediction: self.prediction.clone(),
            templates: self.templates.clone(),
            calls: self.calls.clone(),
            template_files: Rc::clone(&self.template_files),
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

    /// Returns what was done since this was last asked and probably not meant, once for each place.
    pub(crate) fn take_doubts(&self) -> Vec<Doubt> {
        let mut doubts: Vec<Doubt> = Vec::new();
        for doubt in self.doubts.take() {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        doubts
    }

    /// Records a suspect part of a file. The run does not report it again.
    pub(super) fn note_suspect(&self, found: Suspect) {
        self.suspects.borrow_mut().push(found);
    }

    /// Returns the suspect parts of files that were recorded since the last call.
    pub(super) fn take_suspects(&self) -> Vec<Suspect> {
        self.suspects.take()
    }

    /// Returns whether a file was read since this was last asked.
    pub(crate) fn take_has_read(&self) -> bool {
        self.has_read.take()
    }

    /// Returns the SHA-256 digests of the template files that were read so far, by path.
    pub(crate) fn template_files(&self) -> BTreeMap<PathBuf, String> {
        self.template_files.borrow().clone()
    }

    /// Returns whether a fleet was to be asked since this was last asked, and is not before the run.
    pub(crate) fn take_waits_for_fleet(&self) -> bool {
        self.waits_for_fleet.take()
    }

    /// Whether nothing was applied yet.
    pub(super) fn is_before_run(&self) -> bool {
        self.reach == Reach::Manifest
    }

    /// Returns the facts of the machine.
    pub(crate) fn facts(&self) -> &Value {
        &self.facts
    }

    /// Returns where relative paths start.
    pub(crate) fn working_directory(&self) -> &FilePath {
        &self.working_directory
    }

    /// What would be in a file by now, if a dry run had a say in it.
    pub(super) fn predicted(&self, path: &FilePath) -> Option<PredictedText> {
        self.prediction.as_ref()?.text(path)
    }

    /// The value of a whole expression.
    pub(crate) fn evaluate(&self, program: &Program) -> Result<Value, ccm_expr::Error> {
        program.evaluate(self)
    }

    /// All variables and their values.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, Value)> {
        self.variable_names().into_iter().filter_map(|name| {
            let value = self.variable(&name)?;
            Some((name, value))
        })
    }
}

impl Environment for Scope {
    fn variable(&self, name: &str) -> Option<Value> {
        match name {
            "Facts" | "facts" => Some(self.facts.clone()),
            "Data" | "data" => self.data.clone(),
            "Environ" | "environ" => self.environ.clone(),
            "WorkingDir" if self.reach != Reach::Nothing => {
                Some(self.working_directory.to_string_lossy().as_ref().into())
            }
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
        let names = names.chain((self.reach != Reach::Nothing).then_some("WorkingDir"));
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

    fn note(&self, doubt: Doubt) {
        let is_ours = match &doubt.kind {
            DoubtKind::MissingMember { path, .. } => {
                let variable = path.split('.').next().unwrap_or_default();
                ["facts", "data", "environ"].contains(&variable.to_ascii_lowercase().as_str())
            }
            DoubtKind::MixedComparison { .. } => true,
            // Data can have any case on another machine; facts are words of a list.
            DoubtKind::CaseComparison { path, .. } => {
                path.split('.').next().is_some_and(|root| root.eq_ignore_ascii_case("facts"))
            }
        };
        if is_ours {
            self.doubts.borrow_mut().push(doubt);
        }
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn check_call(&self, name: &str, argument: &Value) -> Option<CallError> {
        match name {
            "jinja" | "template" if let Some(path) = argument.as_str().filter(|path| jet::is_named(path)) => {
                Some(jet::refusal(path))
            }
            "jinja" => self.check_jinja(argument),
            _ => None,
        }
    }

    fn method(&self, value: &Value, name: &str, arguments: &[Value]) -> Option<Result<Value, CallError>> {
        let is_known = name == fleet::METHOD && arguments.is_empty();
        is_known.then(|| fleet::prometheus_file_sd(value))
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        match name {
            "lookup" => self.lookup(arguments),
            "file" | "readFile" => self.file(arguments),
            "age" => self.age(arguments),
            "template" => self.template(arguments),
            "jinja" => self.jinja(arguments),
            "versionCompare" => version_compare(arguments),
            name if fleet::FUNCTIONS.contains(&name) => self.ask_fleet(name, arguments),
            _ => functions::check(name, arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variables_that_have_a_value_are_named() {
        let scope = Scope::new(Value::Null, Value::Null, PathBuf::new());
        let element = Element { each: Value::Null, index: 0 };
        for (scope, expected) in [
            (scope.for_data(Provenance::Remote), "Facts facts"),
            (scope.for_data(Provenance::Local), "Facts Environ facts environ"),
            (scope.before_run(), "Facts Environ facts environ WorkingDir"),
            (scope.with_data(Value::Null), "Facts Data Environ facts data environ WorkingDir"),
            (scope.about(Value::Null), "Facts Environ facts environ WorkingDir value"),
            (scope.within(&element), "Facts Environ facts environ WorkingDir each index"),
        ] {
            assert_eq!(scope.variable_names().join(" "), expected);
            assert_eq!(scope.variables().map(|(name, _)| name).collect::<Vec<_>>().join(" "), expected);
        }
    }
}
