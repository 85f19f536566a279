//! The machine that facts describe: its files and system calls.

#![allow(clippy::disallowed_methods, reason = "facts are read here and nowhere else")]

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::system::uname;

use super::{
    host,
    network::{Network, netlink},
    partition::{self, Mount},
    virtualization::Virtualization,
};
use crate::host::platform::Platform;

/// This machine, or a recording of another one: a directory with copies of its files. Results of system calls are
/// recorded in additional files: responses about the network in `netlink/`, kernel name and version in
/// `/proc/sys/kernel`.
pub(super) struct Machine {
    root: PathBuf,
    shared: Shared,
    /// Time spent on gathering facts, in nanoseconds.
    spent: AtomicU64,
}

/// Data that several facts share, read once.
#[derive(Default)]
struct Shared {
    kernel: OnceLock<Kernel>,
    platform: OnceLock<Platform>,
    virtualization: OnceLock<Virtualization>,
    boot_time: OnceLock<u64>,
    memory: OnceLock<String>,
    mounts: OnceLock<Vec<Mount>>,
    network: OnceLock<Network>,
}

/// Kernel name, version and architecture.
pub(super) struct Kernel {
    pub(super) hostname: String,
    pub(super) release: String,
    pub(super) architecture: String,
}

/// Maximum size that is read of a file; the rest is ignored.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Files in /proc do not report their size. Most fit into this buffer.
const USUAL: usize = 8 * 1024;

impl Machine {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { root, shared: Shared::default(), spent: AtomicU64::new(0) }
    }

    /// Runs a function and adds its duration to the time spent.
    pub(super) fn timed<T>(&self, gather: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let gathered = gather();
        let nanoseconds = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.spent.fetch_add(nanoseconds, Ordering::Relaxed);
        gathered
    }

    /// Returns the total duration of timed functions.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// Returns whether system calls describe this machine.
    pub(super) fn is_running(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Returns the content of a file, with a path relative to the root of the machine.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.bytes(path).map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Returns the first line of a file, unless the file is empty.
    pub(super) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub(super) fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// Returns the names in a directory.
    pub(super) fn names(&self, path: &str) -> impl Iterator<Item = String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    }

    /// Returns the response of the kernel to a question about its network.
    pub(super) fn netlink(&self, question: netlink::Question) -> Vec<u8> {
        if self.is_running() {
            // Without a response, there are no interfaces.
            netlink::ask(question).unwrap_or_default()
        } else {
            self.bytes(question.recording()).unwrap_or_default()
        }
    }

    pub(super) fn kernel(&self) -> &Kernel {
        self.shared.kernel.get_or_init(|| {
            if self.is_running() {
                let own = uname();
                return Kernel {
                    hostname: own.nodename().to_string_lossy().into_owned(),
                    release: own.release().to_string_lossy().into_owned(),
                    architecture: own.machine().to_string_lossy().into_owned(),
                };
            }
            let recorded = |name| self.line(&format!("proc/sys/kernel/{name}")).unwrap_or_default();
            Kernel {
                hostname: recorded("hostname"),
                release: recorded("osrelease"),
                architecture: recorded("arch"),
            }
        })
    }

    pub(super) fn platform(&self) -> &Platform {
        self.shared.platform.get_or_init(|| Platform::of(|path| self.text(path)))
    }

    pub(super) fn virtualization(&self) -> &Virtualization {
        self.shared.virtualization.get_or_init(|| Virtualization::of(self))
    }

    /// Returns the time of the boot in seconds since 1970.
    pub(super) fn boot_time(&self) -> u64 {
        *self.shared.boot_time.get_or_init(|| host::boot_time(self))
    }

    /// Returns the content of /proc/meminfo.
    pub(super) fn memory(&self) -> &str {
        self.shared.memory.get_or_init(|| self.text("proc/meminfo").unwrap_or_default())
    }

    /// Returns the mounted file systems on local disks.
    pub(super) fn mounts(&self) -> &[Mount] {
        self.shared.mounts.get_or_init(|| partition::local(self))
    }

    pub(super) fn network(&self) -> &Network {
        self.shared.network.get_or_init(|| Network::of(self))
    }

    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(USUAL);
        File::open(self.root.join(path)).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}
