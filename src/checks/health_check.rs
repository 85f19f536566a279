//! Health checks as resources declare them.

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

/// A health check: exactly one of `command`, `goss_rules`, `goss_file`, `http`, `tcp`, `file` and `unit`, and its
/// options.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(crate) struct HealthCheck {
    /// Nagios plugin with its arguments. Exit status 0 is OK, 1 WARNING, 2 CRITICAL, any other UNKNOWN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// goss rules, by kind and subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_map")]
    pub(crate) goss_rules: Option<Rules>,
    /// File with goss rules. A relative path starts at the directory of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goss_file: Option<String>,
    /// URL that must respond with success, or a map of `url`, `status`, `contains` and `json`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) http: Option<HttpProbe>,
    /// `[HOST:]PORT` that must accept connections, or a map of `address` and `expect`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) tcp: Option<TcpProbe>,
    /// Path of a file that must exist, or a map of `path`, `exists` and `contains`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) file: Option<FileProbe>,
    /// systemd unit that must be active, or a map of `name` and `for`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "short_or_whole")]
    #[schemars(schema_with = "text_or_map")]
    pub(crate) unit: Option<UnitProbe>,
    /// Name of the check, unique in the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Number of attempts before the resource fails (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tries: Option<u32>,
    /// Pause between two attempts (default `1s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) try_sleep: Option<Duration>,
    /// Time limit of one attempt (default `60s`). ccm terminates everything that the attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<TimeLimit>,
    /// Format of the result. Default: derived from the kind of the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<Format>,
    /// Time after the first attempt within which the last attempt must begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<Duration>,
    /// Pause before the first attempt, if the resource was just changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay: Option<Duration>,
    /// Number of consecutive attempts that must be OK (default 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) successes: Option<u32>,
    /// Least severe state that fails the resource. UNKNOWN always fails it.
    #[serde(skip_serializing_if = "FailOn::is_usual")]
    pub(crate) fail_on: FailOn,
    /// Whether the check runs in every run, or only after the resource was changed or refreshed.
    #[serde(skip_serializing_if = "When::is_usual")]
    pub(crate) when: When,
    /// If true, `/bin/sh` runs `command`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shell: bool,
    /// User to run `command` as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Account>,
    /// Variables (`KEY=value`) for `command`. ccm never shows their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) environment: Vec<Variable>,
}

fn any_map(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}

fn text_or_map(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "object"] })
}

/// Least severe state that fails a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum FailOn {
    /// WARNING and CRITICAL fail the resource.
    Warning,
    /// WARNING is only reported.
    #[default]
    Critical,
}

/// When a check runs.
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

/// Kind of a check.
pub(crate) enum Kind<'a> {
    Command(&'a str),
    Rules(std::borrow::Cow<'a, Rules>),
    File(&'a str),
}

/// Maximum length of a name that is derived from a command.
const LONGEST_NAME: usize = 80;

impl HealthCheck {
    /// Returns the keys of the kinds that were given.
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

    /// Returns the kind, or the error if there is not exactly one.
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

    /// Returns the format of the result.
    pub(crate) fn format(&self) -> Format {
        if self.command.is_some() { Format::Nagios } else { Format::Goss }
    }

    /// Returns the name.
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

    /// Returns the secret values.
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

    /// Returns all errors of the check, each with advice.
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

/// Returns the base name of the program with its arguments.
fn command_name(command: &str) -> String {
    let (program, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    let name = format!("{program} {arguments}").split_whitespace().collect::<Vec<_>>().join(" ");
    match name.char_indices().nth(LONGEST_NAME) {
        None => name,
        Some((end, _)) => name[..end].trim_end().to_owned(),
    }
}

/// Error in one of several checks.
pub(crate) struct Problem {
    /// Index of the check.
    pub(crate) check: usize,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Returns all errors in the checks of a resource.
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
