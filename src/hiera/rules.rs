//! Rules that comments on keys of the data carry: `# @require` and `# @validate EXPR`.

use ccm_expr::{Program, Value};

use crate::{
    document::{self, Diagnostic, Diagnostics, Entry, Node, Source, Span},
    template::Scope,
};

/// A rule and where it is written.
struct Rule<'a> {
    text: &'a str,
    /// Where the text of the rule begins in the source.
    at: usize,
}

/// Checks the merged data against the rules written in the data's comments, and warns about words that are no rules.
pub(super) fn check(
    data: &Node,
    merged: &Value,
    scope: &Scope,
    source: &Source,
    diagnostics: &mut Diagnostics,
) {
    let scope = scope.with_data(merged.clone());
    let mut check = Check { scope, source, diagnostics };
    check.walk(data, Some(merged), "", 0);
}

struct Check<'a> {
    scope: Scope,
    source: &'a Source,
    diagnostics: &'a mut Diagnostics,
}

impl Check<'_> {
    /// `from` is where the text before the node ends: a line above it that looks like a comment is part of that text.
    fn walk(&mut self, node: &Node, merged: Option<&Value>, path: &str, mut from: u32) {
        let entries = match &node.value {
            document::Value::Map(entries) => entries,
            document::Value::Seq(_) => return self.unchecked(node, path, from),
            document::Value::Scalar(_) => return,
        };
        for entry in entries {
            let value = merged.and_then(Value::as_map).and_then(|map| map.get(entry.key.as_str()));
            let name = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            let is_known =
                |problem: &Diagnostic| problem.span.is_some_and(|span| entry.value.span.contains(span));
            let is_placeholder = self.scope.has_placeholders() && value.is_some_and(Value::is_secret);
            let rules = if is_placeholder || self.diagnostics.iter().any(is_known) {
                // It could not be expanded, and is not yet what the rules are about.
                Vec::new()
            } else {
                rules(entry, self.source, from)
            };
            for rule in rules {
                if rule.is_known() {
                    let value = value.unwrap_or(&Value::Null);
                    self.diagnostics.extend(broken(&rule, value, &name, entry.key_span, &self.scope));
                } else {
                    self.diagnostics.push(unknown(&rule, &name));
                }
            }
            self.walk(&entry.value, value, &name, entry.key_span.end);
            from = entry.value.span.end;
        }
    }

    /// Items of lists have no names by which merged data could be found: a rule on one of them would hold by accident.
    fn unchecked(&mut self, node: &Node, path: &str, mut from: u32) {
        match &node.value {
            document::Value::Scalar(_) => {}
            document::Value::Seq(items) => {
                for item in items {
                    if matches!(item.value, document::Value::Scalar(_)) {
                        let alone = Node::null(item.span);
                        let entry = Entry { key: String::new(), key_span: item.span, value: alone };
                        self.refuse(&entry, path, from);
                    }
                    self.unchecked(item, path, from);
                    from = item.span.end;
                }
            }
            document::Value::Map(entries) => {
                for entry in entries {
                    self.refuse(entry, path, from);
                    self.unchecked(&entry.value, path, entry.key_span.end);
                    from = entry.value.span.end;
                }
            }
        }
    }

    fn refuse(&mut self, entry: &Entry, path: &str, from: u32) {
        for rule in rules(entry, self.source, from).iter().filter(|rule| rule.is_known()) {
            let problem =
                Diagnostic::error("rule-in-list", "a rule inside a list is not checked").at(rule.place());
            self.diagnostics.push(problem.with_help(format!("put it on `{path}`, the list itself")));
        }
    }
}

/// What is said of a word that is no rule. It may just as well be part of an ordinary comment.
fn unknown(rule: &Rule, name: &str) -> Diagnostic {
    let (word, _) = rule.parts();
    let place = Span::new(rule.at, rule.at + word.len());
    let help = match document::closest(word, ["@require", "@validate"]) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "the rules are @require and @validate".to_owned(),
    };
    Diagnostic::warning("unknown-rule", format!("unknown rule `{word}` of data `{name}`"))
        .at(place)
        .with_help(help)
}

impl Rule<'_> {
    fn place(&self) -> Span {
        Span::new(self.at, self.at + self.text.len())
    }

    /// The word that says what kind of rule it is, and what follows it.
    fn parts(&self) -> (&str, &str) {
        self.text.split_once(char::is_whitespace).unwrap_or((self.text, ""))
    }

    fn is_known(&self) -> bool {
        matches!(self.parts().0, "@require" | "@required" | "@validate")
    }
}

/// What is wrong with a value by a rule.
fn broken(rule: &Rule, value: &Value, name: &str, key: Span, scope: &Scope) -> Option<Diagnostic> {
    let place = rule.place();
    let (word, rest) = rule.parts();
    match word {
        "@require" | "@required" => {
            let missing = value.is_null() || value.reveal().as_str() == Some("");
            missing.then(|| {
                let message = format!("data `{name}` is required and has no value");
                Diagnostic { help: scope.absent_files(), ..Diagnostic::error("required-data", message) }
                    .at(key)
            })
        }
        // Whether there has to be a value is for `@require` to say.
        "@validate" if value.is_null() => None,
        "@validate" => {
            let expression = rest.trim();
            let offset = rule.at + rule.text.len() - rest.trim_start().len();
            let in_place = |error: ccm_expr::Error| {
                let at = Span::new(offset + error.span.start, offset + error.span.end);
                Diagnostic {
                    help: error.help,
                    ..Diagnostic::error("invalid-rule", format!("the rule of data `{name}`: {}", error.kind))
                        .at(at)
                }
            };
            let scope = scope.about(value.clone());
            let result = Program::compile(expression).and_then(|program| scope.evaluate(&program));
            match result.map(|value| value.reveal().clone()) {
                Ok(Value::Bool(true)) => None,
                Ok(Value::Bool(false)) => {
                    let message = format!("data `{name}` is not valid: `{expression}` is false");
                    let problem =
                        Diagnostic::error("invalid-data", message).at(key).with_also(place, "the rule");
                    Some(Diagnostic { help: for_items(expression, value), ..problem })
                }
                Ok(other) => {
                    let message =
                        format!("the rule of data `{name}` must give a boolean, not {}", other.type_name());
                    Some(Diagnostic::error("invalid-rule", message).at(place))
                }
                Err(error) => Some(in_place(scope.advise(error))),
            }
        }
        _ => None,
    }
}

/// Returns how to write a rule for each item of a list, where it was probably meant so.
fn for_items(expression: &str, value: &Value) -> Option<String> {
    let is_of_value = expression.contains("(value)") || expression.contains("(value,");
    (value.as_list().is_some() && is_of_value && !expression.starts_with("all("))
        .then(|| format!("for each item of a list: `all(value, {})`", expression.replace("(value", "(#")))
}

/// The rules of a key: in the comments directly above it, down from a place, and behind it on its line.
fn rules<'a>(entry: &Entry, source: &'a Source, from: u32) -> Vec<Rule<'a>> {
    let text = &source.text;
    let start = entry.key_span.start as usize;
    let mut line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let mut rules: Vec<Rule> = Vec::new();
    // A key that does not begin its line, as in `{a: 1, b: 2}`, has no line above that is its own.
    let begins_line = text[line_start..start].chars().all(|c| c.is_whitespace() || c == '-');
    while begins_line && line_start > 0 {
        let above = text[..line_start - 1].rfind('\n').map_or(0, |newline| newline + 1);
        if above < from as usize {
            break;
        }
        let line = &text[above..line_start];
        let Some(comment) = line.trim().strip_prefix('#') else { break };
        rules.extend(rule(comment, text));
        line_start = above;
    }
    rules.reverse();
    rules.extend(behind(entry, text).and_then(|comment| rule(comment, text)));
    rules
}

/// The comment behind a key and its value, or behind the key alone where the value goes on below.
fn behind<'a>(entry: &Entry, text: &'a str) -> Option<&'a str> {
    let (start, key_end) = (entry.key_span.start as usize, entry.key_span.end as usize);
    let end = (entry.value.span.end as usize).max(key_end).min(text.len());
    if text[start..end].trim_end().contains('\n') {
        let line = text[key_end..].lines().next().unwrap_or_default();
        let value = (entry.value.span.start as usize).max(key_end);
        let is_below = value > key_end + line.len() || text[value..].starts_with(['|', '>']);
        return line.split_once(" #").filter(|_| is_below).map(|(_, comment)| comment);
    }
    let rest = text[end..].lines().next().unwrap_or_default().trim_start();
    rest.strip_prefix(',').unwrap_or(rest).trim_start().strip_prefix('#')
}

/// A comment that is a rule; `comment` is a part of `text`.
fn rule<'a>(comment: &'a str, text: &str) -> Option<Rule<'a>> {
    let comment = comment.trim();
    let at = comment.as_ptr() as usize - text.as_ptr() as usize;
    comment.starts_with('@').then_some(Rule { text: comment, at })
}
