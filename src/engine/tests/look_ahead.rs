//! Looking ahead gives what looking in turn gives, on random manifests whose resources get in each other's way.
//!
//! `CCM_CASES=100000` tries that many, a few at a time; a case that fails names its number, which `CCM_CASE` runs alone.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    thread,
};

use serde_json::{Value, json};

use super::{super::look_ahead::Windows, *};
use crate::types;

/// Looks ahead as soon and as far as it can.
const EAGER: ReadAhead = ReadAhead::Windows(Windows { least: 1, first: 3, most: 8, calm: 0 });
/// Looks ahead again only after a while.
const WARY: ReadAhead = ReadAhead::Windows(Windows { least: 2, first: 4, most: 6, calm: 2 });

const CASES: u64 = 250;

/// So many cases are tried side by side.
const THREADS: u64 = 4;

/// Names that lead to each other: through directories, links, and files with several names.
const NAMES: [&str; 9] = ["a", "a/b", "a/b/c", "d", "d/e", "l", "l/b", "l/e", "m"];

/// Numbers in no order that can be told before, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.roll(from.len())]
    }
}

/// Puts things in a directory.
fn prepare(folder: &Path, dice: &mut Dice) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir(folder).unwrap();
    for _ in 0..dice.roll(8) {
        let path = folder.join(dice.pick(&NAMES));
        // What is in the way stays.
        match dice.roll(5) {
            0 | 1 => drop(fs::write(&path, dice.pick(&["one", "two"]))),
            2 => drop(fs::create_dir(&path)),
            3 => drop(symlink(dice.pick(&["a", "d", "a/b", "nowhere"]), &path)),
            _ => drop(fs::hard_link(folder.join(dice.pick(&NAMES)), &path)),
        }
    }
}

/// A resource with its properties, of so many kinds: the last one is a command, which takes its time.
fn resource(folder: &Path, kinds: usize, dice: &mut Dice) -> Option<Resource> {
    let path = folder.join(dice.pick(&NAMES)).display().to_string();
    let other = folder.join(dice.pick(&NAMES)).display().to_string();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let owned = format!("owner: \"{uid}\", group: \"{gid}\"");
    let mode = dice.pick(&["0644", "0755"]);
    let (kind, name, properties) = match dice.roll(kinds) {
        0..6 => {
            let content = dice.pick(&["one", "two"]);
            ("file", path, format!("content: {content}, {owned}, mode: \"{mode}\""))
        }
        6..8 => ("file", path, format!("source: {other}, {owned}, mode: \"{mode}\"")),
        8..10 => ("file", path, format!("ensure: directory, {owned}, mode: \"{mode}\"")),
        10 => ("file", path, "ensure: absent".to_owned()),
        11 => ("file", path, "ensure: absent, force: true".to_owned()),
        12 | 13 => {
            ("file", path, format!("ensure: link, force: true, target: {}", dice.pick(&["a", "d", "a/b"])))
        }
        14 => ("file", path, format!("content: two, {owned}, mode: \"{mode}\", control: {{ if: 1 == 1 }}")),
        _ => {
            let command = dice.pick(&["echo two >", "rm -rf", "mkdir", "chmod 0700"]);
            ("exec", format!("{command} {path}"), "provider: shell, timeout: 1m".to_owned())
        }
    };
    let source = Source { name: "test".to_owned(), text: format!("{{ {properties} }}") };
    let Node::Map(properties) = crate::document::parse(&source).unwrap().value else { unreachable!() };
    let declaration = Declaration::new(types::find(kind)?, name, Span::default(), properties);
    let mut diagnostics = Diagnostics::default();
    let resource = declaration.resolve(Completeness::Whole, &mut diagnostics);
    Some(resource.unwrap_or_else(|| panic!("{}\n{diagnostics:?}", source.text)))
}

/// What is in a directory, without times.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let holds = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                [fs::read(&path).unwrap(), metadata.nlink().to_string().into_bytes()].concat()
            };
            found.insert(path, (metadata.permissions().mode(), holds));
        }
    }
    found
}

/// Applies a manifest, and returns what is told of them.
fn events(manifest: &Manifest, read_ahead: ReadAhead) -> Vec<Value> {
    let (host, state) = (host(), LocalState::at(StateDirectory::none()));
    let registrations = Registrations::Unwanted;
    let settings = Settings { read_ahead, registrations, ..settings(RunMode::Real) };
    let mut engine = Engine::new(&host, &state, settings, Session::begin());
    engine.apply(manifest, &Selected::default(), None, &mut Nobody);
    engine.session().events().iter().map(told).collect()
}

/// An event without what differs from run to run.
fn told(event: &Event) -> Value {
    let mut event = json!(event);
    for key in ["event_id", "timestamp", "duration"] {
        event[key].take();
    }
    for key in ["mtime", "duration"] {
        if let Some(value) = event.pointer_mut(&format!("/status/metadata/{key}")) {
            value.take();
        }
    }
    event
}

#[test]
fn looking_ahead_gives_what_looking_in_turn_gives() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = match number("CCM_CASE") {
        Some(case) => case..case + 1,
        None => 0..number("CCM_CASES").unwrap_or(CASES),
    };
    let state = Path::new("/dev/shm");
    let base = if state.is_dir() { state.to_owned() } else { env::temp_dir() };
    let base = base.canonicalize().unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let folder = base.join(format!("ccm-ahead-{}-{thread}", std::process::id()));
            let cases = cases.clone().filter(move |case| case % THREADS == thread);
            scope.spawn(move || {
                cases.for_each(|case| gives_the_same(case, &folder));
                let _ = fs::remove_dir_all(folder);
            });
        }
    });
}

fn gives_the_same(case: u64, folder: &Path) {
    let dice = || Dice(case.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut wishes = Dice(dice().0 ^ 0x5DEE_CE66);
    let count = 4 + wishes.roll(14);
    let kinds = if case.is_multiple_of(8) { 16 } else { 15 };
    let resources = (0..count).filter_map(|_| resource(folder, kinds, &mut wishes)).collect();
    let manifest = manifest(resources, folder);
    let read_ahead = if case.is_multiple_of(3) { WARY } else { EAGER };
    let [in_turn, ahead] = [ReadAhead::None, read_ahead].map(|read_ahead| {
        prepare(folder, &mut dice());
        // Twice: most of the second run is as it should be.
        let events = [(); 2].map(|()| events(&manifest, read_ahead));
        (events, tree(folder))
    });
    assert_eq!(ahead, in_turn, "CCM_CASE={case}");
}
