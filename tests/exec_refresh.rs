//! Commands that follow a change: at once, and after a run that did not come to it.

use crate::{
    exec::runs,
    support::{World, wait_until},
};

const RELOAD: &str = "\"sh -c 'echo x >> $W/ran'\"";

/// A file, what stands between it and the command that subscribes to it, and that command with more properties.
fn site(content: &str, between: &str, command: &str, more: &str) -> String {
    format!(
        "\
- file:
    - $W/conf: {{ content: {content}, alias: conf, $OWN, mode: '0644' }}
{between}- exec:
    - reload:
        command: {command}
        subscribe: [file#$W/conf]
        {more}
"
    )
}

#[test]
fn a_change_of_a_subscribed_resource_runs_the_command_whatever_else_is_said() {
    for more in [
        "refresh_only: true",
        "creates: $W/conf",
        "onlyif: \"false\"",
        "unless: \"true\"",
        "onlyif: no-such-program",
        "{}",
    ] {
        let more = more.replace("{}", "logoutput: false");
        let world = World::new().manifest(&site("one", "", RELOAD, &more));
        let noop = world.apply_with(&["--noop", "--json"]).event("reload");
        assert_eq!(noop["noop_message"], "Would have executed via subscribe", "{more}");
        assert_eq!((&noop["changed"], &noop["refreshed"]), (&true.into(), &true.into()));
        assert_eq!(runs(&world), 0);
        world.apply().exits(0).reports("exec#reload", "executed via subscribe").says("1 refreshed");
        assert_eq!(runs(&world), 1, "{more}");
    }
}

#[test]
fn a_refresh_does_not_wait_for_a_guard_that_hangs_or_mind_what_cannot_be_looked_at() {
    for more in [
        "onlyif: sleep 1000",
        "unless: sleep 1000",
        "{ onlyif: sleep 1000, timeout: 1m }",
        "onlyif: \"sh -c 'kill -KILL $$'\"",
        "creates: $W/conf/below",
    ] {
        let more = more.trim_matches(['{', '}']).trim().replace(", ", "\n        ");
        let world = World::new().manifest(&site("one", "", RELOAD, &more));
        world.apply_with(&["--noop"]).says("Would have executed via subscribe");
        world.apply().exits(0).reports("exec#reload", "executed via subscribe");
        assert_eq!(runs(&world), 1, "{more}");
    }
}

#[test]
fn without_a_change_a_subscriber_is_like_any_other_command() {
    let world = World::new().manifest(&site("one", "", RELOAD, "refresh_only: true"));
    world.apply().exits(0).counts([2, 0, 0, 0]);
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_subscribed_resource_can_be_named_by_its_alias() {
    let manifest = site("one", "", RELOAD, "refresh_only: true").replace("[file#$W/conf]", "[file#conf]");
    let world = World::new().manifest(&manifest);
    world.apply_with(&["--noop"]).says("Would have executed via subscribe");
    world.apply().exits(0).reports("exec#reload", "executed via subscribe");
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_command_can_follow_a_command_but_not_one_that_failed() {
    let manifest = |first: &str| {
        format!(
            "\
- exec:
    - first: {{ command: {first}, unless: test -e $W/done }}
    - second: {{ command: {RELOAD}, subscribe: [exec#first], refresh_only: true }}
"
        )
    };
    let world = World::new().manifest(&manifest("\"false\""));
    world.apply().exits(1).counts([0, 1, 1, 0]);
    world.apply().exits(1).counts([0, 1, 1, 0]);
    assert_eq!(runs(&world), 0);
    let world = world.manifest(&manifest("touch $W/done"));
    world.apply().exits(0).counts([2, 0, 0, 0]);
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_failed_command_that_left_something_behind_is_followed() {
    // The second run finds what the command creates, and would never come to its follower.
    let world = World::new().manifest(&format!(
        "\
- exec:
    - first: {{ command: \"sh -c 'touch $W/done; exit 1'\", creates: $W/done }}
    - second: {{ command: {RELOAD}, subscribe: [exec#first], refresh_only: true }}
"
    ));
    world.apply().exits(1);
    world.apply().exits(0);
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_run_that_is_killed_between_a_change_and_its_command_is_finished_by_the_next() {
    let between = "- exec:\n    - wait: { command: \"sh -c 'echo $$ > $W/pid.new; mv $W/pid.new $W/pid; exec sleep 1000'\" }\n";
    let world = World::new().manifest(&site("one", between, RELOAD, "refresh_only: true"));
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    let pid = wait_for(&world, "pid");
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody is left to end what the killed program was running.
    crate::support::sh(&format!("kill -9 {pid}"), world.base());
    assert_eq!(runs(&world), 0);

    let world = world.manifest(&site("one", "", RELOAD, "refresh_only: true"));
    world.apply_with(&["--noop"]).exits(0).counts([1, 1, 0, 0]).says("Would have executed via subscribe");
    assert_eq!(runs(&world), 0);
    world.apply().exits(0).counts([1, 1, 0, 0]).reports("exec#reload", "executed via subscribe");
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_refresh_that_failed_is_owed_until_it_succeeds() {
    let reload = "\"sh -c 'echo x >> $W/ran; test -e $W/works'\"";
    let world = World::new().manifest(&site("one", "", reload, "refresh_only: true"));
    world.apply().exits(1).counts([1, 0, 1, 0]);
    world.apply().exits(1).counts([0, 1, 1, 0]);
    assert_eq!(runs(&world), 2);
    let world = world.file("works", "");
    world.apply().exits(0).counts([1, 1, 0, 0]);
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 3);
}

/// What a command wrote to a file, once it did.
#[track_caller]
pub(crate) fn wait_for(world: &World, name: &str) -> String {
    wait_until(name, || world.path(name).exists());
    world.read(name).trim().to_owned()
}

#[test]
fn a_failed_command_that_has_nothing_more_to_do_is_followed() {
    // Only its guard tells that it did its work before it failed.
    let world = World::new().manifest(&format!(
        "\
- exec:
    - first: {{ command: \"sh -c 'touch $W/done; exit 1'\", unless: test -e $W/done }}
    - second: {{ command: {RELOAD}, subscribe: [exec#first], refresh_only: true }}
"
    ));
    world.apply().exits(1);
    assert_eq!(runs(&world), 0);
    world.apply().exits(0);
    world.apply().exits(0).counts([0, 2, 0, 0]);
    assert_eq!(runs(&world), 1);
}

#[test]
fn a_debt_is_not_paid_to_another_resource_of_the_same_name() {
    let world = World::new().manifest(&site("one", "", "\"false\"", "refresh_only: true"));
    world.apply().exits(1);
    let other = format!("- exec:\n    - reload: {{ command: {RELOAD}, refresh_only: true }}\n");
    let world = world.manifest(&other);
    world.apply().exits(0).counts([0, 1, 0, 0]);
    assert_eq!(runs(&world), 0);
    let world = world.manifest(&site("one", "", RELOAD, "refresh_only: true"));
    world.apply().exits(0);
    assert_eq!(runs(&world), 1);
}
