//! What people read is plain English: phrases of a private dialect do not come back.
//!
//! Five sources are read: Markdown outside of code, comments, string literals of the program, and the names of tests. The first table
//! bans phrases, each with the words to write instead. The second counts habits that make a text hard to read when they pile up. Both
//! have a budget for each source, so that a module can be rewritten at a time: a budget is lowered with each of them and never raised.

use std::{fmt, fs, path::Path, sync::LazyLock};

use regex::Regex;

/// Phrases and what to write instead. Words in backticks are code and do not count.
const BANNED: &[(&str, &str)] = &[
    (r"(is|are|was|were|be|been) (told|said)\b", "ccm reports, prints, warns, logs"),
    (r"(tells|says so|said to)\b", "reports, prints, names, specifies"),
    (r"(is|are|was|were|be) looked at\b|looks? again\b", "ccm inspects, checks again"),
    (r"cannot (tell|be told|be had)\b", "cannot determine, not available"),
    (r"(somebody|nobody|everybody|anybody)\b", "another user, no process, all users, any user"),
    (r"(whoever|strangers?)\b", "the user who ..., untrusted user"),
    (r"(is|are|was|were) asked\b", "ccm queries, runs, requests, prompts"),
    (r"judged?\b|judges\b", "validate, check, evaluate"),
    (
        r"(comes?|came) to nothing\b|what (came|comes) of\b|becomes of\b|became of\b",
        "result of, has no effect",
    ),
    (r"as it should be\b|as they should be\b", "in the desired state, up to date"),
    (r"in (its|their) turn\b|turn (comes|has come)\b", "when ccm reaches the resource, at run time"),
    (r"(at|with) its place\b", "position, line and column"),
    (r"(behind|beside|besides)\b", "after, in; next to, in addition to"),
    (r"in force\b", "current"),
    (r"in hand\b", "in progress"),
    (r"goes over\b|go over\b", "overrides, takes precedence over"),
    (r"(owed|owes|owe)\b", "pending refresh"),
    (r"(is|are|was|were) ended\b", "terminates, kills"),
    (r"taken for\b|takes it that\b", "treated as, assumes"),
    (r"(foretold|foresees?|foreseen)\b", "predicted"),
    (r"written down\b|struck out\b", "recorded, cleared"),
    (r"passed over\b|passes over\b", "skipped, ignores"),
    (r"worked out\b|works out\b", "evaluated"),
    (r"(mends?|mended|shall)\b", "fix, must"),
    (r"no more\b|any more\b|anymore\b", "no longer, not again"),
    (r"(is|are) no (good|link|file|path|map|list|reason|mistake|resource|manifest)\b", "is not a ..."),
    (r"anew\b", "again"),
    (r"also where\b|but for\b", "including, except"),
    (r"as a whole\b|not at all\b", "atomically, completely"),
    (r"in clear\b|set-id\b|several names\b|line ends\b", "in plain text, setuid, hard links, line endings"),
    (r"mistakes?\b", "error"),
    (r"search path\b", "`PATH`"),
    (r"folders?\b", "directory"),
    (r"unpack(s|ed|ing)?\b", "extract"),
    (r"first group\b|other groups\b", "primary group, supplementary groups"),
    (r"(is|are) well\b|how well\b", "healthy, health"),
    (r"the very\b", "the same, exactly the"),
    (
        r"(colours?|licences?|behaviours?|recognis\w+|initialis\w+|honour\w*|favour\w*|catalogue)\b",
        "US spelling",
    ),
    (r"suits?\b", "is appropriate for"),
    (r"fights?\b", "flapping"),
    (r"tampered\b", "modified since extraction"),
    (r"child manifests?\b|manifests? inside\b", "included manifest"),
];

/// Habits that are allowed with care.
const CAREFUL: &[(&str, &str)] =
    &[(r"may\b", "can; \"may\" only for permission, \"might\" for possibility"), (r"what\b", "a noun")];

/// Phrases that stay although a pattern matches: quotations of other programs and words of the contract.
const ALLOWED: &[&str] = &[
    // The seeds' messages and the property names of other tools.
    "what-if",
];

/// Longest sentence that does not count against the budget.
const LONGEST: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Markdown,
    Comments,
    TestComments,
    Messages,
    TestNames,
}

/// How many matches each source may still have: of banned phrases, and of habits.
const BUDGETS: &[(Source, usize, usize)] = &[
    (Source::Markdown, 134, 200),
    (Source::Comments, 1110, 1820),
    (Source::TestComments, 380, 454),
    (Source::Messages, 200, 231),
    (Source::TestNames, 445, 422),
];

/// Text that people read, with its position.
struct Passage {
    source: Source,
    file: String,
    line: usize,
    text: String,
}

/// A match of a pattern.
struct Finding<'p> {
    passage: &'p Passage,
    phrase: String,
    instead: &'static str,
}

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Passage { file, line, .. } = self.passage;
        write!(f, "{file}:{line}: `{}`: write: {}", self.phrase, self.instead)
    }
}

#[test]
fn texts_avoid_banned_phrases() {
    check("banned phrases", &banned(passages().iter()), |(_, banned, _)| *banned);
}

#[test]
fn texts_use_hard_to_read_habits_sparingly() {
    check("habits", &habits(passages().iter()), |(_, _, habits)| *habits);
}

#[test]
fn table_finds_its_phrases_and_leaves_code_alone() {
    let of = |text: &str| -> Vec<Passage> {
        vec![Passage { source: Source::Markdown, file: "page.md".to_owned(), line: 1, text: text.to_owned() }]
    };
    let count = |text: &str| banned(of(text).iter()).len();
    assert_eq!(count("The file is told to nobody."), 2);
    assert_eq!(count("ccm prints the file; `is told` is code."), 0);
    assert_eq!(habits(of("You may see what happens.").iter()).len(), 2);
    let long = format!("{}.", vec!["word"; LONGEST + 1].join(" "));
    assert_eq!(habits(of(&long).iter()).len(), 1);
    assert_eq!(habits(of("One; two; three.").iter()).len(), 1);
}

#[test]
fn reader_of_rust_separates_comments_from_strings() {
    let code = "// one\nlet a = \"two // no\"; /// three\nlet b = r#\"four \"quoted\"\"#; let c = '\"'; let l: &'a str;\n";
    let (comments, strings) = split_rust(code);
    let texts =
        |parts: &[(usize, String)]| parts.iter().map(|(_, text)| text.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(&comments), ["one", "three"]);
    assert_eq!(texts(&strings), ["two // no", "four \"quoted\""]);
}

/// Fails if a source has more findings than its budget, and shows some of them.
fn check(subject: &str, found: &[Finding], budget: impl Fn(&(Source, usize, usize)) -> usize) {
    let mut over = Vec::new();
    for row @ (source, ..) in BUDGETS {
        let of_source: Vec<&Finding> =
            found.iter().filter(|finding| finding.passage.source == *source).collect();
        let budget = budget(row);
        if of_source.len() > budget {
            let shown: Vec<String> = of_source.iter().take(400).map(ToString::to_string).collect();
            let (found, shown) = (of_source.len(), shown.join("\n"));
            over.push(format!("{source:?}: {found} {subject}, the budget is {budget}\n{shown}"));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

fn banned<'p>(passages: impl Iterator<Item = &'p Passage>) -> Vec<Finding<'p>> {
    static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| compiled(BANNED));
    passages.flat_map(|passage| matches(passage, &PATTERNS)).collect()
}

fn habits<'p>(passages: impl Iterator<Item = &'p Passage>) -> Vec<Finding<'p>> {
    static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| compiled(CAREFUL));
    let mut found = Vec::new();
    for passage in passages {
        found.extend(matches(passage, &PATTERNS));
        if passage.text.matches(';').count() > 1 && passage.source == Source::Markdown {
            found.push(Finding { passage, phrase: ";".to_owned(), instead: "one semicolon in a paragraph" });
        }
        for sentence in passage.text.split_inclusive(['.', ':', '?', '!']) {
            if sentence.split_whitespace().count() > LONGEST {
                let phrase = sentence.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
                found.push(Finding { passage, phrase, instead: "a shorter sentence" });
            }
        }
    }
    found
}

fn compiled(table: &'static [(&str, &'static str)]) -> Vec<(Regex, &'static str)> {
    table
        .iter()
        .map(|(pattern, instead)| (Regex::new(&format!(r"(?i)\b({pattern})")).unwrap(), *instead))
        .collect()
}

fn matches<'p>(passage: &'p Passage, patterns: &[(Regex, &'static str)]) -> Vec<Finding<'p>> {
    static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`[^`]*`|\]\([^)]*\)|https?://\S+").unwrap());
    let text = CODE.replace_all(&passage.text, "`");
    let text = ALLOWED.iter().fold(text.into_owned(), |text, allowed| text.replace(allowed, ""));
    let finding = |(pattern, instead): &(Regex, &'static str)| {
        let found: Vec<String> = pattern.find_iter(&text).map(|found| found.as_str().to_owned()).collect();
        found.into_iter().map(|phrase| Finding { passage, phrase, instead }).collect::<Vec<_>>()
    };
    patterns.iter().flat_map(finding).collect()
}

/// Reads all sources of the project.
fn passages() -> Vec<Passage> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for start in ["src", "crates", "tests", "benches", "fuzz", "docs", "packaging", "examples"] {
        collect(&root.join(start), &mut files);
    }
    for page in ["README.md", "CHANGELOG.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        files.push(root.join(page).to_string_lossy().into_owned());
    }
    let mut passages = Vec::new();
    for path in files {
        let name = path.trim_start_matches(&*root.to_string_lossy()).trim_start_matches('/').to_owned();
        // This table names what it bans.
        if name == "tests/english.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let of = |source, (line, text)| Passage { source, file: name.clone(), line, text };
        if has_extension(&name, &["md"]) {
            passages.extend(paragraphs(&text).into_iter().map(|part| of(Source::Markdown, part)));
            continue;
        }
        let is_test = !name.starts_with("src") && !name.starts_with("crates")
            || name.split('/').any(|part| part == "tests" || part == "tests.rs");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let (comments, strings) = split_rust(code);
        let comment = if is_test { Source::TestComments } else { Source::Comments };
        passages.extend(joined(comments).into_iter().map(|part| of(comment, part)));
        if !is_test {
            passages.extend(strings.into_iter().map(|part| of(Source::Messages, part)));
        }
        passages.extend(test_names(&text).into_iter().map(|part| of(Source::TestNames, part)));
    }
    passages
}

fn has_extension(name: &str, wanted: &[&str]) -> bool {
    Path::new(name).extension().is_some_and(|extension| wanted.iter().any(|wanted| extension == *wanted))
}

fn collect(path: &Path, files: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() && name != "target" {
            collect(&path, files);
        } else if has_extension(&name, &["rs", "md"]) {
            files.push(path.to_string_lossy().into_owned());
        }
    }
}

/// Returns the paragraphs of a page outside of code blocks, each with its first line. A list item and a table row are paragraphs.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_code, mut open): (Vec<(usize, String)>, _, Option<(usize, String)>) =
        (Vec::new(), false, None);
    for (at, line) in page.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") {
            in_code = !in_code;
        }
        let is_break = in_code
            || text.is_empty()
            || text.starts_with("```")
            || line.starts_with("    ") && open.is_none();
        let is_start =
            text.starts_with(['-', '|', '#', '>']) || text.starts_with(|c: char| c.is_ascii_digit());
        if is_break || is_start {
            found.extend(open.take());
        }
        if !is_break {
            match &mut open {
                Some((_, paragraph)) => paragraph.extend([" ", text]),
                None => open = Some((at + 1, text.to_owned())),
            }
        }
    }
    found.extend(open);
    found
}

/// Returns comments and string literals of Rust code, each with its line.
fn split_rust(code: &str) -> (Vec<(usize, String)>, Vec<(usize, String)>) {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r##"(?s)//[/!]?(?<comment>[^\n]*)|r#"(?<hashed>.*?)"#|\br"(?<raw>[^"]*)"|'(\\.|[^\\'])'|"(?<string>(\\.|[^"\\])*)""##)
            .unwrap()
    });
    let (mut comments, mut strings) = (Vec::new(), Vec::new());
    let (mut line, mut counted) = (1, 0);
    for token in TOKEN.captures_iter(code) {
        let start = token.get(0).unwrap().start();
        line += code[counted..start].matches('\n').count();
        counted = start;
        if let Some(comment) = token.name("comment") {
            comments.push((line, comment.as_str().to_owned()));
        } else if let Some(text) = ["hashed", "raw", "string"].iter().find_map(|name| token.name(name)) {
            strings.push((line, text.as_str().replace("\\\n", " ")));
        }
    }
    (comments, strings)
}

/// Joins comments on consecutive lines.
fn joined(comments: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, usize, String)> = Vec::new();
    for (line, text) in comments {
        match all.last_mut() {
            Some((_, last, paragraph)) if *last + 1 == line && !text.trim().is_empty() => {
                *last = line;
                *paragraph += &text;
            }
            _ => all.push((line, line, text)),
        }
    }
    all.into_iter().map(|(first, _, text)| (first, text)).collect()
}

fn test_names(code: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = code.lines().collect();
    let is_test = |at: usize| lines[..at].iter().rev().take(3).any(|line| line.trim() == "#[test]");
    let name = |line: &str| Some(line.trim().strip_prefix("fn ")?.split('(').next()?.replace('_', " "));
    (0..lines.len()).filter(|at| is_test(*at)).filter_map(|at| Some((at + 1, name(lines[at])?))).collect()
}
