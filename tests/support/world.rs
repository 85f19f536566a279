//! A folder of its own for a run, which sees nothing of the machine's settings.

use std::{
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
};

use rustix::fs::StatVfsMountFlags;

use super::{Mount, Outcome, PATIENCE, Tree};

/// A folder that is gone when the test is over.
///
/// `$W` in a text is the part of it that manifests manage; `$OWN` is the owner and group of whoever runs the test, as
/// properties in a map of one line; `$UID` and `$GID` are the numbers.
pub(crate) struct World {
    base: PathBuf,
    mounts: Vec<Mount>,
}

impl World {
    /// A world in memory, where bringing something to disk takes no time.
    pub(crate) fn new() -> Self {
        Self::below(&in_memory())
    }

    /// A world on a disk, for what file systems in memory do not have everywhere.
    pub(crate) fn on_disk() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A world of root's in a folder in which no other test creates or removes anything.
    pub(crate) fn quiet() -> Self {
        Self::below(Path::new("/srv"))
    }

    fn below(folder: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ccm-test-{}-{number}", std::process::id());
        let base = folder.canonicalize().expect("a folder for temporary files").join(name);
        for folder in ["w", "home", "state"] {
            make(&base.join(folder));
        }
        Self { base, mounts: Vec::new() }
    }

    /// The folder of the manifest.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Where the program keeps what it remembers.
    pub(crate) fn state(&self) -> PathBuf {
        self.base.join("state")
    }

    /// A path in the managed part; `""` is that part itself.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.base.join("w") } else { self.base.join("w").join(name) }
    }

    /// The text with what is known of this world filled in.
    pub(crate) fn fill(&self, text: &str) -> String {
        let (uid, gid) = ids();
        text.replace("$W", &self.path("").to_string_lossy())
            .replace("$OWN", &format!("owner: \"{uid}\", group: \"{gid}\""))
            .replace("$UID", &uid.to_string())
            .replace("$GID", &gid.to_string())
    }

    /// Writes the manifest, `site.yaml`.
    pub(crate) fn manifest(self, text: &str) -> Self {
        let text = self.fill(text);
        self.beside("site.yaml", text)
    }

    /// A manifest of files, each with the owner and mode of an ordinary file of whoever runs the test.
    pub(crate) fn files(self, items: &str) -> Self {
        let manifest = format!("- file:\n    - defaults: {{ $OWN, mode: \"0644\" }}\n{}", indent(items));
        self.manifest(&manifest)
    }

    /// Writes a file beside the manifest.
    pub(crate) fn beside(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.base.join(name), content.as_ref());
        self
    }

    /// Puts a file into the managed part, mode 0644.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.path(name), content.as_ref());
        self
    }

    /// Makes a directory in the managed part, mode 0755.
    pub(crate) fn dir(self, name: &str) -> Self {
        make(&self.path(name));
        self.mode(name, 0o755)
    }

    /// Makes a symbolic link in the managed part.
    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        symlink(self.fill(target), self.path(name)).expect("a new link");
        self
    }

    /// Sets the mode of something in the managed part.
    pub(crate) fn mode(self, name: &str, mode: u32) -> Self {
        let path = self.path(name);
        if mode & 0o111 != 0 && path.is_file() {
            // A program that is open for writing cannot be run, and a child that another test is just starting may still
            // hold the descriptor that wrote it: the copy is made by somebody else.
            super::sh(
                "cp -p \"$NAME\" .copy && mv -f .copy \"$NAME\""
                    .replace("$NAME", &path.to_string_lossy())
                    .as_str(),
                &self.base,
            );
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
        self
    }

    /// Gives something in the managed part to somebody.
    pub(crate) fn owner(self, name: &str, uid: u32, gid: u32) -> Self {
        std::os::unix::fs::lchown(self.path(name), Some(uid), Some(gid)).expect("root gives files away");
        self
    }

    /// Mounts a file system in memory in the managed part; `None` where that is not allowed.
    pub(crate) fn tmpfs(mut self, name: &str, options: &str) -> Option<Self> {
        make(&self.path(name));
        self.mounts.push(Mount::tmpfs(&self.path(name), options)?);
        Some(self)
    }

    /// From now on nobody can write to what was mounted.
    pub(crate) fn read_only(self) -> Self {
        self.mounts.iter().for_each(Mount::make_read_only);
        self
    }

    /// What a file in the managed part holds.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).expect(name)).expect("text")
    }

    /// The managed part as it is now.
    pub(crate) fn tree(&self) -> Tree {
        Tree::of(&self.path(""))
    }

    /// The program with arguments, in which `$W` and the like are filled in.
    pub(crate) fn ccm<A: AsRef<str>>(&self, arguments: impl IntoIterator<Item = A>) -> Call<'_> {
        let arguments = arguments.into_iter().map(|argument| self.fill(argument.as_ref())).collect();
        Call {
            world: self,
            wrapper: Vec::new(),
            arguments,
            environment: Vec::new(),
            input: Vec::new(),
            uid: None,
        }
    }

    /// Applies the manifest and shows every resource, also those that are as they should be.
    pub(crate) fn apply(&self) -> Outcome {
        self.apply_with(&["-v"])
    }

    pub(crate) fn apply_with(&self, flags: &[&str]) -> Outcome {
        self.ccm(["apply", "site.yaml"].iter().chain(flags)).run()
    }

    pub(crate) fn validate(&self) -> Outcome {
        self.ccm(["validate", "site.yaml"]).run()
    }
}

/// Where worlds are: in memory unless `TMPDIR` names another place, or there is no room in memory for what tests run.
fn in_memory() -> PathBuf {
    const ROOM: u64 = 2 << 30;
    let memory = Path::new("/dev/shm");
    let fits = rustix::fs::statvfs(memory).is_ok_and(|found| {
        found.f_bavail * found.f_frsize >= ROOM
            && !found.f_flag.intersects(StatVfsMountFlags::NOEXEC | StatVfsMountFlags::RDONLY)
    });
    if fits && std::env::var_os("TMPDIR").is_none() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Who runs the test.
pub(crate) fn ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn write(path: &Path, content: &[u8]) {
    make(path.parent().expect("a folder"));
    fs::write(path, content).expect("a new file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("own file");
}

/// Makes a folder and those above it, mode 0755 whatever the umask.
fn make(folder: &Path) {
    if !folder.exists() {
        make(folder.parent().expect("a folder"));
        fs::create_dir(folder).expect("a new folder");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("own folder");
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() && std::env::var_os("KEEP").is_some() {
            return;
        }
        self.mounts.clear();
        if fs::remove_dir_all(&self.base).is_err() {
            // What the test protected, also from itself, is given free.
            for [program, change] in [["chattr", "-ia"], ["chmod", "u+rwx"]] {
                let mut command = Command::new(program);
                let _ = command.args(["-R", change]).arg(&self.base).stderr(Stdio::null()).status();
            }
            let _ = fs::remove_dir_all(&self.base);
        }
    }
}

/// A run of the program that is about to start.
pub(crate) struct Call<'w> {
    world: &'w World,
    wrapper: Vec<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    input: Vec<u8>,
    uid: Option<u32>,
}

impl Call<'_> {
    /// What the program reads from standard input.
    pub(crate) fn input(mut self, input: impl AsRef<[u8]>) -> Self {
        input.as_ref().clone_into(&mut self.input);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Lets another program start this one.
    pub(crate) fn under<A: Into<String>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// Runs it as another user, who then owns its state directory too.
    pub(crate) fn uid(mut self, uid: u32) -> Self {
        std::os::unix::fs::chown(self.world.state(), Some(uid), Some(uid)).expect("root gives files away");
        self.uid = Some(uid);
        self
    }

    /// Starts it.
    pub(crate) fn start(&self) -> Child {
        // Figures are those of the program that people install.
        let program =
            std::env::var("CCM_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_ccm").to_owned());
        let words: Vec<&str> = self
            .wrapper
            .iter()
            .map(String::as_str)
            .chain([program.as_str()])
            .chain(self.arguments.iter().map(String::as_str))
            .collect();
        let base = self.world.base();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(base).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", base.join("home")).env("XDG_STATE_HOME", base.join("home"));
        command.env("CCM_STATE_DIR", self.world.state());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = self.input.clone();
        // A program that ends before it has read everything is no failure of the test.
        thread::spawn(move || drop(stdin.write_all(&input)));
        child
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Outcome {
        let child = self.start();
        finish(child, format!("ccm {}", self.arguments.join(" ")))
    }
}

/// Waits for the end of a program, but not for ever.
#[track_caller]
pub(crate) fn finish(child: Child, command: String) -> Outcome {
    let id = rustix::process::Pid::from_child(&child);
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(PATIENCE) else {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        panic!("{command}\nstill runs after {PATIENCE:?}");
    };
    Outcome::new(command, output.expect("output"))
}
