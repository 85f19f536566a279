//! Entries on the screen.

use super::super::{failure::Failure, output::Output};
use crate::{
    registration::{Registration, file_sd},
    visible::visible_line,
};

/// How entries are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Yaml,
    Prometheus,
}

/// Prints entries.
pub(super) fn show(entries: &[Registration], format: Format, output: &mut Output) -> Result<(), Failure> {
    match format {
        Format::Text => table(entries, output),
        Format::Json => output.json(&entries)?,
        Format::Yaml => output.yaml(&entries)?,
        Format::Prometheus => output.json(&file_sd(entries))?,
    }
    Ok(())
}

/// Prints a line for each entry, in columns.
fn table(entries: &[Registration], output: &mut Output) {
    const TITLES: [&str; 7] = ["ADDRESS", "PORT", "CLUSTER", "PROTOCOL", "SERVICE", "PRIORITY", "TTL"];
    if entries.is_empty() {
        return output.message("no entries");
    }
    let mut rows: Vec<[String; 8]> = entries.iter().map(row).collect();
    let titles = TITLES.map(str::to_owned);
    let [address, port, cluster, protocol, service, priority, ttl] = titles;
    rows.insert(0, [address, port, cluster, protocol, service, priority, ttl, "ANNOTATIONS".to_owned()]);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 8] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        output.message(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn row(entry: &Registration) -> [String; 8] {
    let annotations: Vec<String> =
        entry.annotations.iter().map(|(name, value)| format!("{name}={}", &**value)).collect();
    let annotations = visible_line(&annotations.join(" ")).into_owned();
    [
        entry.address.as_str().to_owned(),
        entry.port.map_or_else(|| "-".to_owned(), |port| port.number().to_string()),
        entry.cluster.to_string(),
        entry.protocol.to_string(),
        entry.service.to_string(),
        entry.priority.number().to_string(),
        entry.ttl.map_or_else(|| "-".to_owned(), |ttl| ttl.to_string()),
        annotations,
    ]
}
