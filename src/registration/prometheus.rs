//! Entries as targets for the file-based service discovery of Prometheus.

use serde_json::{Map, Value, json};

use super::Registration;

/// Returns the targets in the format of Prometheus.
pub(crate) fn file_sd(entries: &[Registration]) -> Value {
    entries.iter().filter(|entry| is_scraped(entry)).filter_map(target).collect()
}

/// Returns whether Prometheus scrapes an entry. Entries with the protocol or service `prometheus` are scraped unless
/// they opt out; other entries only if they opt in.
fn is_scraped(entry: &Registration) -> bool {
    let said = entry.annotations.get("prometheus.io/scrape").map(|said| &**said);
    let is_meant = [&entry.service, &entry.protocol].iter().any(|name| name.as_str() == "prometheus");
    if is_meant { said != Some("false") } else { said == Some("true") }
}

fn target(entry: &Registration) -> Option<Value> {
    let (address, port) = (entry.address.as_str(), entry.port?.number());
    let target =
        if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
    let mut labels = Map::new();
    for (name, value) in &entry.annotations {
        if is_label(name) && !value.is_empty() {
            labels.insert(name.clone(), (**value).into());
        }
    }
    for (name, value) in
        [("cluster", &entry.cluster), ("service", &entry.service), ("protocol", &entry.protocol)]
    {
        labels.insert(name.to_owned(), value.as_str().into());
    }
    Some(json!({ "targets": [target], "labels": labels }))
}

/// Returns whether a name is a valid label that Prometheus does not use itself.
fn is_label(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_plain)
        && !name.starts_with("__")
}

#[cfg(test)]
mod tests {
    use super::{super::wire::entry, *};

    fn entries(texts: &[&str]) -> Vec<Registration> {
        texts.iter().map(|text| entry(text.as_bytes()).unwrap()).collect()
    }

    #[test]
    fn targets_are_those_that_are_meant_for_prometheus() {
        let found = file_sd(&entries(&[
            r#"{"cluster":"c","service":"node","protocol":"prometheus","address":"10.0.0.1","port":9100,
                "annotations":{"rack":"r1","empty":"","a-b":"x","__x":"y","prometheus.io/port":"1"}}"#,
            r#"{"cluster":"c","service":"prometheus","protocol":"http","address":"::1","port":9090}"#,
            r#"{"cluster":"c","service":"web","protocol":"http","address":"10.0.0.2","port":80,
                "annotations":{"prometheus.io/scrape":"true","cluster":"other"}}"#,
            r#"{"cluster":"c","service":"web","protocol":"http","address":"10.0.0.3","port":80}"#,
            r#"{"cluster":"c","service":"prometheus","protocol":"http","address":"10.0.0.4"}"#,
            r#"{"cluster":"c","service":"prometheus","protocol":"http","address":"10.0.0.5","port":1,
                "annotations":{"prometheus.io/scrape":"false"}}"#,
        ]));
        let expected = json!([
            { "targets": ["10.0.0.1:9100"],
              "labels": { "rack": "r1", "cluster": "c", "service": "node", "protocol": "prometheus" } },
            { "targets": ["[::1]:9090"], "labels": { "cluster": "c", "service": "prometheus", "protocol": "http" } },
            { "targets": ["10.0.0.2:80"], "labels": { "cluster": "c", "service": "web", "protocol": "http" } },
        ]);
        assert_eq!(found, expected);
        assert_eq!(file_sd(&[]).to_string(), "[]");
    }
}
