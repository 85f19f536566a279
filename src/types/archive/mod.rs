//! The `archive` type: archives that are downloaded, verified, unpacked and cleaned up after.

mod checksums;
mod creation;
mod decision;
mod download;
mod error;
mod extraction;
mod hashing;
mod http;
mod simulation;
mod state;
mod verification;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{error::ArchiveError, http::Http, state::ArchiveState};
use crate::{
    download::header_problems,
    host::unpack::{ArchiveFormat, Limits},
    resource::{
        self, Behavior, Candidate, Change, Context, Coverage, Effects, Error, Example, Makes, Managed,
        ResourceType, Trigger, Watches,
    },
    state::{Origin, Unpacking},
    types::ownership::{Ownership, missing},
    vocabulary::{AbsolutePath, Account, Algorithm, Checksum, Mode, Secret, Size, Url},
};

/// Archives that are downloaded over http or https, verified, unpacked and, if wanted, removed again.
///
/// A download appears at its path complete, verified and with its owner and mode, or not at all. An archive is unpacked
/// into a private directory on the same file system; when everything in it is in order, its files are moved to their
/// places, each at once and `creates` last. If `extract_parent` did not exist, the whole tree appears at once. A run
/// that is killed in between is finished by the next one. An archive that holds absolute paths, `..`, links that lead
/// out of it, devices, duplicates or more than it may is refused whole; set-id bits are dropped.
///
/// What was unpacked is remembered for its `extract_parent`, by the archive's path and by what it `creates`: a new
/// `checksum` is noticed as another version even after `cleanup` and under another name, and files that the new version
/// no longer has are removed if nobody has changed them. Directories that exist already keep their owner and mode.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the archive file. It ends like the URL, in one of .tar.gz .tgz .tar .zip .tar.xz .txz .tar.bz2
    /// .tbz2 .tar.zst .tzst. Its directory must exist.
    pub(crate) name: AbsolutePath,
    /// Whether the archive is to be there (and unpacked, if asked for) or its file to be gone. What was unpacked stays.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// Where to download it from, http or https. A user, password and query in it are never shown. Required unless `ensure` is
    /// `absent`. Redirects are followed, but never from https to http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<Url>,
    /// What the download must hash to: the hex digits of its SHA-256, or `sha512:` and those of its SHA-512. A file that
    /// is there already and differs is downloaded again. Without it, whatever the server sends is believed. When `url`
    /// changes and this does not, nothing is downloaded, and a warning says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<Checksum>,
    /// Where to get the checksum from when a download is needed: a file like `SHA256SUMS` with a line for the archive,
    /// or with a checksum alone. Not together with `checksum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum_url: Option<Url>,
    /// The directory to unpack into. If it does not exist it is made, with its parents, mode 0755.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extract_parent: Option<AbsolutePath>,
    /// A file that is there once the archive is unpacked. While it exists nothing is downloaded or unpacked, unless
    /// another version than the asked-for one was unpacked here, or its unpacking was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) creates: Option<AbsolutePath>,
    /// Remove the archive once it is unpacked. Needs `extract_parent` and `creates`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cleanup: bool,
    /// The user that owns the archive and everything unpacked from it, by name or number. Required unless `ensure` is
    /// `absent`; `ccm ensure` takes that of the file that is there, or whoever runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// The group that owns the archive and everything unpacked from it, by name or number. Required unless `ensure` is
    /// `absent`; `ccm ensure` takes that of the file that is there, or of whoever runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Permissions of the archive file in octal. Without it a new file gets 0644 less the umask, and an existing one
    /// keeps what it has. Unpacked files have the modes that the archive gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// The user to log in to the server as (basic authentication). It is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) username: Option<Secret>,
    /// The password to log in to the server with. It is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true, "x-file-flag" = "password-file"))]
    pub(crate) password: Option<Secret>,
    /// Headers to send to the server. Their values are never shown, and no other server that a redirect leads to gets
    /// them. Those that are part of how a download is done, such as `Content-Length` or `Range`, cannot be given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Certificates in PEM form to trust besides those of the authorities that the system trusts: of other authorities,
    /// or of the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<AbsolutePath>,
    /// How many components to take away from the front of every name in the archive: with 1, `app-1.2/bin/app` is
    /// unpacked as `bin/app`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strip_components: Option<u32>,
    /// Compare every unpacked file with what was unpacked, on every run, and unpack again if one is missing or differs in
    /// content, owner, group or mode. Of directories only that they are there is compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) verify: bool,
    /// The largest file to download (default `16GiB`). A server that announces or sends more is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_download: Option<Size>,
    /// The most that the archive may unpack to (default `16GiB`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_size: Option<Size>,
    /// The most files, directories and links that the archive may hold (default 1000000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_entries: Option<u64>,
    /// How many times its own size the archive may unpack to (default 250). Up to 64 MiB are always allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_ratio: Option<u64>,
}

/// Whether the archive is to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// Downloaded, and unpacked if asked for.
    #[default]
    Present,
    /// Its file is gone.
    Absent,
}

impl resource::Properties for Properties {
    fn ensure(&self) -> String {
        match self.ensure {
            Ensure::Present => "present",
            Ensure::Absent => "absent",
        }
        .to_owned()
    }

    fn problems(&self) -> Vec<Error> {
        if self.ensure == Ensure::Absent {
            return self.kind_problem().into_iter().map(Error::from).collect();
        }
        let mut problems = Vec::new();
        let given =
            [("url", self.url.is_some()), ("owner", self.owner.is_some()), ("group", self.group.is_some())];
        problems.extend(self.kind_problem());
        problems.extend(self.combination_problems());
        let others = problems.into_iter().map(Error::from).chain(header_problems(&self.headers));
        missing("an archive", &given).into_iter().chain(others).collect()
    }

    fn secrets(&self) -> Vec<Cow<'_, str>> {
        let given =
            self.username.iter().chain(&self.password).chain(self.headers.values()).map(Secret::reveal);
        let addresses = [&self.url, &self.checksum_url].into_iter().flatten();
        let in_addresses = addresses.flat_map(Url::secrets).map(Cow::Owned);
        given.map(Cow::Borrowed).chain(in_addresses).collect()
    }

    fn watches(&self) -> Watches {
        let creates = self.creates.iter().chain(self.extract_parent.iter().filter(|_| self.verify));
        Watches {
            paths: std::iter::once(&self.name).chain(creates).map(|path| path.as_path().to_owned()).collect(),
            // A directory tells only what comes to it and leaves it.
            completeness: if self.verify { Coverage::Poll } else { Coverage::Whole },
            ..Ownership::of(self.owner.as_ref(), self.group.as_ref()).watches()
        }
    }

    fn manages(&self) -> Vec<Managed> {
        let paths = [Some(&self.name), self.creates.as_ref()].into_iter().flatten();
        let paths = paths.map(|path| Managed::Path(path.as_path().to_owned()));
        let trees = self.extract_parent.iter().map(|tree| Managed::Tree(tree.as_path().to_owned()));
        paths.chain(trees).collect()
    }
}

impl Properties {
    /// Returns the format that the ending of the name stands for.
    fn format(&self) -> Option<ArchiveFormat> {
        ArchiveFormat::of(&self.name.to_string())
    }

    fn kind_problem(&self) -> Option<ArchiveError> {
        let Some(name) = self.format() else {
            return Some(ArchiveError::UnknownEnding { name: self.name.clone() });
        };
        let file = self.url.as_ref()?.file_name();
        match ArchiveFormat::of(&file) {
            None => Some(ArchiveError::UnknownUrlEnding { file }),
            Some(url) if url != name => Some(ArchiveError::OtherEnding { url, name }),
            Some(_) => None,
        }
    }

    fn combination_problems(&self) -> Vec<ArchiveError> {
        let extracts = self.extract_parent.is_some();
        let needs_extraction = [
            ("cleanup", self.cleanup, "an archive is removed only after it was unpacked"),
            ("creates", self.creates.is_some(), "nothing else could make what it names"),
            ("verify", self.verify, "only what was unpacked is verified"),
            ("strip_components", self.strip_components.is_some(), "nothing is unpacked without it"),
        ];
        let unmet = needs_extraction.into_iter().filter(|(_, is_given, _)| *is_given && !extracts);
        let mut problems: Vec<ArchiveError> = unmet
            .map(|(property, _, why)| ArchiveError::Needs { property, needed: "extract_parent", why })
            .collect();
        if self.cleanup && self.creates.is_none() {
            let why = "without it nobody could tell that the archive was unpacked";
            problems.push(ArchiveError::Needs { property: "cleanup", needed: "creates", why });
        }
        if self.password.is_some() && self.username.is_none() {
            let why = "both are sent together";
            problems.push(ArchiveError::Needs { property: "password", needed: "username", why });
        }
        if self.checksum.is_some() && self.checksum_url.is_some() {
            problems.push(ArchiveError::TwoChecksums);
        }
        let limits = [
            ("max_download", self.max_download.map(Size::bytes)),
            ("max_size", self.max_size.map(Size::bytes)),
            ("max_entries", self.max_entries),
            ("max_ratio", self.max_ratio),
        ];
        let zeros = limits.into_iter().filter(|(_, limit)| *limit == Some(0));
        problems.extend(zeros.map(|(property, _)| ArchiveError::Zero { property }));
        problems
    }

    /// Returns the archive and where it is unpacked, if it is.
    fn unpacking(&self) -> Option<Unpacking<'_>> {
        let target = self.extract_parent.as_ref()?.as_path();
        let creates = self.creates.as_ref().map(AbsolutePath::as_path);
        Some(Unpacking { target, archive: self.name.as_path(), creates })
    }

    fn origin(&self) -> Origin {
        Origin::of(self.url.as_ref(), self.checksum_url.as_ref())
    }

    /// Returns whether it matters later where the archive came from, and what was unpacked does not tell it.
    fn remembers_origin(&self) -> bool {
        self.checksum_url.is_some() || self.checksum.is_some() && self.extract_parent.is_none()
    }

    /// Returns how the wanted checksum is computed.
    fn algorithm(&self) -> Algorithm {
        self.checksum.as_ref().map_or(Algorithm::Sha256, Checksum::algorithm)
    }

    fn max_download(&self) -> Size {
        self.max_download.unwrap_or(Size::gibibytes(16))
    }

    fn limits(&self) -> Limits {
        let standard = Limits::default();
        Limits {
            size: self.max_size.map_or(standard.size, Size::bytes),
            entries: self.max_entries.unwrap_or(standard.entries),
            ratio: self.max_ratio.unwrap_or(standard.ratio),
        }
    }
}

/// What has to happen, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action(Vec<Step>);

/// One thing that has to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Download,
    /// Sets owner, group and mode of the archive in place.
    SetAttributes,
    /// Puts a copy of the archive with its owner, group and mode in its place, because another user could have the file
    /// that is there open for writing.
    TakeOver,
    Extract,
    /// Remove the archive after its extraction.
    CleanUp,
    /// Remove the archive because it is not wanted.
    Remove,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let deed = |step: &Step| match step {
            Step::Download => "downloaded",
            Step::SetAttributes | Step::TakeOver => "updated owner, group and mode",
            Step::Extract => "extracted",
            Step::CleanUp => "cleaned up",
            Step::Remove => "removed",
        };
        f.write_str(&self.0.iter().map(deed).collect::<Vec<_>>().join(". "))
    }
}

/// The `archive` type.
pub(crate) struct Archive;

impl ResourceType for Archive {
    const NAME: &'static str = "archive";
    const EXAMPLES: &'static [Example] = &[
        Example {
            title: "A release that is unpacked and cleaned up after",
            manifest: "- archive:\n    - /var/cache/app-1.2.tar.gz:\n        url: https://example.com/app-1.2.tar.gz\n        \
                       checksum: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n        \
                       extract_parent: /opt/app\n        strip_components: 1\n        creates: /opt/app/bin/app\n        \
                       cleanup: true\n        owner: root\n        group: root\n",
        },
        Example {
            title: "A download that is only kept",
            manifest: "- archive:\n    - /srv/mirror/data.zip:\n        url: https://example.com/data.zip\n        \
                       checksum_url: https://example.com/SHA256SUMS\n        owner: www-data\n        group: www-data\n        \
                       mode: \"0640\"\n",
        },
        Example {
            title: "A private server",
            manifest: "- archive:\n    - /var/cache/tool.tar.xz:\n        url: https://artifacts.example.com/tool.tar.xz\n        \
                       headers:\n          Authorization: Bearer ${ Environ.TOKEN }\n        ca_file: /etc/ssl/internal-ca.pem\n        \
                       extract_parent: /usr/local\n        creates: /usr/local/bin/tool\n        owner: root\n        group: root\n        \
                       timeout: 10m\n",
        },
        Example {
            title: "An archive that must not lie around",
            manifest: "- archive:\n    - /tmp/old.tar.gz:\n        ensure: absent\n",
        },
    ];
    const PROVIDERS: &'static [Candidate<Self>] = &[Candidate {
        name: "http",
        summary: "servers that speak http or https; proxies as `http_proxy`, `https_proxy` and `no_proxy` say.",
        make: |_| Ok(Box::default()),
    }];
    const BEHAVIOR: Behavior =
        Behavior { tries: 3, makes: Makes::Anything, keeps: &["owner", "group"], ..Behavior::USUAL };

    type Properties = Properties;
    type State = ArchiveState;
    type Action = Action;
    type Provider = Http;

    fn inspect(want: &Properties, _: &Http, cx: &Context) -> Result<ArchiveState, Error> {
        state::inspect(want, cx)
    }

    fn compare(want: &Properties, have: &ArchiveState, _: Trigger) -> Result<Option<Change<Action>>, Error> {
        decision::compare(want, have)
    }

    fn simulate(
        want: &Properties,
        have: &ArchiveState,
        action: &Action,
        _: &Http,
        cx: &Context,
    ) -> Result<(), Error> {
        simulation::simulate(want, have, action, cx)
    }

    fn effects(want: &Properties, have: &ArchiveState, action: &Action, _: &Context) -> Effects {
        simulation::effects(want, have, action)
    }

    fn enact(
        want: &Properties,
        have: &ArchiveState,
        action: Action,
        on: &Http,
        cx: &Context,
    ) -> Result<ArchiveState, Error> {
        on.enact(want, have, &action, cx)?;
        state::inspect(want, cx)
    }
}
