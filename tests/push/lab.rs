//! Hosts in network namespaces, each with a real `sshd`, and a controller in a namespace of its own.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::support::{Outcome, has, is_root, sh, skip, wait_until};

/// Hosts that a controller reaches by ssh. They are gone when the test is over.
pub(super) struct Lab {
    directory: PathBuf,
    name: String,
    hosts: usize,
    /// Script that runs on each host before `sshd`.
    setup: String,
}

/// Number of labs of this process so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Begins the script of a lab whose hosts have no ccm, so that the controller sends it.
pub(super) const WITHOUT_CCM: &str = "rm /usr/local/bin/ccm; ";

/// Directories that each host has for itself.
const OWN: [&str; 4] = ["/var/lib/ccm", "/root", "/usr/local/lib", "/opt"];

impl Lab {
    /// Starts hosts `10.9.0.1` and following; `None` where that is not possible.
    pub(super) fn start(hosts: usize) -> Option<Self> {
        Self::with(hosts, "", "")
    }

    /// Starts hosts with more lines for `sshd_config`, and a script that runs on each host before `sshd`. `$H` in both is the
    /// host's directory.
    pub(super) fn with(hosts: usize, configuration: &str, setup: &str) -> Option<Self> {
        if !is_root()
            || !has("ip")
            || !has("ssh")
            || !Path::new("/usr/sbin/sshd").exists() && !skip("needs sshd")
        {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ccm{}x{number}", std::process::id() % 100_000);
        let directory = std::env::temp_dir().join(format!("ccm-push-{}-{number}", std::process::id()));
        fs::create_dir_all(directory.join("home")).unwrap();
        let lab = Self { directory, name, hosts, setup: setup.to_owned() };
        if !lab.network() {
            skip("needs network namespaces");
            return None;
        }
        for host in 1..=hosts {
            lab.host(host, configuration);
        }
        lab.configure();
        Some(lab)
    }

    fn network(&self) -> bool {
        let name = &self.name;
        let script = format!(
            "ip netns add {name} && ip -n {name} link set lo up && ip -n {name} link add bridge0 type bridge && \
             ip -n {name} address add 10.9.0.254/24 dev bridge0 && ip -n {name} link set bridge0 up && \
             ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -q -t ed25519 -N '' -f hostkey && mkdir -p /run/sshd"
        );
        let made = Command::new("sh").args(["-ec", &script]).current_dir(&self.directory).status();
        made.is_ok_and(|status| status.success())
    }

    fn host(&self, host: usize, configuration: &str) {
        let root = self.root(host);
        for own in OWN {
            let own = root.join(&own[1..]);
            fs::create_dir_all(&own).unwrap();
            fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let shown = root.display().to_string();
        let configuration = configuration.replace("$H", &shown);
        let lab = self.directory.display();
        let text = format!(
            "ListenAddress 10.9.0.{host}\nHostKey {lab}/hostkey\nPidFile {shown}/sshd.pid\nPermitRootLogin yes\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nMaxStartups 300\n\
             AuthorizedKeysFile {lab}/key.pub\n{configuration}"
        );
        fs::write(root.join("sshd_config"), text).unwrap();
        let (name, inner) = (&self.name, format!("{}h{host}", self.name));
        let script = format!(
            "ip netns add {inner}\nip link add {inner} netns {name} type veth peer name eth0 netns {inner}\n\
             ip -n {name} link set {inner} master bridge0 up\nip -n {inner} address add 10.9.0.{host}/24 dev eth0\n\
             ip -n {inner} link set eth0 up\nip -n {inner} link set lo up"
        );
        sh(&script, &self.directory);
        self.boot(host);
    }

    /// Starts a host: mounts its directories, runs the script of the lab, and starts `sshd`.
    fn boot(&self, host: usize) {
        let (root, inner) = (self.root(host), format!("{}h{host}", self.name));
        let shown = root.display().to_string();
        let (setup, ccm) = (self.setup.replace("$H", &shown), env!("CARGO_BIN_EXE_ccm"));
        let _ = fs::remove_file(root.join("sshd.log"));
        let binds: String =
            OWN.iter().map(|own| format!("mkdir -p {own}; mount --bind {shown}{own} {own}; ")).collect();
        let script = format!(
            "ip netns exec {inner} unshare --mount --uts sh -ec 'hostname host{host}; {binds} mount -t tmpfs tmpfs /run; \
             mkdir -p /run/sshd; \
             mount -t tmpfs tmpfs /usr/local/bin; ln -s {ccm} /usr/local/bin/ccm; {setup} exec /usr/sbin/sshd -E {shown}/sshd.log -f {shown}/sshd_config'"
        );
        sh(&script, &self.directory);
        wait_until("sshd listens", || {
            fs::read_to_string(root.join("sshd.log")).is_ok_and(|log| log.contains("listening"))
        });
    }

    /// Ends all processes of a host, clears its memory, and starts it again.
    pub(super) fn reboot(&self, host: usize) {
        let inner = format!("{}h{host}", self.name);
        sh(&format!("ip netns pids {inner} | xargs -r kill -9 || true"), &self.directory);
        wait_until("all processes have ended", || {
            sh(&format!("ip netns pids {inner}"), &self.directory).trim().is_empty()
        });
        self.boot(host);
    }

    /// Starts a command of the controller on a terminal, which reads standard input.
    pub(super) fn on_a_terminal(&self, words: &str) -> Option<Child> {
        if !has("script") {
            return None;
        }
        let inner = self.command(words);
        let words: Vec<String> = std::iter::once(inner.get_program())
            .chain(inner.get_args())
            .map(|word| format!("'{}'", word.to_string_lossy()))
            .collect();
        let mut script = Command::new("script");
        script
            .args(["-qec", &words.join(" "), "/dev/null"])
            .current_dir(&self.directory)
            .env("TERM", "xterm");
        script.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Some(script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn configure(&self) {
        let lab = self.directory.display();
        let key = fs::read_to_string(self.directory.join("hostkey.pub")).unwrap();
        let key = key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let known: String = (1..=self.hosts).map(|host| format!("10.9.0.{host} {key}\n")).collect();
        fs::write(self.directory.join("known_hosts"), known).unwrap();
        let config = format!(
            "IdentityFile {lab}/key\nIdentitiesOnly yes\nUserKnownHostsFile {lab}/known_hosts\nStrictHostKeyChecking yes\n"
        );
        fs::write(self.directory.join("ssh_config"), config).unwrap();
        let wrapper = format!("#!/bin/sh\nexec ssh -F {lab}/ssh_config \"$@\"\n");
        self.program("ssh", &wrapper);
    }

    /// Writes an executable file for the controller, and returns its path.
    pub(super) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap();
        sh(&format!("chmod 755 {name}"), &self.directory);
        path
    }

    /// Directory with the private files of a host.
    pub(super) fn root(&self, host: usize) -> PathBuf {
        self.directory.join(format!("host{host}"))
    }

    /// A file of a host in one of its own directories.
    pub(super) fn file(&self, host: usize, path: &str) -> PathBuf {
        self.root(host).join(path.trim_start_matches('/'))
    }

    /// Directory of the controller.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a file of the controller.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// All hosts, as `--on` takes them.
    pub(super) fn all(&self) -> String {
        (1..=self.hosts).map(|host| format!("root@10.9.0.{host}")).collect::<Vec<_>>().join(",")
    }

    /// Returns a command of the controller. Words are separated by spaces; `$ALL` is all hosts.
    pub(super) fn command(&self, words: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, env!("CARGO_BIN_EXE_ccm")]);
        command.args(words.replace("$ALL", &self.all()).split_whitespace());
        let is_push = words.contains(" --on ") && !words.contains(" --ssh ");
        if is_push {
            command.arg("--ssh").arg(self.directory.join("ssh"));
        }
        command.current_dir(&self.directory).stdin(Stdio::null());
        command.env("HOME", self.directory.join("home")).env("CCM_STATE_DIR", self.directory.join("state"));
        command
    }

    /// Runs a command of the controller.
    pub(super) fn run(&self, words: &str) -> Outcome {
        Outcome::new(words.to_owned(), self.command(words).output().unwrap())
    }

    /// Starts a command of the controller.
    pub(super) fn spawn(&self, words: &str) -> Child {
        self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Kills the processes of a host whose command line has this text.
    pub(super) fn kill(&self, host: usize, text: &str) {
        let script = format!(
            "for pid in $(ip netns pids {}h{host}); do tr \"\\0\" \" \" < /proc/$pid/cmdline | grep -qF \"{text}\" && kill -9 $pid; done; true",
            self.name
        );
        sh(&script, &self.directory);
    }

    /// Returns arguments and environment of the processes of a host whose command line has this text.
    pub(super) fn processes(&self, host: usize, text: &str) -> String {
        let script = format!(
            "for pid in $(ip netns pids {}h{host}); do if grep -qaF \"{text}\" /proc/$pid/cmdline; then \
             cat /proc/$pid/cmdline /proc/$pid/environ | tr \"\\0\" \" \"; fi; done",
            self.name
        );
        sh(&script, &self.directory)
    }

    /// Runs a script on a host, outside of ssh.
    pub(super) fn on(&self, host: usize, script: &str) -> String {
        let pid = fs::read_to_string(self.root(host).join("sshd.pid")).unwrap();
        sh(&format!("nsenter --target {} --mount --net --uts sh -ec '{script}'", pid.trim()), &self.directory)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let spaces: Vec<String> =
            (1..=self.hosts).map(|host| format!("{}h{host}", self.name)).chain([self.name.clone()]).collect();
        for space in spaces {
            let script = format!("ip netns pids {space} | xargs -r kill -9; ip netns delete {space}");
            let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
        }
        if !std::thread::panicking() || std::env::var_os("KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
