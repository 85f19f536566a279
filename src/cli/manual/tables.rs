//! Tables for the manual and the reference: exit statuses, environment variables and files.

use super::super::{Exit, complete};

/// Meaning of every exit status.
pub(super) const EXIT_CODES: [(Exit, &str); 5] = [
    (Exit::Success, "Everything is in the desired state, changed or not."),
    (
        Exit::Failed,
        "A resource or check failed, or a resource was skipped because of a failed requirement; or the run was interrupted, or its report could not be printed.",
    ),
    (
        Exit::NotAttempted,
        "Nothing was attempted: wrong arguments, an invalid manifest, data that cannot be read, another run in progress with `--no-wait`.",
    ),
    (
        Exit::Changed,
        "With `--detailed-exitcode`, instead of 0: something changed, or would change in a dry run.",
    ),
    (Exit::Unreachable, "With `--on`: a host is unreachable, and no host failed."),
];

/// Exit statuses of a command that acts as a Nagios plugin.
pub(super) const PLUGIN: &str =
    "With `--format nagios`, as a Nagios plugin: 0 OK, 1 warning, 2 critical, 3 unknown.";

/// Every variable that ccm reads, with what it does.
pub(super) const VARIABLES: [(&str, &str); 32] = [
    ("CCM_HIERA_DATA", "A file or address with data, as `--hiera`."),
    ("CCM_HISTORY", "Turns the history off if it is `off`, as `--no-history`."),
    ("CCM_HISTORY_SIZE", "Maximum size of all kept copies, as `--history-size`."),
    ("CCM_HISTORY_KEEP", "How long and how many runs are kept, as `--history-keep`."),
    ("CCM_MAX_INPUT_SIZE", "How large each document may be, as `--max-input-size`."),
    (
        "CCM_MAX_REGISTRATIONS",
        "Maximum size of the registrations that one query reads, such as `256MiB`; 64 MiB otherwise.",
    ),
    (
        "CCM_MEMORY_LIMIT",
        "How much all expressions of a run may hold together, such as `1GiB`; 512 MiB otherwise.",
    ),
    (
        "CCM_SEQUENTIAL",
        "Has every resource looked at in its turn, instead of files ahead on all processors, if it is `1`.",
    ),
    ("CCM_SESSION_STORE", "The folder of the session that commands of a script record in, as `--session`."),
    ("CCM_SUDO_PASSWORD_COMMAND", "Command that prints the password for sudo on other machines."),
    ("XDG_RUNTIME_DIR", "Where a push by a user other than root keeps its input, in memory."),
    ("CCM_STATE_DIR", "Where ccm keeps its memory, as `--state-dir`."),
    (complete::VARIABLE, "The shell that asks for completions; set by the scripts of `ccm completions`."),
    ("NATS_CONTEXT", "The context of the `nats` program to connect with, as `--context`."),
    ("HIERA_INPUT", "The file that `ccm hiera parse` shows, where none is given."),
    ("HTTP_USERNAME", "The user for the download of `ccm ensure archive`, as `--username`."),
    ("HTTP_PASSWORD", "The password for it, as `--password`. It is never shown."),
    ("HOME", "Where the folders of a user are that the XDG variables do not name."),
    ("XDG_CONFIG_HOME", "The user's own facts are in `choria/ccm` below it; `$HOME/.config` otherwise."),
    (
        "XDG_STATE_HOME",
        "The memory of a user other than root is in `ccm` below it; `$HOME/.local/state` otherwise.",
    ),
    ("SUDO_USER", "The user that the history names as the one who started a run."),
    ("TMPDIR", "Where new sessions are put; `/tmp` otherwise."),
    ("PATH", "Where commands, and the tools of package managers and systemd, are looked up."),
    ("NO_COLOR", "No colours if it is set; `--color` has the last word."),
    ("TERM", "No colours and no progress line if it is `dumb`."),
    ("NOTIFY_SOCKET", "Where systemd is told that the agent is ready and alive."),
    ("JOURNAL_STREAM", "Set by systemd: lines of the agent's log begin with their level, for the journal."),
    ("SSH_AUTH_SOCK", "The ssh agent that has the key for `ccm bundle sign`."),
    ("http_proxy", "The proxy for addresses with `http`."),
    ("https_proxy", "The proxy for addresses with `https`."),
    ("all_proxy", "The proxy for both, where they have none of their own."),
    ("no_proxy", "Hosts that are asked without a proxy, separated by commas."),
];

/// Every file that ccm reads or stores without a flag that names it.
pub(super) const FILES: [(&str, &str); 14] = [
    (
        "/var/lib/ccm",
        "The memory of root's runs: the run lock, refreshes that are owed, what was unpacked from archives. Mode 0700. Deleting it loses memory, never correctness.",
    ),
    ("$XDG_STATE_HOME/ccm", "The same of other users."),
    ("/var/lib/ccm/bin, ~/.cache/ccm/bin", "Programs that pushes stored, the two that were used last."),
    ("/var/lib/ccm/push", "Events of pushed runs until the controller has them."),
    ("/usr/lib/ccm/targets/ARCH/ccm", "Programs that a push sends to machines of an architecture."),
    ("/etc/choria/ccm/facts.json, facts.yaml", "Facts about this machine that people wrote down."),
    ("/etc/choria/ccm/facts.d/*.json, *.yaml", "More of them, in the order of their names; later ones win."),
    ("/etc/choria/ccm/facts.d/*", "Programs that print facts, where only root can change them."),
    (
        "$XDG_CONFIG_HOME/choria/ccm",
        "The same three of the user, over those of the machine; without programs.",
    ),
    (
        "./.env, ./.hiera",
        "Variables and data for `ccm ensure`, if root or the user owns them and nobody else may write them.",
    ),
    (
        "/etc/ccm/agent.yaml",
        "The configuration of `ccm agent`; also `/etc/choria/ccm/agent.yaml` and `config.yaml` there.",
    ),
    ("/etc/ccm/allowed_signers", "Whose signatures of bundles the agent believes, in the form of ssh."),
    ("/etc/ccm/manifest.yaml", "What `ccm-apply.service` applies: part of the packages, empty at first."),
    ("/etc/ssl/certs", "Certificates that are trusted, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn every_variable_of_a_flag_is_listed() {
        let mut all = vec![command()];
        while let Some(mut command) = all.pop() {
            command.build();
            for variable in command.get_arguments().filter_map(clap::Arg::get_env) {
                assert!(VARIABLES.iter().any(|(known, _)| variable == *known), "{}", variable.display());
            }
            all.extend(command.get_subcommands().cloned());
        }
    }
}
