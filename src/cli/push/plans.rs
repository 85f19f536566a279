//! Plans for many machines: a directory with one plan for each host, and an index.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::{bundle, failure::Failure};
use crate::{
    bundle::AllowedSigners,
    host::{
        files::PrivateFolder,
        input::{self, UnreadableInput},
    },
    push::{Become, Destination, HostResult, Outcome, Privilege},
};

/// Name of the index.
const INDEX: &str = "fleet-plan.json";

const PROTOCOL: &str = "io.choria.ccm.v1.fleet.plan";

/// Largest plan, and largest index.
const LARGEST: u64 = 64 << 20;

/// The index of a directory of plans.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    protocol: String,
    created: String,
    hosts: Vec<Planned>,
}

/// A host with a plan. The plan is applied as the user who made it.
#[derive(Debug, Serialize, Deserialize)]
struct Planned {
    host: String,
    file: String,
    #[serde(flatten)]
    privilege: Privilege,
}

/// Plans that are applied.
#[derive(Debug)]
pub(super) struct Plans {
    directory: PathBuf,
    hosts: Vec<Planned>,
}

impl Plans {
    /// Returns whether a directory has plans.
    pub(super) fn are_in(directory: &str) -> bool {
        crate::host::look::is_file(&Path::new(directory).join(INDEX))
    }

    pub(super) fn read(directory: &str) -> Result<Self, Failure> {
        let directory = PathBuf::from(directory);
        let path = directory.join(INDEX);
        let bytes = read(&path)?;
        let invalid = |reason: &dyn std::fmt::Display| Failure::new(format!("{}: {reason}", path.display()));
        let index: Index = serde_json::from_slice(&bytes).map_err(|error| invalid(&error))?;
        if index.protocol != PROTOCOL {
            return Err(invalid(&"not an index of plans"));
        }
        if let Some(host) = index.hosts.iter().find(|planned| planned.file.contains('/')) {
            return Err(invalid(&format!("the plan of `{}` is in another directory", host.host)));
        }
        Ok(Self { directory, hosts: index.hosts })
    }

    /// Returns the plan of a host, or why it cannot be applied. `becomes` is what the command line asks for, and `signers` are the
    /// keys that can sign the plan.
    pub(super) fn of(
        &self,
        host: &mut Destination,
        becomes: &Become,
        signers: Option<&AllowedSigners>,
    ) -> Result<Vec<u8>, String> {
        let planned = self.hosts.iter().find(|planned| planned.host == host.name);
        let planned = planned.ok_or_else(|| format!("{} has no plan for it", self.directory.display()))?;
        host.take_privilege(&planned.privilege, becomes)?;
        let path = self.directory.join(&planned.file);
        let plan = input::read_file(&path, LARGEST)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if let Some(signers) = signers {
            bundle::signer(&path, &plan, signers, Timestamp::now())?;
        }
        Ok(plan)
    }
}

/// Reads the keys that can sign plans.
pub(super) fn signers(path: &Path) -> Result<AllowedSigners, Failure> {
    AllowedSigners::read(path).map_err(|error| Failure::new(error.to_string()))
}

/// Where the plans of hosts are written.
#[derive(Debug)]
pub(super) struct Writer {
    directory: PathBuf,
    key: Option<PathBuf>,
    folder: Option<PrivateFolder>,
    /// Files of plans that were there before.
    earlier: Vec<String>,
    /// Who makes the plan of each host.
    privileges: HashMap<String, Privilege>,
    index: Index,
}

impl Writer {
    /// Checks the directory. It is created with the first plan.
    pub(super) fn new(
        directory: &Path,
        key: Option<PathBuf>,
        privileges: HashMap<String, Privilege>,
    ) -> Result<Self, Failure> {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let directory: PathBuf = directory.components().collect();
        let shown = directory.display();
        let mut earlier = Vec::new();
        if crate::host::look::is_directory(&directory) {
            if Plans::are_in(&directory.to_string_lossy()) {
                let plans = Plans::read(&directory.to_string_lossy())?;
                earlier = plans.hosts.into_iter().map(|planned| planned.file).collect();
            } else if input::names_in(&directory).is_ok_and(|names| !names.is_empty()) {
                return Err(Failure::new(format!(
                    "`{shown}` is not empty and has no plans: name a new directory"
                )));
            }
        } else if crate::host::look::is_there(&directory) {
            return Err(Failure::new(format!(
                "`{shown}` is not a directory: `-o` names a directory of plans"
            )));
        }
        let index =
            Index { protocol: PROTOCOL.to_owned(), created: Timestamp::now().to_string(), hosts: Vec::new() };
        Ok(Self { directory, key, folder: None, earlier, privileges, index })
    }

    /// Writes the plan of a host. If that fails, the host has failed.
    pub(super) fn write(&mut self, result: &mut HostResult) {
        let Some(plan) = result.plan.take().filter(|_| result.outcome == Outcome::Ok) else { return };
        let file = format!("{}.plan", encoded(&result.host));
        let privilege = self.privileges.get(&result.host).cloned().unwrap_or_default();
        match self.put(&file, &plan) {
            Ok(()) => self.index.hosts.push(Planned { host: result.host.clone(), file, privilege }),
            Err(reason) => result.fail(format!("cannot write the plan: {reason}")),
        }
    }

    fn put(&mut self, file: &str, plan: &[u8]) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        if self.folder.is_none() {
            let folder = PrivateFolder::make(&self.directory).map_err(|error| text(&error))?;
            folder.close_to_others().map_err(|error| text(&error))?;
            self.folder = Some(folder);
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        folder.replace(file, |out| out.write_all(plan)).map_err(|error| text(&error))?;
        match &self.key {
            Some(key) => {
                bundle::sign(&self.directory.join(file), key).map(drop).map_err(|error| text(&error))
            }
            None => Ok(()),
        }
    }

    /// Writes the index, removes plans of an earlier index, and returns the directory. Without plans, nothing changes.
    pub(super) fn end(mut self) -> Result<Option<PathBuf>, Failure> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
        self.index.hosts.sort_by(|one, other| one.host.cmp(&other.host));
        let index = serde_json::to_vec_pretty(&self.index).map_err(|error| failed(&error))?;
        folder.replace(INDEX, |out| out.write_all(&index)).map_err(|error| failed(&error))?;
        let is_gone = |file: &&String| !self.index.hosts.iter().any(|planned| planned.file == **file);
        for file in self.earlier.iter().filter(is_gone) {
            for name in [file.clone(), format!("{file}.sig")] {
                folder.remove(name.as_ref()).map_err(|error| failed(&error))?;
            }
        }
        Ok(Some(self.directory))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::new(UnreadableInput { path: path.to_owned(), error }.to_string());
    input::read_file(path, LARGEST).map_err(unreadable)
}

/// Returns a name as part of a file name: unusual characters are percent-encoded.
fn encoded(name: &str) -> String {
    let is_usual = |at: usize, byte: u8| byte.is_ascii_alphanumeric() || at > 0 && b".-_".contains(&byte);
    let one = |(at, byte): (usize, u8)| {
        if is_usual(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_safe_as_names_of_files() {
        for (name, file) in [
            ("web-1.example.net", "web-1.example.net"),
            ("../web1", "%2E.%2Fweb1"),
            ("fe80::1%eth0", "fe80%3A%3A1%25eth0"),
            ("wéb", "w%C3%A9b"),
            (".hidden", "%2Ehidden"),
        ] {
            assert_eq!(encoded(name), file);
        }
    }
}
