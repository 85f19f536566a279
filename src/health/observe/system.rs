//! Observes kernel parameters and network interfaces.

use std::{fs, io};

use super::{
    super::lens::{Seen, Unseen},
    Observer,
};
use crate::{
    checks::{Observed, Rule},
    facts,
};

/// Reads a parameter, written with dots or slashes. Sequences of spaces count as one space.
pub(super) fn kernel_parameter(name: &str) -> Seen {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    if path.split('/').any(|part| part == "..") {
        return Err(Unseen::Not(format!("\"{name}\" is no parameter")));
    }
    match fs::read_to_string(format!("/proc/sys/{}", path.trim_start_matches('/'))) {
        Ok(text) => Ok(text.split_whitespace().collect::<Vec<_>>().join(" ").as_str().into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unseen::Not("there is no such parameter".to_owned()))
        }
        Err(error) => Err(Unseen::Cannot(error.to_string())),
    }
}

pub(super) fn interface(rule: &Rule) -> Observer<'_> {
    Box::new(move |property| {
        let found = facts::interface(&rule.subject);
        let found = found.map_err(|error| Unseen::Cannot(format!("the kernel does not tell: {error}")))?;
        match (property, found) {
            ("exists", found) => Ok(found.is_some().into()),
            (_, None) => Err(Unseen::Not("there is no such interface".to_owned())),
            ("mtu", Some(found)) => Ok(u64::from(found.mtu).into()),
            (_, Some(found)) => Ok(Observed::from(found.addresses)),
        }
    })
}
