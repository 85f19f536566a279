//! What has to happen to a file system, and to its entry.

use std::path::Path;

use super::{
    Action, Ensure, MountState, Properties,
    fstab::{with_entry, without_line},
    live::{Mounted, different},
};
use crate::resource::{Change, Difference, Error};

/// A step on the live state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    CreatePoint,
    CreateFile,
    Unmount,
    Mount,
    Remount,
    SwapOff,
    SwapOn,
}

impl Step {
    pub(super) fn deed(self) -> &'static str {
        match self {
            Self::CreatePoint => "created the mount point",
            Self::CreateFile => "created the swap file",
            Self::Unmount => "unmounted",
            Self::Mount => "mounted",
            Self::Remount => "remounted",
            Self::SwapOff => "disabled the swap area",
            Self::SwapOn => "enabled the swap area",
        }
    }
}

pub(super) fn compare(want: &Properties, have: &MountState) -> Result<Option<Change<Action>>, Error> {
    if let [first, second, ..] = &have.entries[..] {
        let message = format!(
            "/etc/fstab has two entries for {}: lines {} and {}",
            want.name(),
            first.line,
            second.line
        );
        return Err(Error::new(message).on("name").with_help("remove one of them"));
    }
    let mut differences = Vec::new();
    let text = have.fstab.text();
    let found = have.entries.first();
    let new = match (want.ensure, want.entry()) {
        _ if !want.live.manages_stored() => None,
        (Ensure::Absent, _) => found.map(|found| without_line(text, found.line)),
        (Ensure::Unmounted, None) => None,
        (_, entry) => entry.filter(|entry| found.is_none_or(|found| found.entry != *entry)).map(|entry| {
            if let Some(found) = found {
                let old = &found.entry;
                if old.device != entry.device {
                    differences.push(Difference::between("device", &old.device, &entry.device));
                }
                if old.fstype != entry.fstype {
                    differences.push(Difference::between("fstype", &old.fstype, &entry.fstype));
                }
                if old.options != entry.options {
                    differences.push(Difference::between(
                        "options",
                        old.options.join(","),
                        entry.options.join(","),
                    ));
                }
            }
            with_entry(text, &entry, found.map(|found| found.line))
        }),
    };
    let store = new.and_then(|new| have.fstab.become_text(Some(new)));
    let has_options_changed = differences.iter().any(|difference| difference.property == "options");
    let steps = if want.live.manages_live() {
        live(want, have, store.is_some(), has_options_changed, &mut differences)?
    } else {
        Vec::new()
    };
    let is_idle = steps.is_empty() && store.is_none();
    Ok((!is_idle).then_some(Change { action: Action { steps, store }, differences, refreshes: false }))
}

fn live(
    want: &Properties,
    have: &MountState,
    has_entry_changed: bool,
    have_options_changed: bool,
    differences: &mut Vec<Difference>,
) -> Result<Vec<Step>, Error> {
    if want.is_swap() {
        return swap(want, have, differences);
    }
    let mut steps = Vec::new();
    match (want.ensure, &have.live.mounted) {
        (Ensure::Present, _) | (Ensure::Unmounted | Ensure::Absent, None) => {}
        (Ensure::Unmounted | Ensure::Absent, Some(_)) => steps.push(Step::Unmount),
        (Ensure::Mounted, None) => {
            if !have.live.has_point {
                if !want.create {
                    let message = format!("the mount point {} does not exist", want.name());
                    return Err(Error::new(message).on("create"));
                }
                steps.push(Step::CreatePoint);
            }
            steps.push(Step::Mount);
        }
        (Ensure::Mounted, Some(mounted)) if have.live.is_wanted => {
            let different = different(&want.options.0, &mounted.options);
            if !different.is_empty() || have_options_changed {
                let shown = mounted.options.join(",");
                if !different.is_empty() {
                    differences.push(Difference::between("options", shown, want.options.0.join(",")));
                }
                steps.push(Step::Remount);
            }
        }
        (Ensure::Mounted, Some(mounted)) if has_entry_changed || want.force => {
            differences.push(Difference::between(
                "device",
                &mounted.source,
                want.device().unwrap_or_default(),
            ));
            steps.extend([Step::Unmount, Step::Mount]);
        }
        (Ensure::Mounted, Some(mounted)) => return Err(occupied(want, mounted)),
    }
    Ok(steps)
}

fn occupied(want: &Properties, mounted: &Mounted) -> Error {
    let message = format!(
        "{} ({}) is mounted at {} instead of {}",
        mounted.source,
        mounted.fstype,
        want.name(),
        want.device().unwrap_or_default()
    );
    Error::new(message).on("device").with_help("unmount it, or set `force: true` to replace it")
}

fn swap(want: &Properties, have: &MountState, differences: &mut Vec<Difference>) -> Result<Vec<Step>, Error> {
    let live = &have.live;
    let mut steps = Vec::new();
    match want.ensure {
        Ensure::Present => {}
        Ensure::Unmounted | Ensure::Absent => steps.extend(live.is_swapped.then_some(Step::SwapOff)),
        Ensure::Mounted => {
            let wanted = want.size.map(crate::vocabulary::Size::bytes);
            match (wanted, live.size) {
                (Some(_), None) => steps.push(Step::CreateFile),
                (Some(wanted), Some(size)) if wanted != size && want.force => {
                    differences.push(Difference::between("size", size, wanted));
                    steps.extend(live.is_swapped.then_some(Step::SwapOff));
                    steps.push(Step::CreateFile);
                }
                (Some(wanted), Some(size)) if wanted != size => {
                    let message = format!("{} has {size} bytes instead of {wanted}", want.name());
                    let help = "set `force: true` to create the swap file again";
                    return Err(Error::new(message).on("size").with_help(help));
                }
                _ => {}
            }
            if !live.is_swapped || steps.contains(&Step::CreateFile) {
                steps.push(Step::SwapOn);
            }
        }
    }
    if want.size.is_some() && Path::new(&want.name()) != Path::new(&want.device().unwrap_or_default()) {
        return Err(Error::new("a swap file with a size is its own device").on("device"));
    }
    Ok(steps)
}
