//! Rules in the language of goss.

use std::net::TcpListener;

use super::{check, checked, first, judged, judged_in};
use crate::support::{World, ports, wait_until};

#[test]
fn what_is_not_there_is_not_looked_at_further() {
    let (state, counts) = judged("file: { $W/none: { exists: false, mode: '0644' } }");
    assert_eq!((state.as_str(), counts.as_str()), ("OK", "Count: 2, Failed: 0, Skipped: 1"));
    let (state, counts) = judged("file: { $W/none: { exists: true, contents: [x] } }");
    assert_eq!((state.as_str(), counts.as_str()), ("CRITICAL", "Count: 2, Failed: 1, Skipped: 1"));
}

#[test]
fn each_form_of_a_pattern_means_what_it_says() {
    for (pattern, state) in [
        ("one", "OK"),
        ("/^o.e$/", "OK"),
        ("!two", "OK"),
        ("!/^two/", "OK"),
        ("'\\one'", "OK"),
        ("/etc/x", "OK"),
        ("two", "CRITICAL"),
        ("'!one'", "CRITICAL"),
        ("/etc/xy", "CRITICAL"),
        ("/", "OK"),
    ] {
        let quoted = if pattern.starts_with('\'') { pattern.to_owned() } else { format!("'{pattern}'") };
        let (found, _) = judged(&format!("file: {{ $W/f: {{ exists: true, contents: [{quoted}] }} }}"));
        assert_eq!(found, state, "{pattern}");
    }
    let world = World::new().file("g", "etc/x\n").beside("rules.yaml", "");
    let (found, _) = judged_in(&world, "file: { $W/g: { exists: true, contains: ['/etc/x'] } }");
    assert_eq!(found, "CRITICAL");
}

#[test]
fn an_exit_code_may_be_one_of_several() {
    for (code, state) in [(1, "OK"), (0, "OK"), (2, "CRITICAL")] {
        let (found, _) =
            judged(&format!("command: {{ 'exit {code}': {{ exit-status: {{ or: [0, 1] }} }} }}"));
        assert_eq!(found, state, "{code}");
    }
}

#[test]
fn files_are_what_they_are() {
    let world =
        World::new().file("f", "one\n").mode("f", 0o640).link("l", "$W/f").dir("d").beside("rules.yaml", "");
    crate::support::sh("mkfifo w/p", world.base());
    for (rule, state) in [
        ("$W/f: { exists: true, mode: 0640, size: 4, filetype: file, uid: $UID, gid: $GID }", "OK"),
        ("$W/f: { exists: true, mode: '640' }", "OK"),
        ("$W/f: { exists: true, mode: '0644' }", "CRITICAL"),
        ("$W/l: { exists: true, filetype: symlink, linked-to: $W/f, contents: [one] }", "OK"),
        ("$W/d: { exists: true, filetype: directory }", "OK"),
        ("$W/p: { exists: true, filetype: pipe }", "OK"),
        ("$W/p: { exists: true, contents: [x] }", "CRITICAL"),
        ("cfg: { path: w/f, exists: true, md5: 5bbf5a52328e7439ae6e719dfe712200 }", "OK"),
        (
            "$W/f: { exists: true, sha256: 2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806 }",
            "OK",
        ),
        ("$W/f: { exists: true, contents: { contain-substring: one }, meta: { severity: warning } }", "OK"),
        ("$W/f: { exists: true, contents: [two], meta: { severity: warning } }", "WARNING"),
        ("$W/f: { exists: false, skip: true }", "OK"),
    ] {
        let (found, counts) = judged_in(&world, &format!("file: {{ {rule} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
}

#[test]
fn commands_are_judged_by_all_that_they_do() {
    for (rule, state) in [
        ("'echo out; echo err >&2': { exit-status: 0, stdout: out, stderr: [err] }", "OK"),
        ("'echo 42': { exit-status: 0, stdout: 42 }", "OK"),
        ("'echo 42': { exit-status: 0, stdout: { gt: 42 } }", "CRITICAL"),
        ("'kill -9 $$': { exit-status: { not: 0 } }", "CRITICAL"),
        ("'sleep 30': { exit-status: 0, timeout: 100 }", "CRITICAL"),
        ("n: { exec: 'exit 3', exit-status: 3 }", "OK"),
        ("'printf \"{\\\"a\\\":[1,2]}\"': { exit-status: 0, stdout: { gjson: { a.1: 2 } } }", "OK"),
    ] {
        let (found, counts) = judged(&format!("command: {{ {rule} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
}

#[test]
fn a_listener_for_both_is_one_for_ipv4_too() {
    let Ok(both) = TcpListener::bind("[::]:0") else { return };
    let port = both.local_addr().unwrap().port();
    for (id, expected) in [("tcp", true), ("tcp6", true), ("tcp4", false)] {
        let (found, _) = judged(&format!("port: {{ '{id}:{port}': {{ listening: {expected} }} }}"));
        assert_eq!(found, "OK", "{id}");
    }
    let four = ports::listen();
    let port = four.local_addr().unwrap().port();
    let (found, _) = judged(&format!("port: {{ {port}: {{ listening: true, ip: [127.0.0.1] }} }}"));
    assert_eq!(found, "OK");
    let (found, counts) = judged(&format!("port: {{ {port}: {{ listening: true, ip: [0.0.0.0] }} }}"));
    assert_eq!((found.as_str(), counts.as_str()), ("CRITICAL", "Count: 2, Failed: 1, Skipped: 0"));
}

#[test]
fn a_refused_connection_is_not_reachable() {
    let listener = ports::listen();
    let port = listener.local_addr().unwrap().port();
    let rule = |expected: bool| {
        format!("addr: {{ 'tcp://127.0.0.1:{port}': {{ reachable: {expected}, timeout: 5s }} }}")
    };
    assert_eq!(judged(&rule(true)).0, "OK");
    drop(listener);
    assert_eq!(judged(&rule(false)).0, "OK");
    assert_eq!(judged(&rule(true)).0, "CRITICAL");
}

#[test]
fn accounts_mounts_parameters_and_interfaces_are_looked_at() {
    for (rules, state) in [
        ("user: { root: { exists: true, uid: 0, gid: 0, home: /root, groups: [root] } }", "OK"),
        ("user: { no-such-user: { exists: false, uid: 5 } }", "OK"),
        ("user: { no-such-user: { exists: true } }", "CRITICAL"),
        ("group: { root: { exists: true, gid: 0 } }", "OK"),
        ("group: { no-such-group: { exists: true } }", "CRITICAL"),
        ("kernel-param: { kernel.ostype: { value: Linux } }", "OK"),
        ("kernel-param: { kernel/ostype: { value: Hurd } }", "CRITICAL"),
        ("kernel-param: { no.such: { value: x } }", "CRITICAL"),
        ("mount: { /proc: { exists: true, filesystem: proc, usage: { lt: 101 } } }", "OK"),
        ("mount: { /no/mount: { exists: false } }", "OK"),
        ("mount: { /no/mount: { exists: true } }", "CRITICAL"),
        (
            "interface: { lo: { exists: true, addrs: { contain-element: 127.0.0.1/8 }, mtu: { gt: 1000 } } }",
            "OK",
        ),
        ("interface: { none0: { exists: false } }", "OK"),
        ("matching: { x: { content: { a: [1, 2] }, matches: { gjson: { a.0: 1 } } } }", "OK"),
        ("matching: { x: { content: [1, 2], matches: { consist-of: [2] } } }", "CRITICAL"),
        (
            "dns: { localhost: { resolvable: true, addrs: { contain-element: 127.0.0.1 }, timeout: 5s } }",
            "OK",
        ),
        ("process: { no-such-process-at-all: { running: false } }", "OK"),
    ] {
        let (found, counts) = judged(rules);
        assert_eq!(found, state, "{rules}: {counts}");
    }
}

#[test]
fn processes_are_found_by_their_whole_names() {
    let world = World::new().beside("rules.yaml", "");
    crate::support::sh("cp \"$(command -v sleep)\" w/a-program-with-a-long-name", world.base());
    let mut child =
        std::process::Command::new(world.path("a-program-with-a-long-name")).arg("4243").spawn().unwrap();
    for (rule, state) in [
        ("a-program-with-a-long-name: { running: true, count: 1 }", "OK"),
        ("a-program-with-a-long-name: { running: true, args: '4243', user: '$UID' }", "OK"),
        ("a-program-with-a-long-nam: { running: false }", "OK"),
        ("a-program-with-a-long-name: { running: false, args: '4244' }", "OK"),
    ] {
        let (found, counts) = judged_in(&world, &format!("process: {{ {rule} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
    child.kill().unwrap();
    // It is a zombie until it is waited for, and does not run any more.
    let gone = "process: { a-program-with-a-long-name: { running: false } }";
    wait_until("a zombie does not count as running", || judged_in(&world, gone).0 == "OK");
    child.wait().unwrap();
}

#[test]
fn packages_are_asked_of_the_package_system() {
    if !crate::support::has("dpkg-query") {
        return;
    }
    for (rule, state) in [
        ("dpkg: { installed: true, version: '>=1.0' }", "OK"),
        ("dpkg: { installed: true, version: '<1.0' }", "CRITICAL"),
        ("no-such-package: { installed: false, versions: [x] }", "OK"),
        ("no-such-package: { installed: true }", "CRITICAL"),
    ] {
        let (found, counts) = judged(&format!("package: {{ {rule} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
}

#[test]
fn a_manager_that_cannot_be_reached_is_no_answer() {
    if std::path::Path::new("/run/systemd/system").exists() {
        return;
    }
    let (found, _) = judged("service: { nginx: { running: false } }");
    assert_eq!(found, "UNKNOWN");
}

#[test]
fn values_from_data_stay_what_they_are() {
    let world = World::new().file("f", "x").manifest(
        "data: { a: 'x: y', b: '{{{{ env \"HOME\" }}', port: 42 }\nccm:\n  resources:\n    - file:\n        - $W/f:\n            \
         content: x\n            owner: '$UID'\n            group: '$GID'\n            mode: '0644'\n            \
         health_checks:\n              - goss_rules:\n                  command:\n                    \
         \"printf '%s\\\\n' '${ Data.a }' '${ Data.port }'\": { exit-status: 0, stdout: ['${ Data.a }', '!${ Data.b }', '${ Data.port }'] }\n",
    );
    world.apply().exits(0);
    let world = checked(
        World::new(),
        "[{ goss_rules: { matching: { m: { content: '${ 40 + 2 }', matches: 42 } } } }]",
    );
    world.apply().exits(0);
}

#[test]
fn rules_can_be_in_files_that_include_others() {
    let world = checked(World::new(), "[{ goss_file: rules/main.yaml }]")
        .beside(
            "rules/main.yaml",
            "gossfile: { 'parts/*.yaml': {} }\nmatching: { x: { content: 1, matches: 1 } }\n",
        )
        .beside("rules/parts/a.yaml", "matching: { a: { content: 1, matches: 2 } }\n")
        .beside("rules/parts/b.yaml", "matching: { a: { content: 1, matches: 1 } }\n");
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0);
    assert!(
        first(&outcome)["output"].as_str().unwrap().starts_with("Count: 2, Failed: 0"),
        "{}",
        first(&outcome)
    );
    let world = world.beside("rules/parts/b.yaml", "gossfile: { ../main.yaml: {} }\n");
    world.apply().exits(2).complains("rules include each other").complains("main.yaml -> ");
    let world = world.beside("rules/parts/b.yaml", "file: { '{{ .Vars.x }}': { exists: true } }\n");
    world.validate().exits(2).complains("templates of Go").complains("rules/parts/b.yaml:1:10");
    let world = world.beside("rules/main.yaml", "gossfile: { 'none/*.yaml': {} }\n");
    world.apply().exits(2).complains("cannot read rules from");
}

#[test]
fn what_is_wrong_with_a_file_of_rules_is_told_before_the_run() {
    let broken = checked(World::new(), "[{ goss_file: a.yaml }, { goss_file: a.yaml, name: again }]");
    let broken = broken.beside("a.yaml", "ports: { 80: { listening: true } }\n");
    let said = broken.apply();
    said.exits(2).complains("did you mean `port`?").complains("a.yaml:1:1");
    assert_eq!(said.stderr.matches("did you mean `port`?").count(), 1, "{said}");
    let missing = checked(World::new(), "[{ tcp: 1 }, { goss_file: none.yaml }]");
    missing
        .validate()
        .exits(2)
        .complains("health check goss none.yaml: cannot read rules")
        .complains("site.yaml:2:");
    let included = checked(World::new(), "[{ goss_rules: { gossfile: { none.yaml: {} } } }]");
    included.validate().exits(2).complains("none.yaml");
    // What is made in the run, or is not part of the manifest, is looked at when the check is made.
    let made = World::new().manifest(
        "- exec:\n    - \"sh -c 'echo \\\"file: {/: {exists: true}}\\\" > $W/../made.yaml'\": {}\n    \
         - \"true\": { health_checks: [{ goss_file: made.yaml }] }\n",
    );
    made.validate().exits(0);
    made.apply().exits(0);
    // The same of files that a pattern would find.
    let check = "health_checks: [{ goss_rules: { gossfile: { 'rules/*.yaml': {} } } }]";
    let items = |earlier: &str| {
        format!("- exec:\n    - {earlier}: {{}}\n- file: [{{ $W/f: {{ ensure: absent, {check} }} }}]\n")
    };
    let made = World::new()
        .beside("rules/other", "")
        .manifest(&items("\"sh -c 'echo \\\"file: {/: {exists: true}}\\\" > $W/../rules/a.yaml'\""));
    made.validate().exits(0);
    made.apply().exits(0);
    let nobody = World::new()
        .beside("rules/other", "")
        .manifest(&format!("- file: [{{ $W/f: {{ ensure: absent, {check} }} }}]\n"));
    nobody.validate().exits(2).complains("rules/*.yaml");
    let elsewhere = checked(World::new(), "[{ goss_file: /no/such/rules.yaml }]");
    elsewhere.validate().exits(0);
    elsewhere.apply().exits(1).says("UNKNOWN").says("/no/such/rules.yaml");
}

#[test]
fn what_a_server_says_by_itself_is_held_against_a_pattern() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"220 mail.example ESMTP\r\n");
        }
    });
    for (expect, state) in
        [("ESMTP", "OK"), ("/^220 /", "OK"), ("!ESMTP", "CRITICAL"), ("/^SSH/", "CRITICAL")]
    {
        let (_, one) = check(&format!("[{{ tcp: {{ address: '127.0.0.1:{port}', expect: '{expect}' }} }}]"));
        assert_eq!(one["state"], state, "{expect}: {one}");
    }
    // One that says nothing is not waited for any longer than the check may take.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (_, one) =
        check(&format!("[{{ tcp: {{ address: '127.0.0.1:{port}', expect: x }}, timeout: 200ms }}]"));
    assert_ne!(one["state"], "OK", "{one}");
}

#[test]
fn a_unit_has_to_stay_active_for_as_long_as_asked() {
    // Active since the machine runs; since a moment that is yet to come, and it stays so; started anew before each look.
    for (since, state, looks) in
        [("1", "OK", 1), ("900000000000000", "OK", 2), ("$(date +%s%N)", "CRITICAL", 2)]
    {
        let world = checked(World::new(), "[{ unit: { name: web, for: 1s } }]").beside(
            "bin/systemctl",
            format!(
                "#!/bin/sh\necho x >> \"$LOG\"\nprintf 'ActiveState=active\\nNRestarts=0\\nActiveEnterTimestampMonotonic=%s\\n' {since}\n"
            ),
        );
        crate::support::sh("chmod +x bin/systemctl", world.base());
        let path = format!("{}:{}", world.base().join("bin").display(), std::env::var("PATH").unwrap());
        let log = world.base().join("log");
        let outcome = world
            .ccm(["apply", "site.yaml", "--json"])
            .env("PATH", &path)
            .env("LOG", log.display().to_string())
            .run();
        let one = first(&outcome);
        assert_eq!(one["state"], state, "{since}: {one}");
        assert_eq!(std::fs::read_to_string(log).unwrap().lines().count(), looks, "{since}");
    }
}

#[test]
fn a_name_is_asked_of_the_server_that_is_given() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let mut answer = buffer[..length].to_vec();
            let knows = answer.windows(4).any(|part| part == b"here");
            answer[2..4].copy_from_slice(if knows { &[0x81, 0x80] } else { &[0x81, 0x83] });
            if knows {
                answer[7] = 1;
                // Only the question is repeated.
                let question = 12 + answer[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
                answer.truncate(question);
                answer[10..12].copy_from_slice(&[0, 0]);
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 7]);
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    for (rule, state) in [
        ("A:here.example: { resolvable: true, addrs: [192.0.2.7]", "OK"),
        ("here.example: { resolvable: true, addrs: [192.0.2.8]", "CRITICAL"),
        ("A:gone.example: { resolvable: false", "OK"),
        ("gone.example: { resolvable: true", "CRITICAL"),
    ] {
        let (found, counts) = judged(&format!("dns: {{ {rule}, server: '{server}', timeout: 20s }} }}"));
        assert_eq!(found, state, "{rule}: {counts}");
    }
}

#[test]
fn probes_become_rules() {
    let listener = ports::listen();
    let port = listener.local_addr().unwrap().port();
    let (outcome, one) = check(&format!("[{{ tcp: '127.0.0.1:{port}' }}]"));
    outcome.exits(0);
    assert_eq!(one["name"], format!("tcp 127.0.0.1:{port}"));
    check("[{ file: { path: w/f, contains: x } }]").0.exits(0);
    check("[{ file: { path: w/f, contains: '!x' } }]").0.exits(1);
    check("[{ file: w/none }]").0.exits(1);
    check("[{ file: { path: w/none, exists: false } }]").0.exits(0);
    drop(listener);
    let (outcome, one) = check(&format!("[{{ tcp: '127.0.0.1:{port}' }}]"));
    outcome.exits(1);
    assert_eq!(one["state"], "CRITICAL");
}
