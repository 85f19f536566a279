//! On random manifests over random trees a dry run foretells what a real run does, and a second run has nothing to do.

use std::{fmt, fs, os::unix::fs::symlink};

use proptest::{
    collection::vec,
    option::weighted,
    prelude::{Just, Strategy, any, prop_oneof},
    sample::select,
    test_runner::{TestCaseError, TestRunner},
};

use crate::support::{Item, NOBODY, What, World, random};

/// What is at a path before the run.
#[derive(Clone, Debug)]
enum Start {
    File { content: &'static str, mode: u32 },
    Directory { mode: u32 },
    Link { target: &'static str },
}

/// What a resource wants.
#[derive(Clone, Debug)]
enum Want {
    File {
        content: Option<&'static str>,
        mode: u32,
    },
    Copy {
        source: String,
        mode: u32,
    },
    Directory {
        mode: u32,
    },
    Absent {
        force: bool,
    },
    /// A command that creates the path, and the directories above it.
    Created,
}

#[derive(Clone)]
struct Case {
    start: Vec<(String, Start, Owner)>,
    wants: Vec<(String, Want, Owner)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Own,
    Stranger,
}

/// Few names, so that paths meet.
fn path() -> impl Strategy<Value = String> {
    vec(select(&["a", "b", "c"][..]), 1..=3).prop_map(|names| names.join("/"))
}

fn owner() -> impl Strategy<Value = Owner> {
    // Only root can give files away.
    let strangers = u32::from(rustix::process::geteuid().is_root());
    prop_oneof![8 => Just(Owner::Own), strangers => Just(Owner::Stranger)]
}

fn start() -> impl Strategy<Value = Start> {
    let content = select(&["", "one", "two"][..]);
    prop_oneof![
        3 => (content, select(&[0o644, 0o600, 0o4755][..])).prop_map(|(content, mode)| Start::File { content, mode }),
        3 => select(&[0o755, 0o755, 0o700, 0o777, 0o1777][..]).prop_map(|mode| Start::Directory { mode }),
        1 => select(&["a", "b/c", "../a", "nowhere", "$W/b", "."][..]).prop_map(|target| Start::Link { target }),
    ]
}

fn want() -> impl Strategy<Value = Want> {
    let mode = || select(&[0o644, 0o600, 0o755][..]);
    let content = weighted(0.8, select(&["", "one", "two"][..]));
    let source = prop_oneof![
        Just("source".to_owned()),
        Just("missing".to_owned()),
        path().prop_map(|path| format!("$W/{path}"))
    ];
    prop_oneof![
        4 => (content, mode()).prop_map(|(content, mode)| Want::File { content, mode }),
        1 => (source, mode()).prop_map(|(source, mode)| Want::Copy { source, mode }),
        3 => select(&[0o755, 0o700, 0o777][..]).prop_map(|mode| Want::Directory { mode }),
        3 => any::<bool>().prop_map(|force| Want::Absent { force }),
        3 => Just(Want::Created),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let start = vec((path(), start(), owner()), 0..=6);
    let wants = vec((path(), want(), owner()), 1..=6);
    (start, wants).prop_map(|(mut start, mut wants)| {
        let mut seen = Vec::new();
        wants.retain(|(path, want, _)| {
            is_created(want)
                || !seen.contains(path) && {
                    seen.push(path.clone());
                    true
                }
        });
        let created: Vec<String> =
            wants.iter().filter(|(_, want, _)| is_created(want)).map(|(path, ..)| path.clone()).collect();
        wants.retain(|(path, want, _)| created.iter().all(|created| can_be_foretold(path, want, created)));
        // A command does not make its way through a link that leads nowhere.
        start.retain(|(_, start, _)| created.is_empty() || !matches!(start, Start::Link { .. }));
        Case { start, wants }
    })
}

fn is_created(want: &Want) -> bool {
    matches!(want, Want::Created)
}

/// Whether what becomes of a resource can be known although a command that creates the path may have run: what else that
/// makes is anybody's guess.
fn can_be_foretold(path: &str, want: &Want, created: &str) -> bool {
    let root = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let parent = path.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
    let reads =
        matches!(want, Want::Copy { source, .. } if root(&source.replace("$W/", "")) == root(created));
    !reads && (root(path) != root(created) || created.starts_with(&parent))
}

impl Case {
    fn world(&self) -> World {
        let world = World::new().beside("source", "one");
        let manifest = self.manifest();
        let mut world = world.manifest(&manifest);
        for (path, start, owner) in &self.start {
            // What does not fit onto what is there already is left out.
            let place = world.path(path);
            let parent = place.parent().expect("a folder");
            let above = || parent.ancestors().take_while(|above| above.starts_with(world.path("")));
            if fs::symlink_metadata(&place).is_ok()
                || above().any(|above| fs::symlink_metadata(above).is_ok_and(|found| !found.is_dir()))
            {
                continue;
            }
            world = match start {
                Start::File { content, mode } => world.file(path, content).mode(path, *mode),
                Start::Directory { mode } => world.dir(path).mode(path, *mode),
                Start::Link { target } => {
                    fs::create_dir_all(parent).expect("a new folder");
                    symlink(world.fill(target), &place).expect("a new link");
                    world
                }
            };
            if *owner == Owner::Stranger {
                world = world.owner(path, NOBODY, NOBODY);
            }
        }
        world
    }

    fn manifest(&self) -> String {
        let item = |(index, (path, want, owner)): (usize, &(String, Want, Owner))| {
            let owner = match owner {
                Owner::Own => "$OWN",
                Owner::Stranger => "owner: '65534', group: '65534'",
            };
            let properties = match want {
                Want::File { content: Some(content), mode } => {
                    format!("content: '{content}', {owner}, mode: '{mode:o}'")
                }
                Want::File { content: None, mode } => format!("{owner}, mode: '{mode:o}'"),
                Want::Copy { source, mode } => format!("source: {source}, {owner}, mode: '{mode:o}'"),
                Want::Directory { mode } => format!("ensure: directory, {owner}, mode: '{mode:o}'"),
                Want::Absent { force } => format!("ensure: absent, force: {force}"),
                Want::Created => {
                    let make = if self.wants_directory(path) { "mkdir" } else { "echo made >" };
                    let command = format!("umask 022; mkdir -p $(dirname $W/{path}) && {make} $W/{path}");
                    return format!(
                        "- exec: [{{ make-{index}: {{ command: '{command}', creates: $W/{path}, provider: shell }} }}]\n"
                    );
                }
            };
            format!("- file: [{{ $W/{path}: {{ {properties} }} }}]\n")
        };
        self.wants.iter().enumerate().map(item).collect()
    }

    fn wants_directory(&self, at: &str) -> bool {
        self.wants.iter().any(|(path, want, _)| path == at && matches!(want, Want::Directory { .. }))
    }

    /// Whether one resource undoes what another does, or reads what another writes: then every run has work to do.
    fn contradicts_itself(&self) -> bool {
        let links = self.start.iter().any(|(_, start, _)| matches!(start, Start::Link { .. }));
        let below = |path: &str| {
            let folder = format!("{path}/");
            self.wants.iter().filter(move |(other, ..)| other.starts_with(&folder))
        };
        let contradicts = |(path, want, _): &(String, Want, Owner)| match want {
            Want::Created => true,
            Want::Absent { .. } => below(path).any(|(_, want, _)| !matches!(want, Want::Absent { .. })),
            Want::Copy { source, .. } if source.starts_with('$') => true,
            Want::Copy { .. } | Want::File { .. } => below(path).next().is_some(),
            Want::Directory { .. } => false,
        };
        links || self.wants.iter().any(contradicts)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{:?}", self.manifest(), self.world().tree())
    }
}

/// What became of each resource: its path, whether it changed and whether it failed; and all errors.
pub(crate) fn verdicts(world: &World, flags: &[&str]) -> (Vec<(String, bool, bool)>, String) {
    let outcome = world.apply_with(flags);
    let base = world.fill("$W/");
    let verdict = |event: serde_json::Value| {
        let name = event["name"].as_str().unwrap_or_default().replace(&base, "");
        (name, event["changed"] == true, event["failed"] == true)
    };
    let errors = outcome.events().iter().map(|event| format!("{}\n", event["error"])).collect();
    (outcome.events().into_iter().map(verdict).collect(), errors)
}

fn holds(case: &Case) -> Result<(), TestCaseError> {
    let world = case.world();
    let before = world.tree();
    let (predicted, told) = verdicts(&world, &["--noop", "--json", "--no-diff"]);
    proptest::prop_assert_eq!(&world.tree(), &before, "a dry run changes nothing");
    let (done, happened) = verdicts(&world, &["--json"]);
    proptest::prop_assert_eq!(&predicted, &done, "foretold:\n{}happened:\n{}", told, happened);
    proptest::prop_assert!(world.tree().leftovers().is_empty());
    if done.iter().all(|(_, _, failed)| !failed) && !case.contradicts_itself() {
        let after = world.tree();
        let (again, happened) = verdicts(&world, &["--json"]);
        proptest::prop_assert!(again.iter().all(|(_, changed, failed)| !changed && !failed), "{}", happened);
        proptest::prop_assert_eq!(world.tree(), after);
    }
    Ok(())
}

#[test]
fn a_dry_run_foretells_exactly_what_a_real_run_does() {
    let config = random(100, "tests/failed_cases/prediction.txt");
    TestRunner::new(config).run(&case(), |case| holds(&case)).unwrap();
}

/// The managed part without inodes, and with links as they would be in any world.
fn comparable(world: &World) -> std::collections::BTreeMap<std::path::PathBuf, Item> {
    let mut items = world.tree().0;
    let base = world.fill("$W");
    for item in items.values_mut() {
        item.inode = 0;
        if let What::Link(target) = &mut item.what {
            *target = target.to_string_lossy().replace(&base, "$W").into();
        }
    }
    items
}

/// A plan that could be made leaves exactly the tree that an ordinary run leaves.
fn is_planned(case: &Case) -> Result<(), TestCaseError> {
    let (planned, applied) = (case.world(), case.world());
    let before = planned.tree();
    let made = planned.ccm(["plan", "site.yaml", "-o", "site.plan", "--allow-opaque"]).run();
    proptest::prop_assert_eq!(&planned.tree(), &before, "a plan changes nothing");
    if made.code != 0 {
        return Ok(());
    }
    let outcome = planned.ccm(["apply", "site.plan"]).run();
    proptest::prop_assert_eq!(outcome.code, 0, "{}", outcome);
    applied.apply().exits(0);
    proptest::prop_assert!(comparable(&planned) == comparable(&applied), "{:?}", planned.tree());
    Ok(())
}

#[test]
fn plan_leaves_exactly_the_tree_of_an_ordinary_run() {
    let config = random(60, "tests/failed_cases/plans.txt");
    TestRunner::new(config).run(&case(), |case| is_planned(&case)).unwrap();
}

#[test]
fn a_directory_that_a_command_makes_is_taken_for_empty_where_nothing_in_it_is_known() {
    let make =
        "- exec: [{ make: { command: 'mkdir $W/a && touch $W/a/c', creates: $W/a/c, provider: shell } }]\n";
    let gone = |path: &str| format!("- file: [{{ $W/{path}: {{ ensure: absent }} }}]\n");
    let warning = "assuming it is empty: otherwise a real run fails without `force: true`";

    let world = World::new().manifest(&format!("{make}{}{}", gone("a/c"), gone("a")));
    world.apply_with(&["--noop"]).exits(0).counts([3, 0, 0, 0]).says(warning);
    world.apply().exits(0).counts([3, 0, 0, 0]).never_says(warning);

    let world = World::new().manifest(&format!("{make}{}", gone("a")));
    for flags in [&["--noop"][..], &[]] {
        world.apply_with(flags).exits(1).counts([1, 0, 1, 0]).says("a is a directory that is not empty");
    }
}

#[test]
fn a_template_reads_what_an_earlier_resource_would_have_written() {
    let manifest = |word: &str| {
        format!(
            "\
- file:
    - $W/one: {{ content: {word}, $OWN, mode: '0644' }}
    - $W/two: {{ content: \"${{ file('$W/one') }}!\", $OWN, mode: '0644' }}
"
        )
    };
    let world = World::new().manifest(&manifest("first"));
    world.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]).says("+first!");
    world.apply().exits(0).counts([2, 0, 0, 0]);
    let world = world.manifest(&manifest("second"));
    world.apply_with(&["--noop"]).exits(0).counts([2, 0, 0, 0]).says("+second!");
    world.apply().exits(0).counts([2, 0, 0, 0]);
    assert_eq!(world.read("two"), "second!");
}

#[test]
fn a_first_deployment_dry_runs_clean_with_warnings() {
    let manifest = "
        - exec: [ install: { command: install-app --with-user } ]
        - file:
            - $W/app/etc/app.conf: { content: x, owner: no-such-user, group: no-such-group, mode: '0640' }
            - $W/app/etc/more.conf: { content: x, owner: no-such-user, group: no-such-group, mode: '0640' }
            - $W/app/copy: { source: $W/share/default, $OWN, mode: '0644' }
            - $W/own: { ensure: directory, owner: no-such-user, group: no-such-group, mode: '0755' }
            - $W/own/file: { content: x, owner: no-such-user, group: no-such-group, mode: '0644' }
        - exec: [ migrate: { command: $W/app/bin/migrate, user: no-such-user, cwd: $W/app } ]
        - service: [ no-such-unit: { enable: true, subscribe: [ 'file#$W/app/etc/app.conf' ] } ]
        ";
    let world = World::new().manifest(manifest).beside("bin/install-app", "#!/bin/sh\n");
    let program = world.base().join("bin/install-app");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // A machine that knows no unit.
    let systemctl = world.base().join("bin/systemctl");
    fs::write(
        &systemctl,
        "#!/bin/sh\necho Id=no-such-unit.service\necho LoadState=not-found\necho ActiveState=inactive\n",
    )
    .unwrap();
    fs::set_permissions(&systemctl, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", world.base().join("bin").display());
    let dry_run = |flags: &[&str]| {
        let call = world.ccm(["apply", "site.yaml", "--noop"].iter().chain(flags));
        call.env("PATH", path.clone()).run()
    };
    let text = dry_run(&[]);
    text.exits(0).counts([8, 0, 0, 0]);
    for warning in [
        "user `no-such-user` does not exist; assuming exec#",
        "group `no-such-group` does not exist; assuming exec#",
        "$W/app does not exist; assuming exec#",
        "source `$W/share/default` does not exist; assuming exec#",
        "no-such-unit.service does not exist; assuming exec#",
    ] {
        text.says(&world.fill(warning));
    }
    // Numbers that stand in for accounts are shown nowhere.
    dry_run(&["--json"]).exits(0).never_says("429496729");
    assert!(world.tree().names().is_empty(), "nothing was done");
    // Without the first command nothing would bring them.
    let world =
        world.manifest(&manifest.replace("install-app --with-user", "install-app, creates: $W/installed"));
    let call = world.ccm(["apply", "site.yaml", "--noop"]).env("PATH", path);
    call.run().exits(1).says("does not exist");
}

#[test]
fn a_template_reads_through_the_links_and_copies_that_a_dry_run_foresees() {
    let manifest = "\
- file:
    - defaults: { $OWN, mode: '0644' }
    - $W/current: { ensure: link, target: two }
    - $W/version: { content: \"{{ file('$W/current/v') }}\" }
    - $W/new: { source: $W/one/v }
    - $W/newer: { source: $W/new }
    - $W/one/v: { content: later }
    - $W/copied: { content: \"{{ file('$W/newer') }}\" }
";
    for before in [&[][..], &[("version", "1"), ("newer", "old"), ("copied", "old")]] {
        let world = World::new().file("one/v", "1").file("two/v", "2").manifest(manifest);
        symlink("one", world.path("current")).unwrap();
        for (name, content) in before {
            fs::write(world.path(name), content).unwrap();
        }
        world.apply_with(&["--noop"]).exits(0).counts([6, 0, 0, 0]);
        world.apply().exits(0).counts([6, 0, 0, 0]);
        assert_eq!((world.read("version").as_str(), world.read("copied").as_str()), ("2", "1"));
        world.apply_with(&["--only", "file#*/version"]).exits(0).never_says(" changed");
    }
}
