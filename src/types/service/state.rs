//! Observed state of a service.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Ensure, Properties,
    error::ServiceError,
    unit::Unit,
    words::{Activity, Enablement},
};
use crate::resource::State;

/// Running state and start at boot of a service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServiceState {
    /// Attributes of the service.
    pub(super) metadata: Metadata,
    #[serde(skip)]
    pub(super) activity: Activity,
    #[serde(skip)]
    pub(super) enablement: Enablement,
}

/// Attributes of the service.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Metadata {
    /// Name of the service, as requested.
    pub(super) name: String,
    /// Provider that inspected the service.
    pub(super) provider: String,
    /// Whether the service starts at boot, by itself or through another unit.
    pub(super) enabled: bool,
    /// Whether the service is running.
    pub(super) running: bool,
    /// Name of the unit.
    pub(super) unit: String,
    /// Running state, as `systemctl is-active` reports it.
    pub(super) active_state: String,
    /// Start at boot, as `systemctl is-enabled` reports it; `not-found` for a unit without a unit file.
    pub(super) unit_file_state: String,
}

impl ServiceState {
    /// Returns the state of a unit in the terms of the type.
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

impl ServiceState {
    /// Returns the properties of a resource that has this state.
    pub(super) fn restoring(&self) -> Value {
        let ensure = if self.metadata.running { Ensure::Running } else { Ensure::Stopped };
        // Only a unit with a file that lists where it is wanted can be enabled or disabled.
        let enable = matches!(self.metadata.unit_file_state.as_str(), "enabled" | "disabled")
            .then_some(self.metadata.enabled);
        json!({ "ensure": ensure.word(), "enable": enable })
    }
}

impl State for ServiceState {
    fn ensure(&self) -> String {
        let ensure = if self.activity == Activity::Running { Ensure::Running } else { Ensure::Stopped };
        ensure.word().to_owned()
    }
}
