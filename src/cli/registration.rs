//! `ccm registration`

mod show;
mod watching;

use std::io::{self, Write};

use clap::{Arg, ArgAction, ArgMatches, Command};

use self::show::{Format, show};
use super::{
    Exit,
    failure::Failure,
    interrupt,
    nats::{self, NatsFlags},
    output::Output,
    required, switch,
};
use crate::{
    nats::{Nats, NatsError},
    registration::{self, Filter, Initialised, Registration},
    run::Environment,
    vocabulary::Duration,
};

pub(super) fn command() -> Command {
    let init = Command::new("init")
        .about("Makes the stream that holds registrations, or repairs its settings")
        .after_help("Example:\n  ccm registration init")
        .arg(
            Arg::new("replicas")
                .long("replicas")
                .value_name("COUNT")
                .value_parser(clap::value_parser!(u8).range(1..=5))
                .default_value("1")
                .help("On how many servers the stream is kept"),
        )
        .arg(
            Arg::new("max-age")
                .long("max-age")
                .value_name("DURATION")
                .default_value("1m")
                .help("How long an entry is kept that is not renewed"),
        );
    let create = entry_arguments(Command::new("create"))
        .alias("c")
        .about("Publishes an entry")
        .after_help(
            "Example:\n  ccm registration create --cluster lab --service web --protocol http \\\n    \
             --address 192.0.2.7 --port 8080 --ttl 1m",
        )
        .arg(Arg::new("priority").long("priority").value_name("NUMBER").default_value("100").help("1 to 255"))
        .arg(
            Arg::new("ttl")
                .long("ttl")
                .value_name("DURATION")
                .default_value("30s")
                .help("How long the entry is good, or never"),
        )
        .arg(
            Arg::new("annotation")
                .long("annotation")
                .short('A')
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("What others should know about it; may be repeated"),
        );
    let rm = entry_arguments(Command::new("rm"))
        .alias("delete")
        .about("Removes an entry")
        .after_help(
            "Example:\n  ccm registration rm --cluster lab --service web --protocol http \\\n    \
             --address 192.0.2.7 --port 8080 --force",
        )
        .arg(switch("force", "Do not ask").short('f'));
    let query = filter_arguments(Command::new("query"))
        .alias("q")
        .about("Shows entries, sorted by address and port")
        .after_help("Examples:\n  ccm registration query lab http\n  ccm registration query --prometheus")
        .arg(switch("yaml", "Print YAML").conflicts_with("json"))
        .arg(
            switch("prometheus", "Print targets for Prometheus' file discovery")
                .conflicts_with_all(["json", "yaml"]),
        );
    let watch = filter_arguments(Command::new("watch"))
        .about("Shows entries that come and go")
        .after_help("Example:\n  ccm registration watch lab --json");
    let subcommands = [init, create, query, watch, rm];
    Command::new("registration")
        .aliases(["reg", "r"])
        .about("Shows and changes which services there are in a fleet")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(
            subcommands.map(|command| command.arg(nats::context_argument()).arg(nats::stream_argument())),
        )
}

fn entry_arguments(command: Command) -> Command {
    let word = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(name.to_uppercase()).required(true).help(help)
    };
    command.args([
        word("cluster", "The cluster that the service is part of"),
        word("service", "The name of the service"),
        word("protocol", "The protocol that it speaks"),
        word("address", "The IP address or host name that it is reached at"),
        word("port", "The port that it listens on, if it has one").required(false),
    ])
}

fn filter_arguments(command: Command) -> Command {
    let word = |name: &'static str| Arg::new(name).value_name(name.to_uppercase());
    command
        .args([
            word("cluster").help("Only entries of this cluster; \"\" and * stand for all"),
            word("protocol").help("Only entries of this protocol"),
            word("service").help("Only entries of this service"),
            word("address").help("Only entries of this address"),
        ])
        .arg(switch("json", "Print JSON"))
}

/// What `ccm registration` is asked.
pub(super) struct Arguments {
    nats: NatsFlags,
    request: Request,
}

enum Request {
    Init { replicas: u8, max_age: Duration },
    Create(Registration),
    Query { filter: Filter, format: Format },
    Watch { filter: Filter, format: Format },
    Remove { entry: Registration, consent: Consent },
}

/// Whether somebody is asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    Asked,
}

impl Arguments {
    pub(super) fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let Some((name, matches)) = matches.subcommand() else {
            return Err(Failure::new("no command was given; see `ccm registration --help`"));
        };
        let request = match name {
            "init" => Request::Init {
                replicas: required(matches, "replicas")?,
                max_age: parsed(matches, "max-age")?,
            },
            "create" => Request::Create(entry(matches)?),
            "query" => Request::Query { filter: filter(matches)?, format: Format::from_matches(matches) },
            "watch" => Request::Watch { filter: filter(matches)?, format: Format::from_matches(matches) },
            _ => Request::Remove {
                entry: entry(matches)?,
                consent: if matches.get_flag("force") { Consent::Given } else { Consent::Asked },
            },
        };
        Ok(Self { nats: NatsFlags::from_matches(matches), request })
    }
}

/// Reads a flag, and names it in what is wrong with it.
fn parsed<T: std::str::FromStr>(matches: &ArgMatches, name: &'static str) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    let text: String = required(matches, name)?;
    text.parse().map_err(|error| Failure::new(format!("--{name}: {error}")))
}

fn entry(matches: &ArgMatches) -> Result<Registration, Failure> {
    let given = |name: &str| matches.try_get_one::<String>(name).ok().flatten().is_some();
    let mut annotations = std::collections::BTreeMap::new();
    for pair in matches.try_get_many::<String>("annotation").ok().flatten().into_iter().flatten() {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| Failure::new(format!("--annotation: \"{pair}\" is not of the form KEY=VALUE")))?;
        annotations.insert(key.to_owned(), value.into());
    }
    Ok(Registration {
        cluster: parsed(matches, "cluster")?,
        service: parsed(matches, "service")?,
        protocol: parsed(matches, "protocol")?,
        address: parsed(matches, "address")?,
        port: given("port").then(|| parsed(matches, "port")).transpose()?,
        priority: given("priority").then(|| parsed(matches, "priority")).transpose()?.unwrap_or_default(),
        annotations,
        ttl: given("ttl").then(|| parsed(matches, "ttl")).transpose()?,
    })
}

fn filter(matches: &ArgMatches) -> Result<Filter, Failure> {
    let words = ["cluster", "protocol", "service", "address"]
        .map(|name| matches.get_one::<String>(name).cloned().unwrap_or_default());
    Filter::parse(&words).map_err(|error| Failure::new(error.to_string()))
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let nats = arguments.nats.nats(&Environment::of_process());
    let done = match arguments.request {
        Request::Init { replicas, max_age } => init(&nats, replicas, max_age, output),
        Request::Create(entry) => create(&nats, &entry, output),
        Request::Query { filter, format } => {
            let entries = nats
                .connection()
                .and_then(|connection| registration::query(connection, &nats.registration_stream, &filter))
                .map_err(|error| failed(error, &nats))?;
            show(&entries, format, output)
        }
        Request::Watch { filter, format } => watching::watch(&nats, &filter, format, &interrupt()?, output),
        Request::Remove { entry, consent } => remove(&nats, &entry, consent, output),
    };
    done.map(|()| Exit::Success)
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

fn remove(nats: &Nats, entry: &Registration, consent: Consent, output: &mut Output) -> Result<(), Failure> {
    let subject = entry.subject();
    if consent == Consent::Asked && !is_agreed(&format!("remove {subject}? [y/N] ")) {
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
