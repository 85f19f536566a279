//! The machine that ccm runs on.

use std::sync::Arc;

use ccm_expr::Map;

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
    secrets::{Keyring, NoPrompt, Place, Prompt},
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

    /// Returns what manifests are loaded with: facts gathered from now on with given ones over them, and data.
    pub(crate) fn load_inputs(
        &self,
        facts: Vec<Map>,
        hiera: Vec<Location>,
        data: Vec<Pair>,
        limits: Limits,
    ) -> Result<LoadInputs, String> {
        Ok(LoadInputs {
            facts: self.environment.facts(facts, limits.document, &self.host.interrupt),
            environ: self.environment.variables(),
            hiera,
            data,
            strictness: Strictness::Lenient,
            limits,
            expression_memory: self.environment.expression_memory()?,
            nats: Arc::clone(&self.nats),
            keyring: Arc::new(self.keyring(Vec::new(), Arc::new(NoPrompt))),
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
