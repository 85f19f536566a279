//! Questions of ssh and sudo, answered on the controller's terminal.

use std::io::{Read, Write};
use std::process::Child;

use super::{MOTD, lab::Lab, with_sudo};
use crate::support::sh;

/// Waits for text on the terminal, and returns everything up to it.
fn until(terminal: &mut Child, text: &str) -> String {
    let (mut shown, mut byte) = (Vec::new(), [0]);
    let output = terminal.stdout.as_mut().unwrap();
    while !shown.ends_with(text.as_bytes()) {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "no {text:?} in {}", String::from_utf8_lossy(&shown));
        shown.push(byte[0]);
    }
    String::from_utf8(shown).unwrap()
}

fn answer(terminal: &mut Child, text: &str) {
    writeln!(terminal.stdin.as_mut().unwrap(), "{text}").unwrap();
}

/// Returns the rest of the output and the exit status.
fn end(mut terminal: Child) -> (String, Option<i32>) {
    let mut shown = String::new();
    terminal.stdout.as_mut().unwrap().read_to_string(&mut shown).unwrap();
    (shown, terminal.wait().unwrap().code())
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn passphrase_of_a_key_is_requested_once_for_all_hosts() {
    let Some(lab) = Lab::start(3) else { return };
    lab.write("site.yaml", MOTD);
    sh("ssh-keygen -q -p -N S3CRET-PASSPHRASE -f key", lab.directory());
    let unattended = lab.run("apply site.yaml --on $ALL --json");
    unattended.exits(4).says("Permission denied");

    let Some(mut terminal) = lab.on_a_terminal("apply site.yaml --on $ALL") else { return };
    let asked = until(&mut terminal, "passphrase for key '");
    assert!(asked.contains("10.9.0."), "the question names the host: {asked}");
    until(&mut terminal, "': ");
    answer(&mut terminal, "S3CRET-PASSPHRASE");
    let (shown, exit) = end(terminal);
    assert!(shown.contains("3 hosts: 3 ok") && exit == Some(0), "{shown}");
    assert!(!shown.contains("passphrase for key") && !shown.contains("S3CRET"), "{shown}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn unknown_host_key_is_a_question_on_a_terminal_and_an_error_without_one() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    lab.write("known_hosts", "");
    let config = std::fs::read_to_string(lab.directory().join("ssh_config")).unwrap();
    lab.write("ssh_config", &config.replace("StrictHostKeyChecking yes", "StrictHostKeyChecking ask"));
    lab.run("apply site.yaml --on $ALL").exits(4).says("Host key verification failed");
    for (reply, expected) in [("no", "Host key verification failed"), ("yes", "1 host: 1 ok")] {
        let Some(mut terminal) = lab.on_a_terminal("apply site.yaml --on $ALL") else { return };
        until(&mut terminal, "(yes/no/[fingerprint])? ");
        answer(&mut terminal, reply);
        let (shown, _) = end(terminal);
        assert!(shown.contains(expected), "{reply}: {shown}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn password_for_sudo_is_requested_on_the_terminal() {
    let Some(lab) = with_sudo("app ALL=(ALL) ALL") else { return };
    lab.write("site.yaml", MOTD);
    for (password, expected) in [("S3CRET-WRONG", "wrong password"), ("correct", "1 host: 1 ok")] {
        let words = "apply site.yaml --on app@10.9.0.1 --sudo --ask-password";
        let Some(mut terminal) = lab.on_a_terminal(words) else { return };
        until(&mut terminal, "Password for sudo: ");
        answer(&mut terminal, password);
        let (shown, _) = end(terminal);
        assert!(shown.contains(expected) && !shown.contains("S3CRET"), "{password}: {shown}");
    }
    assert_eq!(lab.on(1, "stat -c %U /opt/motd").trim(), "root");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn each_host_has_a_line_on_a_terminal() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write("site.yaml", super::WAITING);
    let Some(mut terminal) = lab.on_a_terminal("apply site.yaml --on $ALL") else { return };
    until(&mut terminal, "10.9.0.1  1 done, exec#touch /opt/begun");
    until(&mut terminal, "10.9.0.2  1 done, exec#touch /opt/begun");
    lab.on(1, "touch /opt/go");
    until(&mut terminal, "10.9.0.1  ok");
    lab.on(2, "touch /opt/go");
    let (shown, exit) = end(terminal);
    assert!(shown.contains("2 hosts: 2 ok") && exit == Some(0), "{shown}");
}
