//! Whole outputs, compared as they are: what people read is part of the product.
//!
//! `UPDATE=1` writes the files in `tests/fixtures/golden` anew.

use std::{fs, path::Path};

use crate::support::World;

/// Compares a text with the file that holds what it should be.
#[track_caller]
pub(crate) fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name} is not what it was: run with UPDATE=1 and look at the change");
}

/// Takes out what differs from run to run: times, and where the world is.
pub(crate) fn settled(text: &str, world: &World) -> String {
    let text = text.replace(world.path("").to_str().unwrap().trim_end_matches('/'), "/W");
    let settle = |word: &str| {
        if word.starts_with("runtime=") {
            return "runtime=TIME".to_owned();
        }
        let digits = word.trim_end_matches(':').trim_end_matches(|c: char| c.is_alphabetic());
        let is_time = word.ends_with("s:") && !digits.is_empty() && digits.parse::<f64>().is_ok();
        if is_time { "TIME:".to_owned() } else { word.to_owned() }
    };
    let line = |line: &str| line.split(' ').map(settle).collect::<Vec<_>>().join(" ");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_with_every_outcome() {
    let world = World::new().file("same", "x").mode("same", 0o644).file("other", "old\n").manifest(
        "
- file:
    - defaults: { $OWN, mode: '0644' }
    - $W/new: { content: x }
    - $W/same: { content: x }
    - $W/other: { content: \"new\\n\" }
    - $W/no/where: { content: x }
    - $W/off: { content: x, control: { if: 'false' } }
- exec:
    - greet: { command: echo hello, logoutput: true, subscribe: ['file#$W/new'] }
    - broken: { command: sh -c 'echo no such luck >&2; exit 3' }
    - later: { command: 'true', require: ['exec#broken'] }
",
    );
    let foreseen = world.apply_with(&["--noop"]);
    assert_golden("noop.txt", &settled(&foreseen.stdout, &world));
    let outcome = world.apply_with(&["--diff"]);
    assert_golden("run.txt", &settled(&outcome.exits(1).stdout, &world));
    for (name, flags) in [("quiet.txt", "-q"), ("verbose.txt", "-v")] {
        assert_golden(name, &settled(&world.apply_with(&[flags]).exits(1).stdout, &world));
    }
    assert_golden("second-run.txt", &settled(&world.apply_with(&[]).exits(1).stdout, &world));
}

#[test]
fn a_manifest_with_several_mistakes() {
    let world = World::new().manifest(
        "
- file:
    - /etc/app.conf:
        contnet: x
        owner: root
        mode: \"0999\"
    - /etc/app.conf: { ensure: absent }
- service: { app: { subscribe: ['file#/etc/ap.conf'] } }
- exec: [{ a: { command: '${ lookup(\"facts.hots\") }' } }]
- fiel: []
",
    );
    assert_golden("diagnostics.txt", &world.validate().exits(2).stderr);
}

#[test]
fn help_is_laid_out_for_eighty_columns() {
    let world = World::new();
    for (name, arguments) in [
        ("help.txt", &["--help"][..]),
        ("help-apply.txt", &["apply", "--help"]),
        ("help-ensure-file.txt", &["ensure", "file", "--help"]),
    ] {
        let help = world.ccm(arguments).env("COLUMNS", "80").run();
        assert_golden(name, &help.exits(0).stdout);
    }
}
