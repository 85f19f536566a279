//! What is unpacked where, and what is refused.

use std::{fs, os::unix::fs::PermissionsExt};

use super::{EXTRACT, app, changed, failed, sha256, tarball, world, zipped};
use crate::support::{NOBODY, World, http::Server, is_root};

/// A tar archive with one entry that no tool would make.
fn crafted(kind: tar::EntryType, name: &str, target: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(0);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(512 * 3, 0);
    std::io::Write::write_all(&mut encoder, &bytes).expect("an archive");
    encoder.finish().expect("an archive")
}

#[test]
fn archives_that_are_out_of_order_are_refused_whole_and_the_entry_is_named() {
    use tar::EntryType;
    for (kind, name, target, why) in [
        (EntryType::Regular, "../../evil", "", "entry \"../../evil\" leads out of the target"),
        (EntryType::Regular, "/etc/evil", "", "entry \"/etc/evil\" has an absolute path"),
        (EntryType::Symlink, "link", "/etc", "entry \"link\" is a link to \"/etc\""),
        (EntryType::Link, "hard", "/etc/passwd", "entry \"hard\" is a link to \"/etc/passwd\""),
        (EntryType::Char, "device", "", "entry \"device\" is a character device"),
        (EntryType::Fifo, "pipe", "", "entry \"pipe\" is a fifo"),
    ] {
        let server = Server::of(crafted(kind, name, target));
        let world = world(&server, &format!("{EXTRACT}, checksum: {}", sha256(&crafted(kind, name, target))));
        let world = world.file("app.tar.gz", "old").file("opt/share/readme", "old");
        let before = world.tree();
        failed(&world.apply(), why).says("nothing of it was unpacked");
        assert_eq!(world.tree(), before, "{name}");
        assert_eq!(server.requests().len(), 1, "another download would be the same");
    }
}

#[test]
fn nothing_is_unpacked_into_what_is_mounted_below_the_target() {
    let server = Server::of(app("one"));
    let Some(world) = world(&server, EXTRACT).dir("opt").tmpfs("opt/bin", "size=1m") else { return };
    failed(&world.apply(), "is the root of another file system").says("unmount it first");
    assert_eq!(fs::read_dir(world.path("opt/bin")).unwrap().count(), 0);
}

#[test]
fn a_refused_zip_archive_leaves_the_old_archive_and_tree() {
    let body = zipped(&[("bin/app", "x"), ("bin/app/below", "y")]);
    let server = Server::of(body.clone());
    let world = World::new().file("app.zip", "old").file("opt/share/readme", "old").manifest(&format!(
        "- archive: [{{ $W/app.zip: {{ url: \"{}\", $OWN, extract_parent: $W/opt, checksum: {} }} }}]",
        server.url("/app.zip"),
        sha256(&body)
    ));
    let before = world.tree();
    failed(&world.apply(), "entry \"bin/app/below\" lies below \"bin/app\", which is no directory");
    assert_eq!(world.tree(), before);
}

#[test]
fn limits_stop_bombs_and_can_be_raised() {
    let server = Server::of(tarball(&[("bin/app", vec![0_u8; 70 << 20])]));
    failed(&world(&server, EXTRACT).apply(), "more than 250 times its size, as entry \"bin/app\" shows")
        .says("raise `max_ratio`");
    failed(&world(&server, &format!("{EXTRACT}, max_size: 1MiB")).apply(), "more than 1MiB")
        .says("raise `max_size`");
    world(&server, &format!("{EXTRACT}, max_ratio: 2000")).apply().exits(0);
    let many = Server::of(tarball(&[("bin/app", "x"), ("b", "x"), ("c", "x")]));
    failed(&world(&many, &format!("{EXTRACT}, max_entries: 3")).apply(), "more than 3 entries")
        .says("raise `max_entries`");
    world(&many, &format!("{EXTRACT}, max_entries: 4")).apply().exits(0);
}

#[test]
fn what_is_unpacked_belongs_to_the_owner_and_has_no_set_id_bits() {
    if !is_root() {
        return;
    }
    let mut builder = tar::Builder::new(Vec::new());
    for (name, mode) in [("bin/app", 0o6755), ("bin/data", 0o600)] {
        let mut header = tar::Header::new_ustar();
        header.set_mode(mode);
        header.set_uid(1);
        header.set_size(1);
        header.set_entry_type(tar::EntryType::Regular);
        builder.append_data(&mut header, name, &b"x"[..]).unwrap();
    }
    let body = builder.into_inner().unwrap();
    let server = Server::of(body);
    let world = World::new().manifest(&format!(
        "- archive: [{{ $W/app.tar: {{ url: \"{}\", owner: '{NOBODY}', group: '{NOBODY}', extract_parent: $W/opt }} }}]",
        server.url("/app.tar")
    ));
    world.apply().exits(0);
    let tree = world.tree();
    for (name, mode) in [
        ("opt", 0o755),
        ("opt/bin", 0o755),
        ("opt/bin/app", 0o755),
        ("opt/bin/data", 0o600),
        ("app.tar", 0o644),
    ] {
        let item = tree.item(name).unwrap();
        assert_eq!((item.uid, item.gid, item.mode), (NOBODY, NOBODY, mode), "{name}");
    }
    world.apply().exits(0).counts([0, 1, 0, 0]);
}

#[test]
fn directories_that_exist_keep_what_they_are_and_hold() {
    let server = Server::of(app("1"));
    let world =
        world(&server, EXTRACT).file("opt/bin/other", "mine").mode("opt/bin", 0o711).mode("opt", 0o750);
    changed(&world.apply(), "downloaded, extracted");
    let tree = world.tree();
    assert_eq!((tree.item("opt").unwrap().mode, tree.item("opt/bin").unwrap().mode), (0o750, 0o711));
    assert_eq!((world.read("opt/bin/other").as_str(), world.read("opt/bin/app").as_str()), ("mine", "1"));
    assert!(tree.leftovers().is_empty());
}

#[test]
fn missing_parents_of_the_target_are_made() {
    let server = Server::of(app("1"));
    let world = world(&server, "extract_parent: $W/a/b/c, creates: $W/a/b/c/bin/app");
    changed(&world.apply(), "downloaded, extracted");
    assert_eq!(world.read("a/b/c/bin/app"), "1");
    assert!(world.tree().leftovers().is_empty());
}

#[test]
fn links_in_the_target_are_not_followed() {
    let server = Server::of(app("1"));
    let world = world(&server, EXTRACT).dir("opt").dir("outside").link("opt/share", "$W/outside");
    let before = world.tree();
    failed(&world.apply(), "opt/share\" is a symbolic link to");
    assert_eq!(world.tree(), before);
    assert!(
        world.tree().item("outside").is_some()
            && fs::read_dir(world.path("outside")).unwrap().next().is_none()
    );
}

#[test]
fn an_archive_without_what_creates_names_is_a_failure_that_says_so() {
    let server = Server::of(tarball(&[("app-1/bin/app", "1")]));
    let world = world(&server, &format!("{EXTRACT}, cleanup: true"));
    let before = world.tree();
    let outcome = world.apply();
    failed(&outcome, "the archive does not hold")
        .says("opt/bin/app")
        .says("(creates)")
        .says("strip_components");
    assert_eq!(world.tree(), before, "neither the archive nor its tree was published");
    assert_eq!(server.requests().len(), 1, "another download would be the same");
    let world = world.manifest(&super::manifest(
        &server.url("/app.tar.gz"),
        &format!("{EXTRACT}, strip_components: 1, cleanup: true"),
    ));
    world.apply().exits(0);
    assert_eq!(world.read("opt/bin/app"), "1");
}

#[test]
fn a_user_without_privileges_unpacks_directories_that_forbid_writing() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(0o555);
    header.set_size(0);
    builder.append_data(&mut header, "locked/", &b""[..]).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_mode(0o444);
    header.set_size(1);
    header.set_entry_type(tar::EntryType::Regular);
    builder.append_data(&mut header, "locked/file", &b"x"[..]).unwrap();
    let server = Server::of(builder.into_inner().unwrap());
    let uid = if is_root() { NOBODY } else { return };
    for exists in [false, true] {
        let world = World::new().manifest(&format!(
            "- archive: [{{ $W/mine/app.tar: {{ url: \"{}\", owner: '{uid}', group: '{uid}', extract_parent: $W/mine/opt }} }}]",
            server.url("/app.tar")
        ));
        let world = world.dir("mine").owner("mine", uid, uid);
        let world = if exists { world.dir("mine/opt").owner("mine/opt", uid, uid) } else { world };
        world.ccm(["apply", "site.yaml"]).uid(uid).run().exits(0);
        assert_eq!(world.read("mine/opt/locked/file"), "x");
        let mode = fs::metadata(world.path("mine/opt/locked")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o555);
        assert!(world.tree().leftovers().is_empty(), "{:?}", world.tree());
    }
}
