//! What was measured, for programs (JSON) and for people (the page and the picture of the book).

use std::{fmt::Write, fs, io, path::Path, thread};

use serde::Serialize;

use crate::{
    contest::Table,
    picture,
    programs::{self, MANAGERS},
};

/// Where the results of `make bench-fleet` begin.
const PUSHES: &str = "<!-- begin: make bench-fleet -->";

/// Everything that one run of the benchmark found.
#[derive(Serialize)]
pub(crate) struct Report {
    machine: Machine,
    /// What each program says of its version.
    versions: Vec<(&'static str, String)>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
}

impl Report {
    pub(crate) fn new(ccm: &Path, tables: Vec<Table>) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processor = read("/proc/cpuinfo");
        let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let peers = MANAGERS.iter().filter_map(|manager| Some((manager.name, manager.version()?)));
        Self {
            machine: Machine {
                processor: processor.map(|(_, name)| name.to_owned()).unwrap_or_default(),
                cores: thread::available_parallelism().map_or(0, Into::into),
                kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            },
            versions: programs::version(ccm)
                .map(|version| ("ccm", version))
                .into_iter()
                .chain(peers)
                .collect(),
            tables,
        }
    }

    /// Writes what was measured as JSON.
    pub(crate) fn write_json(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_string_pretty(self)? + "\n")
    }

    /// Writes the page of the book, and the picture on it.
    pub(crate) fn write_page(&self, docs: &Path) -> io::Result<()> {
        let path = docs.join("benchmarks.md");
        let old = fs::read_to_string(&path).unwrap_or_default();
        // `benches/fleet.py` writes the end of the page.
        let pushes = old.find(PUSHES).map(|at| format!("\n{}", &old[at..])).unwrap_or_default();
        fs::write(&path, self.page() + &pushes)?;
        fs::write(docs.join("benchmarks.svg"), picture::draw(&self.tables))
    }

    fn page(&self) -> String {
        let mut page = String::from(INTRODUCTION);
        let Machine { processor, cores, kernel } = &self.machine;
        let _ = writeln!(page, "Measured on {cores} cores of {processor}, Linux {kernel}, with:\n");
        for (name, version) in &self.versions {
            let _ = writeln!(page, "- {name}: {version}");
        }
        for Table { title, rows } in &self.tables {
            let [baseline, ccm, ..] = rows.as_slice() else { continue };
            let _ = writeln!(page, "\n## {}{}\n", title[..1].to_uppercase(), &title[1..]);
            let _ = writeln!(page, "| | best | median | runs | x {} | x ccm | memory |", baseline.name);
            let _ = writeln!(page, "|---|--:|--:|--:|--:|--:|--:|");
            for row in rows {
                let _ = writeln!(page, "| {} | {} |", row.name, row.cells(baseline, ccm).join(" | "));
            }
        }
        page
    }
}

const INTRODUCTION: &str = "# How fast it is

`make bench` measures this on your machine, and `make bench UPDATE=1` writes this page from what it found; the numbers for
programs are in `target/benchmarks.json`. Times are those of one machine: judge the ratios, which are between best times of
programs that took turns in the same run. Every manager got the same files in its own language, and after every run their
content, owner and mode were compared with what was asked for. The first row of a table is a program that does the least of what
the task asks for: `sha256sum` reads what has to be read, `cp` writes what has to be written, without bringing it to disk.

![Time of a run in which nothing changes, against the number of files](benchmarks.svg)

";
