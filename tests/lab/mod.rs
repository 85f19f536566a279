//! A lab: a small Debian with a real systemd, booted in a container, to try on it what cannot be tried here.
//!
//! The tree is made once with mmdebstrap and kept in `.lab/`; every boot starts from it afresh, because what is written
//! during a boot stays in memory. It takes a fraction of a second. Most tests share one boot, so each works in a [`Site`]
//! of its own, with unit names that nobody else uses; a few other containers are for one test at a time.
//!
//! A container lives exactly as long as the test process, however that ends: a guardian waits for the end of a pipe
//! that only the test process holds, and then powers the container off. `LAB_SUITE` in the environment names another
//! Debian than the usual one. Needs root and the packages `systemd-container` and `mmdebstrap`.

mod packages;
mod site;

pub(crate) use packages::{Machine, apt_repository};
pub(crate) use site::Site;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    time::Instant,
};

use crate::support::{PATIENCE, has, is_root, pause, sh};

/// What the lab is made of unless `LAB_SUITE` says otherwise.
const SUITE: &str = "bookworm";

/// What a Debian needs to be booted.
const BOOTED: &str = "systemd,systemd-sysv,dbus";

/// The guardian: puts away what a killed one may have left, boots the container, tells its process, and powers it off
/// when the pipe ends. nspawn takes the first SIGTERM for a wish and the second for an order.
///
/// nspawn puts the container into `payload` below the cgroup that it finds itself in. Two that find themselves in the same one
/// share it, and the systemd of each ends the services of the other: every guardian goes into a cgroup of its own.
const GUARDIAN: &str = r#"
groups=
while IFS=: read -r number name path; do
    case $number:$name in
        0:) roots="/sys/fs/cgroup /sys/fs/cgroup/unified" ;;
        *:name=systemd) roots=/sys/fs/cgroup/systemd ;;
        *) continue ;;
    esac
    for root in $roots; do
        [ -e "$root/cgroup.procs" ] || continue
        group="${root}${path%/}/ccm-lab-$$"
        mkdir "$group" && groups="$groups $group" && echo $$ >"$group/cgroup.procs"
    done
done </proc/self/cgroup
if [ "$(cat "/proc/$STALE/comm" 2>/dev/null)" = systemd-nspawn ]; then
    kill -KILL "$STALE"
    while [ -d "/proc/$STALE" ]; do sleep 0.05; done
fi
systemd-nspawn --quiet --directory="$TREE" --boot --register=no --keep-unit --console=pipe --volatile=overlay --read-only \
    --machine="ccm-lab-${LAB##*/}" --bind-ro="$CCM:/usr/local/bin/ccm" </dev/null >"$LAB/console" 2>&1 &
echo $! >"$LAB/pid.new" && mv "$LAB/pid.new" "$LAB/pid"
cat >/dev/null
for signal in TERM TERM KILL; do
    kill -$signal $! 2>/dev/null
    for _ in $(seq 30); do [ -d "/proc/$!" ] || break 2; sleep 0.1; done
done
rm -f "$LAB/pid"
for group in $groups; do
    echo $$ >"${group%/*}/cgroup.procs"
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
done
"#;

/// Of the generators, all of which run at every reload, only that for scripts in `/etc/init.d` finds something to do here. The
/// others take as long as the reload itself.
const NO_GENERATORS: &str = r#"
mkdir -p /run/systemd/system-generators
for generator in /lib/systemd/system-generators/*; do
    case $generator in
        */systemd-sysv-generator) ;;
        *) ln -s /dev/null "/run/systemd/system-generators/${generator##*/}" ;;
    esac
done
"#;

/// A container that runs.
pub(crate) struct Lab {
    /// Its first process, as this machine counts.
    leader: u32,
    /// Holds the pipe that ends with the test process.
    _guardian: Child,
}

impl Lab {
    /// Boots a container with a name of its own when the first test asks; `None` where there can be none.
    fn get(lab: &'static OnceLock<Self>, name: &str) -> Option<&'static Self> {
        let can = is_root() && has("systemd-nspawn") && has("mmdebstrap") && has("nsenter");
        can.then(|| lab.get_or_init(|| Self::boot(name, "", BOOTED)))
    }

    /// Another one, which has dnf too; only the tests of packages ask for it.
    fn with_dnf() -> Option<&'static Self> {
        static LAB: OnceLock<Lab> = OnceLock::new();
        let can = is_root() && has("systemd-nspawn") && has("mmdebstrap") && has("nsenter");
        can.then(|| {
            LAB.get_or_init(|| Self::boot("with-dnf", "-dnf", &format!("{BOOTED},dnf,dnf-plugins-core")))
        })
    }

    /// Boots a container of a tree with these packages; what is known of it is kept in a folder of this name.
    fn boot(name: &str, tree_suffix: &str, packages: &str) -> Self {
        let tree = {
            // Another container, or another test process, may be about to make it.
            let lock = fs::File::create(folder().join("tree.lock")).expect("a lock");
            lock.lock().expect("a tree that is whole");
            tree(&folder(), tree_suffix, packages)
        };
        let folder = folder().join(name);
        fs::create_dir_all(&folder).expect("a folder for the lab");
        // Held by the guardian too: the lock is free when the container of an earlier run is gone.
        let lock = fs::File::create(folder.join("lock")).expect("a lock");
        lock.lock().expect("the end of an earlier lab");
        let stale = fs::read_to_string(folder.join("pid")).unwrap_or_default();
        let _ = fs::remove_file(folder.join("pid"));
        let guardian = Command::new("/bin/sh")
            .args(["-c", GUARDIAN])
            .env("LAB", &folder)
            .env("TREE", &tree)
            .env("STALE", stale.trim())
            .env("CCM", env!("CARGO_BIN_EXE_ccm"))
            .stdin(Stdio::piped())
            .stdout(lock)
            // Whoever interrupts the tests at a terminal does not interrupt the guardian.
            .process_group(0)
            .spawn()
            .expect("a shell");
        let leader = wait_for("the container", &folder, || {
            let leader = leader(&folder)?;
            let answer = inside(leader, &["systemctl", "is-system-running", "--wait"]).output().ok()?;
            let is_up = ["running", "degraded"].contains(&String::from_utf8_lossy(&answer.stdout).trim());
            is_up.then_some(leader)
        });
        let lab = Self { leader, _guardian: guardian };
        lab.sh(NO_GENERATORS);
        lab
    }

    /// A program in the container. `PATH` is all it gets of an environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        inside(self.leader, words)
    }

    /// A path of the container as this machine sees it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.leader))
    }

    /// Runs a script in the container, which must go well, and gives what it printed.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        let Output { status, stdout, stderr } =
            self.command(&["/bin/sh", "-ec", script]).output().expect("a shell");
        assert!(status.success(), "{script}\n{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).expect("text")
    }

    /// Waits until a script in the container goes well.
    #[track_caller]
    pub(crate) fn wait_until(&self, script: &str) {
        let begun = Instant::now();
        while !self.command(&["/bin/sh", "-ec", script]).output().expect("a shell").status.success() {
            assert!(begun.elapsed() < PATIENCE, "{script}\nis still not so");
            pause(begun);
        }
    }
}

fn inside(leader: u32, words: &[&str]) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--all", "--target", &leader.to_string(), "--"]).args(words);
    command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdin(Stdio::null());
    command
}

/// The first process in the container that the guardian has started, once it is one: before that, nspawn's child only
/// prepares it.
fn leader(folder: &Path) -> Option<u32> {
    let pid: u32 = fs::read_to_string(folder.join("pid")).ok()?.trim().parse().ok()?;
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let leader = children.split_whitespace().next()?;
    let is_init =
        fs::read_to_string(format!("/proc/{leader}/comm")).is_ok_and(|name| name.trim() == "systemd");
    leader.parse().ok().filter(|_| is_init)
}

#[track_caller]
fn wait_for<T>(what: &str, folder: &Path, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let console = || fs::read_to_string(folder.join("console")).unwrap_or_default();
        assert!(begun.elapsed() < PATIENCE, "{what} is not there; the console says:\n{}", console());
        pause(begun);
    }
}

/// Where trees are kept.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".lab");
    fs::create_dir_all(&folder).expect("a folder for the lab");
    folder
}

/// A tree with these packages, made if it is not there yet.
fn tree(folder: &Path, kind: &str, include: &str) -> PathBuf {
    let suite = std::env::var("LAB_SUITE").unwrap_or_else(|_| SUITE.to_owned());
    let tree = folder.join(format!("{suite}{kind}"));
    if tree.is_dir() {
        return tree;
    }
    let unfinished = folder.join(format!("{suite}{kind}.new"));
    let _ = fs::remove_dir_all(&unfinished);
    // The mirror that this machine itself uses for Debian, where it does.
    let mirrors =
        "apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null || true";
    let mirrors = sh(mirrors, folder);
    let mirror = mirrors.lines().filter_map(|line| line.split_once(' ')).find(|(_, of)| *of == suite);
    // What it mounts in the tree, and may leave there, is gone with it.
    let made = Command::new("unshare")
        .args([
            "--mount",
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            &format!("--include={include}"),
            &suite,
        ])
        .arg(&unfinished)
        .args(mirror.map(|(uri, _)| uri))
        .status()
        .expect("mmdebstrap");
    assert!(made.success(), "mmdebstrap could not make a tree for the lab");
    fs::rename(&unfinished, &tree).expect("a new tree");
    tree
}
