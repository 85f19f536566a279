//! The README's example, as it stands there, on a machine that was booted with systemd.

use std::fs;

use crate::{
    guides::{Block, all_fit, blocks, commands},
    lab::{Site, apt_repository},
};

const README: &str = include_str!("../README.md");

#[test]
fn the_example_of_the_readme_installs_configures_and_starts_and_is_stable_then() {
    let Some(site) = Site::alone("readme") else { return };
    let shown: Vec<Block> = blocks(README);
    let manifest = &shown.iter().find(|block| block.language == "yaml").unwrap().text;
    let session = shown.iter().find(|block| block.text.starts_with("$ ccm apply site.yaml\n")).unwrap();
    let repository = site.lab.path("/srv/readme/repository");
    fs::create_dir_all(&repository).unwrap();
    for file in fs::read_dir(apt_repository()).unwrap().flatten() {
        fs::copy(file.path(), repository.join(file.file_name())).unwrap();
    }
    site.write("/etc/apt/sources.list", "deb [trusted=yes] file:/srv/readme/repository ./\n");

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
    site.lab.sh("dpkg --purge nginx; rm /etc/nginx/conf.d/hello.conf");
}
