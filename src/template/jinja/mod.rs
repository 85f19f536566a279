//! Templates with blocks: conditions, loops, macros and includes, in the language of Jinja.
//!
//! What does not exist is an error, nothing is escaped, and the newline at the end of a file stays. Values print as they
//! do in expressions: `true` and `false`, lists and maps as JSON; none does not print at all.

mod functions;
mod guard;
mod values;

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use ccm_expr::{Text, Value};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior,
    syntax::SyntaxConfig,
    value::{Value as JinjaValue, ValueKind},
};

use self::{
    functions::{Answers, Question, failed},
    guard::{Guarded, Meter, Refused},
    values::Spellings,
};
use super::{Scope, functions::place_in};
use crate::document::closest;

/// How long the text of one template can become.
const LONGEST: usize = 32 << 20;
/// How many steps one template may take.
const MOST_STEPS: u64 = 50_000_000;
/// How many files one template may read, and how often it may ask the fleet, together.
const MOST_ANSWERS: usize = 1_000;

/// A template: its name in messages, and its text.
pub(crate) struct JinjaTemplate<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) delimiters: Delimiters<'a>,
    /// Receives the files that it writes; `None` if it has no function `write`.
    pub(crate) written: Option<&'a WrittenFiles>,
}

/// Files that a template writes with `write(file, text)`.
#[derive(Clone, Default)]
pub(crate) struct WrittenFiles(Arc<Mutex<Vec<(String, String)>>>);

impl WrittenFiles {
    /// Returns names and texts, and forgets them.
    pub(crate) fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, name: String, text: String) -> Result<&'static str, Error> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = files.iter().map(|(_, text)| text.len()).sum();
        if size.saturating_add(text.len()) > LONGEST {
            return Err(failed(format!("the template writes more than {LONGEST} bytes")));
        }
        files.push((name, text));
        Ok("")
    }
}

/// What stands around an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delimiters<'a> {
    pub(crate) left: &'a str,
    pub(crate) right: &'a str,
}

impl Default for Delimiters<'_> {
    fn default() -> Self {
        Self { left: "{{", right: "}}" }
    }
}

/// A file that a template needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NeededFile {
    /// A template that it includes, imports or extends.
    Included(String),
    /// One that it reads with `file()`.
    Read(String),
}

/// What is wrong with a template, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JinjaError {
    /// The template, which may be an included one, the line and the column: `vhost.conf.j2:3:8`.
    pub(crate) place: String,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl JinjaTemplate<'_> {
    /// Returns what is wrong with it that can be told without rendering it: what cannot be read, and variables that no
    /// template has.
    pub(crate) fn check(&self, scope: &Scope) -> Vec<JinjaError> {
        let find = |engine: &Engine| {
            let environment = &engine.environment;
            let template = environment.template_from_named_str(self.name, &engine.text)?;
            let known: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
            let mut unknown: Vec<String> = template.undeclared_variables(false).into_iter().collect();
            unknown.retain(|name| !known.contains(&name.as_str()));
            unknown.sort_unstable();
            Ok(unknown.iter().map(|name| self.unknown(name, &known)).collect())
        };
        let engine = match self.engine(scope, &Answers::default()) {
            Ok(engine) => engine,
            Err(error) => return vec![error],
        };
        find(&engine).unwrap_or_else(|error: Error| vec![self.explain(&error, scope, &engine)])
    }

    /// Fails if it cannot be read.
    pub(crate) fn parse(&self, scope: &Scope) -> Result<(), JinjaError> {
        let engine = self.engine(scope, &Answers::default())?;
        let parsed = engine.environment.template_from_named_str(self.name, &engine.text).map(drop);
        parsed.map_err(|error| self.explain(&error, scope, &engine))
    }

    /// Returns the text that it comes to. `read` gives the files that it needs.
    pub(crate) fn render(
        &self,
        scope: &Scope,
        read: impl Fn(&NeededFile) -> Result<String, String>,
    ) -> Result<Text, JinjaError> {
        let answers = Answers::default();
        for _ in 0..MOST_ANSWERS {
            let engine = self.engine(scope, &answers)?;
            // An earlier attempt lacked an answer.
            self.written.map(WrittenFiles::take);
            let mut page = Page::default();
            let rendered = engine
                .environment
                .template_from_named_str(self.name, &engine.text)
                .and_then(|template| template.render_captured_to((), &mut page).map(drop));
            match rendered {
                Ok(()) => {
                    let text = String::from_utf8_lossy(&page.bytes).into_owned();
                    return Ok(Text { text, is_secret: engine.spellings.have_secret() });
                }
                Err(_) if page.is_full => {
                    let message = format!("the text is longer than {LONGEST} bytes");
                    return Err(JinjaError { place: self.name.to_owned(), message, help: None });
                }
                Err(_) if answers.answer_next(|question| answer(question, scope, &read)) => {}
                Err(error) => return Err(self.explain(&error, scope, &engine)),
            }
        }
        let message = format!("it reads more than {MOST_ANSWERS} files");
        Err(JinjaError { place: self.name.to_owned(), message, help: None })
    }

    /// Returns the engine and the text that it reads, in which all values are measured.
    fn engine(&self, scope: &Scope, answers: &Answers) -> Result<Engine, JinjaError> {
        let guarded: Originals = Arc::default();
        let text = match guard(self.text, self.delimiters, self.name, &guarded) {
            Ok(text) => text,
            Err(Refused { at, message }) => {
                let place = place_in(self.name, self.text, at);
                return Err(JinjaError { place, message, help: None });
            }
        };
        let spellings = Spellings::default();
        let environment = self.environment(scope, answers, &guarded, &spellings);
        let environment = environment.map_err(|error| JinjaError {
            place: self.name.to_owned(),
            message: error.to_string(),
            help: None,
        })?;
        let text = text.unwrap_or_else(|| self.text.to_owned());
        let engine = Engine { environment, text, originals: guarded, spellings };
        // A text that could not be guarded is one that the engine cannot read, and this is why.
        if !engine.originals.lock().unwrap_or_else(PoisonError::into_inner).contains_key(self.name) {
            let parsed = engine.environment.template_from_named_str(self.name, self.text).map(drop);
            let error = parsed.map_or_else(|error| error, |()| unreadable());
            return Err(self.explain(&error, scope, &engine));
        }
        Ok(engine)
    }

    fn environment(
        &self,
        scope: &Scope,
        answers: &Answers,
        originals: &Originals,
        spellings: &Spellings,
    ) -> Result<Environment<'static>, Error> {
        let mut environment = Environment::new();
        environment.set_debug(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(MOST_STEPS));
        let written = spellings.clone();
        environment.set_formatter(move |out, _: &mut State, value| format(out, value, &written));
        let Delimiters { left, right } = self.delimiters;
        let mut syntax = SyntaxConfig::builder();
        syntax.keep_trailing_newline(true).variable_delimiters(left.to_owned(), right.to_owned());
        environment.set_syntax(syntax.build()?);
        for (name, value) in scope.variables() {
            environment.add_global(name, spellings.to_jinja(&value));
        }
        let roots = scope.roots();
        functions::add(&mut environment, move |path| roots.of(path), answers, spellings);
        if let Some(written) = self.written.cloned() {
            environment.add_function("write", move |name: String, text: String| written.add(name, text));
        }
        Meter::new(scope.memory_left(), MOST_STEPS).add(&mut environment);
        let (included, originals) = (answers.clone(), Arc::clone(originals));
        let (left, right) = (left.to_owned(), right.to_owned());
        environment.set_loader(move |path| {
            let text = included.file(NeededFile::Included(path.to_owned()))?;
            let delimiters = Delimiters { left: &left, right: &right };
            match guard(&text, delimiters, path, &originals) {
                Ok(guarded) => Ok(Some(guarded.unwrap_or(text))),
                Err(Refused { at, message }) => {
                    Err(failed(format!("{}: {message}", place_in(path, &text, at))))
                }
            }
        });
        Ok(environment)
    }

    fn unknown(&self, name: &str, known: &[&str]) -> JinjaError {
        JinjaError {
            place: place_in(self.name, self.text, self.text.find(name).unwrap_or_default()),
            message: format!("there is no variable `{name}`"),
            help: nearest(name, known),
        }
    }

    /// An error of the engine in our words.
    fn explain(&self, error: &Error, scope: &Scope, engine: &Engine) -> JinjaError {
        // What an included template did wrong stands at the end of the chain.
        let mut innermost = error;
        while let Some(inner) =
            std::error::Error::source(innermost).and_then(|source| source.downcast_ref::<Error>())
        {
            innermost = inner;
        }
        let name = innermost.name().or(error.name()).unwrap_or(self.name);
        let place =
            match (innermost.template_source().zip(innermost.range()), innermost.line().or(error.line())) {
                (Some((text, range)), _) => engine.place(name, text, range.start),
                (None, Some(line)) => format!("{name}:{line}"),
                (None, None) => name.to_owned(),
            };
        if let (ErrorKind::UndefinedError, Some(written)) = (innermost.kind(), written(innermost)) {
            let help = scope.nearest(written);
            return JinjaError { place, message: format!("`{written}` has no value"), help };
        }
        if innermost.detail() == Some("recursion limit exceeded") {
            let message = "templates or macros use each other without end, or too deeply".to_owned();
            return JinjaError { place, message, help: Some(format!("does {name} include itself?")) };
        }
        // Details quote values.
        let detail = innermost.detail().filter(|_| !engine.spellings.have_secret());
        let message = detail.map_or_else(|| innermost.kind().to_string(), str::to_owned);
        JinjaError { place, message, help: None }
    }
}

/// The engine, ready to render a text.
struct Engine {
    environment: Environment<'static>,
    text: String,
    originals: Originals,
    spellings: Spellings,
}

/// The texts of templates by their names, before calls of the meter were inserted.
type Originals = Arc<Mutex<HashMap<String, (String, Guarded)>>>;

impl Engine {
    /// Returns a position in the text that the user wrote.
    fn place(&self, name: &str, text: &str, at: usize) -> String {
        let originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
        match originals.get(name) {
            Some((original, guarded)) => place_in(name, original, guarded.original(at)),
            None => place_in(name, text, at),
        }
    }
}

/// Inserts calls of the meter into a text, and remembers the text. Returns `None` if the engine cannot read it.
fn guard(
    text: &str,
    delimiters: Delimiters,
    name: &str,
    originals: &Originals,
) -> Result<Option<String>, Refused> {
    let Some(guarded) = guard::guarded(text, delimiters)? else { return Ok(None) };
    let ready = guarded.text.clone();
    let mut originals = originals.lock().unwrap_or_else(PoisonError::into_inner);
    originals.insert(name.to_owned(), (text.to_owned(), guarded));
    Ok(Some(ready))
}

fn unreadable() -> Error {
    Error::new(ErrorKind::SyntaxError, "the end of a tag was not found")
}

/// The text that a template prints, up to a limit.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers what a template wants to know.
fn answer(
    question: &Question,
    scope: &Scope,
    read: impl Fn(&NeededFile) -> Result<String, String>,
) -> Result<Value, String> {
    match question {
        Question::File(needed) => read(needed).map(Value::from),
        Question::Call(name, arguments) => {
            let arguments: Vec<Value> = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
            scope.ask_fleet(name, &arguments).map_err(|error| error.kind.to_string())
        }
    }
}

/// The expression that came to nothing, where the engine knows it. The place of the error is that of whoever needed it.
fn written(error: &Error) -> Option<&str> {
    let (expression, _) = error.detail()?.strip_prefix('`')?.split_once("` is undefined")?;
    Some(expression)
}

fn nearest(name: &str, known: &[&str]) -> Option<String> {
    closest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"))
}

/// Prints a value as expressions do.
fn format(out: &mut Output, value: &JinjaValue, spellings: &Spellings) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::None => {
            return Err(failed("none has no text: give a default with `| default('')`".to_owned()));
        }
        ValueKind::Undefined => String::new(),
        ValueKind::String => return out.write_str(value.as_str().unwrap_or_default()).map_err(Error::from),
        _ => spellings.to_value(value).to_text(),
    };
    out.write_str(&text).map_err(Error::from)
}
