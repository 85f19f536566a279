//! From what sources send to what is in force.
//!
//! What arrives is verified, stored, unpacked and loaded beside what is in force; only then it takes its place. What does
//! not pass is told once and kept out until something changes that it is loaded with: its own source, or another one.
//! Data and manifests that fit only each other are taken together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    cache::{Loading, Refused, Shelf, Stored},
    config::Config,
    content::{Content, archive_format},
    log::Log,
    mailbox::Sender,
    opening::Openings,
    source::{
        Address, Arrival, FetchError, Fetcher, News, Orders, Purpose, SPREAD, Seen, Signatures, fetch_local,
    },
};
use crate::{
    bundle::{AllowedSigners, Label, Signature},
    host::{files::PrivateFolder, unpack::ArchiveFormat},
    manifest::{Location, Manifest},
    run::Machine,
};

/// All sources, the data first if there is any.
pub(crate) struct Intake {
    pub(crate) slots: Vec<Slot>,
    /// Keys that can sign, if content of other machines must be signed.
    signers: Option<SignersFile>,
}

/// The file of allowed signers.
struct SignersFile {
    path: PathBuf,
    /// Its text when the agent last verified all content with it.
    text: Vec<u8>,
}

/// When signatures are verified again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// In any case: the time at which a key was valid can be over.
    Always,
    /// If the file of allowed signers changed.
    IfSignersChanged,
}

/// One source, and what is in force of it.
pub(crate) struct Slot {
    pub(crate) address: Address,
    pub(crate) purpose: Purpose,
    /// Whether its content must be a bundle, whose name and version are signed.
    requires_bundle: bool,
    shelf: Shelf,
    in_force: Option<Content>,
    candidate: Option<Candidate>,
    fetcher: Option<Fetcher>,
    /// The digest of what was seen last of a source of this machine.
    seen: Option<String>,
    /// Whether the source was asked, whatever came of it.
    pub(crate) is_asked: bool,
    /// Why the source has no answer.
    pub(crate) away: Option<String>,
    /// Why its newest content is not in force.
    pub(crate) refused: Option<String>,
    /// Why the last good content is not used: its signature is missing or no longer valid.
    unverified: Option<String>,
    /// Why the last good content is not loaded: it crashed the agent.
    set_aside: Option<String>,
}

/// Content that is not in force yet, or was refused.
struct Candidate {
    content: Content,
    stored: Stored,
    label: Option<Label>,
    signature: Option<String>,
}

/// Manifests that were loaded with new data, by their numbers.
#[derive(Default)]
struct LoadedManifests {
    /// As they wait to be put in force.
    waiting: BTreeMap<usize, Manifest>,
    in_force: BTreeMap<usize, Manifest>,
}

/// Loads content, to find out whether it is valid.
pub(crate) trait Judge {
    /// Loads data on its own.
    fn data(&self, data: &Location) -> Result<(), String>;
    /// Loads the manifest of a source with data.
    fn manifest(
        &self,
        address: &Address,
        manifest: &Location,
        data: Option<&Location>,
    ) -> Result<Manifest, String>;
    /// How large a document may be.
    fn limit(&self) -> u64;
}

/// What content is made with.
#[derive(Clone, Copy)]
pub(crate) struct Workshop<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) log: &'a dyn Log,
}

impl Intake {
    /// Opens the cache and takes what it holds in force. Sources that are far away are asked from now on.
    pub(crate) fn open(
        config: &Config,
        cache: &PrivateFolder,
        openings: &Openings,
        tell: &dyn Fn(usize) -> Sender<News>,
        workshop: Workshop,
    ) -> Result<Self, String> {
        let signers = config.signers.as_ref().map(|signers| SignersFile::read(&signers.path));
        let spread = if config.splay.is_zero() { config.splay } else { SPREAD };
        let mut slots = Vec::new();
        for (number, (address, purpose)) in config.sources().enumerate() {
            let shelf = Shelf::open(cache, address).map_err(|error| error.to_string())?;
            let mut slot = Slot {
                address: address.clone(),
                purpose,
                requires_bundle: !address.is_local() && config.requires_bundle(purpose),
                in_force: None,
                candidate: None,
                fetcher: None,
                seen: shelf.seen().digest,
                is_asked: false,
                away: None,
                refused: shelf.record().refused.as_ref().map(|refused| refused.reason.clone()),
                unverified: None,
                set_aside: shelf.record().good.as_ref().and_then(|good| shelf.crashes(&good.digest)),
                shelf,
            };
            if let Some(reason) = &slot.set_aside {
                let effect = "nothing of this source is applied until its content changes";
                let fields: [(&str, &dyn Display); 3] =
                    [("source", &slot.address), ("error", reason), ("effect", &effect)];
                workshop.log.error("cached content is set aside", &fields);
            }
            match signers.as_ref().filter(|_| !address.is_local()) {
                Some(signers) => drop(slot.verify_again(&signers.path, workshop)),
                None => slot.restore(workshop),
            }
            if !address.is_local() {
                let orders = Orders {
                    folder: slot.shelf.path().to_owned(),
                    seen: slot.seen_by(signers.as_ref()),
                    poll: config.written.poll.as_std(),
                    timeout: config.written.fetch_timeout.as_std(),
                    spread,
                    signatures: if signers.is_some() { Signatures::Wanted } else { Signatures::Unwanted },
                };
                let started: io::Result<Fetcher> = Fetcher::start(openings.of(address), orders, tell(number));
                slot.fetcher = Some(started.map_err(|error| format!("cannot start a thread: {error}"))?);
            }
            slots.push(slot);
        }
        Ok(Self { slots, signers })
    }

    /// Takes in what a source far away has told.
    pub(crate) fn news(&mut self, number: usize, news: News, workshop: Workshop) {
        let signers = self.signers.as_ref().map(|signers| signers.path.as_path());
        if let Some(slot) = self.slots.get_mut(number) {
            slot.is_asked = true;
            slot.news(news, signers, workshop);
        }
    }

    /// Reads the sources of this machine.
    pub(crate) fn look_at_local(&mut self, workshop: Workshop) {
        for slot in self.slots.iter_mut().filter(|slot| slot.address.is_local()) {
            slot.is_asked = true;
            let Address::Path(path) = slot.address.clone() else { continue };
            let news = fetch_local(path, slot.shelf.path(), slot.seen.as_deref());
            if let News::Arrived(arrival) = &news {
                slot.seen = Some(arrival.digest.clone());
            }
            slot.news(news, None, workshop);
        }
    }

    /// Asks all sources that are far away now. What was refused and must be signed is fetched again: it may be that somebody
    /// else may sign now.
    pub(crate) fn ask_all(&self) {
        for (slot, fetcher) in self.slots.iter().filter_map(|slot| Some((slot, slot.fetcher.as_ref()?))) {
            if self.signers.is_some() && slot.refused.is_some() {
                fetcher.forget();
            }
            fetcher.ask();
        }
    }

    /// Verifies the signature of all current content again, and fetches refused content again if other keys can sign now. Returns
    /// the manifests whose content, or whose data, is valid again.
    pub(crate) fn verify_again(&mut self, when: Verify, workshop: Workshop) -> BTreeSet<usize> {
        let Some(signers) = &mut self.signers else { return BTreeSet::new() };
        let text = SignersFile::text(&signers.path);
        let is_changed = text != signers.text;
        if when == Verify::IfSignersChanged && !is_changed {
            return BTreeSet::new();
        }
        signers.text = text;
        let path = signers.path.clone();
        let mut restored = BTreeSet::new();
        for (number, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| !slot.address.is_local()) {
            if slot.verify_again(&path, workshop) {
                restored.insert(number);
            }
            if is_changed && (slot.refused.is_some() || slot.unverified.is_some() || slot.candidate.is_some())
            {
                slot.candidate = None;
                slot.fetch_again();
                slot.fetcher.as_ref().inspect(|fetcher| fetcher.ask());
            }
        }
        let all = self.manifests().count();
        match self.slots.len() - all {
            0 => restored,
            _ if restored.contains(&0) => (0..all).collect(),
            _ => restored.into_iter().map(|number| number - 1).collect(),
        }
    }

    /// Whether something waits to be judged.
    pub(crate) fn has_candidates(&self) -> bool {
        self.slots.iter().any(|slot| slot.candidate.is_some())
    }

    /// Returns the manifests in their order, each with its number among the manifests.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().filter(|slot| slot.purpose == Purpose::Manifest).enumerate()
    }

    /// Returns where a manifest comes from, without credentials.
    pub(crate) fn address_of(&self, manifest: usize) -> String {
        let found = self.manifests().find(|(number, _)| *number == manifest);
        found.map(|(_, slot)| slot.address.to_string()).unwrap_or_default()
    }

    fn data(&self) -> Option<&Slot> {
        self.slots.first().filter(|slot| slot.purpose == Purpose::Data)
    }

    /// Whether manifests can be run: data that is asked for and was never fetched is waited for.
    pub(crate) fn is_data_there(&self) -> bool {
        self.data().is_none_or(|data| data.in_force.is_some())
    }

    /// Returns where the data in force is, if there is any.
    pub(crate) fn data_location(&self, limit: u64) -> Result<Option<Location>, String> {
        let content = self.data().and_then(|data| data.in_force.as_ref());
        content.map(|content| content.location(limit)).transpose().map_err(|error| error.to_string())
    }

    /// Validates everything that waits, and puts in force what is valid. Returns the numbers of the manifests that have to be
    /// applied because of it, each with the manifest itself if it was loaded as it is now in force.
    pub(crate) fn settle(&mut self, judge: &dyn Judge, log: &dyn Log) -> BTreeMap<usize, Option<Manifest>> {
        let old_data = self.data_location(judge.limit()).unwrap_or_default();
        let new_data = self.data().and_then(|slot| slot.candidate_location(judge.limit()));
        if let Some(new_data) = new_data {
            match self.load_with(&new_data, old_data.as_ref(), judge) {
                Ok(mut loaded) => {
                    self.slots[0].accept(log);
                    let mut taken = self.take_manifests(Some(&new_data), loaded.waiting, judge, log);
                    if self.slots[0].is_in_force() {
                        for (number, _) in self.manifests() {
                            taken.entry(number).or_insert_with(|| loaded.in_force.remove(&number));
                        }
                    }
                    return taken;
                }
                Err(reason) => self.slots[0].refuse(&reason, log),
            }
        }
        if !self.is_data_there() {
            return BTreeMap::new();
        }
        self.take_manifests(old_data.as_ref(), BTreeMap::new(), judge, log)
    }

    /// Loads new data and, unless there was none before, every manifest with it: as it waits, or else as it is in force. Fails
    /// if a manifest loads only with the old data.
    fn load_with(
        &self,
        new: &Location,
        old: Option<&Location>,
        judge: &dyn Judge,
    ) -> Result<LoadedManifests, String> {
        let data = &self.slots[0];
        let loading = data.loading_candidate();
        judge.data(new)?;
        drop(loading);
        let mut loaded = LoadedManifests::default();
        for (number, slot) in self.manifests().filter(|_| old.is_some()) {
            let Some(in_force) = slot.location(judge.limit()) else { continue };
            if let Some(waiting) = slot.candidate_location(judge.limit()) {
                let _loading = slot.loading_candidate();
                if let Ok(manifest) = judge.manifest(&slot.address, &waiting, Some(new)) {
                    loaded.waiting.insert(number, manifest);
                    continue;
                }
            }
            let _loading = data.loading_candidate();
            match judge.manifest(&slot.address, &in_force, Some(new)) {
                Ok(manifest) => {
                    loaded.in_force.insert(number, manifest);
                }
                Err(reason) if judge.manifest(&slot.address, &in_force, old).is_ok() => {
                    return Err(format!("with it, {} does not load: {reason}", slot.address));
                }
                Err(_) => {}
            }
        }
        Ok(loaded)
    }

    fn take_manifests(
        &mut self,
        data: Option<&Location>,
        mut loaded: BTreeMap<usize, Manifest>,
        judge: &dyn Judge,
        log: &dyn Log,
    ) -> BTreeMap<usize, Option<Manifest>> {
        let mut taken = BTreeMap::new();
        let manifests = self.slots.iter_mut().filter(|slot| slot.purpose == Purpose::Manifest);
        for (number, slot) in manifests.enumerate() {
            let Some(waiting) = slot.candidate_location(judge.limit()) else { continue };
            let loading = slot.loading_candidate();
            let manifest = match loaded.remove(&number) {
                Some(manifest) => Ok(manifest),
                None => judge.manifest(&slot.address, &waiting, data),
            };
            drop(loading);
            match manifest {
                Ok(manifest) => {
                    if slot.accept(log) {
                        taken.insert(number, Some(manifest));
                    }
                }
                Err(reason) => slot.refuse(&reason, log),
            }
        }
        taken
    }
}

impl SignersFile {
    fn read(path: &Path) -> Self {
        Self { path: path.to_owned(), text: Self::text(path) }
    }

    /// Returns the text of the file, empty if the file cannot be read: verifying a signature then reports the reason.
    fn text(path: &Path) -> Vec<u8> {
        AllowedSigners::text(path).unwrap_or_default()
    }
}

impl Slot {
    /// Verifies the signature of the cached content. Content that no longer verifies stays on disk, because other keys can sign
    /// later, and because its version keeps older content out. Returns whether content is valid again.
    fn verify_again(&mut self, signers: &Path, workshop: Workshop) -> bool {
        let log = workshop.log;
        let Some((file, good)) = self.shelf.good() else { return false };
        let verified = match &good.signature {
            Some(signature) => crate::host::input::open_file(&file)
                .map_err(|error| error.to_string())
                .and_then(|file| verify(file, signature.as_bytes(), signers))
                .and_then(|()| match &good.label {
                    None if self.requires_bundle => Err(self.not_a_bundle()),
                    _ => Ok(()),
                }),
            None => Err("it is not signed".to_owned()),
        };
        match verified {
            Ok(()) => {
                let was_unverified = self.unverified.take().is_some();
                if !self.is_in_force() {
                    self.restore(workshop);
                }
                if was_unverified && self.is_in_force() {
                    log.info(
                        "the signature of the cached content is valid again",
                        &[("source", &self.address)],
                    );
                }
                was_unverified && self.is_in_force()
            }
            Err(reason) => {
                if self.unverified.as_ref() != Some(&reason) {
                    let effect =
                        "nothing of this source is applied until its content is signed by an allowed key";
                    log.error(
                        "cached content is refused",
                        &[("source", &self.address), ("error", &reason), ("effect", &effect)],
                    );
                }
                if self.in_force.take().is_some() {
                    self.fetch_again();
                    self.fetcher.as_ref().inspect(|fetcher| fetcher.ask());
                }
                self.unverified = Some(reason);
                false
            }
        }
    }

    /// Returns what need not be fetched again.
    fn seen_by(&self, signers: Option<&SignersFile>) -> Seen {
        match signers {
            Some(_) if self.unverified.is_some() => Seen::default(),
            Some(_) => self.shelf.seen(),
            None => Seen { signature: None, ..self.shelf.seen() },
        }
    }

    /// Takes in force what the cache holds.
    fn restore(&mut self, workshop: Workshop) {
        if self.set_aside.is_some() {
            return;
        }
        let Some((file, _)) = self.shelf.good() else { return };
        match Content::open(&self.address, self.purpose, &file, workshop.machine) {
            Ok(content) => self.in_force = Some(content),
            Err(error) => {
                workshop.log.error(
                    "the cached content cannot be used",
                    &[("source", &self.address), ("error", &error)],
                );
            }
        }
    }

    pub(crate) fn is_in_force(&self) -> bool {
        self.in_force.is_some()
    }

    /// Whether what is in force may be older than what the source has.
    pub(crate) fn is_stale(&self) -> bool {
        self.problem().is_some()
    }

    /// Returns why the source is stale: first why its content is not used, then the result of the last request.
    pub(crate) fn problem(&self) -> Option<String> {
        let unused = self.set_aside.as_ref().or(self.unverified.as_ref());
        // Content that was refused earlier says nothing about a source that is unreachable since.
        let last = self.away.as_ref().or(self.refused.as_ref());
        let reasons = unused.into_iter().chain(last.filter(|last| unused != Some(last)));
        reasons.cloned().reduce(|all, reason| format!("{all}; {reason}"))
    }

    pub(crate) fn digest(&self) -> Option<&str> {
        self.shelf.record().good.as_ref().map(|good| good.digest.as_str())
    }

    pub(crate) fn fetched(&self) -> Option<Timestamp> {
        self.shelf.record().good.as_ref().map(|good| good.fetched)
    }

    /// Records that the current content is being loaded.
    pub(crate) fn loading(&self) -> Option<Loading<'_>> {
        self.digest().map(|digest| self.shelf.begin_loading(digest))
    }

    /// Records that the content that waits is being loaded.
    fn loading_candidate(&self) -> Option<Loading<'_>> {
        self.candidate.as_ref().map(|candidate| self.shelf.begin_loading(&candidate.stored.digest))
    }

    /// Returns where the content in force can be loaded from.
    pub(crate) fn location(&self, limit: u64) -> Option<Location> {
        self.in_force.as_ref()?.location(limit).ok()
    }

    fn candidate_location(&self, limit: u64) -> Option<Location> {
        self.candidate.as_ref()?.content.location(limit).ok()
    }

    fn news(&mut self, news: News, signers: Option<&Path>, workshop: Workshop) {
        let log = workshop.log;
        match news {
            News::Same => {
                if self.away.take().is_some() {
                    log.info("the source is back", &[("source", &self.address)]);
                }
            }
            News::Failed(FetchError::Interrupted) => {}
            News::Failed(error) => {
                let reason = error.to_string();
                if self.away.as_ref() != Some(&reason) {
                    let kept = if self.is_in_force() {
                        "the last good content stays in force"
                    } else {
                        "there is nothing to apply yet"
                    };
                    log.warn(
                        "the source has no answer",
                        &[("source", &self.address), ("error", &reason), ("effect", &kept)],
                    );
                }
                self.away = Some(reason);
            }
            News::Arrived(arrival) => {
                self.away = None;
                if self.digest() == Some(&arrival.digest) && self.is_in_force() {
                    self.take_signature(&arrival, signers);
                    self.forget_refused(log);
                    return;
                }
                let (digest, version) = (arrival.digest.clone(), arrival.version.clone());
                if let Some(reason) = self.shelf.crashes(&digest) {
                    self.candidate = None;
                    self.remember_refused(Refused { digest, version, reason }, log);
                    return;
                }
                match self.prepare(*arrival, signers, workshop) {
                    Ok(candidate) => self.candidate = Some(candidate),
                    Err(Unusable::Bad(reason)) => {
                        self.candidate = None;
                        self.remember_refused(Refused { digest, version, reason }, log);
                    }
                    Err(Unusable::Unwritten(reason)) => {
                        log.error(
                            "cannot keep what was fetched",
                            &[("source", &self.address), ("error", &reason)],
                        );
                        self.away = Some(reason);
                        // What could not be written is to be fetched again.
                        self.fetch_again();
                    }
                }
            }
        }
    }

    /// Checks whose content it is before anything of it is unpacked, and unpacks it.
    fn prepare(
        &self,
        arrival: Arrival,
        signers: Option<&Path>,
        workshop: Workshop,
    ) -> Result<Candidate, Unusable> {
        let signature = signers.map(|signers| Self::verify(&arrival, signers));
        let signature = signature.transpose().map_err(Unusable::Bad)?;
        let stored = self.shelf.store(arrival).map_err(|error| Unusable::Unwritten(error.to_string()))?;
        let kind = archive_format(&self.address, &stored.path).map_err(|error| bad(&error))?;
        let label = match kind.filter(|_| signers.is_some()) {
            Some(kind) => Some(self.check_label(&stored.path, kind).map_err(Unusable::Bad)?),
            None if self.requires_bundle => return Err(Unusable::Bad(self.not_a_bundle())),
            None => None,
        };
        let content = Content::open(&self.address, self.purpose, &stored.path, workshop.machine);
        Ok(Candidate { content: content.map_err(|error| bad(&error))?, stored, label, signature })
    }

    fn not_a_bundle(&self) -> String {
        match self.purpose {
            Purpose::Manifest => "it is no bundle: with require_signature, manifests come in bundles that `ccm bundle build` made",
            Purpose::Data => "it is no bundle, so its version is unknown: with require_signature, build data with `ccm bundle build --data`, or set `unversioned_data: allow`",
        }
        .to_owned()
    }

    /// Keeps another valid signature over the current content: the key of the old one can be removed next.
    fn take_signature(&mut self, arrival: &Arrival, signers: Option<&Path>) {
        if let Some(Ok(signature)) = signers.map(|signers| Self::verify(arrival, signers)) {
            // A signature that cannot be recorded is fetched again after a restart.
            let _ = self.shelf.replace_signature(signature);
        }
    }

    /// Verifies content that has arrived, and returns its signature.
    fn verify(arrival: &Arrival, signers: &Path) -> Result<String, String> {
        use std::io::Seek;
        let signature = match &arrival.signature {
            Some(Ok(signature)) => signature,
            Some(Err(error)) => return Err(format!("it is not signed: {error}")),
            None => return Err("it is not signed".to_owned()),
        };
        let mut file = arrival.draft.file();
        file.rewind().map_err(|error| error.to_string())?;
        verify(file, signature, signers)?;
        Ok(String::from_utf8_lossy(signature).into_owned())
    }

    fn check_label(&self, file: &Path, kind: ArchiveFormat) -> Result<Label, String> {
        let archive = crate::host::input::open_file(file).map_err(|error| error.to_string())?;
        let label = Label::of(&archive, kind).map_err(|error| error.to_string())?;
        let name = self.address.expected_name();
        label.check(Some(&name), Timestamp::now()).map_err(|error| error.to_string())?;
        label.check_version().map_err(|error| error.to_string())?;
        let known = self.shelf.record().good.as_ref().and_then(|good| good.label.as_ref());
        known.map_or(Ok(()), |known| label.check_against(known)).map_err(|error| error.to_string())?;
        Ok(label)
    }

    /// Puts what waits in force; says whether that went well.
    fn accept(&mut self, log: &dyn Log) -> bool {
        let Some(Candidate { content, stored, label, signature }) = self.candidate.take() else {
            return false;
        };
        match self.shelf.accept(&stored, label, signature) {
            Ok(()) => {
                log.info(
                    "new content is in force",
                    &[("source", &self.address), ("digest", &&stored.digest[..16])],
                );
                self.in_force = Some(content);
                self.refused = None;
                self.unverified = None;
                self.set_aside = None;
                true
            }
            Err(error) => {
                log.error("cannot keep what was fetched", &[("source", &self.address), ("error", &error)]);
                self.away = Some(error.to_string());
                self.fetch_again();
                false
            }
        }
    }

    /// Takes what was fetched last for never seen.
    fn fetch_again(&mut self) {
        self.seen = None;
        if let Some(fetcher) = &self.fetcher {
            fetcher.forget();
        }
    }

    /// Keeps out what waits. It is judged again when something else changes.
    fn refuse(&mut self, reason: &str, log: &dyn Log) {
        let Some(Candidate { stored, .. }) = &self.candidate else { return };
        let refused = Refused {
            digest: stored.digest.clone(),
            version: stored.version.clone(),
            reason: reason.to_owned(),
        };
        let name = stored.name.clone();
        self.remember_refused(refused, log);
        let _ = self.shelf.tidy(&[&name]);
    }

    fn remember_refused(&mut self, refused: Refused, log: &dyn Log) {
        if self.refused.as_ref() != Some(&refused.reason) {
            let kept = if self.is_in_force() {
                "the last good content stays in force"
            } else {
                "there is nothing to apply yet"
            };
            log.error(
                "new content is refused",
                &[("source", &self.address), ("error", &refused.reason), ("effect", &kept)],
            );
        }
        self.refused = Some(refused.reason.clone());
        // What cannot be remembered is fetched and refused again after a restart.
        let _ = self.shelf.refuse(refused);
    }

    fn forget_refused(&mut self, log: &dyn Log) {
        self.candidate = None;
        if self.refused.take().is_some() {
            log.info("the source has again what is in force", &[("source", &self.address)]);
        }
        let _ = self.shelf.reconcile().and_then(|()| self.shelf.tidy(&[]));
    }
}

/// Verifies that an allowed signer made a signature over a file.
fn verify(file: impl io::Read, signature: &[u8], signers: &Path) -> Result<(), String> {
    let signers = AllowedSigners::read(signers).map_err(|error| error.to_string())?;
    let signature = Signature::parse(signature).map_err(|error| error.to_string())?;
    signature.verify(file, &signers, Timestamp::now()).map(drop).map_err(|error| error.to_string())
}

/// Why content cannot be used.
enum Unusable {
    /// It is no good.
    Bad(String),
    /// It cannot be kept, whatever it is.
    Unwritten(String),
}

fn bad(error: &crate::manifest::Unreadable) -> Unusable {
    Unusable::Bad(error.to_string())
}
