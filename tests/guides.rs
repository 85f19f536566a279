//! The pages for users are true: what they show is run, and prints what they say.
//!
//! A block with a language and a name (```` ```yaml site.yaml ````) is a file. In a `console` block each line that begins
//! with `$ ` is a command, run by `sh -e` in a folder that holds the page's files, and the lines up to the next one are
//! what it prints. There, `? N` behind the command is its exit code, `[..]` stands for anything within a line and, alone
//! on the last line, for all the rest; lengths of time are not compared. Every block that looks like a manifest is valid,
//! and the schema says so too.
//! A page with the line `<!-- needs: lab -->` is for machines that a test may change: its commands are not run here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use crate::support::{World, finish, has, sh};

const NEEDS_LAB: &str = "<!-- needs: lab -->";

/// A fenced block and where it begins.
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) name: Option<String>,
    pub(crate) text: String,
}

/// A command and what it is said to print.
pub(crate) struct Shown {
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) code: i32,
    pub(crate) output: Vec<String>,
}

pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let (language, name) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
                let name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
                open = Some(Block { line: at + 1, language: language.to_owned(), name, text: String::new() });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.text = format!("{}{line}\n", block.text),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is never closed");
    blocks
}

pub(crate) fn commands(block: &Block) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for (at, line) in block.text.lines().enumerate() {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => {
                let line = block.line + 1 + at;
                shown.push(Shown { line, command: command.to_owned(), code: 0, output: Vec::new() });
            }
            (None, Some(last)) if last.output.is_empty() && last.command.ends_with('\\') => {
                last.command = format!("{}\n{line}", last.command);
            }
            (None, Some(last)) => match line.strip_prefix("? ").filter(|_| last.output.is_empty()) {
                Some(code) => last.code = code.parse().expect("an exit code"),
                None => last.output.push(line.to_owned()),
            },
            (None, None) => panic!("line {}: no command before this", block.line + 1 + at),
        }
    }
    shown
}

/// The line without its lengths of time.
fn timeless(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    for mark in ["runtime=", "resources in ", "resource in "] {
        if let Some((before, after)) = rest.split_once(mark) {
            let end = after.find([' ', ':']).unwrap_or(after.len());
            out.extend([before, mark, "TIME"]);
            rest = &after[end..];
        }
    }
    out + rest
}

/// Whether a line is what was said, in which `[..]` stands for anything.
fn fits(said: &str, line: &str) -> bool {
    let (said, line) = (timeless(said), timeless(line));
    let mut parts = said.split("[..]");
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

pub(crate) fn all_fit(said: &[String], printed: &str) -> bool {
    let lines: Vec<&str> = printed.lines().collect();
    match said.split_last() {
        Some((last, said)) if last == "[..]" => {
            lines.len() >= said.len() && said.iter().zip(&lines).all(|(said, line)| fits(said, line))
        }
        _ => lines.len() == said.len() && said.iter().zip(&lines).all(|(said, line)| fits(said, line)),
    }
}

pub(crate) fn looks_like_a_manifest(block: &Block) -> bool {
    let resources = [
        "- file:",
        "- exec:",
        "- service:",
        "- archive:",
        "- package:",
        "- user:",
        "- group:",
        "- apply:",
        "- fact:",
        "- scaffold:",
    ];
    let is_resource = |line: &str| resources.iter().any(|start| line.starts_with(start));
    block.language == "yaml" && block.text.lines().any(|line| line == "ccm:" || is_resource(line))
}

/// A folder for a page, and a shell in it.
struct ApiServer {
    world: World,
    folder: PathBuf,
}

impl ApiServer {
    fn of(page: &str) -> Self {
        let world = World::new();
        let folder = world.path("");
        let server = Self { world, folder };
        for Block { name, text, .. } in blocks(page) {
            if let Some(name) = name {
                server.write(&name, &text);
            }
        }
        server
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command and gives what it printed, both streams in one, and its exit code.
    fn run(&self, command: &str) -> (String, i32) {
        let ccm = Path::new(env!("CARGO_BIN_EXE_ccm")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let names = sh("id -un; id -gn", &self.folder);
        let mut names = names.lines();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-ec", &format!("exec 2>&1\n{command}")])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{}:{path}", ccm.display()))
            .env("HOME", self.world.base().join("home"))
            .env("TMPDIR", self.world.base().join("home"))
            .env("CCM_STATE_DIR", self.world.state())
            .env("PWD", &self.folder)
            .env("ME", names.next().unwrap())
            .env("MY_GROUP", names.next().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let outcome = finish(shell.spawn().unwrap(), command.to_owned());
        (outcome.stdout, outcome.code)
    }
}

/// The schema of manifests that the program prints.
fn schema() -> &'static jsonschema::Validator {
    static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let schema = World::new().ccm(["schema", "manifest"]).run().exits(0).json();
        jsonschema::validator_for(&schema).unwrap()
    });
    &SCHEMA
}

/// A document in YAML as it is written: nothing in facts is expanded.
fn tree(text: &str) -> serde_json::Value {
    let facts: String = text
        .lines()
        .map(|line| format!("  {line}\n"))
        .fold("document:\n".to_owned(), |all, line| all + &line);
    let world = World::new().beside("facts.yaml", facts);
    world.ccm(["facts", "document", "--facts", "facts.yaml"]).run().exits(0).json()
}

/// What is wrong with a page.
fn mistakes(page: &str) -> Vec<String> {
    let mut mistakes = Vec::new();
    for block in blocks(page).iter().filter(|block| looks_like_a_manifest(block)) {
        let server = ApiServer::of(page);
        server.write("page.yaml", &block.text);
        let (printed, code) = server.run("ccm validate page.yaml");
        if code != 0 {
            mistakes.push(format!("line {}: not a valid manifest\n{printed}", block.line));
        } else if let Err(error) = schema().validate(&tree(&block.text)) {
            mistakes.push(format!("line {}: not what the schema says: {error}", block.line));
        }
    }
    if page.lines().any(|line| line == NEEDS_LAB) {
        return mistakes;
    }
    let server = ApiServer::of(page);
    for block in blocks(page).iter().filter(|block| block.language == "console") {
        for Shown { line, command, code, output } in commands(block) {
            let (printed, ended) = server.run(&command);
            if ended != code {
                mistakes.push(format!("line {line}: `{command}` ended with {ended}, not {code}\n{printed}"));
            } else if !all_fit(&output, &printed) {
                let said = output.join("\n");
                mistakes
                    .push(format!("line {line}: `{command}`\n--- said\n{said}\n--- printed\n{printed}---"));
            }
        }
    }
    mistakes
}

/// Every page of the book, and those that stand at the root.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = sh("find docs -name '*.md' | sort; ls *.md", root);
    found.lines().map(|path| root.join(path)).collect()
}

#[test]
fn every_page_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The examples of the reference are held to the same by the types' own tests.
    let mut pages = pages();
    pages.retain(|path| !path.starts_with(root.join("docs/reference")));
    assert!(pages.len() > 20, "{pages:?}");
    let mut all = Vec::new();
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root).unwrap().display();
        all.extend(mistakes(&page).into_iter().map(|mistake| format!("{shown}: {mistake}")));
    }
    assert!(all.is_empty(), "\n{}", all.join("\n\n"));
}

/// The links of a page to files, each with the heading behind `#` if it names one.
fn links(page: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let local = links.filter(|link| !link.contains("://") && !link.contains(char::is_whitespace));
    local.map(|link| link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading))))
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(kept)
        .collect::<String>()
        .to_lowercase()
        .replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_in_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let contents = fs::read_to_string(root.join("docs/SUMMARY.md")).unwrap();
    for path in pages() {
        let shown = path.strip_prefix(root).unwrap().display().to_string();
        let page = fs::read_to_string(&path).unwrap();
        if let Some(name) = shown.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md") {
            assert!(contents.contains(&format!("]({name})")), "{shown} is not in docs/SUMMARY.md");
        }
        for (link, heading) in links(&page) {
            let target = if link.is_empty() { path.clone() } else { path.parent().unwrap().join(link) };
            assert!(target.exists(), "{shown}: {link} leads nowhere");
            let text = || fs::read_to_string(&target).unwrap();
            let has = |heading: &str| {
                let id = format!("id=\"{heading}\"");
                text()
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line) == heading || line.contains(&id))
            };
            assert!(heading.is_none_or(has), "{shown}: {link} has no heading {heading:?}");
        }
    }
}

#[test]
fn the_schema_accepts_every_example() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let manifests = sh("find . -name '*.yaml' | sort", &examples);
    assert!(manifests.lines().count() > 3, "{manifests}");
    for manifest in manifests.lines() {
        let text = fs::read_to_string(examples.join(manifest)).unwrap();
        schema().validate(&tree(&text)).unwrap_or_else(|error| panic!("{manifest}: {error}"));
    }
}

#[test]
fn a_page_that_is_wrong_is_found_out() {
    let page = |text: &str| text.replace("~~~", "```");
    for (text, expected) in [
        ("~~~console\n$ echo a\na\n$ echo b; echo c\nb\nc\n~~~\n", None),
        ("~~~console\n$ echo a\nb\n~~~\n", Some("line 2: `echo a`")),
        ("~~~console\n$ echo a\n~~~\n", Some("--- printed\na\n")),
        ("~~~console\n$ true\na\n~~~\n", Some("--- said\na\n")),
        ("~~~console\n$ echo a >&2; exit 3\n? 3\na\n~~~\n", None),
        ("~~~console\n$ exit 3\n~~~\n", Some("ended with 3, not 0")),
        ("~~~console\n$ echo one two three\none [..] three\n~~~\n", None),
        ("~~~console\n$ echo one two three\none [..] two\n~~~\n", Some("one two three")),
        ("~~~console\n$ echo a; echo b; echo c\na\n[..]\n~~~\n", None),
        (
            "~~~console\n$ echo runtime=1.2ms x; echo '3 resources in 5s: 1 changed'\nruntime=9µs x\n3 resources in 1ms: 1 changed\n~~~\n",
            None,
        ),
        (
            "~~~console\n$ echo '3 resources in 5s: 1 changed'\n3 resources in 1ms: 2 changed\n~~~\n",
            Some("1 changed"),
        ),
        ("~~~text a/b\nhello\n~~~\n\n~~~console\n$ cat a/b\nhello\n$ echo \\\n  x\nx\n~~~\n", None),
        ("~~~yaml\n- file: { /x: { ensure: absent } }\n~~~\n", None),
        ("~~~yaml\n- file: { /x: { ensur: absent } }\n~~~\n", Some("line 1: not a valid manifest")),
        ("~~~yaml\nccm:\n  resorces: []\n~~~\n", Some("did you mean `resources`?")),
        ("<!-- needs: lab -->\n~~~console\n$ echo a\nb\n~~~\n", None),
        ("<!-- needs: lab -->\n~~~yaml\n- file: { /x: { ensur: absent } }\n~~~\n", Some("line 2:")),
        ("~~~console\n$ echo $ME $(basename $PWD)\n[..] w\n$ ccm --version\nccm [..]\n~~~\n", None),
    ] {
        let found = mistakes(&page(text));
        match expected {
            None => assert!(found.is_empty(), "{text}\n{found:#?}"),
            Some(part) => assert!(found.iter().any(|mistake| mistake.contains(part)), "{text}\n{found:#?}"),
        }
    }
}

#[test]
fn the_program_in_python_does_as_the_script_does() {
    if !has("python3") {
        return;
    }
    let server = ApiServer::of("");
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/python/ensure.py");
    let run = format!("python3 {} $PWD/app $ME $MY_GROUP", program.display());
    let (first, code) = server.run(&run);
    assert_eq!((first.matches("changed file#").count(), code), (2, 0), "{first}");
    let (second, code) = server.run(&run);
    assert_eq!((second.matches("stable file#").count(), code), (2, 0), "{second}");
    assert_eq!(server.world.read("app/app.conf"), "port = 8080\n");
    let (failed, code) = server.run(&run.replace("$ME", "no-such-user"));
    assert_eq!((failed.matches("failed file#").count(), code), (1, 1), "{failed}");
    assert!(failed.contains("skipped file#") && failed.contains("no-such-user"), "{failed}");
    let (wrong, code) = server.run(&run.replace("$PWD/app", "relative"));
    assert!(wrong.contains("ValueError: request:1:") && wrong.contains("must be absolute"), "{wrong}");
    assert_eq!(code, 1);
}
