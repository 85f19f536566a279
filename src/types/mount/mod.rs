//! The `mount` type: file systems and swap areas, mounted and in `/etc/fstab`.

mod acting;
mod decision;
mod device;
mod fstab;
mod live;

use std::{fmt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::{
    decision::Step,
    fstab::{Entry, Found, Place},
    live::Mounted,
};
use super::{
    live::{Live, ONLY},
    shared_file::{Rewrite, SharedFile},
};
use crate::{
    host::{
        files::{Attributes, Intent, Parents},
        look, system_file,
    },
    resource::{
        self, Before, Candidate, Change, Content, Context, Coverage, Effects, Error, Example, PathEffect,
        ResourceType, State, Trigger, Watches,
    },
    vocabulary::{AbsolutePath, OneLine, Size},
};

const FSTAB: &str = "/etc/fstab";
const FSTAB_MODE: u32 = 0o644;
/// Mode of a mount point that ccm creates.
const POINT_MODE: u32 = 0o755;
const SWAP: &str = "swap";

/// Manages file systems and swap areas: whether they are mounted, and their entries in `/etc/fstab`.
///
/// ccm keeps the other lines of `/etc/fstab`, and never unmounts a busy file system by force.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Mount point: an absolute path. For swap, the file or device.
    pub(crate) name: AbsolutePath,
    /// Whether the file system is mounted, now and at boot.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Device, `UUID=`, `LABEL=`, `PARTUUID=`, `server:/path`, or the directory of a bind mount. Default for swap: the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("x-argument" = true))]
    pub(crate) device: Option<Device>,
    /// Type of the file system; `swap` for a swap area. Default for a bind mount: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fstype: Option<OneLine>,
    /// Mount options, in their order.
    #[serde(default, skip_serializing_if = "Options::is_default")]
    pub(crate) options: Options,
    /// Fifth field of the entry, which `dump` reads.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) dump: u32,
    /// Sixth field of the entry: the order in which file systems are checked at boot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) pass: u32,
    /// Size of a swap file, such as `2GiB`. ccm creates and formats the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<Size>,
    /// If true, ccm creates a mount point that does not exist.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub(crate) create: bool,
    /// If true, ccm manages `/` too, replaces another file system that is mounted there, and creates a swap file of another size
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
    /// If false, only the entry in `/etc/fstab` is managed.
    #[serde(default, skip_serializing_if = "Live::is_usual")]
    pub(crate) live: Live,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Whether a file system is mounted, and whether it has an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The file system is mounted and has an entry.
    #[default]
    Mounted,
    /// The file system has an entry. ccm neither mounts nor unmounts it.
    Present,
    /// The file system is not mounted. An entry stays, or is created if `device` is given.
    Unmounted,
    /// The file system is not mounted and has no entry.
    Absent,
}

impl Ensure {
    fn word(self) -> &'static str {
        match self {
            Self::Mounted => "mounted",
            Self::Present => "present",
            Self::Unmounted => "unmounted",
            Self::Absent => "absent",
        }
    }
}

/// Device of a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneLine", into = "String")]
pub(crate) struct Device(String);

impl TryFrom<OneLine> for Device {
    type Error = String;

    fn try_from(line: OneLine) -> Result<Self, String> {
        let text = line.to_string();
        if text.trim().is_empty() {
            return Err("a device cannot be empty".to_owned());
        }
        if text.contains('=') && text.contains(['"', '\'']) {
            return Err(format!("{text:?} has quotes: write the tag without quotes, as in UUID=1234"));
        }
        Ok(Self(text))
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.0
    }
}

/// Mount options: a list, or one string with commas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct Options(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(OneLine),
    Several(Vec<OneLine>),
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let options: Vec<String> = match Written::deserialize(deserializer)? {
            Written::One(text) => text.as_str().split(',').map(str::to_owned).collect(),
            Written::Several(texts) => texts.iter().map(ToString::to_string).collect(),
        };
        match options.iter().find(|option| option.is_empty() || option.contains([',', '\t'])) {
            Some(option) => Err(serde::de::Error::custom(format!("{option:?} is not a mount option"))),
            None if options.is_empty() => Ok(Self::default()),
            None => Ok(Self(options)),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self(vec!["defaults".to_owned()])
    }
}

impl Options {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn is_bind(&self) -> bool {
        self.0.iter().any(|option| option == "bind" || option == "rbind")
    }
}

impl Properties {
    fn is_swap(&self) -> bool {
        self.fstype.as_ref().is_some_and(|fstype| fstype.as_str() == SWAP)
    }

    fn point(&self) -> &Path {
        self.name.as_path()
    }

    fn name(&self) -> String {
        self.name.as_path().display().to_string()
    }

    fn device(&self) -> Option<String> {
        let given = self.device.as_ref().map(|Device(device)| device.clone());
        given.or_else(|| self.is_swap().then(|| self.name()))
    }

    /// Returns the entry that `/etc/fstab` is to have; `None` if no device is given.
    fn entry(&self) -> Option<Entry> {
        let fstype = self.fstype.as_ref().map(ToString::to_string);
        let fstype = fstype.or_else(|| self.options.is_bind().then(|| "none".to_owned()))?;
        Some(Entry {
            device: self.device()?,
            point: if self.is_swap() { "none".to_owned() } else { self.name() },
            fstype,
            options: self.options.0.clone(),
            dump: self.dump,
            pass: self.pass,
        })
    }
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        self.ensure.word().to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        let needs_entry = matches!(self.ensure, Ensure::Mounted | Ensure::Present) && self.live != Live::Only;
        let mut problems = Vec::new();
        if needs_entry && self.device().is_none() {
            problems.push(Error::new("a mount needs a device").on("device"));
        }
        if needs_entry && self.fstype.is_none() && !self.options.is_bind() {
            let help = "add `fstype: ext4` or another type, or `options: [bind]` for a bind mount";
            problems
                .push(Error::new("a mount needs the type of its file system").on("fstype").with_help(help));
        }
        if self.size.is_some() && !self.is_swap() {
            problems
                .push(Error::new("only a swap file has a size").on("size").with_help("add `fstype: swap`"));
        }
        if self.point() == Path::new("/") && !self.force {
            let help = "set `force: true` if that is what you want";
            problems.push(Error::new("the root file system is not managed").on("name").with_help(help));
        }
        problems
    }

    fn watches(&self) -> Watches {
        // The kernel reports no changes of mounts to inotify.
        let completeness = if self.live.manages_live() { Coverage::Poll } else { Coverage::Whole };
        Watches { paths: vec![FSTAB.into()], completeness, ..Watches::default() }
    }
}

/// The entry and the mount of a file system.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MountState {
    /// Details of the file system.
    metadata: Metadata,
    #[serde(skip)]
    fstab: SharedFile,
    /// Entries of the mount point, which can be several.
    #[serde(skip)]
    entries: Vec<Found>,
    #[serde(skip)]
    live: LiveState,
}

/// Details of the file system.
#[derive(Debug, Serialize, JsonSchema)]
struct Metadata {
    /// Mount point, or swap file or device.
    name: String,
    /// Provider that inspected the file system.
    provider: String,
    /// Whether the file system is mounted, or the swap area is in use.
    mounted: bool,
    /// Device that is mounted; omitted if nothing is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    /// Type of the mounted file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    fstype: Option<String>,
    /// Options that the kernel shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<String>,
    /// Line of the entry in `/etc/fstab`; omitted if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

/// What is mounted, and what would be mounted instead.
#[derive(Debug, Default)]
struct LiveState {
    mounted: Option<Mounted>,
    /// Whether the mounted file system is the wanted one.
    is_wanted: bool,
    /// Whether a swap area is in use.
    is_swapped: bool,
    /// Whether the mount point exists.
    has_point: bool,
    /// Size of the swap file; `None` if it does not exist.
    size: Option<u64>,
}

impl LiveState {
    fn is_mounted(&self) -> bool {
        self.mounted.is_some() || self.is_swapped
    }
}

impl State for MountState {
    fn ensure(&self) -> String {
        let ensure = match (self.live.is_mounted(), self.entries.is_empty()) {
            (true, _) => Ensure::Mounted,
            (false, false) => Ensure::Present,
            (false, true) => Ensure::Absent,
        };
        ensure.word().to_owned()
    }
}

/// Steps to bring a file system to the desired state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Action {
    steps: Vec<Step>,
    store: Option<Rewrite>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let steps = self.steps.iter().map(|step| step.deed().to_owned());
        let store = self.store.as_ref().map(Rewrite::deed);
        f.write_str(&steps.chain(store).collect::<Vec<_>>().join(". "))
    }
}

/// The `mount` type.
pub(crate) struct Mount;

impl ResourceType for Mount {
    const NAME: &'static str = "mount";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A disk, also at boot, without which the machine starts all the same",
            manifest: "- mount:\n    - /srv/data:\n        device: UUID=0a1b2c3d-0000-4000-8000-000000000001\n        fstype: ext4\n        options: [noatime, nofail]\n        pass: 2\n",
        },
        Example {
            title: "A directory at a second place",
            manifest: "- mount:\n    - /var/www/media:\n        device: /srv/media\n        options: [bind, ro]\n",
        },
        Example {
            title: "A swap file",
            manifest: "- mount:\n    - /swapfile:\n        fstype: swap\n        size: 2GiB\n",
        },
        Example { title: "No such mount", manifest: "- mount:\n    - /mnt/old:\n        ensure: absent\n" },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "linux",
        summary: "`/etc/fstab`, `mount` and `umount`, `swapon` and `swapoff`.",
        make: |_| Ok(Box::new(())),
    }];

    type Properties = Properties;
    type State = MountState;
    type Action = Action;
    type Provider = ();

    fn inspect(want: &Properties, (): &(), cx: &Context) -> Result<MountState, Error> {
        let fstab = SharedFile::read(Path::new(FSTAB), FSTAB_MODE, cx)?;
        let (name, device) = (want.name(), want.device());
        let place = if want.is_swap() {
            Place::Swap(device.as_deref().unwrap_or(&name))
        } else {
            Place::Point(&name)
        };
        let entries = fstab::entries(fstab.text(), place);
        let live = inspect_live(want, cx)?;
        let mounted = live.mounted.as_ref();
        let entry = entries.first().and_then(|found| fstab.text().lines().nth(found.line - 1));
        let metadata = Metadata {
            name,
            provider: "linux".to_owned(),
            mounted: live.is_mounted(),
            device: mounted.map(|mounted| mounted.source.clone()),
            fstype: mounted.map(|mounted| mounted.fstype.clone()),
            options: mounted.map(|mounted| mounted.options.join(",")),
            entry: entry.map(str::to_owned),
        };
        Ok(MountState { metadata, fstab, entries, live })
    }

    fn compare(want: &Properties, have: &MountState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have)
    }

    fn preview(
        _: &Properties,
        _: &MountState,
        action: &Action,
        (): &(),
        _: &Context,
    ) -> Result<Option<String>, Error> {
        Ok(action.store.as_ref().and_then(Rewrite::diff))
    }

    fn simulate(
        want: &Properties,
        _: &MountState,
        action: &Action,
        (): &(),
        cx: &Context,
    ) -> Result<(), Error> {
        let mounts = action.steps.contains(&Step::Mount);
        let device = want.device().unwrap_or_default();
        if mounts && device::is_missing(&device) {
            let message = format!("the device {device} does not exist");
            if !cx.may_differ() && cx.prediction.borrow().is_empty() {
                return Err(Error::new(message).on("device"));
            }
            cx.assume(format!("{message} yet; assuming that an earlier resource creates it"));
        }
        Ok(())
    }

    fn effects(want: &Properties, have: &MountState, action: &Action, _: &Context) -> Effects {
        let mut paths = action.store.as_ref().map(Rewrite::effects).unwrap_or_default();
        let operation = |intent, content| PathEffect::Operation {
            path: want.point().to_owned(),
            intent,
            sha256: None,
            content,
        };
        if action.steps.contains(&Step::CreatePoint) {
            let attributes = Attributes { uid: 0, gid: 0, mode: POINT_MODE };
            paths.push(operation(Intent::MakeDirectory(attributes, Parents::Make), Content::Kept));
        }
        if action.steps.contains(&Step::CreateFile) && have.live.size.is_none() {
            let attributes = Attributes { uid: 0, gid: 0, mode: acting::SWAP_MODE };
            paths.push(operation(Intent::Write(attributes), Content::Unknown));
        }
        Effects { paths, ..Effects::default() }
    }

    fn before(want: &Properties, have: &MountState, action: &Action) -> Before {
        if action.steps.iter().all(|step| matches!(step, Step::CreatePoint | Step::CreateFile)) {
            return Before::Paths;
        }
        let live = &have.live;
        // An entry knows the directory of a bind mount; the kernel shows only its device.
        let entry = have.entries.first().map(|found| &found.entry).filter(|_| live.is_wanted);
        let properties = match (&live.mounted, entry) {
            (Some(mounted), Some(entry)) => json!({
                "ensure": "mounted",
                "device": entry.device,
                "fstype": if entry.fstype == "none" { None } else { Some(&entry.fstype) },
                "options": entry.options.iter().chain(&mounted.options).collect::<Vec<_>>(),
                "live": ONLY,
            }),
            (Some(mounted), None) => json!({
                "ensure": "mounted",
                "device": mounted.source,
                "fstype": mounted.fstype,
                "options": mounted.options,
                "live": ONLY,
            }),
            (None, _) if want.is_swap() => json!({
                "ensure": if live.is_swapped { "mounted" } else { "unmounted" },
                "device": want.device(),
                "fstype": SWAP,
                "live": ONLY,
            }),
            (None, _) => json!({ "ensure": "unmounted", "live": ONLY }),
        };
        Before::paths_and_resource(properties, &["mounted", "device"])
    }

    fn enact(
        want: &Properties,
        have: &MountState,
        action: Action,
        on: &(),
        cx: &Context,
    ) -> Result<MountState, Error> {
        acting::enact(want, have, &action, cx)?;
        Self::inspect(want, on, cx)
    }
}

fn inspect_live(want: &Properties, cx: &Context) -> Result<LiveState, Error> {
    let read = |path: &str| {
        system_file::read(path).map_err(|error| Error::new(format!("cannot read {path}: {error}")))
    };
    let has_point = super::disk::entry(want.point(), cx).is_ok_and(|entry| entry.is_some());
    if want.is_swap() {
        let device = want.device().unwrap_or_default();
        let names = [device.clone(), device::real(&device)];
        let size = look::is_file(Path::new(&device)).then(|| device::size(&device)).flatten();
        let is_swapped = live::is_swapped(&system_file::read("/proc/swaps").unwrap_or_default(), &names);
        return Ok(LiveState { is_swapped, is_wanted: true, has_point, size, mounted: None });
    }
    let mounts = live::mounts(&read("/proc/self/mountinfo")?);
    let mounted = live::topmost(&mounts, &want.name()).cloned();
    let is_wanted = mounted.as_ref().is_some_and(|mounted| {
        want.entry().is_none_or(|entry| device::is_mounted(mounted, &entry, want.options.is_bind(), &mounts))
    });
    Ok(LiveState { mounted, is_wanted, has_point, is_swapped: false, size: None })
}
