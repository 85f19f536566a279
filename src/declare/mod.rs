//! From text to a resource: a manifest, flags and a JSON request each give a declaration, and this turns it into a resource or
//! into all of its errors.

mod declaration;
mod elsewhere;
mod expansion;
mod exposed;
mod faults;
mod health_checks;
mod late;
mod rendering;
mod secrecy;
#[cfg(test)]
mod tests;

pub(crate) use declaration::{Completeness, Declaration};
pub(crate) use elsewhere::meant_state;
pub(crate) use expansion::{Expansion, Management};
pub(crate) use rendering::{Comparable, Elements, HIDDEN};
