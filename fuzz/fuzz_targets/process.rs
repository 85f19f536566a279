//! Any output of a command: the kept and the dropped bytes add up, and every line is shown.
#![no_main]

use ccm_process::{Command, Keep, Runner, Stream, interrupt::Interrupt};
use libfuzzer_sys::fuzz_target;

// The first byte selects how much is kept. `cat` prints the rest.
fuzz_target!(|bytes: &[u8]| {
    let Some((choice, text)) = bytes.split_first() else { return };
    let limit = usize::from(choice >> 1) + 1;
    let keeps_end = choice & 1 == 0;
    let keep = if keeps_end { Keep::Tail(limit) } else { Keep::Head(limit) };
    let (runner, interrupt) = (Runner::default(), Interrupt::never().expect("no signals"));
    let mut shown = String::new();
    let finished = Command::new("cat").input(text).keep(keep).run_watched(&runner, &interrupt, &mut |stream, line| {
        assert_eq!(stream, Stream::Stdout);
        shown.push_str(line);
    });
    let output = finished.expect("cat copies its input").stdout;
    assert!(output.bytes.len() <= limit);
    assert_eq!(output.dropped + output.bytes.len() as u64, text.len() as u64);
    assert!(if keeps_end { text.ends_with(&output.bytes) } else { text.starts_with(&output.bytes) });
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    assert_eq!(letters(&shown), letters(&String::from_utf8_lossy(text)));
});
