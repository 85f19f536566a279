//! The command that `ssh` runs on a target: a shell script that finds or stores the program and starts it.
//!
//! It is one line for any POSIX shell without `'`, `!` and `\`, because the login shell sees it first: csh stops at a newline or
//! `!` in quotes, and fish changes `\\`. It prints a marker first, so that the controller can skip the output of profiles.
//!
//! The controller answers `need` with `gzip COUNT` or `plain COUNT` and that many bytes. Nothing can follow these bytes before
//! the program has answered, because `head` and `gzip` read more than they use.

use serde::{Deserialize, Serialize};

use super::binary::Binary;

/// User to become before anything else happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Become {
    #[default]
    Nothing,
    Sudo {
        user: Option<String>,
    },
    Doas {
        user: Option<String>,
    },
}

impl Become {
    /// Returns the user to become, if it is named.
    pub(super) fn user(&self) -> Option<&String> {
        match self {
            Self::Nothing => None,
            Self::Sudo { user } | Self::Doas { user } => user.as_ref(),
        }
    }

    /// Describes it for messages.
    pub(super) fn described(&self) -> String {
        let (program, user) = match self {
            Self::Nothing => return "without sudo".to_owned(),
            Self::Sudo { user } => ("sudo", user),
            Self::Doas { user } => ("doas", user),
        };
        format!("with {program} as `{}`", user.as_deref().unwrap_or("root"))
    }
}

/// A line that the stub prints behind its marker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The login shell runs, and becomes another user next.
    Login,
    /// The program starts.
    Have,
    /// The program is missing; whether `gzip` is available.
    Need { architecture: String, gzip: bool },
    /// The controller has no program for this architecture.
    UnknownArchitecture(String),
    /// No directory has space and permits programs.
    Nowhere { free: String },
    /// The program could not be stored.
    Failed,
}

/// Returns the remote command. `marker` and `prompt` are random.
pub(super) fn command(marker: &str, prompt: &str, binaries: &[Binary], becomes: &Become) -> String {
    let stub = stub(marker, binaries);
    match becomes {
        Become::Nothing => format!("exec sh -c '{stub}'"),
        Become::Sudo { user } => {
            let user = user.as_deref().unwrap_or("root");
            format!(
                "exec sh -c 'echo; echo {marker} login; [ \"$(id -un)\" = {user} ] && exec sh -c \"$1\"; \
                 sudo -n -H -u {user} sh -c : 2>/dev/null && exec sudo -n -H -u {user} sh -c \"$1\"; \
                 exec sudo -S -p {prompt} -H -u {user} sh -c \"$1\"' sh '{stub}'"
            )
        }
        Become::Doas { user } => {
            let user = user.as_deref().unwrap_or("root");
            format!(
                "exec sh -c 'echo; echo {marker} login; [ \"$(id -un)\" = {user} ] && exec sh -c \"$1\"; \
                 exec doas -n -u {user} sh -c \"$1\"' sh '{stub}'"
            )
        }
    }
}

fn stub(marker: &str, binaries: &[Binary]) -> String {
    let cases = binaries.iter().fold(String::new(), |cases, Binary { architecture, sha256, size, .. }| {
        format!("{cases}{architecture}) H={sha256}; N={size};; ")
    });
    let version = super::VERSION;
    format!(
        "M={marker}; U=$(id -u); A=$(uname -m); O=$(umask); H=; N=0; F=; T=; S=; case $A in {cases}*) ;; esac; \
         if [ \"$U\" = 0 ]; then set -- /var/lib/ccm/bin /usr/local/lib/ccm/bin /run/ccm/bin; \
         else set -- \"${{HOME:-/nonexistent}}/.cache/ccm/bin\" \"${{XDG_RUNTIME_DIR:-/nonexistent}}/ccm/bin\"; fi; \
         echo; if [ -z \"$H\" ]; then echo \"$M unknown $A\"; exit 0; fi; \
         P=$(command -v ccm); \
         if [ -f \"$P\" ] && [ \"$(wc -c <\"$P\")\" -eq $N ] && [ \"$(\"$P\" --version 2>/dev/null)\" = \"ccm {version}\" ]; \
         then F=$P; fi; \
         for D do if [ -z \"$F\" ] && [ -f \"$D/$H/ccm\" ] && [ \"$(wc -c <\"$D/$H/ccm\")\" -eq $N ] && \
         \"$D/$H/ccm\" --version >/dev/null 2>&1; then F=$D/$H/ccm; touch -c \"$D/$H\" 2>/dev/null; fi; done; \
         if [ -n \"$F\" ]; then echo \"$M have\"; exec \"$F\" remote serve; fi; \
         umask 077; for D do T=$D/.{marker}; \
         if {{ mkdir -p \"$D\" && echo : >\"$T\" && chmod 700 \"$T\" && \"$T\"; }} 2>/dev/null; then \
         S=$(df -Pk \"$D\" 2>/dev/null | {{ read X; read X X X S X; echo $S; }}); \
         if [ -z \"$S\" ] || [ \"$S\" -gt $((N / 1024 + 1024)) ]; then break; fi; fi; \
         rm -f \"$T\" 2>/dev/null; T=; done; \
         if [ -z \"$T\" ]; then echo \"$M nowhere ${{S:-0}}\"; exit 0; fi; \
         G=plain; command -v gzip >/dev/null 2>&1 && G=gzip; echo \"$M need $A $G\"; read K C; \
         case $K in gzip) head -c \"$C\" | gzip -dc >\"$T\";; plain) head -c \"$C\" >\"$T\";; *) rm -f \"$T\"; exit 0;; esac; \
         X=$H; command -v sha256sum >/dev/null 2>&1 && X=$(sha256sum <\"$T\") && X=${{X%% *}}; \
         if [ \"$(wc -c <\"$T\")\" -eq $N ] && [ \"$X\" = $H ] && chmod 755 \"$T\" && \"$T\" --version >/dev/null && \
         mkdir -p \"$D/$H\" && mv -f \"$T\" \"$D/$H/ccm\"; then I=0; \
         for E in $(ls -t \"$D\"); do if [ ${{#E}} -eq 64 ]; then I=$((I+1)); [ $I -le 2 ] || rm -rf \"$D/$E\"; fi; done; \
         umask $O; exec \"$D/$H/ccm\" remote serve; fi; rm -f \"$T\"; echo \"$M failed\""
    )
}

/// Finds a report of the stub in the output of a host. Returns the report, and the length of everything up to its end.
pub(super) fn find(marker: &str, printed: &[u8]) -> Option<(Report, usize)> {
    let mut from = 0;
    // A forced command can print the stub itself, where other characters follow the marker.
    while let Some(at) = position(&printed[from..], marker.as_bytes()).map(|at| at + from) {
        from = at + marker.len();
        let rest = &printed[from..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        if let Some(report) = str::from_utf8(&rest[..end]).ok().and_then(report) {
            return Some((report, from + end + 1));
        }
    }
    None
}

fn report(line: &str) -> Option<Report> {
    let words: Vec<&str> = line.strip_prefix(' ')?.trim_end_matches('\r').split(' ').collect();
    Some(match words.as_slice() {
        ["login"] => Report::Login,
        ["have"] => Report::Have,
        ["need", architecture, how @ ("gzip" | "plain")] => {
            Report::Need { architecture: (*architecture).to_owned(), gzip: *how == "gzip" }
        }
        ["unknown", architecture] => Report::UnknownArchitecture((*architecture).to_owned()),
        ["nowhere", free] => Report::Nowhere { free: (*free).to_owned() },
        ["failed"] => Report::Failed,
        _ => return None,
    })
}

/// Returns where bytes first occur.
pub(super) fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "0123456789abcdef0123456789abcdef";

    fn binary() -> Binary {
        Binary::in_memory("x86_64", b"program".to_vec())
    }

    #[test]
    fn stub_has_no_character_that_a_login_shell_changes() {
        for becomes in
            [Become::Nothing, Become::Sudo { user: None }, Become::Doas { user: Some("app".to_owned()) }]
        {
            let command = command(MARKER, "prompt", &[binary()], &becomes);
            assert!(!command.contains(['!', '\\', '\n']), "{command}");
            let quotes = command.matches('\'').count();
            assert_eq!(quotes, if becomes == Become::Nothing { 2 } else { 4 });
        }
    }

    #[test]
    fn reports_are_found_behind_any_noise() {
        let noise = format!("\u{7}Welcome! M={MARKER}; U=$(id -u)\nno newline");
        for (line, expected) in [
            ("have", Some(Report::Have)),
            ("need armv7l plain", Some(Report::Need { architecture: "armv7l".to_owned(), gzip: false })),
            ("unknown s390x", Some(Report::UnknownArchitecture("s390x".to_owned()))),
            ("need x86_64 zstd", None),
            ("", None),
        ] {
            let printed = format!("{noise}{MARKER} {line}\n");
            let found = find(MARKER, printed.as_bytes());
            assert_eq!(found, expected.map(|report| (report, printed.len())), "{line}");
        }
        assert_eq!(find(MARKER, format!("{MARKER} have").as_bytes()), None, "the line is not complete");
    }
}
