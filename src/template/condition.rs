//! Conditions: expressions as they are, or in the brackets of a template.

use ccm_expr::{Error, Program, Value, has_template, only_expression};

use super::Scope;

/// An expression that somebody may have put into `{{ }}` or `${ }`, as everywhere else.
pub(crate) struct Condition {
    program: Program,
    /// Where the expression begins in the text.
    offset: usize,
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let inner = only_expression(text).unwrap_or(0..text.len());
        let offset = inner.start;
        match Program::compile(&text[inner.clone()]) {
            Ok(program) => Ok(Self { program, offset }),
            Err(error) if inner.len() == text.len() && has_template(text) => {
                let help = "it is an expression already: write it without `${ }` or `{{ }}`";
                Err(Error { help: Some(help.to_owned()), ..error })
            }
            Err(error) => Err(error.shifted(offset)),
        }
    }

    /// All names in it that the scope does not know.
    pub(crate) fn check(&self, scope: &Scope) -> Vec<Error> {
        self.program.check(scope).into_iter().map(|error| error.shifted(self.offset)).collect()
    }

    pub(crate) fn evaluate(&self, scope: &Scope) -> Result<Value, Error> {
        self.program.evaluate_at(scope, self.offset).map_err(|error| error.shifted(self.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_to_blame_only_where_they_are_inside_of_an_expression() {
        for (text, is_blamed) in [("${ Data.a } == 1", true), ("1 +", false), ("${ 1 + }", false)] {
            let error = Condition::parse(text).err().expect(text);
            let blames = |help: &String| help.contains("it is an expression already");
            assert_eq!(error.help.as_ref().is_some_and(blames), is_blamed, "{text}: {error:?}");
        }
    }

    #[test]
    fn a_mistake_is_where_it_stands_in_the_text() {
        for (text, at) in [("nope", 0), ("${ nope }", 3)] {
            let scope = Scope::new(Value::Null, Value::Null, std::path::PathBuf::new());
            let found = Condition::parse(text).unwrap().check(&scope);
            assert_eq!(found.first().map(|error| error.span.clone()), Some(at..at + 4), "{text}");
        }
    }
}
