//! The environment variables of the process.

#![allow(clippy::disallowed_methods, reason = "the environment of a run is read here")]

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    sync::Arc,
};

use ccm_expr::{Map, Memory, Value};
use zeroize::Zeroizing;

use super::HistorySettings;
use crate::{
    engine::ReadAhead,
    facts::{Facts, Options},
    host::{http::Proxies, interrupt::Interrupt},
    nats::ContextChoice,
    secrets::Place,
    state::history::Limits,
    vocabulary::Size,
};

/// Limits how much memory all expressions of a run use together.
const MEMORY_LIMIT: &str = "CCM_MEMORY_LIMIT";
const MAX_REGISTRATIONS: &str = "CCM_MAX_REGISTRATIONS";

/// Set to 1, no resource is inspected before its turn, for comparison.
const SEQUENTIAL: &str = "CCM_SEQUENTIAL";

/// Variables with private keys: templates do not see them, and commands do not inherit them.
const PRIVATE: [&str; 1] = ["SOPS_AGE_KEY"];

/// The environment variables of the process, read once.
#[derive(Clone)]
pub(crate) struct Environment(Arc<[(OsString, OsString)]>);

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self(env::vars_os().collect())
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.to_str().map(str::to_owned)
    }

    /// Returns a directory, unless the variable holds a relative path: those have no meaning here.
    fn directory(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|directory| directory.is_absolute())
    }

    pub(crate) fn proxies(&self) -> Proxies {
        Proxies::from_environment(|name| self.text(name))
    }

    /// Returns how the environment sets the history.
    pub(crate) fn history(&self) -> Result<HistorySettings, String> {
        let (size, keep) = (self.text("CCM_HISTORY_SIZE"), self.text("CCM_HISTORY_KEEP"));
        let limits = Limits::parse(size.as_deref(), keep.as_deref())?;
        Ok(HistorySettings { is_on: !self.turns_history_off(), limits, ..HistorySettings::default() })
    }

    /// Whether the environment turns the history off.
    pub(crate) fn turns_history_off(&self) -> bool {
        self.get("CCM_HISTORY").is_some_and(|value| value == "off")
    }

    /// Returns how many resources threads inspect ahead of their turns.
    pub(crate) fn read_ahead(&self) -> ReadAhead {
        let is_sequential = self.get(SEQUENTIAL).is_some_and(|value| value == "1");
        if is_sequential { ReadAhead::None } else { ReadAhead::USUAL }
    }

    /// Returns the variables whose names and values are UTF-8, as templates see them.
    pub(crate) fn variables(&self) -> Value {
        let text = |(key, value): &(OsString, OsString)| {
            let key = key.to_str().filter(|key| !PRIVATE.contains(key))?;
            Some((key.into(), value.to_str()?.into()))
        };
        self.0.iter().filter_map(text).collect::<Map>().into()
    }

    /// Returns where identities are looked for, in order; `of_state` is the identity of the state directory.
    pub(crate) fn identities(&self, of_state: Option<PathBuf>) -> Vec<Place> {
        let text = |variable| self.text(variable).filter(|text| !text.is_empty());
        let file = |by| text(by).map(|path| Place::Named { by, path: path.into() });
        let config =
            self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.directory("HOME")?.join(".config")));
        let of_ssh = |name: &str| Some(Place::Usual(self.directory("HOME")?.join(".ssh").join(name)));
        let credentials = self.directory("CREDENTIALS_DIRECTORY");
        let own = [
            text("SOPS_AGE_KEY")
                .map(|key| Place::Text { variable: "SOPS_AGE_KEY", text: Zeroizing::new(key) }),
            file("SOPS_AGE_KEY_FILE"),
            text("SOPS_AGE_KEY_CMD").map(|words| Place::Command { variable: "SOPS_AGE_KEY_CMD", words }),
            file("SOPS_AGE_SSH_PRIVATE_KEY_FILE"),
            config.map(|config| Place::Usual(config.join("sops/age/keys.txt"))),
            of_ssh("id_ed25519"),
            of_ssh("id_rsa"),
            of_state.map(Place::Usual),
            credentials.map(|credentials| Place::Usual(credentials.join("ccm.age"))),
        ];
        let of_machine = rustix::process::geteuid().is_root().then(|| {
            [
                Place::Usual("/etc/ccm/age.key".into()),
                Place::HostKey("/etc/ssh/ssh_host_ed25519_key".into()),
                Place::HostKey("/etc/ssh/ssh_host_rsa_key".into()),
            ]
        });
        own.into_iter().flatten().chain(of_machine.into_iter().flatten()).collect()
    }

    /// Returns how much memory all expressions of a run may use together.
    pub(crate) fn expression_memory(&self) -> Result<Memory, String> {
        let Some(text) = self.get(MEMORY_LIMIT).filter(|text| !text.is_empty()) else {
            return Ok(Memory::default());
        };
        let size: Result<Size, _> = text.to_string_lossy().parse();
        size.map(|size| Memory::new(size.bytes())).map_err(|error| format!("{MEMORY_LIMIT}: {error}"))
    }

    /// Returns the command that prints the password for sudo.
    pub(crate) fn sudo_password_command(&self) -> Option<String> {
        self.text("CCM_SUDO_PASSWORD_COMMAND").filter(|command| !command.is_empty())
    }

    /// Returns the home directory of the user.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME")
    }

    /// Returns how many bytes of registrations one query can read, if the user sets a limit.
    pub(crate) fn max_registrations(&self) -> Result<Option<Size>, String> {
        let text = self.get(MAX_REGISTRATIONS).filter(|text| !text.is_empty());
        let size = text.map(|text| text.to_string_lossy().parse::<Size>()).transpose();
        size.map_err(|error| format!("{MAX_REGISTRATIONS}: {error}"))
    }

    /// Returns the state directory of a user other than root.
    pub(crate) fn state_directory(&self) -> Option<PathBuf> {
        let state = self.directory("XDG_STATE_HOME");
        let state = state.or_else(|| Some(self.directory("HOME")?.join(".local/state")));
        state.map(|directory| directory.join("ccm"))
    }

    /// Returns the facts of this machine, with given ones over them.
    pub(crate) fn facts(&self, given: Vec<Map>, limit: u64, interrupt: &Interrupt) -> Arc<Facts> {
        let root = PathBuf::from("/");
        let folders = self.fact_directories();
        let programs = Some((folders[0].join("facts.d"), interrupt.clone()));
        Arc::new(Facts::new(Options { root, folders, given, limit, programs }))
    }

    /// Returns the directories of facts that people wrote: the machine's, then the user's.
    fn fact_directories(&self) -> Vec<PathBuf> {
        let of_user =
            self.directory("XDG_CONFIG_HOME").or_else(|| Some(self.directory("HOME")?.join(".config")));
        let system = PathBuf::from("/etc");
        // The walk to a file takes paths as they are, without `.` and doubled slashes.
        let clean = |directory: PathBuf| directory.join("choria/ccm").components().collect();
        [Some(system), of_user].into_iter().flatten().map(clean).collect()
    }

    /// Returns the NATS context of a name or path.
    pub(crate) fn nats_context(&self, name: String) -> ContextChoice {
        let environment = self.clone();
        ContextChoice { name, variables: Arc::new(move |name| environment.text(name)) }
    }
}
