//! ARCHITECTURE.md draws the floors of the program: a module uses only modules on lower floors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Edges that do not point downwards yet, each with the move that removes it. The list only shrinks.
const VIOLATIONS: [(&str, &str, &str); 0] = [];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The floors, and the edges that are allowed on one floor.
struct Drawing {
    floors: BTreeMap<String, usize>,
    sideways: BTreeSet<(String, String)>,
}

#[test]
fn modules_use_only_lower_floors() {
    let (drawing, graph) = (Drawing::read(), real_graph());
    let mut upward = BTreeSet::new();
    for (from, to) in edges(&graph) {
        let is_below = drawing.floors[from] < drawing.floors[to];
        if !is_below && !drawing.sideways.contains(&(from.clone(), to.clone())) {
            upward.insert((from.as_str(), to.as_str()));
        }
    }
    let known: BTreeSet<(&str, &str)> = VIOLATIONS.iter().map(|(from, to, _)| (*from, *to)).collect();
    assert_eq!(upward, known, "edges that do not point downwards (left), and the known ones (right)");
}

#[test]
fn every_module_has_a_floor() {
    let (drawing, graph) = (Drawing::read(), real_graph());
    let real: BTreeSet<&String> = graph.keys().collect();
    let drawn: BTreeSet<&String> = drawing.floors.keys().collect();
    assert_eq!(drawn, real, "modules in the drawing (left) and in the source (right)");
    let used: BTreeSet<(String, String)> =
        edges(&graph).map(|(from, to)| (from.clone(), to.clone())).collect();
    let unused: Vec<_> = drawing.sideways.difference(&used).collect();
    assert!(unused.is_empty(), "the drawing allows edges that do not exist: {unused:?}");
}

#[test]
fn decisions_do_not_use_the_machine() {
    let mut decisions = Vec::new();
    find("decision.rs", &root().join("src"), &mut decisions);
    assert!(decisions.len() > 3, "{decisions:?}");
    for path in decisions {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for machine in ["host::", "rustix", "std::fs", "std::process", "std::env"] {
            assert!(!code.contains(machine), "{} uses `{machine}`", path.display());
        }
    }
}

/// Adds the files of this name under a directory.
fn find(name: &str, directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            find(name, &path, found);
        } else if entry.file_name() == name {
            found.push(path);
        }
    }
}

#[test]
fn modules_do_not_depend_on_each_other_in_a_circle() {
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

impl Drawing {
    /// Reads the first code block of ARCHITECTURE.md: a floor on each line, then two spaces and its purpose.
    fn read() -> Self {
        let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let block = page.split("```").nth(1).expect("a drawing");
        let (mut floors, mut sideways) = (BTreeMap::new(), BTreeSet::new());
        for (floor, line) in block.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            let modules = line.split("  ").next().unwrap_or_default();
            for chain in modules.split(' ') {
                let chain: Vec<String> = chain.split('→').map(str::to_owned).collect();
                sideways.extend(chain.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
                floors.extend(chain.into_iter().map(|module| (module, floor)));
            }
        }
        Self { floors, sideways }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn edges(graph: &Graph) -> impl Iterator<Item = (&String, &String)> {
    graph.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)))
}

/// Returns the names in a directory, without the ending of source files.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| entry.file_name().to_str().unwrap().trim_end_matches(".rs").to_owned()).collect()
}

/// Returns the modules and crates of the program, each with the modules and crates that it uses outside of its tests.
fn real_graph() -> Graph {
    let (source, crates) = (root().join("src"), root().join("crates"));
    let mut modules = names(&source);
    modules.retain(|module| !["lib", "main", "fuzzing"].contains(&module.as_str()));
    modules.extend(names(&crates));
    let uses = |module: &String| {
        let mut to = dependencies(&crates.join(module).join("Cargo.toml"));
        collect(&source.join(module), &mut to);
        collect(&source.join(format!("{module}.rs")), &mut to);
        to.remove(module);
        to.retain(|to| modules.contains(to));
        (module.clone(), to)
    };
    modules.iter().map(uses).collect()
}

/// Returns the crates of this repository that a crate depends on.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let Ok(text) = fs::read_to_string(manifest) else { return BTreeSet::new() };
    let table = text.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next());
    let names = table.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("ccm-"));
    names.filter_map(|name| Some(name.split_once('.')?.0.to_owned())).collect()
}

fn collect(path: &Path, to: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            collect(&entry.path(), to);
        }
        return;
    }
    if path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs") {
        return;
    }
    let Ok(text) = fs::read_to_string(path) else { return };
    // Unit tests are at the end of a file.
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for path in ["crate::", "ccm_"] {
        code.split(path).skip(1).for_each(|rest| to.extend(first_names(rest)));
    }
}

/// Returns the first names of a path or of a group of paths after `crate::`.
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
