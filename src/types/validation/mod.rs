//! Validation of new content before ccm publishes it.

mod property;
mod running;

pub(super) use property::{Validate, ValidateCommand};
pub(super) use running::{validate, validate_draft, validate_effects, validate_together, warn_if_rejected};
