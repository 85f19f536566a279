//! Files beside the manifest that hold rules of health checks: what is wrong with them is known before the run.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use crate::{
    document::{Diagnostic, Node, Review},
    health::{self, IncludeError},
    resource::{Makes, Resource},
};

/// The files that the checks of the resources of one manifest name.
#[derive(Default)]
pub(crate) struct RuleFiles {
    /// Paths that resources so far make themselves.
    made: HashSet<PathBuf>,
    /// Whether a resource so far may make any file.
    anything: bool,
    /// The files of which everything is said.
    told: HashSet<String>,
    /// What is wrong inside them.
    pub(crate) reviews: Vec<Review>,
}

impl RuleFiles {
    /// Looks at the files that the checks of a resource name, and returns what is wrong with how they are named.
    pub(crate) fn check(
        &mut self,
        resource: &Resource,
        written: Option<&Node>,
        folder: &Path,
    ) -> Vec<Diagnostic> {
        match resource.kind.behavior().makes {
            Makes::ItsName => drop(self.made.insert(PathBuf::from(&resource.name))),
            Makes::Anything => self.anything = true,
        }
        let mut problems = Vec::new();
        for (at, check) in resource.plain_checks().iter().enumerate() {
            let Err(error) = health::included_rules(check, folder) else { continue };
            if self.may_come(&error, folder) {
                continue;
            }
            if let IncludeError::Invalid { document, diagnostics } = error {
                if self.told.insert(document.name.clone()) {
                    self.reviews.extend(diagnostics.review(&document));
                }
                continue;
            }
            let message = format!("{resource}: health check {}: {error}", check.name());
            let place = written.and_then(Node::as_seq).and_then(|items| items.get(at)).or(written);
            let problem = Diagnostic::error("invalid-health-check", message);
            problems.push(Diagnostic { span: place.map(|node| node.span), ..problem });
        }
        problems
    }

    /// Whether it cannot be told yet: what is outside the manifest's folder, or made in the run, may be another by then.
    fn may_come(&self, error: &IncludeError, folder: &Path) -> bool {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let is_open = |path: &Path| !path.starts_with(&folder) || self.made.contains(path);
        match error {
            IncludeError::Unreadable { path, .. } => self.anything || is_open(path),
            IncludeError::NoMatch { folder, .. } => self.anything || is_open(folder),
            IncludeError::Invalid { document, .. } => is_open(Path::new(&document.name)),
            IncludeError::Cycle(_) | IncludeError::TooDeep(_) => false,
        }
    }
}
