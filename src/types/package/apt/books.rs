//! dpkg's books: what is installed, and how far.

use std::path::PathBuf;

use super::super::provider::Record;

/// What is asked of each package, in one line.
pub(super) const FORMAT: &str =
    "--showformat=${Package}\\t${Architecture}\\t${db:Status-Want}\\t${db:Status-Status}\\t${Version}\\n";

/// Reads what `dpkg-query` prints. A line that is none of these is passed over.
pub(super) fn read(output: &str) -> Vec<Record> {
    let record = |line: &str| {
        let mut fields = line.split('\t');
        let (name, arch) = (fields.next()?, fields.next()?);
        let (want, status, version) = (fields.next()?, fields.next()?, fields.next()?);
        let own = str::to_owned;
        let (name, arch, version, status) = (own(name), own(arch), own(version), own(status));
        let held = Some(want == "hold");
        Some(Record { name, arch, is_usual: true, version, status, held })
    };
    let mut records: Vec<Record> = output.lines().filter_map(record).collect();
    if let Some(native) = native(&records).map(str::to_owned) {
        for record in &mut records {
            // One that is not known any more has no architecture.
            record.is_usual = record.arch == native || matches!(record.arch.as_str(), "all" | "");
        }
    }
    records
}

/// Reads the paths in `${Conffiles}`: one per line, with a digest and perhaps `obsolete`.
pub(super) fn configuration(output: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let line = line.trim().trim_end_matches(" obsolete");
        let (path, _) = line.rsplit_once(' ')?;
        path.starts_with('/').then(|| path.into())
    };
    output.lines().filter_map(path).collect()
}

/// Returns the architecture of the machine, which is dpkg's own.
pub(super) fn native(records: &[Record]) -> Option<&str> {
    records.iter().find(|record| record.name == "dpkg").map(|record| record.arch.as_str())
}

/// Whether `dpkg --configure -a` would finish a package in this state.
pub(super) fn is_half_way(status: &str) -> bool {
    matches!(status, "unpacked" | "half-configured" | "triggers-awaited" | "triggers-pending")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_is_read_with_its_state() {
        let output = "dpkg\tamd64\tinstall\tinstalled\t1.21.22\n\
                      libc6\tamd64\tinstall\tinstalled\t2.36-9\n\
                      libc6\ti386\thold\thalf-configured\t2.36-8\n\
                      tzdata\tall\tdeinstall\tconfig-files\t2024a-0\n\
                      ghost\t\tunknown\tnot-installed\t\n";
        let records = read(output);
        let told: Vec<_> = records
            .iter()
            .map(|record| {
                (record.name.as_str(), record.is_usual, record.held == Some(true), record.status.as_str())
            })
            .collect();
        assert_eq!(
            told,
            [
                ("dpkg", true, false, "installed"),
                ("libc6", true, false, "installed"),
                ("libc6", false, true, "half-configured"),
                ("tzdata", true, false, "config-files"),
                ("ghost", true, false, "not-installed"),
            ]
        );
        assert_eq!(records[2].version, "2.36-8");
    }

    #[test]
    fn configuration_files_are_read_with_spaces_and_without_their_digests() {
        let output = " /etc/app.conf 0cc175b9c0f1b6a831c399e269772661\n /etc/app/old file 92eb5ffee6ae2fec3ad71c777531578f \
                      obsolete\n\nnone\n";
        assert_eq!(configuration(output), [PathBuf::from("/etc/app.conf"), "/etc/app/old file".into()]);
    }

    #[test]
    fn anything_may_be_printed() {
        for output in ["", "\n\n", "\t", "a\tb", "a\tb\tc\td", "\u{fffd}\t\t\t\t\t\t"] {
            read(output);
        }
    }
}
