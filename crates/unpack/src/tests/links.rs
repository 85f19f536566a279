//! Symbolic links that point through other links.

use super::*;

#[test]
fn link_can_point_through_other_links_of_the_archive() {
    let archive = tar([
        directory("versions/1/"),
        file("versions/1/app", "x"),
        symlink("versions/latest", "1"),
        symlink("current", "versions/latest"),
        symlink("app", "current/app"),
    ]);
    let scratch = Scratch::new();
    unpack(&scratch, &archive, PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("app")).unwrap(), b"x");
}

#[test]
fn link_can_point_through_as_many_links_as_the_kernel_follows() {
    let chain = |links: usize| {
        let link = |number: usize| symlink(&format!("{number:02}"), &format!("{:02}", number + 1));
        tar((1..links).map(link).chain([symlink(&format!("{links:02}"), "file"), file("file", "x")]))
    };
    let scratch = Scratch::new();
    unpack(&scratch, &chain(40), PLAIN, &rules()).unwrap();
    assert_eq!(fs::read(scratch.target().join("01")).unwrap(), b"x");
    std::os::unix::fs::symlink("01", scratch.target().join("00")).unwrap();
    fs::read(scratch.target().join("00")).unwrap_err();
    refused(&chain(41), PLAIN, "01", &Offence::LinkOut { target: "02".into() });
}
