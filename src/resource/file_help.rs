//! Help for file errors, in terms of resources and their properties.
#![expect(clippy::unnecessary_debug_formatting, reason = "messages quote and escape paths")]

use crate::host::files::{FileError, Problem};

/// Returns what the author of the manifest or the administrator can do about an error.
pub(crate) fn file_help(error: &FileError) -> Option<String> {
    Some(match &error.problem {
        Problem::ParentMissing { missing, nearest } => {
            format!("{nearest:?} is there; manage {missing:?} as a directory before this resource")
        }
        Problem::LinkInTheWay { target, .. } => {
            format!("links are never followed here: manage {target:?} itself, or remove the link first")
        }
        Problem::Planted { .. } => {
            "give no other owner, group or mode than it has, or give its whole `content`".to_owned()
        }
        Problem::NotEmpty { .. } => "`force: true` removes a directory with everything in it".to_owned(),
        _ => return error.hint(),
    })
}
