//! The configuration file `agent.yaml`.
//!
//! [`Written`] is the file: a field is a key, and its doc comment is the reference. [`Config`] is the validated result:
//! parsed URLs, and all rules between keys checked.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::{Address, Purpose};
use crate::{
    bundle::AllowedSigners,
    document::{self, Diagnostic, Diagnostics, Entry, Node, Source, Span, Value, closest, from_node},
    manifest::secret,
    nats,
    vocabulary::schema::keys,
    vocabulary::{Duration, Size},
};

/// Default paths of the configuration, in order of preference.
pub(crate) const PLACES: [&str; 3] =
    ["/etc/ccm/agent.yaml", "/etc/choria/ccm/agent.yaml", "/etc/choria/ccm/config.yaml"];

/// Minimum interval between runs.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(30);

/// The configuration of `ccm agent`: a YAML file with these keys. The agent reads the first of `/etc/ccm/agent.yaml`,
/// `/etc/choria/ccm/agent.yaml` and `/etc/choria/ccm/config.yaml` that exists, and logs its path.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Written {
    /// Manifests, applied in this order: a path (absolute, or relative to this file), `file://`, `http://`, `https://`
    /// or `obj://BUCKET/KEY`. At least one is required.
    pub(crate) manifests: Vec<String>,
    /// Data that overrides the data of the manifests: a path, `file://`, `http://`, `https://`, `kv://BUCKET/KEY` or
    /// `obj://BUCKET/KEY`.
    pub(crate) external_data_url: String,
    /// Interval between complete runs, at least `30s`.
    pub(crate) interval: Duration,
    /// Maximum random delay of a run after `interval`. Default: a tenth of the interval. With `0s`, changes of remote
    /// sources are not delayed either; otherwise by up to 2 s.
    pub(crate) splay: Option<Duration>,
    /// Interval between checks of HTTP sources for changes, and of NATS sources in addition to the subscription.
    pub(crate) poll: Duration,
    /// Maximum time for one fetch from a remote source. A source that sends less than 1 KiB in 30s is stalled in any case.
    pub(crate) fetch_timeout: Duration,
    /// Interval between health checks outside of runs. Default: none. A CRITICAL check applies its manifest.
    pub(crate) health_check_interval: Option<Duration>,
    /// If true, the agent repairs drift when it happens, instead of in the next run.
    pub(crate) watch: bool,
    /// If true, the agent changes nothing and logs the changes that it would make.
    pub(crate) noop: bool,
    /// Directory for fetched manifests and data. Default: `sources` in the state directory.
    pub(crate) cache_dir: Option<String>,
    /// Log level.
    pub(crate) log_level: LogLevel,
    /// Address to serve metrics on, such as `127.0.0.1:9100` or `:9100`. Default: none.
    pub(crate) metrics: Option<String>,
    /// Port to serve metrics on, on all interfaces; 0 means none. `metrics: 127.0.0.1:N` is safer.
    pub(crate) monitor_port: u16,
    /// If true, the agent applies only signed bundles and data from remote sources. The agent verifies its cache as well: at start,
    /// in every complete run, and when `allowed_signers` or this setting changes.
    pub(crate) require_signature: bool,
    /// File with the keys that are allowed to sign, in the allowed signers format of ssh-keygen: an absolute path, or a
    /// path relative to this file.
    pub(crate) allowed_signers: String,
    /// Whether `require_signature` allows data that is not in a bundle. Such data has no name and no version, so the agent cannot
    /// refuse older data, or data for another URL, that was signed once. `ccm bundle build --data` builds a bundle with data.
    pub(crate) unversioned_data: UnversionedData,
    /// NATS context, as the `nats` program stores them: a name or an absolute path. `--context` and `NATS_CONTEXT` take
    /// precedence.
    pub(crate) nats_context: String,
    /// Whether and how to register resources with `register_when_stable`.
    pub(crate) registration: Registration,
    /// Stream to publish service registrations to and to read them from. Default: `REGISTRATION`.
    pub(crate) registration_stream: Option<String>,
    /// Maximum size of the registrations that one call of `registrations()` reads.
    pub(crate) max_registrations: Size,
    /// Subject to publish summaries and events of runs to. Default: none.
    pub(crate) events: Option<String>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            manifests: Vec::new(),
            external_data_url: String::new(),
            interval: Duration::from_secs(300),
            splay: None,
            poll: Duration::from_secs(30),
            fetch_timeout: Duration::from_secs(600),
            health_check_interval: None,
            watch: true,
            noop: false,
            cache_dir: None,
            log_level: LogLevel::Info,
            metrics: None,
            monitor_port: 0,
            require_signature: false,
            allowed_signers: "/etc/ccm/allowed_signers".to_owned(),
            unversioned_data: UnversionedData::Refuse,
            nats_context: "CCM".to_owned(),
            registration: Registration::Off,
            registration_stream: None,
            max_registrations: nats::MAX_REGISTRATIONS,
            events: None,
        }
    }
}

/// Log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// What an agent that requires signatures does with signed data that has no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum UnversionedData {
    /// Signed data must be a bundle.
    Refuse,
    /// Data with a detached signature is accepted.
    Allow,
}

/// How resources are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Registration {
    /// Resources are not registered.
    #[serde(alias = "")]
    Off,
    /// Core NATS messages.
    Nats,
    /// Messages to a `JetStream` stream.
    Jetstream,
}

/// What the configuration means.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where it was read.
    pub(crate) path: PathBuf,
    pub(crate) written: Written,
    pub(crate) manifests: Vec<Address>,
    pub(crate) data: Option<Address>,
    pub(crate) cache_dir: Option<PathBuf>,
    /// Who may sign, if what comes from far away must be signed.
    pub(crate) signers: Option<Signers>,
    /// Where metrics are served: the host, empty for all interfaces, and the port.
    pub(crate) metrics: Option<String>,
    pub(crate) splay: time::Duration,
}

/// The file of the keys that may sign.
#[derive(Debug)]
pub(crate) struct Signers {
    pub(crate) path: PathBuf,
    /// Where the configuration names it, or asks for signatures.
    span: Span,
}

impl Config {
    /// Reads the configuration, or says everything that is wrong with it. Warnings come with it.
    pub(crate) fn read(source: &Source, path: &Path) -> Result<(Self, Diagnostics), Diagnostics> {
        let parsed = document::read(source).map_err(|mut problems| {
            secret::hide_all(&mut problems, &source.text);
            problems
        })?;
        let mut found = Diagnostics::default();
        found.extend(parsed.diagnostics.iter().cloned());
        let entries = match &parsed.root.value {
            Value::Map(entries) => entries.as_slice(),
            _ if parsed.root.is_null() => &[],
            _ => {
                let message = format!("the configuration is a map of keys, not {}", parsed.root.kind());
                found.push(Diagnostic::error("not-a-configuration", message).at(parsed.root.span));
                secret::hide(&mut found, &parsed.root, &source.text);
                return Err(found);
            }
        };
        let written = written(entries, &mut found);
        let reading =
            Reading { entries, whole: parsed.root.span, folder: path.parent().unwrap_or(Path::new("/")) };
        let config = reading.judge(written, path, &mut found);
        found.sort();
        if parsed.diagnostics.is_empty() {
            secret::hide(&mut found, &parsed.root, &source.text);
        } else {
            secret::hide_all(&mut found, &source.text);
        }
        if found.has_errors() { Err(found) } else { Ok((config, found)) }
    }

    /// Returns what is wrong with the files that the configuration names. An agent that runs does without them: what is in force
    /// stays in force, and files may come.
    pub(crate) fn check_files(&self) -> Diagnostics {
        let mut found = Diagnostics::default();
        if let Some(Signers { path, span }) = &self.signers
            && let Err(error) = AllowedSigners::read(path).and_then(AllowedSigners::check)
        {
            let problem = Diagnostic::error("allowed-signers", format!("allowed_signers: {error}"));
            found.push(problem.at(*span).with_help("without it nothing that is signed is taken"));
        }
        found
    }

    /// Returns whether content must be a bundle, whose name and version are signed.
    pub(crate) fn requires_bundle(&self, purpose: Purpose) -> bool {
        let is_allowed = purpose == Purpose::Data && self.written.unversioned_data == UnversionedData::Allow;
        self.signers.is_some() && !is_allowed
    }

    /// Returns every source, the data first.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&Address, Purpose)> {
        let data = self.data.iter().map(|address| (address, Purpose::Data));
        data.chain(self.manifests.iter().map(|address| (address, Purpose::Manifest)))
    }
}

/// Reads the keys one by one, so that each faulty one is told.
fn written(entries: &[Entry], found: &mut Diagnostics) -> Written {
    let known = keys::<Written>();
    let mut good = Vec::new();
    for entry in entries {
        if !known.contains(&entry.key.as_str()) {
            let help = closest(&entry.key, known.iter().copied()).map_or_else(
                || format!("the keys are {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let problem = Diagnostic::error("unknown-key", format!("unknown key `{}`", entry.key));
            found.push(problem.at(entry.key_span).with_help(help));
            continue;
        }
        // A key without a value is one that is not there.
        if entry.value.is_null() {
            continue;
        }
        let alone = Node { value: Value::Map(vec![entry.clone()]), span: entry.value.span };
        match from_node::<Written>(&alone) {
            Ok(_) => good.push(entry.clone()),
            Err(error) => {
                let reason = match error.wanted {
                    // What was found there may be a password.
                    Some(wanted) if secret::holds_address(&entry.value) => {
                        format!("expected {wanted}, found something else")
                    }
                    _ => error.message,
                };
                let message = format!("{}: {reason}", entry.key);
                found.push(
                    Diagnostic::error("invalid-value", message).at(error.span.unwrap_or(entry.value.span)),
                );
            }
        }
    }
    from_node(&Node { value: Value::Map(good), span: Span::default() }).unwrap_or_default()
}

/// A file whose keys are judged together.
struct Reading<'a> {
    entries: &'a [Entry],
    whole: Span,
    folder: &'a Path,
}

impl Reading<'_> {
    fn span(&self, key: &str) -> Span {
        self.entries.iter().find(|entry| entry.key == key).map_or(self.whole, |entry| entry.value.span)
    }

    fn judge(&self, written: Written, path: &Path, found: &mut Diagnostics) -> Config {
        let manifests = self.manifests(&written, found);
        let data = Some(written.external_data_url.as_str()).filter(|text| !text.is_empty());
        let data = data.and_then(|text| self.address(text, Purpose::Data, "external_data_url", found));
        self.times(&written, found);
        if written.cache_dir.as_deref() == Some("") {
            let problem = Diagnostic::error("invalid-value", "cache_dir: it is empty");
            let help = "leave the key out to use `sources` in the state directory";
            found.push(problem.at(self.span("cache_dir")).with_help(help));
        }
        if written.require_signature
            && matches!(&data, Some(Address::Nats(data)) if data.store == nats::Store::KeyValue)
        {
            let message = "external_data_url: data from kv:// cannot be signed, and require_signature is set";
            let help = "build a signed bundle with `ccm bundle build --data`, and publish it as an object (obj://) or on a web server";
            let problem = Diagnostic::error("unsigned-data", message);
            found.push(problem.at(self.span("external_data_url")).with_help(help));
        }
        self.names(&written, found);
        let signers = self.signers(&written, found);
        let metrics = self.metrics(&written, found);
        let splay = written.splay.unwrap_or_else(|| (written.interval.as_std() / 10).into()).as_std();
        Config {
            path: path.to_owned(),
            manifests,
            data,
            cache_dir: written.cache_dir.as_ref().map(|folder| self.folder.join(folder)),
            signers,
            metrics,
            splay,
            written,
        }
    }

    fn manifests(&self, written: &Written, found: &mut Diagnostics) -> Vec<Address> {
        let entry = self.entries.iter().find(|entry| entry.key == "manifests");
        let is_faulty = entry.is_some_and(|Entry { value, .. }| {
            !value.is_null() && value.as_seq().is_none_or(|items| !items.is_empty())
        });
        if written.manifests.is_empty() && !is_faulty {
            let problem = Diagnostic::error("no-manifests", "no manifests: name at least one");
            let help = "write `manifests: [obj://BUCKET/KEY]`, a URL or a path";
            found.push(problem.at(self.span("manifests")).with_help(help));
        }
        let items = entry.and_then(|entry| entry.value.as_seq()).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut manifests = Vec::new();
        for (at, text) in written.manifests.iter().enumerate() {
            let span = items.get(at).map_or_else(|| self.span("manifests"), |item| item.span);
            match Address::parse(text, Purpose::Manifest, self.folder) {
                Err(error) => {
                    found.push(Diagnostic::error("invalid-address", format!("manifests: {error}")).at(span));
                }
                Ok(address) if !seen.insert(address.id()) => {
                    let message = format!("manifests: {address} is there twice");
                    found.push(Diagnostic::error("double-manifest", message).at(span));
                }
                Ok(address) => manifests.push(address),
            }
        }
        manifests
    }

    fn address(&self, text: &str, purpose: Purpose, key: &str, found: &mut Diagnostics) -> Option<Address> {
        let parsed = Address::parse(text, purpose, self.folder);
        parsed
            .map_err(|error| {
                let problem = Diagnostic::error("invalid-address", format!("{key}: {error}"));
                found.push(problem.at(self.span(key)));
            })
            .ok()
    }

    fn times(&self, written: &Written, found: &mut Diagnostics) {
        if written.interval < SHORTEST_INTERVAL {
            let message = format!("interval: {} is too short: give at least 30s", written.interval);
            let problem = Diagnostic::error("invalid-value", message).at(self.span("interval"));
            let help = "with `watch`, drift is repaired when it happens whatever the interval";
            found.push(problem.with_help(help));
        }
        let positive = [
            ("health_check_interval", written.health_check_interval),
            ("poll", Some(written.poll)),
            ("fetch_timeout", Some(written.fetch_timeout)),
        ];
        for (key, _) in
            positive.into_iter().filter(|(_, time)| time.is_some_and(|time| time.as_std().is_zero()))
        {
            let problem = Diagnostic::error("invalid-value", format!("{key}: it must be longer than 0s"));
            found.push(problem.at(self.span(key)));
        }
    }

    /// Judges what NATS is to know by these names.
    fn names(&self, written: &Written, found: &mut Diagnostics) {
        let stream = written.registration_stream.as_deref().map(nats::check_stream);
        let events = written.events.as_deref().map(nats::check_subject);
        for (key, checked) in [("registration_stream", stream), ("events", events)] {
            if let Some(Err(error)) = checked {
                let problem = Diagnostic::error("invalid-value", format!("{key}: {error}"));
                found.push(problem.at(self.span(key)));
            }
        }
    }

    fn signers(&self, written: &Written, found: &mut Diagnostics) -> Option<Signers> {
        if !written.require_signature {
            return None;
        }
        if written.allowed_signers.is_empty() {
            let problem = Diagnostic::error("invalid-value", "allowed_signers: it is empty");
            found.push(problem.at(self.span("allowed_signers")));
        }
        let is_named = self.entries.iter().any(|entry| entry.key == "allowed_signers");
        let span = self.span(if is_named { "allowed_signers" } else { "require_signature" });
        Some(Signers { path: self.folder.join(&written.allowed_signers), span })
    }

    fn metrics(&self, written: &Written, found: &mut Diagnostics) -> Option<String> {
        match (&written.metrics, written.monitor_port) {
            (Some(_), port) if port != 0 => {
                let problem = Diagnostic::error("invalid-value", "metrics and monitor_port: give only one");
                found.push(problem.at(self.span("monitor_port")).with_help("leave monitor_port out"));
                None
            }
            (Some(text), _) => {
                let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
                if port.is_none() {
                    let message = format!("metrics: `{text}` is no address: write 127.0.0.1:9100 or :9100");
                    found.push(Diagnostic::error("invalid-value", message).at(self.span("metrics")));
                }
                Some(text.clone())
            }
            (None, 0) => None,
            (None, port) => {
                let message = format!("monitor_port: metrics are served on all interfaces, port {port}");
                let help = format!("`metrics: 127.0.0.1:{port}` is safer");
                let warning = Diagnostic::warning("open-port", message).at(self.span("monitor_port"));
                found.push(warning.with_help(help));
                Some(format!(":{port}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Config, Diagnostics), Diagnostics> {
        let source = Source { name: "agent.yaml".to_owned(), text: text.to_owned() };
        Config::read(&source, Path::new("/etc/ccm/agent.yaml"))
    }

    #[test]
    fn the_original_s_file_is_understood() {
        let (config, warnings) = read(
            "interval: 5m\nhealth_check_interval: 10s\nmanifests:\n  - obj://CCM/site/web.tar.gz\n  - base.yaml\n\
             external_data_url: kv://CCM/data\ncache_dir: /etc/choria/ccm/source\nmonitor_port: 9100\n\
             log_level: debug\nnats_context: FLEET\nregistration: jetstream\n",
        )
        .unwrap();
        assert_eq!(config.manifests[1].to_string(), "/etc/ccm/base.yaml");
        assert_eq!(config.data.unwrap().to_string(), "kv://CCM/data");
        assert_eq!(config.metrics.as_deref(), Some(":9100"));
        assert_eq!(config.splay, time::Duration::from_secs(30));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(config.written.registration, Registration::Jetstream);
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        for (text, expected) in [
            ("", "no manifests"),
            ("manifests: []", "no manifests"),
            ("manifests: x.yaml", "manifests: expected a list, found the string \"x.yaml\""),
            ("manifests: [a.yaml, ./a.yaml]", "is there twice"),
            ("manifests: [ftp://h/x]", "only http and https"),
            ("manifests: [a.yaml]\ninterval: 10s", "give at least 30s"),
            ("manifests: [a.yaml]\ninterval: often", "interval: "),
            ("manifests: [a.yaml]\nintervall: 5m", "unknown key `intervall`"),
            ("manifests: [a.yaml]\nhealth_check_interval: 0s", "longer than 0s"),
            ("manifests: [a.yaml]\ncache_dir: \"\"", "cache_dir: it is empty"),
            ("manifests: [a.yaml]\nmonitor_port: 1\nmetrics: :1", "give only one"),
            ("manifests: [a.yaml]\nmetrics: nowhere", "is no address"),
            ("manifests: [a.yaml]\nrequire_signature: true\nexternal_data_url: kv://a/b", "cannot be signed"),
            ("manifests: [a.yaml]\nregistration: perhaps", "registration: "),
            ("manifests: [a.yaml]\nevents: \"ccm.events x\"", "events: \"ccm.events x\" is not a subject"),
            ("manifests: [a.yaml]\nevents: ccm.>", "events: \"ccm.>\" is not a subject"),
            ("manifests: [a.yaml]\nevents: .a..b", "events: \".a..b\" is not a subject"),
            (
                "manifests: [a.yaml]\nregistration_stream: a b.>",
                "registration_stream: \"a b.>\" is not the name",
            ),
            (
                "manifests: [a.yaml]\nrequire_signature: true\nallowed_signers: ''",
                "allowed_signers: it is empty",
            ),
            ("- a.yaml", "a map of keys"),
        ] {
            let found = read(text).expect_err(text);
            let told: Vec<&str> = found.errors().map(|found| found.message.as_str()).collect();
            assert!(told.iter().any(|told| told.contains(expected)), "{text}: {told:?}");
            assert!(found.errors().all(|found| found.span.is_some()), "{text}");
        }
    }

    #[test]
    fn keys_without_a_value_are_as_good_as_none() {
        let (config, _) = read("manifests: [a.yaml]\nexternal_data_url: \"\"\ncache_dir:\n").unwrap();
        assert!(config.data.is_none() && config.cache_dir.is_none());
    }
}
