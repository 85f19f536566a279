//! `ccm explain`: what an error or warning means, an example that produces it, and how to fix it.

use ccm_expr::closest;
use clap::Args;
use serde_json::{Value, json};

use super::{Exit, failure::Failure, output::Output};

/// One section for each id: its meaning, an example in a code block, and a line that begins with [`FIX`].
const MESSAGES: &str = include_str!("messages.md");
const FIX: &str = "Fix: ";

const EXAMPLES: &str = "\
Examples:
  ccm explain unknown-property
  ccm explain --list";

/// Arguments of `ccm explain`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The id, such as `unknown-property` in `error[unknown-property]`
    #[arg(value_name = "ID", required_unless_present = "list")]
    id: Option<String>,
    /// Print all ids
    #[arg(long, conflicts_with = "id")]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An id with its explanation.
struct Explanation {
    id: &'static str,
    meaning: String,
    /// The code blocks, each with the words after its fence.
    examples: Vec<(&'static str, String)>,
    fix: String,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let all = explanations();
    let chosen: Vec<&Explanation> = match &arguments.id {
        Some(id) if !arguments.list => vec![find(&all, id)?],
        _ => all.iter().collect(),
    };
    for explanation in chosen {
        if arguments.json {
            output.line(&explanation.json());
        } else if arguments.id.is_some() {
            output.text(&explanation.text());
        } else {
            output.line(explanation.id);
        }
    }
    Ok(Exit::Success)
}

fn find<'e>(all: &'e [Explanation], id: &str) -> Result<&'e Explanation, Failure> {
    let unknown = || {
        let near = closest(id, all.iter().map(|explanation| explanation.id));
        let advice = near.map_or_else(
            || "`ccm explain --list` prints all ids".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Failure::new(format!("unknown id `{id}`; {advice}"))
    };
    all.iter().find(|explanation| explanation.id == id).ok_or_else(unknown)
}

/// Returns the explanations in the order of their ids.
fn explanations() -> Vec<Explanation> {
    MESSAGES.split("## ").skip(1).map(Explanation::parse).collect()
}

impl Explanation {
    fn parse(section: &'static str) -> Self {
        let (id, body) = section.split_once('\n').unwrap_or((section, ""));
        let (mut meaning, mut examples, mut fix) = (String::new(), Vec::new(), String::new());
        let mut blocks = body.split("```");
        while let Some(prose) = blocks.next() {
            let (before, after) = prose.split_once(FIX).unwrap_or((prose, ""));
            meaning += &paragraph(before);
            fix += &paragraph(after);
            if let Some((kind, code)) = blocks.next().and_then(|block| block.split_once('\n')) {
                examples.push((kind, code.to_owned()));
            }
        }
        Self { id, meaning, examples, fix }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.id, self.meaning);
        for (_, code) in &self.examples {
            let lines = code.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n");
            text.push('\n');
            text.extend(lines);
        }
        text + "\n" + FIX + &self.fix + "\n"
    }

    fn json(&self) -> String {
        let example = |(kind, code): &(&str, String)| json!({ "kind": kind, "code": code });
        let examples: Vec<Value> = self.examples.iter().map(example).collect();
        json!({ "id": self.id, "meaning": self.meaning, "examples": examples, "fix": self.fix }).to_string()
    }
}

/// Joins the lines of a paragraph.
fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the explanations as a page of the reference.
#[cfg(test)]
pub(super) fn page() -> &'static str {
    MESSAGES
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

    use regex::Regex;

    use super::*;

    /// Ids that no short example can produce.
    const WITHOUT_EXAMPLE: [&str; 13] = [
        "copied-template",
        "document-too-large",
        "facts-ignored",
        "identity-not-used",
        "invalid-rules",
        "no-data",
        "no-guard",
        "no-time-zone",
        "plain-text-secret",
        "secret-argument",
        "secret-in-command",
        "secret-name",
        "wrong-recipients",
    ];

    #[test]
    fn explanations_are_complete_and_sorted() {
        let all = explanations();
        for explanation in &all {
            let id = explanation.id;
            assert!(!explanation.meaning.is_empty() && !explanation.fix.is_empty(), "{id}");
            assert_eq!(explanation.examples.is_empty(), WITHOUT_EXAMPLE.contains(&id), "{id}");
        }
        assert!(all.is_sorted_by_key(|explanation| explanation.id));
    }

    #[test]
    fn every_id_in_the_source_has_an_explanation_and_no_other_has_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut ids = BTreeSet::new();
        for directory in ["src", "crates"] {
            collect(&root.join(directory), &mut ids);
        }
        let explained = explanations().iter().map(|explanation| explanation.id.to_owned()).collect();
        assert_eq!(ids, explained, "ids in the source (left) and in messages.md (right)");
    }

    /// Adds the ids that the source of a directory gives to diagnostics and warnings.
    fn collect(directory: &Path, ids: &mut BTreeSet<String>) {
        static ID: LazyLock<Regex> = LazyLock::new(|| {
            let before = r"(?:[^\[](?:error|warning)\(\s*|\bid: |const (?:ID|NO_EFFECT|UNCLOSED): &str = )";
            Regex::new(&format!(r#"{before}"([a-z]+(?:-[a-z]+)+)""#)).unwrap()
        });
        static LIST: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"const DOUBTS: [^=]*= \[([^\]]*)").unwrap());
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "tests" {
                collect(&path, ids);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                ids.extend(ID.captures_iter(code).map(|found| found[1].to_owned()));
                for list in LIST.captures_iter(code) {
                    ids.extend(list[1].split('"').skip(1).step_by(2).map(str::to_owned));
                }
            }
        }
    }
}
