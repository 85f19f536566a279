//! File descriptors that this process inherited, such as the lock or the pipe of a calling script.

use std::{fs, os::fd::RawFd};

use nix::unistd::close;
use rustix::{
    fs::{Mode, OFlags, open},
    io::read,
};

/// Closes all inherited descriptors except standard input, output and error. Otherwise commands would inherit them, and a
/// command in the background would keep them open. Call this after reading paths like `/dev/fd/63` of the command line.
///
/// This process opens its own descriptors with close-on-exec. So a descriptor without that flag is inherited, and nothing
/// in this process owns it.
pub fn close_inherited() {
    // Without /proc, commands inherit the descriptors, as in most programs.
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
