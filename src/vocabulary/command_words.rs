//! Splits command lines without a shell, and finds signs that a shell was expected.

use thiserror::Error;

/// Reason why a string is not a command line.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum NotACommand {
    #[error("has a quotation mark that is not closed")]
    Unclosed,
    #[error("names no program")]
    Empty,
    #[error("holds `{0}`, which only a shell would understand: the program would get it as an argument")]
    Operator(String),
}

/// Splits a command line by the quoting rules of the shell. The result has at least one word.
pub(crate) fn split(text: &str) -> Result<Vec<String>, NotACommand> {
    let words = shell_words::split(text).map_err(|_| NotACommand::Unclosed)?;
    if words.first().is_none_or(String::is_empty) { Err(NotACommand::Empty) } else { Ok(words) }
}

/// Operators that only a shell understands.
const OPERATORS: [&str; 12] = ["|", "||", "|&", "&&", "&", ";", ">", ">>", "<", "<<", "2>", "2>&1"];

/// Operators that are never meant as an argument, unless they are quoted.
const CERTAIN: [&str; 14] =
    ["|", "||", "|&", "&&", "&", ";", ";;", ">", ">>", "<", "<<", "2>", "2>>", "2>&1"];

/// Returns the first unquoted shell operator.
pub(crate) fn operator(text: &str) -> Option<NotACommand> {
    let word = marked(text).into_iter().find(Word::is_operator)?;
    Some(NotACommand::Operator(word.text()))
}

/// Returns the first word that a shell would expand, and the kind of expansion. Operators are reported separately, and
/// the script in `sh -c` is ignored, because a shell reads it.
pub(crate) fn expansion(text: &str) -> Option<(String, Expansion)> {
    let words = marked(text);
    let script = script(&words);
    let words = words.into_iter().enumerate().filter(|(at, word)| Some(*at) != script && !word.is_operator());
    words.map(|(_, word)| word).find_map(|word| Some((word.text(), word.expansion()?)))
}

/// Returns the index of the script in `sh -c '...'`.
fn script(words: &[Word]) -> Option<usize> {
    let program = words.first()?.text();
    let name = program.rsplit('/').next().unwrap_or_default();
    let option = words.iter().position(|word| word.text() == "-c")?;
    ["sh", "bash", "dash", "ash", "ksh", "zsh"].contains(&name).then_some(option + 1)
}

/// Kind of expansion that a shell performs on an unquoted word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expansion {
    Variable,
    Command,
    Glob,
    Home,
    Input,
    Output,
}

/// How a character of a command line is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quoting {
    None,
    /// Variables and command substitutions are still expanded.
    Double,
    Full,
}

struct Letter {
    letter: char,
    quoting: Quoting,
}

struct Word {
    letters: Vec<Letter>,
}

impl Word {
    fn text(&self) -> String {
        self.letters.iter().map(|letter| letter.letter).collect()
    }

    fn is_operator(&self) -> bool {
        let is_open = |letter: &Letter| letter.quoting == Quoting::None;
        let ends = self.letters.last().is_some_and(|last| last.letter == ';' && is_open(last));
        ends || CERTAIN.contains(&self.text().as_str()) && self.letters.iter().all(is_open)
    }

    fn expansion(&self) -> Option<Expansion> {
        let open: Vec<char> = self
            .letters
            .iter()
            .map(|letter| if letter.quoting == Quoting::Full { '\0' } else { letter.letter })
            .collect();
        let begins_name = |c: Option<&char>| c.is_some_and(|c| c.is_ascii_alphabetic() || *c == '_');
        for (at, letter) in open.iter().enumerate() {
            match (letter, open.get(at + 1)) {
                ('`', _) | ('$', Some('(')) => return Some(Expansion::Command),
                ('$', Some('{')) => return Some(Expansion::Variable),
                ('$', next) if begins_name(next) => return Some(Expansion::Variable),
                _ => {}
            }
        }
        let is_plain = |at: usize, letters: &[char]| {
            let letter = self.letters.get(at);
            letter.is_some_and(|it| it.quoting == Quoting::None && letters.contains(&it.letter))
        };
        if is_plain(0, &['<']) {
            return Some(Expansion::Input);
        }
        if is_plain(0, &['>']) || is_plain(0, &['1', '2', '&']) && is_plain(1, &['>']) {
            return Some(Expansion::Output);
        }
        if is_plain(0, &['~']) && self.letters.get(1).is_none_or(|next| next.letter == '/') {
            return Some(Expansion::Home);
        }
        let is_option = self.letters.first().is_some_and(|first| first.letter == '-');
        let find =
            |from: usize, letters: &[char]| (from..self.letters.len()).find(|at| is_plain(*at, letters));
        // Of letters in brackets one has to be there: `[` and `]` alone are words of `test`.
        let has_class = find(0, &['[']).and_then(|at| find(at + 2, &[']'])).is_some();
        let has_glob = has_class || find(0, &['*', '?']).is_some();
        (has_glob && !is_option).then_some(Expansion::Glob)
    }
}

/// Splits a command line into words, with the quoting of each character. An unclosed quote extends to the end.
fn marked(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quoting = Quoting::None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if quoting == Quoting::None && letter.is_ascii_whitespace() {
            words.extend(word.take());
            continue;
        }
        let current = word.get_or_insert_with(|| Word { letters: Vec::new() });
        match (letter, quoting) {
            ('\'', Quoting::None) => quoting = Quoting::Full,
            ('"', Quoting::None) => quoting = Quoting::Double,
            ('\'', Quoting::Full) | ('"', Quoting::Double) => quoting = Quoting::None,
            ('\\', Quoting::None | Quoting::Double) => {
                let escaped = letters.next().map(|letter| Letter { letter, quoting: Quoting::Full });
                current.letters.extend(escaped);
            }
            _ => current.letters.push(Letter { letter, quoting }),
        }
    }
    words.extend(word);
    words
}

/// Shell built-ins without a program of the same name.
const BUILTINS: [&str; 14] = [
    ".", ":", "cd", "eval", "exec", "exit", "export", "for", "if", "set", "source", "ulimit", "unset",
    "while",
];

/// Returns the first word that looks as if a shell were expected. Quoting is no longer known here, so the result only
/// explains failures.
pub(crate) fn meant_for_a_shell(words: &[String]) -> Option<&str> {
    let program = words.first().map(String::as_str);
    if let Some(program) = program.filter(|program| BUILTINS.contains(program) || is_assignment(program)) {
        return Some(program);
    }
    // A word with a space in it was quoted.
    words.iter().map(String::as_str).filter(|word| !word.contains(char::is_whitespace)).find(|word| {
        OPERATORS.contains(word) || word.ends_with(';') || word.starts_with(['>', '<']) || has_expansion(word)
    })
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn has_expansion(word: &str) -> bool {
    let after_dollar =
        |at: usize| word[at + 1..].starts_with(|c: char| c == '(' || c == '{' || is_name(&c.to_string()));
    word.contains('`') || word.match_indices('$').any(|(at, _)| after_dollar(at))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_the_quoting_rules_of_the_shell() {
        for (text, words) in [
            ("a b  c", vec!["a", "b", "c"]),
            ("echo 'a b' \"c d\" e\\ f", vec!["echo", "a b", "c d", "e f"]),
            ("echo '' \"\"", vec!["echo", "", ""]),
            ("echo 'it'\\''s' *.txt $HOME | cat", vec!["echo", "it's", "*.txt", "$HOME", "|", "cat"]),
            ("printf '%s\\n'\n", vec!["printf", "%s\\n"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        for text in ["echo 'a", "echo \"a", "", "  ", "'' a"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn operators_are_told_from_what_is_quoted() {
        for (text, operators) in [
            ("a | b", Some("|")),
            ("a && b", Some("&&")),
            ("a || b", Some("||")),
            ("a ; b", Some(";")),
            ("a; b", Some("a;")),
            ("a > b", Some(">")),
            ("a >> b", Some(">>")),
            ("a < b", Some("<")),
            ("a 2> b", Some("2>")),
            ("a 2>&1", Some("2>&1")),
            ("a &", Some("&")),
            ("a '|' b", None),
            ("a \"&&\" b", None),
            ("find . -exec ls {} \\;", None),
            ("find . -exec ls {} ';'", None),
            ("awk '{ print; }'", None),
            ("grep a\\;", None),
        ] {
            let found = operators.map(|word| NotACommand::Operator(word.to_owned()));
            assert_eq!(operator(text), found, "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_have_replaced_is_noticed() {
        for (text, found) in [
            ("echo $HOME", Some(("$HOME", Expansion::Variable))),
            ("echo ${HOME}", Some(("${HOME}", Expansion::Variable))),
            ("echo \"$HOME/x\"", Some(("$HOME/x", Expansion::Variable))),
            ("echo $(date)", Some(("$(date)", Expansion::Command))),
            ("echo `date`", Some(("`date`", Expansion::Command))),
            ("rm /tmp/*.log", Some(("/tmp/*.log", Expansion::Glob))),
            ("rm /tmp/[ab].log", Some(("/tmp/[ab].log", Expansion::Glob))),
            ("ls ~/x", Some(("~/x", Expansion::Home))),
            ("ls ~", Some(("~", Expansion::Home))),
            ("a >/dev/null", Some((">/dev/null", Expansion::Output))),
            ("a 2>/dev/null", Some(("2>/dev/null", Expansion::Output))),
            ("a </dev/null", Some(("</dev/null", Expansion::Input))),
            ("[ -e /x ]", None),
            ("/bin/sh -c \"echo $HOME\"", None),
            ("sh -c \"echo\" $HOME", Some(("$HOME", Expansion::Variable))),
            ("env -c \"$HOME\"", Some(("$HOME", Expansion::Variable))),
            ("ls /x~ '~' ~x [] x]y[", None),
            ("a > b 2>&1", None),
            ("echo '$HOME'", None),
            ("echo \\$HOME", None),
            ("find / -name '*.log'", None),
            ("grep x$ /etc/hosts", None),
            ("test 5 -gt 3", None),
        ] {
            let found = found.map(|(word, expansion)| (word.to_owned(), expansion));
            assert_eq!(expansion(text), found, "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_have_understood_is_noticed() {
        for (text, word) in [
            ("a | b", Some("|")),
            ("a && b", Some("&&")),
            ("a 2>&1", Some("2>&1")),
            ("a >/dev/null", Some(">/dev/null")),
            ("a; b", Some("a;")),
            ("echo $HOME", Some("$HOME")),
            ("echo $(date)", Some("$(date)")),
            ("echo `date`", Some("`date`")),
            ("FOO=1 make", Some("FOO=1")),
            ("cd /srv", Some("cd")),
            ("make FOO=1", None),
            ("grep 'x$' /etc/hosts", None),
            ("test -f /x", None),
            ("sh -c 'a | b > $c; d'", None),
            ("echo 5$", None),
        ] {
            assert_eq!(meant_for_a_shell(&split(text).unwrap()), word, "{text}");
        }
    }
}
