//! One test's place in the lab.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Output,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{Lab, packages};
use crate::support::{Outcome, sh};

/// A folder in the lab with a manifest, a state directory and a `systemctl` that keeps a record of how it is called.
pub(crate) struct Site {
    pub(crate) lab: &'static Lab,
    folder: String,
    /// Whether packages go with it.
    has_packages: bool,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// Writes down in the folder `$1` which packages there are and where they come from.
const REMEMBER: &str = r"
mkdir -p $1/apt
cp -a /etc/apt/sources.list* $1/apt/
dpkg-query --show --showformat '${Package}\n' | sort >$1/packages
";

/// Makes it as it was written down in the folder `$1`, whatever manifests put beside what packages brought.
const RESTORE: &str = r#"
rm -rf /usr/sbin/policy-rc.d /etc/apt/sources.list*
cp -a $1/apt/. /etc/apt/
new=$(dpkg-query --show --showformat '${Package}\n' | sort | comm -13 $1/packages -)
[ -z "$new" ] || DEBIAN_FRONTEND=noninteractive dpkg --purge --force-all $new
rm -rf /etc/nginx
systemctl daemon-reload
systemctl reset-failed
"#;

/// The container in which tests work side by side.
static SHARED: OnceLock<Lab> = OnceLock::new();

/// A container for those who would see what others do to systemd as a whole, one at a time.
struct Room {
    name: &'static str,
    lab: OnceLock<Lab>,
    turn: Mutex<()>,
}

static ROOMS: [Room; 3] = [Room::new("room-1"), Room::new("room-2"), Room::new("room-3")];

impl Room {
    const fn new(name: &'static str) -> Self {
        Self { name, lab: OnceLock::new(), turn: Mutex::new(()) }
    }

    /// Takes a room: one where nobody is, or else the next in turn, when it is free.
    fn take() -> (&'static Self, MutexGuard<'static, ()>) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let free = ROOMS.iter().find_map(|room| match room.turn.try_lock() {
            Ok(turn) => Some((room, turn)),
            // A test that failed there does not keep others out.
            Err(TryLockError::Poisoned(left)) => Some((room, left.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        });
        free.unwrap_or_else(|| {
            let room = &ROOMS[NEXT.fetch_add(1, Ordering::Relaxed) % ROOMS.len()];
            (room, room.turn.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}

impl Site {
    /// A site with a name that no other test uses; `None` where there is no lab.
    pub(crate) fn new(name: &str) -> Option<Self> {
        Some(Self::open(name, Lab::get(&SHARED, "shared")?, None))
    }

    /// The same, with nobody else in the container.
    pub(crate) fn alone(name: &str) -> Option<Self> {
        let (room, turn) = Room::take();
        Some(Self::open(name, Lab::get(&room.lab, room.name)?, Some(turn)))
    }

    /// The same, for a test that installs packages: they are gone when it ends, however it ends.
    pub(crate) fn with_packages(name: &str) -> Option<Self> {
        let mut site = Self::alone(name)?;
        site.script(REMEMBER);
        site.has_packages = true;
        Some(site)
    }

    /// A site on a booted machine that says it is a Fedora, with dnf and a repository. It is used once.
    pub(crate) fn with_dnf(name: &str) -> Option<Self> {
        let site = Self::open(name, Lab::with_dnf()?, None);
        let repository = format!("{}/repository", site.folder);
        sh(&format!("cp -r . {}", site.lab.path(&repository).display()), &packages::dnf_repository());
        site.lab.sh("rm /etc/os-release");
        for (path, content) in packages::fedora(&repository) {
            site.write(path, &content);
        }
        Some(site)
    }

    /// Runs a script that is told the folder.
    fn script(&self, script: &str) -> Output {
        let output = self.lab.command(&["/bin/sh", "-ec", script, "sh", &self.folder]).output();
        output.expect("a shell")
    }

    fn open(name: &str, lab: &'static Lab, turn: Option<MutexGuard<'static, ()>>) -> Self {
        let site = Self { lab, folder: format!("/srv/{name}"), has_packages: false, _turn: turn };
        let folder = &site.folder;
        site.write(
            &format!("{folder}/bin/systemctl"),
            &format!(
                "#!/bin/sh\necho \"$*\" >>{folder}/calls\n[ ! -f {folder}/before-$1 ] || . {folder}/before-$1\n\
                 exec /usr/bin/systemctl \"$@\"\n"
            ),
        );
        let systemctl = lab.path(&format!("{folder}/bin/systemctl"));
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).expect("own file");
        site
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.lab.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(path, content).expect("a new file");
    }

    /// Writes a unit that can be enabled, from the lines of its `[Service]` section.
    pub(crate) fn unit(&self, name: &str, lines: &str) {
        self.write(&format!("/etc/systemd/system/{name}.service"), &enablable(lines));
    }

    /// Lets a shell run a script before each call of a verb of systemctl.
    pub(crate) fn before(&self, verb: &str, script: &str) {
        self.write(&format!("{}/before-{verb}", self.folder), script);
    }

    /// Lets a shell run a script before the second look at a unit that was started, which tells whether it stays up. In it
    /// `$first` is what the unit had for `NRestarts` before the first look.
    pub(crate) fn before_the_second_look(&self, unit: &str, script: &str) {
        let looks = format!("{}/looks-{unit}", self.folder);
        self.before(
            "start",
            &format!("/usr/bin/systemctl show --value --property=NRestarts {unit} >{looks}\n"),
        );
        self.before(
            "show",
            &format!(
                "if [ -e {looks} ]; then echo >>{looks}; if [ $(wc -l <{looks}) = 3 ]; then first=$(head -n 1 {looks})\n\
                 {script}\nfi; fi\n"
            ),
        );
    }

    /// No longer does what [`Site::before`] said.
    pub(crate) fn before_no_more(&self, verb: &str) {
        fs::remove_file(self.lab.path(&format!("{}/before-{verb}", self.folder))).expect("a script");
    }

    /// Applies a manifest.
    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) -> Outcome {
        self.apply_with(manifest, &["-v"])
    }

    /// Applies a manifest with flags.
    #[track_caller]
    pub(crate) fn apply_with(&self, manifest: &str, flags: &[&str]) -> Outcome {
        let file = format!("{}/site.yaml", self.folder);
        self.write(&file, manifest);
        self.ccm(&[&["apply", &file], flags].concat())
    }

    /// Runs the program.
    #[track_caller]
    pub(crate) fn ccm(&self, arguments: &[&str]) -> Outcome {
        let folder = &self.folder;
        let _ = fs::remove_file(self.lab.path(&format!("{folder}/calls")));
        let output: Output = self
            .lab
            .command(&[&["ccm"], arguments].concat())
            .env("CCM_STATE_DIR", format!("{folder}/state"))
            .env("PATH", format!("{folder}/bin:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"))
            .output()
            .expect("the program starts");
        Outcome::new(format!("ccm {}", arguments.join(" ")), output)
    }

    /// The name that no other test uses.
    pub(crate) fn name(&self) -> &str {
        self.folder.trim_start_matches("/srv/")
    }

    /// How systemctl was called during the last run.
    pub(crate) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.lab.path(&format!("{}/calls", self.folder))).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// How often the last run called a verb of systemctl.
    pub(crate) fn count(&self, verb: &str) -> usize {
        self.calls().iter().filter(|call| call.split(' ').next() == Some(verb)).count()
    }

    /// What systemctl says a unit is doing.
    pub(crate) fn active(&self, unit: &str) -> String {
        self.lab.sh(&format!("systemctl is-active {unit} || true")).trim().to_owned()
    }

    /// What systemctl says about a unit at boot.
    pub(crate) fn enabled(&self, unit: &str) -> String {
        self.lab.sh(&format!("systemctl is-enabled {unit} 2>&1 || true")).trim().to_owned()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.has_packages {
            let output = self.script(RESTORE);
            // A second panic would end all tests.
            assert!(output.status.success() || std::thread::panicking(), "{output:?}");
        }
    }
}

/// A unit that can be enabled, with these lines in its `[Service]` section.
pub(crate) fn enablable(lines: &str) -> String {
    format!("[Service]\n{lines}\n[Install]\nWantedBy=multi-user.target\n")
}
