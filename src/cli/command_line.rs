//! The command line as the history records it, without secrets.

/// Options whose values are data of the user: only the keys are recorded.
const KEYED: [&str; 3] = ["--data", "--fact", "-D"];

/// Returns the words of a command line without secrets: of data and facts only the keys, URLs without credentials, and of
/// `ccm ensure` only the names of options.
pub(super) fn without_secrets(words: Vec<String>) -> Vec<String> {
    let is_ensure = words.get(1).is_some_and(|word| word == "ensure");
    let mut known = Vec::new();
    let mut is_value = false;
    for word in words {
        if is_ensure {
            // The value of an option can be a secret, such as a password or the content of a file.
            if word.starts_with('-') {
                is_value = !word.contains('=');
                known.push(word.split('=').next().unwrap_or_default().to_owned());
            } else if !std::mem::take(&mut is_value) {
                known.push(without_credentials(&word));
            }
            continue;
        }
        if std::mem::take(&mut is_value) {
            known.push(key(&word));
        } else if KEYED.contains(&word.as_str()) {
            is_value = true;
            known.push(word);
        } else if let Some((option, value)) =
            word.split_once('=').filter(|(option, _)| KEYED.contains(option))
        {
            known.push(format!("{option}={}", key(value)));
        } else {
            known.push(without_credentials(&word));
        }
    }
    known
}

fn key(pair: &str) -> String {
    pair.split('=').next().unwrap_or_default().to_owned()
}

/// Returns a word without user and password of a URL in it, and without its query.
fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{}", path.split('?').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        for (words, expected) in [
            ("ccm apply site.yaml --data a=S3CRET --noop", "ccm apply site.yaml --data a --noop"),
            ("ccm apply --data=a=S3CRET --fact b=S3CRET x", "ccm apply --data=a --fact b x"),
            ("ccm apply https://ann:S3CRET@host/a.tgz?t=S3CRET", "ccm apply https://host/a.tgz"),
            (
                "ccm ensure user ann --password S3CRET --shell=S3CRET",
                "ccm ensure user ann --password --shell",
            ),
        ] {
            let words = words.split(' ').map(str::to_owned).collect();
            assert_eq!(without_secrets(words).join(" "), expected);
        }
    }
}
