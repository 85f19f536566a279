//! The archive type against a real server on the loopback interface: every row of its decision table, and everything
//! that a server, an archive or a kill can do to it.

mod crashes;
mod downloads;
mod memory;
mod prediction;
mod secrets;
mod states;
mod trees;
mod upgrades;

use std::io::Write;

use sha2::Digest;

use crate::support::{Outcome, World, http::Server};

/// A gzip-compressed tar archive with these files; a name that ends with a slash is a directory, and one with an arrow in
/// it a link.
fn tarball<N: AsRef<str>, C: AsRef<[u8]>>(files: &[(N, C)]) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best()));
    for (name, content) in files {
        let (name, content) = (name.as_ref(), content.as_ref());
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        if let Some((name, target)) = name.split_once(" -> ") {
            header.set_entry_type(tar::EntryType::Symlink);
            builder.append_link(&mut header, name, target).expect("an entry");
            continue;
        }
        let kind = if name.ends_with('/') { tar::EntryType::Directory } else { tar::EntryType::Regular };
        header.set_entry_type(kind);
        builder.append_data(&mut header, name, content).expect("an entry");
    }
    builder.into_inner().expect("an archive").finish().expect("an archive")
}

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).expect("an entry");
        writer.write_all(content.as_bytes()).expect("an entry");
    }
    writer.finish().expect("an archive").into_inner()
}

pub(crate) fn app(version: &str) -> Vec<u8> {
    tarball(&[("bin/app", version), ("share/readme", "read me")])
}

fn sha256(bytes: &[u8]) -> String {
    hex(&sha2::Sha256::digest(bytes))
}

fn sha512(bytes: &[u8]) -> String {
    hex(&sha2::Sha512::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Bytes that no compression makes smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

/// A world whose manifest is one archive, `$W/app.tar.gz`, with these properties besides owner and group.
fn world(server: &Server, properties: &str) -> World {
    World::new().manifest(&manifest(&server.url("/app.tar.gz"), properties))
}

fn manifest(url: &str, properties: &str) -> String {
    let more = if properties.is_empty() { String::new() } else { format!(", {properties}") };
    format!("- archive:\n    - $W/app.tar.gz: {{ url: \"{url}\", $OWN, try_sleep: 10ms{more} }}\n")
}

const EXTRACT: &str = "extract_parent: $W/opt, creates: $W/opt/bin/app";

/// The one archive was changed, and this is what was done.
#[track_caller]
fn changed(outcome: &Outcome, what: &str) {
    let resource = outcome.stdout.split_whitespace().nth(1).unwrap_or_default().to_owned();
    outcome.exits(0).counts([1, 0, 0, 0]).reports(&resource, what);
}

#[track_caller]
fn stable(outcome: &Outcome) {
    outcome.exits(0).counts([0, 1, 0, 0]);
}

#[track_caller]
fn failed<'o>(outcome: &'o Outcome, why: &str) -> &'o Outcome {
    outcome.exits(1).counts([0, 0, 1, 0]).says(why)
}
