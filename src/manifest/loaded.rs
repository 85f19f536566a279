//! The result of loading, or the errors of all documents.

use super::{secret, source::Unreadable};
use crate::{
    document::{Diagnostic, Diagnostics, Parsed, Review, Severity, Source},
    hiera::LayerFile,
};

/// How to treat warnings about a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// The caller shows them.
    Lenient,
    /// They are errors.
    Strict,
}

/// Reason why there is no manifest.
pub(crate) enum LoadError {
    Unreadable(Unreadable),
    /// A value that the user sets does not fit into the data.
    NotSet(String),
    /// Documents with errors or warnings, at least one of them with an error.
    Invalid(Vec<Review>),
}

/// Something made from documents, and the warnings about them.
pub(crate) struct Loaded<T> {
    pub(crate) value: T,
    pub(crate) warnings: Vec<Review>,
}

impl<T> Loaded<T> {
    /// Returns the value with the warnings about it, unless there are errors.
    pub(super) fn of(value: Option<T>, reviews: impl IntoIterator<Item = Review>) -> Result<Self, LoadError> {
        let reviews: Vec<_> = reviews.into_iter().collect();
        match value.filter(|_| !reviews.iter().any(|review| review.diagnostics.has_errors())) {
            Some(value) => Ok(Self { value, warnings: reviews }),
            None => Err(LoadError::Invalid(reviews)),
        }
    }
}

impl<T> Loaded<T> {
    /// Returns the value only if there are no warnings; otherwise the warnings are errors.
    pub(crate) fn strictly(self) -> Result<Self, LoadError> {
        let is_warning = |review: &Review| {
            review.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Warning)
        };
        if !self.warnings.iter().any(is_warning) {
            return Ok(self);
        }
        Err(LoadError::Invalid(self.warnings).strictly())
    }
}

impl LoadError {
    /// Returns the error with all warnings as errors.
    pub(super) fn strictly(self) -> Self {
        let Self::Invalid(mut reviews) = self else { return self };
        for diagnostic in reviews.iter_mut().flat_map(|review| review.diagnostics.iter_mut()) {
            if diagnostic.severity == Severity::Warning {
                diagnostic.severity = Severity::Error;
            }
        }
        Self::Invalid(reviews)
    }
}

/// Returns the diagnostics of a file of a hierarchy.
pub(super) fn review_of(LayerFile { source, parsed, mut diagnostics, .. }: LayerFile) -> Option<Review> {
    match parsed {
        Ok(parsed) => combine(&mut diagnostics, &parsed, &source),
        Err(found) => {
            diagnostics = found;
            secret::hide_all(&mut diagnostics, &source.text);
        }
    }
    diagnostics.review(&source)
}

/// Joins the syntax errors of a document with the diagnostics of its content, by position.
pub(super) fn combine(
    diagnostics: &mut Diagnostics,
    Parsed { root, diagnostics: found, gaps }: &Parsed,
    source: &Source,
) {
    let follows =
        |problem: &Diagnostic| problem.span.is_some_and(|span| gaps.iter().any(|gap| span.contains(*gap)));
    diagnostics.retain(|problem| !follows(problem));
    diagnostics.extend(found.iter().cloned());
    diagnostics.sort();
    if found.is_empty() {
        secret::hide(diagnostics, root, &source.text);
    } else {
        secret::hide_all(diagnostics, &source.text);
    }
}
