//! Functions that ask a fleet: `kvGet`, `registrations` and `prometheusFileSD`.

use ccm_expr::{CallError, ErrorKind, Value};

use super::Scope;
use crate::{
    nats::{Nats, NatsError, check_bucket},
    registration::{self, Filter},
};

/// The functions, none of which data can use.
pub(super) const FUNCTIONS: &[&str] = &["kvGet", "registrations", "prometheusFileSD"];

/// What the list that `registrations` gives can be asked.
pub(super) const METHOD: &str = "PrometheusFileSD";

impl Scope {
    /// Calls one of [`FUNCTIONS`].
    pub(super) fn ask_fleet(&self, name: &str, arguments: &[Value]) -> Result<Value, CallError> {
        match name {
            "kvGet" => self.kv_get(arguments),
            "registrations" => self.registrations(arguments),
            _ => match arguments {
                [list] => prometheus_file_sd(list),
                _ => Err(CallError::new("prometheusFileSD takes what registrations() gives")),
            },
        }
    }

    /// `kvGet(bucket, key[, default])`: what a key of a bucket holds, as text.
    fn kv_get(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let (bucket, key, default) = match arguments {
            [bucket, key] => (bucket, key, None),
            [bucket, key, default] => (bucket, key, Some(default)),
            _ => return Err(CallError::new("kvGet takes a bucket, a key and, if you like, a default")),
        };
        let text = |at: usize, value: &Value| {
            let not_text = || CallError::at(at, format!("it must be a string, not {}", value.type_name()));
            value.as_str().map(str::to_owned).ok_or_else(not_text)
        };
        let address =
            check_bucket(&text(0, bucket)?, &text(1, key)?).map_err(|error| CallError::at(1, error))?;
        let found = self.nats()?.connection().and_then(|connection| connection.value(&address));
        let missing = |reason: String| default.cloned().ok_or_else(|| CallError::at(1, reason));
        match found {
            Ok(Some(entry)) => String::from_utf8(entry.value)
                .map(Value::from)
                .map_err(|_| CallError::at(1, format!("{address} is not UTF-8 text"))),
            Ok(None) => missing(format!("{address} is not there, or was deleted"))
                .map_err(|error| error.with_help("give a default as the third argument")),
            Err(NatsError::NoStream { .. }) => missing(format!("there is no bucket \"{}\"", address.bucket)),
            Err(error) => Err(CallError::new(error.to_string())),
        }
    }

    /// `registrations(cluster, protocol, service, address)`: the entries that fit; `""` and `*` stand for all.
    fn registrations(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let words: Option<Vec<&str>> = arguments.iter().map(Value::as_str).collect();
        let words = words.filter(|words| words.len() <= 4).ok_or_else(|| {
            CallError::new("registrations takes cluster, protocol, service and address, each a string")
        })?;
        let filter = Filter::parse(&words).map_err(|error| CallError::new(error.to_string()))?;
        let nats = self.nats()?;
        let found = nats.connection().and_then(|connection| {
            registration::query(connection, &nats.registration_stream, nats.max_registrations, &filter)
        });
        match found {
            Ok(found) => Ok(registration::records(&found.entries)),
            Err(error @ NatsError::NoStream { .. }) => {
                Err(CallError::new(error.to_string()).with_help("`ccm registration init` makes it"))
            }
            Err(error) => Err(CallError::new(error.to_string())),
        }
    }

    fn nats(&self) -> Result<&Nats, CallError> {
        // A server that is away is the failure of the resource that asks it, and not of the whole manifest.
        if self.is_before_run() {
            self.waits_for_fleet.set(true);
            let kind = ErrorKind::NotYet("NATS is asked only when the turn of the resource comes".to_owned());
            return Err(CallError { kind, help: None, argument: None });
        }
        // What it says may be something else when the turn of the resource comes.
        self.has_read.set(true);
        self.nats.as_deref().ok_or_else(|| CallError::new("NATS cannot be asked here"))
    }
}

/// Returns entries as the text of a file from which Prometheus takes its targets.
pub(super) fn prometheus_file_sd(list: &Value) -> Result<Value, CallError> {
    let entries = registration::from_value(list)
        .ok_or_else(|| CallError::at(0, "it must be the list that registrations() gives"))?;
    serde_json::to_string_pretty(&registration::file_sd(&entries))
        .map(Value::from)
        .map_err(|error| CallError::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use ccm_expr::Program;
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        Scope::new(Value::Null, Value::Null, std::path::PathBuf::new())
    }

    fn reason(scope: &Scope, name: &str, words: &[&str]) -> ErrorKind {
        let words: Vec<Value> = words.iter().map(|word| Value::from(*word)).collect();
        scope.ask_fleet(name, &words).expect_err(name).kind
    }

    #[test]
    fn a_question_that_is_right_is_asked_and_one_that_is_wrong_is_told() {
        let asked = "NATS cannot be asked here";
        for (name, words, expected) in [
            ("kvGet", vec!["a", "b"], asked),
            ("kvGet", vec!["a", "b", "c"], asked),
            ("kvGet", vec!["a"], "kvGet takes a bucket, a key and"),
            ("kvGet", vec!["a", "b", "c", "d"], "kvGet takes a bucket, a key and"),
            ("kvGet", vec!["a.b", "c"], "is not the name of a bucket"),
            ("registrations", vec![], asked),
            ("registrations", vec!["prod", "http", "web", "*"], asked),
            ("registrations", vec!["prod", "http", "web", "*", "more"], "registrations takes cluster,"),
            ("prometheusFileSD", vec!["prod"], "it must be the list that registrations() gives"),
            ("prometheusFileSD", vec![], "prometheusFileSD takes what registrations() gives"),
        ] {
            let found = reason(&scope(), name, &words);
            assert!(!matches!(found, ErrorKind::NotYet(_)), "{name} {words:?}: {found}");
            assert!(found.to_string().contains(expected), "{name} {words:?}: {found}");
        }
    }

    #[test]
    fn nobody_is_asked_before_the_run() {
        for (name, words) in [("kvGet", vec!["a", "b"]), ("registrations", vec!["prod"])] {
            let scope = scope().before_run();
            assert!(matches!(reason(&scope, name, &words), ErrorKind::NotYet(_)), "{name}");
            assert!(scope.take_waits_for_fleet(), "{name}");
        }
    }

    #[test]
    fn entries_become_targets_by_function_and_by_method() {
        let entry =
            r#"{"cluster":"c","service":"node","protocol":"prometheus","address":"10.0.0.1","port":9100}"#;
        for expression in [
            format!("prometheusFileSD(fromJSON('[{entry}]'))"),
            format!("fromJSON('[{entry}]').PrometheusFileSD()"),
        ] {
            let found = Program::compile(&expression).unwrap().evaluate(&scope()).expect(&expression);
            let targets: serde_json::Value = serde_json::from_str(found.as_str().unwrap()).unwrap();
            assert_eq!(targets[0]["targets"], json!(["10.0.0.1:9100"]), "{expression}");
        }
    }
}
