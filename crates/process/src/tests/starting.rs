//! What a program is started with, and what is said when it cannot be.

use rustix::process::geteuid;

use super::*;

fn nobody() -> Identity {
    Identity { uid: 65_534, gid: 65_533, groups: vec![65_532, 65_531] }
}

pub(super) fn is_root() -> bool {
    geteuid().is_root()
}

#[test]
fn exit_codes_and_signals_are_told_apart() {
    assert_eq!(run(&Command::shell("exit 7")).unwrap().exit, Exit::Code(7));
    let killed = run(&Command::shell("kill -SEGV $$")).unwrap().exit;
    assert_eq!(killed, Exit::Signal(11));
    assert_eq!(killed.to_string(), "SIGSEGV");
    assert_eq!(Exit::Code(7).to_string(), "exit status 7");
}

#[test]
fn arguments_arrive_as_they_are() {
    let command = Command::new("printf").arguments(["[%s]", "a b", "", "$HOME", "-n", "*"]);
    assert_eq!(output_of(&command), "[a b][][$HOME][-n][*]");
}

#[test]
fn a_shell_text_that_begins_with_a_dash_is_no_option() {
    let finished = run(&Command::shell("-x; echo ran")).unwrap();
    assert_eq!(finished.stdout.text(), "ran\n");
}

#[test]
fn the_first_executable_in_the_search_path_is_run() {
    let scratch = Scratch::new();
    scratch.file("a/tool", 0o644, "#!/bin/sh\necho a\n");
    scratch.file("b/tool", 0o755, "#!/bin/sh\necho b $PATH\n");
    scratch.file("c/tool", 0o755, "#!/bin/sh\necho c\n");
    let path = ["missing", "a", "b", "c"].map(|name| scratch.path(name).display().to_string()).join(":");
    assert_eq!(output_of(&Command::new("tool").search_path(&path)), format!("b {path}"));
    assert_eq!(output_of(&Command::new("tool").variable("PATH", &path)), format!("b {path}"));
    let other = scratch.path("c").display().to_string();
    let command = Command::new("tool").variable("PATH", &path).search_path(other);
    assert_eq!(output_of(&command), "c", "the search path wins over the environment");
}

#[test]
fn a_program_that_is_nowhere_is_reported_with_the_search_path() {
    for name in ["no-such-program", ""] {
        let error = run(&Command::new(name).search_path("/usr/bin:/bin")).unwrap_err();
        let message = format!("{name:?} was not found in any directory of the search path \"/usr/bin:/bin\"");
        assert_eq!(error.to_string(), message);
    }
    let error = run(&Command::new("/no/such/program")).unwrap_err();
    assert_eq!(error.to_string(), "\"/no/such/program\" does not exist");
}

#[test]
fn search_paths_have_to_be_absolute() {
    for path in ["/bin:bin", "/bin:", "."] {
        let error = run(&Command::new("true").search_path(path)).unwrap_err();
        assert!(matches!(error, ProcessError::SearchPath { .. }), "{path}: {error}");
    }
}

#[test]
fn what_cannot_be_executed_is_named() {
    let scratch = Scratch::new();
    let plain = scratch.file("bin/plain", 0o644, "#!/bin/sh\n");
    let text = scratch.file("bin/text", 0o755, "echo no program at all\n");
    let empty = scratch.file("bin/empty", 0o755, "");
    let directory = scratch.path("bin");
    for (name, path) in [("plain", &plain), ("text", &text), ("empty", &empty)] {
        let error = run(&Command::new(name).search_path(&directory)).unwrap_err();
        assert!(matches!(&error, ProcessError::NotExecutable { program, .. } if program == path), "{error}");
    }
    let error = run(&Command::new(&directory)).unwrap_err();
    assert!(
        matches!(&error, ProcessError::NotExecutable { program, .. } if *program == directory),
        "{error}"
    );
}

#[test]
fn a_missing_interpreter_is_named() {
    let scratch = Scratch::new();
    let script = scratch.file("script", 0o755, "#! /no/such/shell -e\n");
    let error = run(&Command::new(&script)).unwrap_err();
    let message = format!("{script:?} needs the interpreter \"/no/such/shell\", which does not exist");
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_command_runs_in_the_root_directory_unless_told_otherwise() {
    let scratch = Scratch::new();
    scratch.file("tool", 0o755, "#!/bin/sh\npwd -P\n");
    assert_eq!(output_of(&Command::new("pwd")), "/");
    let there = scratch.0.canonicalize().unwrap().display().to_string();
    assert_eq!(output_of(&Command::new("./tool").directory(&scratch.0)), there);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 0o755, "");
    for (directory, kind) in
        [(scratch.path("missing"), io::ErrorKind::NotFound), (file, io::ErrorKind::NotADirectory)]
    {
        match run(&Command::new("true").directory(&directory)).unwrap_err() {
            ProcessError::Directory { directory: named, source, .. } => {
                assert_eq!((named, source.kind()), (directory, kind));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn the_environment_is_added_to_our_own() {
    let command =
        Command::shell("echo \"$PATH|$GIVEN\"").variable("GIVEN", "first").variable("GIVEN", "a=b c");
    assert_eq!(output_of(&command), format!("{}|a=b c", std::env::var("PATH").unwrap()));
}

#[test]
fn neither_environment_nor_input_is_in_any_argument_list() {
    let canary = format!("canary{}", std::process::id());
    let script = "read -r line; tr -d x < /proc/self/cmdline; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/cmdline; \
                  done 2>/dev/null; echo $line-$SECRET";
    for identity in [None, is_root().then(nobody)] {
        let mut command = Command::shell(script).variable("SECRET", &canary).input(canary.as_bytes());
        command.identity = identity;
        let output = run(&command).unwrap().stdout;
        let text = output.text();
        assert!(text.contains("cmdline"), "the script itself is in a list: {text}");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(&canary)).collect();
        assert_eq!(lines, [format!("{canary}-{canary}")]);
    }
}

#[test]
fn a_command_leads_its_own_session_and_process_group() {
    for identity in [None, is_root().then(nobody)] {
        let mut command = Command::shell("echo $$; cut -d' ' -f5,6 /proc/$$/stat");
        command.identity = identity;
        let output = output_of(&command);
        let (pid, leads) = output.split_once('\n').unwrap();
        assert_eq!(leads, format!("{pid} {pid}"));
    }
}

#[test]
fn only_the_three_standard_descriptors_are_open() {
    // What whoever started these tests left open is passed on, here as everywhere.
    let inherited: Vec<String> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|fd| {
            let flags = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
            let flags = flags.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("02000000");
            u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 == 0
        })
        .collect();
    // Listing the directory would open one more.
    let script =
        "fd=0; while [ $fd -lt 500 ]; do [ -e /proc/$$/fd/$fd ] && echo $fd; fd=$((fd + 1)); done; :";
    let output = output_of(&Command::shell(script).input(b"x"));
    let open: Vec<&str> = output.lines().filter(|fd| !inherited.iter().any(|known| known == fd)).collect();
    assert_eq!(open, Vec::<&str>::new());
    assert!(output.lines().take(3).eq(["0", "1", "2"]), "{output}");
}

#[test]
fn no_signal_is_blocked_and_broken_pipes_end_a_command_again() {
    let status = output_of(&Command::shell("cat /proc/self/status"));
    let mask = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        // The C library keeps two of the real-time signals, from the 32nd on, for itself.
        u64::from_str_radix(&line, 16).unwrap() & 0x7fff_ffff
    };
    let sigpipe = 1 << (13 - 1);
    let ours = fs::read_to_string("/proc/self/status").unwrap();
    assert_ne!(mask(&ours, "SigIgn:") & sigpipe, 0, "or this shows nothing");
    assert_eq!(mask(&status, "SigBlk:"), 0);
    assert_eq!(mask(&status, "SigIgn:"), mask(&ours, "SigIgn:") & !sigpipe);
}

#[test]
fn a_umask_is_the_commands_own() {
    let umask = || output_of(&Command::shell("umask"));
    let ours = umask();
    assert_eq!(output_of(&Command::shell("umask").umask(0o027)), "0027");
    assert_eq!(output_of(&Command::shell("umask").umask(0o077)), "0077");
    assert_eq!(umask(), ours);
}

#[test]
fn a_command_runs_as_another_user_with_exactly_its_groups() {
    let script =
        "grep -E '^([UG]id|Groups|CapEff):' /proc/self/status | tr -s '\\t ' ' '; umask; setpriv true";
    let result = run(&Command::shell(script).identity(nobody()).umask(0o072));
    if !is_root() {
        assert!(matches!(result, Err(ProcessError::Identity { uid: 65_534, gid: 65_533, .. })));
        return;
    }
    let text = result.unwrap().stdout.text().into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "Uid: 65534 65534 65534 65534",
            "Gid: 65533 65533 65533 65533",
            "Groups: 65531 65532",
            "CapEff: 0000000000000000",
            "0072"
        ]
    );
    // Nobody else became somebody else.
    assert_eq!(output_of(&Command::shell("id -u; id -g")), "0\n0");
    let root = Identity { uid: 0, gid: 0, groups: vec![5] };
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let command = Command::shell("id -G; grep CapEff: /proc/self/status").identity(root);
    let output = output_of(&command);
    assert_eq!(output.lines().next(), Some("0 5"));
    let capabilities = own.lines().find(|line| line.starts_with("CapEff:"));
    assert_eq!(output.lines().nth(1), capabilities, "root keeps what it can do");
}

#[test]
fn another_user_is_refused_what_only_root_can_reach() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new();
    let secret = scratch.file("closed/tool", 0o755, "#!/bin/sh\n");
    let closed = secret.parent().unwrap();
    fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).unwrap();
    let own = scratch.file("tool", 0o700, "#!/bin/sh\n");
    let error = run(&Command::new("true").directory(closed).identity(nobody())).unwrap_err();
    assert!(matches!(&error, ProcessError::Directory { directory, .. } if directory == closed), "{error}");
    let tool = || Command::new("tool").search_path(closed);
    assert_eq!(run(&tool()).unwrap().exit, Exit::Code(0));
    let error = run(&tool().identity(nobody())).unwrap_err();
    assert!(matches!(error, ProcessError::NotFound { .. }), "nobody knows what is there: {error}");
    for program in [&secret, &own] {
        assert_eq!(run(&Command::new(program)).unwrap().exit, Exit::Code(0));
        let error = run(&Command::new(program).identity(nobody())).unwrap_err();
        assert!(matches!(error, ProcessError::NotExecutable { .. }), "{error}");
    }
}
