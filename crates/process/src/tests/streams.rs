//! What goes in and what comes out.

use super::*;

/// Several times what a pipe holds.
const LARGE: usize = 10 * 1024 * 1024;

#[test]
fn the_input_is_empty_unless_given() {
    assert_eq!(output_of(&Command::shell("cat; readlink /proc/self/fd/0")), "/dev/null");
    assert_eq!(output_of(&Command::new("cat").input(b"given")), "given");
}

#[test]
fn a_large_input_passes_through() {
    let input = vec![b'x'; LARGE];
    let command = Command::new("cat").input(&input).keep(Keep::Whole(LARGE));
    assert!(run(&command).unwrap().stdout.bytes == input);
}

#[test]
fn an_input_that_is_not_read_harms_nobody() {
    let input = vec![b'x'; LARGE];
    assert_eq!(output_of(&Command::new("head").arguments(["-c", "1"]).input(&input)), "x");
    assert_eq!(output_of(&Command::new("true").input(&input)), "");
}

#[test]
fn the_outputs_are_kept_apart() {
    let finished = run(&Command::shell("echo out; echo err >&2")).unwrap();
    assert_eq!((&*finished.stdout.text(), &*finished.stderr.text()), ("out\n", "err\n"));
}

#[test]
fn the_last_lines_are_kept() {
    let command = Command::shell("seq 1 100000; echo last").keep(Keep::Tail(1000));
    let stdout = run(&command).unwrap().stdout;
    let text = stdout.text();
    assert!(text.ends_with("\n99999\n100000\nlast\n"));
    assert!(text.len() <= 1000 && text.len() > 900);
    assert!(text.lines().all(|line| line == "last" || line.parse::<u32>().is_ok_and(|n| n > 99_000)));
    assert_eq!(stdout.dropped + stdout.bytes.len() as u64, 588_895 + 5);
}

#[test]
fn lines_are_seen_when_they_are_written() {
    let scratch = Scratch::new();
    let go = scratch.path("go");
    let script = "echo first; while [ ! -e \"$GO\" ]; do sleep 0.01; done; printf 'sec\\377ond' >&2";
    let mut seen = Vec::new();
    let command = Command::shell(script).variable("GO", &go).timeout(LONG);
    let finished =
        command.run_watched(&runner().runner, &Interrupt::never().unwrap(), &mut |stream, line| {
            seen.push((stream, line.to_owned()));
            fs::write(&go, "").unwrap();
        });
    assert_eq!(finished.unwrap().exit, Exit::Code(0), "it went on because its first line was seen");
    let expected = [(Stream::Stdout, "first".to_owned()), (Stream::Stderr, "sec\u{fffd}ond".to_owned())];
    assert_eq!(seen, expected);
}

#[test]
fn output_that_is_needed_whole_has_a_limit() {
    let command = |limit| Command::shell("echo 1234567").keep(Keep::Whole(limit));
    assert_eq!(output_of(&command(8)), "1234567");
    let cause = Cause::TooMuchOutput { stream: Stream::Stdout, limit: 7 };
    assert_eq!(stopped(run(&command(7))).cause, cause);
    let endless = Command::shell("yes >&2").keep(Keep::Whole(LARGE)).timeout(LONG);
    let stopped = stopped(run(&endless));
    assert_eq!(stopped.cause, Cause::TooMuchOutput { stream: Stream::Stderr, limit: LARGE });
    assert!(stopped.to_string().contains("wrote more than 10485760 bytes to its standard error"));
}

#[test]
fn output_without_end_needs_little_memory() {
    assert_passed(&run_alone("streams::much_output_alone", in_shell));
}

#[test]
#[ignore = "measures its process: `output_without_end_needs_little_memory` gives it one"]
fn much_output_alone() {
    fn peak() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }
    let before = peak();
    let script =
        "head -c 67108864 /dev/zero & yes $(printf %01023d 7) | head -c 67108864 >&2; wait; echo; echo end";
    let mut longest = 0;
    let finished = Command::shell(script)
        .run_watched(&runner().runner, &Interrupt::never().unwrap(), &mut |_, line| {
            longest = longest.max(line.len());
        })
        .unwrap();
    assert_eq!(finished.stdout.dropped + finished.stdout.bytes.len() as u64, (64 << 20) + 5);
    assert_eq!(finished.stderr.dropped + finished.stderr.bytes.len() as u64, 64 << 20);
    assert_eq!(finished.stdout.text(), "end\n");
    assert!(finished.stderr.text().lines().all(|line| line.len() == 1023 && line.ends_with("07")));
    assert!(longest <= super::super::output::LONGEST_LINE);
    // Pages of the program itself that are first needed here count too: many MiB in a debug build.
    assert!(peak() - before < 32 * 1024, "grew by {} KiB", peak() - before);
}
