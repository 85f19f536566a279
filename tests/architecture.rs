//! ARCHITECTURE.md draws the real graph of the modules, and it has no cycle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_drawn_graph_is_the_real_one() {
    let real = real_graph();
    let drawn = drawn_graph();
    let show = |graph: &Graph| -> String {
        let line = |(from, to): (&String, &BTreeSet<String>)| {
            format!("{from:<10} → {}\n", to.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
        };
        graph.iter().map(line).collect()
    };
    assert_eq!(show(&drawn), show(&real), "the graph in ARCHITECTURE.md (left) is not the one of the code");
}

#[test]
fn dependencies_point_one_way() {
    let mut left = real_graph();
    loop {
        let ends: Vec<String> = left
            .iter()
            .filter(|(_, to)| to.iter().all(|to| !left.contains_key(to)))
            .map(|(from, _)| from.clone())
            .collect();
        if ends.is_empty() {
            break;
        }
        left.retain(|from, _| !ends.contains(from));
    }
    assert!(left.is_empty(), "these modules depend on each other: {left:#?}");
}

/// Returns the modules of the program with those that they name in `crate::` paths, tests left out.
fn real_graph() -> Graph {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut graph = Graph::new();
    for entry in fs::read_dir(&source).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs").to_owned();
        if ["lib", "main", "fuzzing"].contains(&module.as_str()) {
            continue;
        }
        let mut to = BTreeSet::new();
        collect(&entry.path(), &mut to);
        to.remove(&module);
        graph.insert(module, to);
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for to in graph.values_mut() {
        to.retain(|to| modules.contains(to));
    }
    graph
}

fn collect(path: &Path, to: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            collect(&entry.path(), to);
        }
    } else if !path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs") {
        let text = fs::read_to_string(path).unwrap();
        // Unit tests stand at the end of a file.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        code.split("crate::").skip(1).for_each(|rest| to.extend(first_names(rest)));
    }
}

/// Returns the first names of a path or of a group of paths behind `crate::`.
fn first_names(rest: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut names, mut start) = (0, Vec::new(), 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(group[start..at].trim_start()));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the graph as ARCHITECTURE.md draws it: a line for each module, `from → to to`.
fn drawn_graph() -> Graph {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let edges = |line: &str| {
        let (from, to) = line.split_once('→')?;
        Some((from.trim().to_owned(), to.split_whitespace().map(str::to_owned).collect()))
    };
    let drawing = page.split("```").nth(1).expect("a drawing");
    drawing.lines().filter_map(edges).collect()
}
