//! What words of the Go original on the command line of `ccm ensure TYPE` mean for the properties of the resource.

use ccm_expr::Program;
use clap::{ArgMatches, parser::ValueSource};

use super::{ensure::SCAFFOLD, failure::Failure, flags::Given};
use crate::{
    resource::{AnyType, fields},
    vocabulary::has_scheme,
};

/// What they say.
pub(super) struct Words {
    /// The desired state.
    pub(super) ensure: Option<String>,
    /// A tree that was given after the name.
    source: Option<String>,
    /// An address that was given after the name.
    url: Option<String>,
    /// `--if` and `--unless` as values of `--control`.
    control: Vec<String>,
    /// `--header` as values of `--headers`.
    headers: Vec<String>,
    /// `--exec-unless`.
    guard: Option<String>,
    /// Whether `--disable` was given.
    disable: bool,
    /// The group after the colon of `--owner`.
    group: Option<String>,
    /// Whether there is a password from the environment and no user.
    has_password_only: bool,
}

impl Words {
    pub(super) fn from_matches(kind: &'static dyn AnyType, matches: &ArgMatches) -> Result<Self, Failure> {
        let values = |name: &str| -> Vec<String> {
            matches.try_get_many::<String>(name).ok().flatten().into_iter().flatten().cloned().collect()
        };
        let is_exec = kind.name() == "exec";
        let second: Option<String> = matches.get_one("ensure").cloned();
        let (url, ensure) = match second {
            Some(word) if has_scheme(&word) && kind.name() != SCAFFOLD => (Some(word), None),
            word => (None, word),
        };
        let state = values("state").into_iter().next();
        let (source, ensure) = match (kind.name() == SCAFFOLD, values("source").is_empty()) {
            (true, true) => (ensure, state),
            (true, false) if state.is_some() => {
                return Err(Failure::new("a source after the name and --source cannot be given together"));
            }
            _ => (None, ensure),
        };
        let mut control: Vec<String> = values("if").iter().map(|text| format!("if={text}")).collect();
        // A command has `unless` of its own.
        let unless = values("unless");
        if is_exec {
            unless.iter().try_for_each(|text| guard(text))?;
        } else {
            control.extend(unless.iter().map(|text| format!("unless={text}")));
        }
        let headers: Result<_, Failure> = values("header").iter().map(|text| header(text)).collect();
        let has_owner = fields(kind).iter().any(|field| field.name == "group");
        let owner = values("owner").into_iter().next().filter(|_| has_owner);
        let origin = matches.try_contains_id("password").ok().and_then(|_| matches.value_source("password"));
        let has_password_only = origin == Some(ValueSource::EnvVariable) && values("username").is_empty();
        Ok(Self {
            has_password_only,
            ensure,
            source,
            url,
            control,
            headers: headers?,
            guard: values("exec-unless").into_iter().next(),
            disable: matches.try_get_one::<bool>("disable").ok().flatten() == Some(&true),
            group: owner.and_then(|owner| Some(owner.split_once(':')?.1.to_owned())),
        })
    }

    /// Returns what was given for a property, by its own flag or by a word of the original.
    pub(super) fn given(&self, property: &str, own: Option<Given>) -> Result<Option<Given>, Failure> {
        let twice =
            |word: &str, flag: &str| Failure::new(format!("{word} and {flag} cannot be given together"));
        let one = |text: &String| Some(Given::Values(vec![text.clone()]));
        Ok(match (property, own) {
            ("url", Some(_)) if self.url.is_some() => {
                return Err(twice("an address after the name", "--url"));
            }
            // A variable that is set for other downloads does not stand alone.
            ("password", _) if self.has_password_only => None,
            ("source", None) => self.source.as_ref().and_then(one),
            ("url", None) => self.url.as_ref().and_then(one),
            ("control", Some(_)) if !self.control.is_empty() => {
                return Err(twice("--if or --unless", "--control"));
            }
            ("control", None) if !self.control.is_empty() => Some(Given::Values(self.control.clone())),
            ("headers", own) if !self.headers.is_empty() => {
                let given = match own {
                    Some(Given::Values(values)) => values,
                    _ => Vec::new(),
                };
                Some(Given::Values([given, self.headers.clone()].concat()))
            }
            ("unless", Some(_)) if self.guard.is_some() => return Err(twice("--exec-unless", "--unless")),
            ("unless", None) => self.guard.as_ref().and_then(one),
            ("enable", Some(Given::Switch(true))) if self.disable => {
                return Err(twice("--disable", "--enable"));
            }
            ("enable", _) if self.disable => Some(Given::Switch(false)),
            ("owner", Some(Given::Values(values))) if self.group.is_some() => {
                let user = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
                Some(Given::Values(values.iter().map(user).collect()))
            }
            ("group", Some(_)) if self.group.is_some() => return Err(twice("--owner USER:GROUP", "--group")),
            ("group", None) => self.group.as_ref().and_then(one),
            (_, own) => own,
        })
    }
}

/// Refuses a guard that is an expression: the original takes `--unless` of a command for that.
fn guard(text: &str) -> Result<(), Failure> {
    let speaks_of = |word: &&str| text.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word);
    let is_expression = ["lookup", "Facts", "Data", "Environ"].iter().any(speaks_of);
    if is_expression && Program::compile(text).is_ok() {
        return Err(Failure::new(format!(
            "--unless of a command is a command that is run, and `{text}` is an expression: write --control 'unless={text}', or \
             --exec-unless '{text}' if it is a command"
        )));
    }
    Ok(())
}

/// Returns `Name: value` as `Name=value`.
fn header(text: &str) -> Result<String, Failure> {
    let (name, value) = text
        .split_once([':', '='])
        .ok_or_else(|| Failure::new("--header: what was given is not of the form \"Name: value\""))?;
    Ok(format!("{}={}", name.trim(), value.trim()))
}
