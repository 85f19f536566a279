//! Checksum files.

use crate::vocabulary::Checksum;

/// Finds the checksum of a file in the output of `sha256sum`, `shasum` or BSD's `sha256`, or a single checksum.
pub(super) fn find(text: &str, names: &[&str]) -> Option<Checksum> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let listed = names.iter().find_map(|name| lines().find_map(|line| of_line(line, name)));
    listed.or_else(|| {
        let mut lines = lines();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        Checksum::from_digits(only)
    })
}

fn of_line(line: &str, name: &str) -> Option<Checksum> {
    // `SHA256 (NAME) = DIGITS`
    if let Some((before, digits)) = line.split_once(") = ") {
        let (_, listed) = before.split_once(" (")?;
        return is_name(listed, name).then(|| Checksum::from_digits(digits.trim())).flatten();
    }
    // `DIGITS  NAME`, with an asterisk before the name of a file read in binary mode
    let (digits, listed) = line.split_once(char::is_whitespace)?;
    let listed = listed.trim_start();
    let listed = listed.strip_prefix('*').unwrap_or(listed);
    is_name(listed, name).then(|| Checksum::from_digits(digits)).flatten()
}

/// Returns whether a listed name, which can be a path, denotes this file.
fn is_name(listed: &str, name: &str) -> bool {
    listed.rsplit('/').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(letter: char) -> String {
        letter.to_string().repeat(64)
    }

    #[test]
    fn every_usual_form_is_read() {
        let (a, b) = (digits('a'), digits('b'));
        for text in [
            format!("{b}  other.zip\n{a}  app.zip\n"),
            format!("# list\n\n{b} *other.zip\r\n{a} *./dist/app.zip\r\n"),
            format!("SHA256 (other.zip) = {b}\nSHA256 (app.zip) = {a}\n"),
            format!("{}\tapp.zip", a.to_uppercase()),
            format!("{a}\n"),
        ] {
            assert_eq!(find(&text, &["app.zip"]).map(|found| found.to_string()), Some(a.clone()), "{text}");
        }
        let long = format!("{}  app.zip", "c".repeat(128));
        assert!(find(&long, &["app.zip"]).unwrap().to_string().starts_with("sha512:"));
        assert_eq!(find(&format!("{a}  x\n{b}  y"), &["z", "y"]).unwrap().to_string(), b);
    }

    #[test]
    fn what_is_not_listed_is_not_found() {
        let a = digits('a');
        for text in [
            String::new(),
            format!("{a}  other.zip"),
            format!("{a}  app.zip.sig"),
            format!("{a}\n{a}\n"),
            "short  app.zip".to_owned(),
            "<html>".to_owned(),
        ] {
            assert_eq!(find(&text, &["app.zip"]), None, "{text}");
        }
    }
}
