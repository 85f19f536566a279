//! `scaffold`: a directory from a tree of templates.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{NOBODY, World, is_root};

/// A tree of templates, and a manifest that makes `$W/t` from it.
fn world(properties: &str) -> World {
    World::new()
        .beside("tree/a.conf", "port={{ Data.port }}\n{% include 'part' %}")
        .beside("tree/sub/{{ Data.name }}.txt", "{% if Data.port > 1 %}many{% endif %}")
        .beside("tree/_partials/part", "part {{ Data.name }}\n")
        .manifest(&manifest(properties))
}

fn manifest(properties: &str) -> String {
    format!(
        "\
data: {{ port: 80, name: n }}
ccm:
  resources:
    - scaffold:
        - $W/t: {{ source: tree, $OWN, {properties} }}
"
    )
}

fn mode(world: &World, name: &str) -> u32 {
    fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_directory_is_made_from_a_tree_and_only_what_differs_is_written() {
    let world = world("mode: \"0640\"");
    let foreseen = world.apply_with(&["--noop"]);
    foreseen.exits(0).says("Would have changed 2 scaffold files").says("+port=80").says("+many");
    assert!(!world.path("t").exists());
    world.apply().exits(0).says("changed 2 scaffold files");
    assert_eq!(world.read("t/a.conf"), "port=80\npart n\n");
    assert_eq!(world.read("t/sub/n.txt"), "many");
    assert_eq!([mode(&world, "t"), mode(&world, "t/sub"), mode(&world, "t/a.conf")], [0o750, 0o750, 0o640]);
    assert!(!world.path("t/_partials").exists());
    let before = world.tree();
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    assert_eq!(world.tree(), before);

    let world = world.file("t/a.conf", "other").mode("t/a.conf", 0o640);
    let run = world.apply_with(&["--json"]);
    run.exits(0);
    let metadata = &run.event("/t")["status"]["metadata"];
    assert_eq!(metadata["changed"], serde_json::json!([world.path("t/a.conf")]));
    assert_eq!(metadata["stable"], serde_json::json!([world.path("t/sub/n.txt")]));
    let world = world.mode("t/a.conf", 0o4640);
    world.apply().exits(0).says("changed 1 scaffold files (mode)");
    assert_eq!(mode(&world, "t/a.conf"), 0o640);
}

#[test]
fn folders_that_exist_keep_their_mode_unless_one_is_asked_for() {
    let keeps = world("skip_empty: true").dir("t").mode("t", 0o700);
    keeps.apply().exits(0);
    assert_eq!((mode(&keeps, "t"), mode(&keeps, "t/sub")), (0o700, 0o755));
    let sets = world("directory_mode: \"0711\"").dir("t");
    sets.apply().exits(0);
    assert_eq!((mode(&sets, "t"), mode(&sets, "t/sub")), (0o711, 0o711));
    let sets = sets.mode("t/sub", 0o755);
    sets.apply_with(&["--noop"]).exits(0).says("Would have changed scaffold folders");
    sets.apply().exits(0).says("changed scaffold folders (directory_mode)");
    sets.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn data_takes_the_place_of_the_manifests_and_keeps_its_types() {
    let world = world("data: { port: \"${ Data.port - 79 }\", \"na{{ 'me' }}\": x }");
    world.apply().exits(0);
    assert_eq!(world.read("t/a.conf"), "port=1\npart x\n");
    assert_eq!(world.read("t/sub/x.txt"), "");
}

#[test]
fn each_element_of_a_loop_has_its_own_directory() {
    let world = World::new()
        .beside("tree/a", "{{ each }}{{ index }}")
        .manifest("- scaffold:\n    - for_each: [x, y]\n      \"$W/{{ each }}\": { source: tree, $OWN }\n");
    world.apply().exits(0);
    assert_eq!((world.read("x/a"), world.read("y/a")), ("x0".to_owned(), "y1".to_owned()));
}

#[test]
fn what_the_tree_does_not_have_is_foreign_and_goes_only_with_purge() {
    let world = world("purge: false").file("t/foreign", "").file("t/sub/other", "").file("outside/x", "");
    let world = world.link("t/link", "$W/outside").file("t/old/deep", "");
    let run = world.apply_with(&["--json"]);
    let foreign = ["t/foreign", "t/link", "t/old", "t/sub/other"].map(|name| world.path(name));
    assert_eq!(run.event("/t")["status"]["metadata"]["foreign"], serde_json::json!(foreign));
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    let others = "    - file:\n        - $W/t/sub/other: { $OWN, mode: \"0644\", control: { if: \"false\" } }\n    \
                  - apply: [{ child.yaml: {} }]\n";
    let text = world.fill(&(manifest("purge: true") + others));
    let child = world.fill("- file:\n    - $W/t/old/deep: { $OWN, mode: \"0644\" }\n");
    let world = world.beside("site.yaml", text).beside("child.yaml", child);
    let foreseen = world.apply_with(&["--noop"]);
    foreseen.says("Would have changed 2 scaffold files").says("/t/foreign -> absent");
    assert!(world.path("t/foreign").exists());
    world.apply().exits(0).says("changed 2 scaffold files");
    assert!(!world.path("t/foreign").exists() && fs::symlink_metadata(world.path("t/link")).is_err());
    for spared in ["t/sub/other", "t/old/deep", "outside/x", "t/a.conf"] {
        assert!(world.path(spared).exists(), "{spared}");
    }
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn a_purged_directory_spares_the_tree_of_a_scaffold_in_it() {
    let purge = "    - file:\n        - $W: { ensure: directory, purge: true, $OWN, mode: \"0755\" }\n";
    let world =
        world("skip_empty: true").manifest(&(manifest("skip_empty: true") + purge)).file("litter", "");
    world.apply().exits(0);
    assert!(world.path("t/a.conf").exists() && !world.path("litter").exists());
}

#[test]
fn absent_removes_what_it_made_and_emptied_folders_and_leaves_the_rest() {
    for foreign in [false, true] {
        let mut world = world("skip_empty: false");
        world.apply().exits(0);
        if foreign {
            world = world.file("t/foreign", "");
        }
        let text = world.fill(&manifest("ensure: absent, purge: true"));
        let follows =
            world.fill("    - file:\n        - $W/t: { ensure: directory, $OWN, mode: \"0755\" }\n");
        let world = world.beside("site.yaml", text.clone() + &follows);
        let noop = world.apply_with(&["--noop"]);
        noop.exits(0).says("Would have removed 2 scaffold files");
        let makes_anew = noop.stdout.contains("Would have created directory");
        assert_eq!(makes_anew, !foreign, "the dry run knows what is left\n{noop}");
        let world = world.beside("site.yaml", text);
        world.apply().exits(0).says("removed 2 scaffold files");
        assert!(!world.path("t/sub").exists());
        assert_eq!(world.path("t").exists(), foreign);
        world.apply_with(&["--detailed-exitcode"]).exits(0);
    }
}

#[test]
fn a_dry_run_knows_what_earlier_resources_leave() {
    let before = "    - file:\n        - $W/t: { ensure: directory, $OWN, mode: \"0755\" }\n        \
                  - $W/t/a.conf: { $OWN, mode: \"0644\", content: \"port=80\\npart n\\n\" }\n";
    let after = "    - file:\n        - $W/t/copy: { $OWN, mode: \"0644\", content: \"${ file('$W/t/sub/n.txt') }\" }\n";
    let text =
        manifest("skip_empty: true").replace("    - scaffold:", &format!("{before}    - scaffold:")) + after;
    let world = world("skip_empty: true").manifest(&text);
    world.apply_with(&["--noop"]).exits(0).says("Would have changed 1 scaffold files").says("+many");
    world.apply().exits(0).says("changed 1 scaffold files");
    assert_eq!(world.read("t/copy"), "many");
}

#[test]
fn files_are_copied_as_they_are_without_an_engine() {
    let world = world("engine: none").beside("tree/bytes", [0, 159, 146, 150]);
    world.apply().exits(0);
    assert_eq!(world.read("t/sub/{{ Data.name }}.txt"), "{% if Data.port > 1 %}many{% endif %}");
    assert_eq!(fs::read(world.path("t/bytes")).unwrap(), [0, 159, 146, 150]);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn delimiters_empty_files_and_addresses_are_as_asked() {
    let world = World::new()
        .beside("tree/a.sh", "[[ Data.x ]] {{ x }} [[ file('beside.txt') ]]\n")
        .beside("tree/empty", "[[ '' ]]\n")
        .beside("beside.txt", "beside")
        .manifest(
            "\
data: { x: 1 }
ccm:
  resources:
    - scaffold:
        - $W/t: { source: \"file://$W/../tree\", $OWN, left_delimiter: \"[[\", right_delimiter: \"]]\", skip_empty: true }
",
        );
    world.apply().exits(0);
    assert_eq!(world.read("t/a.sh"), "1 {{ x }} beside\n");
    assert!(!world.path("t/empty").exists());
}

#[test]
fn commands_run_for_files_that_were_written_and_again_when_they_failed() {
    let world = world(
        "post: [{ \"*.conf\": \"/bin/sed -i s/port/PORT/ {}\" }, { \"sub/*\": /bin/cat }, { \"*.txt\": ./check }]",
    );
    // The last command is none until it is there.
    world.apply_with(&["--noop"]).exits(1).says("./check");
    let properties = "post: [{ \"*.conf\": \"/bin/sed -i s/port/PORT/ {}\" }, { \"*.txt\": $W/check }]";
    let world = world.manifest(&manifest(properties)).file("check", "#!/bin/sh\necho no >&2\nexit 3\n");
    let world = world.mode("check", 0o755);
    world.apply_with(&["--noop"]).exits(0).says("Would have changed 2 scaffold files");
    world.apply().exits(1).says("exit status 3 (expected 0)").says("no");
    assert_eq!(world.read("t/a.conf"), "PORT=80\npart n\n", "what a command makes of its file stays");
    let world =
        world.file("check", "#!/bin/sh\necho \"$1\" >>\"$(dirname \"$0\")/calls\"\n").mode("check", 0o755);
    world.apply().exits(0).says("changed 1 scaffold files");
    assert!(world.read("calls").ends_with("/n.txt\n") && world.read("calls").lines().count() == 1);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    assert_eq!(world.read("calls").lines().count(), 1, "nothing was written, so nothing runs");
    let world = world.file("t/a.conf", "port=80\npart n\n");
    world.apply().exits(0).says("changed 1 scaffold files (content)");
    assert_eq!(world.read("t/a.conf"), "PORT=80\npart n\n");
}

#[test]
fn broken_templates_empty_trees_and_empty_commands_are_errors_before_anything_is_done() {
    let broken = world("skip_empty: true").beside("tree/b", "one\n{{ Dat.x }}");
    broken
        .validate()
        .exits(2)
        .complains("tree/b:2:4: there is no variable `Dat`")
        .complains("did you mean `Data`?");
    let partial = world("skip_empty: true").beside("tree/_partials/p", "{% if %}");
    partial.apply().exits(2).complains("_partials/p:1");
    let name = world("skip_empty: true").beside("tree/{{ Data.", "x");
    name.apply().exits(2);
    let empty = World::new()
        .beside("tree/_partials/x", "")
        .manifest("- scaffold:\n    - $W/t: { source: tree, $OWN }\n");
    empty.apply().exits(2).complains("holds no file");
    for (properties, said) in [
        ("post: [{ \"*\": \"\" }]", "the command for `*` names no program"),
        ("post: [{ \"*\": a, b: c }]", "one pattern and its command"),
        ("engine: none, left_delimiter: \"[[\"", "`left_delimiter` needs `engine: jinja`"),
        ("left_delimiter: \"\"", "`left_delimiter` is empty"),
    ] {
        world(properties).validate().exits(2).complains(said);
    }
    let needs = World::new().manifest("- scaffold:\n    - $W/t: {}\n    - $W/u: { ensure: absent }\n");
    needs.validate().exits(2).complains("/t: `source` is missing: a scaffold needs source");
    needs.validate().complains("/u: `source` is missing: a scaffold needs source");
}

#[test]
fn what_a_template_lacks_fails_its_resource_and_nothing_is_written() {
    let missing = world("skip_empty: true").beside("tree/b", "one\n{{ Data.prot }}");
    missing.apply().exits(1).says("tree/b:2:4: `Data.prot` has no value").says("did you mean `port`?");
    assert!(!missing.path("t").exists());
    for (name, said) in [
        ("tree/{{ '..' }}", "no name of a file"),
        ("tree/{{ Data.name }}{{ '/..' }}", "no name of a file"),
        ("tree/{{ '' }}", "no name of a file"),
        ("tree/{{ 'a.conf' }}", "two files of the tree come to a.conf"),
        ("tree/{{ 'sub' }}", "comes out as a file and as a folder"),
    ] {
        let world = world("skip_empty: false").beside(name, "x");
        world.apply().exits(1).says(said);
        assert!(!world.path("t").exists(), "{name}");
    }
    let linked = world("skip_empty: true");
    std::os::unix::fs::symlink("/etc/passwd", linked.base().join("tree/link")).unwrap();
    linked.apply().exits(2).complains("a tree holds files and folders");
}

#[test]
fn what_is_in_the_way_is_not_removed() {
    let in_place = world("skip_empty: true").dir("t/a.conf");
    in_place.apply().exits(1).says("a directory is in the way at");
    let linked = world("skip_empty: true").dir("elsewhere").link("t", "$W/elsewhere");
    linked.apply().exits(1).says("is in the way: there is to be a directory");
    let replaced =
        world("skip_empty: true").file("elsewhere", "kept").dir("t").link("t/a.conf", "$W/elsewhere");
    replaced.apply().exits(0);
    assert_eq!(
        (replaced.read("elsewhere"), replaced.read("t/a.conf")),
        ("kept".to_owned(), "port=80\npart n\n".to_owned())
    );
}

#[test]
fn nothing_is_written_through_a_directory_of_a_stranger() {
    if !is_root() {
        return;
    }
    let world = world("skip_empty: true").dir("t").dir("outside").file("outside/a.conf", "root's");
    let world = world.owner("t", NOBODY, NOBODY).link("t/sub", "$W/outside").owner("t/sub", NOBODY, NOBODY);
    world.apply().exits(1);
    assert_eq!(world.tree().names().iter().filter(|name| name.starts_with("outside")).count(), 2);
    let purged = self::world("purge: true").dir("t").dir("outside").file("outside/x", "");
    let purged = purged.owner("t", NOBODY, NOBODY).link("t/out", "$W/outside").owner("t/out", NOBODY, NOBODY);
    purged.apply();
    assert!(purged.path("outside/x").exists());
}

#[test]
fn a_home_directory_is_not_purged() {
    let world = World::new()
        .beside("tree/a", "x")
        .manifest("- scaffold:\n    - /root: { source: tree, $OWN, purge: true }\n");
    if !is_root() {
        return;
    }
    world.apply_with(&["--noop"]).exits(1).says("which is not purged");
}

#[test]
fn names_and_content_of_a_sensitive_one_are_not_shown() {
    let world = world("sensitive: true, data: { port: 4711471147114711, name: canary }");
    for flags in [&["--noop", "--json"][..], &["--json"], &["-v"]] {
        world.apply_with(flags).exits(0).never_says("canary").never_says("4711471147114711");
    }
    assert_eq!(world.read("t/a.conf"), "port=4711471147114711\npart canary\n");
}

#[test]
fn scaffold_belongs_to_the_user_that_runs_ccm_unless_it_says_otherwise() {
    let world = World::new().beside("tree/a", "x").manifest("- scaffold:\n    - $W/t: { source: tree }\n");
    world.apply().exits(0).says("changed 1 scaffold files");
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn mode_that_a_command_sets_is_desired_from_then_on() {
    let world = World::new()
        .beside("tree/run.sh", "#!/bin/sh\n")
        .beside("tree/bin/tool.sh", "#!/bin/sh\n")
        .beside("tree/conf", "x")
        .manifest("- scaffold:\n    - $W/t: { source: tree, $OWN, post: [{ \"*.sh\": \"chmod +x {}\" }] }\n");
    world.apply().exits(0).says("changed 3 scaffold files");
    let modes = |world: &World| ["t/run.sh", "t/bin/tool.sh", "t/conf"].map(|name| mode(world, name));
    assert_eq!(modes(&world), [0o755, 0o755, 0o644]);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    // The record of the mode is not required.
    fs::remove_dir_all(world.state()).unwrap();
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    let world = world.mode("t/run.sh", 0o600);
    world.apply().exits(0).says("changed 1 scaffold files");
    let world = world.mode("t/run.sh", 0o600);
    world.apply().exits(0).says("changed 1 scaffold files (mode)");
    assert_eq!(modes(&world), [0o755, 0o755, 0o644]);
    // `modes` overrides the command.
    let world = world.manifest(
        "- scaffold:\n    - $W/t: { source: tree, $OWN, post: [{ \"*.sh\": \"chmod +x {}\" }], modes: { \"*.sh\": \"0700\", \"bin/*\": \"0750\", conf: \"0600\" } }\n",
    );
    world.apply().exits(0);
    assert_eq!(modes(&world), [0o700, 0o750, 0o600]);
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn command_sees_a_file_before_it_appears() {
    let world = World::new().beside("tree/a.conf", "new\n").file("t/a.conf", "old\n").manifest(
        "- scaffold:\n    - $W/t: { source: tree, $OWN, post: [{ \"*.conf\": \"sh $W/../check {}\" }] }\n",
    );
    let world = world.beside("check", "cat \"$1\" \"${0%/*}/w/t/a.conf\" >\"${0%/*}/seen\"; exit 1\n");
    world.apply().exits(1);
    assert_eq!(fs::read_to_string(world.base().join("seen")).unwrap(), "new\nold\n");
    assert_eq!(world.read("t/a.conf"), "old\n");
    assert_eq!(fs::read_dir(world.path("t")).unwrap().count(), 1);
}

#[test]
fn template_writes_other_files() {
    let tree = |text: &str| {
        World::new().beside("tree/sites", text).manifest(
            "data: { sites: [a, b] }\nccm:\n  resources:\n    - scaffold:\n        - $W/t: { source: tree, $OWN, skip_empty: true, purge: true, mode: \"0600\" }\n",
        )
    };
    let world = tree(
        "{% for site in Data.sites %}{{ write('sites.d/' ~ site ~ '.conf', 'name ' ~ site) }}{% endfor %}",
    );
    let world = world.file("t/sites.d/old.conf", "x");
    world.apply().exits(0);
    assert_eq!(world.tree().names(), ["t", "t/sites.d", "t/sites.d/a.conf", "t/sites.d/b.conf"]);
    assert_eq!(
        (world.read("t/sites.d/b.conf"), mode(&world, "t/sites.d/b.conf")),
        ("name b".to_owned(), 0o600)
    );
    world.apply_with(&["--detailed-exitcode"]).exits(0);
    for name in ["../x", "/x", "a/../../x"] {
        let world = tree(&format!("{{{{ write('{name}', 'x') }}}}"));
        world.apply().exits(1).says("`write`").says(&format!("{name:?}"));
    }
}

#[test]
fn files_of_a_scaffold_are_validated() {
    let world = |validate: &str| {
        World::new().beside("tree/a.json", "{{ Data.text }}").beside("check", "#!/bin/sh\ngrep -q good \"$1\"\n").manifest(&format!(
            "data: {{ text: bad }}\nccm:\n  resources:\n    - scaffold:\n        - $W/t: {{ source: tree, $OWN, validate: {validate} }}\n"
        ))
    };
    for validate in ["'sh $W/../check %s'", "'sh $W/../check $W/t/a.json'", "{ format: json }"] {
        if !validate.contains("%s") && !validate.contains("format") && !is_root() {
            continue;
        }
        let world = world(validate);
        world.apply_with(&["--noop"]).exits(1).says("the new content is not");
        world.apply().exits(1).says("the new content is not");
        assert!(!world.path("t/a.json").exists(), "{validate}");
        let good = if validate.contains("json }") { "7" } else { "good" };
        world.ccm(["apply", "site.yaml", "--data", &format!("text={good}")]).run().exits(0);
    }
}

#[test]
fn scaffold_is_validated_together_with_files() {
    if !is_root() {
        return;
    }
    let world = World::new()
        .beside("tree/b", "needs a\n")
        .beside("check", "#!/bin/sh\ncd \"${0%/*}/w/t\" && grep -q needs b && grep -q new a\n")
        .file("t/a", "old\n")
        .manifest(
            "- scaffold:\n    - $W/t: { source: tree, $OWN, validate: 'sh $W/../check' }\n- file:\n    - $W/t/a: { content: \"new\\n\", $OWN, mode: '0644', validate: 'sh $W/../check' }\n",
        );
    world.apply_with(&["--noop"]).exits(0);
    world.apply().exits(0).says("2 changed");
    world.apply_with(&["--detailed-exitcode"]).exits(0);
}

#[test]
fn trees_of_other_engines_are_reported() {
    let world = world("skip_empty: false").beside("tree/host.conf", "name = [[ facts.hostname ]]\n");
    world.validate().exits(0).complains("host.conf:1:8: `[[ facts.` belongs to Jet and stays as it is");
    world.ccm(["validate", "--strict", "site.yaml"]).run().exits(2);
    for (properties, message) in [
        ("engine: go", "Go templates are not supported"),
        ("engine: jet", "Jet templates are not supported"),
        ("engine: gomplate", "expected one of `jinja`, `none`"),
    ] {
        self::world(properties).validate().exits(2).complains(message);
    }
    let world =
        World::new().manifest("- scaffold:\n    - $W/t: { source: \"https://example.com/t.tar.gz\" }\n");
    world.validate().exits(2).complains("`source` is not a directory on this machine").complains("archive");
}

#[test]
fn command_line_of_the_go_original_works() {
    let world = World::new().beside("tree/a.sh", "x{{ 1 + 1 }}");
    let ensure = |arguments: &[&str]| {
        let path = world.fill("$W/t");
        world.ccm([["ensure", "scaffold", path.as_str()].as_slice(), arguments].concat()).run()
    };
    ensure(&["tree", "--post", "*.sh=chmod +x {}"]).exits(0);
    assert_eq!((world.read("t/a.sh"), mode(&world, "t/a.sh")), ("x2".to_owned(), 0o755));
    ensure(&["tree", "present"]).exits(0);
    ensure(&["--source", "tree", "absent"]).exits(0);
    assert!(!world.path("t/a.sh").exists());
    ensure(&["tree", "present"]).exits(0);
    ensure(&["tree", "absent"]).exits(0);
    assert!(!world.path("t").exists());
    ensure(&["tree", "gone"]).exits(2);
    ensure(&["tree", "present", "--source", "tree"]).exits(2);
}
