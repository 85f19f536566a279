//! What apt's sources offer, from `apt-cache policy`.

use super::super::state::Offer;

/// Reads the policies in what is printed, each with its header: the name of the package, and its architecture if that is
/// not the machine's own.
pub(super) fn read(output: &str) -> Vec<(&str, Offer)> {
    let mut policies: Vec<(&str, Block)> = Vec::new();
    for line in output.lines() {
        if let Some(header) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            policies.push((header, Block::default()));
        } else if let Some((_, block)) = policies.last_mut() {
            block.read(line);
        }
    }
    policies.into_iter().map(|(header, block)| (header, block.offer())).collect()
}

#[derive(Default)]
struct Block {
    candidate: Option<String>,
    versions: Vec<String>,
    in_table: bool,
}

impl Block {
    fn read(&mut self, line: &str) {
        if let Some(candidate) = line.strip_prefix("  Candidate: ") {
            self.candidate =
                Some(candidate.trim()).filter(|candidate| *candidate != "(none)").map(str::to_owned);
        } else if line.starts_with("  Version table:") {
            self.in_table = true;
        } else if self.in_table
            // A version is indented by five; where it comes from, by more.
            && let Some(entry) = line.strip_prefix("     ").or_else(|| line.strip_prefix(" *** "))
            && !entry.starts_with(' ')
        {
            self.versions.extend(entry.split(' ').next().map(str::to_owned));
        }
    }

    fn offer(self) -> Offer {
        match self.candidate {
            Some(candidate) => Offer::Known { candidate, versions: self.versions },
            None => Offer::NoCandidate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_and_versions_are_read() {
        let output = "tool:\n  Installed: 1.0-1\n  Candidate: 1:0.9-1\n  Version table:\n     1:0.9-1 500\n        500 \
                      file:/repo ./ Packages\n *** 1.0-1 500\n        500 file:/repo ./ Packages\n        100 \
                      /var/lib/dpkg/status\nvirtual:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n\
                      libc6:i386:\n  Installed: (none)\n  Candidate: 2.36\n  Package pin: 2.36\n  Version table:\n     \
                      2.36 -1\n        500 http://deb.debian.org bookworm/main i386 Packages\n";
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(
            read(output),
            [
                (
                    "tool",
                    Offer::Known { candidate: "1:0.9-1".to_owned(), versions: own(&["1:0.9-1", "1.0-1"]) }
                ),
                ("virtual", Offer::NoCandidate),
                ("libc6:i386", Offer::Known { candidate: "2.36".to_owned(), versions: own(&["2.36"]) }),
            ]
        );
    }

    #[test]
    fn anything_may_be_printed() {
        for output in
            ["", ":", "  Candidate: ", "a:\n *** \n     \n", "a:\n  Version table:\n     \n", "\u{fffd}:\n"]
        {
            read(output);
        }
    }
}
