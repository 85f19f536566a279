//! From a manifest to resources: every problem of the whole file, or none.
//!
//! | file | step |
//! |---|---|
//! | `reading.rs` | [`load`]: reads a manifest and its included manifests together |
//! | `source.rs`, `bundle.rs` | where a manifest comes from |
//! | `load_inputs.rs` | what it is loaded with: facts, environment, data |
//! | `sections.rs` | its sections, and the settings below `ccm` |
//! | `entries.rs`, `repetition.rs` | the forms in which resources are written, and `for_each` |
//! | `references.rs`, `rule_files.rs` | names and references across all files, and files of rules |
//! | `secret.rs` | hides secret values in diagnostics |
//! | `loaded.rs` | the result, or the errors of all documents |

mod ansible;
mod bundle;
mod entries;
mod load_inputs;
mod loaded;
mod parcel;
mod reading;
mod references;
mod repeated;
mod repetition;
mod rule_files;
mod schema;
pub(crate) mod secret;
mod sections;
mod source;

pub(crate) use crate::resource::{Manifest, ManifestSettings};
pub(crate) use bundle::Bundle;
pub(crate) use entries::declarations_in;
pub(crate) use load_inputs::LoadInputs;
pub(crate) use loaded::{LoadError, Loaded, Strictness};
pub(crate) use parcel::{Packaged, Parcel};
pub(crate) use reading::load;
pub(crate) use repeated::repeated;
pub(crate) use rule_files::RuleFiles;
pub(crate) use schema::manifest_schema;
pub(crate) use source::{DATA_FILE, IN_A_FOLDER, Location, Unreadable};
