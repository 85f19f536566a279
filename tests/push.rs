//! `--on`: manifests on other machines, reached over real `sshd` in network namespaces.

mod confirm;
mod faults;
mod interrupts;
mod lab;
mod plans;
mod prompts;
mod rolls;
mod secrets;

use std::{fs, process::Command};

use serde_json::Value;

use crate::support::{Outcome, encrypted::Author, skip, wait_until};
use lab::{Lab, WITHOUT_CCM};

const MOTD: &str =
    "- file:\n    - /opt/motd: { content: \"managed\\n\", owner: root, group: root, mode: \"0644\" }\n";

/// Returns the JSON documents of an output with this protocol.
fn documents(outcome: &Outcome, protocol: &str) -> Vec<Value> {
    let lines = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["protocol"].as_str().is_some_and(|name| name.ends_with(protocol))).collect()
}

/// Returns the result of each host, in the order of names.
fn results(outcome: &Outcome) -> Vec<(String, String)> {
    let text = |host: &Value, key: &str| host[key].as_str().unwrap_or_default().to_owned();
    let mut results: Vec<_> = documents(outcome, ".push.host")
        .iter()
        .map(|host| (text(host, "host"), text(host, "result")))
        .collect();
    results.sort();
    results
}

#[test]
fn apply_reaches_five_hosts() {
    let Some(lab) = Lab::start(5) else { return };
    lab.write("site.yaml", MOTD);
    let first = lab.run("apply site.yaml --on $ALL --noop");
    first
        .exits(0)
        .says("10.9.0.[1-5] (5 hosts)")
        .says("~ file#/opt/motd Would have created the file")
        .says("+managed");
    assert_eq!(first.stdout.matches("+managed").count(), 1, "one diff for all hosts");
    assert!(!lab.file(1, "/opt/motd").exists());

    let second = lab.run("apply site.yaml --on $ALL --json --detailed-exitcode");
    second.exits(3);
    assert_eq!(documents(&second, ".transaction.event").len(), 5);
    assert!(documents(&second, ".transaction.event").iter().all(|event| event["host"].is_string()));
    let hosts = documents(&second, ".push.host");
    assert!(
        hosts.iter().all(|host| host["result"] == "ok" && host["exit"] == 0 && host["run"].is_string()),
        "{hosts:?}"
    );
    let summary = documents(&second, ".push.summary");
    assert_eq!(summary[0]["counts"]["ok"], 5);
    assert_eq!(summary[0]["groups"][0]["range"], "10.9.0.[1-5]");
    for host in 1..=5 {
        assert_eq!(fs::read_to_string(lab.file(host, "/opt/motd")).unwrap(), "managed\n");
    }

    lab.run("apply site.yaml --on $ALL --detailed-exitcode").exits(0).says("10.9.0.[1-5]: unchanged");
    let history = lab.on(1, &format!("{} history --json", env!("CARGO_BIN_EXE_ccm")));
    assert!(history.lines().all(|line| line.contains("\"kind\":\"push\"")), "{history}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn program_is_uploaded_once() {
    let Some(lab) = Lab::with(1, "", WITHOUT_CCM) else { return };
    lab.write("site.yaml", MOTD);
    lab.run("apply site.yaml --on $ALL").exits(0);
    let uploaded = lab.on(1, "ls -i /var/lib/ccm/bin/*/ccm");
    lab.run("apply site.yaml --on $ALL").exits(0);
    assert_eq!(lab.on(1, "ls -i /var/lib/ccm/bin/*/ccm"), uploaded);
    assert_eq!(
        lab.on(1, "ls -A /var/lib/ccm/push /var/lib/ccm/bin | wc -l").trim(),
        "4",
        "no temporary files or events stay"
    );
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn hosts_that_cannot_be_reached_are_reported_with_the_reason_of_ssh() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    let outcome = lab.run("apply site.yaml --on $ALL,10.9.0.254 --json");
    outcome.exits(4);
    assert_eq!(
        results(&outcome),
        [("10.9.0.1", "ok"), ("10.9.0.254", "unreachable")].map(|(a, b)| (a.into(), b.into()))
    );
    outcome.says("Connection refused");
}

#[test]
fn errors_that_do_not_depend_on_a_host_are_reported_before_any_connection() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", "- file:\n    - /opt/motd: { contents: x }\n");
    lab.run("apply site.yaml --on $ALL").exits(2).complains("`owner` is missing");
    for destination in ["-oProxyCommand=touch${IFS}x", "web1;id", "$(id)", "web1:x"] {
        lab.run(&format!("apply site.yaml --on {destination}")).exits(2);
    }
    assert!(!fs::read_to_string(lab.root(1).join("sshd.log")).unwrap().contains("Accepted"));
}

#[test]
fn variables_of_the_inventory_are_data_and_facts() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write(
        "hosts.ini",
        "[web]\nweb1 ansible_host=10.9.0.1\nweb2 ansible_host=10.9.0.2 port=8081\n[web:vars]\nport=8080\nansible_user=root\n",
    );
    lab.write(
        "site.yaml",
        "data: { port: 1, other: 2 }\nccm:\n  resources:\n    - file:\n        - /opt/port:\n            content: \
         \"{{ Data.port }} {{ Data.other }} {{ Facts.inventory.name }} {{ join(Facts.inventory.groups, \\\",\\\") }}\"\n            \
         owner: root\n            group: root\n            mode: \"0644\"\n",
    );
    lab.run("apply site.yaml -i hosts.ini --on web").exits(0);
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/port")).unwrap(), "8080 2 web1 web");
    assert_eq!(fs::read_to_string(lab.file(2, "/opt/port")).unwrap(), "8081 2 web2 web");
    lab.run("apply site.yaml -i hosts.ini --on web:!wbe2").exits(2).complains("`wbe2` matches no host");
    lab.run("apply site.yaml -i hosts.ini --on web --data port=1 --hiera more.yaml")
        .exits(2)
        .complains("more.yaml");
}

#[test]
fn encrypted_variables_reach_the_host_and_appear_only_in_the_managed_file() {
    let Some(lab) = Lab::start(1) else { return };
    let author = Author::new();
    lab.write("hosts.ini", "[web]\nweb1 ansible_host=10.9.0.1 ansible_user=root\n[web:vars]\nport=8080\n");
    lab.write(
        "group_vars/web.yml",
        &author.document(&[("password", "c4n4ry ${ 1 }", "str"), ("pin", "4815162342", "int")]),
    );
    lab.write(
        "site.yaml",
        "- file:\n    - /opt/a: { content: \"${ Data.password } ${ Data.pin } ${ Data.port } ${ Facts.inventory.variables.password ?? 'none' }\", \
         owner: root, group: root, mode: \"0600\" }\n",
    );
    let apply = "apply site.yaml -i hosts.ini --on web --diff";
    lab.run(apply).exits(2).complains("no identity opens this encrypted document");
    lab.write("identity.txt", &author.secret());
    crate::support::sh("chmod 600 identity.txt", lab.directory());
    let outcome = lab.run(&format!("{apply} --identity identity.txt --json"));
    outcome.exits(0).never_says("c4n4ry").never_says("4815162342");
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/a")).unwrap(), "c4n4ry ${ 1 } 4815162342 8080 none");
    for directory in [lab.root(1), lab.directory().join("state"), lab.directory().join("home")] {
        let found =
            Command::new("grep").args(["-rlE", "c4n4ry|4815162342"]).arg(&directory).output().unwrap();
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(found.lines().all(|path| path.ends_with("/opt/a")), "{found}");
    }
}

#[test]
fn host_keys_are_recipients() {
    let Some(lab) = Lab::start(2) else { return };
    let expected = fs::read_to_string("/etc/ssh/ssh_host_ed25519_key.pub").unwrap();
    let expected = expected.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let listed = lab.run("secret recipients --on $ALL");
    listed.exits(0);
    assert_eq!(listed.stdout, format!("{expected} 10.9.0.1\n{expected} 10.9.0.2\n"));
    let listed = lab.run("secret recipients --on $ALL,10.9.0.9 --json");
    listed.exits(4);
    let hosts = documents(&listed, ".push.host");
    assert!(hosts.iter().any(|host| host["output"]["recipients"][0] == expected.as_str()), "{hosts:?}");
    lab.run("secret recipients").exits(0).says(&expected);
}

#[test]
fn files_that_a_manifest_names_are_sent_and_others_are_not() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("files/motd", "from a file\n");
    lab.write("files/unused", "UNUSED-CANARY\n");
    lab.write("conf/a.txt", "A");
    lab.write("conf/b.txt", "B");
    lab.write(
        "included.yaml",
        "- file:\n    - /opt/included: { content: i, owner: root, group: root, mode: \"0644\" }\n",
    );
    lab.write(
        "site.yaml",
        "- file:\n    - defaults: { owner: root, group: root, mode: \"0644\" }\n    - /opt/motd: { source: files/motd }\n    - \
         /opt/name: { content: \"{{ file(\\\"conf/a.txt\\\") }}\" }\n- apply:\n    - included.yaml: {}\n",
    );
    lab.run("apply site.yaml --on $ALL").exits(0);
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/motd")).unwrap(), "from a file\n");
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/name")).unwrap(), "A");
    assert_eq!(fs::read_to_string(lab.file(1, "/opt/included")).unwrap(), "i");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn failed_resources_are_grouped_and_exit_with_1() {
    let Some(lab) = Lab::start(3) else { return };
    lab.write("site.yaml", "- exec:\n    - test -e /opt/good: { provider: posix }\n");
    lab.on(1, "touch /opt/good");
    let outcome = lab.run("apply site.yaml --on $ALL");
    outcome.exits(1).says("10.9.0.[2,3] (2 hosts): failed").says("3 hosts: 1 ok, 2 failed");
}

#[test]
fn run_goes_on_and_no_event_is_lost_when_ssh_is_killed() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write(
        "site.yaml",
        "- exec:\n    - touch /opt/begun: {}\n    - sh -c \"until test -e /opt/go; do sleep 0.1; done\": {}\n    - touch /opt/end: {}\n",
    );
    let push = lab.spawn("apply site.yaml --on $ALL --json");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    let kill = format!("pkill -KILL -f '{}/ssh_config'", lab.directory().display());
    assert!(Command::new("sh").args(["-c", &kill]).status().is_ok());
    lab.on(1, "touch /opt/go");
    let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    outcome.exits(0);
    assert_eq!(documents(&outcome, ".transaction.event").len(), 3);
    assert_eq!(results(&outcome), [("10.9.0.1".to_owned(), "ok".to_owned())]);
}

/// Returns the result and the reason of the only host.
fn only(outcome: &Outcome) -> (String, String) {
    let hosts = documents(outcome, ".push.host");
    assert_eq!(hosts.len(), 1, "{outcome}");
    let text = |key: &str| hosts[0][key].as_str().unwrap_or_default().to_owned();
    (text("result"), text("reason"))
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn login_shells_and_their_noise_do_not_matter() {
    let noise = "echo Welcome; echo on stderr >&2; printf 'no newline'\n";
    for shell in ["/bin/dash", "/bin/bash", "/usr/bin/busybox-sh", "/bin/tcsh", "/usr/bin/fish"] {
        let program = if shell.ends_with("busybox-sh") { "/bin/busybox" } else { shell };
        if !std::path::Path::new(program).exists() {
            skip(&format!("needs {program}"));
            continue;
        }
        let setup = format!(
            "cp /etc/passwd $H/passwd; sed -i \"s#^root:.*#root:x:0:0:root:/root:$H/shell#\" $H/passwd; mount --bind $H/passwd \
             /etc/passwd; ln -s {program} $H/{0}; printf \"#!/bin/sh\\necho Welcome; echo noise >&2; printf unfinished; exec {1} \
             \\\"\\$@\\\"\\n\" > $H/shell; chmod 755 $H/shell;",
            "sh",
            if program == shell { shell.to_owned() } else { "$H/sh".to_owned() }
        );
        let Some(lab) = Lab::with(1, "Banner $H/sshd_config\n", &setup) else { return };
        for file in [".bashrc", ".cshrc", ".profile"] {
            fs::write(lab.file(1, "/root").join(file), noise).unwrap();
        }
        lab.write("site.yaml", MOTD);
        let outcome = lab.run("apply site.yaml --on $ALL --json");
        assert_eq!(only(&outcome).0, "ok", "{shell}: {outcome}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn program_is_stored_without_gzip_and_sha256sum_and_with_any_umask() {
    let setup = "for tool in gzip sha256sum; do mount --bind /dev/null $(command -v $tool); done; umask 077;";
    let Some(lab) = Lab::with(1, "", &format!("{WITHOUT_CCM}{setup}")) else { return };
    lab.write("site.yaml", MOTD);
    assert_eq!(only(&lab.run("apply site.yaml --on $ALL --json")).0, "ok");
    assert_eq!(lab.on(1, "stat -c %a /var/lib/ccm/bin/*/ccm").trim(), "755");
    assert_eq!(lab.on(1, "stat -c %a /opt/motd").trim(), "644");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn program_is_stored_in_the_first_directory_that_works() {
    let noexec = "mount -t tmpfs -o noexec,mode=700 tmpfs /var/lib/ccm; ";
    let full = "mount -t tmpfs -o size=64k,mode=700 tmpfs /usr/local/lib; ";
    let Some(lab) = Lab::with(1, "", &format!("{WITHOUT_CCM}{noexec}{full}")) else { return };
    lab.write("site.yaml", MOTD);
    assert_eq!(only(&lab.run("apply site.yaml --on $ALL --json")).0, "ok");
    assert_eq!(lab.on(1, "ls /run/ccm/bin/*/ccm | wc -l").trim(), "1");
    drop(lab);

    let none = format!("{WITHOUT_CCM}{noexec}{full}mount -o remount,noexec /run;");
    let Some(lab) = Lab::with(1, "", &none) else { return };
    lab.write("site.yaml", MOTD);
    let outcome = lab.run("apply site.yaml --on $ALL --json");
    outcome.exits(1);
    let (result, reason) = only(&outcome);
    assert!(result == "refused" && reason.contains("/run/ccm/bin"), "{outcome}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn commands_that_take_the_place_of_a_shell_make_a_host_unreachable() {
    for (configuration, reason) in [
        ("ForceCommand echo this account is for backups\n", "this account is for backups"),
        ("ForceCommand echo $SSH_ORIGINAL_COMMAND\n", "the host runs another command"),
        ("ForceCommand internal-sftp\n", "sftp"),
        ("ForceCommand sleep 1000\n", "no answer within 3 s"),
    ] {
        let Some(lab) = Lab::with(1, configuration, "") else { return };
        lab.write("site.yaml", MOTD);
        let outcome = lab.run("apply site.yaml --on $ALL --json --connect-timeout 3s");
        outcome.exits(4);
        let (result, found) = only(&outcome);
        assert!(result == "unreachable" && found.contains(reason), "{configuration}{outcome}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn changed_host_key_is_reported_and_nothing_is_sent() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    let other = fs::read_to_string(lab.directory().join("key.pub")).unwrap();
    let other = other.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    fs::write(lab.directory().join("known_hosts"), format!("10.9.0.1 {other}\n")).unwrap();
    let outcome = lab.run("apply site.yaml --on $ALL --json");
    outcome.exits(4);
    assert_eq!(only(&outcome), ("unreachable".to_owned(), "Host key verification failed.".to_owned()));
}

/// A user `app` on each host with a rule for sudo.
fn with_sudo(rules: &str) -> Option<Lab> {
    if !std::path::Path::new("/usr/bin/sudo").exists() && !skip("needs sudo") {
        return None;
    }
    let setup = format!(
        "for file in passwd shadow; do cp /etc/$file $H/$file; mount --bind $H/$file /etc/$file; done; \
         echo \"app:x:4321:4321::$H/home:/bin/sh\" >> $H/passwd; \
         echo \"app:$(openssl passwd -6 correct):19000:0:99999:7:::\" >> $H/shadow; \
         mkdir -p $H/home; chown 4321 $H/home; printf \"{rules}\\n\" > $H/sudoers; chmod 440 $H/sudoers; \
         mount --bind $H/sudoers /etc/sudoers; {WITHOUT_CCM}"
    );
    Lab::with(1, "", &setup)
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn sudo_gets_the_password_that_a_command_prints() {
    for rules in ["app ALL=(ALL) ALL", "Defaults use_pty\\napp ALL=(ALL) ALL", "app ALL=(ALL) NOPASSWD: ALL"]
    {
        let Some(lab) = with_sudo(rules) else { return };
        lab.write("site.yaml", MOTD);
        let push = |password: &str| {
            let mut command = lab.command("apply site.yaml --on app@10.9.0.1 --sudo --json");
            command.env("CCM_SUDO_PASSWORD_COMMAND", format!("echo {password}"));
            Outcome::new(rules.to_owned(), command.output().unwrap())
        };
        if !rules.contains("NOPASSWD") {
            let (result, reason) = only(&push("wrong"));
            assert!(result == "refused" && reason.contains("wrong password"), "{rules}: {reason}");
            let (result, reason) = only(&lab.run("apply site.yaml --on app@10.9.0.1 --sudo --json"));
            assert!(result == "refused" && reason.contains("--ask-password"), "{rules}: {reason}");
        }
        let outcome = push("correct");
        assert_eq!(only(&outcome).0, "ok", "{rules}: {outcome}");
        assert_eq!(lab.on(1, "stat -c %U /opt/motd /var/lib/ccm/bin").trim(), "root\nroot");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn sudo_that_requires_a_terminal_refuses() {
    let Some(lab) = with_sudo("Defaults requiretty\\napp ALL=(ALL) ALL") else { return };
    lab.write("site.yaml", MOTD);
    let (result, reason) = only(&lab.run("apply site.yaml --on app@10.9.0.1 --sudo --json"));
    assert!(result == "refused" && reason.contains("tty"), "{result}: {reason}");
}

/// A run that begins, waits for `/opt/go`, and ends.
const WAITING: &str = "- exec:\n    - touch /opt/begun: {}\n    - sh -c \"until test -e /opt/go; do sleep 0.1; done\": { timeout: 10m }\n    - touch /opt/end: {}\n";

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn run_finishes_without_the_controller() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", WAITING);
    let mut push = lab.spawn("apply site.yaml --on $ALL");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    push.kill().unwrap();
    push.wait().unwrap();
    lab.on(1, "touch /opt/go");
    wait_until("the run has ended", || lab.file(1, "/opt/end").exists());
    wait_until("the run is recorded", || {
        lab.on(1, &format!("{} history --json", env!("CARGO_BIN_EXE_ccm"))).contains("\"exit_status\":0")
    });
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn host_is_failed_if_its_run_is_killed() {
    for process in ["remote run", "remote supervise"] {
        let Some(lab) = Lab::start(1) else { return };
        lab.write("site.yaml", WAITING);
        let push = lab.spawn("apply site.yaml --on $ALL --json");
        wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
        lab.kill(1, process);
        let outcome = Outcome::new(process.to_owned(), push.wait_with_output().unwrap());
        outcome.exits(1);
        let (result, reason) = only(&outcome);
        assert!(result == "failed" && reason.contains("the run was killed"), "{outcome}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn no_event_is_lost_when_sshd_is_killed() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", WAITING);
    let push = lab.spawn("apply site.yaml --on $ALL --json");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    lab.kill(1, "sshd: root@notty");
    lab.on(1, "touch /opt/go");
    let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    outcome.exits(0);
    assert_eq!(documents(&outcome, ".transaction.event").len(), 3);
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn two_controllers_take_turns() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", WAITING);
    lab.write("other.yaml", MOTD);
    let first = lab.spawn("apply site.yaml --on $ALL --json");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    let outcome = lab.run("apply other.yaml --on $ALL --json --no-wait");
    let (result, reason) = only(&outcome);
    assert!(result == "refused" && reason.contains("another run is in progress"), "{outcome}");
    let second = lab.spawn("apply other.yaml --on $ALL --json");
    lab.on(1, "touch /opt/go");
    for push in [first, second] {
        let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
        assert_eq!(only(&outcome).0, "ok", "{outcome}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn hostile_target_changes_nothing_on_the_controller() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    let hello =
        "printf '\\000\\000\\000\\075m{\"message\":\"hello\",\"protocol\":1,\"version\":\"VERSION\"}'";
    for (name, answer) in [
        ("endless", "yes $(printf '\\033]0;title\\007')".to_owned()),
        ("frame", "echo; echo $M have; printf '\\377\\377\\377\\377m'; sleep 1000".to_owned()),
        ("kind", format!("echo; echo $M have; {hello}; printf '\\000\\000\\000\\002xx'; sleep 1000")),
        ("garbage", "echo; echo $M have; head -c 3000000 /dev/urandom".to_owned()),
        ("reason", "printf '\\033[31mred\\033[0m' >&2; exit 255".to_owned()),
    ] {
        let program = lab.program(
            name,
            &format!("#!/bin/sh\nfor last do :; done\nM=$(printf '%s' \"$last\" | sed 's/.*M=\\([0-9a-f]*\\);.*/\\1/')\n{answer}\n"),
        );
        let outcome = lab.run(&format!(
            "apply site.yaml --on web1 --json --connect-timeout 3s --ssh {}",
            program.display()
        ));
        assert!([1, 4].contains(&outcome.code), "{name}: {outcome}");
        outcome.never_says("\u{1b}");
        assert!(outcome.stdout.len() < 4096, "{name}: {outcome}");
    }
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn batches_stop_at_the_limit_and_can_be_resumed() {
    let Some(lab) = Lab::start(4) else { return };
    lab.write("site.yaml", "- exec:\n    - test -e /opt/good: {}\n    - touch /opt/done: {}\n");
    lab.on(1, "touch /opt/good");
    let outcome = lab.run("apply site.yaml --on $ALL --json --batch 1");
    outcome.exits(1);
    let expected = ["ok", "failed", "untouched", "untouched"];
    let found: Vec<String> = results(&outcome).into_iter().map(|(_, result)| result).collect();
    assert_eq!(found, expected, "{outcome}");
    let summary = documents(&outcome, ".push.summary").remove(0);
    let (run, resume) = (summary["run"].as_str().unwrap(), summary["resume"].as_str().unwrap());
    assert!(resume.ends_with(&format!("--resume {run}")), "{resume}");

    for host in 2..=4 {
        lab.on(host, "touch /opt/good");
    }
    lab.on(1, "rm /opt/done");
    let resumed = lab.run(&format!("apply site.yaml --on $ALL --json --batch 2 --resume {run}"));
    resumed.exits(0);
    assert!(!lab.file(1, "/opt/done").exists(), "a host that was ok is not reached again");
    assert!(lab.file(4, "/opt/done").exists());
    let shown = lab.run(&format!("history show {run}"));
    shown.exits(0).says("10.9.0.1  ok  run ").says("10.9.0.2  failed").says("10.9.0.3  untouched");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn undo_and_other_commands_run_on_hosts() {
    let Some(lab) = Lab::start(2) else { return };
    lab.write("site.yaml", MOTD);
    let pushed = lab.run("apply site.yaml --on $ALL --json");
    let run = documents(&pushed, ".push.summary")[0]["run"].as_str().unwrap().to_owned();
    let status = lab.run("status file /opt/motd --on $ALL --json");
    status.exits(0);
    assert!(
        documents(&status, ".push.host").iter().all(|host| host["output"]["ensure"] == "present"),
        "{status}"
    );
    let facts = lab.run("facts host.info.hostname --on $ALL --json");
    facts.exits(0);
    lab.write("goss.yaml", "file:\n  /opt/motd: { exists: true }\n");
    lab.run("check goss.yaml --on $ALL").exits(0).says("10.9.0.[1,2]:\n  ok       file /opt/motd exists");
    let checked = lab.run("check goss.yaml --on $ALL --json");
    assert!(
        documents(&checked, ".push.host").iter().all(|host| host["output"]["state"] == "OK"),
        "{checked}"
    );
    lab.run(&format!("undo {run} --on $ALL")).exits(0).says("10.9.0.[1,2]");
    assert!(!lab.file(1, "/opt/motd").exists() && !lab.file(2, "/opt/motd").exists());
    lab.run("ensure file /opt/motd present --content x --owner root --group root --mode 0600 --on $ALL")
        .exits(0);
    assert_eq!(fs::read_to_string(lab.file(2, "/opt/motd")).unwrap(), "x");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn plain_secrets_are_never_on_a_disk_of_a_host() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write(
        "site.yaml",
        "data: { password: S3CRET-CANARY }\nccm:\n  resources:\n    - exec:\n        - touch /opt/begun: {}\n        - wait:\n            \
         command: \"until test -e /opt/go; do sleep 0.1; done\"\n            provider: shell\n            environment: [\"P={{ Data.password }}\"]\n            sensitive: true\n",
    );
    let push = lab.spawn("apply site.yaml --on $ALL --json --data other=S3CRET-OTHER");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    let found = lab.on(1, "grep -rlE S3CRET /var/lib/ccm /root /opt /usr/local/lib || true");
    assert_eq!(found, "", "a file has a secret");
    let processes = lab.processes(1, "remote");
    assert!(processes.contains("remote") && !processes.contains("S3CRET"), "{processes}");
    lab.on(1, "touch /opt/go");
    let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    assert_eq!(lab.on(1, "ls -A /run/ccm-push-0 | wc -l").trim(), "0", "the input of the run is removed");
}

#[test]
#[ignore = "two hundred hosts: `make test-push`"]
fn two_hundred_hosts_are_reached() {
    let Some(lab) = Lab::start(200) else { return };
    lab.write("site.yaml", MOTD);
    let outcome = lab.run("apply site.yaml --on $ALL --parallel 20");
    outcome.exits(0).says("10.9.0.[1-200] (200 hosts)").says("200 hosts: 200 ok");
}
