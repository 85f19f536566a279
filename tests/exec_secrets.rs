//! What must not be seen of a command.

use std::fs;

use serde_json::json;

use crate::{
    exec::commands,
    support::{World, sh},
};

#[test]
fn values_of_environment_and_stdin_are_shown_nowhere() {
    let secrets = ["canary-environment", "canary-stdin", "canary-second-line"];
    let keys = "environment: [TOKEN=canary-environment], stdin: \"canary-stdin\\ncanary-second-line\\n\"";
    let show = "sh -c 'tr \\\"\\\\0\\\" \\\" \\\" < /proc/self/cmdline; echo token=$TOKEN; cat; env >&2; sleep 0.2; exit 1'";
    let world = commands(&format!(
        "\
fails: {{ command: \"{show}\", {keys}, logoutput: true }}
guard: {{ command: \"true\", onlyif: \"sh -c 'env >&2; exit 127'\", {keys} }}
slow: {{ command: \"sh -c 'env; sleep 100'\", {keys}, timeout: 300ms }}
right: {{ command: \"sh -c 'echo $TOKEN > $W/right; cat >> $W/right'\", {keys} }}
missing: {{ command: no-such-program, {keys} }}"
    ));
    for flags in [&[][..], &["--json"], &["--noop"], &["--render"], &["--render", "--json"]] {
        let outcome = world.apply_with(flags);
        for secret in secrets {
            outcome.never_says(secret);
        }
    }
    assert_eq!(world.read("right"), "canary-environment\ncanary-stdin\ncanary-second-line\n");
    world.apply().says("token=[secret]\n").says("exec#fails: TOKEN=[secret]\n");
    let event = world.apply_with(&["--json"]).event("fails");
    assert_eq!(event["properties"]["environment"], json!(["TOKEN=[secret]"]));
    assert_eq!(event["properties"]["stdin"], "[secret]");
    let state = sh("grep -r canary . || true", &world.state());
    assert_eq!(state, "", "the state directory holds a secret");

    // Nor when they are written wrongly.
    for item in [
        "a: { environment: 'A=canary-1', command: 'x' }",
        "a: { environment: [canary-1], command: 'x' }",
        "a: { environment: ['=canary-1'], command: 'x' }",
        "a: { stdin: [canary-1], command: 'x' }",
        "a: { stdin: canary-1, command: 'x \"', nonsense: 1 }",
        "a: { environment: [A=canary-1], command: '${ nonsense( }' }",
    ] {
        commands(item).apply().exits(2).never_says("canary-1");
    }
}

#[test]
fn mistakes_beside_a_secret_are_told_like_any_other() {
    let with = |properties: &str| {
        let lines = properties.lines().map(|line| format!("        {line}\n")).collect::<String>();
        World::new().manifest(&format!("- exec:\n    - a:\n{lines}        environment: [A=canary-1]\n"))
    };
    for (properties, message, help, line) in [
        (
            "command: '${ nonsense( }'",
            "expected an expression, found the end",
            "`$${`",
            "3 |         command: '${ nonsense( }'",
        ),
        (
            "command: x\ncwd: '${ Dat.x }'",
            "unknown variable `Dat`",
            "did you mean `Data`?",
            "4 |         cwd: '${ Dat.x }'",
        ),
        (
            "command: x\ntimeout: \"${ lookup('facts.hots') }\"",
            "`facts` has no `hots`",
            "did you mean `host`?",
            "4 |         timeout",
        ),
        ("command: x\ntimeout: soon", "\"soon\" is not a duration", "", "4 |         timeout: soon"),
        (
            "command: x\ntimout: 1s",
            "unknown property `timout`",
            "did you mean `timeout`?",
            "4 |         timout: 1s",
        ),
    ] {
        let outcome = with(properties).validate();
        outcome.exits(2).complains(message).complains(help).complains(line).never_says("canary-1");
    }
    // Of the secret itself nothing is said.
    for (environment, message) in [
        ("'A=${ canary + }'", "a template in it cannot be expanded"),
        ("'A=x${canary}y'", "a template in it cannot be expanded"),
        ("'A=${ canary canary }'", "a template in it cannot be expanded"),
    ] {
        let world = World::new().manifest(&format!(
            "- exec:\n    - a:\n        command: x\n        environment: [{environment}]\n"
        ));
        let outcome = world.validate();
        outcome
            .exits(2)
            .complains(message)
            .complains("site.yaml:4:")
            .complains("`ccm eval`")
            .never_says("canary");
    }
}

#[test]
fn of_a_sensitive_command_neither_text_nor_output_is_shown() {
    let keys = "sensitive: true, logoutput: true";
    let world = commands(&format!(
        "\
fails: {{ command: sh -c 'echo canary-out; echo canary-err >&2; exit 1' canary-arg, {keys} }}
slow: {{ command: sh -c 'echo canary-out; sleep 100' canary-arg, timeout: 300ms, {keys} }}
missing: {{ command: canary-program, path: /canary-path, {keys} }}
guard: {{ command: 'true', onlyif: canary-guard x, {keys} }}
hint: {{ command: false $canary-arg, {keys} }}"
    ));
    // A dry run takes the commands that cannot be run to become possible through the earlier ones.
    for (flags, code) in [(&[][..], 1), (&["--json"], 1), (&["--noop"], 0), (&["--noop", "--json"], 0)] {
        world.apply_with(flags).exits(code).never_says("canary");
    }
    world.apply().says("exit status 1 (expected 0)").says("the command timed out after 300ms");
}

#[test]
fn a_secret_is_hidden_wherever_the_output_is_cut() {
    let secret = "qJ7vXw2ZkP9rTb4N";
    let parts: Vec<&str> = (0..=secret.len() - 4).map(|at| &secret[at..at + 4]).collect();
    // Lines are shown in pieces of 8 KiB and kept up to 64 KiB: the secret lies across each of those ends in turn.
    let shown = (8_176..8_192).step_by(3).map(|before| {
        format!("shown{before}: {{ command: \"sh -c 'printf %0{before}d 0; echo $TOKEN'\", logoutput: true, environment: [TOKEN={secret}] }}")
    });
    let kept = (65_520..65_536).step_by(3).map(|after| {
        format!("kept{after}: {{ command: \"sh -c 'printf $TOKEN; printf %0{after}d 0; exit 1'\", environment: [TOKEN={secret}] }}")
    });
    let world = commands(&shown.chain(kept).collect::<Vec<_>>().join("\n"));
    for flags in [&[][..], &["--json"]] {
        let outcome = world.apply_with(flags);
        for part in &parts {
            outcome.never_says(part);
        }
    }
}

#[test]
fn short_secrets_and_those_of_short_lines_are_hidden_too() {
    let world = commands(
        "a: { command: \"sh -c 'echo pin $PIN, $FLAG; cat; exit 1'\", environment: [PIN=q7zk, FLAG=on], stdin: \"ab\\ncd\\n\" }",
    );
    world
        .apply()
        .exits(1)
        .says("pin [secret], on\n")
        .never_says("q7zk")
        .never_says("ab\n")
        .never_says("cd\n");
}

/// A core file would contain every secret. Commands keep the limit that ccm was started with.
#[test]
fn ccm_writes_no_core_file_and_commands_keep_their_limit() {
    let world = World::new().manifest(
        "- exec:\n    - limits: { provider: shell, command: \"grep core /proc/$PPID/limits; grep core /proc/self/limits\", \
         logoutput: true }\n    - crash: { provider: shell, command: 'kill -ABRT $PPID; sleep 1000' }\n",
    );
    let unlimited = ["sh", "-c", "ulimit -c \"$(ulimit -H -c)\"; exec \"$@\"", "sh"];
    let limit = sh("ulimit -c \"$(ulimit -H -c)\"; grep core /proc/self/limits", world.base());
    let outcome = world.ccm(["apply", "site.yaml"]).under(unlimited).run();
    let limits: Vec<&str> =
        outcome.stdout.lines().filter_map(|line| line.split_once("Max core")).map(|(_, rest)| rest).collect();
    let [own, command] = limits[..] else { panic!("{outcome}") };
    assert!(limit.contains(command), "{limit}\n{outcome}");
    assert!(["1", "0"].contains(&own.split_whitespace().nth(2).unwrap()), "{outcome}");
    let names = fs::read_dir(world.base()).unwrap().flatten().map(|entry| entry.file_name());
    let cores: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("core")).collect();
    assert!(cores.is_empty(), "{cores:?}");
}
