//! What streams and subjects can be called.

/// Why a text is not a name that NATS takes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error(
        "\"{0}\" is not the name of a stream: it has no white space, `.`, `*`, `>`, `/` and `\\`, and is not empty"
    )]
    Stream(String),
    #[error(
        "\"{0}\" is not a subject to publish to: it is made of words with `.` between them, without white space, `*` and `>`"
    )]
    Subject(String),
}

/// Fails unless a stream can have this name.
pub(crate) fn check_stream(text: &str) -> Result<(), NameError> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !".*>/\\".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        Ok(())
    } else {
        Err(NameError::Stream(text.to_owned()))
    }
}

/// Fails unless messages can be published to this subject.
pub(crate) fn check_subject(text: &str) -> Result<(), NameError> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"*>".contains(c);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(is_plain);
    if text.split('.').all(is_word) { Ok(()) } else { Err(NameError::Subject(text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_subjects_have_names_that_a_server_takes() {
        for good in ["REGISTRATION", "a-b_c", "stra\u{df}e"] {
            assert_eq!(check_stream(good), Ok(()));
            assert_eq!(check_subject(good), Ok(()));
        }
        assert_eq!(check_subject("ccm.events.web-1"), Ok(()));
        for bad in ["", "a b", "a.b", "a*", ">", "a/b", "a\\b", "a\tb", "a\0"] {
            assert_eq!(check_stream(bad), Err(NameError::Stream(bad.to_owned())));
        }
        for bad in ["", ".", ".a", "a.", "a..b", "a b", "ccm.>", "ccm.*.x", "a\nb", "a\r"] {
            assert_eq!(check_subject(bad), Err(NameError::Subject(bad.to_owned())));
        }
    }
}
