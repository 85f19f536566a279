//! Decision table of archives: a pure function of the properties and the state.

use super::{
    Action, Ensure, Properties, Step,
    error::ArchiveError,
    state::{ArchiveState, Attributes, Entry, FileKind},
};
use crate::{
    resource::{Change, Difference, Error},
    state::{ExtractionRecord, Progress},
    types::ownership::Ownership,
};

/// Returns the steps from the observed to the desired state.
pub(super) fn compare(want: &Properties, have: &ArchiveState) -> Result<Option<Change<Action>>, Error> {
    let mut plan = Plan::default();
    match &have.entry {
        Some(entry) if !matches!(entry.kind, FileKind::File | FileKind::Symlink { .. }) => {
            let what =
                if entry.kind == FileKind::Directory { "a directory" } else { "a device, fifo or socket" };
            return Err(ArchiveError::NotAFile { name: want.name.clone(), what }.into());
        }
        found if want.ensure == Ensure::Absent => {
            if found.is_some() {
                plan.step(Step::Remove);
            }
        }
        _ => plan.present(want, have),
    }
    Ok(plan.change())
}

#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    differences: Vec<Difference>,
}

impl Plan {
    fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn change(self) -> Option<Change<Action>> {
        let Self { steps, differences } = self;
        (!steps.is_empty()).then_some(Change { action: Action(steps), differences, refreshes: false })
    }

    fn present(&mut self, want: &Properties, have: &ArchiveState) {
        let creates_exists = want.creates.is_some() && have.metadata.creates_exists;
        let again = reason_to_extract_again(want, have);
        if creates_exists && again.is_none() {
            if want.cleanup && have.entry.is_some() {
                self.step(Step::CleanUp);
            }
            return;
        }
        let wanted = wanted_archive(want, have);
        let extracts_again = again.is_some();
        let lacks_creation = want.creates.is_some() && !creates_exists;
        self.differences.extend(again);
        if lacks_creation {
            self.differences.push(Difference::between("creates", "missing", "present"));
        }
        let attributes = attribute_differences(want, have);
        let is_exposed = have.entry.as_ref().is_some_and(Entry::is_exposed);
        let is_unknown = want.creates.is_none() && !is_extracted(have);
        let extracts = want.extract_parent.is_some() && (lacks_creation || extracts_again || is_unknown);
        match wanted {
            _ if !have.metadata.archive_exists => self.step(Step::Download),
            Match::Different => {
                self.differences.push(Difference::of(if want.sum().is_some() {
                    "checksum"
                } else {
                    "checksum_url"
                }));
                self.step(Step::Download);
            }
            // Without a checksum, a file that other users can have written is not trusted.
            Match::Unknown if !attributes.is_empty() || extracts && is_exposed => self.step(Step::Download),
            Match::Equal if !attributes.is_empty() => {
                self.step(if is_exposed { Step::TakeOver } else { Step::SetAttributes });
            }
            Match::Unknown | Match::Equal => {}
        }
        self.differences.extend(attributes);
        let downloads = self.steps.contains(&Step::Download);
        if want.extract_parent.is_some() && (downloads || extracts) {
            self.step(Step::Extract);
            if want.cleanup {
                self.step(Step::CleanUp);
            }
        }
    }
}

/// Comparison of the file at the path with the desired archive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// No checksum is known.
    Unknown,
    Equal,
    Different,
}

fn wanted_archive(want: &Properties, have: &ArchiveState) -> Match {
    if !have.metadata.archive_exists {
        return Match::Unknown;
    }
    match (want.sum(), &want.checksum_url) {
        (Some(checksum), _) if have.checksums.contains(checksum) => Match::Equal,
        (Some(_), _) => Match::Different,
        (None, None) => Match::Unknown,
        // Without network access, the recorded checksum is the only known one.
        (None, Some(_)) => {
            let fetched = have.fetched.as_ref().filter(|fetched| fetched.origin == want.origin());
            let is_same = |checksum| fetched.is_some_and(|fetched| fetched.is(checksum));
            if have.checksums.first().is_some_and(is_same) { Match::Equal } else { Match::Different }
        }
    }
}

/// Returns the reason to extract the archive again although the path in `creates` exists.
pub(super) fn reason_to_extract_again(want: &Properties, have: &ArchiveState) -> Option<Difference> {
    let ExtractionRecord { fetched, progress, .. } = have.extraction.as_ref()?;
    if *progress == Progress::Unfinished {
        return Some(Difference::between("extract_parent", "half extracted", "extracted"));
    }
    if have.is_list_lost {
        return Some(Difference::between("verify", "not known", "as extracted"));
    }
    if let Some(path) = have.metadata.tampered.first() {
        let count = have.metadata.tampered.len();
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        return Some(Difference::between("verify", format!("{path}{more} changed"), "as extracted"));
    }
    let shown = || fetched.checksums.first().map(ToString::to_string).unwrap_or_default();
    // The archive might still exist and show that a checksum of another algorithm belongs to the same file.
    let is_same_file =
        |wanted| have.checksums.contains(wanted) && have.checksums.iter().any(|sum| fetched.is(sum));
    match (want.sum(), &want.checksum_url) {
        (Some(checksum), _) if !fetched.is(checksum) && !is_same_file(checksum) => {
            Some(Difference::between("checksum", shown(), checksum))
        }
        (None, Some(_)) if fetched.origin.checksum_url.is_some() => {
            let (was, is) = (&fetched.origin, want.origin());
            let differs = if was.checksum_url == is.checksum_url { "url" } else { "checksum_url" };
            (*was != is).then(|| Difference::of(differs))
        }
        _ => None,
    }
}

/// Returns whether the recorded extraction is that of the file at the path.
fn is_extracted(have: &ArchiveState) -> bool {
    have.extraction.as_ref().is_some_and(|ExtractionRecord { fetched, progress, .. }| {
        *progress == Progress::Complete && have.checksums.first().is_some_and(|checksum| fetched.is(checksum))
    })
}

/// Returns the differences in owner, group and mode of the archive file, in this order.
fn attribute_differences(want: &Properties, have: &ArchiveState) -> Vec<Difference> {
    let (Some(target), Some(entry), true) = (&have.target, &have.entry, have.metadata.archive_exists) else {
        return Vec::new();
    };
    let mode = if want.mode.is_some() { target.mode } else { entry.mode };
    let wanted = Attributes { mode, ..*target };
    Ownership::of(want.owner.as_ref(), want.group.as_ref()).differences(
        entry,
        &have.metadata.permissions,
        wanted,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::state::Metadata, *};
    use crate::{
        document::{Source, from_node, parse},
        vocabulary::Checksum,
    };

    const URL: &str = "https://example.net/app.tgz";
    const SUMS: &str = "https://example.net/SUMS";

    /// Returns the properties of an archive from a URL, except paths.
    fn want(url: &str, more: &str) -> Properties {
        let yaml = format!("name: /srv/app.tgz\nurl: {url}\nextract_parent: /srv/app\n{more}");
        let source = Source::read("test", yaml.into_bytes()).unwrap();
        from_node(&parse(&source).unwrap()).unwrap()
    }

    fn checksum(digit: &str) -> Checksum {
        digit.repeat(64).parse().unwrap()
    }

    /// Returns the state with an archive of one checksum at its path, and another one, downloaded with the properties
    /// `was`, extracted.
    fn state(at_path: &str, unpacked: &str, was: &Properties) -> ArchiveState {
        let record = json!({
            "archive": "/srv/app.tgz",
            "creates": null,
            "fetched": {"origin": was.origin(), "checksums": [checksum(unpacked)]},
            "progress": Progress::Complete,
            "list": "",
            "earlier": [],
        });
        ArchiveState {
            metadata: Metadata { archive_exists: true, ..Metadata::default() },
            entry: None,
            checksums: vec![checksum(at_path)],
            target: None,
            fetched: None,
            extraction: Some(serde_json::from_value(record).unwrap()),
            is_list_lost: false,
        }
    }

    #[test]
    fn what_was_changed_since_is_named_and_counted() {
        let want = want(URL, "verify: true");
        for (tampered, said) in [
            (&["bin/app"][..], "bin/app changed"),
            (&["bin/app", "lib"], "bin/app and 1 more changed"),
            (&["bin/app", "lib", "share"], "bin/app and 2 more changed"),
        ] {
            let mut have = state("a", "a", &want);
            have.metadata.tampered = tampered.iter().map(ToString::to_string).collect();
            let difference = Difference::between("verify", said, "as extracted");
            assert_eq!(reason_to_extract_again(&want, &have), Some(difference));
        }
        assert_eq!(reason_to_extract_again(&want, &state("a", "a", &want)), None);
    }

    #[test]
    fn an_archive_whose_checksum_is_fetched_is_another_when_an_address_is() {
        const OTHER: &str = "https://example.net/other";
        let with = |url, checksum_url: &str| want(url, &format!("checksum_url: {checksum_url}"));
        for (was, differs) in [
            (with(URL, SUMS), None),
            (with(OTHER, SUMS), Some("url")),
            (with(URL, OTHER), Some("checksum_url")),
            (with(OTHER, OTHER), Some("checksum_url")),
            // There was no record of the URL of its checksum.
            (want(URL, ""), None),
        ] {
            let found = reason_to_extract_again(&with(URL, SUMS), &state("a", "a", &was));
            assert_eq!(found, differs.map(Difference::of));
        }
    }

    #[test]
    fn an_archive_is_unpacked_unless_it_is_the_one_that_was() {
        let want = want(URL, "");
        for (at_path, unpacked, steps) in [("a", "a", None), ("b", "a", Some(vec![Step::Extract]))] {
            let change = compare(&want, &state(at_path, unpacked, &want)).unwrap();
            assert_eq!(change.map(|change| change.action), steps.map(Action), "{at_path} after {unpacked}");
        }
    }
}
