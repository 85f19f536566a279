//! Services through whichever `systemctl` is in the search path, down to one that knows only a handful of verbs.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Outcome, World};

/// What it says about a service is in files beside it: `NAME.active`, `NAME.enabled`, and `NAME.complaint` for what goes
/// to standard error.
const SYSTEMCTL: &str = r#"#!/bin/sh
here=${0%/*}
echo "$*" >>"$here/calls"
verb=$1
shift 2
[ ! -f "$here/before-$verb" ] || . "$here/before-$verb"
said() { [ ! -f "$here/$1.complaint" ] || cat "$here/$1.complaint" >&2; cat "$here/$1.$2"; }
case $verb in
    daemon-reload) ;;
    is-active) said "$1" active; exit 3 ;;
    is-enabled) for name; do said "$name" enabled; done; exit 1 ;;
    start | restart) echo active >"$here/$1.active" ;;
    stop) echo inactive >"$here/$1.active" ;;
    enable) echo enabled >"$here/$1.enabled" ;;
    disable) echo disabled >"$here/$1.enabled" ;;
    *) echo "Unknown command verb $verb." >&2; exit 1 ;;
esac
"#;

/// A `show` for it, which it does without unless told otherwise.
const SHOW: &str = r#"
shift
for name; do
    printf 'Id=%s.service\nLoadState=loaded\nActiveState=%s\nSubState=x\nUnitFileState=disabled\n\n' \
        "$name" "$(cat "$here/$name.active")"
done
exit
"#;

/// A machine with that `systemctl` and one service, which says these words.
struct Machine(World);

impl Machine {
    fn new(active: &str, enabled: &str) -> Self {
        let world = World::new().beside("bin/systemctl", SYSTEMCTL);
        let systemctl = world.base().join("bin/systemctl");
        fs::set_permissions(systemctl, fs::Permissions::from_mode(0o755)).unwrap();
        Self(world).says("app.active", active).says("app.enabled", enabled)
    }

    fn says(self, file: &str, words: &str) -> Self {
        let line = if words.is_empty() { String::new() } else { format!("{words}\n") };
        Self(self.0.beside(&format!("bin/{file}"), line))
    }

    fn ccm(&self, arguments: &[&str]) -> Outcome {
        let _ = fs::remove_file(self.0.base().join("bin/calls"));
        let bin = self.0.base().join("bin");
        self.0.ccm(arguments).env("PATH", format!("{}:/usr/bin:/bin", bin.display())).run()
    }

    fn status(&self) -> Outcome {
        self.ccm(&["status", "service", "app", "--json"])
    }

    /// What systemctl was told to do.
    fn told(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.0.base().join("bin/calls")).unwrap_or_default();
        let asks =
            |call: &&str| ["show", "is-active", "is-enabled"].contains(&call.split(' ').next().unwrap());
        calls.lines().filter(|call| !asks(call)).map(str::to_owned).collect()
    }
}

#[test]
fn every_word_of_is_active_has_its_meaning() {
    for (word, ensure) in [
        ("active", "running"),
        ("reloading", "running"),
        ("refreshing", "running"),
        ("inactive", "stopped"),
        ("failed", "stopped"),
        ("activating", "stopped"),
        ("deactivating", "stopped"),
        ("maintenance", "stopped"),
    ] {
        let state = Machine::new(word, "enabled").status().exits(0).json();
        assert_eq!(state["ensure"], ensure, "{word}");
        assert_eq!(state["metadata"]["running"], ensure == "running", "{word}");
        assert_eq!(state["metadata"]["active_state"], word);
        assert_eq!(state["metadata"]["provider"], "systemd");
    }
    for word in ["pondering", "unknown", ""] {
        let status = Machine::new(word, "enabled").status();
        status.exits(1).complains(&format!("invalid systemctl is-active output: {word:?}"));
    }
}

#[test]
fn rejected_unit_file_is_reported_with_its_line() {
    let machine = Machine::new("inactive", "enabled")
        .says("before-start", "echo \"Unit $1.service has a bad unit file setting.\" >&2; exit 1")
        .says(
            "systemd-analyze",
            "#!/bin/sh\n[ \"$*\" = 'verify --man=no app.service' ] || exit\n\
             echo '/etc/systemd/system/app.service:5: Unknown section. Ignoring.' >&2\necho 'other.service:1: x' >&2; exit 1",
        );
    let program = machine.0.base().join("bin/systemd-analyze");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = machine.ccm(&["ensure", "service", "app", "running"]);
    outcome
        .exits(1)
        .says("has a bad unit file setting.; /etc/systemd/system/app.service:5: Unknown section.");
    outcome.never_says("other.service");
}

#[test]
fn every_word_of_is_enabled_has_its_meaning() {
    for (word, enabled) in [
        ("enabled", true),
        ("enabled-runtime", true),
        ("alias", true),
        ("static", true),
        ("indirect", true),
        ("generated", true),
        ("transient", true),
        ("linked", false),
        ("linked-runtime", false),
        ("masked", false),
        ("masked-runtime", false),
        ("disabled", false),
    ] {
        let state = Machine::new("active", word).status().exits(0).json();
        assert_eq!(state["metadata"]["enabled"], enabled, "{word}");
        assert_eq!(state["metadata"]["unit_file_state"], word);
    }
    for active in ["active", "inactive"] {
        Machine::new(active, "not-found").status().exits(1).complains("service not found");
    }
    for word in ["perhaps", ""] {
        let status = Machine::new("active", word).status();
        status.exits(1).complains(&format!("invalid systemctl is-enabled output: {word:?}"));
    }
    let only_a_message = Machine::new("inactive", "")
        .says("app.complaint", "Failed to get unit file state for app.service: No such file or directory");
    only_a_message.status().exits(1).complains("service not found");
}

#[test]
fn a_word_for_one_of_several_services_is_as_good_as_alone() {
    let machine = Machine::new("inactive", "enabled")
        .says("before-show", SHOW)
        .says("lost.active", "inactive")
        .says("lost.enabled", "not-found")
        .says("mute.active", "inactive")
        .says("mute.enabled", "");
    let manifest = "- service:\n    - defaults: { ensure: stopped }\n    - lost:\n    - mute:\n    - app:\n";
    let world = machine.0.beside("site.yaml", manifest);
    let run = Machine(world).ccm(&["apply", "site.yaml", "--json"]);
    let reason = |name: &str| run.event(name)["error"][0].as_str().unwrap_or_default().to_owned();
    assert!(reason("lost").contains("service not found"), "{run}");
    assert!(reason("mute").contains("invalid systemctl is-enabled output"), "{run}");
    assert_eq!(run.event("app")["failed"], false, "{run}");
}

#[test]
fn a_handful_of_verbs_is_enough_to_bring_everything_about() {
    let machine = Machine::new("inactive", "disabled");
    let ensure = |properties: &[&str]| machine.ccm(&[&["ensure", "service", "app"], properties].concat());

    let foretold = ensure(&["running", "--enable", "--noop", "--json"]);
    assert_eq!(foretold.event("app")["noop_message"], "Would have started. Would have enabled");
    assert_eq!(machine.told(), [""; 0]);

    ensure(&["running", "--enable", "--settle", "10ms"]).exits(0).reports("service#app", "started, enabled");
    assert_eq!(machine.told(), ["daemon-reload --system", "start --system app", "enable --system app"]);
    ensure(&["running", "--enable"]).exits(0).reports("service#app", "unchanged");
    assert_eq!(machine.told(), [""; 0]);

    ensure(&["stopped", "--no-enable"]).exits(0).reports("service#app", "stopped, disabled");
    assert_eq!(machine.told(), ["daemon-reload --system", "stop --system app", "disable --system app"]);
    ensure(&["stopped", "--no-enable"]).exits(0).reports("service#app", "unchanged");
}

#[test]
fn a_change_restarts_a_service_of_which_only_words_are_known() {
    let manifest = "\
- file:
    - $W/app.conf: { $OWN, mode: \"0644\", content: new }
- service:
    - app: { settle: 10ms, subscribe: [file#$W/app.conf] }
";
    let machine = Machine::new("active", "enabled");
    let machine = Machine(machine.0.manifest(manifest));
    let run = machine.ccm(&["apply", "site.yaml", "--json"]);
    assert_eq!(run.exits(0).event("app")["refreshed"], true, "{run}");
    assert_eq!(machine.told(), ["daemon-reload --system", "restart --system app"]);
}

#[test]
fn a_start_is_waited_for_and_judged_by_words_alone() {
    let slow = Machine::new("inactive", "enabled")
        .says("before-start", "echo activating >\"$here/app.active\"; exit")
        .says(
            "before-is-active",
            "[ \"$(cat \"$here/app.active\")\" != activating ] || { echo activating; echo active >\"$here/app.active\"; exit; }",
        );
    slow.ccm(&["ensure", "service", "app", "--settle", "10ms"]).exits(0);

    for (said, word) in [("true", "inactive"), ("echo failed >\"$here/app.active\"", "failed")] {
        let broken = Machine::new("inactive", "enabled").says("before-start", &format!("{said}; exit 0"));
        let run = broken.ccm(&["ensure", "service", "app", "--settle", "10ms"]);
        run.exits(1).says(&format!(
            "failed to reach desired state: app.service did not stay running: it is {word}\n"
        ));
    }
}

#[test]
fn what_an_earlier_file_did_to_a_unit_is_seen() {
    // The service says what the file says, as one does that a path unit starts.
    let machine = Machine::new("inactive", "disabled")
        .says("other.active", "active")
        .says("other.enabled", "enabled")
        .says("before-show", SHOW);
    let file = machine.0.base().join("bin/app.active");
    let manifest = format!(
        "\
- service: [other: {{}}]
- file: [{}: {{ content: \"active\\n\", $OWN, mode: '0644' }}]
- service: [app: {{ ensure: stopped }}]
",
        file.display()
    );
    let machine = Machine(machine.0.manifest(&manifest));
    machine.ccm(&["apply", "site.yaml"]).exits(0).counts([2, 1, 0, 0]);
    assert_eq!(machine.told(), ["daemon-reload --system", "stop --system app"]);
    assert_eq!(fs::read_to_string(file).unwrap(), "inactive\n");
}

#[test]
fn a_second_attempt_looks_again() {
    let machine = Machine::new("inactive", "enabled")
        .says("before-start", "echo not yet >&2; exit 1")
        // It comes up by itself after the first attempt, which looks before and after its start.
        .says(
            "before-is-active",
            "echo >>\"$here/asked\"; [ $(wc -l <\"$here/asked\") -lt 3 ] || { echo active; exit; }",
        );
    let run = machine.ccm(&["ensure", "service", "app", "--tries", "2", "--try-sleep", "1ms"]);
    run.exits(0).reports("service#app", "unchanged");
    assert_eq!(machine.told(), ["daemon-reload --system", "start --system app"]);
}

#[test]
fn where_systemd_does_not_run_systemctl_says_so() {
    let words = "System has not been booted with systemd as init system (PID 1). Can't operate.";
    let refusal = format!("echo \"{words}\" >&2; exit 1");
    let machine = Machine::new("", "")
        .says("before-show", &refusal)
        .says("before-is-active", &refusal)
        .says("before-is-enabled", &refusal);
    for flags in [&["--json"][..], &["--json", "--noop"], &["--json", "--provider", "systemd"]] {
        let run = machine.ccm(&[&["ensure", "service", "app"], flags].concat());
        let event = run.exits(1).event("app");
        assert_eq!((&event["failed"], &event["provider"]), (&true.into(), &"systemd".into()), "{run}");
        assert!(event["error"][0].as_str().unwrap().contains(words), "{run}");
    }
}

#[test]
fn what_a_verb_says_when_it_fails_is_passed_on() {
    for (verb, active, enabled, asked) in [
        ("start", "inactive", "enabled", ["running", "--enable"]),
        ("stop", "active", "enabled", ["stopped", "--enable"]),
        ("enable", "active", "disabled", ["running", "--enable"]),
        ("disable", "active", "enabled", ["running", "--no-enable"]),
        ("daemon-reload", "inactive", "enabled", ["running", "--enable"]),
    ] {
        let machine =
            Machine::new(active, enabled).says(&format!("before-{verb}"), "echo not today >&2; exit 5");
        let run = machine.ccm(&[&["ensure", "service", "app", "--settle", "10ms"][..], &asked].concat());
        run.exits(1).says(&format!("systemctl {verb}")).says("failed: not today");
    }
}

#[test]
fn without_systemctl_there_is_no_provider() {
    let machine = Machine::new("active", "enabled");
    for flags in [&[][..], &["--provider", "systemd"]] {
        let call = machine.0.ccm([&["ensure", "service", "app"], flags].concat());
        call.env("PATH", "/nowhere").run().exits(1).says("\"systemctl\" was not found");
    }
}
