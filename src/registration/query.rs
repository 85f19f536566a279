//! Which entries there are.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use super::{
    Registration, SUBJECTS,
    wire::{Change, change, problem},
    words::{Address, NotAnEntry, Token},
};
use crate::{
    nats::{Connection, NatsError},
    vocabulary::Size,
};

/// Which entries are asked for; nothing stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    cluster: Option<Token>,
    protocol: Option<Token>,
    service: Option<Token>,
    address: Option<Address>,
}

impl Filter {
    /// Reads a filter in the order in which subjects have it; an empty text and `*` stand for all.
    pub(crate) fn parse<T: AsRef<str>>(words: &[T]) -> Result<Self, NotAnEntry> {
        let word = |at: usize| words.get(at).map(AsRef::as_ref).filter(|word| !["", "*"].contains(word));
        Ok(Self {
            cluster: word(0).map(str::parse).transpose()?,
            protocol: word(1).map(str::parse).transpose()?,
            service: word(2).map(str::parse).transpose()?,
            address: word(3).map(str::parse).transpose()?,
        })
    }

    /// Returns the subjects of the entries.
    pub(crate) fn subjects(&self) -> String {
        let token = |token: &Option<Token>| token.as_ref().map_or("*", Token::as_str).to_owned();
        let [cluster, protocol, service] = [&self.cluster, &self.protocol, &self.service].map(token);
        let address = self.address.as_ref().map_or_else(|| "*".to_owned(), Address::in_subject);
        format!("{SUBJECTS}.{cluster}.{protocol}.{service}.{address}.*")
    }
}

/// The result of a query.
#[derive(Default)]
pub(crate) struct Found {
    /// Sorted by address and port.
    pub(crate) entries: Vec<Registration>,
    /// Subjects of messages that are not, or not completely, entries, each with the reason.
    pub(crate) problems: Vec<(String, &'static str)>,
}

/// Returns the entries of a stream, and reads at most `limit` bytes.
pub(crate) fn query(
    connection: &Connection,
    stream: &str,
    limit: Size,
    filter: &Filter,
) -> Result<Found, NatsError> {
    // A stream of others may keep several messages of one subject: the last counts.
    let mut found: HashMap<String, Registration> = HashMap::new();
    let mut problems: BTreeMap<String, &'static str> = BTreeMap::new();
    let is_complete = connection.visit(stream, &filter.subjects(), limit, |message| {
        match problem(&message) {
            Some(reason) => drop(problems.insert(message.subject.clone(), reason)),
            None => drop(problems.remove(&message.subject)),
        }
        match change(&message) {
            Some(Change::Entry(entry)) => drop(found.insert(message.subject, entry)),
            Some(Change::Removal { .. }) => drop(found.remove(&message.subject)),
            None => {}
        }
    })?;
    if !is_complete {
        return Err(NatsError::TooManyRegistrations { stream: stream.to_owned(), limit });
    }
    let mut entries: Vec<Registration> = found.into_values().collect();
    entries.sort_by_cached_key(sort_key);
    Ok(Found { entries, problems: problems.into_iter().collect() })
}

/// Addresses sort as numbers, IPv4 before IPv6 before names.
fn sort_key(entry: &Registration) -> (u8, u128, String, Option<u16>, [String; 3]) {
    let text = entry.address.as_str();
    let (kind, number) = match text.parse() {
        Ok(IpAddr::V4(address)) => (0, u128::from(u32::from(address))),
        Ok(IpAddr::V6(address)) => (1, u128::from(address)),
        Err(_) => (2, 0),
    };
    let port = entry.port.map(super::Port::number);
    let names = [&entry.cluster, &entry.protocol, &entry.service].map(ToString::to_string);
    (kind, number, text.to_owned(), port, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_subjects_that_fit_it() {
        for (words, subjects) in [
            (vec![], "*.*.*.*.*"),
            (vec!["prod"], "prod.*.*.*.*"),
            (vec!["", "http", "*", "10.0.0.1"], "*.http.*.10_0_0_1.*"),
            (vec!["prod", "http", "web", "2001:db8::1"], "prod.http.web.2001:db8::1.*"),
        ] {
            assert_eq!(Filter::parse(&words).unwrap().subjects(), format!("{SUBJECTS}.{subjects}"));
        }
        assert!(Filter::parse(&["a.>"]).is_err());
    }
}
