//! What a package is asked to be, and what is refused before anything is done.

use super::*;
use crate::{
    document::{Source, from_node, parse},
    resource::Properties as _,
};

/// What a user asks for, from the properties as they stand in a manifest.
pub(super) fn want(yaml: &str) -> Properties {
    let source = Source::read("test", yaml.as_bytes().to_vec()).unwrap();
    from_node(&parse(&source).unwrap()).unwrap()
}

#[test]
fn what_is_not_said_has_a_default() {
    let want = want("name: nginx");
    assert_eq!((want.ensure, want.refresh, want.hold), (Ensure::Present, Refresh::Auto, None));
}

#[test]
fn a_version_needs_no_quotes() {
    for version in ["1.10", "0644", "1.0-1", "1e3"] {
        assert_eq!(
            want(&format!("name: tool\nensure: {version}")).ensure,
            Ensure::Version(version.to_owned())
        );
    }
}

#[test]
fn what_only_one_provider_knows_is_refused_when_the_other_is_asked_for() {
    for (properties, provider, blamed) in [
        ("name: libc6:i386", "apt", None),
        ("name: libc6:i386", "dnf", Some("name")),
        ("name: NetworkManager", "dnf", None),
        ("name: NetworkManager", "apt", Some("name")),
        ("name: tool\nensure: 1.0^git1", "dnf", None),
        ("name: tool\nensure: 1.0^git1", "apt", Some("ensure")),
        ("name: tool\nensure: r1", "apt", Some("ensure")),
        ("name: tool\nensure: 1-2-3", "apt", None),
        ("name: tool\nensure: 1-2-3", "dnf", Some("ensure")),
    ] {
        let problems = want(properties).problems_with(Some(provider));
        assert_eq!(problems.first().and_then(|problem| problem.property), blamed, "{properties} {provider}");
    }
    assert!(want("name: NetworkManager").problems_with(None).is_empty());
}

#[test]
fn what_is_not_there_cannot_be_held() {
    for (properties, problems) in
        [("ensure: absent\nhold: true", 1), ("ensure: purged\nhold: false", 0), ("hold: true", 0)]
    {
        assert_eq!(want(&format!("name: tool\n{properties}")).problems().len(), problems, "{properties}");
    }
}
