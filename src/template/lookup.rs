//! `lookup(path[, default])` over facts, data and the environment.

use std::rc::Rc;

use ccm_expr::{CallError, Doubt, DoubtKind, Environment, ErrorKind, Map, Path, Value};

use super::{
    Missing, Scope,
    advice::{ELSEWHERE, KEPT, MADE_FROM, UNMADE},
};

impl Scope {
    pub(super) fn lookup(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let (path, default) = match arguments {
            [path] => (path, None),
            [path, default] => (path, Some(default)),
            _ => return Err(CallError::new("lookup takes a path and, if you like, a default")),
        };
        let Some(text) = path.as_str() else {
            return Err(CallError::at(0, format!("the path must be a string, not {}", path.type_name())));
        };
        if self.data.is_none() && text.split(['.', '|']).next() == Some("data") {
            return Err(CallError::at(0, format!("`{text}` {UNMADE}")).with_help(MADE_FROM));
        }
        let is_environ = matches!(text.split(['.', '|']).next(), Some("environ" | "env"));
        if self.environ.is_none() && is_environ {
            return Err(CallError::at(0, format!("`{text}` {ELSEWHERE}")).with_help(KEPT));
        }
        let path = self.path(text)?;
        let root = self.root(text);
        let found = match (default, self.missing) {
            (Some(default), _) => path
                .find(&root)
                .map(|found| found.filter(|found| !found.is_null()).unwrap_or_else(|| default.clone())),
            (None, Missing::Error) => path.require(&root),
            (None, Missing::Empty) => {
                if let Some(suggestion) = path.missing(&root).and_then(|missing| missing.suggestion) {
                    let kind =
                        DoubtKind::MissingMember { path: text.to_owned(), suggestion: Some(suggestion) };
                    self.note(Doubt { kind, place: None, span: 0..0 });
                }
                path.find(&root).map(Option::unwrap_or_default)
            }
        };
        found.map_err(|error| {
            let mut error = CallError { argument: Some(0), ..error.into() };
            // Data is made on machines where not every fact is there.
            if self.data.is_none() && matches!(error.kind, ErrorKind::MissingPath { .. }) {
                let known = error.help.map(|help| format!("{help}, or ")).unwrap_or_default();
                error.help = Some(format!("{known}give a default: `lookup('{text}', '')`"));
            }
            error
        })
    }

    fn path(&self, text: &str) -> Result<Rc<Path>, CallError> {
        if let Some(path) = self.paths.borrow().get(text) {
            return Ok(Rc::clone(path));
        }
        let path = Path::parse(text).map_err(|error| CallError { argument: Some(0), ..error.into() })?;
        let path = Rc::new(path);
        self.paths.borrow_mut().insert(text.to_owned(), Rc::clone(&path));
        Ok(path)
    }

    /// What paths start from; `env` is another name for `environ`.
    pub(super) fn root(&self, path: &str) -> Value {
        self.roots().of(path)
    }

    /// What paths start from, for others who look things up.
    pub(super) fn roots(&self) -> Roots {
        let (facts, data, environ) = (self.facts.clone(), self.data.clone(), self.environ.clone());
        Roots { facts, data, environ }
    }
}

/// What paths start from.
pub(super) struct Roots {
    facts: Value,
    data: Option<Value>,
    environ: Option<Value>,
}

impl Roots {
    pub(super) fn of(&self, path: &str) -> Value {
        let environ = if path.split(['.', '|']).next() == Some("env") { "env" } else { "environ" };
        let entries =
            [("facts", Some(&self.facts)), ("data", self.data.as_ref()), (environ, self.environ.as_ref())];
        let known = entries.into_iter().filter_map(|(name, value)| Some((name.into(), value?.clone())));
        known.collect::<Map>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_path_is_blamed_on_it() {
        let scope = Scope::new(Value::Null, Value::Null, std::path::PathBuf::new()).with_data(Value::Null);
        for path in ["", "data..a", "data.a", "environ.A"] {
            let error = scope.lookup(&[path.into()]).expect_err(path);
            assert_eq!(error.argument, Some(0), "{path}: {error:?}");
        }
    }
}
