//! Limits on the memory and the stack that a template can use.
//!
//! The engine counts steps, but it has no limit on the size of a value. Before it reads a template, [`guarded`] inserts calls into
//! the text at each place where a value can grow: before an operator and a filter, around a literal list, after an assignment, and at
//! the start of a loop or macro. The calls come back to [`Meter`], which fails the template. Nothing is inserted between a tag and
//! the line break after it, so the output stays the same; [`Guarded::original`] translates positions of errors.

use std::sync::{Arc, Mutex, PoisonError};

use minijinja::{
    Environment, Error, ErrorKind, State, filters,
    value::{Rest, Value, ValueKind, ValueOrKwargs},
};

use super::{Delimiters, functions::failed, values::is_lazy};
use crate::host::memory;

/// How long one text can be.
const MOST_TEXT: usize = 32 << 20;
/// How many elements one list can have, including the lists in it.
const MOST_ELEMENTS: usize = 1_000_000;
/// How deeply lists can contain lists.
const DEEPEST: usize = 100;
/// How many operators can be applied to the same operand, and how many alternatives an `if` can have: the engine uses stack for
/// each.
const MOST_OPERATORS: usize = 400;
/// How many tokens a template can have: the engine keeps a node for each.
const MOST_TOKENS: usize = 500_000;
/// The memory of the program is read each time that a template has made values of so many bytes.
const INTERVAL: usize = 4 << 20;
/// The width and precision of a format.
const WIDEST: usize = 10_000;

/// The filter that measures a value and returns it.
const MEASURE: &str = "__measured";
/// The function that counts the text of a loop or macro.
const COUNT: &str = "__counted";

/// A template with calls of the meter.
pub(super) struct Guarded {
    pub(super) text: String,
    /// Where the inserted texts begin in the text, and their lengths.
    inserted: Vec<(usize, usize)>,
}

impl Guarded {
    /// Returns the position in the original text.
    pub(super) fn original(&self, at: usize) -> usize {
        let before = self.inserted.iter().take_while(|(start, _)| *start < at);
        let inserted: usize = before.map(|(start, length)| (*length).min(at - start)).sum();
        at - inserted
    }
}

/// Why a template cannot be guarded, and where.
pub(super) struct Refused {
    pub(super) at: usize,
    pub(super) message: String,
}

/// Inserts calls of the meter. Returns `None` if the text is not a template that the engine can read.
pub(super) fn guarded(text: &str, delimiters: Delimiters) -> Result<Option<Guarded>, Refused> {
    if text.len() > MOST_TEXT {
        return Err(Refused { at: 0, message: format!("the template is longer than {MOST_TEXT} bytes") });
    }
    let mut scan = Scan { text, delimiters, insertions: Vec::new(), tokens: 0, alternatives: 0 };
    scan.insert(0, format!("{{% if {COUNT}({}) %}}{{% endif %}}", text.len()));
    if !scan.run()? {
        return Ok(None);
    }
    // Insertions at one position stay in the order in which they were found.
    scan.insertions.sort_by_key(|(at, _)| *at);
    let (mut out, mut inserted, mut done) = (String::new(), Vec::new(), 0);
    for (at, insertion) in scan.insertions {
        out.push_str(&text[done..at]);
        inserted.push((out.len(), insertion.len()));
        out.push_str(&insertion);
        done = at;
    }
    out.push_str(&text[done..]);
    Ok(Some(Guarded { text: out, inserted }))
}

struct Scan<'t> {
    text: &'t str,
    delimiters: Delimiters<'t>,
    insertions: Vec<(usize, String)>,
    tokens: usize,
    alternatives: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Literal,
    Mark(char),
}

/// Words after which an operand begins.
const OPERATORS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "elif", "else"];

impl Token<'_> {
    fn ends_operand(self) -> bool {
        match self {
            Self::Word(word) => !OPERATORS.contains(&word),
            Self::Literal => true,
            Self::Mark(mark) => matches!(mark, ')' | ']' | '}'),
        }
    }
}

/// An open bracket.
struct Level {
    /// Whether it is a literal, which is measured.
    is_literal: bool,
    /// How many operators the expression around it has.
    above: usize,
}

impl Scan<'_> {
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.insertions.push((at, text.into()));
    }

    /// Scans the whole text. Returns whether every tag has an end.
    fn run(&mut self) -> Result<bool, Refused> {
        let mut at = 0;
        loop {
            let rest = &self.text[at..];
            let starts = [self.delimiters.left, "{%", "{#"].map(|mark| rest.find(mark));
            let Some(next) = starts.iter().flatten().min().copied() else { return Ok(true) };
            // Of two that begin here, the longer one counts.
            let (kind, length) = [self.delimiters.left, "{%", "{#"]
                .iter()
                .enumerate()
                .filter(|(kind, _)| starts[*kind] == Some(next))
                .map(|(kind, mark)| (kind, mark.len()))
                .max_by_key(|(_, length)| *length)
                .unwrap_or_default();
            let start = at + next + length;
            let end = match kind {
                0 => self.tag(start, self.delimiters.right, false)?,
                1 => self.tag(start, "%}", true)?,
                _ => self.text[start..].find("#}").map(|found| start + found + 2),
            };
            match end {
                Some(end) => at = end,
                None => return Ok(false),
            }
        }
    }

    /// Scans a tag from behind its opener, and returns where it ends.
    fn tag(&mut self, start: usize, closer: &str, is_block: bool) -> Result<Option<usize>, Refused> {
        let text = self.text;
        let mut at = start;
        if text[at..].starts_with(['-', '+']) {
            at += 1;
        }
        let mut name = None;
        let mut levels: Vec<Level> = Vec::new();
        let (mut previous, mut operators) = (Token::Mark('('), 0_usize);
        // Targets of loops and assignments are no expressions.
        let mut is_target = false;
        let mut is_assigned = false;
        loop {
            at += text[at..].len() - text[at..].trim_start().len();
            let rest = &text[at..];
            let signed = rest.strip_prefix(['-', '+']).filter(|rest| rest.starts_with(closer));
            if levels.is_empty() && (signed.is_some() || rest.starts_with(closer)) {
                if is_assigned {
                    self.insert(at, format!(")|{MEASURE} "));
                }
                let end = at + closer.len() + usize::from(signed.is_some());
                if is_block {
                    return Ok(self.block_end(name.unwrap_or_default(), end, &rest[..end - at]));
                }
                return Ok(Some(end));
            }
            let Some((token, length)) = token(rest) else { return Ok(None) };
            self.tokens += 1;
            if self.tokens > MOST_TOKENS {
                let message = format!("the template has more than {MOST_TOKENS} names, values and operators");
                return Err(Refused { at, message });
            }
            if is_block && name.is_none() {
                let Token::Word(word) = token else { return Ok(None) };
                name = Some(word);
                is_target = matches!(word, "for" | "set");
                // A bracket after these words is no literal.
                let has_names = matches!(word, "for" | "set" | "call");
                (previous, at) = (if has_names { Token::Literal } else { Token::Mark('(') }, at + length);
                if word == "elif" {
                    self.alternatives += 1;
                    if self.alternatives > MOST_OPERATORS {
                        let message = format!("more than {MOST_OPERATORS} `elif` in one template");
                        return Err(Refused { at, message });
                    }
                }
                continue;
            }
            let is_operand = previous.ends_operand();
            match token {
                Token::Mark(',' | ':') => {
                    operators = levels.last().map_or(0, |level| level.above);
                }
                Token::Mark('(' | '[' | '{') => {
                    let is_literal = !is_target && !is_operand;
                    if is_literal {
                        self.insert(at, "(");
                    }
                    operators += usize::from(is_operand);
                    levels.push(Level { is_literal, above: operators });
                }
                Token::Mark(')' | ']' | '}') => {
                    let Some(level) = levels.pop() else { return Ok(None) };
                    operators = level.above;
                    if level.is_literal {
                        self.insert(at + length, format!("|{MEASURE})"));
                    }
                }
                Token::Mark('=') if is_target && levels.is_empty() && name == Some("set") => {
                    (is_target, is_assigned) = (false, true);
                    self.insert(at + length, "(");
                }
                Token::Word("in") if is_target && levels.is_empty() && name == Some("for") => {
                    is_target = false;
                }
                Token::Mark('~' | '+' | '*' | '|') => {
                    if is_operand && !is_target {
                        self.insert(at, format!("|{MEASURE} "));
                    }
                    operators += 1;
                }
                Token::Word(word) if OPERATORS.contains(&word) => operators += 1,
                Token::Mark(_) => operators += 1,
                Token::Word(_) | Token::Literal => {}
            }
            if operators > MOST_OPERATORS {
                let message = format!("the expression has more than {MOST_OPERATORS} operators in a row");
                return Err(Refused { at, message });
            }
            (previous, at) = (token, at + length);
        }
    }

    /// Goes on after a block tag that ends with `closer`.
    fn block_end(&mut self, name: &str, end: usize, closer: &str) -> Option<usize> {
        match name {
            "raw" => raw_end(&self.text[end..]).map(|length| end + length),
            "for" | "macro" | "call" | "block" => {
                // The last inserted tag trims as the tag before it does.
                let call = format!("{{% if {COUNT}({}) %}}{{% endif {closer}", self.text.len());
                self.insert(end, call);
                Some(end)
            }
            _ => Some(end),
        }
    }
}

/// Returns the length of raw text and of the tag that ends it.
fn raw_end(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text[at..].find("{%")? + 2;
        let tag = text[at..].trim_start_matches(['-', '+']).trim_start();
        if let Some(rest) = tag.strip_prefix("endraw") {
            let closed = rest.trim_start();
            let closed = closed.strip_prefix(['-', '+']).unwrap_or(closed);
            if let Some(rest) = closed.strip_prefix("%}") {
                return Some(text.len() - rest.len());
            }
        }
    }
}

/// Returns the first token of a text and its length.
fn token(text: &str) -> Option<(Token<'_>, usize)> {
    let first = text.chars().next()?;
    if first == '"' || first == '\'' {
        let mut is_escaped = false;
        let end = text.char_indices().skip(1).find(|(_, letter)| {
            let is_end = *letter == first && !is_escaped;
            is_escaped = *letter == '\\' && !is_escaped;
            is_end
        });
        return end.map(|(at, _)| (Token::Literal, at + 1));
    }
    let word = |is_part: fn(char) -> bool| text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    if first.is_ascii_digit() {
        return Some((Token::Literal, word(|letter| letter.is_alphanumeric() || letter == '_')));
    }
    if first.is_alphabetic() || first == '_' {
        let length = word(|letter| letter.is_alphanumeric() || letter == '_');
        return Some((Token::Word(&text[..length]), length));
    }
    // Marks of two characters are two operators: only a few are counted twice.
    let length = if text.starts_with("==") || text.starts_with("**") { 2 } else { first.len_utf8() };
    let mark = if text.starts_with("==") { '<' } else { first };
    Some((Token::Mark(mark), length))
}

/// Counts the memory of one rendering.
#[derive(Clone)]
pub(super) struct Meter(Arc<Mutex<Count>>);

struct Count {
    /// How much the program can grow.
    limit: u64,
    /// The memory of the program when the rendering began.
    begun: u64,
    /// How many bytes were made since the memory was last read.
    made: usize,
    /// How many elements can still be measured.
    steps: u64,
}

impl Meter {
    /// Begins to count. The program can grow by so many bytes.
    pub(super) fn new(limit: u64, steps: u64) -> Self {
        let begun = memory::resident().unwrap_or_default();
        Self(Arc::new(Mutex::new(Count { limit, begun, made: 0, steps })))
    }

    /// Counts bytes that a template makes.
    pub(super) fn count(&self, bytes: usize) -> Result<(), Error> {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        count.made = count.made.saturating_add(bytes);
        if count.made < INTERVAL {
            return Ok(());
        }
        count.made = 0;
        let grown = memory::resident().unwrap_or_default().saturating_sub(count.begun);
        if grown > count.limit {
            let limit = count.limit;
            return Err(failed(format!("the template needs more than {limit} bytes of memory")));
        }
        Ok(())
    }

    /// Fails if a value is too large, and counts it.
    fn measure(&self, value: &Value) -> Result<(), Error> {
        let (mut size, mut elements) = (0, 0);
        weigh(value, 0, &mut size, &mut elements)?;
        {
            let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let left = count.steps.checked_sub(elements as u64);
            count.steps = left.ok_or_else(|| Error::from(ErrorKind::OutOfFuel))?;
        }
        self.count(size + elements * size_of::<Value>() + 64)
    }

    fn check_text(&self, length: Option<usize>) -> Result<(), Error> {
        match length.filter(|length| *length <= MOST_TEXT) {
            Some(length) => self.count(length),
            None => Err(failed(format!("the template makes a text of more than {MOST_TEXT} bytes"))),
        }
    }

    fn check_elements(&self, count: usize) -> Result<(), Error> {
        if count > MOST_ELEMENTS {
            return Err(failed(format!("the template makes a list of more than {MOST_ELEMENTS} elements")));
        }
        self.count(count * size_of::<Value>())
    }

    /// Adds the calls that [`guarded`] inserts, and limits to filters whose result can be much larger than their arguments.
    pub(super) fn add(&self, environment: &mut Environment) {
        let meter = self.clone();
        environment.add_filter(MEASURE, move |value: Value| meter.measure(&value).map(|()| value));
        let meter = self.clone();
        environment.add_function(COUNT, move |bytes: usize| meter.count(bytes).map(|()| false));
        environment.add_filter("__replace", filters::replace);
        environment.add_filter("__indent", filters::indent);
        environment.add_filter("__join", filters::join);
        environment.add_filter("__split", filters::split);
        environment.add_filter("__lines", filters::lines);
        environment.add_filter("__list", filters::list);
        environment.add_filter("__batch", filters::batch);
        environment.add_filter("__slice", filters::slice);
        environment.add_filter("__format", filters::format);
        environment.add_filter("__chain", filters::chain);
        for own in
            ["replace", "indent", "join", "split", "lines", "list", "batch", "slice", "format", "chain"]
        {
            let meter = self.clone();
            let inner = format!("__{own}");
            environment.add_filter(own, move |state: &mut State, arguments: Rest<ValueOrKwargs>| {
                let arguments = arguments.into_values();
                meter.check_filter(own, &arguments)?;
                state.apply_filter(&inner, &arguments)
            });
        }
    }

    /// Checks how large the result of a filter would be.
    fn check_filter(&self, name: &str, arguments: &[Value]) -> Result<(), Error> {
        let Some((value, rest)) = arguments.split_first() else { return Ok(()) };
        let text = |at: usize| rest.get(at).and_then(Value::as_str);
        let given = value.as_str();
        let number = |name: &str| {
            let named = rest.last().and_then(|last| last.get_attr(name).ok());
            let found = rest.iter().chain(&named).find_map(Value::as_usize);
            found.unwrap_or_default()
        };
        match (name, given) {
            ("replace", Some(given)) => {
                let (Some(from), Some(to)) = (text(0), text(1)) else { return Ok(()) };
                let count = given.matches(from).count();
                self.check_text(count.checked_mul(to.len()).and_then(|more| more.checked_add(given.len())))
            }
            ("indent", Some(given)) => {
                let lines = given.bytes().filter(|byte| *byte == b'\n').count() + 1;
                self.check_text(
                    lines.checked_mul(number("width").max(4)).and_then(|more| more.checked_add(given.len())),
                )
            }
            ("split", Some(given)) => {
                self.check_elements(text(0).map_or(given.len() / 2, |by| given.matches(by).count()) + 1)
            }
            ("lines", Some(given)) => self.check_elements(given.matches('\n').count() + 1),
            ("list" | "batch" | "slice" | "join", Some(given)) => self.check_elements(given.chars().count()),
            ("batch" | "slice", None) => self.check_elements(number("count").max(value.len().unwrap_or(0))),
            ("list", None) => self.check_elements(value.len().unwrap_or(0)),
            ("chain", None) => {
                self.check_elements(arguments.iter().filter_map(Value::len).fold(0, usize::saturating_add))
            }
            ("join", None) => {
                let between = text(0).map_or(0, str::len).checked_mul(value.len().unwrap_or(0));
                self.check_text(between)
            }
            ("format", Some(given)) => {
                let numbers = given.split(|letter: char| !letter.is_ascii_digit());
                let is_wide = |digits: &str| {
                    !digits.is_empty() && digits.parse::<usize>().is_ok_and(|width| width > WIDEST)
                        || digits.len() > 19
                };
                let by_value = given.contains('*')
                    && rest.iter().filter_map(Value::as_usize).any(|width| width > WIDEST);
                if by_value || numbers.into_iter().any(is_wide) {
                    return Err(failed(format!("the format has a width of more than {WIDEST}")));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Adds the bytes and elements of a value, each time that a list contains it: so much it prints.
fn weigh(value: &Value, depth: usize, size: &mut usize, elements: &mut usize) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        *size += text.len();
        if *size > MOST_TEXT {
            return Err(failed(format!("the template makes a text of more than {MOST_TEXT} bytes")));
        }
        return Ok(());
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Map) || is_lazy(value) {
        return Ok(());
    }
    if depth >= DEEPEST {
        return Err(failed(format!("the template nests lists or maps more than {DEEPEST} deep")));
    }
    *elements += value.len().unwrap_or(0);
    if *elements > MOST_ELEMENTS {
        return Err(failed(format!("the template makes a list of more than {MOST_ELEMENTS} elements")));
    }
    let Ok(items) = value.try_iter() else { return Ok(()) };
    for item in items {
        if value.kind() == ValueKind::Map {
            let Ok(member) = value.get_item(&item) else { continue };
            weigh(&member, depth + 1, size, elements)?;
        }
        weigh(&item, depth + 1, size, elements)?;
    }
    Ok(())
}
