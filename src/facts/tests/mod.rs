//! Machines, recorded and real, and what is found out about them.

mod own;
mod recorded;
mod running;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ccm_expr::{Map, Value};

use super::{Facts, Options};
use crate::document::Review;

/// Facts of a machine.
struct Known {
    facts: Value,
    object: Arc<Facts>,
}

impl Known {
    fn of(root: &Path, folders: Vec<PathBuf>, given: Vec<Map>) -> Self {
        Self::with(Options { root: root.to_owned(), folders, given, limit: 64 << 20, programs: None })
    }

    fn with(options: Options) -> Self {
        let object = Arc::new(Facts::new(options));
        Self { facts: Value::Object(Arc::clone(&object) as Arc<_>), object }
    }

    /// A machine of `tests/fixtures/facts`.
    fn recorded(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/facts").join(name);
        assert!(folder.is_dir(), "{}", folder.display());
        Self::of(&folder, Vec::new(), Vec::new())
    }

    /// The machine that runs the test.
    fn running() -> Self {
        Self::of(Path::new("/"), Vec::new(), Vec::new())
    }

    /// What a path leads to.
    #[track_caller]
    fn value(&self, path: &str) -> Value {
        let path = ccm_expr::Path::parse(path).unwrap();
        path.require(&self.facts).unwrap_or_else(|error| panic!("{error}: {:?}", error.help))
    }

    #[track_caller]
    fn json(&self, path: &str) -> String {
        self.value(path).to_string()
    }

    #[track_caller]
    fn text(&self, path: &str) -> String {
        self.value(path).as_str().unwrap_or_else(|| panic!("{path} is no text")).to_owned()
    }

    #[track_caller]
    fn number(&self, path: &str) -> i64 {
        match self.value(path) {
            Value::Int(number) => number,
            other => panic!("{path} is {other}"),
        }
    }

    /// What was warned of since this was last asked: the place, if there is one, and the message.
    fn warnings(&self) -> Vec<String> {
        let one = |review: Review| {
            let place = review.diagnostics[0].span.map(|span| {
                let (line, column) = review.source.line_column(span.start);
                format!("{}:{line}:{column}: ", review.source.name)
            });
            format!("{}{}", place.unwrap_or_default(), review.diagnostics[0].message)
        };
        self.object.take_reviews().into_iter().map(one).collect()
    }
}
