//! What is remembered of archives: which version was unpacked where, and what came of it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use super::{
    EXTRACT, app, changed, manifest, sha256, sha512, stable, tarball,
    upgrades::{release, releases, versioned},
    world,
};
use crate::support::{
    NOBODY, World,
    http::{Reply, Server},
    is_root,
};

/// The files in which something is remembered, of those that end like this.
pub(super) fn memory(world: &World, ending: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(world.state().join("archives")).expect("a folder");
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths
}

#[test]
fn another_address_with_the_same_list_of_checksums_is_another_version() {
    let list: String =
        ["1", "2"].map(|version| format!("{}  app-{version}.tar.gz\n", sha256(&release(version)))).concat();
    let server = Server::start(move |request| match request.path.as_str() {
        "/SHA256SUMS" => Reply::body(list.clone().into_bytes()),
        path => Reply::body(release(path.trim_start_matches("/app-").trim_end_matches(".tar.gz"))),
    });
    for properties in ["", ", extract_parent: $W/opt, creates: $W/opt/bin/app, cleanup: true"] {
        let of = |version: &str| {
            let sums = format!("checksum_url: \"{}\"{properties}", server.url("/SHA256SUMS"));
            manifest(&server.url(&format!("/app-{version}.tar.gz")), &sums)
        };
        let world = World::new().manifest(&of("1"));
        world.apply().exits(0).counts([1, 0, 0, 0]);
        stable(&world.apply());
        let world = world.manifest(&of("2"));
        world.apply().exits(0).counts([1, 0, 0, 0]);
        if properties.is_empty() {
            assert_eq!(fs::read(world.path("app.tar.gz")).unwrap(), release("2"));
        } else {
            assert_eq!(world.read("opt/bin/app"), "2");
        }
        stable(&world.apply());
    }
}

#[test]
fn addresses_are_kept_nowhere() {
    let body = app("1");
    let list = format!("{}  app.tar.gz\n", sha256(&body));
    let server = Server::start(move |request| {
        Reply::body(if request.path.starts_with("/SUMS") { list.clone().into_bytes() } else { body.clone() })
    });
    let address = |path: &str| format!("{}?token=c4n4ry", server.url_with("me:c4n4ry", path));
    for sensitive in ["", ", sensitive: true"] {
        let properties = format!(
            "checksum_url: \"{}\", extract_parent: $W/c4n4ry, creates: $W/c4n4ry/bin/app{sensitive}",
            address("/SUMS")
        );
        let world = World::new().manifest(&manifest(&address("/app.tar.gz"), &properties));
        world.apply().exits(0);
        let kept = memory(&world, "");
        assert_eq!(kept.len(), 4);
        for path in kept {
            let text = fs::read_to_string(&path).unwrap();
            assert!(!text.contains("c4n4ry") && !text.contains("127.0.0.1"), "{text}");
        }
        stable(&world.apply());
    }
}

#[test]
fn of_a_sensitive_archive_no_checksum_is_told() {
    let server = Server::of(app("evil"));
    let (real, wanted) = (sha256(&app("evil")), sha256(&app("1")));
    let world = world(&server, &format!("{EXTRACT}, checksum: {wanted}, sensitive: true"));
    for flags in [&[][..], &["--json"]] {
        let outcome = world.apply_with(flags);
        outcome.exits(1).says("the download has another checksum").never_says(&real).never_says(&wanted);
    }
    let releases = releases();
    for flags in [&[][..], &["--json"], &["--noop"]] {
        let properties = format!("{EXTRACT}, sensitive: true");
        let world = World::new().manifest(&versioned(&releases, "1", &properties));
        world.apply().exits(0).counts([1, 0, 0, 0]);
        let world = world.manifest(&versioned(&releases, "2", &properties));
        let outcome = world.apply_with(flags);
        for version in ["1", "2"] {
            outcome.exits(0).never_says(&sha256(&release(version)));
        }
    }
}

#[test]
fn another_kind_of_checksum_of_the_same_archive_is_not_another_version() {
    let server = Server::of(app("1"));
    let world = world(&server, &format!("{EXTRACT}, checksum: {}", sha256(&app("1"))));
    world.apply().exits(0);
    let checksum = format!("{EXTRACT}, checksum: 'sha512:{}'", sha512(&app("1")));
    let world = world.manifest(&manifest(&server.url("/app.tar.gz"), &checksum));
    stable(&world.apply());
}

#[test]
fn a_tree_that_was_tampered_with_is_found_and_repaired() {
    let server = Server::of(tarball(&[("bin/app", "1"), ("share/readme", "read me")]));
    let world = world(&server, &format!("{EXTRACT}, cleanup: true, verify: true"));
    world.apply().exits(0);
    stable(&world.apply());
    let readme = world.path("opt/share/readme");
    let chmod = |mode| move |path: &PathBuf| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    let chown = |path: &PathBuf| std::os::unix::fs::lchown(path, Some(NOBODY), None);
    let link = |path: &PathBuf| {
        let copy = path.with_extension("copy");
        fs::rename(path, &copy)?;
        symlink(&copy, path)
    };
    let mut tampers: Vec<Box<dyn Fn(&PathBuf) -> std::io::Result<()>>> = vec![
        Box::new(|path| fs::write(path, "evil")),
        Box::new(|path| fs::remove_file(path)),
        Box::new(chmod(0o600)),
        Box::new(chmod(0o777)),
        Box::new(chmod(0o4755)),
        Box::new(link),
    ];
    if is_root() {
        tampers.push(Box::new(chown));
    }
    for tamper in tampers {
        tamper(&readme).unwrap();
        let outcome = world.apply();
        changed(&outcome, "downloaded, extracted, cleaned up (verify ");
        outcome.says("opt/share/readme changed -> as extracted");
        assert_eq!(world.read("opt/share/readme"), "read me");
        let item = world.tree().item("opt/share/readme").unwrap().clone();
        assert_eq!((item.mode, item.uid), (0o755, rustix::process::geteuid().as_raw()));
        stable(&world.apply());
    }
    let quiet = World::new().manifest(&manifest(&server.url("/app.tar.gz"), EXTRACT));
    quiet.apply().exits(0);
    let quiet = quiet.file("opt/share/readme", "changed");
    stable(&quiet.apply());
}

#[test]
fn what_is_not_known_cannot_be_verified_and_that_is_told() {
    let server = Server::of(app("1"));
    let world = world(&server, &format!("{EXTRACT}, verify: true"));
    world.apply().exits(0).never_says("cannot be verified");
    fs::remove_dir_all(world.state().join("archives")).unwrap();
    let outcome = world.apply();
    stable(&outcome);
    outcome.says("opt is not known, so it cannot be verified; remove ");
}

#[test]
fn a_list_that_is_damaged_or_lost_costs_one_more_extraction() {
    let server = Server::of(app("1"));
    let world = world(&server, &format!("{EXTRACT}, verify: true"));
    world.apply().exits(0);
    let damages: [fn(&PathBuf) -> std::io::Result<()>; 4] = [
        |list| fs::write(list, "{"),
        |list| fs::write(list, ""),
        |list| fs::write(list, fs::read_to_string(list)?.replace('0', "1")),
        |list| fs::remove_file(list),
    ];
    for damage in damages {
        damage(&memory(&world, ".list")[0]).unwrap();
        let outcome = world.apply();
        changed(&outcome, "extracted (verify not known -> as extracted)");
        outcome.says("in the state directory is damaged");
        stable(&world.apply());
    }
    // Without `verify` nobody needs it.
    let world = world.manifest(&manifest(&server.url("/app.tar.gz"), EXTRACT));
    fs::remove_file(&memory(&world, ".list")[0]).unwrap();
    stable(&world.apply());
}

#[test]
fn a_record_that_is_damaged_is_told_and_set_aside() {
    let server = releases();
    let world = World::new().manifest(&versioned(&server, "1", EXTRACT));
    world.apply().exits(0);
    fs::write(&memory(&world, ".json")[0], "{").unwrap();
    let outcome = world.apply();
    stable(&outcome);
    outcome.says("what was unpacked earlier is not known");
    let folder = world.state().join("archives");
    fs::rename(&folder, world.state().join("away")).unwrap();
    fs::write(&folder, "").unwrap();
    world.apply().exits(0).says("what was unpacked earlier is not known");
    fs::remove_file(&folder).unwrap();
    fs::rename(world.state().join("away"), &folder).unwrap();
    let world = world.manifest(&versioned(&server, "2", "extract_parent: $W/opt"));
    world.apply().exits(0).counts([1, 0, 0, 0]);
    stable(&world.apply());
}
