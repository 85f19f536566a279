//! Finding out which tests reach which change, and whether one of them notices it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::area::Area;
use crate::build::Prepared;
use crate::change::Change;
use crate::sandbox::{Ended, REACH, Sandbox};
use crate::store::{Outcome, Store};

/// A test, as it is without any change.
pub(crate) struct Test {
    program: PathBuf,
    name: String,
    /// Those of its name.
    words: Vec<String>,
    seconds: f64,
    reaches: Vec<u32>,
}

/// Runs every test by itself to learn what it reaches. One that fails here, also without that, or takes longer than `longest`
/// seconds, is not used.
pub(crate) fn reach(store: &Store, prepared: &Prepared, longest: f64) -> Vec<Test> {
    let names: Vec<(&Path, String)> = prepared.programs.iter().flat_map(|program| names(program)).collect();
    let tests = Mutex::new(Vec::new());
    side_by_side(store, prepared, names.len(), |sandbox, index| {
        let (program, name) = &names[index];
        let run = |change| {
            sandbox.switch(change);
            sandbox.run(program, &[name], Duration::from_secs_f64(longest * 2.0))
        };
        sandbox.reset();
        let mut ended = run(REACH);
        let reaches = sandbox.reached();
        if !ended.passed {
            ended = run(0);
        }
        if ended.passed && ended.seconds <= longest {
            let test = Test {
                program: program.to_path_buf(),
                name: name.clone(),
                words: words(name),
                seconds: ended.seconds,
                reaches,
            };
            tests.lock().expect("no panic").push(test);
        } else {
            println!(
                "not used: {name} ({:.1} s, {})",
                ended.seconds,
                if ended.passed { "passed" } else { "failed" }
            );
        }
    });
    tests.into_inner().expect("no panic")
}

fn names(program: &Path) -> Vec<(&Path, String)> {
    let output = Command::new(program).args(["--list", "--format=terse"]).output().expect("a test program");
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines().filter_map(|line| Some((program, line.strip_suffix(": test")?.to_owned()))).collect()
}

/// Has every change that nobody is known to notice meet tests that reach it, for as long as `budget` seconds.
pub(crate) fn run(store: &Store, prepared: &Prepared, tests: &[Test], areas: &[Area], budget: f64) {
    let known = store.outcomes();
    let is_open =
        |change: &Change| known.get(&change.name).is_none_or(|outcome| outcome.noticed_by.is_none());
    let changes: Vec<_> = prepared.changes.iter().filter(|(_, change)| is_open(change)).collect();
    let mut reaching = BTreeMap::<u32, Vec<usize>>::new();
    for (index, test) in tests.iter().enumerate() {
        test.reaches.iter().for_each(|number| reaching.entry(*number).or_default().push(index));
    }
    let experience = Mutex::new(Experience::new(prepared, tests));
    let (done, unnoticed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    side_by_side(store, prepared, changes.len(), |sandbox, index| {
        let (number, change) = &changes[index];
        let mut candidates = reaching.get(number).cloned().unwrap_or_default();
        experience.lock().expect("no panic").sort(&mut candidates, change, tests, areas);
        sandbox.switch(*number);
        let (tried, noticed) = meet(sandbox, tests, &candidates, budget);
        if let Some((test, _)) = &noticed {
            experience.lock().expect("no panic").add(*test, change);
        }
        unnoticed.fetch_add(usize::from(noticed.is_none()), Ordering::Relaxed);
        let noticed_by = noticed.map(|(_, how)| how);
        store.save(&Outcome { change: change.name.clone(), noticed_by, reached_by: candidates.len(), tried });
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(50) {
            println!("{done} of {}, {} not noticed", changes.len(), unnoticed.load(Ordering::Relaxed));
        }
    });
}

/// Runs the tests in ever larger groups until one fails. Returns how many were run, which failed, and how.
fn meet(
    sandbox: &Sandbox,
    tests: &[Test],
    candidates: &[usize],
    budget: f64,
) -> (usize, Option<(usize, String)>) {
    let (mut tried, mut spent, mut share) = (0, 0.0, 0.3);
    while tried < candidates.len() && spent < budget {
        let group = group(tests, &candidates[tried..], share);
        let noticed = noticed(sandbox, tests, group);
        tried += group.len();
        if noticed.is_some() {
            return (tried, noticed);
        }
        spent += group.iter().map(|index| tests[*index].seconds).sum::<f64>();
        share = f64::min(share * 3.0, budget / 3.0);
    }
    (tried, None)
}

/// The first of the candidates that are of one program and take about as long as `share` together.
fn group<'c>(tests: &[Test], candidates: &'c [usize], share: f64) -> &'c [usize] {
    let mut seconds = 0.0;
    let fits = |index: &&usize| {
        let test = &tests[**index];
        let is_first = seconds == 0.0;
        seconds += test.seconds;
        test.program == tests[candidates[0]].program && (is_first || seconds <= share)
    };
    &candidates[..candidates.iter().take_while(fits).count()]
}

/// Whether one of these tests notices the change that is in force: it fails, and fails again alone.
fn noticed(sandbox: &Sandbox, tests: &[Test], group: &[usize]) -> Option<(usize, String)> {
    let run = |group: &[usize], patience: f64| -> Ended {
        let names: Vec<&str> = group.iter().map(|index| tests[*index].name.as_str()).collect();
        let seconds: f64 = group.iter().map(|index| tests[*index].seconds).sum();
        sandbox.run(&tests[group[0]].program, &names, Duration::from_secs_f64(patience * (seconds + 1.0)))
    };
    let ended = run(group, 6.0);
    if ended.passed {
        return None;
    }
    let suspects: Vec<usize> = match &ended.failed[..] {
        // Nobody says which one crashed or hung.
        [] => group.to_vec(),
        failed => group.iter().copied().filter(|index| failed.contains(&tests[*index].name)).collect(),
    };
    for suspect in suspects {
        let again = run(&[suspect], 12.0);
        if !again.passed {
            let how = if again.in_time { "" } else { " (without end)" };
            return Some((suspect, format!("{}{how}", tests[suspect].name)));
        }
    }
    None
}

/// Which tests are likely to notice a change.
struct Experience {
    /// How many changes of a file a test reaches: who goes into its corners is likely to look at what comes of it.
    reached: BTreeMap<String, BTreeMap<usize, usize>>,
    /// How many changes of a function and of a file a test noticed: it is likely to notice their neighbours.
    functions: BTreeMap<(String, String), BTreeMap<usize, usize>>,
    files: BTreeMap<String, BTreeMap<usize, usize>>,
}

impl Experience {
    fn new(prepared: &Prepared, tests: &[Test]) -> Self {
        let files: BTreeMap<u32, &str> =
            prepared.changes.iter().map(|(number, change)| (*number, change.file.as_str())).collect();
        let mut reached = BTreeMap::<String, BTreeMap<usize, usize>>::new();
        for (index, test) in tests.iter().enumerate() {
            for file in test.reaches.iter().filter_map(|number| files.get(number)) {
                *reached.entry((*file).to_owned()).or_default().entry(index).or_default() += 1;
            }
        }
        Self { reached, functions: BTreeMap::new(), files: BTreeMap::new() }
    }

    fn add(&mut self, test: usize, change: &Change) {
        *self.functions.entry(function(change)).or_default().entry(test).or_default() += 1;
        *self.files.entry(change.file.clone()).or_default().entry(test).or_default() += 1;
    }

    /// Puts the tests first that are likely to notice, and quick ones before slow ones.
    fn sort(&self, candidates: &mut [usize], change: &Change, tests: &[Test], areas: &[Area]) {
        let count =
            |of: Option<&BTreeMap<usize, usize>>, test| of.and_then(|of| of.get(&test)).copied().unwrap_or(0);
        let (in_function, in_file) = (self.functions.get(&function(change)), self.files.get(&change.file));
        let reached = self.reached.get(&change.file);
        let most = reached.and_then(|reached| reached.values().max()).copied().unwrap_or(1) as f64;
        let area = areas.iter().find(|area| area.has(&change.file));
        let words = words(&format!("{} {}", change.file, change.function_name()));
        let cost = |index: usize| {
            let test = &tests[index];
            let is_likely = area.is_some_and(|area| area.is_likely(&test.name));
            let shared = test.words.iter().filter(|word| words.iter().any(|other| akin(word, other))).count();
            let hits = 4 * count(in_function, index)
                + count(in_file, index)
                + 5 * usize::from(is_likely)
                + 10 * shared;
            let corners = (count(reached, index) as f64 / most).powi(4);
            // What a test takes weighs less the more likely it is to notice.
            (test.seconds + 0.02) / (1.0 + hits as f64 + 20.0 * corners)
        };
        candidates.sort_by(|one, other| cost(*one).total_cmp(&cost(*other)));
    }
}

/// The words of a name that say what it is about.
fn words(name: &str) -> Vec<String> {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| word.len() >= 5 && *word != "tests").map(str::to_ascii_lowercase).collect()
}

/// Whether two words begin alike, as those of one kin do.
fn akin(one: &str, other: &str) -> bool {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    same >= usize::max(5, usize::min(one.len(), other.len()) - 2)
}

fn function(change: &Change) -> (String, String) {
    (change.file.clone(), change.function_name().to_owned())
}

/// Does `work` for every index, each worker with a sandbox of its own. Tests mostly wait: there is one more than processors.
fn side_by_side(store: &Store, prepared: &Prepared, count: usize, work: impl Fn(&Sandbox, usize) + Sync) {
    let workers = thread::available_parallelism().map_or(2, |count| count.get() + 1);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..workers {
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                let sandbox = Sandbox::new(store, worker, prepared);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    work(&sandbox, index);
                }
            });
        }
    });
}
