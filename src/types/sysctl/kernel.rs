//! The live value of a kernel setting.

use std::io::ErrorKind;

use super::{entries::normalized, key::Key};
use crate::{
    document::closest,
    host::{look, system_file},
    resource::Error,
};

/// What the kernel has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LiveValue {
    Value(String),
    /// The kernel has no such setting. The help names the nearest one.
    Missing {
        help: String,
    },
}

impl LiveValue {
    pub(super) fn value(&self) -> Option<&str> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing { .. } => None,
        }
    }
}

/// Reads the live value.
pub(super) fn read(key: &Key) -> Result<LiveValue, Error> {
    let path = key.path();
    if look::is_directory(&path) {
        let message = format!("{key} is a group of settings; the kernel has no setting with this name");
        let names: Vec<String> =
            look::names(&path).into_iter().take(5).map(|name| format!("{key}.{name}")).collect();
        return Err(Error::new(message)
            .on("name")
            .with_help(format!("name one of them, such as {}", names.join(", "))));
    }
    match system_file::read(&path.to_string_lossy()) {
        Ok(text) => Ok(LiveValue::Value(normalized(&text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(LiveValue::Missing { help: help(key) }),
        Err(error) => Err(Error::new(format!("cannot read {}: {error}", path.display())).on("name")),
    }
}

/// Returns the error for a setting that the kernel does not have.
pub(super) fn unknown(key: &Key, help: &str) -> Error {
    Error::new(format!("the kernel has no setting {key}")).on("name").with_help(help)
}

fn help(key: &Key) -> String {
    let otherwise = "load the module that it belongs to first, or set `ignore_missing: true`";
    let path = key.path();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(above) = path.parent().filter(|above| look::is_directory(above)) else {
        return otherwise.to_owned();
    };
    let names = look::names(above);
    let near = closest(&wanted, names.iter().map(String::as_str));
    let near = near.and_then(|near| Key::parse(above.join(near).strip_prefix("/proc/sys").ok()?.to_str()?));
    near.map_or_else(|| otherwise.to_owned(), |near| format!("did you mean {near}? Otherwise {otherwise}"))
}

/// Why the live value could not be changed.
pub(super) enum Failure {
    /// The kernel does not take the value. It has its earlier one.
    Refused(Error),
    /// Nobody can change it here, whatever the value.
    Unchangeable(Error),
}

/// Changes the live value and reads it back.
pub(super) fn set(key: &Key, value: &str) -> Result<(), Failure> {
    let path = key.path();
    let before = system_file::read(&path.to_string_lossy());
    if let Err(error) = system_file::set(&path, value) {
        let refused = matches!(
            error.kind(),
            ErrorKind::InvalidInput
                | ErrorKind::NotFound
                | ErrorKind::ArgumentListTooLong
                | ErrorKind::InvalidData
        ) || error.raw_os_error() == Some(rustix::io::Errno::RANGE.raw_os_error());
        return Err(if refused {
            let message = format!("the kernel refuses the value \"{value}\" of {key}: {error}");
            Failure::Refused(Error::new(message).on("value"))
        } else {
            let message = format!("cannot change {key} in this kernel: {error}");
            let help =
                "run ccm as root on the machine itself, or set `live: false` to manage only the stored value";
            Failure::Unchangeable(Error::new(message).on("value").with_help(help))
        });
    }
    let now = system_file::read(&path.to_string_lossy()).map(|text| normalized(&text)).unwrap_or_default();
    if now == value {
        return Ok(());
    }
    if let Ok(before) = before {
        // What the kernel had is valid.
        let _ = system_file::set(&path, &normalized(&before));
    }
    let message = format!("the kernel does not keep the value \"{value}\" of {key}: it became \"{now}\"");
    Err(Failure::Refused(Error::new(message).on("value")))
}
