//! What becomes of a declaration: a resource, or everything that is wrong with it, and nothing that must not be seen.

use serde::de::Error as _;
use serde_json::json;

use super::{faults::Faults, health_checks::set_late_checks_aside, secrecy::Secrecy, *};
use crate::{
    checks::HealthCheck,
    document::{Diagnostics, Entry, Node, NodeError, Source, Span, Value, parse},
    resource::{AnyType, Error, Resource},
    template::{Element, Scope},
    types,
};

const MISSPELT: &str = "${ facts.nmae }";
const MEANT: &str = "did you mean `name`?";

fn kind(name: &str) -> &'static dyn AnyType {
    types::find(name).unwrap()
}

fn source(text: &str) -> Source {
    Source { name: "test".to_owned(), text: text.to_owned() }
}

fn map(text: &str) -> Vec<Entry> {
    let Value::Map(entries) = parse(&source(text)).unwrap().value else { panic!("{text}") };
    entries
}

/// What templates see: a fact.
fn scope() -> Scope {
    Scope::new(json!({ "name": "web1" }).into(), ccm_expr::Value::Null, "/".into())
}

fn declaration(kind_name: &str, name: &str, properties: &str) -> Declaration {
    Declaration::new(kind(kind_name), name.to_owned(), Span::default(), map(properties))
}

/// A command with properties in YAML.
fn command(properties: &str) -> Resource {
    let mut diagnostics = Diagnostics::default();
    let resource = declaration("exec", "x", properties).resolve(Completeness::Whole, &mut diagnostics);
    resource.unwrap_or_else(|| panic!("{properties}: {diagnostics:?}"))
}

/// The only error, as message and help.
fn only(errors: Vec<Error>) -> (String, Option<String>) {
    let [error] = <[Error; 1]>::try_from(errors).unwrap();
    assert!(error.place.is_some(), "{error}");
    (error.message, error.help)
}

#[test]
fn why_a_late_property_cannot_be_worked_out_is_told_unless_it_is_secret() {
    const COVERED: &str = "its value cannot be worked out";
    for (properties, property, is_told) in [
        (format!("cwd: \"{MISSPELT}\""), "cwd", true),
        (format!("sensitive: true\ncwd: \"{MISSPELT}\""), "cwd", false),
        (format!("environment: [\"A={MISSPELT}\"]"), "environment", false),
        (format!("sensitive: true\nenvironment: [\"A={MISSPELT}\"]"), "environment", false),
        // It can be worked out, and is not what is asked for.
        ("environment: [\"${ 'hunter' + '2' }\"]".to_owned(), "environment", false),
    ] {
        let late = command(&properties).wanted_now(&scope(), &source(&properties));
        let (message, help) = only(late.err().unwrap());
        assert_eq!(message == format!("{property}: {COVERED}"), !is_told, "{properties}: {message}");
        assert!(message.starts_with(&format!("{property}: ")), "{properties}: {message}");
        assert_eq!(help.as_deref(), is_told.then_some(MEANT), "{properties}");
    }
}

#[test]
fn registrations_are_worked_out_when_the_resource_is_as_it_should_be() {
    let written = |address: &str| {
        format!(
            "register_when_stable: [{{ cluster: prod, service: web, protocol: http, address: \"{address}\" }}]"
        )
    };
    for (address, expected) in [("10.0.0.1", "10.0.0.1"), ("${ facts.name }", "web1")] {
        let text = written(address);
        let registrations = command(&text).registrations_now(&scope(), &source(&text)).unwrap();
        let addresses: Vec<&str> = registrations.iter().map(|one| one.address.as_str()).collect();
        assert_eq!(addresses, [expected]);
    }
    let text = written(MISSPELT);
    let (message, help) = only(command(&text).registrations_now(&scope(), &source(&text)).unwrap_err());
    assert!(message.starts_with("register_when_stable: "), "{message}");
    assert_eq!(help.as_deref(), Some(MEANT));
}

#[test]
fn why_health_checks_cannot_be_worked_out_is_told_unless_that_may_be_secret() {
    let written = |before: &str, port: &str| format!("{before}health_checks: [{{ file: \"/{port}\" }}]");
    let text = written("", "${ facts.name }");
    let checks = command(&text).checks_now(&scope(), &source(&text)).unwrap().into_owned();
    assert_eq!(checks.iter().map(HealthCheck::name).collect::<Vec<_>>(), ["file /web1"]);
    let text = written("", MISSPELT);
    let (message, help) = only(command(&text).checks_now(&scope(), &source(&text)).unwrap_err());
    assert!(message.starts_with("health_checks: ") && message.contains("facts.nmae"), "{message}");
    assert_eq!(help.as_deref(), Some(MEANT));
    for text in [
        written("sensitive: true\n", MISSPELT),
        "health_checks: [{ command: x, environment: [\"A=${ int(facts.name) }\"] }]".to_owned(),
        "health_checks: [{ command: x, environment: \"${ facts.name }\" }]".to_owned(),
    ] {
        let covered = only(command(&text).checks_now(&scope(), &source(&text)).unwrap_err());
        assert_eq!(covered, ("health_checks: they cannot be worked out".to_owned(), None), "{text}");
    }
}

#[test]
fn health_checks_with_templates_are_set_aside_for_what_they_will_be() {
    for (written, is_late, is_judged) in [
        ("{ file: /x }", false, false),
        ("{ file: \"${ facts.name }\" }", true, true),
        // Which kinds of rules there will be is not known either.
        ("{ goss_rules: { file: { \"${ facts.name }\": { exists: true } } } }", true, false),
    ] {
        let mut properties = map(&format!("cwd: /\nhealth_checks: [{written}]"));
        let mut foreseen = map("cwd: /web1\nhealth_checks: [{ file: /web1 }]");
        let late = set_late_checks_aside(&mut properties, &mut foreseen);
        assert_eq!(late.is_some(), is_late, "{written}");
        let keys =
            |entries: &[Entry]| entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>().join(" ");
        let judged = is_judged || !is_late;
        assert_eq!(keys(&properties), if judged { "cwd health_checks" } else { "cwd" }, "{written}");
        assert_eq!(keys(&foreseen), if is_late { "cwd" } else { "cwd health_checks" }, "{written}");
    }
}

#[test]
fn what_is_in_health_checks_is_secret_wherever_it_stands() {
    for (written, expected) in [
        ("[{ file: /x }, { tcp: 80 }]", false),
        ("[{ goss_rules: { http: { \"http://x\": { status: 200 } } } }]", false),
        ("[{ goss_rules: { http: { \"http://x\": { password: x } } } }]", true),
        (
            "[{ file: /x }, { goss_rules: { http: { \"http://x\": { status: 200, request-headers: [a] } } } }]",
            true,
        ),
        ("[{ command: x, environment: [] }]", true),
    ] {
        assert_eq!(crate::checks::hold_secrets(&parse(&source(written)).unwrap()), expected, "{written}");
    }
}

#[test]
fn what_is_wrong_with_a_value_quotes_nothing_of_a_secret() {
    let error = |wanted: Option<&str>| NodeError {
        wanted: wanted.map(str::to_owned),
        help: Some("hunter2 is too short".to_owned()),
        ..NodeError::custom("hunter2 will not do")
    };
    for (secrecy, key, wanted, expected, helps) in [
        (Secrecy::Open, "cwd", None, "hunter2 will not do", true),
        (Secrecy::Open, "cwd", Some("a path"), "hunter2 will not do", true),
        // Its words are chosen so that they quote nothing.
        (Secrecy::Open, "stdin", None, "hunter2 will not do", false),
        (Secrecy::Open, "stdin", Some("a text"), "expected a text, found a string", false),
        (Secrecy::Secret, "cwd", None, "not a value it can have", false),
        (Secrecy::Secret, "cwd", Some("a path"), "expected a path, found a string", false),
    ] {
        let entry = map(&format!("{key}: hunter2")).remove(0);
        let told = secrecy.of_value(kind("exec"), &entry, error(wanted));
        assert_eq!((told.message.as_str(), told.help.is_some()), (expected, helps), "{key} {wanted:?}");
    }
}

#[test]
fn what_is_wrong_with_no_property_is_told_unless_the_name_is_at_fault() {
    for (known, expected) in [(None, 1), (Some("cwd"), 1), (Some("name"), 0)] {
        let mut faults = Faults::new(kind("exec"), Secrecy::Open);
        faults.properties.extend(known.map(str::to_owned));
        let mut nothing = Node { value: Value::Map(Vec::new()), span: Span::default() };
        let read = faults.read(&mut nothing, |_| Err::<(), _>(NodeError::custom("something is missing")));
        assert_eq!((read, faults.diagnostics.len()), (None, expected), "{known:?}");
    }
}

#[test]
fn jinja_is_advised_only_to_whoever_asks_for_jet() {
    for (engine, expected) in [("jet", true), ("joint", false)] {
        let mut diagnostics = Diagnostics::default();
        let properties = format!("source: x\nengine: {engine}");
        declaration("scaffold", "/x", &properties).resolve(Completeness::Identity, &mut diagnostics);
        let problem = diagnostics.iter().find(|problem| problem.message.contains("engine: ")).unwrap();
        let is_advised =
            problem.help.as_ref().is_some_and(|help| help.contains("`engine: jinja` replaces it"));
        assert_eq!(is_advised, expected, "{problem:?}");
    }
}

#[test]
fn a_condition_that_reads_what_may_yet_be_written_is_left_to_the_run() {
    for (condition, expected) in
        [("file('/no-such-directory/x') == 'a'", 0), ("file('no-such-file') == 'a'", 1), ("1 == 1", 0)]
    {
        let text = format!("control: {{ if: \"{condition}\" }}");
        let (scope, source) = (scope(), source(&text));
        let mut diagnostics = Diagnostics::default();
        let mut declaration = declaration("exec", "x", &text);
        Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
        assert_eq!(diagnostics.len(), expected, "{condition}: {diagnostics:?}");
    }
}

#[test]
fn the_values_of_headers_are_texts_whatever_their_templates_give() {
    let text = "url: http://x/a.tar\nowner: root\ngroup: root\nheaders: { X-Ids: \"${ [1, 2] }\" }";
    let (scope, source) = (scope(), source(text));
    let mut diagnostics = Diagnostics::default();
    let mut declaration = declaration("archive", "/a.tar", text);
    Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
    let resource = declaration.resolve(Completeness::Whole, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let wanted = resource.unwrap().wanted_now(&scope, &source).unwrap().unwrap();
    assert_eq!(wanted.secrets(), ["[1,2]"]);
}

#[test]
fn what_is_wrong_with_a_condition_comes_with_advice() {
    let resource = command("control: { if: \"facts.name == ${ 'x' }\" }");
    let error = resource.common.control.as_ref().unwrap().excludes(&scope()).unwrap_err();
    assert!(error.message.starts_with("control.if: "), "{error}");
    assert_eq!(
        error.help.as_deref(),
        Some("it is an expression already: write it without `${ }` or `{{ }}`")
    );
}

#[test]
fn what_is_rendered_says_itself_what_it_was_repeated_for_unless_that_is_hidden() {
    let text = "cwd: \"${ file('/no-such-file') + each }\"\ncommand: \"${ file('/no-such-file') }\"";
    let element = Some(Element { each: "hunter2".into(), index: 0 });
    let repeated = Declaration { element, ..declaration("exec", "x", text) };
    let resource = repeated.resolve(Completeness::Whole, &mut Diagnostics::default()).unwrap();
    for (elements, expected) in [
        (
            Elements::Shown,
            r#"${ let each = fromJSON("\"hunter2\""); let index = 0; file('/no-such-file') + each }"#,
        ),
        (Elements::Hidden, HIDDEN),
    ] {
        let rendered = resource.rendered(&scope(), &source(text), elements);
        assert_eq!(rendered["cwd"], expected);
        assert_eq!(rendered["command"], "${ file('/no-such-file') }");
    }
}

/// Templates see `Data.token`, which is secret, and `Data.port`, which is not.
fn scope_with_secret() -> Scope {
    let data = ccm_expr::Map::from_iter([
        ("token".into(), ccm_expr::Value::secret("canary")),
        ("port".into(), ccm_expr::Value::from(80_i64)),
    ]);
    scope().with_data(data.into())
}

/// The resource with its templates expanded, or the ids of the errors.
fn expanded(kind_name: &str, name: &str, properties: &str) -> Result<Resource, Vec<&'static str>> {
    let (scope, source) = (scope_with_secret(), source(properties));
    let mut diagnostics = Diagnostics::default();
    let mut declaration = declaration(kind_name, name, properties);
    let completeness = Expansion::new(&scope, &source).expand(&mut declaration, &mut diagnostics);
    let resource = declaration.resolve(completeness, &mut diagnostics);
    assert!(!format!("{diagnostics:?}").contains("canary"), "{diagnostics:?}");
    let resource = resource.filter(|_| !diagnostics.has_errors());
    resource.ok_or_else(|| diagnostics.iter().map(|problem| problem.id).collect())
}

#[test]
fn resource_with_a_secret_value_is_sensitive() {
    for (kind, properties, is_sensitive) in [
        ("file", "content: 'a ${ Data.token }'", true),
        ("file", "content: '${ Data.port }'", false),
        ("file", "content: \"${ Data.token == 'x' ? 'a' : 'b' }\"", false),
        ("file", "sensitive: false\ncontent: '${ Data.token }'", true),
        ("file", "content: \"${ jinja('{{ Data.token }}') }\"", true),
        ("file", "content: \"${ jinja('{{ Data.port }}') }\"", false),
        ("file", "content: \"${ template('x ${ Data.token }') }\"", true),
        ("file", "content: \"${ file('/etc/hostname') + Data.token }\"", false),
        ("exec", "environment: ['A=${ Data.token }']", true),
        ("apply", "data: { a: ['${ Data.token }'] }", true),
        ("exec", "health_checks: [{ command: x, environment: ['A=${ Data.token }'] }]", true),
    ] {
        let properties = match kind {
            "file" => format!("{properties}\nowner: root\ngroup: root\nmode: '0600'"),
            _ => properties.to_owned(),
        };
        let resource =
            expanded(kind, "/x", &properties).unwrap_or_else(|ids| panic!("{properties}: {ids:?}"));
        assert_eq!(resource.is_sensitive(), is_sensitive, "{properties}");
        let shown = format!("{:?}", resource.to_json(resource.wanted.as_ref()));
        assert!(!shown.contains("canary"), "{shown}");
    }
}

#[test]
fn secret_in_a_name_or_reference_is_an_error() {
    for (kind, name, properties, id) in [
        ("exec", "a ${ Data.token }", "{}", "secret-name"),
        ("exec", "x", "alias: 'a-${ Data.token }'", "secret-name"),
        ("exec", "x", "require: ['exec#${ Data.token }']", "secret-name"),
        ("exec", "x", "subscribe: 'exec#${ Data.token }'", "secret-name"),
        ("exec", "x", "tags: ['${ Data.token }']", "secret-name"),
        ("package", "x", "ensure: '${ Data.token }'", "secret-name"),
        ("user", "x", "comment: '${ Data.token }'", "secret-argument"),
        ("exec", "x", "environment: ['A=${ Data.token }']\nalias: 'a-${ Data.token }'", "secret-name"),
    ] {
        assert_eq!(expanded(kind, name, properties).err(), Some(vec![id]), "{name} {properties}");
    }
}

#[test]
fn secret_argument_fails_the_resource_before_the_program_starts() {
    for (properties, is_refused) in [
        ("command: 'true ${ Data.token }'", true),
        ("onlyif: 'true ${ Data.token }'", true),
        ("unless: 'true ${ Data.token }'", true),
        ("undo: 'true ${ Data.token }'", true),
        ("stdin: '${ Data.token }'", false),
        ("environment: ['A=${ Data.token }']", false),
        ("command: 'true ${ Data.port }'", false),
    ] {
        let resource = expanded("exec", "x", properties).unwrap();
        let wanted = resource.wanted_now(&scope_with_secret(), &source(properties));
        let refused = wanted.err().map(|errors| only_message(&errors));
        let is_about = |message: &String| message.contains("a secret value cannot be an argument");
        assert_eq!(refused.as_ref().is_some_and(is_about), is_refused, "{properties}: {refused:?}");
    }
    let check = "health_checks: [{ command: 'true ${ Data.token }' }]";
    let resource = expanded("exec", "x", check).unwrap();
    let errors = resource.checks_now(&scope_with_secret(), &source(check)).unwrap_err();
    assert!(only_message(&errors).contains("a secret value cannot be an argument"), "{errors:?}");
}

fn only_message(errors: &[Error]) -> String {
    let [error] = errors else { panic!("{errors:?}") };
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    error.message.clone()
}

#[test]
fn secret_found_at_run_time_makes_the_resource_sensitive() {
    let properties =
        "content: \"${ file('/etc/hostname') + Data.token }\"\nowner: root\ngroup: root\nmode: '0600'";
    let resource = expanded("file", "/x", properties).unwrap();
    assert!(!resource.is_sensitive());
    resource.wanted_now(&scope_with_secret(), &source(properties)).unwrap();
    assert!(resource.is_sensitive());
}

#[test]
fn secret_is_not_published_in_a_registration() {
    let properties = "register_when_stable: [{ cluster: c, service: s, protocol: http, address: 1.2.3.4, \
                      port: 80, annotations: { note: '${ Data.token }' } }]";
    let resource = expanded("exec", "x", properties).unwrap();
    let registrations = resource.registrations_now(&scope_with_secret(), &source(properties)).unwrap();
    let payload = serde_json::to_string(&registrations).unwrap();
    assert!(payload.contains("[secret]") && !payload.contains("canary"), "{payload}");
}
