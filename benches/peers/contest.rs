//! Programs that take turns at one task, and the table of what it took them.

use std::{process::Command, time::Duration};

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

/// Lets everybody make attempts in turns, and prints what they took. The first contender is the baseline, the second
/// is ccm.
pub(crate) fn hold<A>(
    title: &str,
    contenders: &[&Contender<A>],
    attempt: impl Fn(&Contender<A>) -> Result<Cost>,
) -> Result<()> {
    let mut costs: Vec<Vec<Cost>> = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for (contender, costs) in contenders.iter().zip(&mut costs) {
            if costs.iter().map(|cost| cost.time).sum::<Duration>() < PATIENCE {
                costs.push(attempt(contender)?);
            }
        }
    }
    print(title, contenders, &costs);
    Ok(())
}

fn print<A>(title: &str, contenders: &[&Contender<A>], costs: &[Vec<Cost>]) {
    let best: Vec<Duration> = costs.iter().map(|costs| sorted(costs)[0]).collect();
    let [baseline, ccm, ..] = best.as_slice() else { return };
    let (to_baseline, to_ccm) = (format!("x {}", contenders[0].name), "x ccm");
    println!("\n{title}");
    println!(
        "  {:10} {:>12} {:>12} {:>5} {to_baseline:>12} {to_ccm:>9} {:>10}",
        "", "best", "median", "runs", "memory"
    );
    for ((contender, costs), best) in contenders.iter().zip(costs).zip(&best) {
        let memory = costs.iter().map(|cost| cost.kibibytes).max().unwrap_or_default();
        println!(
            "  {:10} {:>9.2} ms {:>9.2} ms {:>5} {:>12.2} {:>9.2} {:>6}.{} MiB",
            contender.name,
            milliseconds(*best),
            milliseconds(sorted(costs)[costs.len() / 2]),
            costs.len(),
            best.as_secs_f64() / baseline.as_secs_f64(),
            best.as_secs_f64() / ccm.as_secs_f64(),
            memory / 1024,
            memory % 1024 * 10 / 1024,
        );
    }
}

fn sorted(costs: &[Cost]) -> Vec<Duration> {
    let mut times: Vec<Duration> = costs.iter().map(|cost| cost.time).collect();
    times.sort();
    times
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
