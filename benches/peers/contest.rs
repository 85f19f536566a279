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

    pub(crate) fn mebibytes(&self) -> f64 {
        let tenths = u32::try_from(self.memory_kib * 10 / 1024).unwrap_or(u32::MAX);
        f64::from(tenths) / 10.0
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
            println!(
                "  {:12} {:>9.2} ms {:>9.2} ms {:>5} {:>14.2} {:>9.2} {:>7.1} MiB",
                row.name,
                row.best_ms,
                row.median_ms,
                row.runs,
                row.best_ms / baseline.best_ms,
                row.best_ms / ccm.best_ms,
                row.mebibytes(),
            );
        }
    }
}
