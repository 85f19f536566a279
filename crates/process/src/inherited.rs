//! Descriptors that the program was started with, such as the lock or the pipe of a script around it.

use std::{fs, os::fd::RawFd};

use nix::unistd::close;
use rustix::{
    fs::{Mode, OFlags, open},
    io::read,
};

/// Closes what the program was started with beyond standard input, output and error: commands must not get it, and a
/// command that stays in the background would hold it for ever. To be called once everything that was named on the
/// command line, `/dev/fd/63` perhaps, has been read.
///
/// Whatever the program opens itself is marked to be closed when another program is started. What is not so marked can
/// only have come that way, and nothing here owns it.
pub fn close_inherited() {
    // Without /proc nothing is known, and the worst is what most programs do anyway.
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2 && is_passed_on(*number)) {
        let _ = close(number);
    }
}

fn is_passed_on(number: RawFd) -> bool {
    // Its flags are in the second line of a few bytes.
    let mut info = [0; 64];
    let path = format!("/proc/self/fdinfo/{number}");
    let length =
        open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).and_then(|file| read(file, &mut info));
    let info = str::from_utf8(&info[..length.unwrap_or(0)]).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0)
}
