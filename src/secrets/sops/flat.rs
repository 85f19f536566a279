//! Maps and lists in the names of keys, as dotenv and INI files need them: `age__list_0__map_enc`.

use super::metadata::invalid;
use crate::document::{Diagnostic, Entry, Node, Scalar, Span, Style, Value};

const MAP: &str = "__map_";
const LIST: &str = "__list_";

/// Most items of a list, so that a name cannot ask for memory.
const LONGEST: usize = 1000;

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

/// Returns the tree of flat names. Line breaks are written as `\n`.
pub(crate) fn unflatten(entries: &[(String, Scalar, Span)], span: Span) -> Result<Node, Diagnostic> {
    let mut root = Node { value: Value::Map(Vec::new()), span };
    for (name, scalar, at) in entries {
        let text = scalar.text.replace("\\n", "\n");
        let leaf = Node { value: Value::Scalar(Scalar::new(text, Style::Quoted)), span: *at };
        let steps = steps(name).ok_or_else(|| invalid(format!("`{name}` is not a name of SOPS"), *at))?;
        put(&mut root, &steps, leaf)
            .ok_or_else(|| invalid(format!("`{name}` contradicts another key"), *at))?;
    }
    Ok(root)
}

fn steps(name: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = name;
    let mut is_item = false;
    loop {
        let next = [rest.find(MAP), rest.find(LIST)].into_iter().flatten().min();
        let (part, after) = rest.split_at(next.unwrap_or(rest.len()));
        steps.push(if is_item {
            Step::Item(part.parse().ok().filter(|at| *at < LONGEST)?)
        } else {
            Step::Key(part.to_owned())
        });
        if after.is_empty() {
            return Some(steps);
        }
        is_item = after.starts_with(LIST);
        rest = &after[if is_item { LIST.len() } else { MAP.len() }..];
    }
}

/// Puts a leaf where steps lead; `None` if something else is there.
fn put(node: &mut Node, steps: &[Step], leaf: Node) -> Option<()> {
    let (step, rest) = steps.split_first()?;
    let span = leaf.span;
    let empty = |rest: &[Step]| Node {
        value: match rest.first() {
            Some(Step::Item(_)) => Value::Seq(Vec::new()),
            _ => Value::Map(Vec::new()),
        },
        span,
    };
    let child = match (step, &mut node.value) {
        (Step::Key(key), Value::Map(entries)) => {
            let at = entries.iter().position(|entry| entry.key == *key);
            match at {
                Some(at) if !rest.is_empty() => &mut entries[at].value,
                Some(_) => return None,
                None => {
                    let value = if rest.is_empty() { leaf.clone() } else { empty(rest) };
                    entries.push(Entry { key: key.clone(), key_span: span, value });
                    &mut entries.last_mut()?.value
                }
            }
        }
        (Step::Item(at), Value::Seq(items)) => {
            while items.len() <= *at {
                items.push(empty(rest));
            }
            let item = &mut items[*at];
            if rest.is_empty() {
                *item = leaf.clone();
            }
            item
        }
        _ => return None,
    };
    if rest.is_empty() { Some(()) } else { put(child, rest, leaf) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> Result<Node, Diagnostic> {
        let scalar = Scalar::new("a\\nb", Style::Quoted);
        let entries: Vec<_> =
            names.iter().map(|name| ((*name).to_owned(), scalar.clone(), Span::default())).collect();
        unflatten(&entries, Span::default())
    }

    #[test]
    fn names_become_maps_and_lists() {
        let root = tree(&["mac", "age__list_1__map_enc", "age__list_0__map_enc", "a__map_b__map_c"]).unwrap();
        assert_eq!(root.lookup("mac").unwrap().as_str(), Some("a\nb"));
        let age = root.lookup("age").unwrap().as_seq().unwrap();
        assert_eq!(age.len(), 2);
        assert!(age.iter().all(|item| item.lookup("enc").is_some()));
        assert!(root.lookup("a").unwrap().lookup("b").unwrap().lookup("c").is_some());
    }

    #[test]
    fn names_that_contradict_each_other_are_refused() {
        for names in [
            &["a", "a__map_b"][..],
            &["a__list_0", "a__map_b"],
            &["a", "a"],
            &["a__list_x"],
            &["a__list_5000"],
        ] {
            assert!(tree(names).is_err(), "{names:?}");
        }
    }
}
