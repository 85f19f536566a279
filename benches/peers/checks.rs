//! A thousand health checks: of commands, against a shell that starts the same commands, and of rules that take none,
//! against `true`.

use std::{fs, path::Path, process::Command};

use crate::{
    Result,
    contest::{self, Contender, Table},
    files::empty,
    measure,
};

const COUNT: usize = 1_000;

pub(crate) fn compare(folder: &Path, ccm: &Path) -> Result<[Table; 2]> {
    empty(folder)?;
    let list = |check: &str| {
        let item = |number| format!("- {{ name: c{number}, {check} }}\n");
        (0..COUNT).map(item).collect::<Vec<_>>().concat()
    };
    let (commands, rules) = (list("command: /bin/true"), list("file: /"));
    fs::write(folder.join("commands.yaml"), commands)?;
    fs::write(folder.join("rules.yaml"), rules)?;
    let check = |list: &str| {
        let mut command = Command::new(ccm);
        command.arg("check").arg(folder.join(list)).args(["--format", "nagios"]);
        Contender { name: "ccm", command, about: () }
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("for n in $(seq {COUNT}); do /bin/true; done"));
    let contenders = [Contender { name: "sh", command: shell, about: () }, check("commands.yaml")];
    let title = format!("{COUNT} checks that run a command");
    let by_commands = contest::hold(&title, &contenders.each_ref(), |one| measure::run(&one.command))?;
    let contenders =
        [Contender { name: "true", command: Command::new("true"), about: () }, check("rules.yaml")];
    let title = format!("{COUNT} checks that look at a file");
    let by_rules = contest::hold(&title, &contenders.each_ref(), |one| measure::run(&one.command))?;
    fs::remove_dir_all(folder)?;
    Ok([by_commands, by_rules])
}
