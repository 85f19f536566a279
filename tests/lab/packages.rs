//! A machine to install packages on: a small Debian that has apt and dnf, each with a repository made on the spot.
//!
//! Every test has one of its own, which starts afresh from a tree that is made once and kept in `.lab/`. No systemd runs in
//! it: it takes a fraction of a second to start. It ends with the pipe that only the test process holds. The packages
//! are made by `repositories.sh`, once and again when that changes.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use super::{folder, inside, tree};
use crate::support::{Outcome, PATIENCE, finish, has, is_root, pause, wait_until};

/// What makes the repositories.
const SCRIPT: &str = include_str!("repositories.sh");

/// What is in the tree besides a minimal Debian.
const INCLUDE: &str = "dpkg-dev,dnf,dnf-plugins-core,rpm,createrepo-c";

/// Programs whose calls are recorded.
const RECORDED: [&str; 7] = ["apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "dnf", "rpm"];

/// Where a manifest, the state directory and the record of calls are.
const HOME: &str = "/srv/test";

/// A machine that lives as long as the test.
pub(crate) struct Machine {
    leader: u32,
    container: Child,
}

/// The tree and the repositories.
struct Parts {
    tree: PathBuf,
    repositories: PathBuf,
}

impl Machine {
    /// A Debian machine with a repository of apt; `None` where there can be none.
    pub(crate) fn apt() -> Option<Self> {
        let machine = Self::start()?;
        machine.write("/etc/apt/sources.list.d/lab.list", "deb [trusted=yes] file:/repositories/apt ./\n");
        Some(machine)
    }

    /// A machine that says it is a Fedora, with a repository of dnf; `None` where there can be none.
    pub(crate) fn dnf() -> Option<Self> {
        let machine = Self::start()?;
        // Of the plugins, each of which takes its time whenever dnf starts, only that which holds versions is of use.
        machine.sh("rm /etc/os-release; rm $(ls /usr/lib/python3/dist-packages/dnf-plugins/*.py | grep -v versionlock)");
        for (path, content) in fedora("/repositories/dnf") {
            machine.write(path, &content);
        }
        Some(machine)
    }

    fn start() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !(is_root() && has("systemd-nspawn") && has("mmdebstrap") && has("nsenter")) {
            return None;
        }
        let Parts { tree, repositories } = parts();
        let name = format!("ccm-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut container = nspawn(tree, &name)
            .arg(format!("--bind-ro={}:/repositories", repositories.display()))
            .arg(format!("--bind-ro={}:/usr/local/bin/ccm", env!("CARGO_BIN_EXE_ccm")))
            .args(["/bin/sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a container");
        let mut line = String::new();
        BufReader::new(container.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "the container does not start");
        let pid = container.id();
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its first process");
        let leader =
            children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("its first process");
        let machine = Self { leader, container };
        // What this Debian itself was made from is not looked at.
        machine.sh("rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*");
        for program in RECORDED {
            let script = format!(
                "#!/bin/sh\nprintf '%s\\n' \"{program} $*\" >>{HOME}/calls\nexec /usr/bin/{program} \"$@\"\n"
            );
            machine.write(&format!("{HOME}/bin/{program}"), &script);
            let path = machine.path(&format!("{HOME}/bin/{program}"));
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own file");
        }
        Some(machine)
    }

    /// A path of the machine as the test sees it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.leader))
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(path, content).expect("a new file");
    }

    /// What a file holds.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// Whether there is something at a path.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A program on the machine.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        inside(self.leader, words)
    }

    /// Runs a script, which must go well, and gives what it printed.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        let output = self.command(&["/bin/sh", "-ec", script]).output().expect("a shell");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script}\n{stdout}{stderr}");
        stdout.into_owned()
    }

    /// Applies a manifest.
    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) -> Outcome {
        self.apply_with(manifest, &[])
    }

    /// Applies a manifest with flags.
    #[track_caller]
    pub(crate) fn apply_with(&self, manifest: &str, flags: &[&str]) -> Outcome {
        self.begin(manifest, flags).finish()
    }

    /// Begins to apply a manifest.
    pub(crate) fn begin(&self, manifest: &str, flags: &[&str]) -> Begun<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let file = format!("{HOME}/site-{}.yaml", COUNT.fetch_add(1, Ordering::Relaxed));
        self.write(&file, manifest);
        let arguments = [&["ccm", "apply", &file], flags].concat();
        let _ = fs::remove_file(self.path(&format!("{HOME}/calls")));
        let mut command = self.command(&arguments);
        command.env("CCM_STATE_DIR", format!("{HOME}/state"));
        command.env("PATH", format!("{HOME}/bin:/usr/local/bin:/usr/bin:/bin"));
        let output = |kind: &str| self.path(&format!("{file}.{kind}"));
        let [stdout, stderr] = ["stdout", "stderr"].map(output);
        command
            .stdout(fs::File::create(&stdout).expect("a file"))
            .stderr(fs::File::create(&stderr).expect("a file"));
        let child = command.spawn().expect("the program starts");
        Begun { machine: self, child, command: arguments.join(" "), stdout, stderr }
    }

    /// Waits until there is something at a path.
    #[track_caller]
    pub(crate) fn wait_for(&self, path: &str) {
        wait_until(path, || self.exists(path));
    }

    /// How the package system was called during the last run.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path(&format!("{HOME}/calls"))).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// The calls of one program with one verb during the last run.
    pub(crate) fn calls_of(&self, program: &str, verb: &str) -> Vec<String> {
        let is_one = |call: &String| {
            let mut words = call.split(' ');
            words.next() == Some(program) && words.any(|word| word == verb)
        };
        self.calls().into_iter().filter(is_one).collect()
    }
}

/// A run that has begun.
pub(crate) struct Begun<'m> {
    machine: &'m Machine,
    child: Child,
    command: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Begun<'_> {
    /// Waits until the run has printed a text.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        let begun = Instant::now();
        loop {
            let printed = fs::read_to_string(&self.stdout).expect("text");
            if printed.contains(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{}\ndoes not say {text:?}:\n{printed}", self.command);
            pause(begun);
        }
    }

    /// Whether it has come to its end.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Asks the program to stop.
    pub(crate) fn terminate(&self) {
        let file = self.stdout.file_stem().expect("a name").to_string_lossy();
        self.machine.sh(&format!(
            "for process in /proc/[0-9]*; do if grep -qs {file} $process/cmdline && [ \"$(cat $process/comm)\" = ccm ]; \
             then kill -TERM ${{process#/proc/}}; fi; done"
        ));
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(self) -> Outcome {
        let mut outcome = finish(self.child, self.command);
        outcome.stdout = fs::read_to_string(self.stdout).expect("text");
        outcome.stderr = fs::read_to_string(self.stderr).expect("text");
        outcome
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.container.stdin.take());
        let _ = self.container.wait();
    }
}

/// The container of a tree, in which what is written stays in memory. Several can share a tree.
fn nspawn(tree: &Path, name: &str) -> Command {
    let mut command = Command::new("systemd-nspawn");
    command.args([
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--as-pid2",
        "--pipe",
        "--read-only",
        "--volatile=overlay",
    ]);
    command.arg(format!("--directory={}", tree.display())).arg(format!("--machine={name}"));
    command
}

/// Returns the files that make a machine say that it is a Fedora, and have dnf use the repository in a folder.
pub(super) fn fedora(repository: &str) -> [(&'static str, String); 4] {
    let source = format!("[lab]\nname=lab\nbaseurl=file://{repository}\ngpgcheck=0\n");
    [
        ("/etc/os-release", "ID=fedora\nVERSION_ID=40\n".to_owned()),
        ("/etc/dnf/vars/releasever", "40\n".to_owned()),
        ("/etc/dnf/plugins/local.conf", "[main]\nenabled = false\n".to_owned()),
        ("/etc/yum.repos.d/lab.repo", source),
    ]
}

/// The folder of the repository of dnf.
pub(super) fn dnf_repository() -> PathBuf {
    parts().repositories.join("dnf")
}

/// The folder of the repository of apt.
pub(crate) fn apt_repository() -> PathBuf {
    parts().repositories.join("apt")
}

/// The tree and the repositories, made if they are not there yet.
fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(|| {
        let folder = folder();
        // Another test process may be making them.
        let lock = fs::File::create(folder.join("packages.lock")).expect("a lock");
        lock.lock().expect("the end of another process");
        let tree = tree(&folder, "-packages", INCLUDE);
        let mut hasher = DefaultHasher::new();
        SCRIPT.hash(&mut hasher);
        let repositories = folder.join(format!("repositories-{:x}", hasher.finish()));
        if !repositories.is_dir() {
            make_repositories(&folder, &tree, &repositories);
        }
        Parts { tree, repositories }
    })
}

fn make_repositories(folder: &Path, tree: &Path, repositories: &Path) {
    let unfinished = folder.join("repositories.new");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished).expect("a new folder");
    let made = nspawn(tree, "ccm-repositories")
        .arg(format!("--bind={}:/repositories", unfinished.display()))
        .args(["/bin/sh", "-c", SCRIPT])
        .stdin(Stdio::null())
        .output()
        .expect("a container");
    assert!(made.status.success(), "no repositories: {}", String::from_utf8_lossy(&made.stderr));
    fs::rename(&unfinished, repositories).expect("new repositories");
}
