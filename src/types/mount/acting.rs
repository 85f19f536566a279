//! Mounting and unmounting.

use std::path::Path;

use super::{Action, MountState, Properties, SWAP, decision::Step};
use crate::{
    host::{
        files::{self, Attributes, Parents},
        look, open_files,
        process::Command,
    },
    resource::{Context, Error},
    types::{
        disk::{blame, note_parent, note_parents, stop},
        program,
    },
};

pub(super) const SWAP_MODE: u32 = 0o600;
const CHUNK: usize = 1 << 20;
/// Number of processes that an error names.
const NAMED: usize = 5;
/// Options that are for other programs than `mount`.
const FOR_OTHERS: [&str; 6] = ["nofail", "noauto", "auto", "_netdev", "user", "users"];

pub(super) fn enact(
    want: &Properties,
    have: &MountState,
    action: &Action,
    cx: &Context,
) -> Result<(), Error> {
    refuse_unit(want)?;
    for step in &action.steps {
        take(*step, want, have, cx)?;
    }
    if let Some(store) = &action.store {
        store.make(cx)?;
        if look::is_directory(Path::new("/run/systemd/system")) {
            program::succeed("systemctl", Command::new("systemctl").arguments(["daemon-reload"]), cx)?;
        }
    }
    Ok(())
}

fn take(step: Step, want: &Properties, have: &MountState, cx: &Context) -> Result<(), Error> {
    let name = want.name();
    let device = want.device().unwrap_or_default();
    match step {
        Step::CreatePoint => {
            note_parents(want.point(), cx);
            let attributes = Attributes::own(super::POINT_MODE);
            files::make_directory(want.point(), attributes, Parents::Make).map_err(|error| blame(error, cx))
        }
        Step::CreateFile => create_swap(want, cx),
        Step::Unmount => unmount(&name, cx),
        Step::Mount => mount(want, &options(want, None), &device, cx),
        Step::Remount => {
            let shown = have.live.mounted.as_ref().map(|mounted| mounted.options.as_slice());
            let command = Command::new("mount").arguments(["-o", &options(want, shown), "--", &name]);
            program::succeed("mount", command, cx).map(drop)
        }
        Step::SwapOn => {
            program::succeed("swapon", Command::new("swapon").arguments(["--", &swap_device(&device)]), cx)
                .map(drop)
        }
        Step::SwapOff => {
            program::succeed("swapoff", Command::new("swapoff").arguments(["--", &swap_device(&device)]), cx)
                .map(drop)
        }
    }
}

/// `swapon` knows tags only as options, and takes paths.
fn swap_device(device: &str) -> String {
    super::device::real(device)
}

/// Returns the options of a mount. A remount names what the kernel shows and is not wanted.
fn options(want: &Properties, shown: Option<&[String]>) -> String {
    let is_own = |option: &&String| !FOR_OTHERS.contains(&option.as_str()) && !option.starts_with("x-");
    let mut options: Vec<String> = Vec::new();
    if let Some(shown) = shown {
        options.push("remount".to_owned());
        if want.options.is_bind() {
            options.push("bind".to_owned());
        }
        options.extend(super::live::different(&want.options.0, shown));
    }
    options.extend(
        want.options.0.iter().filter(is_own).filter(|option| shown.is_none() || !is_bind(option)).cloned(),
    );
    let mut seen = std::collections::HashSet::new();
    options.retain(|option| seen.insert(option.clone()));
    options.join(",")
}

fn is_bind(option: &str) -> bool {
    option == "bind" || option == "rbind"
}

fn mount(want: &Properties, options: &str, device: &str, cx: &Context) -> Result<(), Error> {
    let name = want.name();
    let mut words = Vec::new();
    if let Some(fstype) =
        want.fstype.as_ref().filter(|fstype| fstype.as_str() != "none" && fstype.as_str() != SWAP)
    {
        words.extend(["-t".to_owned(), fstype.to_string()]);
    }
    words.extend(["-o", options, "--", device, &name].map(str::to_owned));
    program::succeed("mount", Command::new("mount").arguments(words), cx)?;
    // A bind mount takes its own options only from a remount.
    let own = want.options.0.iter().any(|option| !is_bind(option) && option != "defaults");
    if want.options.is_bind() && own {
        let options = self::options(want, Some(&[]));
        let command = Command::new("mount").arguments(["-o", &options, "--", &name]);
        program::succeed("mount", command, cx)?;
    }
    Ok(())
}

fn unmount(name: &str, cx: &Context) -> Result<(), Error> {
    let command = Command::new("umount").arguments(["--", name]);
    program::succeed("umount", command, cx).map(drop).map_err(|error| {
        if !error.message.contains("busy") {
            return error;
        }
        let users = open_files::users_of(Path::new(name), NAMED);
        if users.is_empty() {
            return error.with_help("another file system is mounted below it, or a process uses it");
        }
        let users = users.iter().map(|(pid, program)| format!("{program} (pid {pid})")).collect::<Vec<_>>();
        Error::new(format!("{name} is in use by {}", users.join(", ")))
            .with_help("stop these processes first")
    })
}

fn create_swap(want: &Properties, cx: &Context) -> Result<(), Error> {
    let size = want.size.map_or(0, crate::vocabulary::Size::bytes);
    note_parent(want.point(), cx);
    let zeros = vec![0_u8; CHUNK];
    // The file has no holes: the kernel refuses a swap file with holes.
    let fill = |out: &mut dyn std::io::Write| {
        let mut left = size;
        while left > 0 {
            stop(cx).map_err(|_| std::io::Error::from(std::io::ErrorKind::Interrupted))?;
            let count = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            out.write_all(&zeros[..count])?;
            left -= count as u64;
        }
        Ok(())
    };
    files::replace(want.point(), Attributes { uid: 0, gid: 0, mode: SWAP_MODE }, fill)
        .map_err(|error| blame(error, cx))?;
    program::succeed("mkswap", Command::new("mkswap").arguments(["--", &want.name()]), cx).map(drop)
}

/// Fails if a unit of systemd mounts the same path.
fn refuse_unit(want: &Properties) -> Result<(), Error> {
    let unit = if want.is_swap() { return Ok(()) } else { unit_name(&want.name()) };
    for directory in [
        "/etc/systemd/system",
        "/run/systemd/system",
        "/usr/local/lib/systemd/system",
        "/usr/lib/systemd/system",
    ] {
        let path = format!("{directory}/{unit}");
        if look::exists(Path::new(&path)) {
            let message = format!("the unit {path} mounts {}, too", want.name());
            let help = "remove the unit, or manage it with `file` and `service` instead";
            return Err(Error::new(message).on("name").with_help(help));
        }
    }
    Ok(())
}

/// Returns the name of the unit of a mount point, as `systemd-escape --path --suffix=mount` does.
fn unit_name(point: &str) -> String {
    let path = point.trim_matches('/');
    if path.is_empty() {
        return "-.mount".to_owned();
    }
    let escape = |(at, byte): (usize, u8)| match byte {
        b'/' => "-".to_owned(),
        b'.' if at == 0 => "\\x2e".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => char::from(byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    let name: String = path.bytes().enumerate().map(escape).collect();
    name + ".mount"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_units_are_those_of_systemd() {
        for (point, unit) in [
            ("/", "-.mount"),
            ("/srv/data", "srv-data.mount"),
            ("/srv/my-data", "srv-my\\x2ddata.mount"),
            ("/.a b", "\\x2ea\\x20b.mount"),
        ] {
            assert_eq!(unit_name(point), unit);
        }
    }
}
