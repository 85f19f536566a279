//! Observes mounts and their usage.

use std::{fs, sync::mpsc, thread, time::Duration};

use super::{
    super::lens::{Lens, Seen, Unseen},
    Observer,
};
use crate::checks::{Observed, Rule};

const TIMEOUT: Duration = Duration::from_secs(1);

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    options: Vec<String>,
    filesystem: String,
    source: String,
    super_options: Vec<String>,
}

pub(super) fn observer<'a>(rule: &'a Rule, lens: &'a Lens<'a>) -> Observer<'a> {
    let own = rule.options.timeout.unwrap_or(TIMEOUT);
    Box::new(move |property| {
        let table = fs::read_to_string("/proc/self/mountinfo")
            .map_err(|error| Unseen::Cannot(format!("the mounts cannot be listed: {error}")))?;
        match (property, topmost(&table, &rule.subject)) {
            ("exists", found) => Ok(found.is_some().into()),
            (_, None) => Err(Unseen::Not("nothing is mounted there".to_owned())),
            ("opts", Some(mount)) => Ok(mount.options.into()),
            ("vfs-opts", Some(mount)) => Ok(mount.super_options.into()),
            ("source", Some(mount)) => Ok(mount.source.as_str().into()),
            ("filesystem", Some(mount)) => Ok(mount.filesystem.as_str().into()),
            (_, Some(_)) => usage(&rule.subject, own, lens),
        }
    })
}

/// Returns the topmost mount at a path, which is the last one in the table.
fn topmost(table: &str, path: &str) -> Option<Mount> {
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    table.lines().filter_map(|line| read(line, path)).next_back()
}

fn read(line: &str, path: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(4);
    let (mountpoint, options) = (unescaped(before.next()?), before.next()?);
    if mountpoint != path {
        return None;
    }
    let mut after = after.split(' ');
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    Some(Mount {
        options: list(options),
        filesystem: after.next()?.to_owned(),
        source: unescaped(after.next()?),
        super_options: list(after.next()?),
    })
}

/// Decodes the octal escapes of spaces and backslashes in a field of the table.
fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 4);
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            None => {
                text.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    text + rest
}

/// Returns the usage in percent, as `df` prints it. Does not wait for a server that does not respond.
fn usage(path: &str, own: Duration, lens: &Lens) -> Seen {
    let (tell, told) = mpsc::channel();
    let path = path.to_owned();
    let ask = move || {
        let _ = tell.send(rustix::fs::statvfs(&path));
    };
    thread::Builder::new()
        .name("statvfs".to_owned())
        .spawn(ask)
        .map_err(|error| Unseen::Cannot(error.to_string()))?;
    let stat = told.recv_timeout(lens.within(own)).map_err(|_| lens.too_slow(own))?;
    let stat = stat.map_err(|error| Unseen::Cannot(error.to_string()))?;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    let all = used + stat.f_bavail;
    let percent = if all == 0 { 0 } else { (used * 100).div_ceil(all) };
    Ok(Observed::from(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_mount_counts() {
        let table = "1 0 8:1 / /mnt rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
                     2 1 0:5 / /mnt ro,nosuid - tmpfs tmp rw,size=1k\n\
                     3 1 0:6 / /a\\040b rw - nfs h:/x rw\n";
        let mount = topmost(table, "/mnt/").unwrap();
        assert_eq!((mount.filesystem.as_str(), mount.options.join(",").as_str()), ("tmpfs", "ro,nosuid"));
        assert_eq!(topmost(table, "/a b").unwrap().source, "h:/x");
        assert_eq!(topmost(table, "/m"), None);
    }
}
