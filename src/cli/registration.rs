//! `ccm registration`

mod show;
mod watching;

use std::{
    collections::BTreeMap,
    fmt::Display,
    io::{self, Write},
    str::FromStr,
    sync::Arc,
};

use clap::{Args, Subcommand};

use self::show::{Format, show};
use super::{
    Exit,
    failure::{Failure, warn},
    interrupt,
    machine::{NatsFlags, StreamFlag},
    output::Output,
};
use crate::{
    nats::{Nats, NatsError},
    registration::{self, Filter, Found, Initialised, Priority, Registration},
    run::Environment,
    visible::visible_line,
    vocabulary::{Duration, ScalarText},
};

/// Arguments of `ccm registration`.
#[derive(Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    request: Request,
}

#[derive(Subcommand)]
enum Request {
    /// Makes the stream that holds registrations, or repairs its settings
    #[command(after_help = "Example:\n  ccm registration init")]
    Init {
        /// On how many servers the stream is kept
        #[arg(
            long,
            value_name = "COUNT",
            value_parser = clap::value_parser!(u8).range(1..=5),
            default_value = "1",
        )]
        replicas: u8,
        /// How long an entry is kept that is not renewed
        #[arg(long, value_name = "DURATION", default_value = "1m")]
        max_age: String,
        #[command(flatten)]
        registry: RegistryFlags,
    },
    /// Publishes an entry
    #[command(
        alias = "c",
        after_help = "Example:\n  ccm registration create --cluster lab --service web --protocol http \\\n    \
                      --address 192.0.2.7 --port 8080 --ttl 1m"
    )]
    Create {
        #[command(flatten)]
        entry: EntryFlags,
        /// 1 to 255
        #[arg(long, value_name = "NUMBER", default_value = "100")]
        priority: String,
        /// How long the entry is good, or never
        #[arg(long, value_name = "DURATION", default_value = "30s")]
        ttl: String,
        /// What others should know about it; may be repeated
        #[arg(long, short = 'A', value_name = "KEY=VALUE")]
        annotation: Vec<String>,
        #[command(flatten)]
        registry: RegistryFlags,
    },
    /// Shows entries, sorted by address and port
    #[command(
        alias = "q",
        after_help = "Examples:\n  ccm registration query lab http\n  ccm registration query --prometheus"
    )]
    Query {
        #[command(flatten)]
        filter: FilterArguments,
        /// Print YAML
        #[arg(long, conflicts_with = "json")]
        yaml: bool,
        /// Print targets for Prometheus' file discovery
        #[arg(long, conflicts_with_all = ["json", "yaml"])]
        prometheus: bool,
        #[command(flatten)]
        registry: RegistryFlags,
    },
    /// Shows entries that come and go
    #[command(after_help = "Example:\n  ccm registration watch lab --json")]
    Watch {
        #[command(flatten)]
        filter: FilterArguments,
        #[command(flatten)]
        registry: RegistryFlags,
    },
    /// Removes an entry
    #[command(
        name = "rm",
        alias = "delete",
        after_help = "Example:\n  ccm registration rm --cluster lab --service web --protocol http \\\n    \
                      --address 192.0.2.7 --port 8080 --force"
    )]
    Remove {
        #[command(flatten)]
        entry: EntryFlags,
        /// Do not ask
        #[arg(long, short)]
        force: bool,
        #[command(flatten)]
        registry: RegistryFlags,
    },
}

/// Where registrations are stored.
#[derive(Args)]
struct RegistryFlags {
    #[command(flatten)]
    nats: NatsFlags,
    #[command(flatten)]
    stream: StreamFlag,
}

impl RegistryFlags {
    fn nats(mut self) -> Result<Arc<Nats>, Failure> {
        self.nats.select(self.stream);
        self.nats.nats(&Environment::of_process(), None)
    }
}

/// An entry.
#[derive(Args)]
struct EntryFlags {
    /// The cluster that the service is part of
    #[arg(long)]
    cluster: String,
    /// The name of the service
    #[arg(long)]
    service: String,
    /// The protocol that it speaks
    #[arg(long)]
    protocol: String,
    /// The IP address or host name that it is reached at
    #[arg(long)]
    address: String,
    /// The port that it listens on, if it has one
    #[arg(long)]
    port: Option<String>,
}

impl EntryFlags {
    fn entry(&self) -> Result<Registration, Failure> {
        Ok(Registration {
            cluster: parsed(&self.cluster, "cluster")?,
            service: parsed(&self.service, "service")?,
            protocol: parsed(&self.protocol, "protocol")?,
            address: parsed(&self.address, "address")?,
            port: self.port.as_deref().map(|port| parsed(port, "port")).transpose()?,
            priority: Priority::default(),
            annotations: BTreeMap::new(),
            ttl: None,
        })
    }
}

/// Which entries to show, and whether as JSON.
#[derive(Args)]
struct FilterArguments {
    /// Only entries of this cluster; "" and * stand for all
    cluster: Option<String>,
    /// Only entries of this protocol
    protocol: Option<String>,
    /// Only entries of this service
    service: Option<String>,
    /// Only entries of this address
    address: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FilterArguments {
    fn filter(self) -> Result<Filter, Failure> {
        let words = [self.cluster, self.protocol, self.service, self.address].map(Option::unwrap_or_default);
        Filter::parse(&words).map_err(|error| Failure::new(error.to_string()))
    }
}

/// Parses the value of a flag; the message of a failure names the flag.
fn parsed<T: FromStr>(text: &str, flag: &str) -> Result<T, Failure>
where
    T::Err: Display,
{
    text.parse().map_err(|error| Failure::new(format!("--{flag}: {error}")))
}

fn annotations(given: &[String]) -> Result<BTreeMap<String, ScalarText>, Failure> {
    let split = |pair: &String| {
        let pair = pair.split_once('=').map(|(key, value)| (key.to_owned(), value.into()));
        pair.ok_or(())
    };
    let wrong =
        |pair: &String| Failure::new(format!("--annotation: \"{pair}\" is not of the form KEY=VALUE"));
    given.iter().map(|pair| split(pair).map_err(|()| wrong(pair))).collect()
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.request {
        Request::Init { replicas, max_age, registry } => {
            init(&*registry.nats()?, replicas, parsed(&max_age, "max-age")?, output)
        }
        Request::Create { entry, priority, ttl, annotation, registry } => {
            let annotations = annotations(&annotation)?;
            let (priority, ttl) = (parsed(&priority, "priority")?, Some(parsed(&ttl, "ttl")?));
            let entry = Registration { priority, annotations, ttl, ..entry.entry()? };
            create(&*registry.nats()?, &entry, output)
        }
        Request::Query { filter, yaml, prometheus, registry } => {
            let format = match (filter.json, yaml, prometheus) {
                (true, ..) => Format::Json,
                (_, true, _) => Format::Yaml,
                (.., true) => Format::Prometheus,
                _ => Format::Text,
            };
            let (filter, nats) = (filter.filter()?, registry.nats()?);
            let Found { entries, problems } = nats
                .connection()
                .and_then(|connection| {
                    registration::query(
                        connection,
                        &nats.registration_stream,
                        nats.max_registrations,
                        &filter,
                    )
                })
                .map_err(|error| failed(error, &nats))?;
            for (subject, reason) in &problems {
                warn(&format!("{}: {reason}", visible_line(subject)));
            }
            show(&entries, format, output)
        }
        Request::Watch { filter, registry } => {
            let format = if filter.json { Format::Json } else { Format::Text };
            watching::watch(&*registry.nats()?, &filter.filter()?, format, &interrupt()?, output)
        }
        Request::Remove { entry, force, registry } => {
            remove(&*registry.nats()?, &entry.entry()?, force, output)
        }
    }
    .map(|()| Exit::Success)
}

fn init(nats: &Nats, replicas: u8, max_age: Duration, output: &mut Output) -> Result<(), Failure> {
    let stream = &nats.registration_stream;
    let done = nats
        .connection()
        .and_then(|connection| registration::init(connection, stream, replicas, max_age.as_std()));
    match done.map_err(|error| Failure::new(error.to_string()))? {
        Initialised::Created => output.line(&format!("made stream {stream}")),
        Initialised::Repaired(settings) => {
            output.line(&format!("changed {} of stream {stream}", settings.join(", ")));
        }
        Initialised::Unchanged => output.line(&format!("stream {stream} is as it should be")),
    }
    Ok(())
}

fn create(nats: &Nats, entry: &Registration, output: &mut Output) -> Result<(), Failure> {
    let published = nats
        .connection()
        .and_then(|connection| connection.put(&entry.subject(), &entry.headers(None), entry.payload()));
    published.map_err(|error| failed(error, nats))?;
    output.line(&format!("published {}", entry.subject()));
    Ok(())
}

fn remove(nats: &Nats, entry: &Registration, force: bool, output: &mut Output) -> Result<(), Failure> {
    let subject = entry.subject();
    if !force && !is_agreed(&format!("remove {subject}? [y/N] ")) {
        return Err(Failure::new("nothing was removed; --force does not ask"));
    }
    let removed = nats
        .connection()
        .and_then(|connection| registration::remove(connection, &nats.registration_stream, entry));
    let line = if removed.map_err(|error| failed(error, nats))? {
        format!("removed {subject}")
    } else {
        format!("there was no {subject}")
    };
    output.line(&line);
    Ok(())
}

/// Asks on standard error, and reads the answer from standard input.
fn is_agreed(question: &str) -> bool {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{question}");
    let _ = stderr.flush();
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn failed(error: NatsError, nats: &Nats) -> Failure {
    match error {
        NatsError::NoStream { .. } | NatsError::NobodyListens { .. } => Failure::new(format!(
            "{error}; `ccm registration init` makes the stream {}",
            nats.registration_stream
        )),
        error => Failure::new(error.to_string()),
    }
}
