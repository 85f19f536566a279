//! What is observed of a service.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Ensure, Properties,
    error::ServiceError,
    unit::Unit,
    words::{Activity, Enablement},
};
use crate::resource::State;

/// What a service is doing, and whether it starts at boot.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceState {
    /// What is known about the service.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) activity: Activity,
    #[serde(skip)]
    pub(super) enablement: Enablement,
}

/// What is known about the service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// The service's name, as it was asked for.
    pub(super) name: String,
    /// The provider that looked.
    pub(super) provider: String,
    /// Whether it starts at boot, or is started by another unit that does.
    pub(super) enabled: bool,
    /// Whether it is running.
    pub(super) running: bool,
    /// The name that the system knows it under.
    pub(super) unit: String,
    /// What it is doing, in the word of `systemctl is-active`.
    pub(super) active_state: String,
    /// Whether it starts at boot, in the word of `systemctl is-enabled`; `not-found` for a unit that runs without a file.
    pub(super) unit_file_state: String,
}

impl ServiceState {
    /// Returns what a unit is in the terms of the type.
    pub(super) fn of(want: &Properties, unit: &Unit) -> Result<Self, ServiceError> {
        let activity = unit.activity()?;
        let enablement = Enablement::from_word(&unit.boot)?;
        let metadata = Metadata {
            name: want.name.to_string(),
            provider: "systemd".to_owned(),
            enabled: enablement.starts_at_boot(),
            running: activity == Activity::Running,
            unit: unit.id.clone(),
            active_state: unit.active.clone(),
            unit_file_state: unit.boot.clone(),
        };
        Ok(Self { metadata, activity, enablement })
    }
}

impl State for ServiceState {
    fn ensure(&self) -> String {
        let ensure = if self.activity == Activity::Running { Ensure::Running } else { Ensure::Stopped };
        ensure.word().to_owned()
    }
}
