//! The options of `--on`.

use std::{
    io::{IsTerminal, stdin},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::{ArgMatches, Args, Command, FromArgMatches, parser::ValueSource, value_parser};

use super::{
    super::{
        failure::{Failure, warn},
        hosts::{self, HostFlags},
        interrupt,
        load_inputs::IdentityFlags,
        machine::StateFolder,
        progress::Progress,
        prompt::Terminal,
        report::{Format, Verbosity},
    },
    CONNECT_TIMEOUT,
    askpass::{Askpass, ask_password},
    forward::is_json,
};
use crate::{
    host::{input, process, users::Users},
    inventory::Machine,
    push::{Amount, Become, Destination, Pace, Password, Target, Transport, batches},
    run::Environment,
    secrets::{Keyring, WithoutKey},
    vocabulary::{self, RunMode, TimeLimit},
};

/// Options of every command with `--on`.
#[derive(Args)]
#[command(next_help_heading = "Other machines")]
pub(in crate::cli) struct OnFlags {
    /// Run on these hosts over ssh: destinations, or a pattern with `-i`
    #[arg(long, value_name = "HOSTS")]
    pub(super) on: Option<String>,
    #[command(flatten)]
    hosts: HostFlags,
    /// Maximum number of hosts at the same time [default: 50]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u16).range(1..))]
    parallel: Option<u16>,
    /// Become root with sudo
    #[arg(long)]
    sudo: bool,
    /// Program to become root with
    #[arg(id = "become", long = "become", value_name = "PROGRAM", value_parser = ["sudo", "doas"], conflicts_with = "sudo")]
    becomes: Option<String>,
    /// Ask for the password for sudo once
    #[arg(long)]
    ask_password: bool,
    /// Program to use instead of `ssh`
    #[arg(long, value_name = "PROGRAM")]
    ssh: Option<String>,
    /// Option for `ssh -o`; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    ssh_option: Vec<String>,
    /// How long to wait until a host answers [default: 30s]
    #[arg(long, value_name = "DURATION")]
    connect_timeout: Option<vocabulary::Duration>,
    /// Program for hosts of an architecture; can be repeated
    #[arg(long, value_name = "ARCH=FILE")]
    target_binary: Vec<String>,
}

/// Options of commands that change hosts, in batches.
#[derive(Args)]
#[command(next_help_heading = "Other machines")]
pub(in crate::cli) struct RollFlags {
    #[command(flatten)]
    on: OnFlags,
    /// Sizes of batches, such as `1,10%,50%`; the last one repeats
    #[arg(long, value_name = "SIZES")]
    batch: Option<String>,
    /// Maximum number of failed, unhealthy and refused hosts
    #[arg(long, value_name = "NUMBER|PERCENT")]
    max_fail: Option<Amount>,
    /// Maximum number of unreachable hosts
    #[arg(long, value_name = "NUMBER|PERCENT")]
    max_unreachable: Option<Amount>,
    /// How long to wait between batches
    #[arg(long, value_name = "DURATION")]
    pause: Option<vocabulary::Duration>,
    /// Never put all hosts with one value of a variable in one batch
    #[arg(long, value_name = "VARIABLE")]
    spread: Option<String>,
    /// Take hosts in random order
    #[arg(long)]
    shuffle: bool,
    /// Continue a push: skip the hosts that were ok
    #[arg(long, value_name = "RUN")]
    resume: Option<String>,
}

/// Arguments of a command that can also run on other machines.
pub(in crate::cli) struct WithHosts<A>(pub(in crate::cli) A);

/// Arguments of a command that can also change other machines, in batches.
pub(in crate::cli) struct WithRoll<A>(pub(in crate::cli) A);

impl<A: Args> Args for WithHosts<A> {
    fn augment_args(command: Command) -> Command {
        with_flags::<A, OnFlags>(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: Args> Args for WithRoll<A> {
    fn augment_args(command: Command) -> Command {
        with_flags::<A, RollFlags>(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds arguments, and flags for other machines after them.
fn with_flags<A: Args, F: Args>(command: Command) -> Command {
    let command = A::augment_args(command);
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    // Flags that are flattened bring a description of their own.
    let command = F::augment_args(command).about(about.unwrap_or_default());
    match long_about {
        Some(text) => command.long_about(text),
        None => command,
    }
}

impl<A: FromArgMatches> FromArgMatches for WithHosts<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A: FromArgMatches> FromArgMatches for WithRoll<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Options that have no meaning without `--on`.
const NEEDS_ON: [&str; 17] = [
    "inventory",
    "limit",
    "parallel",
    "sudo",
    "become",
    "ask_password",
    "ssh",
    "ssh_option",
    "connect_timeout",
    "target_binary",
    "batch",
    "max_fail",
    "max_unreachable",
    "pause",
    "spread",
    "shuffle",
    "resume",
];

/// Returns an option that was given without `--on`, as it is written.
pub(super) fn without_on(matches: &ArgMatches) -> Option<String> {
    matches.try_get_one::<String>("on").ok()?;
    let is_given = |name: &&str| {
        matches.try_contains_id(name).unwrap_or(false)
            && matches.value_source(name) == Some(ValueSource::CommandLine)
    };
    NEEDS_ON.into_iter().find(is_given).map(|name| name.replace('_', "-"))
}

/// Batches and limits.
#[derive(Default)]
pub(super) struct Roll {
    sizes: Vec<Amount>,
    max_fail: Option<Amount>,
    max_unreachable: Option<Amount>,
    pub(super) pause: Duration,
    spread: Option<String>,
    shuffle: bool,
    pub(super) resume: Option<String>,
}

impl TryFrom<RollFlags> for Roll {
    type Error = Failure;

    fn try_from(flags: RollFlags) -> Result<Self, Failure> {
        let sizes = flags.batch.as_deref().unwrap_or_default().split(',').filter(|size| !size.is_empty());
        let sizes: Result<Vec<Amount>, String> = sizes.map(str::parse).collect();
        Ok(Self {
            sizes: sizes.map_err(|error| Failure::new(format!("--batch: {error}")))?,
            max_fail: flags.max_fail,
            max_unreachable: flags.max_unreachable,
            pause: flags.pause.map(vocabulary::Duration::as_std).unwrap_or_default(),
            spread: flags.spread,
            shuffle: flags.shuffle,
            resume: flags.resume,
        })
    }
}

/// The options of `--on`.
pub(super) struct Flags {
    on: String,
    inventories: Vec<PathBuf>,
    limits: Vec<String>,
    parallel: usize,
    pub(super) becomes: Become,
    ask_password: bool,
    ssh: String,
    ssh_options: Vec<String>,
    connect_timeout: Duration,
    pub(super) binaries: Vec<(String, PathBuf)>,
    pub(super) roll: Roll,
    pub(super) format: Format,
    pub(super) verbosity: Verbosity,
    pub(super) detailed_exitcode: bool,
    pub(super) noop: bool,
    pub(super) reason: Option<String>,
    pub(super) records_history: bool,
    identities: IdentityFlags,
    /// Whether variables of the inventory become data on the hosts.
    sends_data: bool,
    /// How long runs wait for their confirmation, if the command line sets that.
    pub(super) confirm: Option<Duration>,
    pub(super) state: StateFolder,
}

impl Flags {
    pub(super) fn from_matches(on: &str, matches: &ArgMatches) -> Result<Self, Failure> {
        let parsed = |error: clap::Error| Failure::new(error.to_string());
        let flag = |name: &str| matches.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or_default();
        let flags = OnFlags::from_arg_matches(matches).map_err(parsed)?;
        // Only commands that change hosts have batches.
        let has_batches = matches.try_contains_id("batch").is_ok();
        let roll = || RollFlags::from_arg_matches(matches).map_err(parsed).and_then(Roll::try_from);
        let roll = has_batches.then(roll).transpose()?;
        Ok(Self {
            on: on.to_owned(),
            inventories: flags.hosts.inventory,
            limits: flags.hosts.limit,
            parallel: flags.parallel.map_or(50, usize::from),
            becomes: match flags.becomes.as_deref() {
                Some("doas") => Become::Doas { user: None },
                None if !flags.sudo => Become::Nothing,
                _ => Become::Sudo { user: None },
            },
            ask_password: flags.ask_password,
            ssh: flags.ssh.unwrap_or_else(|| "ssh".to_owned()),
            ssh_options: flags.ssh_option,
            connect_timeout: flags.connect_timeout.map_or(CONNECT_TIMEOUT, vocabulary::Duration::as_std),
            binaries: flags.target_binary.iter().map(|text| binary(text)).collect::<Result<_, _>>()?,
            roll: roll.unwrap_or_default(),
            format: format(matches),
            verbosity: if flag("quiet") { Verbosity::Quiet } else { Verbosity::Normal },
            detailed_exitcode: flag("detailed_exitcode"),
            reason: matches.try_get_one::<String>("reason").ok().flatten().cloned(),
            records_history: !flag("no_history") && !Environment::of_process().turns_history_off(),
            noop: matches.try_get_one::<RunMode>("noop").ok().flatten() == Some(&RunMode::Noop)
                || flag("monitor_only"),
            identities: if matches.try_contains_id("identity").is_ok() {
                IdentityFlags::from_arg_matches(matches).map_err(parsed)?
            } else {
                IdentityFlags::default()
            },
            sends_data: matches.try_contains_id("hiera").is_ok(),
            confirm: matches.try_get_one::<TimeLimit>("confirm").ok().flatten().map(|time| time.as_std()),
            state: StateFolder::of(matches),
        })
    }

    /// Returns the identities that open the variables of an inventory.
    fn keyring(&self) -> Result<Keyring, Failure> {
        let environment = Environment::of_process();
        let state = self.state.directory(&environment)?;
        let places = self.identities.clone().places().into_iter();
        let places = places.chain(environment.identities(state.identity_path())).collect();
        let without_key = if self.sends_data { WithoutKey::Fail } else { WithoutKey::Placeholders };
        Ok(Keyring::new(places, Arc::new(Terminal), interrupt()?).without_key(without_key))
    }

    /// Returns the selected hosts, in the order in which they get their turn.
    pub(super) fn destinations(&self) -> Result<Vec<Destination>, Failure> {
        let invalid = |error: crate::push::DestinationError| Failure::new(error.to_string());
        let of_machines = |machines: Vec<Machine>| {
            let hosts: Result<Vec<_>, _> = machines.into_iter().map(Destination::of_machine).collect();
            hosts.map_err(invalid)
        };
        let mut destinations: Vec<Destination> = Vec::new();
        if self.inventories.is_empty() {
            if !self.limits.is_empty() {
                return Err(Failure::new("--limit needs an inventory: name one with `-i FILE`"));
            }
            for name in self.on.split(',').filter(|name| !name.is_empty()) {
                if name.starts_with(hosts::SSH) {
                    destinations.extend(of_machines(hosts::select(name, &[], &[], &Keyring::none())?)?);
                } else {
                    destinations.push(Destination::parse(name).map_err(invalid)?);
                }
            }
        } else {
            destinations =
                of_machines(hosts::select(&self.on, &self.inventories, &self.limits, &self.keyring()?)?)?;
        }
        let mut destinations = Destination::distinguish(destinations);
        if destinations.is_empty() {
            return Err(Failure::new(format!("`{}` selects no host", self.on)));
        }
        if self.roll.shuffle {
            shuffle(&mut destinations);
        }
        Ok(destinations)
    }

    /// Returns batches and limits for these targets.
    pub(super) fn pace(&self, targets: &[Target], may_change: bool) -> Pace {
        let total = targets.len();
        let values: Option<Vec<String>> = self.roll.spread.as_ref().map(|variable| {
            let value = |target: &Target| {
                target.destination.data().get(variable.as_str()).map(ccm_expr::Value::to_text)
            };
            // A host without the variable is like no other.
            targets
                .iter()
                .enumerate()
                .map(|(at, target)| value(target).unwrap_or_else(|| format!("\0{at}")))
                .collect()
        });
        let is_batched = !self.roll.sizes.is_empty();
        let limit = |given: Option<Amount>| match given {
            Some(amount) => Some(amount.limit(total)),
            None => is_batched.then_some(0),
        };
        let recheck = may_change && is_batched && !self.roll.pause.is_zero();
        Pace {
            batches: batches(total, &self.roll.sizes, values.as_deref()),
            parallel: self.parallel,
            max_fail: limit(self.roll.max_fail),
            max_unreachable: limit(self.roll.max_unreachable),
            pause: self.roll.pause,
            recheck: recheck.then(|| vec!["--monitor-only".to_owned()]),
            confirm: None,
        }
    }

    pub(super) fn transport(
        &self,
        environment: &Environment,
        users: &Users,
        askpass: Option<&Askpass>,
    ) -> Transport {
        let home = users.own_home().or_else(|| environment.home());
        let files = home
            .map(|home| home.join(".ssh/config"))
            .into_iter()
            .chain([PathBuf::from("/etc/ssh/ssh_config")]);
        let read = |path: PathBuf| input::read_file(&path, 1 << 20).ok();
        let configuration =
            files.filter_map(read).map(|bytes| String::from_utf8_lossy(&bytes).to_lowercase());
        Transport {
            program: self.ssh.clone().into(),
            options: self.ssh_options.clone(),
            configuration: without_comments(&configuration.collect::<Vec<_>>().join("\n")),
            connect_timeout: self.connect_timeout,
            becomes: self.becomes.clone(),
            askpass: askpass.map(Askpass::program_and_socket),
        }
    }

    /// Returns where the password for `sudo` comes from: it is needed once for all hosts.
    pub(super) fn password(&self, environment: &Environment, progress: Arc<Progress>) -> Password {
        let known: Arc<Mutex<Option<Found>>> = Arc::default();
        let command = environment.sudo_password_command();
        let asks = self.ask_password;
        Box::new(move || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get_or_insert_with(|| source(command.as_deref(), asks, &progress)).clone()
        })
    }
}

/// A password, if there is a source of it.
type Found = Result<Option<String>, String>;

/// Returns the format that `--json` selects. Some commands parse the flag as a format.
fn format(matches: &ArgMatches) -> Format {
    let typed = matches.try_get_one::<Format>("json").ok().flatten().copied();
    typed.unwrap_or_else(|| Format::of(is_json(matches)))
}

/// Returns whether a terminal can answer questions.
pub(super) fn can_ask() -> bool {
    stdin().is_terminal()
}

fn source(command: Option<&str>, asks: bool, progress: &Progress) -> Found {
    if asks {
        progress.hide();
        return ask_password("Password for sudo: ").map(Some);
    }
    let Some(command) = command else { return Ok(None) };
    let failed = |reason: &dyn std::fmt::Display| format!("CCM_SUDO_PASSWORD_COMMAND: {reason}");
    let interrupt = crate::host::interrupt::Interrupt::never().map_err(|error| failed(&error))?;
    let finished = process::Command::shell(command).run(&process::Runner::default(), &interrupt);
    let finished = finished.map_err(|error| failed(&error))?;
    if finished.exit != process::Exit::Code(0) {
        return Err(failed(&"the command failed"));
    }
    Ok(finished.stdout.text().lines().next().map(str::to_owned))
}

fn binary(text: &str) -> Result<(String, PathBuf), Failure> {
    let (architecture, file) = text
        .split_once('=')
        .ok_or_else(|| Failure::new(format!("--target-binary: `{text}` is not of the form ARCH=FILE")))?;
    Ok((architecture.to_owned(), Path::new(file).to_owned()))
}

fn without_comments(configuration: &str) -> String {
    let lines = configuration.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

/// Brings hosts into a random order (Fisher and Yates).
fn shuffle(destinations: &mut [Destination]) {
    for at in (1..destinations.len()).rev() {
        let mut bytes = [0; 8];
        if rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).is_err() {
            warn("the order of hosts is not random");
            return;
        }
        let other = usize::try_from(u64::from_ne_bytes(bytes) % (at as u64 + 1)).unwrap_or(0);
        destinations.swap(at, other);
    }
}
