//! Where tests run while a change is in force: it may remove the wrong thing, or multiply.
//!
//! Each call has processes, mounts and a network of its own. The machine is read only there; what tests write is in
//! memory, or in a folder on disk for them alone, and gone with the call or before the next one. So is every process that they
//! started.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::build::Prepared;
use crate::store::Store;

const SETUP: &str = r#"
store=$1 worker=$2; shift 2
rm -rf "$worker/tmp" || true
mkdir -p -m 1777 "$worker/tmp"
for folder in /dev/shm /var/tmp /run; do
  case $store in $folder/*) ;; *) mount -t tmpfs -o size=4g,mode=1777 tmpfs $folder ;; esac
done
case $store in /tmp/*) ;; *) mount --bind "$worker/tmp" /tmp ;; esac
chmod 755 /run
mkdir /run/ccm-mutants && touch /run/ccm-mutants/reached && mount --bind "$worker/reached" /run/ccm-mutants/reached
while read -r copy program; do mount --bind "$copy" "$program"; done <"$worker/programs"
# Tests that need a booted container are passed over.
mount --bind /dev/null "$(command -v systemd-nspawn)"
mount -o remount,bind,ro /
ip link set lo up
ulimit -v 12582912
cd "$store/tree"
exec "$@"
"#;

/// The switch, in the data of a program: see `switch/src/lib.rs`.
const MARK: [u8; 12] = *b"atums-tnctiw";
/// Has what is reached written down.
pub(crate) const REACH: u32 = u32::MAX;

/// One of those that run tests side by side, with programs of its own.
pub(crate) struct Sandbox {
    store: PathBuf,
    folder: PathBuf,
    /// The copies of the programs, and where each has its switches.
    copies: Vec<(Vec<u64>, PathBuf)>,
    changes: usize,
}

/// How a call ended.
pub(crate) struct Ended {
    pub(crate) passed: bool,
    /// The tests that failed; none if the program crashed or did not come to an end.
    pub(crate) failed: Vec<String>,
    pub(crate) in_time: bool,
    pub(crate) seconds: f64,
}

impl Sandbox {
    pub(crate) fn new(store: &Store, number: usize, prepared: &Prepared) -> Self {
        let folder = store.worker(number);
        fs::create_dir_all(&folder).expect("a folder");
        let ccm = store.target().join("debug/ccm");
        let programs = prepared.programs.iter().chain([&ccm]);
        let (mut copies, mut lines) = (Vec::new(), String::new());
        for (index, program) in programs.enumerate() {
            let copy = folder.join(format!("program-{index}"));
            // One that is left of a run that was killed may still be running.
            let _ = fs::remove_file(&copy);
            fs::copy(program, &copy).expect("a copy of a program");
            lines += &format!("{} {}\n", copy.display(), program.display());
            copies.push((switches(&fs::read(&copy).expect("the copy")), copy));
        }
        fs::write(folder.join("programs"), lines).expect("the list of programs");
        Self { store: store.folder.clone(), folder, copies, changes: prepared.highest() }
    }

    /// Puts a change in force.
    pub(crate) fn switch(&self, change: u32) {
        for (places, program) in &self.copies {
            let program = writable(program);
            for place in places {
                program.write_all_at(&change.to_le_bytes(), *place).expect("a program");
            }
        }
    }

    /// Forgets what was reached.
    pub(crate) fn reset(&self) {
        let path = self.folder.join("reached");
        fs::write(&path, vec![0; self.changes + 1]).expect("room");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("own file");
    }

    /// The changes that were reached.
    pub(crate) fn reached(&self) -> Vec<u32> {
        let bytes = fs::read(self.folder.join("reached")).expect("what was reached");
        (0..).zip(bytes).filter(|(_, byte)| *byte == 1).map(|(number, _)| number).collect()
    }

    /// Runs some tests of a program.
    pub(crate) fn run(&self, program: &Path, tests: &[&str], limit: Duration) -> Ended {
        let log = self.folder.join("log");
        let output = File::create(&log).expect("a log");
        let begun = Instant::now();
        let mut child = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--net",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "sh",
                "-ec",
                SETUP,
                "sh",
            ])
            .args([&self.store, &self.folder, program])
            .args(["--exact", "--test-threads=4"])
            .args(tests)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor"))
            .stderr(output)
            .spawn()
            .expect("unshare of util-linux");
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break Some(status);
            }
            if begun.elapsed() > limit {
                child.kill().expect("a child");
                child.wait().expect("a child");
                break None;
            }
            thread::sleep(Duration::from_millis(3));
        };
        let log = String::from_utf8_lossy(&fs::read(&log).expect("the log")).into_owned();
        let failed = log.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
        Ended {
            passed: status.is_some_and(|status| status.success()),
            failed: failed.map(|name| name.trim_end_matches(" - should panic").to_owned()).collect(),
            in_time: status.is_some(),
            seconds: begun.elapsed().as_secs_f64(),
        }
    }
}

/// Where a program has its switch. One that only starts others has none.
fn switches(program: &[u8]) -> Vec<u64> {
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    marks.map(|(at, _)| (at + MARK.len()) as u64).collect()
}

/// Opens a program for writing as soon as nobody runs it any more.
fn writable(program: &Path) -> File {
    loop {
        match File::options().write(true).open(program) {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                thread::sleep(Duration::from_millis(1))
            }
            opened => return opened.expect("a copy of a program"),
        }
    }
}
