//! Options of other configuration tools, and the options of ccm to use instead.

const OPTIONS: &[(&[&str], &str)] = &[
    (&["--tags", "-t"], "`--only tag:NAME`"),
    (&["--skip-tags"], "`--skip tag:NAME`"),
    (&["--check", "-C", "--test", "-W", "--why-run"], "`--noop`"),
    (&["-e", "--extra-vars", "--var", "-var", "--pillar"], "`--data KEY=VALUE`"),
    (&["--var-file", "-var-file", "--hiera-config", "--hiera_config"], "`--hiera FILE`"),
    (&["-b", "-K", "--ask-become-pass", "-k", "--ask-pass"], "`--sudo` and `--ask-password` with `--on`"),
    (&["-f", "--forks"], "`--parallel NUMBER` with `--on`"),
    (&["-l"], "`--limit PATTERN` with `--on`"),
    (&["-u", "--user"], "`--ssh-option User=NAME` with `--on`"),
    (&["--private-key", "--key-file"], "`--ssh-option IdentityFile=FILE` with `--on`"),
    (&["--vault-password-file", "--ask-vault-pass", "--vault-id", "-J"], "`--identity FILE`"),
    (&["--syntax-check", "--list-tasks", "--list-tags"], "`ccm validate`"),
    (&["--list-hosts"], "`ccm hosts PATTERN -i INVENTORY`"),
    (&["--noop=true", "--dryrun", "--no-op"], "`--noop`"),
    (&["--auto-approve", "-auto-approve", "-y", "--yes"], "`ccm apply` without it: ccm does not prompt"),
];

/// Returns what to use instead of an option of another tool.
pub(super) fn replacement(option: &str) -> Option<&'static str> {
    let option = option.split('=').next().unwrap_or(option);
    OPTIONS.iter().find(|(names, _)| names.contains(&option)).map(|(_, replacement)| *replacement)
}
