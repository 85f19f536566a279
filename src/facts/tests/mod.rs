//! Machines, recorded and real, and what is found out about them.

mod own;
mod recorded;
mod running;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ccm_expr::{Map, Value};

use super::{Facts, Options};

/// Facts and what was warned of while they were read.
struct Known {
    facts: Value,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Known {
    fn of(root: &Path, folders: Vec<PathBuf>, given: Vec<Map>) -> Self {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&warnings);
        let warn = Box::new(move |message: &str| kept.lock().unwrap().push(message.to_owned()));
        let options = Options { root: root.to_owned(), folders, given, limit: 64 << 20, warn };
        Self { facts: Value::Object(Arc::new(Facts::new(options))), warnings }
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

    fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }
}
