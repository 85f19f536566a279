//! Entries: a service at an address.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    SUBJECTS,
    ttl::Ttl,
    words::{Address, Port, Priority, Token},
};
use crate::vocabulary::ScalarText;

/// A service at an address, serialized as it is published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Registration {
    /// Cluster of the service.
    pub(crate) cluster: Token,
    /// Name of the service.
    pub(crate) service: Token,
    /// Protocol of the service.
    pub(crate) protocol: Token,
    /// IP address or host name of the service.
    pub(crate) address: Address,
    /// Port of the service.
    #[serde(default)]
    pub(crate) port: Option<Port>,
    /// Priority from 1 to 255 (default 100).
    #[serde(default)]
    pub(crate) priority: Priority,
    /// Further information by name.
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, ScalarText>,
    /// Time to live: a duration, or `never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<Ttl>,
}

/// Text that Go prints for a missing number. The Go original's ids of entries without a port contain it.
const NO_PORT: &str = "%!d(<nil>)";

impl Registration {
    /// Returns the unique id of the entry: FNV-1a of its identifying properties.
    pub(crate) fn id(&self) -> String {
        let port = self.port.map_or_else(|| NO_PORT.to_owned(), |port| port.number().to_string());
        let parts = [
            self.cluster.as_str(),
            self.service.as_str(),
            self.protocol.as_str(),
            self.address.as_str(),
            &port,
        ];
        let hash =
            parts.iter().flat_map(|part| part.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }

    /// Returns the subject of the entry.
    pub(crate) fn subject(&self) -> String {
        let Self { cluster, protocol, service, address, .. } = self;
        format!("{SUBJECTS}.{cluster}.{protocol}.{service}.{}.{}", address.in_subject(), self.id())
    }

    /// Returns the payload to publish.
    pub(crate) fn payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the headers that make a stream keep only the last entry of a subject, and only for its time to live.
    pub(crate) fn headers(&self, stream: Option<&str>) -> Vec<(&'static str, String)> {
        let rollup = Some(("Nats-Rollup", "sub".to_owned()));
        let ttl = self.ttl.and_then(Ttl::header).map(|ttl| ("Nats-TTL", ttl));
        let stream = stream.map(|stream| ("Nats-Expected-Stream", stream.to_owned()));
        [rollup, ttl, stream].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(address: &str, port: Option<&str>, ttl: Option<&str>) -> Registration {
        Registration {
            cluster: "prod".parse().unwrap(),
            service: "web".parse().unwrap(),
            protocol: "http".parse().unwrap(),
            address: address.parse().unwrap(),
            port: port.map(|port| port.parse().unwrap()),
            priority: Priority::default(),
            annotations: BTreeMap::new(),
            ttl: ttl.map(|ttl| ttl.parse().unwrap()),
        }
    }

    /// Compares ids with those that another program computed.
    #[test]
    fn ids_and_subjects_are_the_originals() {
        for (address, port, subject) in [
            ("10.0.0.1", Some("8080"), "choria.ccm.registration.v1.prod.http.web.10_0_0_1.8615c9f698160162"),
            (
                "2001:db8::1",
                Some("443"),
                "choria.ccm.registration.v1.prod.http.web.2001:db8::1.e479410001c44633",
            ),
            (
                "web1.example.net",
                Some("80"),
                "choria.ccm.registration.v1.prod.http.web.web1_example_net.e9bbc3cec057f86a",
            ),
        ] {
            assert_eq!(entry(address, port, None).subject(), subject);
        }
        let without_port = Registration {
            service: "db".parse().unwrap(),
            protocol: "postgres".parse().unwrap(),
            ..entry("10.1.2.3", None, None)
        };
        assert_eq!(without_port.id(), "c370be8d5cd4774e");
    }

    #[test]
    fn payloads_and_headers_are_the_originals() {
        let plain = entry("10.0.0.1", Some("8080"), None);
        let text = r#"{"cluster":"prod","service":"web","protocol":"http","address":"10.0.0.1","port":8080,"priority":100,"annotations":{}}"#;
        assert_eq!(String::from_utf8(plain.payload()).unwrap(), text);
        assert_eq!(plain.headers(None), [("Nats-Rollup", "sub".to_owned())]);

        let day = entry("::1", None, Some("1d"));
        let expected = json!({
            "cluster": "prod", "service": "web", "protocol": "http", "address": "::1", "port": null,
            "priority": 100, "annotations": {}, "ttl": "24h0m0s",
        });
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&day.payload()).unwrap(), expected);
        let headers = day.headers(Some("REGISTRATION"));
        let [rollup, ttl, stream] = headers.as_slice() else { panic!("{headers:?}") };
        assert_eq!(*rollup, ("Nats-Rollup", "sub".to_owned()));
        assert_eq!(*ttl, ("Nats-TTL", "24h0m0s".to_owned()));
        assert_eq!(*stream, ("Nats-Expected-Stream", "REGISTRATION".to_owned()));

        for (ttl, header) in [("2m", Some("2m0s")), ("never", Some("never")), ("999ms", None)] {
            let headers = entry("10.0.0.1", None, Some(ttl)).headers(None);
            let found = headers.iter().find(|(name, _)| *name == "Nats-TTL").map(|(_, value)| value.as_str());
            assert_eq!(found, header, "{ttl}");
        }
    }
}
