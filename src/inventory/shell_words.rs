//! The words of a host line, split as Python's `shlex` does.

/// Splits a line at white space. Quotes and backslashes work as in a shell, `#` begins a comment, also within a word.
pub(super) fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '#' => break,
            '\'' => quoted(&mut characters, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut characters, '"', word.get_or_insert_default())?,
            '\\' => {
                let next = characters.next().ok_or("nothing follows the last backslash")?;
                word.get_or_insert_default().push(next);
            }
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(characters: &mut std::str::Chars, quote: char, word: &mut String) -> Result<(), &'static str> {
    loop {
        match characters.next().ok_or("a quote is never closed")? {
            character if character == quote => return Ok(()),
            '\\' if quote == '"' => match characters.next().ok_or("a quote is never closed")? {
                escaped @ ('"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            character => word.push(character),
        }
    }
}
