//! What has to happen to a package: the decision table, without looking at anything.

use std::cmp::Ordering;

use super::{
    Properties, Scheme,
    action::{Action, Deed, Target},
    ensure::Ensure,
    error::PackageError,
    refresh::Need,
    state::{Hold, Index, Offer, PackageState, Presence, Standing},
};
use crate::resource::{Change, Difference};

/// Decides what brings the package to what is wanted, or why nothing can.
pub(super) fn compare(
    want: &Properties,
    have: &PackageState,
) -> Result<Option<Change<Action>>, PackageError> {
    let standing = &have.standing;
    let deed = deed(want, standing)?;
    if deed.is_some() && standing.hold == Hold::Held && want.hold.is_none() {
        return Err(PackageError::Held { name: want.name.to_string(), state: word(have).to_owned() });
    }
    let hold = match (want.hold, standing.hold) {
        (Some(true), Hold::Free) => Some(true),
        (Some(false), Hold::Held) => Some(false),
        _ => None,
    };
    let mut differences = Vec::new();
    if let Some(deed) = &deed {
        differences.push(Difference::between("ensure", word(have), wanted_word(want, standing, deed)));
    }
    if let Some(hold) = hold {
        differences.push(Difference::between("hold", !hold, hold));
    }
    let change = Change { action: Action { deed, hold }, differences, refreshes: false };
    Ok((!change.differences.is_empty()).then_some(change))
}

/// Says what has to be known of the sources to decide.
pub(super) fn need(want: &Ensure, scheme: Scheme, presence: &Presence) -> Need {
    match (want, presence) {
        (Ensure::Absent | Ensure::Purged, _) | (Ensure::Present, Presence::Installed(_)) => Need::Nothing,
        (Ensure::Version(wanted), Presence::Installed(installed)) if has(scheme, installed, wanted) => {
            Need::Nothing
        }
        (Ensure::Latest, _) => Need::Latest,
        _ => Need::Install,
    }
}

/// Whether the sources are known to lack what is wanted.
pub(super) fn is_lacking(want: &Ensure, scheme: Scheme, offer: &Offer) -> bool {
    match (offer, want) {
        (Offer::Unknown | Offer::NoCandidate, _) => true,
        (Offer::Known { versions, .. }, Ensure::Version(wanted)) => !has(scheme, versions, wanted),
        _ => false,
    }
}

/// Whether the package itself has to be changed.
pub(super) fn is_to_change(want: &Properties, have: &Standing) -> bool {
    matches!(deed(want, have), Ok(Some(_)))
}

fn has(scheme: Scheme, versions: &[String], wanted: &str) -> bool {
    versions.iter().any(|version| scheme.order_to_wanted(version, wanted) == Ordering::Equal)
}

fn deed(want: &Properties, have: &Standing) -> Result<Option<Deed>, PackageError> {
    let deed = match (&want.ensure, &have.presence) {
        (Ensure::Present, Presence::Installed(_)) => return Ok(None),
        // What is half there is finished, whether or not a source still has it.
        (Ensure::Present, Presence::Broken(_)) => return Ok(Some(Deed::Install(Target::Any))),
        (Ensure::Present, _) => Deed::Install(Target::Any),
        (Ensure::Latest, Presence::Installed(_)) => {
            return Ok(newer(have).map(|candidate| Deed::Upgrade(Target::Latest(Some(candidate)))));
        }
        (Ensure::Latest, _) => Deed::Install(Target::Latest(candidate(&have.offer))),
        (Ensure::Version(wanted), Presence::Installed(installed)) if has(have.scheme, installed, wanted) => {
            return Ok(None);
        }
        (Ensure::Version(wanted), _) => return version(wanted, want, have).map(Some),
        (Ensure::Absent, Presence::Absent | Presence::Configuration) | (Ensure::Purged, Presence::Absent) => {
            return Ok(None);
        }
        (Ensure::Absent, _) => return Ok(Some(Deed::Remove)),
        (Ensure::Purged, Presence::Configuration) => return Ok(Some(Deed::PurgeRest)),
        (Ensure::Purged, _) => return Ok(Some(Deed::Purge)),
    };
    is_offered(want, have).map(|()| Some(deed))
}

/// Fails if no repository offers any version.
fn is_offered(want: &Properties, have: &Standing) -> Result<(), PackageError> {
    let (name, provider) = (want.name.to_string(), have.provider);
    let wanted = format!("`{name}`");
    match have.offer {
        Offer::Unknown => {
            Err(not_offered(wanted, Vec::new(), have, PackageError::Unknown { name, provider }))
        }
        Offer::NoCandidate => {
            let wanted = format!("an installable version of {wanted}");
            Err(not_offered(wanted, Vec::new(), have, PackageError::NoCandidate { name, provider }))
        }
        Offer::Known { .. } | Offer::Unforeseen | Offer::NotAsked => Ok(()),
    }
}

/// Returns `error` if the package index is current. An index that was not refreshed proves nothing about the repositories.
fn not_offered(wanted: String, offered: Vec<String>, have: &Standing, error: PackageError) -> PackageError {
    let provider = have.provider;
    match &have.index {
        Index::Current => error,
        Index::NotRefreshed(reason) => {
            PackageError::NotRefreshed { wanted, provider, reason: reason.clone() }
        }
        Index::Kept => PackageError::NotInIndex { wanted, offered },
    }
}

/// Returns what the sources offer if it is newer than what is installed. An older one is never wanted.
fn newer(have: &Standing) -> Option<String> {
    let installed = have.presence.version()?;
    candidate(&have.offer).filter(|candidate| have.scheme.order(candidate, installed) == Ordering::Greater)
}

fn candidate(offer: &Offer) -> Option<String> {
    match offer {
        Offer::Known { candidate, .. } => Some(candidate.clone()),
        Offer::NotAsked | Offer::Unknown | Offer::NoCandidate | Offer::Unforeseen => None,
    }
}

/// Installs one version, over another if there is one.
fn version(wanted: &str, want: &Properties, have: &Standing) -> Result<Deed, PackageError> {
    is_offered(want, have)?;
    let is_wanted = |version: &&String| have.scheme.order_to_wanted(version, wanted) == Ordering::Equal;
    let exact = match &have.offer {
        Offer::Known { versions, .. } => match versions.iter().find(is_wanted) {
            Some(exact) => Some(exact.clone()),
            None => {
                let shown = |version: &String| have.scheme.shown(version).to_owned();
                let offered: Vec<String> = versions.iter().map(shown).collect();
                let (name, version) = (want.name.to_string(), wanted.to_owned());
                let missing = format!("version {version} of `{name}`");
                let (list, provider) = (offered.clone(), have.provider);
                let error = PackageError::NoSuchVersion { name, version, offered, provider };
                return Err(not_offered(missing, list, have, error));
            }
        },
        _ => None,
    };
    let order = |installed: &str| match &exact {
        Some(exact) => have.scheme.order(exact, installed),
        None => have.scheme.order_to_wanted(installed, wanted).reverse(),
    };
    let direction = match &have.presence {
        // One of a package that can be installed several times joins the others.
        Presence::Installed(versions) if versions.len() == 1 => Some(order(&versions[0])),
        _ => None,
    };
    let target = Target::Version { wanted: wanted.to_owned(), exact };
    Ok(match direction {
        None => Deed::Install(target),
        Some(Ordering::Less) => Deed::Downgrade(target),
        Some(_) => Deed::Upgrade(target),
    })
}

/// The state of the package as differences show it.
fn word(have: &PackageState) -> &str {
    match &have.standing.presence {
        Presence::Installed(_) => have.metadata.version.as_deref().unwrap_or("installed"),
        Presence::Absent => "absent",
        Presence::Configuration => "config-files",
        Presence::Broken(word) => word,
    }
}

fn wanted_word(want: &Properties, have: &Standing, deed: &Deed) -> String {
    match deed {
        Deed::Install(Target::Latest(Some(newest))) | Deed::Upgrade(Target::Latest(Some(newest))) => {
            have.scheme.shown(newest).to_owned()
        }
        _ => want.ensure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            state::{Extended, Metadata},
            tests::want,
        },
        *,
    };

    const NOT_REFRESHED: &str = "the package index could not be refreshed: no network";
    const OFFERED: [&str; 3] = ["1:0.9", "2.0", "1.0"];

    fn state(scheme: Scheme, presence: Presence, offer: Offer, hold: Hold) -> PackageState {
        let version = presence.version().map(|version| scheme.shown(version).to_owned());
        let (name, provider) = ("tool".to_owned(), "apt".to_owned());
        let (installed_along, removed_along) = (Vec::new(), Vec::new());
        let extended = Extended::default();
        let metadata =
            Metadata { name, version, arch: None, provider, installed_along, removed_along, extended };
        PackageState {
            metadata,
            configuration: Vec::new(),
            standing: Standing { scheme, provider: "apt", presence, hold, offer, index: Index::Current },
        }
    }

    fn installed(versions: &[&str]) -> Presence {
        Presence::Installed(versions.iter().map(|version| (*version).to_owned()).collect())
    }

    fn offer(versions: &[&str]) -> Offer {
        let versions: Vec<String> = versions.iter().map(|version| (*version).to_owned()).collect();
        Offer::Known { candidate: versions[0].clone(), versions }
    }

    fn decided(ensure: &str, have: &PackageState) -> String {
        match compare(&want(&format!("name: tool\nensure: \"{ensure}\"")), have) {
            Ok(None) => "stable".to_owned(),
            Ok(Some(change)) => change.action.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_desired_state_meets_every_state() {
        let broken = || Presence::Broken("half-configured".to_owned());
        for (ensure, presence, action) in [
            ("present", Presence::Absent, "installed"),
            ("present", Presence::Configuration, "installed"),
            ("present", broken(), "installed"),
            ("present", installed(&["1.0"]), "stable"),
            ("latest", Presence::Absent, "installed latest"),
            ("latest", installed(&["1.0"]), "upgraded to latest"),
            ("latest", installed(&["1:0.9"]), "stable"),
            ("latest", installed(&["2:0"]), "stable"),
            ("1.0", Presence::Absent, "installed version 1.0"),
            ("1.0", broken(), "installed version 1.0"),
            ("1.0", installed(&["1.0"]), "stable"),
            ("1.00", installed(&["1.0"]), "stable"),
            ("2.0", installed(&["1.0"]), "upgraded to 2.0"),
            ("1.0", installed(&["2.0"]), "downgraded to 1.0"),
            ("2.0", installed(&["1:0.9"]), "downgraded to 2.0"),
            ("1:0.9", installed(&["2.0"]), "upgraded to 1:0.9"),
            ("3.0", installed(&["2.0"]), "no apt repository offers version 3.0 of `tool`"),
            ("absent", installed(&["1.0"]), "uninstalled"),
            ("absent", broken(), "uninstalled"),
            ("absent", Presence::Configuration, "stable"),
            ("absent", Presence::Absent, "stable"),
            ("purged", installed(&["1.0"]), "uninstalled. purged"),
            ("purged", broken(), "uninstalled. purged"),
            ("purged", Presence::Configuration, "purged"),
            ("purged", Presence::Absent, "stable"),
        ] {
            let have = state(Scheme::Debian, presence, offer(&OFFERED), Hold::Free);
            assert_eq!(decided(ensure, &have), action, "{ensure} on {:?}", have.standing.presence);
        }
    }

    #[test]
    fn what_differs_is_told_with_the_versions_that_there_are() {
        for (ensure, presence, is, should_be) in [
            ("present", Presence::Absent, "absent", "present"),
            ("latest", Presence::Configuration, "config-files", "1:0.9"),
            ("latest", installed(&["1.0"]), "1.0", "1:0.9"),
            ("2.0", installed(&["1.0"]), "1.0", "2.0"),
            ("absent", Presence::Broken("half-configured".to_owned()), "half-configured", "absent"),
        ] {
            let found = state(Scheme::Debian, presence, offer(&OFFERED), Hold::Free);
            let wanted = want(&format!("name: tool\nensure: \"{ensure}\""));
            let change = compare(&wanted, &found).unwrap().unwrap();
            assert_eq!(change.differences, [Difference::between("ensure", is, should_be)]);
        }
        for (hold, is) in [(true, Hold::Free), (false, Hold::Held)] {
            let found = state(Scheme::Debian, installed(&["1.0"]), offer(&OFFERED), is);
            let change = compare(&want(&format!("name: tool\nhold: {hold}")), &found).unwrap().unwrap();
            assert_eq!(change.differences, [Difference::between("hold", !hold, hold)]);
        }
    }

    #[test]
    fn an_rpm_matches_without_release_and_epoch_and_its_direction_is_that_of_what_is_offered() {
        let offered = ["1:0.9-1", "0:2.0-1", "0:1.0-2", "0:1.0-1"];
        for (ensure, presence, action) in [
            ("1.0", installed(&["0:1.0-1"]), "stable"),
            ("1.0-2", installed(&["0:1.0-1"]), "upgraded to 1.0-2"),
            ("2.0", installed(&["1:0.9-1"]), "downgraded to 2.0"),
            ("0.9", installed(&["0:2.0-1"]), "upgraded to 0.9"),
            ("1:0.9", installed(&["0:2.0-1"]), "upgraded to 1:0.9"),
            ("2.0", installed(&["0:3.0-1", "0:1.0-1"]), "installed version 2.0"),
            ("1.0", installed(&["0:3.0-1", "0:1.0-1"]), "stable"),
        ] {
            let have = state(Scheme::Rpm, presence, offer(&offered), Hold::Free);
            assert_eq!(decided(ensure, &have), action, "{ensure} on {:?}", have.standing.presence);
        }
        let have = state(Scheme::Rpm, Presence::Absent, offer(&offered), Hold::Free);
        let change = compare(&want("name: tool\nensure: \"1.0\""), &have).unwrap().unwrap();
        assert_eq!(change.action.deed.unwrap().exact(), Some("0:1.0-2"), "the newest release");
    }

    #[test]
    fn what_no_source_has_is_an_error_and_what_they_may_get_is_not() {
        for ensure in ["present", "latest", "1.0"] {
            for (offer, said) in [
                (Offer::Unknown, "no apt repository offers a package `tool`"),
                (Offer::NoCandidate, "`tool` is known, but no apt repository offers a version"),
                (Offer::Unforeseen, "installed"),
            ] {
                let have = state(Scheme::Debian, Presence::Absent, offer, Hold::Free);
                assert!(decided(ensure, &have).starts_with(said), "{}", decided(ensure, &have));
            }
        }
        // One that came from no source is the latest there is.
        let have = state(Scheme::Debian, installed(&["1.0"]), Offer::Unknown, Hold::Free);
        assert_eq!(decided("latest", &have), "stable");
    }

    #[test]
    fn index_that_was_not_refreshed_is_named_instead_of_the_repositories() {
        let known = || offer(&OFFERED);
        for (ensure, offer, index, said) in [
            ("present", Offer::Unknown, Index::NotRefreshed("no network".to_owned()), NOT_REFRESHED),
            ("present", Offer::NoCandidate, Index::NotRefreshed("no network".to_owned()), NOT_REFRESHED),
            ("3.0", known(), Index::NotRefreshed("no network".to_owned()), NOT_REFRESHED),
            ("1.0", known(), Index::NotRefreshed("no network".to_owned()), "installed version 1.0"),
            (
                "present",
                Offer::Unknown,
                Index::Kept,
                "`tool` is not in the package index, and `refresh: never` forbids to refresh it",
            ),
            (
                "3.0",
                known(),
                Index::Kept,
                "version 3.0 of `tool` is not in the package index, and `refresh: never` forbids to refresh it",
            ),
        ] {
            let mut have = state(Scheme::Debian, Presence::Absent, offer, Hold::Free);
            have.standing.index = index;
            assert_eq!(decided(ensure, &have), said);
        }
    }

    #[test]
    fn a_package_on_hold_changes_only_when_somebody_says_so() {
        let have = |hold| state(Scheme::Debian, installed(&["1.0"]), offer(&OFFERED), hold);
        for (properties, hold, action) in [
            ("ensure: present", Hold::Held, "stable"),
            ("ensure: latest", Hold::Held, "\"tool\" is on hold and would have to change: it is 1.0"),
            ("ensure: absent", Hold::Held, "\"tool\" is on hold and would have to change: it is 1.0"),
            ("ensure: latest\nhold: true", Hold::Held, "upgraded to latest"),
            ("ensure: latest\nhold: true", Hold::Free, "upgraded to latest. put on hold"),
            ("ensure: latest\nhold: false", Hold::Held, "upgraded to latest. taken off hold"),
            ("hold: true", Hold::Free, "put on hold"),
            ("hold: true", Hold::Held, "stable"),
            ("hold: false", Hold::Held, "taken off hold"),
            ("hold: false", Hold::Free, "stable"),
        ] {
            let found = match compare(&want(&format!("name: tool\n{properties}")), &have(hold)) {
                Ok(change) => change.map_or_else(|| "stable".to_owned(), |change| change.action.to_string()),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, action, "{properties} {hold:?}");
        }
    }

    #[test]
    fn sources_lack_what_they_are_known_not_to_offer() {
        for (ensure, offer, expected) in [
            ("present", Offer::Unknown, true),
            ("1.0", Offer::Unknown, true),
            ("latest", Offer::NoCandidate, true),
            ("present", offer(&OFFERED), false),
            ("latest", offer(&OFFERED), false),
            ("1.0", offer(&OFFERED), false),
            ("3.0", offer(&OFFERED), true),
            ("3.0", Offer::Unforeseen, false),
            ("3.0", Offer::NotAsked, false),
        ] {
            let found = is_lacking(&ensure.parse().unwrap(), Scheme::Debian, &offer);
            assert_eq!(found, expected, "{ensure} {offer:?}");
        }
    }

    #[test]
    fn a_package_is_to_change_where_something_has_to_be_done_and_can_be() {
        for (ensure, presence, expected) in [
            ("present", Presence::Absent, true),
            ("present", installed(&["1.0"]), false),
            ("latest", installed(&["1.0"]), true),
            ("absent", installed(&["1.0"]), true),
            ("absent", Presence::Absent, false),
            ("3.0", installed(&["1.0"]), false),
        ] {
            let have = state(Scheme::Debian, presence, offer(&OFFERED), Hold::NotAsked).standing;
            let wanted = want(&format!("name: tool\nensure: \"{ensure}\""));
            assert_eq!(is_to_change(&wanted, &have), expected, "{ensure} on {:?}", have.presence);
        }
    }

    #[test]
    fn sources_are_asked_only_where_it_matters() {
        let one = || installed(&["1.0"]);
        for (ensure, presence, expected) in [
            ("present", one(), Need::Nothing),
            ("1.0", one(), Need::Nothing),
            ("absent", one(), Need::Nothing),
            ("purged", Presence::Absent, Need::Nothing),
            ("2.0", one(), Need::Install),
            ("present", Presence::Configuration, Need::Install),
            ("latest", one(), Need::Latest),
            ("latest", Presence::Absent, Need::Latest),
        ] {
            assert_eq!(
                need(&ensure.parse().unwrap(), Scheme::Debian, &presence),
                expected,
                "{ensure} {presence:?}"
            );
        }
    }
}
