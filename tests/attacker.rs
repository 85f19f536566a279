//! Users who want root to write where they cannot: nothing outside their own folder ever changes.

use std::{
    collections::VecDeque,
    env, fs,
    io::{Cursor, Read, Write},
    os::unix::{
        fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::fs::{CWD, FileType, OFlags};
use sha2::{Digest, Sha256};

use crate::{
    accounts::{ANN, Machine},
    support::{NOBODY, Trace, Tree, World, fits_strace, http::Server, is_root, tampered, wait_until},
};

/// Where the attacker is to work, for the process that is it.
const FOLDER: &str = "CCM_TEST_ATTACK";

/// How often root applies a manifest while it is attacked, at least.
const ROUNDS: usize = 20;

/// Another process of the tests, run by a user whom nobody trusts.
struct Attacker(Child);

impl Attacker {
    fn start(world: &World, folder: &str) -> Self {
        Self::playing("the_attacker", world, folder)
    }

    /// Starts the attacker that a test of this file plays.
    fn playing(test: &str, world: &World, folder: &str) -> Self {
        // The user may not have the right to reach the program where it was built. Another process makes the copy: a
        // program that is open for writing anywhere, as in a child that another test is just starting, cannot be run.
        let program = world.base().join("attacker");
        let copied = Command::new("cp").arg(env::current_exe().expect("this program")).arg(&program).status();
        assert!(copied.expect("cp").success());
        let mut command = Command::new(program);
        command.args([&format!("attacker::{test}"), "--exact", "--ignored"]).env(FOLDER, world.path(folder));
        command.uid(NOBODY).gid(NOBODY).stdout(Stdio::null()).stderr(Stdio::null());
        let mut attacker = Self(command.spawn().expect("the attacker starts"));
        // It has begun when it has made its first link.
        let sign = world.path(folder).join("begun");
        wait_until("the attacker begins", || {
            attacker.lives();
            sign.exists()
        });
        attacker
    }

    /// Fails where nobody attacks any more.
    #[track_caller]
    fn lives(&mut self) {
        let ended = self.0.try_wait().unwrap();
        assert!(ended.is_none(), "the attacker has died: {ended:?}");
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "the other side of the tests below, which start it as another user"]
fn the_attacker() {
    let folder = PathBuf::from(env::var_os(FOLDER).expect("a folder to work in"));
    let mut held = VecDeque::new();
    // Whatever does not work out is tried again in the next round.
    loop {
        for name in ["x", "d", "gone"] {
            let path = folder.join(name);
            for target in ["../outside", "../outside/victim", "../outside/new"] {
                clear(&path);
                let _ = symlink(target, &path);
                let _ = fs::write(folder.join("begun"), "");
                clear(&path);
                let _ = fs::create_dir(&path);
                let _ = symlink(Path::new("..").join(target), path.join("x"));
                let _ = fs::write(path.join("victim"), "");
                clear(&path);
                hold(&path, &mut held);
                clear(&path);
                let _ = rustix::fs::mknodat(CWD, &path, FileType::Fifo, 0o644.into(), 0);
                clear(&path);
                let _ = fs::write(&path, "mine");
                let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o666));
                // Another file takes its place, after it was looked at and before it is copied.
                let _ = fs::rename(folder.join("../outside/victim"), &path);
                let _ = fs::hard_link(folder.join("../outside/victim"), folder.join("second"));
                let _ = fs::rename(folder.join("second"), &path);
                let _ = fs::hard_link(folder.join("../outside/victim"), path.join("x"));
            }
        }
    }
}

#[test]
#[ignore = "the other side of a test below, which starts it as another user"]
fn the_owner_of_keys() {
    let home = PathBuf::from(env::var_os(FOLDER).expect("a folder to work in"));
    let (folder, keys) = (home.join(".ssh"), home.join(".ssh/authorized_keys"));
    loop {
        for target in ["../outside", "../outside/victim", "../outside/folder", "../outside/new"] {
            clear(&folder);
            let _ = symlink(target, &folder);
            let _ = fs::write(home.join("begun"), "");
            clear(&folder);
            let _ = fs::create_dir(&folder);
            let _ = symlink(Path::new("..").join(target), &keys);
            let _ = fs::remove_file(&keys);
            let _ = fs::hard_link(home.join("../outside/victim"), &keys);
            let _ = fs::remove_file(&keys);
            let _ = rustix::fs::mknodat(CWD, &keys, FileType::Fifo, 0o644.into(), 0);
            let _ = fs::remove_file(&keys);
            let _ = fs::create_dir(&keys);
            clear(&folder);
            let _ = fs::create_dir(&folder);
            let _ = fs::write(&keys, "# mine\n");
        }
    }
}

#[test]
fn keys_of_an_attacker_never_lead_out_of_the_home() {
    let Some(machine) = Machine::of(|| besieged(0o755, NOBODY)) else { return };
    let manifest =
        format!("- user: [{{ nobody: {{ authorized_keys: ['{ANN}'], authorized_keys_only: true }} }}]\n");
    // Not with `usermod`: whoever has processes cannot be given another home.
    let passwd = machine.world.path("etc/passwd");
    let text = fs::read_to_string(&passwd).unwrap();
    let moved = machine.world.fill(&format!("nobody:x:{NOBODY}:{NOBODY}::$W/theirs:/bin/sh\n"));
    let others = text.lines().filter(|line| !line.starts_with("nobody:")).map(|line| format!("{line}\n"));
    fs::write(&passwd, others.chain([moved]).collect::<Vec<_>>().concat()).unwrap();
    let outside = machine.world.path("outside");
    let before = Tree::of(&outside);
    let mut attacker = Attacker::playing("the_owner_of_keys", &machine.world, "theirs");
    let mut is_hit = false;
    for _ in 0..ROUNDS {
        let outcome = machine.apply(&manifest, "");
        assert!(matches!(outcome.code, 0 | 1), "{outcome}");
        assert_eq!(Tree::of(&outside), before, "{outcome}");
        is_hit |= outcome.code == 1 && outcome.stdout.contains("/theirs/.ssh");
    }
    attacker.lives();
    drop(attacker);
    assert!(is_hit, "the attack was none");
    clear(&machine.world.path("theirs/.ssh"));
    machine.apply(&manifest, "").exits(0);
    assert_eq!(machine.world.read("theirs/.ssh/authorized_keys"), format!("{ANN}\n"));
}

/// Makes exactly the file that root wants, keeps it open, and writes to those that were kept before.
fn hold(path: &Path, held: &mut VecDeque<fs::File>) {
    for file in &*held {
        let _ = file.write_all_at(b"taken", 0);
    }
    if let Ok(mut file) = fs::File::options().read(true).write(true).create_new(true).open(path) {
        let _ = file.write_all(b"new");
        held.push_back(file);
    }
    if held.len() > 8 {
        held.pop_front();
    }
}

/// No file of root's holds what the attacker wrote to it, and no file of the attacker's what only root may read.
fn nothing_changed_hands(world: &World) {
    for name in ["theirs/x", "theirs/d/x"] {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let Ok(mut file) = fs::File::options().read(true).custom_flags(flags).open(world.path(name)) else {
            continue;
        };
        let found = file.metadata().unwrap();
        let mut text = String::new();
        if !found.is_file() || found.nlink() > 1 || file.read_to_string(&mut text).is_err() {
            continue;
        }
        match found.uid() {
            0 => assert_eq!(text, "new", "{name} is root's"),
            _ => assert!(!text.contains("kept"), "{name} is the attacker's"),
        }
    }
}

fn clear(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
}

/// What must never change, and a folder of the attacker.
fn besieged(mode: u32, owner: u32) -> World {
    let world =
        World::new().file("outside/victim", "kept").mode("outside/victim", 0o600).mode("outside", 0o755);
    world
        .file("outside/folder/inside", "kept")
        .dir("theirs")
        .owner("theirs", owner, owner)
        .mode("theirs", mode)
}

/// Root applies one manifest after the other, and nothing outside changes.
fn withstands(world: World, manifests: &[&str], mut expected: Vec<i32>) {
    let world = manifests.iter().enumerate().fold(world, |world, (number, manifest)| {
        let text = world.fill(manifest);
        world.beside(&format!("{number}.yaml"), text)
    });
    let outside = world.path("outside");
    let before = Tree::of(&outside);
    let mut attacker = Attacker::start(&world, "theirs");
    let mut rounds = 0..;
    // How often the attacker is faster is not ours to say: it goes on until all was seen.
    wait_until("the attack succeeds in what it can, and fails", || {
        let round = rounds.next().unwrap_or(ROUNDS);
        attacker.lives();
        let manifest = format!("{}.yaml", round % manifests.len());
        let outcome = world.ccm(["apply", &manifest]).run();
        assert!(matches!(outcome.code, 0 | 1), "{outcome}");
        assert_eq!(Tree::of(&outside), before, "{outcome}");
        nothing_changed_hands(&world);
        expected.retain(|code| *code != outcome.code);
        round >= ROUNDS && expected.is_empty()
    });
}

const THEIRS: &str = "\
- file:
  - defaults: { owner: '65534', group: '65534', mode: '0640' }
  - $W/theirs/x: { content: new }
  - $W/theirs/d: { ensure: directory, mode: '0750' }
  - $W/theirs/d/x: { content: new }
  - $W/theirs/d/e/f: { ensure: directory }
";
const ATTRIBUTES: &str = "\
- file:
  - defaults: { owner: '65534', group: '65534', mode: '0644' }
  - $W/theirs/x:
  - $W/theirs/d:
";
const REMOVAL: &str = "\
- file:
  - defaults: { ensure: absent, force: true }
  - $W/theirs/x:
  - $W/theirs/d/x:
  - $W/theirs/gone:
  - $W/theirs/d:
";
const ROOTS: &str = "\
- file:
  - defaults: { owner: root, group: root, mode: '0644' }
  - $W/theirs/x: { content: new }
  - $W/theirs/d: { ensure: directory, mode: '0750' }
  - $W/theirs/d/x: { content: new }
";

const EDITS: &str = "\
- file:
  - defaults: { owner: '65534', group: '65534', mode: '0640', create: true, edit: [{ line: more }] }
  - $W/theirs/x:
  - $W/theirs/d/x:
";
const LINKS: &str = "\
- file:
  - defaults: { ensure: link, target: ../outside/victim, force: true }
  - $W/theirs/x:
  - $W/theirs/d/x:
  - $W/theirs/d:
";
const SCAFFOLD: &str = "\
- scaffold:
  - $W/theirs/d: { source: tree, owner: '65534', group: '65534', purge: true, directory_mode: '0750' }
  - $W/theirs/gone: { source: tree, ensure: absent }
";

/// Root changes files and undoes that, and nothing outside changes.
fn withstands_undo(flags: &[&str]) {
    let world = besieged(0o755, NOBODY);
    let (first, second) = (world.fill(THEIRS), world.fill(REMOVAL));
    let world = world.beside("0.yaml", first).beside("1.yaml", second);
    let outside = world.path("outside");
    let before = Tree::of(&outside);
    let mut attacker = Attacker::start(&world, "theirs");
    let (mut undone, mut rounds) = (0, 0..);
    wait_until("root undoes changes while it is attacked", || {
        let round = rounds.next().unwrap_or(ROUNDS);
        attacker.lives();
        world.ccm(["apply", &format!("{}.yaml", round % 2)]).run();
        let outcome = world.ccm(["undo", "last"].iter().chain(flags)).run();
        undone += usize::from(outcome.stdout.contains("1 changed") || outcome.stdout.contains("2 changed"));
        assert!(matches!(outcome.code, 0..=2), "{outcome}");
        assert_eq!(Tree::of(&outside), before, "{outcome}");
        nothing_changed_hands(&world);
        round >= ROUNDS && undone > 0
    });
}

#[test]
fn undo_in_a_folder_of_the_attacker_never_leads_out_of_it() {
    if is_root() {
        withstands_undo(&[]);
        withstands_undo(&["--force"]);
    }
}

#[test]
fn undo_with_force_does_not_change_a_file_through_a_hard_link() {
    if !is_root() {
        return;
    }
    let world = besieged(0o755, NOBODY).file("theirs/x", "own").mode("theirs/x", 0o600);
    let manifest =
        world.fill("- file:\n    - $W/theirs/x: { owner: '65534', group: '65534', mode: '0666' }\n");
    let world = world.beside("site.yaml", manifest);
    world.apply().exits(0);
    fs::remove_file(world.path("theirs/x")).unwrap();
    fs::hard_link(world.path("outside/victim"), world.path("theirs/x")).unwrap();
    let before = Tree::of(&world.path("outside"));
    for flags in [&[][..], &["--force"]] {
        let outcome = world.ccm(["undo", "last"].iter().chain(flags)).run();
        assert_eq!(Tree::of(&world.path("outside")), before, "{outcome}");
        assert!(!flags.is_empty() || outcome.code == 1, "{outcome}");
    }
}

#[test]
fn edits_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o755, NOBODY), &[EDITS], vec![1]);
    }
}

#[test]
fn links_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o755, NOBODY), &[LINKS, REMOVAL], vec![]);
    }
}

#[test]
fn scaffolds_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        let world = besieged(0o755, NOBODY).beside("tree/x", "new").beside("tree/victim", "new");
        withstands(world, &[SCAFFOLD], vec![1]);
    }
}

#[test]
fn files_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o755, NOBODY), &[THEIRS, ATTRIBUTES], vec![1]);
    }
}

#[test]
fn removals_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o755, NOBODY), &[REMOVAL], vec![0]);
    }
}

#[test]
fn files_in_a_folder_for_everybody_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o1777, 0), &[ROOTS, REMOVAL], vec![0]);
    }
}

#[test]
fn files_of_root_in_a_folder_of_the_attacker_never_lead_out_of_it() {
    if is_root() {
        withstands(besieged(0o755, NOBODY), &[ROOTS], vec![1]);
    }
}

#[test]
fn a_file_of_root_in_a_folder_of_somebody_else_is_written_and_kept_right() {
    if !is_root() {
        return;
    }
    let docroot = || World::new().beside("page", "new").dir("docroot").owner("docroot", NOBODY, NOBODY);
    let theirs = || {
        let world = docroot().file("docroot/x", "new").owner("docroot/x", NOBODY, NOBODY);
        let world = world.dir("docroot/d").owner("docroot/d", NOBODY, NOBODY);
        world.file("docroot/d/x", "other").owner("docroot/d/x", NOBODY, NOBODY)
    };
    let cases: [&dyn Fn() -> World; 3] = [&docroot, &|| docroot().dir("docroot/d"), &theirs];
    for start in cases {
        for properties in ["content: new", "source: page"] {
            let wanted = format!("{{ {properties}, group: '65534', mode: '0640' }}");
            let world = start();
            fs::create_dir_all(world.path("docroot/d")).unwrap();
            let world = world.files(&format!("- $W/docroot/x: {wanted}\n- $W/docroot/d/x: {wanted}"));
            world.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]);
            world.apply().exits(0).counts([2, 0, 0, 0]);
            for name in ["docroot/x", "docroot/d/x"] {
                let found = fs::metadata(world.path(name)).unwrap();
                assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, NOBODY, 0o640));
                assert_eq!(world.read(name), "new");
            }
            world.apply().exits(0).counts([0, 2, 0, 0]);
            // Drift of the mode alone is repaired by writing it anew.
            let world = world.mode("docroot/x", 0o600);
            world.apply_with(&["--noop"]).exits(0).counts([1, 1, 0, 0]);
            world.apply().exits(0).counts([1, 1, 0, 0]);
            assert_eq!(fs::metadata(world.path("docroot/x")).unwrap().mode() & 0o7777, 0o640);
        }
    }
}

#[test]
fn a_component_of_another_user_on_the_way_to_what_cannot_be_written_whole_is_refused_and_named() {
    if !is_root() {
        return;
    }
    let cases = [
        ("theirs/x", "ensure: directory"),
        ("theirs/ours/x", "ensure: directory"),
        ("theirs/a/b", "ensure: directory"),
        ("theirs/file", "mode: '0600'"),
    ];
    for (path, properties) in cases {
        let world =
            World::new().dir("theirs/ours").file("theirs/file", "kept").owner("theirs", NOBODY, NOBODY);
        let world = world.files(&format!("- $W/{path}: {{ {properties} }}"));
        let before = world.tree();
        for flags in [&["--noop"][..], &[]] {
            let outcome = world.apply_with(flags);
            outcome
                .exits(1)
                .says(&world.fill("\"$W/theirs\" belongs to uid 65534 (nobody)"))
                .counts([0, 0, 1, 0]);
            assert_eq!(world.tree(), before, "{outcome}");
        }
    }
}

#[test]
fn a_folder_that_everybody_may_write_to_without_the_sticky_bit_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("open").mode("open", 0o777).files("- $W/open/x: { content: new }");
    for flags in [&["--noop"][..], &[]] {
        world
            .apply_with(flags)
            .exits(1)
            .says("world-writable without the sticky bit")
            .says(&world.fill("\"$W/open\""));
    }
    assert_eq!(world.tree().names(), ["open"]);
}

#[test]
fn a_hard_link_planted_by_another_user_is_not_given_away() {
    if !is_root() {
        return;
    }
    for mode in ["0600", "0644"] {
        let world = World::new()
            .file("victim", "kept")
            .mode("victim", 0o600)
            .dir("theirs")
            .owner("theirs", NOBODY, NOBODY);
        fs::hard_link(world.path("victim"), world.path("theirs/x")).unwrap();
        let before = world.tree();
        let item = format!("- $W/theirs/x: {{ owner: '65534', group: '65534', mode: '{mode}' }}");
        let world = world.files(&item);
        for flags in [&["--noop"][..], &[]] {
            let outcome = world.apply_with(flags);
            outcome.exits(1).says("hard links").says(&world.fill("$W/theirs/x"));
            assert_eq!(world.tree(), before, "{outcome}");
        }
        let world = world.files("- $W/theirs/x: { content: new, owner: '65534', group: '65534' }");
        world.apply().exits(0);
        assert_eq!((world.read("theirs/x").as_str(), world.read("victim").as_str()), ("new", "kept"));
        assert_eq!(world.tree().item("victim"), before.item("victim"));
    }
}

#[test]
fn what_is_not_finished_is_nobody_elses_to_open_whatever_the_umask() {
    if !fits_strace() {
        return;
    }
    for item in ["- $W/x: { content: new, mode: '0666' }", "- $W/x: { ensure: directory, mode: '0777' }"] {
        let reference = World::new().files(item);
        let calls = Trace::of(&reference, &[]).calls;
        let last = calls.iter().find(|call| call.name() == "fchmod" && call.is_below(&reference.path("")));
        let world = World::new().files(item);
        let outcome = tampered(&world, last.expect("the mode is set last"), "signal=KILL");
        assert_eq!(outcome.code, -9, "{outcome}");
        let tree = world.tree();
        let [name] = &tree.leftovers()[..] else { panic!("{tree:?}") };
        assert_eq!(Path::new(name).parent(), Some(Path::new("")), "beside its place");
        let left = tree.item(name).unwrap();
        assert_eq!(left.mode, if left.is_directory() { 0o700 } else { 0o600 }, "{tree:?}");
    }
}

/// Two archives of the same length in one format, of which the attacker swaps one for the other: `app` in it holds `good`
/// or `evil`.
fn archives(name: &str) -> [Vec<u8>; 2] {
    ["good", "evil"].map(|content| match name {
        "app.zip" => {
            let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let plain =
                zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            writer.start_file("app", plain).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
            writer.finish().unwrap().into_inner()
        }
        _ => {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o755);
            header.set_size(4);
            builder.append_data(&mut header, "app", content.as_bytes()).unwrap();
            builder.into_inner().unwrap()
        }
    })
}

const ARCHIVES: [&str; 2] = ["app.tar", "app.zip"];

#[test]
#[ignore = "the other side of the test below, which starts it as another user"]
fn the_attacker_with_open_archives() {
    let folder = PathBuf::from(env::var_os(FOLDER).expect("a folder to work in"));
    let mut open = ARCHIVES.map(|name| (name, archives(name), None::<fs::File>));
    // Each version is there for as long as the other.
    for version in [0, 1].into_iter().cycle() {
        for (name, versions, file) in &mut open {
            // Where there is none, the attacker makes one; it keeps the descriptor whoever the file belongs to later.
            if let Ok(new) = fs::File::create_new(folder.join(name)) {
                *file = Some(new);
            }
            let _ = file.as_ref().map(|file| file.write_all_at(&versions[version], 0));
        }
        let _ = fs::write(folder.join("begun"), "");
    }
}

#[test]
fn an_archive_that_another_user_has_open_is_never_unpacked_with_other_bytes_than_were_hashed() {
    if !is_root() {
        return;
    }
    // Root takes the file over, or leaves it to the attacker, to whom it is said to belong.
    let owners = ["$OWN", "owner: '65534', group: '65534'"];
    for (name, owner) in ARCHIVES.iter().flat_map(|name| owners.map(|owner| (*name, owner))) {
        let [good, _] = archives(name);
        let sum: String = Sha256::digest(&good).iter().map(|byte| format!("{byte:02x}")).collect();
        let server = Server::of(good.clone());
        let world = World::new().dir("shared").mode("shared", 0o1777).manifest(&format!(
            "- archive:\n    - $W/shared/{name}: {{ url: \"{}\", {owner}, checksum: {sum}, extract_parent: $W/opt, creates: $W/opt/app, try_sleep: 1ms }}\n",
            server.url(&format!("/{name}")),
        ));
        let mut attacker = Attacker::playing("the_attacker_with_open_archives", &world, "shared");
        let archive = world.path("shared").join(name);
        let (mut rounds, mut unpacked) = (0, 0);
        wait_until("an archive is unpacked while it is attacked", || {
            rounds += 1;
            let _ = fs::remove_file(&archive);
            wait_until("the attacker puts an archive there", || {
                attacker.lives();
                fs::metadata(&archive).is_ok_and(|found| found.len() >= good.len() as u64)
            });
            let outcome = world.apply();
            assert!(matches!(outcome.code, 0 | 1), "{outcome}");
            if world.path("opt/app").exists() {
                unpacked += 1;
                assert_eq!(world.read("opt/app"), "good", "{outcome}");
                fs::remove_dir_all(world.path("opt")).unwrap();
            }
            if outcome.code == 0 && owner == "$OWN" {
                // What root has taken over stays as it was hashed.
                assert!(fs::read(&archive).unwrap() == good, "{outcome}");
            }
            rounds >= ROUNDS && unpacked > 0
        });
    }
}

#[test]
fn a_link_below_a_folder_that_anybody_can_write_to_is_not_followed() {
    if !is_root() {
        return;
    }
    let server = Server::of(archives("app.tar")[0].clone());
    let archive = format!(
        "- archive: [{{ $W/app.tar: {{ url: \"{}\", $OWN, extract_parent: $W/open/ours/link/opt }} }}]",
        server.url("/app.tar")
    );
    let file = "- file: [{ $W/open/ours/link/x: { content: new, $OWN, mode: '0644' } }]";
    for manifest in [file, &archive] {
        // Anybody could put another folder in the place of `ours`, with another link in it.
        let world =
            World::new().dir("open/ours").dir("safe").link("open/ours/link", "$W/safe").mode("open", 0o777);
        let world = world.manifest(manifest);
        for flags in [&["--noop"][..], &[]] {
            let outcome = world.apply_with(flags);
            outcome.exits(1).says("is not safe to follow").says(&world.fill("$W/open"));
            assert_eq!(fs::read_dir(world.path("safe")).unwrap().count(), 0, "{outcome}");
        }
        let world = world.mode("open", 0o1777);
        world.apply().exits(0);
    }
}
