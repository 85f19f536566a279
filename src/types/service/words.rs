//! The words in which systemd says what a unit is doing and whether it starts at boot.

use super::error::ServiceError;

/// Whether a unit is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Running,
    /// On its way up: it does not run yet, and nobody has stopped it.
    Starting,
    Stopped,
}

/// Whether a unit starts at boot, and whether that can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enablement {
    Enabled,
    /// Until the next boot only.
    EnabledForNow,
    /// It counts as enabled; who or what decides that is not the unit's own installation.
    Fixed,
    Disabled,
    /// It counts as disabled, and cannot even be started.
    Masked,
    /// It runs, and has no unit file any more.
    NotFound,
}

/// The word of systemd 253 and later for a unit without a file, used for earlier versions too, which have only a message.
pub(super) const NOT_FOUND: &str = "not-found";

impl Activity {
    /// From what `systemctl is-active` prints, which is also a unit's `ActiveState`.
    pub(super) fn from_word(word: &str) -> Result<Self, ServiceError> {
        match word {
            "active" | "reloading" | "refreshing" => Ok(Self::Running),
            "activating" => Ok(Self::Starting),
            "inactive" | "failed" | "deactivating" | "maintenance" => Ok(Self::Stopped),
            other => Err(ServiceError::UnknownActivity { word: other.to_owned() }),
        }
    }
}

impl Enablement {
    /// From what `systemctl is-enabled` prints.
    pub(super) fn from_word(word: &str) -> Result<Self, ServiceError> {
        match word {
            "enabled" => Ok(Self::Enabled),
            "enabled-runtime" => Ok(Self::EnabledForNow),
            "alias" | "static" | "indirect" | "generated" | "transient" => Ok(Self::Fixed),
            "linked" | "linked-runtime" | "disabled" => Ok(Self::Disabled),
            "masked" | "masked-runtime" => Ok(Self::Masked),
            NOT_FOUND => Ok(Self::NotFound),
            other => Err(ServiceError::UnknownEnablement { word: other.to_owned() }),
        }
    }

    pub(super) fn starts_at_boot(self) -> bool {
        matches!(self, Self::Enabled | Self::EnabledForNow | Self::Fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_is_active_has_its_meaning() {
        use Activity::{Running, Starting, Stopped};
        for (word, activity) in [
            ("active", Running),
            ("reloading", Running),
            ("refreshing", Running),
            ("inactive", Stopped),
            ("failed", Stopped),
            ("activating", Starting),
            ("deactivating", Stopped),
            ("maintenance", Stopped),
        ] {
            assert_eq!(Activity::from_word(word).unwrap(), activity, "{word}");
        }
        for word in ["", "unknown", "Active", "active\n"] {
            let message = Activity::from_word(word).unwrap_err().to_string();
            assert_eq!(message, format!("invalid systemctl is-active output: {word:?}"));
        }
    }

    #[test]
    fn every_word_of_is_enabled_has_its_meaning() {
        for (word, starts_at_boot) in [
            ("enabled", true),
            ("enabled-runtime", true),
            ("alias", true),
            ("static", true),
            ("indirect", true),
            ("generated", true),
            ("transient", true),
            ("linked", false),
            ("linked-runtime", false),
            ("masked", false),
            ("masked-runtime", false),
            ("disabled", false),
            ("not-found", false),
        ] {
            assert_eq!(Enablement::from_word(word).unwrap().starts_at_boot(), starts_at_boot, "{word}");
        }
        for word in ["", "bad", "perhaps"] {
            let message = Enablement::from_word(word).unwrap_err().to_string();
            assert_eq!(message, format!("invalid systemctl is-enabled output: {word:?}"));
        }
    }
}
