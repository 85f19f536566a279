//! `ccm plan`, `ccm plan show`, and `ccm apply` of a plan.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use serde_json::Value;

use crate::support::{Item, Outcome, Syscall, Trace, World, fits_strace, side_by_side, tampered_command};

/// Everything in the managed part of a world but inodes.
fn contents(world: &World) -> BTreeMap<PathBuf, Item> {
    let mut items = world.tree().0;
    for item in items.values_mut() {
        item.inode = 0;
    }
    items
}

fn plan(world: &World, flags: &[&str]) -> Outcome {
    world.ccm(["plan", "site.yaml", "-o", "site.plan"].iter().chain(flags)).run()
}

fn apply_plan(world: &World, flags: &[&str]) -> Outcome {
    world.ccm(["apply", "site.plan"].iter().chain(flags)).run()
}

/// Returns the fields that a refused plan names, with their resources.
fn refused(outcome: &Outcome) -> (String, Vec<(String, String)>) {
    let refusal = outcome.exits(2).json();
    assert_eq!(refusal["protocol"], "io.choria.ccm.v1.plan.refusal");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let differences = refusal["differences"].as_array().unwrap();
    let fields = differences.iter().map(|found| (text(&found["resource"]), text(&found["field"])));
    (text(&refusal["reason"]), fields.collect())
}

/// Files, links and directories to begin with.
fn furnished() -> World {
    let world =
        World::new().file("file", "old\n").dir("full").file("full/inner", "kept\n").file("plain", "p\n");
    let world = world.file("settings", "a = 1\nb = 2\n").dir("conf.d").file("conf.d/stray", "stray\n");
    fs::set_permissions(world.path("plain"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("elsewhere", world.path("link")).unwrap();
    world
}

const ALL_KINDS: &str = "\
- file:
    - $W/file: { content: \"new\\n\", $OWN, mode: '0600' }
    - $W/fresh: { content: \"fresh\\n\", $OWN, mode: '0644' }
    - $W/copy: { source: beside, $OWN, mode: '0644' }
    - $W/plain: { $OWN, mode: '0604' }
    - $W/settings: { edit: [{ line: \"b = 3\", match: \"^b = \" }] }
    - $W/link: { ensure: link, target: other }
    - $W/new-link: { ensure: link, target: file }
    - $W/a/b/c: { ensure: directory, $OWN, mode: '0700' }
    - $W/a/b/c/file: { content: x, $OWN, mode: '0644' }
    - $W/conf.d: { ensure: directory, $OWN, mode: '0711', purge: true }
    - $W/full: { ensure: absent, force: true }
- scaffold:
    - $W/tree: { source: tree, $OWN, mode: '0644', data: { name: value } }
";

fn with_all_kinds(world: World) -> World {
    let world = world.manifest(ALL_KINDS).beside("beside", b"beside \xff\n");
    fs::create_dir_all(world.base().join("tree/inner")).unwrap();
    world.beside("tree/plain", "is {{ Data.name }}\n").beside("tree/inner/{{ Data.name }}", "x\n")
}

#[test]
fn plan_is_applied_without_its_manifest() {
    let (planned, applied) = (with_all_kinds(furnished()), with_all_kinds(furnished()));
    applied.apply().exits(0);
    let before = contents(&planned);
    plan(&planned, &[]).exits(0).reports(&planned.fill("file#$W/file"), "Would have");
    assert!(contents(&planned) == before, "a plan changes nothing");
    for name in ["site.yaml", "beside", "tree/plain", "tree/inner/{{ Data.name }}"] {
        fs::remove_file(planned.base().join(name)).unwrap();
    }
    apply_plan(&planned, &["--noop"]).exits(0).says("the plan can be applied");
    assert!(contents(&planned) == before, "`--noop` changes nothing");
    let summary = apply_plan(&planned, &["--json"]).exits(0).summary();
    assert_eq!(summary["changed_resources"], 12, "{summary}");
    assert_eq!(names(&contents(&planned)), names(&contents(&applied)));
    assert!(contents(&planned) == contents(&applied));
    let again = apply_plan(&planned, &["--json"]).exits(0).summary();
    assert_eq!([&again["changed_resources"], &again["stable_resources"]], [0, 12], "{again}");
}

fn names(items: &BTreeMap<PathBuf, Item>) -> Vec<&PathBuf> {
    items.keys().collect()
}

#[test]
fn state_that_changed_since_is_refused_before_the_first_change() {
    let changes: [(&str, &str, fn(&World)); 10] = [
        ("file#$W/file", "content", |world| fs::write(world.path("file"), "odd\n").unwrap()),
        ("file#$W/file", "mode", |world| {
            fs::set_permissions(world.path("file"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("file#$W/file", "type", |world| {
            fs::remove_file(world.path("file")).unwrap();
            symlink("elsewhere", world.path("file")).unwrap();
        }),
        ("file#$W/fresh", "type", |world| fs::write(world.path("fresh"), "mine\n").unwrap()),
        ("file#$W/link", "target", |world| {
            fs::remove_file(world.path("link")).unwrap();
            symlink("astray", world.path("link")).unwrap();
        }),
        ("file#$W/settings", "content", |world| fs::write(world.path("settings"), "b = 7\n").unwrap()),
        ("file#$W/full", "content", |world| fs::write(world.path("full/more"), "more\n").unwrap()),
        ("file#$W/conf.d", "content", |world| fs::write(world.path("conf.d/another"), "x").unwrap()),
        ("scaffold#$W/tree", "type", |world| {
            fs::create_dir(world.path("tree")).unwrap();
            fs::write(world.path("tree/plain"), "mine\n").unwrap();
        }),
        ("file#$W/plain", "content", |_| ()),
    ];
    for (resource, field, change) in changes {
        let world = with_all_kinds(furnished());
        plan(&world, &[]).exits(0);
        change(&world);
        let before = contents(&world);
        if resource == "file#$W/plain" {
            // What the plan does not rely on does not count.
            fs::write(world.path("unrelated"), "x").unwrap();
            apply_plan(&world, &[]).exits(0);
            continue;
        }
        let (reason, fields) = refused(&apply_plan(&world, &["--json"]));
        assert_eq!(reason, "stale");
        assert!(fields.contains(&(world.fill(resource), field.to_owned())), "{resource} {field}: {fields:?}");
        apply_plan(&world, &["--noop"]).exits(2).says(&world.fill(resource));
        assert!(contents(&world) == before, "{resource} {field}: nothing is changed");
    }
}

#[test]
fn unchanged_resource_that_drifted_is_refused() {
    let world = World::new().files("- $W/a: { content: a }\n- $W/b: { content: b }\n");
    world.apply().exits(0);
    let world = world.files("- $W/a: { content: a }\n- $W/b: { content: c }\n");
    plan(&world, &[]).exits(0);
    fs::set_permissions(world.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    let (reason, fields) = refused(&apply_plan(&world, &["--json"]));
    assert_eq!((reason.as_str(), fields), ("stale", vec![(world.fill("file#$W/a"), "mode".to_owned())]));
    assert_eq!(world.read("b"), "b");
}

#[test]
fn altered_expired_and_foreign_plans_are_refused() {
    let reason = |world: &World, flags: &[&str]| refused(&apply_plan(world, flags)).0;
    let world = World::new().files("- $W/a: { content: a }\n");
    plan(&world, &[]).exits(0);
    let file = world.base().join("site.plan");
    let original = fs::read(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for at in [40, original.len() / 2, original.len() - 5] {
        let mut altered = original.clone();
        altered[at] ^= 1;
        fs::write(&file, altered).unwrap();
        assert_eq!(reason(&world, &["--json"]), "damaged", "byte {at}");
    }
    fs::write(&file, &original[..original.len() - 1]).unwrap();
    assert_eq!(reason(&world, &["--json"]), "damaged");
    fs::write(&file, &original).unwrap();
    let other = world.fill("$W/../other-state");
    assert_eq!(reason(&world, &["--json", "--state-dir", &other]), "machine");
    world.ccm(["plan", "show", "site.plan", "--state-dir", &other]).run().exits(0).complains("not made here");
    plan(&world, &["--valid", "0s"]).exits(0);
    assert_eq!(reason(&world, &["--json"]), "expired");
    assert!(!world.path("a").exists());
}

#[test]
fn options_that_would_change_a_plan_are_rejected() {
    let world = World::new().files("- $W/a: { content: a }\n").beside("other.yaml", "[]");
    plan(&world, &[]).exits(0);
    for flags in [
        ["--data", "a=1"],
        ["--fact", "a=1"],
        ["--facts", "site.yaml"],
        ["--hiera", "site.yaml"],
        ["--only", "file#x"],
        ["--skip", "file#x"],
    ] {
        apply_plan(&world, &flags).exits(2).complains(flags[0]);
    }
    for flag in ["--strict", "--verify", "--render", "--monitor-only", "--read-env"] {
        apply_plan(&world, &[flag]).exits(2).complains(flag);
    }
    apply_plan(&world, &["other.yaml"]).exits(2).complains("apply it alone");
    assert!(!world.path("a").exists());
}

#[test]
fn nothing_is_written_after_a_failure_or_without_consent_to_unknown_effects() {
    let world = World::new().manifest("- exec:\n    - \"touch $W/made\": {}\n").beside("site.plan", "mine");
    let left = || fs::read_to_string(world.base().join("site.plan")).unwrap();
    plan(&world, &[]).exits(2).complains("--allow-opaque");
    assert_eq!(left(), "mine");
    plan(&world, &["--allow-opaque"]).exits(0);
    let world = world.beside("site.plan", "mine").file("dir", "x").files("- $W/dir/a: { content: a }\n");
    plan(&world, &["--allow-opaque"]).exits(1);
    assert_eq!(fs::read_to_string(world.base().join("site.plan")).unwrap(), "mine");
}

#[test]
fn plan_shows_the_changes_with_their_classes() {
    let world = World::new().manifest(
        "\
- file:
    - $W/conf: { content: \"a\\n\", $OWN, mode: '0644' }
- exec:
    - reload: { command: \"touch $W/reloaded\", refresh_only: true, subscribe: \"file#$W/conf\" }
    - guarded: { command: \"touch $W/made\", unless: \"true\" }
",
    );
    plan(&world, &["--allow-opaque"]).exits(0);
    let shown = world.ccm(["plan", "show", "site.plan", "--json"]).run().exits(0).json();
    assert_eq!(shown["protocol"], "io.choria.ccm.v1.plan");
    let resources = shown["resources"].as_array().unwrap();
    let line = |at: usize| ["resource", "class", "action"].map(|key| resources[at][key].as_str().unwrap());
    assert_eq!(line(0)[1..], ["exact", "change"]);
    assert_eq!(resources[0]["refreshes"], serde_json::json!(["exec#reload"]));
    assert!(resources[0]["diff"].as_str().unwrap().contains("+a"));
    assert_eq!(line(1), ["exec#reload", "opaque", "refresh"]);
    assert_eq!(line(2), ["exec#guarded", "conditional", "none"]);
    let text = world.ccm(["plan", "show", "site.plan"]).run();
    text.exits(0).says("Effects unknown:").says("+a").says("exec#reload because of");
    world.ccm(["plan", "show", "site.plan", "--resource", "file#/none"]).run().exits(2);
    apply_plan(&world, &[]).exits(0);
    assert!(world.path("reloaded").exists());
    fs::remove_file(world.path("reloaded")).unwrap();
    apply_plan(&world, &[]).exits(0);
    assert!(!world.path("reloaded").exists(), "the refresh was already made");
}

#[test]
fn command_that_the_plan_completed_is_not_run_again() {
    let world = World::new().manifest("- exec:\n    - \"sh -c 'echo run >> $W/log'\": {}\n");
    plan(&world, &["--allow-opaque"]).exits(0);
    apply_plan(&world, &[]).exits(0);
    apply_plan(&world, &[]).exits(0);
    assert_eq!(world.read("log"), "run\n");
    plan(&world, &["--allow-opaque"]).exits(0);
    apply_plan(&world, &[]).exits(0);
    assert_eq!(world.read("log"), "run\nrun\n", "another plan runs it");
}

#[test]
fn undo_is_planned_and_applied() {
    let world = with_all_kinds(furnished());
    let before = contents(&world);
    world.apply().exits(0);
    let after = contents(&world);
    world.ccm(["undo", "last", "-o", "undo.plan"]).run().exits(0);
    assert!(contents(&world) == after);
    world.ccm(["apply", "undo.plan"]).run().exits(0);
    assert_eq!(names(&contents(&world)), names(&before));
    assert!(contents(&world) == before);
}

#[test]
fn difference_that_an_earlier_step_makes_stops_the_run() {
    let world = World::new().manifest(
        "\
- exec:
    - meddle: { command: \"sh -c 'echo odd > $W/b'\" }
- file:
    - $W/b: { content: b, $OWN, mode: '0644' }
    - $W/c: { content: c, $OWN, mode: '0644' }
",
    );
    plan(&world, &["--allow-opaque"]).exits(0);
    let outcome = apply_plan(&world, &[]);
    outcome.exits(1).says("the machine differs from the plan").says("1 resource was not attempted");
    assert_eq!(world.read("b"), "odd\n");
    assert!(!world.path("c").exists());
}

#[test]
fn difference_in_one_resource_of_a_joint_validation_stops_all_of_them() {
    let world = World::new().file("a", "old\n").file("b", "old\n");
    let validate = world.fill("validate: grep -q . $W/a");
    let manifest = world.fill(&format!(
        "- file:\n    - $W/a: {{ content: \"new\\n\", $OWN, mode: '0644', {validate} }}\n\
         - exec:\n    - echo other >$W/b: {{ provider: shell }}\n\
         - file:\n    - $W/b: {{ content: \"new\\n\", $OWN, mode: '0644', {validate} }}\n    \
         - $W/c: {{ content: \"new\\n\", $OWN, mode: '0644', {validate} }}\n"
    ));
    let is_last = manifest.lines().take(6).collect::<Vec<_>>().join("\n");
    for manifest in [manifest, is_last] {
        fs::write(world.path("b"), "old\n").unwrap();
        fs::write(world.base().join("site.yaml"), manifest).unwrap();
        plan(&world, &["--allow-opaque"]).exits(0);
        apply_plan(&world, &[]).exits(1).says("the machine differs from the plan");
        assert_eq!(world.read("a") + &world.read("b"), "old\nother\n");
        assert!(!world.path("c").exists());
    }
}

#[test]
fn refresh_that_became_pending_after_the_plan_stays_pending() {
    let manifest = |content: &str| {
        format!(
            "\
- file:
    - $W/conf: {{ content: '{content}', $OWN, mode: '0644' }}
- exec:
    - \"false\": {{ refresh_only: true, subscribe: \"file#$W/conf\" }}
"
        )
    };
    let world = World::new().manifest(&manifest("a"));
    world.apply().exits(1);
    let world = world.manifest("- file:\n    - $W/other: { content: x, $OWN, mode: '0644' }\n");
    plan(&world, &[]).exits(0);
    apply_plan(&world, &[]).exits(0);
    let world = world.manifest(&manifest("a"));
    world.apply_with(&["--noop"]).exits(0).says("Would have executed via subscribe");
}

#[test]
fn facts_that_were_read_are_compared_unless_they_were_given() {
    let facts = |value: &str| format!("role: {value}\nunread: {value}\n");
    let world = World::new()
        .beside("home/.config/choria/ccm/facts.yaml", facts("a"))
        .manifest("- file:\n    - $W/x: { content: \"${ Facts.role } ${ Facts.memory.virtual.free }\", $OWN, mode: '0644' }\n");
    plan(&world, &[]).exits(0);
    let world = world.beside("home/.config/choria/ccm/facts.yaml", facts("b"));
    let (reason, fields) = refused(&apply_plan(&world, &["--json"]));
    assert_eq!((reason.as_str(), fields), ("stale", vec![("Facts.role".to_owned(), "fact".to_owned())]));
    plan(&world, &["--fact", "role=c"]).exits(0);
    let world = world.beside("home/.config/choria/ccm/facts.yaml", facts("d"));
    apply_plan(&world, &[]).exits(0);
    assert!(world.read("x").starts_with("c "));
}

#[test]
fn included_manifests_and_selections_are_part_of_a_plan() {
    let world = World::new();
    let inner = world.fill("- file:\n    - $W/in: { content: \"${ Data.word }\", $OWN, mode: '0644' }\n    - $W/off: { content: x, $OWN, mode: '0644', control: { if: 'false' } }\n");
    let world = world.beside("inner.yaml", inner).dir("dir").file("dir/mine", "x").manifest(
        "\
- file:
    - $W/dir: { ensure: directory, $OWN, mode: '0755', purge: true }
    - $W/dir/mine: { content: y, $OWN, mode: '0644' }
- apply:
    - inner.yaml: { data: { word: inner } }
",
    );
    plan(&world, &["--skip", "file#$W/dir/mine"]).exits(0);
    fs::remove_file(world.base().join("inner.yaml")).unwrap();
    apply_plan(&world, &[]).exits(0);
    assert_eq!(
        [world.read("in"), world.read("dir/mine")],
        ["inner", "x"],
        "skipped resources are not purged"
    );
    assert!(!world.path("off").exists());
}

/// Occurs only in secrets.
const CANARY: &str = "c4n4ry-5e7-of-a-plan";

#[test]
fn secrets_are_in_no_part_of_a_plan() {
    let world = World::new().beside("secret-source", CANARY).manifest(&format!(
        "\
- file:
    - $W/content: {{ content: '{CANARY}', $OWN, mode: '0600', sensitive: true }}
    - $W/copied: {{ source: secret-source, $OWN, mode: '0600', sensitive: true }}
    - $W/unchanged: {{ content: '{CANARY}', $OWN, mode: '0600', sensitive: true }}
- exec:
    - with-environment: {{ command: \"sh -c 'printf %s $VALUE > $W/written'\", environment: ['VALUE={CANARY}'] }}
- file:
    - $W/last: {{ content: done, $OWN, mode: '0644', health_checks: [ {{ command: 'true', environment: ['VALUE={CANARY}'] }} ] }}
"
    ));
    let world = world
        .file("unchanged", CANARY)
        .mode("unchanged", 0o600)
        .file("content", "old")
        .mode("content", 0o600);
    let shown = [
        plan(&world, &["--allow-opaque"]),
        world.ccm(["plan", "show", "site.plan"]).run(),
        world.ccm(["plan", "show", "site.plan", "--json"]).run(),
    ];
    let mut texts: Vec<String> = shown.iter().map(|outcome| outcome.exits(0).to_string()).collect();
    let file = fs::read(world.base().join("site.plan")).unwrap();
    let header = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut plain = String::new();
    let mut frame = ruzstd::decoding::StreamingDecoder::new(&file[header..]).unwrap();
    std::io::Read::read_to_string(&mut frame, &mut plain).unwrap();
    assert!(plain.contains("$encrypted"));
    texts.extend([plain, String::from_utf8_lossy(&file).into_owned()]);
    let digest = crate::support::sh(&format!("printf %s {CANARY} | sha256sum | cut -d' ' -f1"), world.base());
    for text in &texts {
        assert!(!text.contains(CANARY) && !text.contains(digest.trim()), "{text}");
    }
    fs::remove_file(world.base().join("secret-source")).unwrap();
    fs::write(world.path("content"), "odd").unwrap();
    let refused = apply_plan(&world, &[]);
    refused.exits(2).never_says(CANARY);
    fs::write(world.path("content"), "old").unwrap();
    apply_plan(&world, &["--json"]).exits(0).never_says(CANARY);
    for name in ["content", "copied", "unchanged", "written"] {
        assert_eq!(world.read(name), CANARY, "{name}");
    }
}

#[test]
fn signature_is_required_if_signers_are_named() {
    if !crate::support::has("ssh-keygen") {
        return;
    }
    let world = World::new().files("- $W/a: { content: a }\n");
    crate::support::sh(
        "ssh-keygen -q -t ed25519 -N '' -f key; ssh-keygen -q -t ed25519 -N '' -f other",
        world.base(),
    );
    let public = |name: &str| fs::read_to_string(world.base().join(name)).unwrap();
    fs::write(world.base().join("signers"), format!("ops {}", public("key.pub"))).unwrap();
    fs::write(world.base().join("strangers"), format!("ops {}", public("other.pub"))).unwrap();
    plan(&world, &[]).exits(0);
    assert_eq!(refused(&apply_plan(&world, &["--json", "--allowed-signers", "signers"])).0, "signature");
    plan(&world, &["--sign", "key"]).exits(0);
    assert_eq!(refused(&apply_plan(&world, &["--json", "--allowed-signers", "strangers"])).0, "signature");
    apply_plan(&world, &["--allowed-signers", "signers"]).exits(0);
}

#[test]
fn plan_that_was_killed_is_completed_by_the_next_run() {
    if !fits_strace() {
        return;
    }
    let made = || {
        let world = with_all_kinds(furnished());
        plan(&world, &[]).exits(0);
        world
    };
    let arguments = ["apply", "site.plan"];
    let trace = Trace::of_command(&made(), &arguments);
    let is_point = |call: &&Syscall| call.succeeded() && (call.changes_files() || call.syncs());
    let points: Vec<&Syscall> = trace.calls.iter().filter(is_point).collect();
    assert!(points.len() > 10);
    let expected = made();
    apply_plan(&expected, &[]).exits(0);
    let expected = contents(&expected);
    side_by_side(points, |call| {
        let world = made();
        tampered_command(&world, &arguments, call, "signal=KILL");
        let again = apply_plan(&world, &[]);
        assert_eq!(again.code, 0, "killed at {call:?}\n{again}");
        // The next run sweeps temporary files.
        let world = world.manifest("[]\n");
        world.apply();
        assert_eq!(names(&contents(&world)), names(&expected), "killed at {call:?}");
        assert!(contents(&world) == expected, "killed at {call:?}\n{again}");
    });
}

#[test]
fn plan_of_many_small_files_is_small() {
    let line = |file: usize, line: usize| {
        format!("setting-{line} = value {} of file {file}\n", (file * 31 + line * 17) % 97)
    };
    let items: String = (0..1000)
        .map(|file| {
            let content: String = (0..14).map(|number| line(file, number)).collect();
            format!("- $W/f{file}: {{ content: {:?} }}\n", &content[..400])
        })
        .collect();
    let world = World::new().files(&items);
    plan(&world, &["--quiet"]).exits(0);
    let size = fs::metadata(world.base().join("site.plan")).unwrap().len();
    assert!(size <= 300 << 10, "{size} bytes");
}

#[test]
fn account_that_changed_since_is_refused() {
    let Some(machine) = crate::accounts::Machine::new() else { return };
    let prepare = "useradd -M -s /bin/sh -c old app && usermod -p '$5$salt$old' app && groupadd team";
    machine.run(prepare).exits(0);
    let manifest = machine.world.fill(
        "\
- user:
    - app: { shell: /bin/bash, comment: new, password: '$5$salt$new', groups: [team] }
- group:
    - team: { gid: 4711 }
",
    );
    let machine = crate::accounts::Machine { world: machine.world.beside("site.yaml", manifest) };
    let base = machine.world.base().to_owned();
    let command = |words: &str| format!("cd {} && {words}", base.display());
    machine.run(&command("ccm plan site.yaml -o site.plan -q")).exits(0);
    for (change, resource, field) in [
        ("usermod -s /bin/false app", "user#app", "shell"),
        ("usermod -c odd app", "user#app", "comment"),
        ("usermod -p '$5$salt$odd' app", "user#app", "password"),
        ("usermod -L app", "user#app", "locked"),
        ("groupmod -g 4812 team", "group#team", "gid"),
    ] {
        let copy = machine.copy();
        let base = copy.world.base().display().to_string();
        let script = format!("{change} && cd {base} && ccm apply site.plan --json");
        let (reason, fields) = refused(&copy.run(&script));
        assert_eq!(reason, "stale");
        assert!(fields.contains(&(resource.to_owned(), field.to_owned())), "{change}: {fields:?}");
    }
    machine.run(&command("ccm apply site.plan -q && ccm apply site.plan -q")).exits(0);
    machine.run(&command("getent passwd app")).says(":new:").says("/bin/bash");
}
