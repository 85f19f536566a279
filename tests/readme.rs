//! The README's example and the book's tour, as they stand there, on a machine that was booted with systemd.

use std::{fs, path::Path};

use crate::{
    guides::{Block, all_fit, blocks, commands},
    lab::{Site, apt_repository},
};

/// A page of the project, read when the test runs: another word in it builds nothing anew.
fn page(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Makes a repository with an nginx the only one of the machine.
fn use_repository(site: &Site, name: &str) {
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
    take_the_tour(&site, "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin");
}

/// Runs every command of the tour with the ccm that this search path leads to.
pub(crate) fn take_the_tour(site: &Site, search_path: &str) {
    use_repository(site, "tour");
    let tour = page("docs/tour.md");
    for block in blocks(&tour) {
        if let Some(name) = &block.name {
            site.write(&format!("/srv/tour/{name}"), &block.text);
        }
    }
    for block in blocks(&tour).iter().filter(|block| block.language == "console") {
        for said in commands(block) {
            let script = format!(
                "exec 2>&1; export PATH={search_path} CCM_STATE_DIR=/srv/tour/state; cd /srv/tour\n{}",
                said.command
            );
            let output = site.lab.command(&["/bin/sh", "-ec", &script]).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(said.code), "line {}:\n{printed}", said.line);
            assert!(all_fit(&said.output, &printed), "docs/tour.md, line {}:\n{printed}", said.line);
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
    assert_eq!((site.active("nginx"), site.enabled("nginx")), ("active".to_owned(), "enabled".to_owned()));
    let read = site.lab.sh("cat /run/nginx.read");
    assert!(read.contains("listen 8080;") && read.contains("hello from "), "{read}");
}
