//! Ranges in host names: `web[01:20]`, `db-[a:f]`, `node[1:9:2]`.

/// How many hosts one line can name.
const MOST: usize = 1_000_000;

/// Returns the names that a pattern with ranges stands for, in order.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some(open) = rest.find('[') {
        let close = rest[open..].find(']').map(|at| open + at);
        let close = close.ok_or_else(|| format!("`{pattern}` has a `[` without `]`"))?;
        let values = values(&rest[open + 1..close]).map_err(|reason| format!("`{pattern}`: {reason}"))?;
        if names.len().saturating_mul(values.len()) > MOST {
            return Err(format!("`{pattern}` names more than {MOST} hosts"));
        }
        let head = &rest[..open];
        names = names
            .iter()
            .flat_map(|name| values.iter().map(move |value| format!("{name}{head}{value}")))
            .collect();
        rest = &rest[close + 1..];
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

fn values(range: &str) -> Result<Vec<String>, String> {
    let bounds: Vec<_> = range.split(':').collect();
    let (begin, end, step) = match bounds[..] {
        [begin, end] => (begin, end, "1"),
        [begin, end, step] => (begin, end, step),
        _ => return Err("a range is `[BEGIN:END]` or `[BEGIN:END:STEP]`".to_owned()),
    };
    let begin = if begin.is_empty() { "0" } else { begin };
    if end.is_empty() {
        return Err("the range has no end".to_owned());
    }
    let step = step.parse::<usize>().ok().filter(|&step| step > 0);
    let step = step.ok_or("the step of a range is a number from 1")?;
    let width = if begin.len() > 1 && begin.starts_with('0') { begin.len() } else { 0 };
    if width > 0 && width != end.len() {
        return Err(format!("`{begin}` and `{end}` must have the same number of digits"));
    }
    if let (Some(first), Some(last)) = (letter(begin), letter(end)) {
        if first > last {
            return Err(format!("`{begin}` comes after `{end}`"));
        }
        return Ok((first..=last).step_by(step).map(|at| char::from(LETTERS[at]).to_string()).collect());
    }
    let number =
        |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number or a letter"));
    let (first, last) = (number(begin)?, number(end)?);
    if (last.saturating_sub(first)) / step as u64 > MOST as u64 {
        return Err(format!("the range names more than {MOST} hosts"));
    }
    Ok((first..=last).step_by(step).map(|value| format!("{value:0width$}")).collect())
}

/// The order of letters in a range: `[x:C]` goes from `x` over `z` and `A` to `C`.
const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn letter(text: &str) -> Option<usize> {
    let [byte] = text.as_bytes() else { return None };
    LETTERS.iter().position(|letter| letter == byte)
}
