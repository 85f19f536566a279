//! What is mounted: `/proc/self/mountinfo` and `/proc/swaps`.

use super::fstab::decoded;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) id: u64,
    parent: u64,
    /// Major and minor number of the device.
    pub(super) number: String,
    /// Directory of the file system that is mounted.
    pub(super) root: String,
    pub(super) point: String,
    /// Options of the mount and of the file system.
    pub(super) options: Vec<String>,
    pub(super) fstype: String,
    pub(super) source: String,
}

/// Reads the table of mounts.
pub(super) fn mounts(text: &str) -> Vec<Mounted> {
    text.lines().filter_map(mounted).collect()
}

fn mounted(line: &str) -> Option<Mounted> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let mut next = || before.next();
    let (id, parent, number, root, point, own) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let mut after = after.split(' ');
    let (fstype, source, shared) = (after.next()?, after.next()?, after.next().unwrap_or_default());
    let mut options: Vec<String> = Vec::new();
    for option in own.split(',').chain(shared.split(',')).map(decoded) {
        // The file system can be writable while the mount is not.
        let contradicts = option == "rw" && own.split(',').any(|own| own == "ro");
        if !contradicts && !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mounted {
        id: id.parse().ok()?,
        parent: parent.parse().ok()?,
        number: number.to_owned(),
        root: decoded(root),
        point: decoded(point),
        options,
        fstype: fstype.to_owned(),
        source: decoded(source),
    })
}

/// Returns the mount that is seen at a path.
pub(super) fn topmost<'m>(mounts: &'m [Mounted], point: &str) -> Option<&'m Mounted> {
    let here = || mounts.iter().filter(|mounted| mounted.point == point);
    here().find(|mounted| here().all(|other| other.parent != mounted.id || other.id == mounted.id))
}

/// Returns the device number and the directory that a bind mount of a path has.
pub(super) fn origin(mounts: &[Mounted], path: &str) -> Option<(String, String)> {
    let contains = |point: &str| {
        point == "/" || path == point || path.strip_prefix(point).is_some_and(|rest| rest.starts_with('/'))
    };
    let longest = mounts.iter().filter(|mounted| contains(&mounted.point)).map(|mounted| &mounted.point);
    let mount = topmost(mounts, longest.max_by_key(|point| point.len())?)?;
    let below = path.strip_prefix(mount.point.trim_end_matches('/')).unwrap_or_default();
    let root = format!("{}{below}", mount.root.trim_end_matches('/'));
    Some((mount.number.clone(), if root.is_empty() { "/".to_owned() } else { root }))
}

/// Whether a swap area is in use.
pub(super) fn is_swapped(swaps: &str, devices: &[String]) -> bool {
    let used = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(decoded);
    used.into_iter().any(|used| devices.contains(&used))
}

/// Options that the kernel shows exactly when they are set.
const SHOWN: [(&str, &str); 6] = [
    ("ro", "rw"),
    ("nosuid", "suid"),
    ("nodev", "dev"),
    ("noexec", "exec"),
    ("sync", "async"),
    ("noatime", "atime"),
];

/// Returns the options that a mount does not have as wanted. Options that the kernel does not show are not compared.
pub(super) fn different(wanted: &[String], shown: &[String]) -> Vec<String> {
    let mut different: Vec<String> = Vec::new();
    let last = |one: &str, other: &str| {
        wanted.iter().rfind(|option| *option == one || *option == other).is_some_and(|option| option == one)
    };
    for (set, unset) in SHOWN {
        let is_wanted = last(set, unset);
        let is_shown = shown.iter().any(|option| option == set);
        match (is_wanted, is_shown) {
            (true, false) => different.push(set.to_owned()),
            (false, true) => different.push(unset.to_owned()),
            _ => {}
        }
    }
    for option in wanted {
        let Some((key, value)) = option.split_once('=') else { continue };
        let found = shown.iter().filter_map(|shown| shown.split_once('=')).find(|(shown, _)| *shown == key);
        if found.is_some_and(|(_, found)| !is_same_value(key, value, found)) {
            different.push(option.clone());
        }
    }
    different
}

/// Whether two spellings of a value are one value, as the kernel prints it.
fn is_same_value(key: &str, one: &str, other: &str) -> bool {
    let is_octal = matches!(key, "mode" | "umask" | "dmask" | "fmask");
    let octal = |text: &str| u32::from_str_radix(text, 8).ok();
    if one == other || is_octal && octal(one).is_some() && octal(one) == octal(other) {
        return true;
    }
    matches!((bytes(one), bytes(other)), (Some(one), Some(other)) if one == other)
        // The kernel prints what is left after a percentage was taken.
        || one.ends_with('%')
}

/// Returns a number with a unit in bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro
30 22 0:27 / /mnt rw,nosuid - tmpfs tmpfs rw,size=1024k
31 30 254:0 /srv/data /mnt ro - ext4 /dev/vda rw
32 22 0:28 / /with\\040space rw - tmpfs none rw
";

    #[test]
    fn the_last_mount_at_a_path_is_seen() {
        let mounts = mounts(TABLE);
        assert_eq!(mounts.len(), 4);
        let seen = topmost(&mounts, "/mnt").unwrap();
        assert_eq!((seen.id, seen.root.as_str(), seen.fstype.as_str()), (31, "/srv/data", "ext4"));
        assert_eq!(seen.options, ["ro"]);
        assert_eq!(topmost(&mounts, "/with space").unwrap().source, "none");
        assert_eq!(topmost(&mounts, "/srv"), None);
    }

    #[test]
    fn bind_mount_is_recognised_by_device_and_directory() {
        let mounts = mounts(TABLE);
        for (path, number, root) in [
            ("/srv/data", "254:0", "/srv/data"),
            ("/", "254:0", "/"),
            ("/mnt/x", "254:0", "/srv/data/x"),
            ("/with space", "0:28", "/"),
        ] {
            assert_eq!(origin(&mounts, path), Some((number.to_owned(), root.to_owned())), "{path}");
        }
    }

    #[test]
    fn options_that_the_kernel_shows_are_compared() {
        let list = |text: &str| -> Vec<String> {
            text.split(',').filter(|option| !option.is_empty()).map(str::to_owned).collect()
        };
        for (wanted, shown, expected) in [
            ("defaults", "rw,relatime", ""),
            ("defaults,nofail,x-systemd.automount,_netdev", "rw,relatime", ""),
            ("ro,noexec", "rw,relatime", "ro,noexec"),
            ("rw", "ro,noexec", "rw,exec"),
            ("ro,rw", "rw", ""),
            ("size=1M,mode=0755", "rw,size=1024k,mode=755", ""),
            ("size=2M", "rw,size=1024k", "size=2M"),
            ("size=50%", "rw,size=1024k", ""),
            ("uid=0", "rw", ""),
            ("errors=remount-ro", "rw,errors=continue", "errors=remount-ro"),
        ] {
            assert_eq!(different(&list(wanted), &list(shown)), list(expected), "{wanted} {shown}");
        }
    }

    #[test]
    fn swap_areas_in_use_are_listed_by_their_file() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swap\\040file file 1048572 0 -2\n";
        assert!(is_swapped(text, &["/swap file".to_owned()]));
        assert!(!is_swapped(text, &["/other".to_owned()]));
    }
}
