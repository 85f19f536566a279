//! Words of the Go original that mean something here: what the command line accepts, what the guide lists and what the tests
//! run are made from this one table.

use clap::{Arg, ArgAction, Command};

use crate::types;

/// A word of the Go original.
pub(super) struct Alias {
    /// The command that has it: `ensure service`, or `ensure TYPE` for those of all types.
    of: &'static str,
    word: Word,
    /// A command line with it, and the same one in the words of ccm.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the guide and the tests, which run it"))]
    pub(super) theirs: &'static str,
    pub(super) ours: &'static str,
}

/// What the command line makes of a word.
enum Word {
    /// Another name of a command.
    Command { name: &'static str, of: &'static str },
    /// Another name of a flag, long or one letter.
    Flag { name: &'static str, of: &'static str },
    /// A flag without a value that has its own meaning.
    Switch(&'static str),
    /// A flag with a value that has its own meaning; the letter is a short name of it.
    Value(&'static str, Option<char>),
    /// Nothing: the word is the same here, or a value.
    Same,
}

const fn command(
    of: &'static str,
    name: &'static str,
    known: &'static str,
    theirs: &'static str,
    ours: &'static str,
) -> Alias {
    Alias { of, word: Word::Command { name, of: known }, theirs, ours }
}

const fn flag(
    of: &'static str,
    name: &'static str,
    known: &'static str,
    theirs: &'static str,
    ours: &'static str,
) -> Alias {
    Alias { of, word: Word::Flag { name, of: known }, theirs, ours }
}

const fn own(of: &'static str, word: Word, theirs: &'static str, ours: &'static str) -> Alias {
    Alias { of, word, theirs, ours }
}

/// Every word.
pub(super) const ALIASES: &[Alias] = &[
    command("", "info", "status", "ccm info file /etc/hosts", "ccm status file /etc/hosts"),
    command(
        "ensure",
        "svc",
        "service",
        "ccm ensure svc ccm-none stopped",
        "ccm ensure service ccm-none stopped",
    ),
    command(
        "ensure",
        "pkg",
        "package",
        "ccm ensure pkg ccm-none absent --noop",
        "ccm ensure package ccm-none absent --noop",
    ),
    command("ensure api", "piped", "pipe", "ccm ensure api piped --noop", "ccm ensure api pipe --noop"),
    command("hiera", "resolve", "parse", "ccm hiera resolve data.yaml", "ccm hiera parse data.yaml"),
    own("hiera", Word::Same, "ccm hiera facts hostname", "ccm facts hostname"),
    command("session", "start", "new", "ccm session start --directory s", "ccm session new --directory s"),
    command("session", "create", "new", "ccm session create --directory s", "ccm session new --directory s"),
    own("", Word::Switch("debug"), "ccm apply site.yaml --noop --debug", "ccm apply site.yaml --noop -vv"),
    own("", Word::Switch("info"), "ccm apply site.yaml --noop --info", "ccm apply site.yaml --noop -v"),
    own("apply", Word::Switch("report"), "ccm apply site.yaml --report", "ccm apply site.yaml"),
    own(
        "ensure",
        Word::Same,
        "ccm ensure --noop --fact tier=web file $PWD/a --content {{Facts.tier}}",
        "ccm ensure file $PWD/a --content {{Facts.tier}} --noop --fact tier=web",
    ),
    own(
        "ensure TYPE",
        Word::Value("if", None),
        "ccm ensure file $PWD/a --if 'lookup(\"facts.os\") == \"none\"'",
        "ccm ensure file $PWD/a --control 'if=lookup(\"facts.os\") == \"none\"'",
    ),
    own(
        "ensure TYPE",
        Word::Value("unless", None),
        "ccm ensure file $PWD/a --unless 'Facts.os == \"linux\"'",
        "ccm ensure file $PWD/a --control 'unless=Facts.os == \"linux\"'",
    ),
    flag(
        "ensure exec",
        "exec-if",
        "onlyif",
        "ccm ensure exec true --exec-if false",
        "ccm ensure exec true --onlyif false",
    ),
    own(
        "ensure exec",
        Word::Value("exec-unless", None),
        "ccm ensure exec true --exec-unless true",
        "ccm ensure exec true --unless true",
    ),
    flag(
        "ensure exec",
        "e",
        "environment",
        "ccm ensure exec true -e A=b",
        "ccm ensure exec true --environment A=b",
    ),
    flag(
        "ensure TYPE",
        "S",
        "subscribe",
        "ccm ensure exec true -S file#/a",
        "ccm ensure exec true --subscribe file#/a",
    ),
    own(
        "ensure service",
        Word::Switch("disable"),
        "ccm ensure service ccm-none stopped --disable",
        "ccm ensure service ccm-none stopped --no-enable",
    ),
    own(
        "ensure file",
        Word::Same,
        "ccm ensure file $PWD/a --owner root:root --mode 0600",
        "ccm ensure file $PWD/a --owner root --group root --mode 0600",
    ),
    own(
        "ensure archive",
        Word::Same,
        "ccm ensure archive $PWD/a.tar.gz http://127.0.0.1:9/a.tar.gz --noop",
        "ccm ensure archive $PWD/a.tar.gz --url http://127.0.0.1:9/a.tar.gz --noop",
    ),
    flag(
        "ensure archive",
        "extract",
        "extract_parent",
        "ccm ensure archive $PWD/a.tar.gz http://127.0.0.1:9/a.tar.gz --extract /opt --noop",
        "ccm ensure archive $PWD/a.tar.gz --url http://127.0.0.1:9/a.tar.gz --extract-parent /opt --noop",
    ),
    own(
        "ensure archive",
        Word::Value("header", Some('H')),
        "ccm ensure archive $PWD/a.tar.gz http://127.0.0.1:9/a.tar.gz -H 'X-Token: a=b' --noop",
        "ccm ensure archive $PWD/a.tar.gz --url http://127.0.0.1:9/a.tar.gz --headers X-Token=a=b --noop",
    ),
    flag(
        "hiera parse",
        "D",
        "data",
        "ccm hiera parse data.yaml -D port=1",
        "ccm hiera parse data.yaml --data port=1",
    ),
];

impl Alias {
    /// Whether the word belongs to a command.
    fn is_of(&self, command: &str) -> bool {
        let is_type = |command: &str| {
            command.strip_prefix("ensure ").is_some_and(|kind| kind != "api" && !kind.contains(' '))
        };
        self.of == command || self.of == "ensure TYPE" && is_type(command)
    }
}

/// Adds the words that belong to a command to it. None of them is shown in its help.
pub(super) fn with_aliases(command: Command, path: &str) -> Command {
    let words = ALIASES.iter().filter(|alias| alias.is_of(path));
    words.fold(command, |command, alias| alias.word.added(command, alias.ours))
}

impl Word {
    fn added(&self, command: Command, meaning: &str) -> Command {
        let has =
            |command: &Command, id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
        match *self {
            Self::Command { name, of } => command.mut_subcommand(of, |known| known.alias(name)),
            // Not every type has every property.
            Self::Flag { of, .. } if !has(&command, of) => command,
            Self::Flag { name, of } => command.mut_arg(of, |known| match letter(name) {
                Some(letter) => known.short_alias(letter),
                None => known.alias(name),
            }),
            // A command keeps its own meaning of a word.
            Self::Switch(name) | Self::Value(name, _) if has(&command, name) => command,
            Self::Switch(name) => command
                .arg(Arg::new(name).long(name).action(ArgAction::SetTrue).hide(true).help(same(meaning))),
            Self::Value(name, letter) => {
                let argument = Arg::new(name).long(name).hide(true).help(same(meaning));
                let argument =
                    argument.action(ArgAction::Append).allow_hyphen_values(true).value_name("VALUE");
                command.arg(match letter {
                    Some(letter) => argument.short(letter),
                    None => argument,
                })
            }
            Self::Same => command,
        }
    }

    /// The names of the word on a command line.
    fn names(&self) -> Vec<String> {
        match *self {
            Self::Command { name, .. } => vec![name.to_owned()],
            Self::Flag { name, .. } if letter(name).is_some() => vec![format!("-{name}")],
            Self::Flag { name, .. } | Self::Switch(name) => vec![format!("--{name}")],
            Self::Value(name, letter) => std::iter::once(format!("--{name}"))
                .chain(letter.map(|letter| format!("-{letter}")))
                .collect(),
            Self::Same => Vec::new(),
        }
    }
}

fn letter(name: &str) -> Option<char> {
    let mut letters = name.chars();
    letters.next().filter(|_| letters.next().is_none())
}

fn same(meaning: &str) -> String {
    format!("As in `{meaning}`")
}

/// Returns the name of a type, which may be one of the original's.
pub(super) fn type_name(name: &str) -> &str {
    let known = ALIASES.iter().find_map(|alias| match alias.word {
        Word::Command { name: other, of } if alias.of == "ensure" && other == name => Some(of),
        _ => None,
    });
    known.unwrap_or(name)
}

/// Returns the other names of a type.
pub(super) fn of_type(known: &str) -> impl Iterator<Item = &'static str> {
    ALIASES.iter().filter_map(move |alias| match alias.word {
        Word::Command { name, of } if alias.of == "ensure" && of == known => Some(name),
        _ => None,
    })
}

/// Returns the commands that a word of the original belongs to, if it is one.
pub(super) fn homes_of(word: &str) -> Vec<String> {
    let word = word.split(['=', ' ']).next().unwrap_or(word);
    let homes = |alias: &Alias| match alias.word {
        // Not every type is refreshed.
        Word::Flag { of: "subscribe", .. } => {
            let kinds =
                types::TYPES.iter().filter(|kind| kind.behavior().refreshes && kind.behavior().stands_alone);
            kinds.map(|kind| format!("ccm ensure {}", kind.name())).collect()
        }
        _ => vec![format!("ccm {}", alias.of).trim_end().to_owned()],
    };
    let alias = ALIASES.iter().find(|alias| alias.word.names().iter().any(|name| name == word));
    alias.map(homes).unwrap_or_default()
}

/// Returns whether a name of a command is one of the original's, which help does not show.
pub(super) fn is_command(word: &str) -> bool {
    ALIASES.iter().any(|alias| matches!(alias.word, Word::Command { name, .. } if name == word))
}
