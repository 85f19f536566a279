//! Namespaces of a test's own, in which the program and shell commands run as root.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use super::{Call, Outcome, World, has, is_root, sh};

/// Namespaces for network, mounts and host name; gone when the test is over.
pub(crate) struct Namespace {
    keeper: Child,
    base: String,
}

impl Namespace {
    /// Makes namespaces, and prepares them with a shell script. Returns nothing if the test cannot act as root.
    pub(crate) fn new(world: &World, prepare: &str) -> Option<Self> {
        if !is_root() || !has("unshare") || !has("nsenter") {
            return None;
        }
        let base = world.base().display().to_string();
        let script = format!("{}\necho ready\nexec cat", world.fill(prepare));
        let mut keeper = Command::new("unshare")
            .args(["--net", "--uts", "--mount", "--propagation", "private", "sh", "-ec", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        let mut line = String::new();
        let output = keeper.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "the namespaces cannot be prepared");
        Some(Self { keeper, base })
    }

    /// Returns the words before a command that runs in the namespaces.
    pub(crate) fn wrapper(&self) -> Vec<String> {
        let enter = format!("cd {} && exec \"$@\"", self.base);
        [
            "nsenter",
            "--target",
            &self.keeper.id().to_string(),
            "--net",
            "--uts",
            "--mount",
            "sh",
            "-c",
            &enter,
            "sh",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Runs a shell script, and returns its output.
    pub(crate) fn sh(&self, script: &str) -> String {
        let target = self.keeper.id();
        let quoted = script.replace('\'', "'\\''");
        sh(
            &format!("nsenter --target {target} --net --uts --mount sh -ec '{quoted}'"),
            std::path::Path::new(&self.base),
        )
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// A world whose commands run in namespaces of its own.
pub(crate) struct Machine {
    pub(crate) namespace: Namespace,
    pub(crate) world: World,
}

impl Machine {
    /// Makes a machine, and prepares it with a shell script. Returns nothing if the test cannot act as root.
    pub(crate) fn new(world: World, prepare: &str) -> Option<Self> {
        let namespace = Namespace::new(&world, prepare)?;
        Some(Self { namespace, world })
    }

    /// Replaces the manifest by one with these resources of a type.
    pub(crate) fn declares(mut self, kind: &str, items: &str) -> Self {
        self.world = self.world.manifest(&format!("- {kind}:\n{items}"));
        self
    }

    pub(crate) fn call<'m>(&'m self, arguments: &[&str]) -> Call<'m> {
        self.world.ccm(arguments.iter().copied()).under(self.namespace.wrapper())
    }

    pub(crate) fn apply(&self) -> Outcome {
        self.call(&["apply", "site.yaml"]).run()
    }

    pub(crate) fn noop(&self) -> Outcome {
        self.call(&["apply", "site.yaml", "--noop"]).run()
    }
}
