//! What an action leaves at each path, and the change of each file for people to read.

use std::path::Path;

use super::state::{ScaffoldState, TreeAttributes};
use crate::{
    host::files::{Intent, Parents, Predicted, UNKNOWN},
    resource::{Content, Context, Effects, Error, PathEffect, Unknown},
    types::content_diff::{LARGEST, Old, between},
};

pub(super) fn effects(have: &ScaffoldState) -> Effects {
    let plan = &have.plan;
    let mut paths = Vec::new();
    let mut operation = |path: &Path, intent, sha256, content| {
        paths.push(PathEffect::Operation { path: path.to_owned(), intent, sha256, content });
    };
    if let Some(TreeAttributes { folders, .. }) = plan.attributes {
        for folder in plan.folders.iter().filter(|folder| !folder.is_right) {
            let intent = match folder.have {
                Some(_) => Intent::SetAttributes(folders),
                None => Intent::MakeDirectory(folders, Parents::Make),
            };
            operation(&folder.path, intent, None, Content::Kept);
        }
        for file in &plan.write {
            let text = String::from_utf8(file.bytes.clone()).ok().filter(|_| !file.is_processed);
            let sha256 = if file.is_processed { UNKNOWN.to_owned() } else { file.sha256.clone() };
            let content = text.map_or(Content::Unknown, Content::Text);
            let Some(attributes) = file.attributes else { continue };
            operation(&file.path, Intent::Write(attributes), Some(sha256), content);
        }
    }
    for path in plan.remove.iter().chain(&plan.emptied) {
        operation(path, Intent::RemoveTree, None, Content::Kept);
    }
    // A command may do anything.
    let has_commands = plan.write.iter().any(|file| file.is_processed);
    let unknown = if has_commands { Unknown::Anything } else { Unknown::Nothing };
    Effects { paths, unknown, ..Effects::default() }
}

/// Returns the change of each file as a unified diff.
pub(super) fn diff(have: &ScaffoldState, cx: &Context) -> Result<Option<String>, Error> {
    let mut diffs = String::new();
    for file in have.plan.write.iter().filter(|file| file.differs.contains(&"content")) {
        let predicted = cx.prediction.borrow().files.inspect(&file.path)?;
        let old = match predicted {
            // What an earlier resource of a dry run would have left cannot be shown.
            Some(Predicted::Entry(_) | Predicted::Something { .. }) => continue,
            Some(Predicted::Nothing | Predicted::Perhaps) => Old::Absent,
            None => Old::read(&file.path)?,
        };
        let new = Some(file.bytes.as_slice()).filter(|bytes| bytes.len() as u64 <= LARGEST);
        diffs.extend(between(&file.path.display().to_string(), &old, new));
    }
    Ok(Some(diffs).filter(|diffs| !diffs.is_empty()))
}
