//! A health check as a resource declares it.

use std::{borrow::Cow, collections::HashSet};

use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    outcome::Format,
    probes::{FileProbe, HttpProbe, TcpProbe, UnitProbe, short_or_whole},
    rules::{Rule, Rules},
};
use crate::vocabulary::{
    Account, Duration, TimeLimit, Url, Variable,
    command_words::{self, NotACommand},
};

/// One check of whether a resource does what it is there for: exactly one of `command`, `goss_rules`, `goss_file`, `http`,
/// `tcp`, `file` and `unit`, and how it is made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(crate) struct HealthCheck {
    /// A plugin of Nagios with its arguments: exit code 0 is OK, 1 WARNING, 2 CRITICAL, anything else UNKNOWN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// Rules in the language of goss, by kind and subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_map")]
    pub(crate) goss_rules: Option<Rules>,
    /// A file of such rules; a relative path starts at the folder of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goss_file: Option<String>,
    /// An address that a server has to answer at with success, or a map of `url`, `status`, `contains`, `json`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) http: Option<HttpProbe>,
    /// A `[HOST:]PORT` that can be connected to, or a map of `address` and `expect`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) tcp: Option<TcpProbe>,
    /// The path of a file that is there, or a map of `path`, `exists`, `contains`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) file: Option<FileProbe>,
    /// A unit of systemd that is active, or a map of `name` and `for`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) unit: Option<UnitProbe>,
    /// What it is called; no other check of the resource may have the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// How often it may fail before the resource does (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<u32>,
    /// Pause between two attempts (default `1s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) try_sleep: Option<Duration>,
    /// Time limit of one attempt (default `60s`); all that it started is ended with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<TimeLimit>,
    /// How it tells its result; known from what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<Format>,
    /// No attempt is begun later than this after the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<Duration>,
    /// Pause before the first attempt, if the resource was just changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay: Option<Duration>,
    /// How often in a row it has to be OK (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) successes: Option<u32>,
    /// From which state on the resource fails. UNKNOWN always fails it.
    #[serde(skip_serializing_if = "FailOn::is_usual")]
    pub(crate) fail_on: FailOn,
    /// Whether it is made in every run, or only after the resource was changed or refreshed.
    #[serde(skip_serializing_if = "When::is_usual")]
    pub(crate) when: When,
    /// Whether `command` is a text for `/bin/sh`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shell: bool,
    /// The user that `command` runs as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Account>,
    /// Variables for `command`, as `KEY=value`. Their values are never shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) environment: Vec<Variable>,
}

fn any_map(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}

fn text_or_map(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "object"] })
}

/// From which state on a resource fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum FailOn {
    /// A warning fails it too.
    Warning,
    /// A warning is only told.
    #[default]
    Critical,
}

/// When a check is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum When {
    /// In every run.
    #[default]
    Always,
    /// After the resource was changed or refreshed.
    Changed,
}

impl FailOn {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl When {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What a check does.
pub(crate) enum Kind<'a> {
    Command(&'a str),
    Rules(std::borrow::Cow<'a, Rules>),
    File(&'a str),
}

/// The longest name that is made of a command.
const LONGEST_NAME: usize = 80;

impl HealthCheck {
    /// The kinds that were given, each by its key.
    fn given(&self) -> Vec<&'static str> {
        let kinds = [
            ("command", self.command.is_some()),
            ("goss_rules", self.goss_rules.is_some()),
            ("goss_file", self.goss_file.is_some()),
            ("http", self.http.is_some()),
            ("tcp", self.tcp.is_some()),
            ("file", self.file.is_some()),
            ("unit", self.unit.is_some()),
        ];
        kinds.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect()
    }

    /// Returns what it does, or what is wrong with that.
    pub(crate) fn kind(&self) -> Result<Kind<'_>, String> {
        use std::borrow::Cow::{Borrowed, Owned};
        match (&self.command, &self.goss_rules, &self.goss_file) {
            (Some(command), ..) => return Ok(Kind::Command(command)),
            (_, Some(rules), _) => return Ok(Kind::Rules(Borrowed(rules))),
            (_, _, Some(file)) => return Ok(Kind::File(file)),
            _ => {}
        }
        let http = self.http.as_ref().map(HttpProbe::rules);
        let tcp = || self.tcp.as_ref().map(TcpProbe::rules);
        let file = || self.file.as_ref().map(FileProbe::rules);
        let unit = || self.unit.as_ref().map(UnitProbe::rules);
        let rules = http.or_else(tcp).or_else(file).or_else(unit);
        rules.unwrap_or_else(|| Err("it checks nothing".to_owned())).map(|rules| Kind::Rules(Owned(rules)))
    }

    /// Returns how it tells its result.
    pub(crate) fn format(&self) -> Format {
        if self.command.is_some() { Format::Nagios } else { Format::Goss }
    }

    /// Returns what it is called.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let http = || self.http.as_ref().map(HttpProbe::name);
        let tcp = || self.tcp.as_ref().map(|probe| format!("tcp {}", probe.whole_address()));
        let file = || self.file.as_ref().map(|probe| format!("file {}", probe.path));
        let unit = || self.unit.as_ref().map(|probe| format!("unit {}", probe.name));
        let goss_file = || self.goss_file.as_ref().map(|path| format!("goss {path}"));
        let command = self.command.as_deref().map(command_name);
        let name = command.or_else(http).or_else(tcp).or_else(file).or_else(unit).or_else(goss_file);
        name.unwrap_or_else(|| "goss".to_owned())
    }

    /// Returns the values that must not be seen.
    pub(crate) fn secrets(&self) -> Vec<Cow<'_, str>> {
        let rules = || self.goss_rules.iter().flat_map(Rules::rules);
        let variables = self.environment.iter().map(|variable| variable.value.reveal());
        let own = variables.chain(rules().flat_map(Rule::secrets)).map(Cow::Borrowed);
        let asked = rules().map(|rule| rule.subject.as_str());
        let addresses = self.http.iter().map(|probe| probe.url.as_str()).chain(asked);
        let in_addresses =
            addresses.filter_map(|address| Url::parse(address).ok()).flat_map(|url| url.secrets());
        own.chain(in_addresses.map(Cow::Owned)).collect()
    }

    /// Returns everything that is wrong with it, each with what to do about it.
    fn faults(&self) -> Vec<(String, Option<String>)> {
        let mut faults = Vec::new();
        let given = self.given();
        match given.as_slice() {
            [_] => {}
            [] => faults.push((
                "it checks nothing".to_owned(),
                Some(
                    "give one of `command`, `goss_rules`, `goss_file`, `http`, `tcp`, `file` and `unit`"
                        .to_owned(),
                ),
            )),
            [first, .., last] => faults.push((
                format!("`{first}` and `{last}` cannot be given together"),
                Some("make two checks of it".to_owned()),
            )),
        }
        if let ([_], Some(format)) = (given.as_slice(), self.format)
            && format != self.format()
        {
            let known = if self.format() == Format::Nagios { "nagios" } else { "goss" };
            faults.push((
                format!("`format` does not fit `{}`", given[0]),
                Some(format!("leave it out: it is `{known}`")),
            ));
        }
        if let Some(command) = self.command.as_deref().filter(|_| !self.shell) {
            let reason = command_words::split(command).err().or_else(|| command_words::operator(command));
            faults.extend(reason.map(|reason| {
                let help = matches!(reason, NotACommand::Operator(_))
                    .then(|| "set `shell: true`, or quote it if the program is to get it".to_owned());
                (format!("`command` {reason}"), help)
            }));
        }
        let needs_command = [
            ("shell", self.shell),
            ("user", self.user.is_some()),
            ("environment", !self.environment.is_empty()),
        ];
        for (key, _) in needs_command.into_iter().filter(|(_, given)| *given && self.command.is_none()) {
            faults.push((format!("`{key}` needs `command`"), None));
        }
        if let ([_], Err(problem)) = (given.as_slice(), self.kind()) {
            faults.push((problem, None));
        }
        faults
    }
}

/// Returns the program's own name with its arguments.
fn command_name(command: &str) -> String {
    let (program, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    let name = format!("{program} {arguments}").split_whitespace().collect::<Vec<_>>().join(" ");
    match name.char_indices().nth(LONGEST_NAME) {
        None => name,
        Some((end, _)) => name[..end].trim_end().to_owned(),
    }
}

/// A fault of one of several checks.
pub(crate) struct Problem {
    /// Which of the checks it is.
    pub(crate) check: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Returns everything that is wrong with the checks of a resource.
pub(crate) fn problems(checks: &[HealthCheck]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut names = HashSet::new();
    for (at, check) in checks.iter().enumerate() {
        let faults = check.faults();
        if faults.is_empty() && !names.insert(check.name()) {
            let message = format!("two health checks are called \"{}\"", check.name());
            problems.push(Problem {
                check: at,
                message,
                help: Some("give them names with `name`".to_owned()),
            });
        }
        problems.extend(faults.into_iter().map(|(message, help)| Problem {
            check: at,
            message: format!("health check: {message}"),
            help,
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Source, from_node, parse};

    fn check(text: &str) -> HealthCheck {
        from_node(&parse(&Source { name: "check".to_owned(), text: text.to_owned() }).unwrap()).unwrap()
    }

    #[test]
    fn checks_have_names_that_tell_what_they_do() {
        for (text, name) in [
            ("command: /usr/lib/nagios/plugins/check_http -H localhost", "check_http -H localhost"),
            ("goss_rules: {file: {/x: {exists: true}}}", "goss"),
            ("http: 'https://u:p@h/health?token=x'", "http h:443/health"),
            ("http: {url: 'http://h:81'}", "http h:81/"),
            ("tcp: 80", "tcp localhost:80"),
            ("tcp: {address: 'h:80', expect: x}", "tcp h:80"),
            ("file: {path: /x}", "file /x"),
            ("unit: nginx", "unit nginx"),
            ("{unit: nginx, name: web}", "web"),
        ] {
            assert_eq!(check(text).name(), name, "{text}");
        }
        let long = format!("command: x {}", "a".repeat(100));
        assert_eq!(check(&long).name().chars().count(), 80);
    }

    #[test]
    fn what_is_wrong_with_a_check_is_told() {
        for (text, message) in [
            ("{}", "checks nothing"),
            ("{command: a, tcp: 80}", "`command` and `tcp` cannot be given together"),
            ("{command: a, format: goss}", "`format` does not fit `command`"),
            ("{tcp: 80, format: nagios}", "`format` does not fit `tcp`"),
            ("{command: 'a | b'}", "holds `|`"),
            ("{command: 'a && b'}", "holds `&&`"),
            ("{command: 'a > b'}", "holds `>`"),
            ("{command: 'a; b'}", "holds `a;`"),
            ("{command: ''}", "names no program"),
            ("{tcp: 80, shell: true}", "`shell` needs `command`"),
            ("{tcp: 'udp://h:1'}", "cannot be tried"),
            ("{http: 'ftp://h'}", "ftp"),
        ] {
            let problems = problems(&[check(text)]);
            assert!(problems.iter().any(|problem| problem.message.contains(message)), "{text}");
        }
        assert!(problems(&[check("{command: 'a | b', shell: true}"), check("tcp: 80")]).is_empty());
        assert_eq!(problems(&[check("tcp: 80"), check("tcp: 80")]).len(), 1);
    }
}
