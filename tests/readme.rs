//! The README's example and the book's tour, as they stand there, on a machine that was booted with systemd.

use std::{fs, path::Path};

use crate::{
    guides::{Block, all_fit, blocks, commands},
    lab::{Site, apt_repository},
};

/// Where the lab's machines have the program that is tested.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin";

/// A page of the project, read when the test runs: another word in it builds nothing anew.
fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Makes a repository with an nginx the only one of the machine.
pub(crate) fn use_repository(site: &Site, name: &str) {
    let repository = site.lab.path(&format!("/srv/{name}/repository"));
    fs::create_dir_all(&repository).unwrap();
    for file in fs::read_dir(apt_repository()).unwrap().flatten() {
        fs::copy(file.path(), repository.join(file.file_name())).unwrap();
    }
    site.write("/etc/apt/sources.list", &format!("deb [trusted=yes] file:/srv/{name}/repository ./\n"));
}

#[test]
fn the_tour_goes_as_the_book_says() {
    let Some(site) = Site::with_packages("tour") else { return };
    use_repository(&site, "tour");
    take_the_tour(&site, SEARCH_PATH, &[]);
}

/// Runs a command of a page in a folder of the machine, and returns what it printed and how it ended.
fn type_into(site: &Site, folder: &str, search_path: &str, command: &str) -> (String, Option<i32>) {
    let script =
        format!("exec 2>&1; export PATH={search_path} CCM_STATE_DIR={folder}/state; cd {folder}\n{command}");
    let output = site.lab.command(&["/bin/sh", "-ec", &script]).output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Runs the end of the tour, which only a machine with the package can: the timer.
pub(crate) fn end_the_tour(site: &Site, search_path: &str) {
    let tour = page("docs/tour.md");
    let (_, end) = tour.split_once("## On a schedule\n").unwrap();
    let shown: Vec<_> = blocks(end).iter().flat_map(commands).collect();
    assert!(!shown.is_empty());
    for said in shown {
        let (printed, code) = type_into(site, "/srv/tour", search_path, &said.command);
        assert_eq!(code, Some(0), "{}:\n{printed}", said.command);
    }
}

/// Runs every command of the tour with the ccm that this search path leads to. Lines in `here` read otherwise on this machine.
pub(crate) fn take_the_tour(site: &Site, search_path: &str, here: &[(&str, &str)]) {
    let tour = page("docs/tour.md");
    for block in blocks(&tour) {
        if let Some(name) = &block.name {
            site.write(&format!("/srv/tour/{name}"), &block.text);
        }
    }
    for block in blocks(&tour).iter().filter(|block| block.language == "console") {
        for said in commands(block) {
            let (printed, code) = type_into(site, "/srv/tour", search_path, &said.command);
            assert_eq!(code, Some(said.code), "line {}:\n{printed}", said.line);
            let there = |line: &String| here.iter().find(|(there, _)| there == line).map(|(_, here)| *here);
            let output: Vec<String> =
                said.output.iter().map(|line| there(line).unwrap_or(line).to_owned()).collect();
            assert!(all_fit(&output, &printed), "docs/tour.md, line {}:\n{printed}", said.line);
        }
    }
}

#[test]
fn the_example_of_the_readme_installs_configures_and_starts_and_is_stable_then() {
    let Some(site) = Site::with_packages("readme") else { return };
    let shown: Vec<Block> = blocks(&page("README.md"));
    let manifest = &shown.iter().find(|block| block.language == "yaml").unwrap().text;
    let session = shown.iter().find(|block| block.text.starts_with("$ ccm apply site.yaml\n")).unwrap();
    use_repository(&site, "readme");

    let noop = site.apply_with(manifest, &["--noop"]);
    noop.exits(0).says("Would have installed").says("Would have created the file").says("Would have started");
    for said in commands(session) {
        let run = site.apply_with(manifest, &[]);
        run.exits(0);
        assert!(all_fit(&said.output, &run.stdout), "README.md, line {}:\n{run}", said.line);
    }
    site.write("/srv/readme/site.yaml", manifest);
    let three = shown.iter().find(|block| block.text.starts_with("$ ccm apply site.yaml --noop ")).unwrap();
    for said in commands(three) {
        let (printed, code) = type_into(&site, "/srv/readme", SEARCH_PATH, &said.command);
        assert_eq!(code, Some(0), "README.md, line {}:\n{printed}", said.line);
    }
    assert_eq!((site.active("nginx"), site.enabled("nginx")), ("active".to_owned(), "enabled".to_owned()));
    let read = site.lab.sh("cat /run/nginx.read");
    assert!(read.contains("listen 8080;") && read.contains("hello from "), "{read}");
}
