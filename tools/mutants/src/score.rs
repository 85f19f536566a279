//! What it comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::area::Area;
use crate::build::Prepared;
use crate::store::Store;

/// How many of a hundred changes have to be noticed.
const GOAL: usize = 90;

/// Prints the changes that nobody noticed, and a score for each area. Those that `page` lists as equivalent, in lines that begin with
/// "- `src/", count neither way.
pub(crate) fn print(store: &Store, prepared: &Prepared, areas: &[Area], page: &Path) -> ExitCode {
    let page = fs::read_to_string(page).unwrap_or_default();
    let equivalent: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next()).collect();
    let outcomes = store.outcomes();
    let mut counts = BTreeMap::<&str, [usize; 3]>::new();
    for (_, change) in &prepared.changes {
        let area = areas.iter().find(|area| area.has(&change.file)).map_or("others", |area| &area.name);
        let [noticed, known, missed] = counts.entry(area).or_default();
        match outcomes.get(&change.name) {
            Some(outcome) if outcome.noticed_by.is_some() => *noticed += 1,
            _ if equivalent.contains(change.name_without_place().as_str()) => *known += 1,
            outcome => {
                *missed += 1;
                let (tried, reached) = outcome.map_or((0, 0), |outcome| (outcome.tried, outcome.reached_by));
                println!("not noticed: {} ({tried} of {reached} tests that reach it)", change.name);
            }
        }
    }
    println!("{} changes do not compile, {} have no switch", prepared.refused, prepared.without);
    let mut is_good = true;
    for (area, [noticed, known, missed]) in counts {
        let score = 100 * noticed / (noticed + missed).max(1);
        println!("{area}: {noticed} noticed, {missed} not, {known} equivalent: {score} %");
        is_good &= score >= GOAL;
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
