//! Other configuration managers, each with the same wish in its own language.

use std::{
    env,
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use crate::files::{Files, MODE};

/// A configuration manager.
pub(crate) struct Manager {
    pub(crate) name: &'static str,
    /// Where to get it.
    pub(crate) package: &'static str,
    executable: &'static str,
    /// It is not asked to manage more files than this, because that would take it minutes.
    pub(crate) most_files: usize,
    /// Writes a manifest into a folder and gives the command that applies it.
    pub(crate) prepare: fn(&Files, &Path) -> io::Result<Command>,
}

pub(crate) const MANAGERS: [Manager; 5] = [
    Manager {
        name: "cfengine",
        package: "apt-get install cfengine3",
        executable: "cf-agent",
        most_files: 10_000,
        prepare: cfengine,
    },
    Manager {
        name: "puppet",
        package: "apt-get install puppet-agent",
        executable: "puppet",
        most_files: 1_000,
        prepare: puppet,
    },
    Manager {
        name: "ansible",
        package: "apt-get install ansible-core",
        executable: "ansible-playbook",
        most_files: 100,
        prepare: ansible,
    },
    Manager {
        name: "salt",
        package: "pip install salt",
        executable: "salt-call",
        most_files: 1_000,
        prepare: salt,
    },
    Manager {
        name: "pyinfra",
        package: "pip install pyinfra",
        executable: "pyinfra",
        most_files: 1_000,
        prepare: pyinfra,
    },
];

/// The folder in which ccm remembers.
pub(crate) const STATE: &str = "state";

impl Manager {
    pub(crate) fn is_installed(&self) -> bool {
        find(self.executable).is_some()
    }

    /// Returns what it says of its version.
    pub(crate) fn version(&self) -> Option<String> {
        version(&find(self.executable)?)
    }
}

pub(crate) fn find(executable: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(executable)).find(|path| path.is_file())
}

/// Returns the first line of what a program prints when it is asked for its version.
pub(crate) fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned())
}

pub(crate) fn ccm(program: &Path, files: &Files, folder: &Path) -> io::Result<Command> {
    let manifest = folder.join("manifest.yaml");
    let mut text = BufWriter::new(File::create(&manifest)?);
    writeln!(text, "ccm:\n  resources:{}", if files.count == 0 { " []" } else { "" })?;
    for (path, content) in files.wanted() {
        writeln!(text, "    - file:\n        - {}:", path.display())?;
        writeln!(text, "            owner: \"{}\"\n            group: \"{}\"", files.uid, files.gid)?;
        writeln!(text, "            mode: \"{MODE:04o}\"\n            content: |")?;
        for line in content.lines() {
            writeln!(text, "              {line}")?;
        }
    }
    text.flush()?;
    let mut command = Command::new(program);
    command.arg("apply").arg(manifest).env("CCM_STATE_DIR", folder.join(STATE));
    Ok(command)
}

fn cfengine(files: &Files, folder: &Path) -> io::Result<Command> {
    let policy = folder.join("site.cf");
    let mut text = BufWriter::new(File::create(&policy)?);
    writeln!(text, "body common control {{ bundlesequence => {{ \"main\" }}; }}")?;
    writeln!(text, "body perms wanted {{ mode => \"{MODE:04o}\"; rxdirs => \"false\";")?;
    writeln!(text, "  owners => {{ \"{}\" }}; groups => {{ \"{}\" }}; }}", files.uid, files.gid)?;
    writeln!(text, "bundle agent main {{\nfiles:")?;
    for (path, content) in files.wanted() {
        writeln!(text, "  \"{}\" create => \"true\", perms => wanted,", path.display())?;
        writeln!(text, "    content => \"{content}\";")?;
    }
    writeln!(text, "}}")?;
    text.flush()?;
    // It reads no policy that others may write, and looks for its own checker in its folder.
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o600))?;
    let own = folder.join("cfengine");
    fs::create_dir_all(own.join("bin"))?;
    if let Some(checker) = find("cf-promises") {
        symlink(checker, own.join("bin/cf-promises"))?;
    }
    let mut command = Command::new("cf-agent");
    // Without --no-lock it does nothing when it ran less than a minute ago.
    command.args(["--no-lock", "--file"]).arg(policy).env("CFENGINE_TEST_OVERRIDE_WORKDIR", own);
    Ok(command)
}

fn puppet(files: &Files, folder: &Path) -> io::Result<Command> {
    let manifest = folder.join("site.pp");
    let mut text = BufWriter::new(File::create(&manifest)?);
    for (path, content) in files.wanted() {
        writeln!(text, "file {{ '{}':\n  ensure  => file,", path.display())?;
        writeln!(text, "  owner   => {},\n  group   => {},", files.uid, files.gid)?;
        writeln!(text, "  mode    => '{MODE:04o}',\n  content => '{content}',\n}}")?;
    }
    text.flush()?;
    let mut command = Command::new("puppet");
    command.arg("apply");
    for setting in ["confdir", "codedir", "vardir", "rundir", "logdir"] {
        command.arg(format!("--{setting}")).arg(folder.join("puppet").join(setting));
    }
    command.arg(manifest);
    Ok(command)
}

fn ansible(files: &Files, folder: &Path) -> io::Result<Command> {
    let playbook = folder.join("site.yaml");
    let mut text = BufWriter::new(File::create(&playbook)?);
    writeln!(text, "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n    - copy:")?;
    writeln!(text, "        dest: \"{{{{ item.path }}}}\"\n        content: \"{{{{ item.content }}}}\"")?;
    writeln!(text, "        owner: \"{}\"\n        group: \"{}\"", files.uid, files.gid)?;
    writeln!(text, "        mode: \"{MODE:04o}\"\n      loop:{}", if files.count == 0 { " []" } else { "" })?;
    for (path, content) in files.wanted() {
        writeln!(text, "        - path: {}\n          content: |", path.display())?;
        for line in content.lines() {
            writeln!(text, "            {line}")?;
        }
    }
    text.flush()?;
    let mut command = Command::new("ansible-playbook");
    command.args(["--inventory", "localhost,"]).arg(playbook);
    command.env("HOME", folder.join("ansible")).env("LC_ALL", "C.UTF-8");
    Ok(command)
}

fn salt(files: &Files, folder: &Path) -> io::Result<Command> {
    let own = folder.join("salt");
    fs::create_dir_all(own.join("states"))?;
    let mut text = BufWriter::new(File::create(own.join("states/site.sls"))?);
    if files.count == 0 {
        // It calls an empty list a mistake.
        writeln!(text, "nothing:\n  test.nop: []")?;
    }
    for (path, content) in files.wanted() {
        writeln!(text, "{}:\n  file.managed:\n    - user: {}", path.display(), files.uid)?;
        writeln!(text, "    - group: {}\n    - mode: '{MODE:04o}'\n    - contents: |", files.gid)?;
        for line in content.lines() {
            writeln!(text, "        {line}")?;
        }
    }
    text.flush()?;
    fs::write(own.join("minion"), format!("root_dir: {}\n", own.display()))?;
    let mut command = Command::new("salt-call");
    command.args(["--local", "--retcode-passthrough", "--log-level=error"]);
    command.arg("--config-dir").arg(&own).arg("--file-root").arg(own.join("states"));
    command.args(["state.apply", "site"]);
    Ok(command)
}

fn pyinfra(files: &Files, folder: &Path) -> io::Result<Command> {
    let deploy = folder.join("deploy.py");
    let mut text = BufWriter::new(File::create(&deploy)?);
    writeln!(text, "from io import StringIO\nfrom pyinfra.operations import files\n\nWANTED = [")?;
    for (path, content) in files.wanted() {
        writeln!(text, "    ({:?}, {content:?}),", path.display().to_string())?;
    }
    writeln!(text, "]\nfor path, content in WANTED:")?;
    writeln!(text, "    files.put(name=path, src=StringIO(content), dest=path, mode=\"{MODE:o}\")")?;
    text.flush()?;
    let mut command = Command::new("pyinfra");
    command.args(["@local", "-y"]).arg(deploy).current_dir(folder);
    Ok(command)
}
