//! How a command runs: where, as whom, with what, and what is said when it cannot.

use std::{
    fs,
    io::{BufRead, BufReader},
};

use crate::{
    exec::{commands, fails, runs},
    support::{NOBODY, World, is_root},
};

#[test]
fn the_name_is_the_command_when_there_is_no_other() {
    let world = commands("touch $W/made:");
    world.apply().exits(0).counts([1, 0, 0, 0]);
    assert!(world.path("made").exists());
}

#[test]
fn a_command_runs_in_the_root_directory_with_an_empty_input_unless_told_otherwise() {
    let world = commands(
        "a: { command: \"sh -c 'pwd > $W/a; cat >> $W/a'\" }\nb: { command: \"sh -c 'pwd > $W/b; cat >> $W/b'\", cwd: $W, stdin: \"in\\nput\" }",
    );
    world.ccm(["apply", "site.yaml"]).input("of ccm").run().exits(0);
    assert_eq!(world.read("a"), "/\n");
    assert_eq!(world.read("b"), format!("{}\nin\nput", world.path("").display()));
}

#[test]
fn environment_is_added_and_path_is_where_programs_are_found() {
    let world = commands(
        "a: { command: tool, path: \"$W/bin:/usr/bin:/bin\", environment: [\"A=1 = 2\", \"HOME=/elsewhere\"] }",
    )
    .file("bin/tool", "#!/bin/sh\necho \"$A,$HOME,$PATH,$XDG_STATE_HOME\" > $(dirname $0)/out\n")
    .mode("bin/tool", 0o755);
    world.apply().exits(0);
    let inherited = world.base().join("home");
    let (bin, inherited) = (world.path("bin").display().to_string(), inherited.display().to_string());
    assert_eq!(world.read("bin/out"), format!("1 = 2,/elsewhere,{bin}:/usr/bin:/bin,{inherited}\n"));
}

#[test]
fn only_the_shell_provider_is_a_shell_and_only_for_who_asked() {
    let world = commands(
        "\
a: { command: 'echo $HOME \"a  b\" | cat > $W/a', provider: shell }
b: { command: 'touch b \"|\" cat $HOME \"a  b\"', cwd: $W/d }
c: { command: '-x 2>&1; true', provider: shell }",
    )
    .dir("d");
    let outcome = world.apply_with(&["--json"]);
    outcome.exits(0);
    assert_eq!(outcome.event("a")["provider"], "shell");
    assert_eq!(outcome.event("b")["provider"], "posix");
    assert_eq!(world.read("a"), format!("{} a  b\n", world.base().join("home").display()));
    for word in ["b", "|", "cat", "$HOME", "a  b"] {
        assert!(world.path("d").join(word).is_file(), "{word:?} was not an argument");
    }
}

#[test]
fn user_group_umask_and_home_are_those_of_the_resource() {
    if !is_root() {
        return;
    }
    let script = "id -u; id -g; umask; echo $HOME $USER $LOGNAME; touch $W/d/made";
    let world = commands(&format!(
        "\
a: {{ command: \"sh -c '({script}) > $W/d/out'\", user: nobody, umask: \"0077\" }}
b: {{ command: \"sh -c 'id -u > $W/d/b; id -g >> $W/d/b'\", user: 4242, group: 4343 }}
c: {{ command: \"sh -c 'id -u > $W/d/c; id -g >> $W/d/c'\", group: daemon, onlyif: \"sh -c 'test $(id -gn) = daemon'\" }}"
    ))
    .dir("d")
    .mode("d", 0o777);
    world.apply().exits(0).counts([3, 0, 0, 0]);
    let out = world.read("d/out");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], NOBODY.to_string());
    assert_eq!(lines[2], "0077");
    assert!(lines[3].ends_with(" nobody nobody") && !lines[3].starts_with("/root"), "{out}");
    let made = world.tree().item("d/made").unwrap().clone();
    assert_eq!((made.uid, made.mode), (NOBODY, 0o600));
    assert_eq!(world.read("d/b"), "4242\n4343\n");
    assert_eq!(world.read("d/c"), "0\n1\n");
}

#[test]
fn a_user_made_by_a_command_is_known_to_the_next_one() {
    if !is_root() {
        return;
    }
    // The account files are the machine's own; a copy of them is put in their place for this run only.
    let script = "cp /etc/passwd /etc/group $W; mount --bind $W/passwd /etc/passwd; mount --bind $W/group /etc/group; \
                  exec \"$@\"";
    let world = commands(
        "\
before: { command: \"true\", user: fresh-one }
add: { command: \"sh -c 'echo fresh-one:x:4567:4567::/:/bin/sh >> /etc/passwd; echo extra:x:4999:fresh-one >> /etc/group'\" }
after: { command: \"sh -c 'id -u > $W/d/id; id -G >> $W/d/id'\", user: fresh-one }",
    )
    .dir("d")
    .mode("d", 0o777);
    let script = world.fill(script);
    let wrapper = ["unshare", "--mount", "sh", "-ec", &script, "sh"];
    let outcome = world.ccm(["apply", "site.yaml"]).under(wrapper).run();
    outcome.counts([2, 0, 1, 0]).says("user \"fresh-one\" does not exist on this machine");
    assert_eq!(world.read("d/id"), "4567\n4567 4999\n");
}

// Output.

#[test]
fn logoutput_shows_lines_while_the_command_runs() {
    let world = commands(
        "a: { command: \"sh -c 'echo first; echo second >&2; while [ ! -e $W/go ]; do sleep 0.02; done; echo third'\", logoutput: true, timeout: 1h }",
    );
    let mut child = world.ccm(["apply", "site.yaml"]).start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut early = [lines.next().unwrap(), lines.next().unwrap()];
    early.sort();
    assert_eq!(early, ["      exec#a: first", "      exec#a: second"]);
    fs::write(world.path("go"), "").unwrap();
    assert_eq!(lines.next().unwrap(), "      exec#a: third");
    assert!(lines.any(|line| line.starts_with("~ exec#a executed")));
    assert!(child.wait().unwrap().success());
}

#[test]
fn output_of_a_command_that_succeeds_is_not_shown_unless_asked_for() {
    commands("a: { command: echo words-of-it }").apply().exits(0).never_says("words-of-it\n");
}

// Errors.

#[test]
fn what_cannot_be_run_says_why_and_where() {
    fails(
        "a: { command: no-such-program x, path: \"/usr/bin:/opt/none\" }",
        &[
            "\"no-such-program\" was not found in any directory of the search path \"/usr/bin:/opt/none\"",
            "(command)",
        ],
    );
    fails("a: { command: /no/such/program }", &["\"/no/such/program\" does not exist"]);
    fails("a: { command: /etc/passwd }", &["\"/etc/passwd\" cannot be executed"]);
    fails(
        "a: { command: \"true\", cwd: /no/such/folder }",
        &["in the directory \"/no/such/folder\"", "(cwd)"],
    );
    fails("a: { command: \"true\", cwd: /etc/passwd }", &["in the directory \"/etc/passwd\"", "(cwd)"]);
    fails(
        "a: { command: \"true\", user: no-such-user }",
        &["user \"no-such-user\" does not exist", "(user)"],
    );
    fails(
        "a: { command: \"true\", group: no-such-group }",
        &["group \"no-such-group\" does not exist", "(group)"],
    );
    fails(
        "a: { command: \"true\", creates: /etc/passwd/x }",
        &["cannot tell whether /etc/passwd/x exists", "(creates)"],
    );
}

#[test]
fn a_command_written_for_a_shell_gets_a_hint_when_it_fails() {
    let help = "means nothing without a shell: set `provider: shell`";
    fails("a: { command: 'no-such-program a >/dev/null' }", &["`>/dev/null` ", help]);
    fails("a: { command: 'cd /srv' }", &["`cd` ", help]);
    fails("a: { command: 'no-such-program a' }", &[]).never_says("shell");
}

#[test]
fn what_is_known_to_be_wrong_is_said_before_anything_runs() {
    for (item, part) in [
        ("a: { command: '' }", "`command` names no program"),
        ("a: { command: \"echo 'a\" }", "`command` has a quotation mark that is not closed"),
        ("a: { $RUN, onlyif: \"test 'a\" }", "`onlyif` has a quotation mark that is not closed"),
        ("a: { $RUN, unless: ' ', provider: shell }", "`unless` names no program"),
        ("a: { $RUN, ensure: absent }", "ensure: "),
        ("a: { $RUN, cwd: relative }", "must be absolute"),
        ("a: { $RUN, creates: relative }", "must be absolute"),
        ("a: { $RUN, path: 'bin:/bin' }", "\"bin\" is not an absolute directory"),
        ("a: { $RUN, environment: [TOKEN] }", "an entry without \"=\""),
        ("a: { $RUN, environment: [=text] }", "has no name"),
        ("a: { $RUN, path: /bin, environment: [PATH=/bin] }", "cannot be given together"),
        ("a: { $RUN, returns: [256] }", "returns: "),
        ("a: { $RUN, timeout: '30' }", "give it a unit"),
        ("a: { $RUN, timeout: 0s }", "timeout: \"0s\" leaves no time for anything"),
        ("a: { $RUN, timeout: 9999999w }", "timeout: \"9999999w\" is too long"),
        ("a: { $RUN, umask: '999' }", "is not a mode"),
        ("a: { $RUN, provider: powershell }", "known providers: posix, shell"),
        ("a: { $RUN, refreshonly: true, refresh_only: true }", "refresh_only"),
    ] {
        let world = commands(&format!("first: {{ $RUN }}\n{item}"));
        world.validate().exits(2).complains(part);
        world.apply().exits(2).complains(part);
        assert_eq!(runs(&world), 0, "{item}");
    }
    // What is wrong for one provider is right for another.
    commands("a: { command: \"true # don't\", provider: shell }").apply().exits(0);
}

#[test]
fn text_that_looks_like_a_template_is_not_one_after_it_was_expanded() {
    let world = World::new()
        .file("text", "${ 1 + 1 } {{ 1 + 1 }} $(id) `id`")
        .manifest("- exec:\n    - a: { command: \"tee $W/out\", stdin: \"${ file('$W/text') }\" }\n");
    world.apply().exits(0);
    assert_eq!(world.read("out"), "${ 1 + 1 } {{ 1 + 1 }} $(id) `id`");
}

#[test]
fn late_properties_see_what_earlier_commands_made() {
    let world = commands(
        "a: { command: \"sh -c 'echo $W/second > $W/first'\" }\nb: { command: \"touch ${ trim(file('$W/first')) }\", creates: \"${ trim(file('$W/first')) }\" }",
    );
    world.apply().exits(0).counts([2, 0, 0, 0]);
    assert!(world.path("second").exists());
}

// One at a time.

#[test]
fn a_command_can_be_given_by_flags() {
    let world = World::new();
    let flags = [
        "ensure",
        "exec",
        "a",
        "--command",
        "sh -c 'echo $KEY > $W/out; cat >> $W/out; exit 3'",
        "--environment",
        "KEY=v",
        "--returns",
        "0",
        "--returns",
        "3",
        "--creates",
        "$W/out",
        "--stdin",
        "text",
    ];
    world.ccm(flags).run().exits(0).reports("exec#a", "executed");
    assert_eq!(world.read("out"), "v\ntext");
    world.ccm(flags).run().exits(0).reports("exec#a", "unchanged");
    world.ccm(["status", "exec", "a", "--json"]).run().exits(0).says("\"creates_satisfied\": false");
}

#[test]
fn the_example_is_stable_the_second_time() {
    let world = World::new();
    let folder = world.path("").display().to_string();
    let text = include_str!("../examples/exec.yaml").replace("/tmp/ccm-example", &folder);
    let owner = "owner: \"$UID\"\n            group: \"$GID\"";
    let text = text.replace("owner: root\n            group: root", owner);
    let world = world.manifest(&text);
    let first = world.apply();
    first.exits(0).never_says(" failed").never_says(" skipped").says("(1 refreshed)");
    let tree = world.tree();
    let second = world.apply();
    second.exits(0).never_says(" changed").never_says(" failed").never_says(" skipped");
    assert_eq!(world.tree(), tree);
}

#[test]
fn the_time_limit_is_for_each_guard_and_for_the_command_and_the_message_says_which() {
    // Together they take longer than the limit, each alone does not: on a busy machine only with a longer one.
    let fits = [1.0, 10.0, 60.0].into_iter().any(|limit| {
        let nap = limit * 0.6;
        let slow =
            format!("onlyif: sleep {nap}, unless: \"sh -c 'sleep {nap}; exit 1'\", command: sleep {nap}");
        let outcome = commands(&format!("a: {{ {slow}, timeout: {limit}s }}")).apply();
        outcome.code == 0 && outcome.counts([1, 0, 0, 0]).code == 0
    });
    assert!(fits);
    fails(
        "a: { $RUN, onlyif: sleep 1000, timeout: 500ms }",
        &["onlyif gave no answer: \"sleep\" timed out after 500ms", "all its processes were terminated"],
    );
    fails(
        "a: { $RUN, unless: sleep 1000, timeout: 500ms }",
        &["unless gave no answer: \"sleep\" timed out after 500ms"],
    );
    fails("a: { command: sleep 1000, timeout: 500ms }", &["the command \"sleep\" timed out after 500ms"]);
}

#[test]
fn a_guard_for_the_shell_that_says_127_without_a_word_says_no() {
    for (guard, ran) in [
        ("unless: command -v no-such-program", 1),
        ("onlyif: command -v no-such-program", 0),
        ("unless: exit 127", 1),
        ("onlyif: exit 126", 0),
    ] {
        let world = commands(&format!("a: {{ $RUN, {guard}, provider: shell }}"));
        world.apply_with(&["--noop"]).exits(0);
        world.apply().exits(0).counts([ran, 1 - ran, 0, 0]);
        assert_eq!(runs(&world), ran, "{guard}");
    }
    for guard in ["onlyif: no-such-program", "unless: no-such-program"] {
        fails(&format!("a: {{ $RUN, {guard}, provider: shell }}"), &[" gave no answer: ", "exit status 127"]);
    }
    fails("a: { $RUN, onlyif: \"sh -c 'exit 127'\" }", &["onlyif gave no answer: "]);
}

#[test]
fn a_command_of_another_user_finds_what_a_login_has_and_nothing_of_ours() {
    if !is_root() {
        return;
    }
    let print = "sh -c 'env | grep -v ^PWD= | sort > $W/env; true'";
    let run = |more: &str| {
        let world = commands(&format!("a: {{ command: \"{print}\", user: nobody, {more} }}"));
        let world = world.owner("", crate::support::NOBODY, crate::support::NOBODY);
        let ours = [("TOKEN", "secret"), ("LANG", "C.UTF-8"), ("TZ", "UTC"), ("no_proxy", "local")];
        let call = world.ccm(["apply", "site.yaml"]).env("SHELL", "/bin/ours").env("USER", "root");
        ours.iter().fold(call, |call, (name, value)| call.env(name, *value)).run().exits(0);
        world.read("env").replace(&std::env::var("PATH").unwrap(), "OURS")
    };
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let entry = passwd.lines().find(|line| line.starts_with("nobody:")).unwrap();
    let fields: Vec<&str> = entry.split(':').collect();
    let login = |more: &[&str]| {
        let mut lines = vec![
            format!("HOME={}", fields[5]),
            format!("SHELL={}", fields[6]),
            "LANG=C.UTF-8".to_owned(),
            "LOGNAME=nobody".to_owned(),
            "TZ=UTC".to_owned(),
            "USER=nobody".to_owned(),
            "no_proxy=local".to_owned(),
        ];
        lines.extend(more.iter().map(|line| (*line).to_owned()));
        lines.sort();
        lines
    };
    let lines = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(run("returns: [0]")), login(&["PATH=OURS"]));
    assert_eq!(lines(run("path: \"/usr/bin:/bin\"")), login(&["PATH=/usr/bin:/bin"]));
    assert_eq!(
        lines(run("environment: [TZ=CET, MORE=1]")),
        login(&["PATH=OURS", "MORE=1"])
            .iter()
            .map(|line| line.replace("TZ=UTC", "TZ=CET"))
            .collect::<Vec<_>>()
    );
    // A guard finds the same.
    let guard = "onlyif: \"sh -c 'test -z $TOKEN && test $USER = nobody'\"";
    assert!(run(guard).contains("USER=nobody"));
    let inherited = run("inherit_environment: true");
    for line in ["TOKEN=secret", "SHELL=/bin/ours", "USER=nobody", "LOGNAME=nobody"] {
        assert!(inherited.lines().any(|found| found == line), "{line} is missing in\n{inherited}");
    }
}

#[test]
fn program_of_another_machine_is_not_run_by_a_shell() {
    // The header of an ELF file for a machine that is not this one.
    let (number, name) = if cfg!(target_arch = "aarch64") { (62, "x86_64") } else { (183, "aarch64") };
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".to_vec();
    program.extend([number, 0]);
    program.resize(128, 0);
    let world = World::new().file("program", program).mode("program", 0o755);
    let world = world.manifest("- exec: [{ $W/program: {} }]\n");
    let reason =
        world.fill(&format!("\"$W/program\" cannot be executed: exec format error: built for {name}"));
    world.apply().exits(1).says(&reason);
}
