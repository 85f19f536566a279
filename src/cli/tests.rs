//! The command line as a whole, and the flags that types' properties become.

use std::{fs, path::Path};

use serde_json::{Map, Value};

use super::{
    aliases::{ALIASES, Alias},
    command, flags,
};
use crate::{
    declare::Completeness, document::Diagnostics, host::interrupt::Interrupt, manifest::declarations_in,
    resource::Resource, types::TYPES,
};

/// The resource that a command spells.
fn resource(words: &[String]) -> Resource {
    let matches = command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{words:?}\n{error}"));
    let matches = matches.subcommand_matches("ensure").unwrap();
    let (kind, matches) = matches.subcommand().unwrap();
    let kind = crate::types::find(kind).unwrap();
    let (_, declaration) = flags::ResourceFlags::from_matches(kind, matches)
        .and_then(|flags| flags.declaration(&Interrupt::never().unwrap()))
        .unwrap_or_else(|_| panic!("{words:?}"));
    let mut problems = Diagnostics::default();
    let resource = declaration.resolve(Completeness::Whole, &mut problems);
    resource.unwrap_or_else(|| panic!("{words:?}\n{problems:?}"))
}

fn properties(resource: &Resource) -> Map<String, Value> {
    let mut properties = resource.wanted.to_json();
    let Value::Object(common) = serde_json::to_value(&*resource.common).unwrap() else { unreachable!() };
    properties.extend(common);
    properties
}

#[test]
fn no_two_flags_of_a_command_clash() {
    // clap itself looks for flags and ids that are there twice, in every command.
    command().debug_assert();
}

#[test]
fn examples_mean_the_same_when_they_are_given_as_flags() {
    for kind in TYPES.iter().filter(|kind| kind.behavior().stands_alone) {
        for example in kind.examples() {
            for declaration in declarations_in(example.manifest).unwrap() {
                let words = shell_words::split(&flags::spelled(&declaration).join(" ")).unwrap();
                let expected = declaration.resolve(Completeness::Whole, &mut Diagnostics::default()).unwrap();
                assert_eq!(properties(&resource(&words)), properties(&expected), "{words:?}");
            }
        }
    }
}

#[test]
fn examples_in_help_can_be_pasted_on_any_width() {
    for kind in TYPES.iter().filter(|kind| kind.behavior().stands_alone) {
        for width in [40, 80, 200] {
            let mut command = command().term_width(width);
            let error =
                command.try_get_matches_from_mut(["ccm", "ensure", kind.name(), "--help"]).unwrap_err();
            let help = flags::with_spaces(&error.to_string());
            for declaration in
                kind.examples().iter().flat_map(|example| declarations_in(example.manifest).unwrap())
            {
                let spelled = flags::spelled(&declaration).join(" ");
                let pasted = help.replace(" \\\n    ", " ");
                assert!(pasted.contains(&format!("\n  {spelled}\n")), "{spelled}\n{help}");
            }
            let titles = help.replace("\n  # ", " ");
            for example in kind.examples() {
                assert!(titles.contains(&format!(" {}\n", example.title)), "{}\n{help}", example.title);
            }
        }
    }
}

/// Where the table of words stands in its page.
const WORDS: [&str; 2] = [
    "<!-- words: generated from src/cli/aliases.rs; `UPDATE=1 cargo test` writes them anew -->\n",
    "<!-- end of words -->",
];

#[test]
fn the_words_of_the_go_original_are_listed() {
    let rows = ALIASES.iter().map(|Alias { theirs, ours, .. }| format!("| `{theirs}` | `{ours}` |\n"));
    let table = format!("\n| the original | here |\n|---|---|\n{}\n", rows.collect::<String>());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/coming-from-go.md");
    let page = fs::read_to_string(&file).unwrap();
    let (before, rest) = page.split_once(WORDS[0]).unwrap();
    let (_, after) = rest.split_once(WORDS[1]).unwrap();
    let current = format!("{before}{}{table}{}{after}", WORDS[0], WORDS[1]);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &current).unwrap();
    }
    assert!(
        page == current || std::env::var_os("UPDATE").is_some(),
        "run `UPDATE=1 cargo test` and look at the change"
    );
}

#[test]
fn no_help_shows_a_word_of_the_go_original() {
    let mut all = vec![command()];
    while let Some(mut command) = all.pop() {
        command.build();
        let help = command.render_long_help().to_string();
        for word in [
            "--disable",
            "--exec-if",
            "--exec-unless",
            "--header ",
            "--debug",
            "--info",
            "--report",
            "svc",
            "pkg",
        ] {
            assert!(!help.contains(word), "{word}\n{help}");
        }
        all.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
    }
}

#[test]
fn every_command_says_what_it_is_for() {
    let mut all = vec![command()];
    while let Some(mut command) = all.pop() {
        command.build();
        assert!(command.get_about().is_some(), "{}", command.get_name());
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
        }
        all.extend(command.get_subcommands().cloned());
    }
}

#[test]
fn every_command_is_in_one_group_of_the_help() {
    let command = super::command();
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut names: Vec<&str> = visible.map(clap::Command::get_name).chain(["help"]).collect();
    let mut grouped: Vec<&str> = super::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    names.sort_unstable();
    grouped.sort_unstable();
    assert_eq!(names, grouped);
}
