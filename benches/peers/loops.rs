//! A `for_each` of many elements, loaded and checked, against the same resources written out. That it takes ten times as
//! long for ten times as many elements is seen from one table to the next.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::Command,
};

use crate::{
    Result,
    contest::{self, Contender, Table},
    files::empty,
    measure,
};

const ELEMENTS: [usize; 3] = [1_000, 10_000, 100_000];

pub(crate) fn compare(folder: &Path, ccm: &Path) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for count in ELEMENTS {
        empty(folder)?;
        let (written, repeated) = (folder.join("written.yaml"), folder.join("repeated.yaml"));
        let mut text = BufWriter::new(File::create(&written)?);
        writeln!(text, "- file:")?;
        for index in 0..count {
            writeln!(
                text,
                "    - /srv/f{index}: {{ content: \"{index}\", owner: root, group: root, mode: \"0644\" }}"
            )?;
        }
        text.into_inner()?;
        let properties = "{ content: \"{{ each }}\", owner: root, group: root, mode: \"0644\" }";
        let item = format!("for_each: \"0..{}\"\n      \"/srv/f{{{{ index }}}}\": {properties}", count - 1);
        fs::write(&repeated, format!("- file:\n    - {item}\n"))?;
        let contenders = [load("written out", ccm, &written), load("ccm", ccm, &repeated)];
        let title = format!("a for_each of {count} elements, loaded");
        tables.push(contest::hold(&title, &contenders.each_ref(), |one| measure::run(&one.command))?);
    }
    fs::remove_dir_all(folder)?;
    Ok(tables)
}

fn load(name: &'static str, ccm: &Path, manifest: &Path) -> Contender<()> {
    let mut command = Command::new(ccm);
    command.arg("validate").arg(manifest);
    Contender { name, command, about: () }
}
