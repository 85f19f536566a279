//! All diagnostics of one document.

use std::{
    ops::{Deref, DerefMut},
    vec,
};

use super::{Diagnostic, Severity, Source};

/// A list of diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(Vec<Diagnostic>);

/// A document with its diagnostics.
#[derive(Clone, Debug)]
pub struct Review {
    pub source: Source,
    pub diagnostics: Diagnostics,
}

impl Diagnostics {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Returns whether there are errors, not only warnings.
    pub fn has_errors(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Returns the errors, without the warnings.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    pub fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.0.retain(keep);
    }

    /// Sorts the diagnostics by position.
    pub fn sort(&mut self) {
        self.0.sort_by_key(Diagnostic::start);
    }

    /// Returns the diagnostics with their document, unless there are none.
    pub fn review(self, source: &Source) -> Option<Review> {
        (!self.is_empty()).then(|| Review { source: source.clone(), diagnostics: self })
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self(diagnostics)
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, more: T) {
        self.0.extend(more);
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.0
    }
}

impl DerefMut for Diagnostics {
    fn deref_mut(&mut self) -> &mut [Diagnostic] {
        &mut self.0
    }
}
