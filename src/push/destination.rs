//! Where a host is reached: an ssh destination of the command line, or a host of an inventory.

use ccm_expr::{Map, Value};
use serde::{Deserialize, Serialize};

use super::stub::Become;
use crate::{
    document::{Span, from_value},
    inventory::Machine,
};

/// A host and how `ssh` reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// Name of the host in messages and results.
    pub(crate) name: String,
    /// Host name or address for `ssh`.
    pub(super) address: String,
    pub(super) user: Option<String>,
    pub(super) port: Option<u16>,
    /// Path of a private key.
    pub(super) key: Option<String>,
    /// More arguments of `ssh`.
    pub(super) arguments: Vec<String>,
    /// `ansible_become`: whether to become another user, which takes precedence over the command line.
    pub(super) becomes: Option<bool>,
    /// User to become; root if `None`.
    pub(super) become_user: Option<String>,
    /// How a plan was made, which takes precedence over everything else.
    planned: Option<Become>,
    /// Groups and variables.
    pub(crate) machine: Machine,
}

/// Who makes a plan on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Privilege {
    /// Login user; the one that ssh chooses if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(rename = "become", default)]
    becomes: Become,
}

/// Why a host cannot be reached by `ssh`. Values are never quoted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DestinationError {
    #[error("`{name}`: the {part} {problem}")]
    Unsafe { name: String, part: &'static str, problem: &'static str },
    #[error("`{0}` is not a destination: write [USER@]HOST[:PORT]")]
    Malformed(String),
    #[error("`{name}`: `{variable}` is not supported; {help}")]
    Unsupported { name: String, variable: String, help: &'static str },
}

impl Destination {
    /// Reads `[USER@]HOST[:PORT]` or `[USER@][IPV6]:PORT`.
    pub(crate) fn parse(text: &str) -> Result<Self, DestinationError> {
        let malformed = || DestinationError::Malformed(text.to_owned());
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, text),
        };
        let (address, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, Some(port.strip_prefix(':').ok_or_else(malformed)?)),
            None => match rest.split_once(':') {
                Some((address, port)) if !port.contains(':') => (address, Some(port)),
                _ => (rest, None),
            },
        };
        let port = port.map(|port| port.parse().map_err(|_| malformed())).transpose()?;
        let destination = Self {
            name: address.to_owned(),
            address: address.to_owned(),
            user,
            port,
            ..Self::of_name(address)
        };
        destination.checked()
    }

    /// Drops repeated destinations, and names hosts that differ only in port or user after these.
    pub(crate) fn distinguish(destinations: Vec<Self>) -> Vec<Self> {
        let mut distinct: Vec<Self> = Vec::new();
        for destination in destinations {
            let reached = |other: &Self| (other.name.clone(), other.user.clone(), other.port);
            if !distinct.iter().any(|other| reached(other) == reached(&destination)) {
                distinct.push(destination);
            }
        }
        let names = |of: fn(&Self) -> String, hosts: &[Self]| hosts.iter().map(of).collect::<Vec<_>>();
        let with_port = |host: &Self| match host.port {
            Some(port) if host.address.contains(':') => format!("[{}]:{port}", host.address),
            Some(port) => format!("{}:{port}", host.address),
            None => host.name.clone(),
        };
        let with_user = |host: &Self| match &host.user {
            Some(user) => format!("{user}@{}", host.name),
            None => host.name.clone(),
        };
        for longer in [with_port as fn(&Self) -> String, with_user] {
            let known = names(|host| host.name.clone(), &distinct);
            for host in &mut distinct {
                if known.iter().filter(|name| **name == host.name).count() > 1 {
                    host.name = longer(host);
                    host.machine.name.clone_from(&host.name);
                }
            }
        }
        distinct
    }

    fn of_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: name.to_owned(),
            user: None,
            port: None,
            key: None,
            arguments: Vec::new(),
            becomes: None,
            become_user: None,
            planned: None,
            machine: Machine::named(name.to_owned()),
        }
    }

    /// Returns how a host of an inventory is reached.
    pub(crate) fn of_machine(machine: Machine) -> Result<Self, DestinationError> {
        let name = machine.name.clone();
        let unsupported = |variable: &str, help| DestinationError::Unsupported {
            name: name.clone(),
            variable: variable.to_owned(),
            help,
        };
        let variables = &machine.variables;
        let text = |variable: &str| {
            variables.get(variable).map(|value| value.reveal().to_text()).filter(|text| !text.is_empty())
        };
        if text("ansible_connection")
            .is_some_and(|connection| !matches!(connection.as_str(), "ssh" | "smart"))
        {
            return Err(unsupported("ansible_connection", "ccm reaches hosts only by ssh"));
        }
        for variable in ["ansible_password", "ansible_ssh_pass"] {
            if variables.contains_key(variable) {
                return Err(unsupported(variable, "use keys, or answer the question of ssh"));
            }
        }
        for variable in ["ansible_become_password", "ansible_become_pass", "ansible_sudo_pass"] {
            if variables.contains_key(variable) {
                return Err(unsupported(variable, "use `--ask-password` or `CCM_SUDO_PASSWORD_COMMAND`"));
            }
        }
        let arguments = text("ansible_ssh_common_args").map(|text| shell_words::split(&text)).transpose();
        let port = text("ansible_port").map(|port| port.parse::<u16>()).transpose();
        let destination = Self {
            address: text("ansible_host").unwrap_or_else(|| name.clone()),
            user: text("ansible_user").or_else(|| text("ansible_ssh_user")),
            port: port.map_err(|_| unsafe_part(&name, "port", "is not a number from 0 to 65535"))?,
            key: text("ansible_ssh_private_key_file"),
            arguments: arguments
                .map_err(|_| unsafe_part(&name, "value of `ansible_ssh_common_args`", "has an open quote"))?
                .unwrap_or_default(),
            becomes: variables.get("ansible_become").map(is_true),
            become_user: text("ansible_become_user"),
            ..Self::of_name(&name)
        };
        Self { machine, ..destination }.checked()
    }

    /// Rejects names that `ssh`, or a command in its configuration, could misread.
    fn checked(self) -> Result<Self, DestinationError> {
        let parts = [
            ("host name", Some(&self.name)),
            ("address", Some(&self.address)),
            ("user", self.user.as_ref()),
            ("user to become", self.become_user.as_ref()),
            ("user to become", self.planned.as_ref().and_then(Become::user)),
        ];
        for (part, value) in parts {
            if let Some(problem) = value.and_then(|value| problem(value)) {
                return Err(unsafe_part(&self.name, part, problem));
            }
        }
        Ok(self)
    }

    /// Returns the user to become. `given` is what the command line asks for.
    pub(super) fn becomes(&self, given: &Become) -> Become {
        if let Some(planned) = &self.planned {
            return planned.clone();
        }
        let user = self.become_user.clone();
        match (given, self.becomes) {
            (_, Some(false)) | (Become::Nothing, None) => Become::Nothing,
            (Become::Nothing, Some(true)) => Become::Sudo { user },
            (Become::Sudo { user: given }, _) => Become::Sudo { user: user.or_else(|| given.clone()) },
            (Become::Doas { user: given }, _) => Become::Doas { user: user.or_else(|| given.clone()) },
        }
    }

    /// Returns who runs commands on the host.
    pub(crate) fn privilege(&self, given: &Become) -> Privilege {
        Privilege { user: self.user.clone(), becomes: self.becomes(given) }
    }

    /// Selects the user who made a plan, or explains why the command line asks for another one.
    pub(crate) fn take_privilege(&mut self, planned: &Privilege, given: &Become) -> Result<(), String> {
        let now = self.privilege(given);
        match (&planned.user, &now.user) {
            (Some(before), Some(now)) if before != now => {
                return Err(format!("the plan was made as `{before}`, not as `{now}`"));
            }
            (Some(before), None) => self.user = Some(before.clone()),
            _ => {}
        }
        if now.becomes != Become::Nothing && now.becomes != planned.becomes {
            let made = planned.becomes.described();
            return Err(format!("the plan was made {made}, not {}", now.becomes.described()));
        }
        self.planned = Some(planned.becomes.clone());
        self.clone().checked().map(drop).map_err(|error| error.to_string())
    }

    /// Returns the variables that are data: all that do not configure the connection.
    pub(crate) fn data(&self) -> Map {
        let mut data = self.machine.variables.clone();
        data.retain(|name, _| !name.starts_with("ansible_"));
        data
    }

    /// Returns the data without its secrets, and the secrets.
    pub(crate) fn split_data(&self) -> (Map, Map) {
        split(self.data())
    }

    /// Returns `Facts.inventory`. Decrypted variables are only data: facts have no secrets.
    pub(crate) fn facts(&self) -> Value {
        let groups: Vec<Value> = self.machine.groups.iter().map(|group| group.as_str().into()).collect();
        let inventory = Map::from_iter([
            ("name".into(), self.name.as_str().into()),
            ("groups".into(), Value::from(groups)),
            ("variables".into(), self.split_data().0.into()),
        ]);
        Map::from_iter([("inventory".into(), inventory.into())]).into()
    }
}

/// Splits values of a map, and of maps in it, into open and secret ones. A list with a secret is secret.
fn split(data: Map) -> (Map, Map) {
    let (mut open, mut secret) = (Map::default(), Map::default());
    for (name, value) in data {
        match value.as_map() {
            Some(map) if !value.is_secret() => {
                let (of_open, of_secret) = split(map.clone());
                if !of_secret.is_empty() {
                    secret.insert(name.clone(), of_secret.into());
                }
                open.insert(name, of_open.into());
            }
            _ if holds_secret(&value) => {
                secret.insert(name, value);
            }
            _ => {
                open.insert(name, value);
            }
        }
    }
    (open, secret)
}

fn holds_secret(value: &Value) -> bool {
    from_value(value, Span::empty(0)).holds_secret()
}

fn unsafe_part(name: &str, part: &'static str, problem: &'static str) -> DestinationError {
    DestinationError::Unsafe { name: name.to_owned(), part, problem }
}

/// Returns the reason why a name is unsafe, if it is.
fn problem(text: &str) -> Option<&'static str> {
    const META: &str = "'\"`$\\;&|<>(){}*?!#~";
    if text.is_empty() {
        return Some("is empty");
    }
    if text.starts_with('-') {
        return Some("begins with `-`");
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("has spaces or control characters");
    }
    text.chars().any(|c| META.contains(c)).then_some("has characters with a meaning to shells")
}

/// Reads a boolean as Ansible does.
fn is_true(value: &Value) -> bool {
    matches!(value.to_text().to_lowercase().as_str(), "true" | "yes" | "on" | "1" | "y" | "t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_have_user_host_and_port() {
        for (text, user, address, port) in [
            ("web1", None, "web1", None),
            ("ann@web1:2222", Some("ann"), "web1", Some(2222)),
            ("[::1]:22", None, "::1", Some(22)),
            ("ann@[fe80::1%eth0]", Some("ann"), "fe80::1%eth0", None),
            ("2001:db8::1", None, "2001:db8::1", None),
            ("ann@realm@web1", Some("ann@realm"), "web1", None),
        ] {
            let found = Destination::parse(text).unwrap();
            assert_eq!((found.user.as_deref(), found.address.as_str(), found.port), (user, address, port));
        }
    }

    #[test]
    fn hosts_with_one_address_have_names_of_their_own() {
        for (texts, expected) in [
            ("web1 root@web2:22", "web1 web2"),
            ("web1 web1 root@web1", "web1 root@web1"),
            ("127.0.0.1:2201 127.0.0.1:2202 web1:22", "127.0.0.1:2201 127.0.0.1:2202 web1"),
            ("[::1]:1 [::1]:2", "[::1]:1 [::1]:2"),
            ("ann@web1:1 bob@web1:1", "ann@web1:1 bob@web1:1"),
        ] {
            let hosts = texts.split(' ').map(|text| Destination::parse(text).unwrap()).collect();
            let names: Vec<String> =
                Destination::distinguish(hosts).into_iter().map(|host| host.name).collect();
            assert_eq!(names.join(" "), expected);
        }
    }

    #[test]
    fn destinations_that_ssh_could_misread_are_rejected() {
        for text in [
            "-oProxyCommand=x",
            "ann@-x",
            "-x@web1",
            "web 1",
            "web1;id",
            "$(id)",
            "a@`id`@b",
            "web1:x",
            "web1:70000",
            "",
            "ann@",
            "web\u{1b}1",
            "@web1",
            "[::1]x",
            "we'b",
            "a|b",
            "web*",
        ] {
            assert!(Destination::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn variables_of_the_connection_are_not_data() {
        let mut machine = Machine::named("web1".to_owned());
        machine.groups = vec!["prod".to_owned()];
        machine.variables = Map::from_iter([
            ("ansible_host".into(), "10.0.0.1".into()),
            ("ansible_port".into(), Value::from(2222_i64)),
            ("ansible_become".into(), "yes".into()),
            ("tier".into(), "web".into()),
        ]);
        let host = Destination::of_machine(machine.clone()).unwrap();
        assert_eq!((host.address.as_str(), host.port, host.becomes), ("10.0.0.1", Some(2222), Some(true)));
        let facts = serde_json::to_value(host.facts()).unwrap();
        let expected = serde_json::json!({"name": "web1", "groups": ["prod"], "variables": {"tier": "web"}});
        assert_eq!(facts["inventory"], expected);

        machine.variables.insert("ansible_password".into(), "S3CRET".into());
        let error = Destination::of_machine(machine).unwrap_err().to_string();
        assert!(
            error.contains("`ansible_password` is not supported") && !error.contains("S3CRET"),
            "{error}"
        );
    }
}
