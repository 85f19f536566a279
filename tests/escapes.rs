//! Nothing that is not ours reaches a terminal as it is.

use crate::{
    progress::on_a_terminal,
    support::{Outcome, World},
};

/// Clears the screen in two ways and turns the direction of writing.
const HOSTILE: &str = "\u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{200f}\u{61c}";
/// The same in a YAML text with double quotes.
const IN_YAML: &str = r"\e[2J\x9b2J\u202e\u2066\u200f\u061c";

fn is_hostile(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whatever of it was printed is visible.
#[track_caller]
fn is_made_visible(outcome: &Outcome) {
    let both = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(!both.contains(is_hostile), "{both:?}");
    assert!(both.contains("\\u{9b}2J"), "{both:?}");
}

#[test]
fn what_a_manifest_says_is_made_visible() {
    for manifest in [
        "ccm: { pre_message: \"HOSTILE\", resources: [] }\n",
        "ccm: { post_message: \"HOSTILE\", resources: [] }\n",
        "- exec: [{ \"HOSTILE\": { command: 'true' } }]\n",
        "- exec: [{ a: { command: 'true', alias: \"HOSTILE\" } }]\n",
        "- exec: [{ a: { command: \"/HOSTILE\" } }]\n",
        "- exec: [{ a: { command: 'true', creates: \"/HOSTILE\" } }]\n",
        "- exec: [{ a: { command: \"printf %s 'HOSTILE'\", logoutput: true } }]\n",
        "- exec: [{ a: { command: \"sh -c 'printf %s HOSTILE >&2; exit 1'\" } }]\n",
        "- exec: [{ a: { \"HOSTILE\": 1, command: 'true' } }]\n",
        "- exec: [{ a: { require: [\"exec#HOSTILE\"], command: 'true' } }]\n",
        "- exec: [{ a: { timeout: \"HOSTILE\", command: 'true' } }]\n",
        "- \"HOSTILE\": []\n",
    ] {
        let world = World::new().manifest(&manifest.replace("HOSTILE", IN_YAML));
        is_made_visible(&world.apply());
    }
}

#[test]
fn a_line_of_a_manifest_that_is_quoted_is_made_visible() {
    let world = World::new().manifest(&format!("- exec: [{{ a: {{ nonsense: \"{}\" }} }}]\n", &HOSTILE[4..]));
    is_made_visible(world.validate().exits(2));
}

#[test]
fn names_of_files_and_arguments_are_made_visible() {
    let name = format!("{HOSTILE}.yaml");
    let world = World::new()
        .beside(&name, "- exec: ['false': {}]\n")
        .beside(&format!("wrong{name}"), "- fiel: []\n")
        .beside(&format!("none{name}"), "[]\n");
    for arguments in [
        &["apply", &name][..],
        &["apply", &format!("wrong{name}")],
        &["validate", &format!("none{name}")],
        &["apply", &format!("/nowhere/{name}")],
        &["apply", "--facts", &name, "site.yaml"],
        &[HOSTILE],
        &["apply", &format!("--{HOSTILE}")],
        &["ensure", HOSTILE],
        &["ensure", "file", "/x", HOSTILE],
        &["eval", HOSTILE],
        &["facts", HOSTILE],
    ] {
        is_made_visible(&world.ccm(arguments).run());
    }
}

#[test]
fn data_is_as_it_is_unless_it_goes_to_a_terminal() {
    let world = World::new().beside("data.yaml", format!("data: {{ a: \"{IN_YAML}\" }}\n"));
    let piped = world.ccm(["hiera", "parse", "data.yaml", "--env"]).run();
    assert_eq!(piped.exits(0).stdout, format!("HIERA_A='{HOSTILE}'\n"));
    let json = world.ccm(["hiera", "parse", "data.yaml"]).run().json();
    assert_eq!(json["a"], HOSTILE);
    for how in ["--env", "--yaml", "", "--query a"] {
        let Some(written) = on_a_terminal(&world, &format!("ccm hiera parse data.yaml {how}")) else {
            return;
        };
        let written = written.replace('\r', "");
        assert!(!written.contains(is_hostile), "{how}: {written:?}");
        let is_shown = ["\\u009b2J", "\\x9B2J"].iter().any(|escape| written.contains(escape));
        assert!(is_shown, "{how}: {written:?}");
    }
    let written = on_a_terminal(&world, "ccm hiera parse data.yaml").unwrap();
    let json: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(json["a"], HOSTILE, "it is still JSON");
}
