//! `ccm agent`

mod log;
mod remote;

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{
    Args, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
};

use self::log::{LogFormat, StderrLog};
use super::{
    Exit,
    failure::{Failure, show},
    machine::{NatsFlags, StateFolder},
    output::Output,
    progress::Progress,
};
use crate::{
    agent::{Agent, Config, Log, Once, Openings, PLACES, Setting},
    document::{Review, Source},
    host::{
        input::{self, UnreadableInput},
        interrupt::Interrupt,
        memory,
        process::close_inherited,
        service_manager::ServiceManager,
    },
    run::{Environment, Machine, Notices},
};

/// Time that a running command has left after a request to stop the agent.
const GRACE: Duration = Duration::from_secs(30);

const LARGEST: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  # Find what is wrong with the configuration, and show what it comes to
  ccm agent --config agent.yaml --check

  # Fetch and apply everything once, as a cron job would
  ccm agent --config agent.yaml --once";

/// Arguments of `ccm agent`.
#[derive(Args)]
#[command(
    long_about = "Keep this machine in its declared state: apply the manifests at the start, at an interval, when a source \
                  has new content, and when the machine changes. The configuration is a YAML file with the keys that \
                  ccm-agent.yaml(5) describes.",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
)]
pub(super) struct Arguments {
    #[command(flatten)]
    work: Work,
    #[command(subcommand)]
    remote: Option<remote::Request>,
}

/// An agent that is to be started, or checked.
#[derive(Args)]
struct Work {
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help = config_help())]
    config: Option<PathBuf>,
    /// Check the configuration, say what the agent would do, and end
    #[arg(long, conflicts_with = "once")]
    check: bool,
    /// Fetch and apply everything once, and end
    #[arg(long)]
    once: bool,
    /// How log lines are written
    #[arg(
        long = "log-format",
        value_name = "FORMAT",
        default_value = "logfmt",
        value_parser = PossibleValuesParser::new(LogFormat::WORDS).map(|word| LogFormat::of(&word)),
    )]
    format: LogFormat,
    #[command(flatten)]
    state: StateFolder,
    #[command(flatten)]
    nats: NatsFlags,
}

fn config_help() -> String {
    format!("The configuration [default: the first of {}]", PLACES.join(", "))
}

pub(super) fn run(arguments: Arguments, output: &mut Output) -> Result<Exit, Failure> {
    match arguments.remote {
        Some(request) => remote::run(&request, output),
        None => arguments.work.start(output),
    }
}

impl Work {
    fn start(self, output: &mut Output) -> Result<Exit, Failure> {
        let path = match &self.config {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            None => find().ok_or_else(no_configuration)?,
        };
        let (source, config, warnings) = read(&path)?;
        show(&warnings);
        if self.check {
            let problems = config.check_files();
            if problems.has_errors() {
                return Err(Failure::problems(source, problems));
            }
            describe(&config, output);
            return Ok(Exit::Success);
        }
        close_inherited();
        memory::abort_without_memory();
        let (interrupt, hangups) = Interrupt::install_for_service(GRACE)
            .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        let environment = Environment::of_process();
        let state = self.state.open(&environment)?;
        let log: Arc<dyn Log> = Arc::new(StderrLog::new(self.format));
        let openings = Openings {
            proxies: environment.proxies(),
            interrupt: interrupt.clone(),
            fetch_timeout: config.written.fetch_timeout.as_std(),
            connection: None,
        };
        let nats = self.nats.nats(&environment, Some(&interrupt))?;
        let (progress, notices) = (Arc::new(Progress::new()), Arc::new(LogNotices(Arc::clone(&log))));
        let read_config = || {
            let (_, config, warnings) = read(&path).map_err(|failure| failure.to_string())?;
            show(&warnings);
            Ok(config)
        };
        let setting = Setting {
            machine: Machine::new(interrupt, environment, state, nats, progress, notices),
            nats_context: self.nats.context,
            read_config: &read_config,
            log,
            openings,
            service_manager: service_manager()?,
        };
        let agent = Agent::new(setting, config).map_err(Failure::new)?;
        if self.once {
            return Ok(match agent.once() {
                Once::Well => Exit::Success,
                Once::Failed => Exit::Failed,
            });
        }
        agent.run(hangups).map_err(Failure::new)?;
        Ok(Exit::Success)
    }
}

fn find() -> Option<PathBuf> {
    PLACES.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn no_configuration() -> Failure {
    Failure::new(format!(
        "there is no configuration: write {}, or name another file with --config",
        PLACES[0]
    ))
}

fn read(path: &Path) -> Result<(Source, Config, Vec<Review>), Failure> {
    let bytes = input::read_file(path, LARGEST)
        .map_err(|error| Failure::new(UnreadableInput { path: path.to_owned(), error }.to_string()))?;
    let source =
        Source::read(path.display().to_string(), bytes).map_err(|problem| Failure::new(problem.message))?;
    match Config::read(&source, path) {
        Ok((config, warnings)) => {
            let reviews = warnings.review(&source).into_iter().collect();
            Ok((source, config, reviews))
        }
        Err(problems) => Err(Failure::problems(source, problems)),
    }
}

/// Says what an agent with this configuration would do.
fn describe(config: &Config, output: &mut Output) {
    let written = &config.written;
    output.line(&format!("configuration: {}", config.path.display()));
    for manifest in &config.manifests {
        output.line(&format!("manifest: {manifest}"));
    }
    if let Some(data) = &config.data {
        output.line(&format!("data: {data}"));
    }
    let splay = crate::vocabulary::Duration::from(config.splay);
    output.line(&format!("applied every {} and up to {splay} more", written.interval));
    let watch = if written.watch { "repaired when it happens" } else { "repaired at the next run" };
    output.line(&format!("drift: {watch}"));
    if written.noop {
        output.line("noop: nothing is changed");
    }
    if let Some(interval) = written.health_check_interval {
        output.line(&format!("health checks every {interval}"));
    }
    if let Some(signers) = &config.signers {
        output.line(&format!("signed by the keys in {}", signers.path.display()));
    }
    if let Some(address) = &config.metrics {
        output.line(&format!("metrics: {address}"));
    }
}

/// Connects to the service manager, if one started this process.
fn service_manager() -> Result<ServiceManager, Failure> {
    let number = |name| env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    let is_for_us = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let watchdog = number("WATCHDOG_USEC").filter(|_| is_for_us).map(Duration::from_micros);
    ServiceManager::connect(env::var_os("NOTIFY_SOCKET").as_deref(), watchdog)
        .map_err(|error| Failure::new(format!("cannot reach the service manager (NOTIFY_SOCKET): {error}")))
}

/// Logs the messages of a run.
struct LogNotices(Arc<dyn Log>);

impl Notices for LogNotices {
    fn waiting(&self, holder: &str) {
        self.0.info("waiting for another run", &[("holder", &holder)]);
    }

    fn warning(&self, text: &str) {
        self.0.warn("warning", &[("problem", &text)]);
    }
}
