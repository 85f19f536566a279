//! What surrounds one attempt at one resource.

use std::{
    cell::{Cell, RefCell},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Drafts, Error, History, Managed, ManagedPaths, Resource, Trigger,
    effects::AccountLeft,
    manifest::flattened,
    prediction::{AccountKind, Prediction},
};
use crate::{
    host::{
        Host,
        files::{DigestMemory, NoDigests, hex},
        interrupt::Interrupt,
    },
    redaction::Redactor,
    state::{LocalState, StateError},
    template::Scope,
    vocabulary::{Account, RunMode},
};

/// How long a look may take at what a failed attempt left behind.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// The machine, the time limit and the manifest's folder, for as long as one attempt lasts.
pub(crate) struct Context<'a> {
    pub(crate) host: &'a Host,
    /// The records that ccm keeps between runs.
    pub(crate) state: &'a LocalState,
    /// What earlier resources of a dry run would have left; nothing in a real one.
    pub(crate) prediction: &'a RefCell<Prediction>,
    mode: RunMode,
    history: Option<&'a History>,
    /// The resources of the manifest.
    resources: &'a [Resource],
    /// What templates can see; nothing outside of a run.
    scope: Option<&'a Scope>,
    working_directory: &'a Path,
    limit: Cell<Option<(Instant, Duration)>>,
    trigger: Trigger,
    interrupt: Interrupt,
    /// The resource, if the attempt is about one.
    resource: Option<&'a Resource>,
    /// Hides the secrets of the resource.
    pub(crate) redactor: Redactor,
    /// Validated content that is to be published.
    validated: Option<&'a Drafts>,
    warnings: RefCell<Vec<String>>,
    assumptions: Cell<usize>,
    listener: RefCell<&'a mut dyn FnMut(&str)>,
}

impl<'a> Context<'a> {
    /// An attempt that starts now and may take as long as `timeout`. `listener` hears lines as they are shown. Nothing
    /// may be changed in it unless [`Context::within`] says so.
    pub(crate) fn new(
        host: &'a Host,
        state: &'a LocalState,
        prediction: &'a RefCell<Prediction>,
        working_directory: &'a Path,
        timeout: Option<Duration>,
        listener: &'a mut dyn FnMut(&str),
    ) -> Self {
        Self {
            host,
            state,
            prediction,
            mode: RunMode::Noop,
            history: None,
            resources: &[],
            scope: None,
            working_directory,
            limit: Cell::new(limit_from_now(timeout)),
            trigger: Trigger::Turn,
            interrupt: host.interrupt.clone(),
            resource: None,
            redactor: Redactor::default(),
            validated: None,
            warnings: RefCell::default(),
            assumptions: Cell::new(0),
            listener: RefCell::new(listener),
        }
    }

    /// Makes it an attempt within a run that has already acted on other resources.
    pub(crate) fn within(mut self, mode: RunMode, history: &'a History) -> Self {
        (self.mode, self.history) = (mode, Some(history));
        self
    }

    /// Says which other resources the manifest has.
    pub(crate) fn among(mut self, resources: &'a [Resource]) -> Self {
        self.resources = resources;
        self
    }

    /// Sets the resource that the attempt is about.
    pub(crate) fn about(mut self, resource: &'a Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Returns whether nothing that the resource contains or prints may be shown.
    pub(crate) fn is_sensitive(&self) -> bool {
        self.resource.is_some_and(Resource::is_sensitive)
    }

    /// Treats the resource as sensitive from now on: a secret value is part of it.
    pub(crate) fn mark_secret(&self) {
        self.resource.into_iter().for_each(Resource::mark_secret);
    }

    /// Returns the memory of file digests. Digests of files with secrets are not remembered.
    pub(crate) fn digests(&self) -> &dyn DigestMemory {
        if self.is_sensitive() { &NoDigests } else { &self.state.digests }
    }

    /// Returns a digest as ccm stores it: with the key of the state directory if the resource is sensitive.
    pub(crate) fn stored_digest(&self, digest: String) -> Result<String, StateError> {
        if !self.is_sensitive() {
            return Ok(digest);
        }
        Ok(hex(&self.state.directory.make_identity()?.keyed_hash(digest.as_bytes())))
    }

    /// Lets the type render templates.
    pub(crate) fn seeing(mut self, scope: &'a Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Makes the type publish content that was validated already.
    pub(crate) fn publishing(mut self, validated: Option<&'a Drafts>) -> Self {
        self.validated = validated;
        self
    }

    /// Returns the content that was validated already, if the resource is validated together with others.
    pub(crate) fn validated(&self) -> Option<&'a Drafts> {
        self.validated
    }

    /// Returns what templates can see; `None` outside of a run.
    pub(crate) fn scope(&self) -> Option<&'a Scope> {
        self.scope
    }

    /// Returns what the resources of the manifest and of those inside it manage, also those whose turns do not come.
    pub(crate) fn managed_paths(&self) -> ManagedPaths {
        ManagedPaths::new(self.managed())
    }

    /// As [`Context::managed_paths`], for a resource that manages `own`: in its place it has `instead`.
    pub(crate) fn managed_besides(
        &self,
        own: &Managed,
        instead: impl Iterator<Item = Managed>,
    ) -> ManagedPaths {
        let mut managed: Vec<Managed> = self.managed().collect();
        if let Some(at) = managed.iter().position(|managed| managed == own) {
            managed.swap_remove(at);
        }
        ManagedPaths::new(managed.into_iter().chain(instead))
    }

    fn managed(&self) -> impl Iterator<Item = Managed> {
        flattened(self.resources).into_iter().flat_map(|resource| resource.wanted.manages())
    }

    /// Says why the turn of the resource has come.
    pub(crate) fn triggered_by(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// A last look at what this attempt left behind. That its time is up, or that the program was asked to stop, is no
    /// reason not to know; it is one to be quick about it.
    pub(crate) fn last_look<'b>(&'b self, listener: &'b mut dyn FnMut(&str)) -> Context<'b> {
        let cx = Context::new(
            self.host,
            self.state,
            self.prediction,
            self.working_directory,
            Some(LAST_LOOK),
            listener,
        );
        let interrupt = Interrupt::never().unwrap_or_else(|_| self.interrupt.clone());
        let &Self { mode, history, resources, scope, trigger, resource, .. } = self;
        let redactor = self.redactor.clone();
        Context { mode, history, resources, scope, trigger, interrupt, resource, redactor, ..cx }
    }

    /// Returns the same surroundings with another prediction.
    pub(crate) fn predicting<'b>(
        &'b self,
        prediction: &'b RefCell<Prediction>,
        listener: &'b mut dyn FnMut(&str),
    ) -> Context<'b> {
        let cx = Context::new(
            self.host,
            self.state,
            prediction,
            self.working_directory,
            self.time_left(),
            listener,
        );
        let &Self { mode, history, resources, resource, scope, trigger, validated, .. } = self;
        let (interrupt, redactor) = (self.interrupt.clone(), self.redactor.clone());
        Context { mode, history, resources, scope, trigger, interrupt, resource, redactor, validated, ..cx }
    }

    /// What asks the attempt to end before its time.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub(crate) fn mode(&self) -> RunMode {
        self.mode
    }

    /// Why the turn of the resource has come.
    pub(crate) fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// What this run has done so far, whether or not it went well. What was learnt about the machine before the last of
    /// it may be out of date.
    pub(crate) fn history(&self) -> Option<&'a History> {
        self.history
    }

    /// Whether an earlier resource of a dry run may do more than it names, so that what is missing may yet come.
    pub(crate) fn may_differ(&self) -> bool {
        self.prediction.borrow().may_differ()
    }

    /// Returns the number of a user. In a dry run a user that an earlier resource makes, or may make, has one that stands
    /// in for it.
    pub(crate) fn user_id(&self, user: &Account) -> Option<u32> {
        self.account_id(AccountKind::User, user)
    }

    /// Returns the number of a group, as [`Context::user_id`] does.
    pub(crate) fn group_id(&self, group: &Account) -> Option<u32> {
        self.account_id(AccountKind::Group, group)
    }

    /// Returns what is predicted of an account; `None` when no earlier resource of a dry run was on it.
    pub(crate) fn predicted_account(&self, kind: AccountKind, name: &str) -> Option<AccountLeft> {
        self.prediction.borrow().account(kind, name)
    }

    fn account_id(&self, kind: AccountKind, account: &Account) -> Option<u32> {
        let on_machine = || match kind {
            AccountKind::User => self.host.users.user_id(account),
            AccountKind::Group => self.host.users.group_id(account),
        };
        if account.id().is_some() {
            return account.id();
        }
        let name = account.as_str();
        let stand_in = || self.prediction.borrow_mut().stand_in(kind, name);
        let left = self.prediction.borrow().account(kind, name);
        match left {
            Some(AccountLeft::Absent) => None,
            Some(AccountLeft::Present(Some(id))) => Some(id),
            Some(AccountLeft::Present(None)) => on_machine().or_else(|| Some(stand_in())),
            None => on_machine().or_else(|| {
                self.may_differ().then(|| {
                    let noun = kind.noun();
                    let suspects = self.suspects();
                    self.assume(format!("{noun} `{name}` does not exist; assuming {suspects} creates it"));
                    stand_in()
                })
            }),
        }
    }

    /// Returns the name of a user, or its number in digits when it has none.
    pub(crate) fn user_name(&self, uid: u32) -> String {
        let predicted = self.prediction.borrow().account_name(AccountKind::User, uid);
        predicted.unwrap_or_else(|| self.host.users.user_name(uid))
    }

    /// Returns the name of a group, or its number in digits when it has none.
    pub(crate) fn group_name(&self, gid: u32) -> String {
        let predicted = self.prediction.borrow().account_name(AccountKind::Group, gid);
        predicted.unwrap_or_else(|| self.host.users.group_name(gid))
    }

    /// Waits that long, unless the attempt has to end before.
    pub(crate) fn pause(&self, pause: Duration) -> Result<(), Error> {
        self.interrupt.pause(self.time_left().map_or(pause, |left| pause.min(left)));
        self.tick()
    }

    /// How much time is left; `None` when there is no limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.limit.get().map(|(deadline, _)| deadline.saturating_duration_since(Instant::now()))
    }

    /// The time limit of the whole attempt.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.limit.get().map(|(_, timeout)| timeout)
    }

    /// Gives the next step of the attempt the whole time again.
    pub(crate) fn restart_time(&self) {
        self.limit.set(limit_from_now(self.timeout()));
    }

    /// Shows a line at once, while the attempt goes on, unless the resource is sensitive.
    pub(crate) fn show(&self, line: &str) {
        if !self.is_sensitive() {
            (self.listener.borrow_mut())(line);
        }
    }

    /// Fails when the attempt has to end: to be called between two steps of anything long.
    pub(crate) fn tick(&self) -> Result<(), Error> {
        if self.interrupt.requested().is_some() {
            return Err(Error::interrupted());
        }
        match self.limit.get() {
            Some((deadline, timeout)) if Instant::now() >= deadline => Err(Error::timed_out(timeout)),
            _ => Ok(()),
        }
    }

    /// A path from the manifest, relative to the folder that the manifest is in.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.working_directory.join(path)
    }

    /// Says something that the user should know although nothing failed.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        let (mut warnings, warning) = (self.warnings.borrow_mut(), warning.into());
        // A resource is looked at more than once.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Warns that a dry run assumes something of an earlier resource whose effects are not known completely.
    pub(crate) fn assume(&self, warning: impl Into<String>) {
        let known = self.warnings.borrow().len();
        self.warn(warning);
        self.assumptions.set(self.assumptions.get() + self.warnings.borrow().len() - known);
    }

    /// Returns the number of assumptions, which are warnings, too.
    pub(crate) fn assumptions(&self) -> usize {
        self.assumptions.get()
    }

    /// Returns whether the dry run of the resource relies on an assumption.
    pub(crate) fn has_assumed(&self) -> bool {
        self.assumptions() > 0
    }

    /// Names the earlier resources of a dry run whose effects are not known completely, for messages.
    pub(crate) fn suspects(&self) -> String {
        self.prediction.borrow().suspects()
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}

/// A limit too far away to be written down is none.
fn limit_from_now(timeout: Option<Duration>) -> Option<(Instant, Duration)> {
    timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)))
}
