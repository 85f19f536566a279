//! Programs that take turns at one task, and the table of what it took them.

use std::{process::Command, time::Duration};

use serde::Serialize;

use crate::{Result, measure::Cost};

/// Each program runs this often,
const ROUNDS: usize = 9;
/// unless it has used up this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program with a way to do the task, and what the task has to know about it.
pub(crate) struct Contender<A> {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
    pub(crate) about: A,
}

/// What a task took everybody. The first row is the baseline's, the second is that of ccm.
#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

/// What a task took one program.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) best_ms: f64,
    pub(crate) median_ms: f64,
    pub(crate) runs: usize,
    pub(crate) memory_kib: u64,
}

/// Lets everybody make attempts in turns, and prints what they took. The first contender is the baseline, the second
/// is ccm.
pub(crate) fn hold<A>(
    title: &str,
    contenders: &[&Contender<A>],
    attempt: impl Fn(&Contender<A>) -> Result<Cost>,
) -> Result<Table> {
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for (contender, costs) in contenders.iter().zip(&mut costs) {
            if costs.iter().map(|cost| cost.time).sum::<Duration>() < PATIENCE {
                costs.push(attempt(contender)?);
            }
        }
    }
    let rows =
        contenders.iter().zip(&costs).map(|(contender, costs)| Row::new(contender.name, costs)).collect();
    let table = Table { title: title.to_owned(), rows };
    table.print();
    Ok(table)
}

impl Row {
    fn new(name: &'static str, costs: &[Cost]) -> Self {
        let mut times: Vec<Duration> = costs.iter().map(|cost| cost.time).collect();
        times.sort();
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            name,
            best_ms: milliseconds(times[0]),
            median_ms: milliseconds(times[times.len() / 2]),
            runs: costs.len(),
            memory_kib: costs.iter().map(|cost| cost.kibibytes).max().unwrap_or_default(),
        }
    }

    /// Returns what is told of it behind its name: times, runs, ratios to the baseline and to ccm, memory.
    pub(crate) fn cells(&self, baseline: &Self, ccm: &Self) -> [String; 6] {
        let tenths = self.memory_kib * 10 / 1024;
        [
            format!("{:.2} ms", self.best_ms),
            format!("{:.2} ms", self.median_ms),
            self.runs.to_string(),
            format!("{:.2}", self.best_ms / baseline.best_ms),
            format!("{:.2}", self.best_ms / ccm.best_ms),
            format!("{}.{} MiB", tenths / 10, tenths % 10),
        ]
    }
}

impl Table {
    fn print(&self) {
        let [baseline, ccm, ..] = self.rows.as_slice() else { return };
        println!("\n{}", self.title);
        println!(
            "  {:12} {:>12} {:>12} {:>5} {:>14} {:>9} {:>11}",
            "",
            "best",
            "median",
            "runs",
            format!("x {}", baseline.name),
            "x ccm",
            "memory"
        );
        for row in &self.rows {
            let [best, median, runs, to_baseline, to_ccm, memory] = row.cells(baseline, ccm);
            println!(
                "  {:12} {best:>12} {median:>12} {runs:>5} {to_baseline:>14} {to_ccm:>9} {memory:>11}",
                row.name
            );
        }
    }
}
