//! Checks request headers before anything is sent.

use std::collections::BTreeMap;

use crate::{host::http, resource::Error, vocabulary::Secret};

/// Returns the errors in headers. Names are checked at load time. A value might be known only at run time; it is then
/// checked as a value of the property.
pub(crate) fn problems(headers: &BTreeMap<String, Secret>) -> Vec<Error> {
    let problem = |(name, value): (&String, &Secret)| {
        if name.contains("{{") || name.contains("${") {
            let message = format!("headers: the name {name:?} holds a template");
            return Some(Error::new(message).with_help("only the value of a header can hold one"));
        }
        let named = http::check_name(name).map_err(|fault| Error::new(format!("headers: {fault}")));
        let valued = || http::check_value(name, value.reveal());
        named.and_then(|()| valued().map_err(|fault| Error::new(fault.to_string()).on("headers"))).err()
    };
    headers.iter().filter_map(problem).collect()
}
