//! The machine that ccm runs on.

use std::sync::Arc;

use ccm_expr::Map;
use zeroize::Zeroizing;

use super::Environment;
use crate::{
    document::Pair,
    host::{
        Host,
        http::{Client, ProgressListener},
        input::Limits,
        interrupt::Interrupt,
        process::Runner,
        users::Users,
    },
    manifest::{LoadInputs, Location, Strictness},
    nats::Nats,
    secrets::{Keyring, NoPrompt, Place, Prompt, WithoutKey},
    state::LocalState,
};

/// The machine that ccm runs on: the host, the environment of the process and the state of earlier runs.
pub(crate) struct Machine {
    pub(crate) host: Host,
    /// Bundles, data and registrations of a fleet; connected when it is first used.
    pub(crate) nats: Arc<Nats>,
    pub(crate) environment: Environment,
    pub(crate) state: Arc<LocalState>,
    pub(crate) notices: Arc<dyn Notices>,
    progress: Arc<dyn ProgressListener>,
}

/// Facts, data and identities that override those of the machine.
pub(crate) struct Given {
    pub(crate) facts: Vec<Map>,
    pub(crate) hiera: Vec<Location>,
    pub(crate) data: Vec<Pair>,
    pub(crate) limits: Limits,
    pub(crate) identities: Vec<Place>,
    pub(crate) prompt: Arc<dyn Prompt>,
    pub(crate) without_key: WithoutKey,
    /// Encrypted data that a controller opened.
    pub(crate) opened: Vec<(String, Zeroizing<Vec<u8>>)>,
}

impl Default for Given {
    fn default() -> Self {
        Self {
            facts: Vec::new(),
            hiera: Vec::new(),
            data: Vec::new(),
            limits: Limits::default(),
            identities: Vec::new(),
            prompt: Arc::new(NoPrompt),
            without_key: WithoutKey::default(),
            opened: Vec::new(),
        }
    }
}

/// Shows messages of a run that are about none of its resources.
pub(crate) trait Notices: Send + Sync {
    /// Another run has to finish first.
    fn waiting(&self, holder: &str);
    /// The run goes on in spite of a problem.
    fn warning(&self, text: &str);
}

impl Machine {
    pub(crate) fn new(
        interrupt: Interrupt,
        environment: Environment,
        state: LocalState,
        nats: Arc<Nats>,
        progress: Arc<dyn ProgressListener>,
        notices: Arc<dyn Notices>,
    ) -> Self {
        let host = host(interrupt, &environment, &progress);
        Self { host, nats, environment, state: Arc::new(state), notices, progress }
    }

    /// Returns the same machine without what the host has cached of it, such as accounts and connections.
    pub(crate) fn afresh(&self, nats: Arc<Nats>) -> Self {
        let host = host(self.host.interrupt.clone(), &self.environment, &self.progress);
        Self {
            host,
            nats,
            environment: self.environment.clone(),
            state: Arc::clone(&self.state),
            notices: Arc::clone(&self.notices),
            progress: Arc::clone(&self.progress),
        }
    }

    /// Returns the same machine without the signal that stopped this process.
    pub(super) fn uninterrupted(&self) -> std::io::Result<Self> {
        Ok(Self { host: self.host.uninterrupted()?, ..self.afresh(Arc::clone(&self.nats)) })
    }

    /// Returns what manifests are loaded with, with facts that are gathered from now on.
    pub(crate) fn load_inputs(&self, given: Given) -> Result<LoadInputs, String> {
        let Given { facts, hiera, data, limits, identities, prompt, without_key, opened } = given;
        Ok(LoadInputs {
            facts: self.environment.facts(facts, limits.document, &self.host.interrupt),
            environ: self.environment.variables(),
            hiera,
            data,
            strictness: Strictness::Lenient,
            limits,
            expression_memory: self.environment.expression_memory()?,
            nats: Arc::clone(&self.nats),
            keyring: Arc::new(self.keyring(identities, prompt).without_key(without_key).with_opened(opened)),
        })
    }

    /// Returns the identities of this process, after those of the given places.
    pub(crate) fn keyring(&self, given: Vec<Place>, prompt: Arc<dyn Prompt>) -> Keyring {
        let places = given
            .into_iter()
            .chain(self.environment.identities(self.state.directory.identity_path()))
            .collect();
        Keyring::new(places, prompt, self.host.interrupt.clone())
    }
}

fn host(interrupt: Interrupt, environment: &Environment, progress: &Arc<dyn ProgressListener>) -> Host {
    let http = Client::new(environment.proxies(), interrupt.clone(), Arc::clone(progress));
    Host { interrupt, runner: Runner::default(), users: Users::default(), http }
}
