//! Many of one kind, all as they should be: large files, packages and accounts.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use crate::{
    Result,
    contest::{self, Contender, Table},
    files::empty,
    measure,
    programs::{STATE, find},
};

const LARGE_FILES: usize = 10;
const LARGE: u64 = 1 << 30;
const PACKAGES: usize = 500;
const ACCOUNTS: u32 = 1_000;
const MANIFEST: &str = "site.yaml";

pub(crate) fn compare(folder: &Path, ccm: &Path) -> Result<Vec<Table>> {
    let mut tables = vec![large_files(folder, ccm)?];
    if find("dpkg-query").is_some() {
        tables.push(packages(folder, ccm)?);
    }
    // Another list of accounts takes the place of the machine's for one program alone.
    if rustix::process::geteuid().is_root() {
        tables.push(accounts(folder, ccm)?);
    }
    fs::remove_dir_all(folder)?;
    Ok(tables)
}

/// Compares ccm with a program that does nothing: what is remembered need not be read.
fn large_files(folder: &Path, ccm: &Path) -> Result<Table> {
    empty(folder)?;
    // Files with nothing but holes take no room, and as long to read as others.
    let make = |name: &str| File::create(folder.join(name)).and_then(|file| file.set_len(LARGE));
    make("source")?;
    let names = (0..LARGE_FILES).map(|number| format!("large-{number}"));
    for name in names.clone() {
        make(&name)?;
    }
    let item = |name: String| {
        format!("{}/{name}: {{ source: source, owner: root, group: root, mode: '0644' }}", folder.display())
    };
    write_manifest(folder, "file", names.map(item))?;
    // A file is remembered once its last change is some time ago.
    apply(ccm, folder).status()?;
    thread::sleep(Duration::from_secs(3));
    apply(ccm, folder).status()?;
    against(
        &format!("{LARGE_FILES} GiB of unchanged files"),
        &Contender { name: "true", command: Command::new("true"), about: () },
        apply(ccm, folder),
    )
}

fn packages(folder: &Path, ccm: &Path) -> Result<Table> {
    empty(folder)?;
    let listed = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\n"])
        .output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let installed: Vec<_> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("installed ")?.split_once(' '))
        .take(PACKAGES)
        .collect();
    let item = |(name, version): &(&str, &str)| format!("{name}: {{ ensure: '{version}' }}");
    write_manifest(folder, "package", installed.iter().map(item))?;
    let mut query = Command::new("dpkg-query");
    query.arg("--show");
    against(
        &format!("{} packages unchanged", installed.len()),
        &Contender { name: "dpkg-query", command: query, about: () },
        apply(ccm, folder),
    )
}

fn accounts(folder: &Path, ccm: &Path) -> Result<Table> {
    empty(folder)?;
    let numbers = 10_000..10_000 + ACCOUNTS;
    let own = |path: &str, line: &dyn Fn(u32) -> String| -> Result<()> {
        let own: Vec<String> = numbers.clone().map(line).collect();
        let all = fs::read_to_string(Path::new("/etc").join(path))? + &own.concat();
        Ok(fs::write(folder.join(path), all)?)
    };
    own("passwd", &|id| format!("bench{id}:x:{id}:{id}::/nonexistent:/bin/sh\n"))?;
    own("group", &|id| format!("bench{id}:x:{id}:\n"))?;
    own("shadow", &|id| format!("bench{id}:!:20000:0:99999:7:::\n"))?;
    let item = |id| format!("bench{id}: {{ uid: {id}, group: bench{id}, shell: /bin/sh }}");
    write_manifest(folder, "user", numbers.clone().map(item))?;
    let privately = |command: &Command| {
        let script =
            "for name in passwd group shadow; do mount --bind $0/$name /etc/$name; done; exec \"$@\"";
        let mut all = Command::new("unshare");
        all.args(["--mount", "sh", "-ec", script]).arg(folder);
        all.arg(command.get_program()).args(command.get_args());
        all.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        all
    };
    against(
        &format!("{ACCOUNTS} accounts unchanged"),
        &Contender { name: "true", command: privately(&Command::new("true")), about: () },
        privately(&apply(ccm, folder)),
    )
}

/// Writes a manifest of resources of one type.
fn write_manifest(folder: &Path, kind: &str, items: impl Iterator<Item = String>) -> io::Result<()> {
    let mut text = BufWriter::new(File::create(folder.join(MANIFEST))?);
    writeln!(text, "- {kind}:")?;
    for item in items {
        writeln!(text, "    - {item}")?;
    }
    text.flush()
}

fn apply(ccm: &Path, folder: &Path) -> Command {
    let mut command = Command::new(ccm);
    // One that changed something would not be measured.
    command.args(["apply", "--detailed-exitcode"]).arg(folder.join(MANIFEST));
    command.env("CCM_STATE_DIR", folder.join(STATE));
    command
}

fn against(title: &str, baseline: &Contender<()>, command: Command) -> Result<Table> {
    let ccm = Contender { name: "ccm", command, about: () };
    contest::hold(title, &[baseline, &ccm], |one| measure::run(&one.command))
}
