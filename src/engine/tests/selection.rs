//! Which resources a user's words, or changes on the machine, select.

use super::*;

/// A part, one that subscribes to the first by its alias, and others of which one has an alias too.
fn parts() -> [Resource; 4] {
    let mut parts = [part("a", "alias: first"), part("b", "alias: second"), part("c", ""), part("d", "")];
    for (part, cause) in parts[2..].iter_mut().zip(["part#first", "exec#first"]) {
        Arc::make_mut(&mut part.common).subscribe = vec![cause.parse().unwrap()];
    }
    parts
}

fn names(selected: &Selected, parts: &[Resource]) -> String {
    parts.iter().filter(|part| selected.contains(part)).map(|part| part.name.as_str()).collect()
}

#[test]
fn resources_are_selected_by_their_aliases_too() {
    let parts = parts();
    for (written, expected) in
        [("part#a", "a"), ("part#first", "a"), ("part#sec*", "b"), ("part#?", "abcd"), ("part#nobody", "")]
    {
        let selection = Selection { only: vec![written.parse().unwrap()], skip: Vec::new() };
        assert_eq!(names(&selection.select(&parts), &parts), expected, "{written}");
        let unknown = selection.unknown(&parts.iter().collect::<Vec<_>>()).len();
        assert_eq!(unknown, usize::from(expected.is_empty()), "{written}");
    }
}

#[test]
fn a_tag_that_is_not_named_selects_nothing() {
    for (written, expected) in [
        ("tag:", "a tag follows `tag:`"),
        ("web", "`web` names no resource: write `type#name`, a pattern of it, or `tag:web`"),
        ("", "`` names no resource: write `type#name`, a pattern of it, or `tag:web`"),
    ] {
        assert_eq!(written.parse::<Selector>().err().as_deref(), Some(expected), "{written}");
    }
}

#[test]
fn with_a_resource_go_those_that_subscribe_to_its_alias_and_no_others() {
    let parts = parts();
    for (name, expected) in [("part#a", "ac"), ("part#b", "b"), ("part#c", "c"), ("part#d", "d")] {
        let selected = Selected::with_refreshes([name.parse().unwrap()].into(), &parts);
        assert_eq!(names(&selected, &parts), expected, "{name}");
    }
}
