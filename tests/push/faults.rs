//! Hosts that are full, restarted, slow, of another architecture, or that hang.

use std::path::Path;

use super::{
    MOTD, WAITING, documents,
    lab::{Lab, WITHOUT_CCM},
    only, with_sudo,
};
use crate::support::{Outcome, skip, wait_until};

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn full_disk_loses_no_event() {
    let Some(lab) = Lab::with(1, "", "mount -t tmpfs -o size=4m,mode=700 tmpfs /var/lib/ccm;") else {
        return;
    };
    lab.write("first.yaml", MOTD);
    lab.run("apply first.yaml --on $ALL").exits(0);
    let echoes: String = (0..50).map(|number| format!("    - echo {number}: {{}}\n")).collect();
    let fill = "head -c 1G /dev/zero > /var/lib/ccm/fill || true";
    lab.write("site.yaml", &format!("- exec:\n    - {fill}: {{ provider: shell }}\n{echoes}"));
    let outcome = lab.run("apply site.yaml --on $ALL --json");
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    assert_eq!(documents(&outcome, ".transaction.event").len(), 51);
    // Nothing fits from the beginning.
    let outcome = lab.run("apply first.yaml --on $ALL --json");
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    assert_eq!(documents(&outcome, ".transaction.event").len(), 1);
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn host_that_restarts_during_the_run_is_failed() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", WAITING);
    let push = lab.spawn("apply site.yaml --on $ALL --json");
    wait_until("the run has begun", || lab.file(1, "/opt/begun").exists());
    lab.reboot(1);
    let outcome = Outcome::new("push".to_owned(), push.wait_with_output().unwrap());
    outcome.exits(1);
    let (result, reason) = only(&outcome);
    assert!(result == "failed" && reason.contains("the run was killed"), "{outcome}");
    assert_eq!(documents(&outcome, ".transaction.event").len(), 1);
    lab.on(1, "touch /opt/go");
    lab.run("apply site.yaml --on $ALL").exits(0);
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn slow_link_is_only_slow() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    lab.run("apply site.yaml --on $ALL").exits(0);
    let shape = "tc qdisc add dev eth0 root netem delay 300ms rate 256kbit 2>/dev/null || tc qdisc add dev eth0 root tbf rate 256kbit \
                 burst 4kb latency 1s 2>/dev/null || echo none";
    if lab.on(1, shape).contains("none") {
        skip("needs tc with netem or tbf");
        return;
    }
    let content = "x".repeat(200_000);
    lab.write("files/large", &content);
    lab.write(
        "site.yaml",
        &format!(
            "{MOTD}    - /opt/large: {{ source: files/large, owner: root, group: root, mode: \"0644\" }}\n"
        ),
    );
    let outcome = lab.run("apply site.yaml --on $ALL --json");
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    assert_eq!(documents(&outcome, ".transaction.event").len(), 2);
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn host_that_hangs_after_its_banner_is_unreachable() {
    let Some(lab) = Lab::start(1) else { return };
    lab.write("site.yaml", MOTD);
    let program = lab.program("hang", "#!/bin/sh\nprintf 'SSH-2.0-OpenSSH_9.2\\r\\n'\nexec sleep 1000\n");
    let outcome = lab.run(&format!(
        "apply site.yaml --on $ALL --json --connect-timeout 2s --ssh-option ProxyCommand={}",
        program.display()
    ));
    outcome.exits(4);
    let (result, reason) = only(&outcome);
    assert!(result == "unreachable" && reason.contains("no answer within 2 s"), "{outcome}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn host_of_another_architecture_gets_the_program_that_is_named() {
    let setup = "printf \"#!/bin/sh\\necho riscv64\\n\" > $H/uname; chmod 755 $H/uname; mount --bind $H/uname $(command -v uname);";
    let Some(lab) = Lab::with(1, "", &format!("{WITHOUT_CCM}{setup}")) else { return };
    lab.write("site.yaml", MOTD);
    let refused = lab.run("apply site.yaml --on $ALL --json");
    let (result, reason) = only(&refused);
    assert!(result == "refused" && reason.contains("no ccm for architecture `riscv64`"), "{refused}");
    let program = lab.program("other", "#!/bin/sh\nexit 1\n");
    let broken =
        lab.run(&format!("apply site.yaml --on $ALL --json --target-binary riscv64={}", program.display()));
    assert_eq!(only(&broken).0, "refused", "{broken}");
    let named =
        format!("apply site.yaml --on $ALL --json --target-binary riscv64={}", env!("CARGO_BIN_EXE_ccm"));
    let outcome = lab.run(&named);
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn doas_without_password_becomes_root() {
    if !Path::new("/usr/bin/doas").exists() {
        skip("needs doas");
        return;
    }
    let Some(lab) = with_sudo("app ALL=(ALL) ALL") else { return };
    lab.write("site.yaml", MOTD);
    let refused = lab.run("apply site.yaml --on app@10.9.0.1 --become doas --json");
    assert_eq!(only(&refused).0, "refused", "{refused}");
    let rule = "printf \"permit nopass app\\n\" > /opt/doas.conf; cp -a /etc /opt/etc; cp /opt/doas.conf /opt/etc/doas.conf; \
                chmod 600 /opt/etc/doas.conf; cp /etc/passwd /etc/shadow /opt/etc/; mount --bind /opt/etc /etc";
    lab.on(1, rule);
    let outcome = lab.run("apply site.yaml --on app@10.9.0.1 --become doas --json");
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    assert_eq!(lab.on(1, "stat -c %U /opt/motd").trim(), "root");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn home_directory_that_permits_no_programs_refuses() {
    let Some(lab) = with_sudo("app ALL=(ALL) ALL") else { return };
    lab.write("site.yaml", "- exec:\n    - echo hello: {}\n");
    let outcome = lab.run("apply site.yaml --on app@10.9.0.1 --json");
    assert_eq!(only(&outcome).0, "ok", "{outcome}");
    lab.on(
        1,
        "home=$(getent passwd app | cut -d: -f6); mount -t tmpfs -o noexec,mode=755,uid=4321 tmpfs $home",
    );
    let outcome = lab.run("apply site.yaml --on app@10.9.0.1 --json");
    let (result, reason) = only(&outcome);
    assert!(result == "refused" && reason.contains("~/.cache/ccm/bin"), "{outcome}");
}

#[test]
#[ignore = "hosts with faults: `make test-push`"]
fn run_leaves_the_session_that_logind_would_kill() {
    if !["/usr/bin/systemd-run", "/usr/bin/busctl"].into_iter().all(|program| Path::new(program).exists()) {
        skip("needs systemd-run and busctl");
        return;
    }
    for (answer, scopes) in [("b true", "1"), ("b false", "0")] {
        let setup = format!(
            "mkdir -p /run/systemd/system; touch $H/scopes; printf \"#!/bin/sh\\necho {answer}\\n\" > $H/busctl; printf \"#!/bin/sh\\necho \\$* >> \
             $H/scopes; while test \\$1 != --; do shift; done; shift; exec \\$*\\n\" > $H/systemd-run; chmod 755 $H/busctl $H/systemd-run; mount \
             --bind $H/busctl /usr/bin/busctl; mount --bind $H/systemd-run /usr/bin/systemd-run;"
        );
        let Some(lab) = Lab::with(1, "", &setup) else { return };
        lab.write("site.yaml", MOTD);
        let outcome = lab.run("apply site.yaml --on $ALL --json");
        assert_eq!(only(&outcome).0, "ok", "{outcome}");
        let found = std::fs::read_to_string(lab.root(1).join("scopes")).unwrap();
        assert_eq!(found.matches("--scope").count().to_string(), scopes, "{found}");
    }
}
