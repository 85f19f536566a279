//! Functions that ccm adds to expressions.

use std::{
    cell::RefCell,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Range,
    path::Path,
};

use ccm_expr::{Arguments, CallError, ErrorKind, MASK, Template, Value};
use sha2::{Digest, Sha256};

use super::{
    Author, Delimiters, JinjaError, JinjaTemplate, NeededFile, Scope,
    author::not_included,
    foreign::{Suspect, Suspicion, foreign},
    jet,
    scope::PredictedText,
    unclosed::unclosed,
};
use crate::{
    host::look,
    host::{
        files::{self, Problem, hex},
        input,
    },
    secrets::{AgeError, is_age_file},
    vocabulary::Duration,
};

/// Functions that rules about data can use.
pub(super) const FOR_RULES: &[&str] = &[
    "lookup",
    "isIP",
    "is_ip",
    "isIPv4",
    "is_ipv4",
    "isIPv6",
    "is_ipv6",
    "isInt",
    "is_int",
    "isFloat",
    "is_float",
    "isDuration",
    "is_duration",
    "isRegex",
    "is_regex",
    "isShellSafe",
    "is_shell_safe",
    "is_shellsafe",
    "isHostname",
    "is_hostname",
    "isFQDN",
    "is_fqdn",
];

/// Larger files are not for templates.
const LARGEST_FILE: u64 = 64 << 20;
/// How deeply calls of `template` may be inside each other.
const DEEPEST: usize = 16;
/// How many templates one template may lead to.
const MOST: usize = 10_000;

impl Scope {
    /// `file(path)`: the text of a file; a relative path starts at the folder of the manifest.
    pub(super) fn file(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let path = text(arguments, "file takes the path of a file")?;
        self.read(path).map(Value::from)
    }

    /// Whether a path leads to a regular file, now or in a dry run by now.
    fn is_file(&self, path: &str) -> bool {
        let path = self.working_directory.join(path);
        match self.predicted(&path) {
            Some(predicted) => predicted != PredictedText::Nothing,
            None => look::is_file(&path),
        }
    }

    /// Returns the text of a file as `file()` gives it, or why it does not.
    pub(crate) fn text_of(&self, path: &str) -> Result<String, String> {
        self.read(path).map_err(|error| error.kind.to_string())
    }

    fn read(&self, path: &str) -> Result<String, CallError> {
        self.open(path).map(|(text, _)| text)
    }

    /// `age(path)`: the text of a file in age format.
    pub(super) fn age(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let path = text(arguments, "age takes the path of a file in age format")?;
        let (bytes, _) = self.open_bytes(path)?;
        let shown = self.working_directory.join(path);
        let failed =
            |reason: String| CallError::at(0, format!("cannot decrypt {}: {reason}", shown.display()));
        if !is_age_file(&bytes) {
            return Err(failed("it is not in age format".to_owned()));
        }
        let Some(keyring) = &self.keyring else { return Err(failed(AgeError::NoMatch.to_string())) };
        match keyring.open_file(&bytes) {
            Ok(Some(plain)) => match str::from_utf8(&plain) {
                Ok(text) => Ok(Value::secret(text)),
                Err(_) => Err(failed("its content is not UTF-8 text".to_owned())),
            },
            // Another file has another placeholder, so that a comparison finds the change.
            Ok(None) => Ok(Value::secret(format!("{MASK}{}", hex(&Sha256::digest(&bytes))))),
            Err(reason) => Err(failed(reason)),
        }
    }

    /// Reads a text file; see [`Scope::open_bytes`].
    fn open(&self, path: &str) -> Result<(String, Author), CallError> {
        let (bytes, author) = self.open_bytes(path)?;
        let path = self.working_directory.join(path);
        let text = String::from_utf8(bytes)
            .map_err(|_| CallError::at(0, format!("cannot read {}: it is not UTF-8 text", path.display())))?;
        Ok((text, author))
    }

    /// Reads a file by the rules of `source`: through no link that an untrusted user could have placed. Returns who can write
    /// to the file, too.
    fn open_bytes(&self, path: &str) -> Result<(Vec<u8>, Author), CallError> {
        let is_reached = self.reaches(path);
        let mut path = self.working_directory.join(path);
        let failed = |path: &Path, reason: String| {
            CallError::at(0, format!("cannot read {}: {reason}", path.display()))
        };
        if !is_reached {
            let message = format!("cannot read {}: it may be written before it is read", path.display());
            return Err(CallError { kind: ErrorKind::NotYet(message), help: None, argument: Some(0) });
        }
        self.has_read.set(true);
        match self.predicted(&path) {
            Some(PredictedText::Text(text)) => return Ok((text.into_bytes(), Author::Trusted)),
            Some(PredictedText::Nothing) => return Err(failed(&path, "it would not exist".to_owned())),
            Some(PredictedText::Unknown) => {
                return Err(failed(&path, "what it would hold is not known before a real run".to_owned()));
            }
            Some(PredictedText::CopyOf(source)) => path = source,
            None => {}
        }
        let opened = files::open_followed(&path).map_err(|error| match &error.problem {
            // The kind of the file is the better reason.
            Problem::IsADirectory { .. } | Problem::Special { .. } => {
                let reason = input::open_file(&path).err().map(|error| error.to_string());
                failed(&path, reason.unwrap_or_else(|| error.problem.to_string()))
            }
            problem => failed(&path, problem.to_string()),
        })?;
        let Some((file, entry)) = opened else { return Err(missing_file(&path)) };
        let bytes =
            input::read_to_end(file, LARGEST_FILE).map_err(|error| failed(&path, error.to_string()))?;
        Ok((bytes, Author::of(&entry)))
    }

    /// Returns the text of a template that another template includes.
    fn included(&self, path: &str) -> Result<String, CallError> {
        let (text, author) = self.open(path)?;
        match author {
            Author::Trusted => Ok(text),
            Author::Untrusted => Err(CallError::at(0, not_included(path.as_ref()))),
        }
    }

    /// Reads a template, unless it is one of a language that is not read.
    fn template_file(&self, path: &str) -> Result<(String, Author), CallError> {
        if jet::is_named(path) {
            return Err(jet::refusal(path));
        }
        let (text, author) = self.open(path)?;
        let digest = files::hex(&Sha256::digest(text.as_bytes()));
        self.template_files.borrow_mut().insert(self.working_directory.join(path), digest);
        Ok((text, author))
    }

    /// Returns the scope for a template of another user; `None` if the template sees all of this one.
    fn scope_for(&self, author: Author) -> Option<Self> {
        (author == Author::Untrusted).then(|| self.for_untrusted())
    }

    /// Returns the files from the first use of a template to the next one, if it is being expanded already.
    fn cycle(&self, file: &str) -> Option<String> {
        let open = self.templates.borrow();
        let first = open.iter().position(|name| name.as_deref() == Some(file))?;
        let names = open[first..].iter().flatten().map(String::as_str).chain([file]);
        Some(names.collect::<Vec<_>>().join(" -> "))
    }

    /// `template(file-or-text)`: a file or a text with its expressions expanded.
    ///
    /// Only what is written in the call itself can be a path. Text from elsewhere is text, whatever it looks like: data
    /// and files do not choose what is opened.
    pub(super) fn template(&self, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        let given = text(arguments, "template takes the path of a file, or a text")?;
        // A decrypted text is literal, whatever it contains.
        if arguments.is_secret(0) {
            return Ok(given.into());
        }
        let is_text = !(arguments.is_literal(0) && self.names_a_file(given));
        let (text, author) =
            if is_text { (given.to_owned(), Author::Trusted) } else { self.template_file(given)? };
        let restricted = self.scope_for(author);
        let scope = restricted.as_ref().unwrap_or(self);
        let file = (!is_text).then_some(given);
        if let Some(cycle) = file.and_then(|file| self.cycle(file)) {
            return Err(CallError::at(0, format!("the template includes itself: {cycle}"))
                .with_help("templates have no blocks that could end this; write it for `jinja('FILE')`"));
        }
        let depth = self.templates.borrow().len();
        let calls = if depth == 0 { 0 } else { self.calls.get() };
        if depth >= DEEPEST || calls >= MOST {
            return Err(CallError::limit("templates are too deep inside each other")
                .with_help(format!("at most {DEEPEST} may be inside each other, and {MOST} in one")));
        }
        self.templates.borrow_mut().push(file.map(str::to_owned));
        self.calls.set(calls + 1);
        let noted = self.doubts.borrow().len();
        let rendered = Template::parse(&text).and_then(|template| template.render(scope));
        self.templates.borrow_mut().pop();
        let place = |at: usize| if is_text { line_of(&text, at) } else { place_in(given, &text, at) };
        if !is_text && self.is_before_run() {
            let note = |part: Range<usize>, suspicion| {
                let sign = text[part.clone()].trim().to_owned();
                self.note_suspect(Suspect { place: place(part.start), sign, suspicion });
            };
            if let Some((language, part)) = foreign(&text) {
                note(part, Suspicion::Foreign(language));
            }
            if let Some(part) = unclosed(&text) {
                note(part, Suspicion::Unclosed);
            }
        }
        for doubt in self.doubts.borrow_mut().iter_mut().skip(noted) {
            doubt.place.get_or_insert_with(|| place(doubt.span.start));
            doubt.span = 0..0;
        }
        rendered.map(Value::from).map_err(|error| {
            // Of templates that never end, the whole way down says nothing.
            if error.kind.is_limit() {
                return CallError { kind: error.kind.innermost().clone(), help: error.help, argument: None };
            }
            let place = place(error.span.start);
            let error = self.advise(error);
            let kind = ErrorKind::InTemplate { place, kind: error.kind };
            CallError { kind, help: error.help, argument: None }
        })
    }
}

impl Scope {
    /// `jinja(file-or-text)`: a file or a text with blocks, rendered. What is a path is told as for `template`.
    pub(super) fn jinja(&self, arguments: &Arguments<'_>) -> Result<Value, CallError> {
        let given = text(arguments, "jinja takes the path of a file, or a text")?;
        if arguments.is_secret(0) {
            return Ok(given.into());
        }
        let is_text = !(arguments.is_literal(0) && self.names_a_file(given));
        let (text, author) =
            if is_text { (given.to_owned(), Author::Trusted) } else { self.template_file(given)? };
        let restricted = self.scope_for(author);
        let scope = restricted.as_ref().unwrap_or(self);
        let template = JinjaTemplate {
            name: if is_text { "the text" } else { given },
            text: &text,
            delimiters: Delimiters::default(),
            written: None,
        };
        let early = RefCell::new(None);
        let read = |needed: &NeededFile| {
            if author == Author::Untrusted {
                return Err("a template that an untrusted user can write reads no files".to_owned());
            }
            let read = match needed {
                NeededFile::Included(path) => self.included(path),
                NeededFile::Read(path) => self.read(path),
            };
            read.map_err(|error| {
                let message = error.kind.to_string();
                early.replace(Some(error).filter(|error| matches!(error.kind, ErrorKind::NotYet(_))));
                message
            })
        };
        // That it is too early to tell is no mistake of the template.
        template
            .render(scope, read)
            .map(Value::from)
            .map_err(|error| early.take().unwrap_or_else(|| error.into()))
    }

    /// Finds what is wrong with a template before it is rendered. A file that is not there yet may come.
    pub(super) fn check_jinja(&self, argument: &Value) -> Option<CallError> {
        let given = argument.as_str()?;
        let is_file = self.names_a_file(given);
        let (text, author) =
            if is_file { self.open(given).ok()? } else { (given.to_owned(), Author::Trusted) };
        let restricted = self.scope_for(author);
        let name = if self.names_a_file(given) { given } else { "the text" };
        let template = JinjaTemplate { name, text: &text, delimiters: Delimiters::default(), written: None };
        template.check(restricted.as_ref().unwrap_or(self)).into_iter().next().map(Into::into)
    }

    /// Whether a literal is the path of a file, and not the text itself.
    fn names_a_file(&self, given: &str) -> bool {
        let may_be = !given.contains('\n') && !ccm_expr::has_template(given) && !given.contains("{%");
        may_be && (self.is_file(given) || looks_like_a_path(given))
    }
}

impl From<JinjaError> for CallError {
    fn from(JinjaError { place, message, help }: JinjaError) -> Self {
        Self { help, ..Self::new(format!("{place}: {message}")) }
    }
}

/// A file that is not there, with the name beside it that was probably meant.
fn missing_file(path: &Path) -> CallError {
    let help = nearest_file(path).map(|near| format!("did you mean `{near}`?"));
    CallError { kind: ErrorKind::MissingFile { path: path.to_owned() }, help, argument: Some(0) }
}

/// Returns the name of a file beside a path that was probably meant.
pub(crate) fn nearest_file(path: &Path) -> Option<String> {
    let names = input::names_beside(path);
    let name = path.file_name()?.to_str()?;
    ccm_expr::closest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// The line of a text without a name.
fn line_of(text: &str, at: usize) -> String {
    format!("line {} of the text", 1 + text[..at.min(text.len())].matches('\n').count())
}

/// The line and column of a file.
pub(super) fn place_in(file: &str, text: &str, at: usize) -> String {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    format!("{file}:{line}:{column}")
}

/// Whether a word was most probably meant as the path of a file, so that a mistake in it is told.
fn looks_like_a_path(text: &str) -> bool {
    let extension = Path::new(text).extension().is_some_and(|extension| !extension.is_empty());
    !text.contains(char::is_whitespace) && (extension || text.contains('/'))
}

fn text<'a>(arguments: &'a [Value], usage: &str) -> Result<&'a str, CallError> {
    match arguments {
        [only] => only
            .as_str()
            .ok_or_else(|| CallError::at(0, format!("{usage} as a string, not {}", only.type_name()))),
        _ => Err(CallError::new(usage)),
    }
}

/// The functions that say whether a value is of some form.
pub(super) fn check(name: &str, arguments: &[Value]) -> Result<Value, CallError> {
    let (value, rest) =
        arguments.split_first().ok_or_else(|| CallError::new(format!("{name} takes a value")))?;
    let written = match value {
        Value::Str(text) => text.to_string(),
        Value::Null => String::new(),
        other => other.to_text(),
    };
    if name == "isRegex" || name == "is_regex" {
        let [pattern] = rest else { return Err(CallError::new("isRegex takes a value and a pattern")) };
        let Some(pattern) = pattern.as_str() else {
            return Err(CallError::at(1, "the pattern must be a string"));
        };
        let pattern = regex::Regex::new(pattern).map_err(|error| CallError::at(1, error.to_string()))?;
        return Ok(pattern.is_match(&written).into());
    }
    if !rest.is_empty() {
        return Err(CallError::new(format!("{name} takes one value")));
    }
    let holds = match name {
        "isIP" | "is_ip" => written.parse::<IpAddr>().is_ok(),
        "isIPv4" | "is_ipv4" => written.parse::<Ipv4Addr>().is_ok(),
        "isIPv6" | "is_ipv6" => written.parse::<Ipv6Addr>().is_ok(),
        "isInt" | "is_int" => matches!(value.settled(), Value::Int(_)) || written.parse::<i64>().is_ok(),
        "isFloat" | "is_float" => written.parse::<f64>().is_ok_and(f64::is_finite),
        "isDuration" | "is_duration" => written.parse::<Duration>().is_ok(),
        "isShellSafe" | "is_shell_safe" | "is_shellsafe" => is_shell_safe(&written),
        "isHostname" | "is_hostname" => is_hostname(&written),
        "isFQDN" | "is_fqdn" => is_hostname(&written) && written.trim_end_matches('.').contains('.'),
        _ => return Err(CallError::new(format!("there is no function `{name}`"))),
    };
    Ok(holds.into())
}

/// Whether no character of the text means anything to a shell, but for the blanks between words.
fn is_shell_safe(text: &str) -> bool {
    !text.contains(|c: char| c.is_control() || ";&|`$()<>'\"\\*?[]{}~#!".contains(c))
}

/// A host name as RFC 1123 has it.
fn is_hostname(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL_ACTIVE: &[&str] = &[
        "$(x)", "a;b", "a&b", "a|b", "a`b", "a$b", "(a", "a)", "a<b", "a>b", "a'b", "a\"b", "a\\b", "a\nb",
        "a\tb", "a\rb", "a\0b", "a*", "a?", "a[b", "a]b", "{a", "a}", "~a", "#a", "!a",
    ];

    #[test]
    fn each_form_is_told_from_the_others() {
        for (name, yes, no) in [
            ("isIP", vec!["10.0.0.1", "::1"], vec!["10.0.0", "a", ""]),
            ("isIPv4", vec!["10.0.0.1"], vec!["::1"]),
            ("isIPv6", vec!["::1"], vec!["10.0.0.1"]),
            ("isInt", vec!["0", "-12"], vec!["1.5", "x", ""]),
            ("isFloat", vec!["1.5", "2"], vec!["x", "inf", "NaN"]),
            ("isDuration", vec!["1h30m"], vec!["30", "x"]),
            ("isShellSafe", vec!["abc-1.2/x", "a b", "", "caf\u{e9} 5%, a=b@c:+^_"], SHELL_ACTIVE.to_vec()),
            ("isHostname", vec!["web1", "web1.example.net"], vec!["-a", "a_b", "", "a..b"]),
            ("isFQDN", vec!["web1.example.net"], vec!["web1"]),
        ] {
            for (texts, holds) in [(yes, true), (no, false)] {
                for text in texts {
                    let found = check(name, &[Value::from(text)]).unwrap().as_bool();
                    assert_eq!(found, Some(holds), "{name}({text:?})");
                }
            }
        }
    }

    fn scope(folder: &str) -> Scope {
        Scope::new(Value::Null, Value::Null, folder.into())
    }

    #[test]
    fn a_text_with_something_to_expand_is_no_path() {
        let scope = scope("/nowhere");
        for (given, expected) in [
            ("app.conf", true),
            ("a/b", true),
            ("word", false),
            ("two words.txt", false),
            ("{{a}}.conf", false),
            ("${a}/b", false),
            ("{%x%}.conf", false),
            ("a\n/b", false),
        ] {
            assert_eq!(scope.names_a_file(given), expected, "{given:?}");
        }
    }

    /// A dry run that would have made one file and removed another.
    struct DryRun;

    impl crate::template::TextPrediction for DryRun {
        fn text(&self, path: &Path) -> Option<PredictedText> {
            match path.to_str()? {
                "/nowhere/made" => Some(PredictedText::Text("made".to_owned())),
                "/nowhere/hidden" => Some(PredictedText::Unknown),
                "/nowhere/removed" => Some(PredictedText::Nothing),
                _ => None,
            }
        }
    }

    #[test]
    fn a_word_is_a_path_where_a_dry_run_would_have_made_the_file() {
        let scope = scope("/nowhere").with_prediction(std::rc::Rc::new(DryRun));
        for (given, expected) in [("made", true), ("hidden", true), ("removed", false), ("other", false)] {
            assert_eq!(scope.names_a_file(given), expected, "{given}");
        }
    }

    #[test]
    fn a_mistake_in_a_text_is_told_with_its_line() {
        let program = ccm_expr::Program::compile("template(\"a\\nb ${ nope }\")").unwrap();
        let error = program.evaluate(&scope("/nowhere")).unwrap_err();
        assert!(error.kind.to_string().contains("line 2 of the text"), "{}", error.kind);
    }
}
