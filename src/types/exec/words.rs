//! A command line without a shell: words, and signs that a shell was expected.

use thiserror::Error;

/// Why a text is not a command line.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum NotACommand {
    #[error("has a quotation mark that is not closed")]
    Unclosed,
    #[error("names no program")]
    Empty,
}

/// The words of a command line, by the quoting rules of the shell; at least one, the program.
pub(super) fn split(text: &str) -> Result<Vec<String>, NotACommand> {
    let words = shell_words::split(text).map_err(|_| NotACommand::Unclosed)?;
    if words.first().is_none_or(String::is_empty) { Err(NotACommand::Empty) } else { Ok(words) }
}

/// What only a shell could have run: words that stand between or around commands.
const OPERATORS: [&str; 12] = ["|", "||", "|&", "&&", "&", ";", ">", ">>", "<", "<<", "2>", "2>&1"];

/// Commands that a shell carries out itself, where no program of that name exists.
const BUILTINS: [&str; 14] = [
    ".", ":", "cd", "eval", "exec", "exit", "export", "for", "if", "set", "source", "ulimit", "unset",
    "while",
];

/// The word, if there is one, that looks as if a shell was to read it. Whether it was quoted is not known any more, so
/// this only explains a failure.
pub(super) fn meant_for_a_shell(words: &[String]) -> Option<&str> {
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
