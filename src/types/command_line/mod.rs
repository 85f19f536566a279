//! A command line on its way to the runner: what every type has run that a user wrote.

mod failure;
mod prediction;

pub(super) use prediction::Readiness;

use rustix::process::{getegid, geteuid};

use crate::{
    host::process::{Command, Finished, Keep},
    resource::{Context, Error, Inherited, RunAs, Warning, run_as},
    template,
    vocabulary::{
        AbsolutePath, Account, Mode, SearchPath, Secret, Variable,
        command_words::{self as words, Expansion, NotACommand},
    },
};

/// The provider that needs no shell.
pub(super) const POSIX: &str = "posix";

/// How much a command may print that is read as a whole.
const MOST_READ: usize = 4 << 20;

/// A command line that a resource needs run.
pub(super) struct CommandLine<'a> {
    pub(super) role: Role,
    pub(super) text: &'a str,
    pub(super) through: Through,
    pub(super) settings: Settings<'a>,
}

/// What a command line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Command,
    Onlyif,
    Unless,
    Post,
}

impl Role {
    /// The property that holds it.
    pub(super) fn property(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Onlyif => "onlyif",
            Self::Unless => "unless",
            Self::Post => "post",
        }
    }
}

/// What stands between a command line and its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Nothing,
    Shell,
}

impl Through {
    /// Returns what the provider of this name puts there; without a name it is the first one.
    fn of(provider: Option<&str>) -> Self {
        if provider.is_none_or(|provider| provider == POSIX) { Self::Nothing } else { Self::Shell }
    }
}

/// How a command line is run.
#[derive(Clone, Copy, Default)]
pub(super) struct Settings<'a> {
    pub(super) environment: &'a [Variable],
    pub(super) path: Option<&'a SearchPath>,
    pub(super) cwd: Option<&'a AbsolutePath>,
    pub(super) user: Option<&'a Account>,
    pub(super) group: Option<&'a Account>,
    pub(super) inherited: Inherited,
    pub(super) umask: Option<Mode>,
    /// What the command, but no guard, reads.
    pub(super) input: Option<&'a Secret>,
    pub(super) printing: Printing,
}

/// What becomes of what a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Printing {
    #[default]
    Kept,
    /// It is kept, and shown while the command runs.
    Shown,
    /// It is for the program to read, as a whole and with its secrets.
    Read,
}

impl<'a> CommandLine<'a> {
    /// The command line with everything that is said about how it is run.
    fn command(&self, cx: &Context) -> Result<Command<'a>, Error> {
        let settings = self.settings;
        let Settings { user, group, inherited, .. } = settings;
        let command = run_as(self.program()?, RunAs { user, group, inherited }, &cx.host.users)?;
        let mut command = match settings.printing {
            Printing::Read => command.keep(Keep::Whole(MOST_READ)),
            Printing::Kept | Printing::Shown => command.filter(cx.redactor.filter()),
        };
        for variable in settings.environment {
            command = command.variable(&variable.name, variable.value.reveal());
        }
        if let Some(directory) = settings.cwd {
            command = command.directory(directory.as_path());
        }
        if let Some(path) = settings.path {
            command = command.search_path(path.as_str());
        }
        if let Some(mask) = settings.umask {
            command = command.umask(mask.bits());
        }
        if let (Role::Command, Some(input)) = (self.role, settings.input) {
            command = command.input(input.reveal().as_bytes());
        }
        if let Some(timeout) = cx.timeout() {
            command = command.timeout(timeout);
        }
        Ok(command)
    }

    /// Runs it to its end. Each command line has the whole time limit of the resource.
    pub(super) fn run(&self, cx: &Context) -> Result<Finished, Error> {
        let (command, host) = (self.command(cx)?, cx.host);
        let finished = if self.role == Role::Command && self.settings.printing == Printing::Shown {
            command.run_watched(&host.runner, &host.interrupt, &mut |_, line| cx.show(line))
        } else {
            command.run(&host.runner, &host.interrupt)
        };
        cx.restart_time();
        finished.map_err(|error| self.did_not_end(error, cx))
    }

    /// Whether an earlier resource of a dry run may bring a program that a text for the shell names.
    pub(super) fn may_be_brought(&self, cx: &Context) -> bool {
        let is_brought = |word: &str| {
            let text = shell_words::quote(word);
            let line = CommandLine { text: &text, through: Through::Nothing, ..*self };
            matches!(line.readiness(cx), Ok(Readiness::Predicted(_) | Readiness::Open(_)))
        };
        let words = self.text.split(|c: char| c.is_whitespace() || ";|&()<>`'\"".contains(c));
        words.filter(|word| !word.is_empty()).any(is_brought)
    }

    fn program(&self) -> Result<Command<'a>, Error> {
        if self.through == Through::Shell {
            return Ok(Command::shell(self.text));
        }
        let mut words =
            words::split(self.text).map_err(|reason| unusable(self.role.property(), &reason))?.into_iter();
        Ok(Command::new(words.next().unwrap_or_default()).arguments(words))
    }
}

/// Returns the UID and GID of files that the command creates, as far as they are known.
pub(super) fn ids(settings: Settings, cx: &Context) -> (u32, u32) {
    let uid = settings.user.and_then(|user| cx.user_id(user));
    let gid = settings.group.and_then(|group| cx.group_id(group));
    let primary = || settings.user.and_then(|user| cx.host.users.user(user)).map(|user| user.gid);
    (uid.unwrap_or(geteuid().as_raw()), gid.or_else(primary).unwrap_or(getegid().as_raw()))
}

/// Returns the words of a command line that needs no shell, or what is wrong with it.
pub(super) fn words_of(text: &str) -> Result<Vec<String>, impl std::fmt::Display> {
    words::split(text)
}

/// Returns what is wrong with a text that a provider is to run.
pub(super) fn problem(property: &'static str, text: &str, provider: Option<&str>) -> Option<Error> {
    let is_split = Through::of(provider) == Through::Nothing;
    let reason = match words::split(text) {
        Err(reason) if is_split || text.trim().is_empty() => Some(reason),
        Ok(_) if is_split => words::operator(text),
        _ => None,
    };
    reason.map(|reason| unusable(property, &reason))
}

/// Returns a warning where a text was probably meant for a shell, and its provider needs none.
pub(super) fn warning(property: &'static str, text: &str, provider: Option<&str>) -> Option<Warning> {
    let is_split = Through::of(provider) == Through::Nothing;
    // What remains of an expression is reported as such.
    let (word, expansion) = words::expansion(text).filter(|_| is_split && !template::is_unclosed(text))?;
    Some(not_expanded(property, &word, expansion))
}

/// The text of a property cannot be run.
fn unusable(property: &'static str, reason: &NotACommand) -> Error {
    let error = Error::new(format!("`{property}` {reason}")).on(property);
    match reason {
        NotACommand::Operator(_) => error.with_help(FOR_A_SHELL),
        NotACommand::Unclosed | NotACommand::Empty => error,
    }
}

const FOR_A_SHELL: &str = "give `provider: shell`, or quote it if the program is to get it";

/// A word of which only a shell would make something else.
fn not_expanded(property: &'static str, word: &str, expansion: Expansion) -> Warning {
    let (what, instead) = match expansion {
        Expansion::Variable => ("variables are not replaced", "`${ Environ.NAME }` is ccm's own way"),
        Expansion::Command => ("commands in it are not run", "or give the value as data"),
        Expansion::Glob => ("names are not matched", "or name each file"),
        Expansion::Home => ("it is not a home directory", "`${ Environ.HOME }` is ccm's own way"),
        Expansion::Input => ("nothing is read from there", "or leave it out"),
        Expansion::Output => ("output is not redirected", "or leave it out"),
    };
    Warning {
        id: "not-a-shell",
        message: format!("`{property}` holds `{word}`, but there is no shell: {what}"),
        property: Some(property),
        help: Some(format!("give `provider: shell`; {instead}; or quote it if it is meant as it is")),
    }
}
