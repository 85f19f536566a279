//! The `archive` type: downloads, verifies, extracts and cleans up archives.

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

use std::{borrow::Cow, collections::BTreeMap, fmt, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::{error::ArchiveError, http::Http, state::ArchiveState};
use crate::{
    document::Severity,
    download::{header_problems, unverified},
    host::unpack::{ArchiveFormat, Limits},
    resource::{
        self, Before, Behavior, Candidate, Change, Common, Context, Coverage, Effects, Error, Example, Makes,
        Managed, ResourceType, Trigger, Warning, Watches,
    },
    state::{Origin, Unpacking},
    types::ownership::{Ownership, missing},
    vocabulary::{AbsolutePath, Account, Algorithm, Checksum, Mode, Secret, Size, Url, WantedChecksum},
};

/// Downloads archives over HTTP or HTTPS, verifies them, extracts them, and optionally removes them.
///
/// A download appears at its path only when it is complete, verified, and has its final owner and mode. ccm extracts an
/// archive to a private directory on the same file system. If everything in it is valid, ccm renames the files to their
/// final paths one by one, the path in `creates` last. If `extract_parent` did not exist, the complete tree appears
/// atomically. The next run completes an interrupted run. ccm rejects an archive completely if it contains absolute
/// paths, `..`, links that point outside, devices, duplicates, or more than the limits allow. It drops setuid and
/// setgid bits.
///
/// ccm records what it extracted to an `extract_parent`, by the path of the archive and by `creates`. It therefore
/// notices a new `checksum` as another version even after `cleanup` and under another name, and removes files that the
/// new version no longer has unless they were modified. Existing directories keep their owner and mode.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Properties {
    /// Absolute path of the archive file, with the same ending as the URL: .tar.gz .tgz .tar .zip .tar.xz .txz .tar.bz2
    /// .tbz2 .tar.zst .tzst. Its directory must exist.
    pub(crate) name: AbsolutePath,
    /// `present`: the archive exists, and is extracted if `extract_parent` is set. `absent`: the archive file does not
    /// exist; extracted files stay.
    #[serde(default)]
    pub(crate) ensure: Ensure,
    /// URL to download from (HTTP or HTTPS). ccm never shows its user, password and query. Required unless `ensure` is
    /// `absent`. ccm follows redirects, but never from HTTPS to HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<Url>,
    /// Expected checksum of the download: a SHA-256 in hex, or `sha512:` and a SHA-512 in hex. ccm downloads an
    /// existing file again if its checksum differs. Without
    /// `checksum`, ccm accepts any content and warns when it downloads; `none` silences the warning. If `url` changes and
    /// `checksum` does not, ccm prints a warning and downloads nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<WantedChecksum>,
    /// URL of the checksum, read when a download is needed: a file like `SHA256SUMS` with a line for the archive, or a
    /// file with only a checksum. Conflicts with `checksum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum_url: Option<Url>,
    /// Directory to extract to. ccm creates it with its parents, mode 0755, if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extract_parent: Option<AbsolutePath>,
    /// Path that exists when the archive is extracted. While it exists, ccm downloads and extracts nothing, unless it
    /// recorded the extraction of another version here, or the extraction was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) creates: Option<AbsolutePath>,
    /// If true, ccm removes the archive after the extraction. Requires `extract_parent` and `creates`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cleanup: bool,
    /// User that owns the archive and all extracted files, by name or UID. Required unless `ensure` is `absent`. With
    /// `ccm ensure`, the default is the owner of the existing file, or the current user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<Account>,
    /// Group that owns the archive and all extracted files, by name or GID. Required unless `ensure` is `absent`. With
    /// `ccm ensure`, the default is the group of the existing file, or of the current user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<Account>,
    /// Permissions of the archive file in octal. Default: 0644 minus the umask for a new file; an existing file keeps
    /// its mode. Extracted files have the modes recorded in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// User name for basic authentication. ccm never shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) username: Option<Secret>,
    /// Password for basic authentication. ccm never shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-late" = true, "x-secret" = true, "x-file-flag" = "password-file"))]
    pub(crate) password: Option<Secret>,
    /// HTTP headers to send to the server. ccm never shows their values, and does not send them to another server after
    /// a redirect. Headers that control the transfer, such as `Content-Length` or `Range`, are rejected.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-late" = true, "x-secret" = true))]
    pub(crate) headers: BTreeMap<String, Secret>,
    /// File with additional trusted certificates in PEM format: of certificate authorities, or of the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<AbsolutePath>,
    /// Number of leading path components to remove from each name in the archive: with 1, `app-1.2/bin/app` becomes
    /// `bin/app`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) strip_components: Option<u32>,
    /// If true, every run compares the extracted files with the record of the extraction, and extracts again if a file
    /// is missing or differs in content, owner, group or mode. For directories, ccm checks only that they exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) verify: bool,
    /// Maximum size of the download (default `16GiB`). ccm rejects a larger one as soon as the server announces or
    /// sends more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_download: Option<Size>,
    /// Maximum total size of the extracted files (default `16GiB`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_size: Option<Size>,
    /// Maximum number of files, directories and links in the archive (default 1000000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_entries: Option<u64>,
    /// Maximum ratio of the extracted size to the size of the archive (default 250). 64 MiB are always allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_ratio: Option<u64>,
}

/// Whether the archive is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Ensure {
    /// The archive is downloaded, and extracted if `extract_parent` is set.
    #[default]
    Present,
    /// The archive file does not exist.
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

    fn remarks(&self, _: &Common, _: &Path) -> Vec<(Severity, Warning)> {
        let is_unverified = self.url.is_some() && self.checksum.is_none() && self.checksum_url.is_none();
        is_unverified.then(|| (Severity::Warning, unverified("url"))).into_iter().collect()
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
    /// Returns the format that the ending of the name denotes.
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

    /// Returns the archive and its target directory, if it is extracted.
    fn unpacking(&self) -> Option<Unpacking<'_>> {
        let target = self.extract_parent.as_ref()?.as_path();
        let creates = self.creates.as_ref().map(AbsolutePath::as_path);
        Some(Unpacking { target, archive: self.name.as_path(), creates })
    }

    fn origin(&self) -> Origin {
        Origin::of(self.url.as_ref(), self.checksum_url.as_ref())
    }

    /// Returns whether the URL of the archive matters later and the extracted files do not reveal it.
    fn remembers_origin(&self) -> bool {
        self.checksum_url.is_some() || self.sum().is_some() && self.extract_parent.is_none()
    }

    /// Returns the expected checksum in the properties.
    fn sum(&self) -> Option<&Checksum> {
        self.checksum.as_ref().and_then(WantedChecksum::checksum)
    }

    /// Returns the algorithm of the expected checksum.
    fn algorithm(&self) -> Algorithm {
        self.sum().map_or(Algorithm::Sha256, Checksum::algorithm)
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

/// Steps to bring the archive to the desired state, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Action(Vec<Step>);

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Download,
    /// Sets owner, group and mode of the archive in place.
    SetAttributes,
    /// Replaces the archive by a copy with its owner, group and mode, because another user could have the existing file
    /// open for writing.
    TakeOver,
    Extract,
    /// Removes the archive after its extraction.
    CleanUp,
    /// Removes the archive because it is not wanted.
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

    fn before(_: &Properties, _: &ArchiveState, _: &Action) -> Before {
        Before::Paths
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
