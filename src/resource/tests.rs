//! The advice that errors come with.

use super::*;

#[test]
fn kinds_of_failures_say_what_to_do_about_them() {
    let not_seen = |seen: &[&str], sight| ErrorKind::NotSeen {
        reference: "file#/x".parse().unwrap(),
        seen: seen.iter().map(|&name| name.to_owned()).collect(),
        sight,
    };
    let no_provider = |asked: Option<&str>| ErrorKind::NoProvider {
        of: "package",
        asked: asked.map(str::to_owned),
        reasons: Vec::new(),
        known: "apt, dnf".to_owned(),
    };
    for (kind, expected) in [
        (ErrorKind::NotReached { what: String::new() }, "something else may be changing it at the same time"),
        (no_provider(Some("apk")), "known providers of package: apt, dnf"),
        (no_provider(None), ""),
        (
            ErrorKind::UnknownAccount { kind: AccountKind::Group, name: "web".to_owned() },
            "create the group first, or give a numeric id",
        ),
        (
            not_seen(&["file#/y"], Sight::NoSession),
            "begin one with `eval \"$(ccm session new)\"`, or name one with --session",
        ),
        (not_seen(&[], Sight::Never), "seen so far: nothing yet"),
        (not_seen(&["file#/y", "file#/z"], Sight::OnlyPredicted), "seen so far: file#/y, file#/z"),
        (
            ErrorKind::Unrecorded { reason: String::new() },
            "nothing was changed; make room in the state directory or name another with --state-dir",
        ),
        (ErrorKind::Interrupted, ""),
    ] {
        let error = Error::from(kind);
        assert_eq!(error.help.as_deref().unwrap_or_default(), expected, "{error}");
    }
}
