//! What must not be seen of a command.

use serde_json::json;

use crate::{exec::commands, support::sh};

#[test]
fn values_of_environment_and_stdin_are_shown_nowhere() {
    let secrets = ["canary-environment", "canary-stdin", "canary-second-line"];
    let keys = "environment: [TOKEN=canary-environment], stdin: \"canary-stdin\\ncanary-second-line\\n\"";
    let show = "sh -c 'tr \\\"\\\\0\\\" \\\" \\\" < /proc/self/cmdline; echo token=$TOKEN; cat; env >&2; sleep 0.2; exit 1'";
    let world = commands(&format!(
        "fails: {{ command: \"{show}\", {keys}, logoutput: true }}\nguard: {{ command: \"true\", onlyif: \"sh -c 'env >&2; exit 127'\", {keys} }}\nslow: {{ command: \"sh -c 'env; sleep 100'\", {keys}, timeout: 300ms }}\nright: {{ command: \"sh -c 'echo $TOKEN > $W/right; cat >> $W/right'\", {keys} }}\nmissing: {{ command: no-such-program, {keys} }}"
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
fn of_a_sensitive_command_neither_text_nor_output_is_shown() {
    let keys = "sensitive: true, logoutput: true";
    let world = commands(&format!(
        "fails: {{ command: sh -c 'echo canary-out; echo canary-err >&2; exit 1' canary-arg, {keys} }}\nslow: {{ command: sh -c 'echo canary-out; sleep 100' canary-arg, timeout: 300ms, {keys} }}\nmissing: {{ command: canary-program, path: /canary-path, {keys} }}\nguard: {{ command: 'true', onlyif: canary-guard && x, {keys} }}\nhint: {{ command: false && canary-arg, {keys} }}"
    ));
    for flags in [&[][..], &["--json"], &["--noop"], &["--noop", "--json"]] {
        world.apply_with(flags).exits(1).never_says("canary");
    }
    world
        .apply()
        .says("the command ended with exit code 1, expected 0")
        .says("the command timed out after 300ms");
}
