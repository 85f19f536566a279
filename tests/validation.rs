//! Files that are judged before they appear.

use std::{fs, os::unix::fs::MetadataExt};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{World, is_root, wait_until};

/// A file with new content, and a script that judges it.
fn judged(world: World, validate: &str, script: &str) -> World {
    world.beside("judge", format!("#!/bin/sh\n{script}\n")).manifest(&format!(
        "- file:\n    - $W/app.conf: {{ content: \"new\\n\", $OWN, mode: '0640', validate: {validate} }}\n"
    ))
}

/// How a manifest names the script with the file.
fn script(world: &World) -> String {
    format!("\"sh {}/judge %s\"", world.base().display())
}

#[test]
fn what_is_judged_is_the_file_that_will_appear() {
    let world = World::new().file("app.conf", "old\n");
    let validate = script(&world);
    let world = judged(
        world,
        &validate,
        "stat -c '%u:%g:%a:%i' \"$1\" > \"$(dirname \"$0\")/seen\"; echo \"$1\" >> \"$(dirname \"$0\")/seen\"; cat \"$1\" >> \"$(dirname \"$0\")/seen\"",
    );
    world.apply().exits(0);
    let seen = fs::read_to_string(world.base().join("seen")).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    let metadata = fs::metadata(world.path("app.conf")).unwrap();
    assert_eq!(lines[0], format!("{}:{}:640:{}", metadata.uid(), metadata.gid(), metadata.ino()));
    let path = std::path::Path::new(lines[1]);
    assert_eq!(path.parent(), Some(world.path("").as_path()));
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(".ccm-") && path.extension().unwrap() == "conf", "{name}");
    assert_eq!(lines[2], "new");
    assert_eq!(world.read("app.conf"), "new\n");
}

#[test]
fn what_is_refused_never_appears() {
    for link in [false, true] {
        let world = World::new();
        let world = if link {
            world.file("target", "old\n").link("app.conf", "target")
        } else {
            world.file("app.conf", "old\n")
        };
        let validate = script(&world);
        let world = judged(world, &validate, "echo \"$1: bad line\" >&2; exit 1");
        let before = (world.tree(), fs::symlink_metadata(world.path("app.conf")).unwrap().ino());
        let outcome = world.apply_with(&["--json"]);
        outcome.exits(1);
        let event = outcome.event("app.conf");
        assert_eq!((event["failed"].as_bool(), event["changed"].as_bool()), (Some(true), Some(false)));
        let error = event["error"][0].as_str().unwrap();
        assert!(error.contains("ended with exit status 1"), "{error}");
        assert!(error.contains(&world.fill("$W/app.conf: bad line")), "{error}");
        let after = (world.tree(), fs::symlink_metadata(world.path("app.conf")).unwrap().ino());
        assert_eq!(after, before);
    }
}

#[test]
fn only_new_content_is_judged() {
    let world = World::new().file("app.conf", "new\n").mode("app.conf", 0o600);
    let validate = script(&world);
    let world = judged(world, &validate, "exit 1");
    world.apply().exits(0).says("mode 0600 -> 0640");
    world.apply().exits(0).says("1 unchanged");
    fs::write(world.path("app.conf"), "x").unwrap();
    world.apply().exits(1);
}

#[test]
fn a_judge_that_hangs_or_changes_the_file_is_no_judge() {
    for (judge, limit, message) in [
        ("sleep 4244", "1s", "timed out"),
        ("echo more >> \"$1\"", "1h", "changed meanwhile"),
        ("chmod 0666 \"$1\"", "1h", "changed meanwhile"),
        ("cp \"$1\" \"$1.x\"; mv \"$1.x\" \"$1\"", "1h", "changed meanwhile"),
        ("rm \"$1\"", "1h", "changed meanwhile"),
    ] {
        let world = World::new().file("app.conf", "old\n");
        let validate = format!("{}, timeout: {limit}", script(&world));
        let world = judged(world, &validate, judge);
        world.apply().exits(1).says(message);
        assert_eq!(world.read("app.conf"), "old\n", "{judge}");
        assert_eq!(fs::read_dir(world.path("")).unwrap().count(), 1, "{judge}");
    }
    let world = World::new().file("app.conf", "old\n");
    let world = judged(world, "['test -s %s', 'false %s']", "");
    world.apply().exits(1).says("`false %s` ended with exit status 1");
    assert_eq!(world.read("app.conf"), "old\n");
    let world = World::new().file("app.conf", "old\n");
    judged(world, "/no/such/judge %s", "").apply().exits(1).says("/no/such/judge");
}

#[test]
fn what_the_form_of_data_forbids_never_appears() {
    for (form, good, bad) in
        [("json", "{\\\"a\\\": 1}", "{a"), ("yaml", "a: [1]", "a: ["), ("toml", "a = 1", "a = = 1")]
    {
        for (content, code) in [(good, 0), (bad, 1)] {
            let world = World::new().manifest(&format!(
                "- file:\n    - $W/f: {{ content: \"{content}\", $OWN, mode: '0644', validate: {{ format: {form} }} }}\n"
            ));
            world.apply().exits(code);
            assert_eq!(world.path("f").exists(), code == 0, "{form} {content}");
        }
    }
}

#[test]
fn percent_signs_that_mean_nothing_are_told_at_load() {
    for (validate, message) in [
        ("'date +%d'", "`%d` in `date +%d` means nothing"),
        ("'x 5%'", "means nothing"),
        ("'a %s | b'", "only a shell"),
        ("{ format: xml }", "expected one of `json`, `yaml`, `toml`"),
        ("[]", "there is no command"),
    ] {
        let world = judged(World::new(), validate, "");
        world.apply().exits(2).complains(message);
    }
    World::new()
        .manifest("- file:\n    - $W/d: { ensure: directory, $OWN, mode: '0755', validate: 'true' }\n")
        .apply()
        .exits(2)
        .complains("`validate` needs");
}

#[test]
fn a_dry_run_judges_too_and_leaves_nothing() {
    let world = World::new().file("app.conf", "old\n");
    let validate = script(&world);
    let world = judged(world, &validate, "case \"$1\" in */app.conf) grep -q good \"$1\";; *) exit 3;; esac");
    let before = world.tree();
    world.apply_with(&["--noop"]).exits(1).says("ended with exit status 1");
    assert_eq!(world.tree(), before);
    let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap().replace("new", "good");
    let world = world.beside("site.yaml", manifest);
    world.apply_with(&["--noop"]).exits(0).says("Would have updated the file");
    assert_eq!(world.tree(), before);
}

#[test]
fn what_a_killed_run_left_is_swept() {
    let world = World::new().file("app.conf", "old\n");
    let validate = script(&world);
    let world = judged(
        world,
        &validate,
        "[ -e \"$(dirname \"$0\")/go\" ] || { echo $$ > \"$(dirname \"$0\")/pid\"; exec sleep 60; }",
    );
    let child = world.ccm(["apply", "site.yaml"]).start();
    wait_until("it is judged", || world.base().join("pid").exists());
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    let _ = child.wait_with_output();
    assert_eq!(world.read("app.conf"), "old\n");
    let world = world.beside("go", "");
    world.apply().exits(0);
    assert_eq!(world.read("app.conf"), "new\n");
    assert_eq!(fs::read_dir(world.path("")).unwrap().count(), 1);
}

#[test]
fn without_a_path_the_whole_configuration_is_judged_with_the_file_in_its_place() {
    if !is_root() {
        return;
    }
    for before in ["file", "nothing", "link"] {
        let world = World::new().file("d/other.conf", "other\n");
        let world = match before {
            "file" => world.file("d/app.conf", "old\n"),
            "link" => world.file("target", "old\n").link("d/app.conf", "../target"),
            _ => world,
        };
        let world = world
            .beside("judge", "#!/bin/sh\ncat \"$1/d/\"*.conf > \"$1/../seen\"; ls -A \"$1/d\" | grep -c '^[^.]' >> \"$1/../seen\"; ! grep -q bad \"$1/d/app.conf\"\n")
            .manifest("- file:\n    - $W/d/app.conf: { content: \"new\\n\", $OWN, mode: '0640', validate: 'sh $W/../judge $W' }\n");
        world.apply_with(&["--noop"]).exits(0);
        world.apply().exits(0);
        let seen = fs::read_to_string(world.base().join("seen")).unwrap();
        assert_eq!(seen, "new\nother\n2\n", "{before}");
        assert_eq!(world.read("d/app.conf"), "new\n", "{before}");
        let manifest = fs::read_to_string(world.base().join("site.yaml")).unwrap().replace("new", "bad");
        let world = world.beside("site.yaml", manifest);
        world.apply_with(&["--noop"]).exits(1);
        world.apply().exits(1).says("ended with exit status 1");
        assert_eq!(world.read("d/app.conf"), "new\n", "{before}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(world.base().to_str().unwrap()), "{mounts}");
    }
}

#[test]
fn where_mounts_are_not_permitted_the_file_is_not_swapped_in() {
    if !is_root() {
        return;
    }
    let world = World::new().dir("d").owner("d", 65534, 65534).manifest(
        "- file:\n    - $W/d/f: { content: x, owner: '65534', group: '65534', mode: '0644', validate: 'true' }\n",
    );
    let outcome = world.ccm(["apply", "site.yaml"]).uid(65534).run();
    outcome.exits(1).says("mounts of its own").says("`%s`");
    assert!(!world.path("d/f").exists());
}
