#![expect(clippy::disallowed_methods, reason = "the test compares with ssh-keygen")]

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::*;
use crate::{host::process::locate, skip::skip};

/// When the signatures are verified.
const NOW: &str = "20240601120000Z";
const IDENTITIES: [&str; 2] = ["ops", "dev"];

fn ssh_keygen(folder: &Path, zone: &str, arguments: &[&str], stdin: Option<&str>) -> bool {
    let stdin = stdin.map_or_else(Stdio::null, |name| File::open(folder.join(name)).unwrap().into());
    let mut command = Command::new("ssh-keygen");
    command.args(arguments).current_dir(folder).env("TZ", zone).stdin(stdin);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// Returns whether ssh-keygen accepts the signature from one of the identities.
fn accepts<'i>(folder: &Path, zone: &str, identities: impl IntoIterator<Item = &'i str>) -> bool {
    identities.into_iter().any(|identity| {
        let verify = ["-Y", "verify", "-n", NAMESPACE, "-f", "signers", "-I", identity, "-s", "content.sig"];
        let time = format!("verify-time={NOW}");
        ssh_keygen(folder, zone, &[verify.as_slice(), &["-O", &time]].concat(), Some("content"))
    })
}

fn principals() -> impl Strategy<Value = String> {
    select(vec![
        "ops",
        "dev",
        "*",
        "o?s",
        "ops,dev",
        "!ops",
        "*,!ops",
        "ops,!ops",
        "*,!*",
        "!o*,ops",
        "nobody,ops",
        "\"ops\"",
        "\"ops dev\"",
        "o\"ps\"",
        "\"\"",
        "ops,",
        ",ops",
        "\"ops",
        "#ops",
        " ops",
        "\tops",
    ])
    .prop_map(str::to_owned)
}

fn option() -> impl Strategy<Value = String> {
    let lists = vec![
        "ccm",
        "git",
        "*",
        "c?m",
        "c*",
        "ccm,git",
        "git,ccm",
        "!ccm",
        "*,!ccm",
        "!git,*",
        "!*,ccm",
        "ccm,",
        ",",
        "",
        "ccm ",
        "CCM",
        "c\\\"m",
        "git,!c*,ccm",
    ];
    let times = vec![
        "20240601",
        "20240601Z",
        "20240602Z",
        "20240531Z",
        "202406011200Z",
        "20240601120000Z",
        "20240601115959Z",
        "20240601120001Z",
        "202406011300",
        "202406011400",
        "202406011500",
        "20230230Z",
        "20240532Z",
        "20240631Z",
        "20241301Z",
        "20240600Z",
        "19700101Z",
        "19600101Z",
        "20240601120060Z",
        "20240601120061Z",
        "20240601120062Z",
        "202406012400Z",
        "202406011160Z",
        "20240601UTC",
        "20240601utc",
        "20240601z",
        "2024060112Z",
        "",
        "Z",
        "never",
        "2024 6 1Z",
        "20240601 Z",
        "+2024060Z",
        "99991231Z",
    ];
    prop_oneof![
        4 => select(lists).prop_map(|list| format!("namespaces=\"{list}\"")),
        3 => select(times.clone()).prop_map(|time| format!("valid-after=\"{time}\"")),
        3 => select(times).prop_map(|time| format!("valid-before=\"{time}\"")),
        1 => select(vec![
            "cert-authority", "Namespaces=\"ccm\"", "VALID-AFTER=\"20200101Z\"", "namespaces=ccm",
            "valid-after=20200101Z", "valid-before=\"20300101Z", "nonsense", "namespaces", "cert-authorityx",
            "namespaces=\"ccm\"x", "", "no-touch-required", "valid-after =\"20200101Z\"", "\"", "\\\"",
        ])
        .prop_map(str::to_owned),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        12 => Just("KEY"),
        1 => select(vec![
            "OTHER", "", "ssh-ed25519", "KEY comment \"x", "ssh-rsa BLOB", "rsa-sha2-512 BLOB", "ed25519 BLOB",
            "ssh-ed25519\tBLOB", "ssh-ed25519  BLOB", "ssh-ed25519 BLOBAAAA", "ssh-ed25519 BLOB=", "BLOB", "KEY\r",
            "SSH-ED25519 BLOB",
        ]),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let options = prop::collection::vec(option(), 0..4).prop_map(|options| options.join(","));
    let space = select(vec![" ", " ", " ", "  ", "\t", ", "]);
    (principals(), options, key(), space).prop_map(|(principals, options, key, space)| {
        let options = if options.is_empty() { String::new() } else { format!("{options}{space}") };
        format!("{principals} {options}{key}")
    })
}

#[test]
fn allowed_signers_are_read_as_by_ssh_keygen() {
    if locate("ssh-keygen").is_err() {
        skip("needs ssh-keygen");
        return;
    }
    let folder = std::env::temp_dir().join(format!("ccm-signers-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let folder = folder.as_path();
    fs::write(folder.join("content"), "content").unwrap();
    for key in ["key", "other"] {
        assert!(ssh_keygen(folder, "", &["-q", "-t", "ed25519", "-N", "", "-f", key], None));
    }
    assert!(ssh_keygen(folder, "", &["-q", "-Y", "sign", "-n", NAMESPACE, "-f", "key", "content"], None));
    let public = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    let (own, other) = (public("key.pub"), public("other.pub"));
    let (kind, blob) = own.split_once(' ').unwrap();
    let key = PublicKey::from_words(kind, blob).unwrap();
    let now = time::parse(NOW.as_bytes(), &TimeZone::UTC).unwrap();
    let now = Timestamp::from_second(now).unwrap();
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let mut accepted = 0;
    for number in 0..1_000 {
        let count = if number % 4 == 0 { 2 } else { 1 };
        let lines = prop::collection::vec(line(), count).new_tree(&mut runner).unwrap().current();
        let text = lines.join("\n").replace("KEY", &own).replace("OTHER", &other).replace("BLOB", blob);
        let zone = ["UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5"][number % 3];
        fs::write(folder.join("signers"), &text).unwrap();
        let parsed = AllowedSigners::parse("signers", text.as_bytes(), &TimeZone::posix(zone).unwrap());
        let found = parsed.find(&key, now);
        let identities = found.as_deref().unwrap_or_default().split(',').filter(|name| !name.is_empty());
        let expected = accepts(folder, zone, IDENTITIES.into_iter().chain(identities));
        assert_eq!(found.is_ok(), expected, "{lines:?}: {found:?}");
        accepted += usize::from(expected);
    }
    fs::remove_dir_all(folder).unwrap();
    assert!((200..800).contains(&accepted), "{accepted} accepted");
}
