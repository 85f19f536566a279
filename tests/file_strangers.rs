//! Files that somebody else made, and may still have in his hands.

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    process::{Child, Command, Stdio},
};

use crate::support::{NOBODY, Trace, World, fits_strace, has, is_root, skip, wait_until};

const WANTED: &str = "#!/bin/sh\necho fine\n";

/// A process of another user who made a file and keeps it open for writing.
struct Holder(Child);

impl Holder {
    /// Has `path` in a sticky folder made with exactly the wanted content and this mode.
    fn of(world: &World, mode: &str) -> Self {
        let script = format!(
            "printf '#!/bin/sh\\necho fine\\n' > run.sh && chmod {mode} run.sh && exec 3<>run.sh && : > made && read go && \
             printf '#!/bin/sh\\necho taken\\n' >&3"
        );
        let child = Command::new("/bin/sh")
            .args(["-c", &script])
            .current_dir(world.path("tmp"))
            .uid(NOBODY)
            .gid(NOBODY)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        wait_until("the file is made", || world.path("tmp/made").exists());
        Self(child)
    }

    /// Has it write to what it kept open.
    fn writes(mut self) {
        self.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn a_descriptor_that_a_stranger_kept_open_never_reaches_a_file_of_root_s() {
    if !is_root() {
        return;
    }
    let wanted = format!("content: {WANTED:?}");
    for properties in [wanted.as_str(), "source: run.sh", ""] {
        for mode in ["0755", "0700", "0777"] {
            let world = World::new().beside("run.sh", WANTED).dir("tmp").mode("tmp", 0o1777);
            let world = world
                .files(&format!("- $W/tmp/run.sh: {{ {properties} }}").replace("{  }", "{ mode: '0755' }"));
            let site = fs::read_to_string(world.base().join("site.yaml")).unwrap();
            let world = world.manifest(&site.replace("0644", "0755"));
            let holder = Holder::of(&world, mode);
            world.apply_with(&["--noop"]).exits(0).counts([1, 0, 0, 0]);
            world.apply().exits(0).counts([1, 0, 0, 0]);
            holder.writes();
            assert_eq!(world.read("tmp/run.sh"), WANTED, "{properties} {mode}");
            let found = fs::metadata(world.path("tmp/run.sh")).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, 0, 0o755));
            world.apply().exits(0).counts([0, 1, 0, 0]);
        }
    }
}

#[test]
fn who_could_write_to_a_file_by_its_mode_does_not_keep_it() {
    if !is_root() {
        return;
    }
    // The file's group and mode, those that are wanted, and whether it becomes another one.
    let cases = [
        (NOBODY, 0o664, "0", "0644", true),
        (NOBODY, 0o664, "65534", "0644", true),
        (NOBODY, 0o664, "65534", "0660", false),
        (0, 0o646, "0", "0644", true),
        (0, 0o644, "0", "0600", false),
        (NOBODY, 0o644, "0", "0644", false),
    ];
    for (gid, mode, group, wanted, is_new) in cases {
        let world = World::new().file("x", "bytes").owner("x", 0, gid).mode("x", mode);
        let world = world.files(&format!("- $W/x: {{ group: '{group}', mode: '{wanted}' }}"));
        let before = fs::metadata(world.path("x")).unwrap().ino();
        world.apply().exits(0).counts([1, 0, 0, 0]);
        let after = fs::metadata(world.path("x")).unwrap();
        assert_eq!(after.ino() != before, is_new, "{mode:o} to {wanted}");
        assert_eq!(world.read("x"), "bytes");
        assert_eq!(format!("{:04o}", after.mode() & 0o7777), wanted);
    }
}

#[test]
fn a_directory_of_a_stranger_is_taken_over_with_what_he_put_into_it() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("d").file("d/x", "theirs").owner("d/x", NOBODY, NOBODY);
    let world = world.owner("d", NOBODY, NOBODY).mode("d", 0o755).link("d/way", "$W/outside");
    std::os::unix::fs::lchown(world.path("d/way"), Some(NOBODY), Some(NOBODY)).unwrap();
    let world = world
        .dir("outside")
        .files("- $W/d: { ensure: directory, mode: '0755' }\n- $W/d/way/y: { content: new }");
    world.apply().exits(1).counts([1, 0, 1, 0]).says(&world.fill("$W/d/way")).says("uid 65534 (nobody)");
    assert_eq!(world.tree().item("d/x").unwrap().uid, NOBODY, "what is in it stays whose it was");
    assert!(fs::read_dir(world.path("outside")).unwrap().next().is_none());
}

#[test]
fn a_file_that_its_owner_made_terabytes_long_is_replaced_without_reading_it() {
    if !fits_strace() || !has("truncate") {
        return;
    }
    for properties in ["content: small", "source: small"] {
        let world = World::new().beside("small", "small").files(&format!("- $W/x: {{ {properties} }}"));
        let made = Command::new("truncate").args(["-s", "15T"]).arg(world.path("x")).status().unwrap();
        if !made.success() {
            skip("the file system has no files of that size");
            return;
        }
        world.apply_with(&["--noop"]).exits(0).counts([1, 0, 0, 0]);
        let trace = Trace::of(&world, &[]);
        trace.outcome.exits(0).counts([1, 0, 0, 0]);
        let of_the_old = world.fill("<$W/x>");
        let reads =
            trace.calls.iter().filter(|call| call.name().contains("read") && call.text.contains(&of_the_old));
        // Only the new file is read: to verify it, and for its digest in the history.
        assert!(reads.count() <= 4);
        assert_eq!(world.read("x"), "small");
    }
}

#[test]
fn the_status_of_a_file_without_end_can_be_interrupted() {
    if !has("truncate") {
        return;
    }
    let world = World::new();
    let made = Command::new("truncate").args(["-s", "15T"]).arg(world.path("x")).status().unwrap();
    if !made.success() {
        skip("the file system has no files of that size");
        return;
    }
    let path = world.path("x").display().to_string();
    let child = world.ccm(["status", "file", &path]).start();
    let descriptors = format!("/proc/{}/fd", child.id());
    let is_reading = || {
        let open = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| target == world.path("x"))
    };
    wait_until("it is reading", is_reading);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let outcome = crate::support::finish(child, "status".to_owned());
    assert_ne!(outcome.code, 0, "{outcome}");
}

#[test]
fn a_source_behind_a_link_of_somebody_else_is_refused_by_name() {
    if !is_root() {
        return;
    }
    let cases =
        [("theirs/link", "theirs/link"), ("theirs/way/secret", "theirs/way"), ("tmp/link", "tmp/link")];
    for (source, component) in cases {
        let world = World::new().file("secret", "root's own").mode("secret", 0o600).dir("theirs");
        let world =
            world.link("theirs/link", "$W/secret").link("theirs/way", "$W").dir("tmp").mode("tmp", 0o1777);
        let world = world.link("tmp/link", "$W/secret").owner("theirs", NOBODY, NOBODY);
        for link in ["theirs/link", "theirs/way", "tmp/link"] {
            std::os::unix::fs::lchown(world.path(link), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let world = world.files(&format!("- $W/x: {{ source: $W/{source} }}"));
        for flags in [&["--noop"][..], &[]] {
            let outcome = world.apply_with(flags);
            outcome.exits(1).says("cannot read source").says(&world.fill(&format!("$W/{component}")));
            outcome.says("(nobody)").says("site.yaml:3:");
            assert!(!world.path("x").exists());
        }
    }
}

#[test]
fn functions_do_not_follow_a_link_of_an_untrusted_user() {
    if !is_root() {
        return;
    }
    for function in ["file", "readFile", "template", "jinja"] {
        for name in ["theirs/link", "theirs/way/secret", "tmp/link", "tmp/hard"] {
            let world = World::new().file("secret", "root's own").mode("secret", 0o600).dir("theirs");
            let world = world.link("theirs/link", "$W/secret").link("theirs/way", "$W").dir("tmp");
            let world =
                world.mode("tmp", 0o1777).link("tmp/link", "$W/secret").owner("theirs", NOBODY, NOBODY);
            fs::hard_link(world.path("secret"), world.path("tmp/hard")).unwrap();
            for link in ["theirs/link", "theirs/way", "tmp/link"] {
                std::os::unix::fs::lchown(world.path(link), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            // The attacker can read the file that is made.
            let world = world
                .files(&format!("- $W/x: {{ content: \"${{ {function}('$W/{name}') }}\", mode: '0644' }}"));
            for flags in [&["--noop"][..], &[]] {
                let outcome = world.apply_with(flags);
                let shown = format!("{}{}", outcome.stdout, outcome.stderr);
                assert!(shown.contains("cannot read"), "{function} {name}: {shown}");
                assert!(shown.contains(name.trim_end_matches("/secret")), "{function} {name}: {shown}");
                assert!(!world.path("x").exists(), "{function} {name}");
            }
        }
    }
}

#[test]
fn templates_of_an_untrusted_user_see_neither_files_nor_the_environment_nor_secrets() {
    const DATA: &str = "data: { port: 8080, db: { password: hunter2, name: web } }\nccm:\n  resources:\n";
    if !is_root() {
        return;
    }
    for (template, expected) in [
        ("{{ Data.port }} {{ Data.db.name }} {{ upper('a') }}", Ok("8080 web A")),
        ("{{ Facts.hostname != '' }}", Ok("true")),
        ("{{ Environ.CANARY }}", Err("Environ")),
        ("{{ Data.db.password }}", Err("password")),
        ("{{ Data.db }}", Ok("{\"name\":\"web\"}")),
        ("{{ lookup('data.db.password', 'none') }}", Ok("none")),
        ("{{ file('$W/secret') }}", Err("failed")),
        ("{{ readFile('$W/secret') }}", Err("failed")),
    ] {
        for way in ["template", "jinja", "part", "scaffold"] {
            for mode in ["0644", "0666"] {
                let world = World::new().file("secret", "root's own").dir("tree/_partials");
                let (text, page) = (world.fill(template), world.fill("{% include '$W/tree/page' %}"));
                let world = world.file("tree/page", &text).file("page", page);
                let owner = if mode == "0644" { NOBODY } else { 0 };
                let bits = u32::from_str_radix(mode, 8).unwrap();
                let world = world.owner("tree/page", owner, owner).mode("tree/page", bits);
                let resource = match way {
                    "scaffold" => {
                        "    - scaffold:\n        - $W/out: { source: $W/tree, engine: jinja, $OWN, mode: '0644' }\n".to_owned()
                    }
                    "part" => {
                        "    - file:\n        - $W/out/page: { content: \"${ jinja('$W/page') }\", $OWN, mode: '0644' }\n".to_owned()
                    }
                    way => {
                        format!("    - file:\n        - $W/out/page: {{ content: \"${{ {way}('$W/tree/page') }}\", $OWN, mode: '0644' }}\n")
                    }
                };
                let world = if way == "scaffold" { world } else { world.dir("out") };
                let world = world.manifest(&format!("{DATA}{resource}"));
                let outcome = world.ccm(["apply", "site.yaml"]).env("CANARY", "canary").run();
                let found = fs::read_to_string(world.path("out/page"));
                // A trusted template includes nothing of an untrusted user.
                match if way == "part" { Err("cannot include") } else { expected } {
                    Ok(expected) => assert_eq!(found.unwrap(), expected, "{way} {template}"),
                    Err(reason) => {
                        let shown = format!("{}{}", outcome.stdout, outcome.stderr);
                        assert!(shown.contains(reason), "{way} {template}: {shown}");
                        assert!(found.is_err(), "{way} {template}: {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_source_with_several_names_in_a_folder_of_somebody_else_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new().file("secret", "root's own").mode("secret", 0o600).dir("theirs");
    fs::hard_link(world.path("secret"), world.path("theirs/x")).unwrap();
    let world = world.owner("theirs", NOBODY, NOBODY).files("- $W/x: { source: $W/theirs/x }");
    world.apply().exits(1).says("hard links").says("cannot read source");
}

#[test]
fn manual_pages_are_not_written_through_links() {
    let world = World::new().dir("man").file("victim", "kept").link("man/ccm.1", "$W/victim");
    let folder = world.path("man").display().to_string();
    world.ccm(["man", &folder]).run().exits(0);
    assert_eq!(world.read("victim"), "kept");
    assert!(world.read("man/ccm.1").contains(".TH CCM"));
    assert!(!world.path("man/ccm.1").is_symlink());
    assert_eq!(fs::metadata(world.path("man/ccm-apply.1")).unwrap().permissions().mode() & 0o777, 0o644);
}
