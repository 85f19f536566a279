//! Reads the configuration again, and opens what one asks for.

use super::{Agent, Message, Setting, checking::first_check};
use crate::{
    agent::{
        Config, Openings,
        due::{Cause, Due},
        fleet::Fleet,
        health::Health,
        intake::{Intake, Workshop},
        mailbox::Mailbox,
        pauses::Pauses,
        source::{Address, LocalSource},
        watching::Watching,
    },
    host::files::PrivateFolder,
};

impl Agent<'_> {
    /// Reads the configuration again. A bad one changes nothing.
    pub(super) fn reload(&mut self) {
        self.setting.service_manager.reloading();
        match (self.setting.read_config)() {
            Err(error) => {
                let effect = "the configuration stays as it was";
                self.setting
                    .log
                    .error("the new configuration is not used", &[("error", &error), ("effect", &effect)]);
            }
            Ok(config) => match self.open_all(&config) {
                Err(error) => {
                    self.setting.log.error("the new configuration is not used", &[("error", &error)]);
                }
                Ok(intake) => {
                    self.generation += 1;
                    self.setting.log.set_level(config.written.log_level);
                    if config.metrics != self.config.metrics {
                        self.setting.log.warn("a new address for metrics is used after a restart", &[]);
                    }
                    (self.intake, self.pauses) = (intake, Pauses::default());
                    self.health = Health::default();
                    self.next_check = first_check(&config);
                    self.watching = watch(&self.setting, &config, &self.intake);
                    self.config = config;
                    self.last.clear();
                    self.due = Due::default();
                    self.setting.log.info("the configuration was read again", &[]);
                }
            },
        }
        self.intake.ask_all();
        self.due.all(Cause::Hangup);
        self.setting.service_manager.ready();
    }

    /// Reloads the configuration if it now requires other signatures: that must not wait for a signal. Returns whether it does.
    pub(super) fn reload_if_signers_differ(&mut self) -> bool {
        let required = |config: &Config| {
            let signers = config.signers.as_ref()?;
            Some((signers.path.clone(), config.written.unversioned_data))
        };
        let new = (self.setting.read_config)();
        let differs = new.is_ok_and(|new| required(&new) != required(&self.config));
        if differs {
            self.reload();
        }
        differs
    }

    /// Opens what another configuration asks for. Of NATS, what is the same stays.
    fn open_all(&mut self, config: &Config) -> Result<Intake, String> {
        let Setting { machine, log, .. } = &self.setting;
        let setting = &self.setting;
        let context = setting.context(config);
        if !self.fleet.fits(config, &context) {
            // Two must not send the same events.
            self.fleet = Fleet::alone(context.clone());
            self.fleet = match Fleet::open(config, context, machine, log) {
                Ok(fleet) => fleet,
                Err(error) => {
                    let context = setting.context(&self.config);
                    if let Ok(fleet) = Fleet::open(&self.config, context, machine, log) {
                        self.fleet = fleet;
                    }
                    return Err(error);
                }
            };
        }
        open_intake(&self.setting, config, &self.mailbox, self.generation + 1, &self.fleet)
    }
}

pub(super) fn open_intake(
    setting: &Setting,
    config: &Config,
    mailbox: &Mailbox<Message>,
    generation: u64,
    fleet: &Fleet,
) -> Result<Intake, String> {
    let cache = match &config.cache_dir {
        Some(path) => PrivateFolder::make(path).map_err(|error| error.to_string())?,
        None => setting.state().directory.make_folder("sources").map_err(|error| error.to_string())?,
    };
    let machine = &setting.machine.afresh(fleet.nats());
    let openings = Openings {
        connection: fleet.connection(),
        fetch_timeout: config.written.fetch_timeout.as_std(),
        ..setting.openings.clone()
    };
    let workshop = Workshop { machine, log: &*setting.log };
    let tell = |number| mailbox.sender(move |news| Message::News(generation, number, news));
    Intake::open(config, &cache, &openings, &tell, workshop)
}

/// Begins to watch the sources of this machine; `None` if nothing is to be watched or the kernel does not let it.
pub(super) fn watch(setting: &Setting, config: &Config, intake: &Intake) -> Option<Watching> {
    if !config.written.watch {
        return None;
    }
    let mut watching = match Watching::new() {
        Ok(watching) => watching,
        Err(error) => {
            let effect = "drift is repaired at the next run";
            setting.log.warn("nothing is watched", &[("error", &error), ("effect", &effect)]);
            return None;
        }
    };
    for (number, slot) in intake.slots.iter().enumerate() {
        if let Address::Path(path) = &slot.address {
            watching.add_source(number, &LocalSource(path.clone()).file());
        }
    }
    watching.add_configuration(&config.path);
    if let Some(signers) = &config.signers {
        watching.add_signers(&signers.path);
    }
    Some(watching)
}
