//! The manual pages are clean, complete and say what the source does.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use super::{DATE, pages, reference::reference_pages, tables::VARIABLES};
use crate::types::tests::assert_current;

#[test]
fn the_reference_of_the_program_is_current() {
    for (name, page) in reference_pages() {
        assert_current(&format!("docs/reference/{name}.md"), &page);
    }
}

#[test]
fn every_page_tells_its_exit_codes_and_the_first_its_variables_files_and_examples() {
    let pages = pages().unwrap();
    for (name, text) in pages.iter().filter(|(name, _)| name.ends_with(".1")) {
        assert!(text.contains(".SH \"EXIT STATUS\"\n"), "{name}");
    }
    let first = &pages.iter().find(|(name, _)| name == "ccm.1").unwrap().1;
    for section in ["ENVIRONMENT", "FILES", "EXAMPLES", "\"SEE ALSO\""] {
        assert!(first.contains(&format!(".SH {section}\n")), "{section}\n{first}");
    }
    let apply = &pages.iter().find(|(name, _)| name == "ccm-apply.1").unwrap().1;
    assert!(apply.contains("CCM_STATE_DIR") && apply.contains("/var/lib/ccm"), "{apply}");
    let manifest = &pages.iter().find(|(name, _)| name == "ccm-manifest.5").unwrap().1;
    for word in ["fail_on_error", "strip_components", "try_sleep"] {
        assert!(manifest.contains(word), "{word}");
    }
    for (page, word) in [
        ("ccm-agent.yaml.5", "allowed_signers"),
        ("ccm-checks.5", "goss_rules"),
        ("ccm-functions.7", "versionCompare"),
        ("ccm-facts.7", "host.info.hostname"),
    ] {
        assert!(pages.iter().any(|(name, text)| name == page && text.contains(word)), "{page}");
    }
}

#[test]
fn mandoc_has_nothing_to_say_about_any_page() {
    for (name, text) in pages().unwrap() {
        let mandoc = Command::new("mandoc")
            .args(["-T", "lint", "-W", "style"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut mandoc) = mandoc else {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "needs mandoc");
            return;
        };
        mandoc.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = String::from_utf8(mandoc.wait_with_output().unwrap().stdout).unwrap();
        assert!(said.is_empty(), "{name}\n{said}\n{text}");
    }
}

#[test]
fn every_variable_of_ccm_is_in_the_manual() {
    // Nobody else reads the environment.
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli")];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            for part in text.split("\"CCM_").skip(1) {
                let end = part.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap();
                let name = format!("CCM_{}", &part[..end]);
                // The build tells these to the compiler.
                if end > 0 && part[end..].starts_with('"') && name != "CCM_BUILD" {
                    found += 1;
                    let is_known = VARIABLES.iter().any(|(variable, _)| *variable == name);
                    assert!(is_known, "{name} in {} is not among the variables", entry.path().display());
                }
            }
        }
    }
    assert!(found > 5);
}

#[test]
fn the_date_of_the_manual_is_that_of_the_newest_version() {
    let changelog = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md")).unwrap();
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")?.split_once(" - "));
    assert!(newest.is_none_or(|(_, date)| date == DATE), "{newest:?}");
}
