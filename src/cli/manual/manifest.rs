//! The page `ccm-manifest(5)`: what a manifest holds, and the properties of every type.

use super::{DATE, SOURCE, roff::Page};
use crate::{
    manifest::manifest_schema,
    resource::{AnyType, Field, common_fields, own_fields},
    types::TYPES,
};

const ABOUT: &str = "A manifest is a YAML or JSON document that declares resources. They are applied in the order in which they are written. \
    Unknown keys and values of the wrong kind are errors, all of them reported before anything is touched.";

const EXAMPLE: &str = "\
data:
  port: 8080
ccm:
  resources:
    - package:
        - nginx:
    - file:
        - defaults: { owner: root, group: root, mode: \"0644\" }
        - /etc/nginx/conf.d/hello.conf:
            content: \"server { listen ${ Data.port }; }\\n\"
    - service:
        - nginx:
            enable: true
            subscribe: [\"file#/etc/nginx/conf.d/hello.conf\"]
";

const FORMS: &str = "Below a type stands a list with one item per resource, its name over its properties, in which an item `defaults` holds what the others \
    share; or a map from names to properties; or one map with a `name`. A document that is only a list is a manifest with just those resources. \
    Resources refer to each other as `type#name`, and only to what is written above them.";

const TEMPLATES: &str = "In any text, `{{ EXPR }}` and `${ EXPR }` stand for the value of an expression in the Expr language over `Facts`, `Data` and `Environ`.";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = Page::titled("ccm-manifest", 5, DATE, SOURCE);
    page.section("NAME");
    page.paragraph("ccm-manifest - declares the state that `ccm apply` brings a machine to");
    page.section("DESCRIPTION");
    page.paragraph(ABOUT);
    page.section("SECTIONS");
    let schema = manifest_schema();
    let sections = &schema["definitions"]["manifest"]["properties"];
    for section in ["data", "hierarchy", "overrides"] {
        page.term(section, sections[section]["description"].as_str().unwrap_or_default());
    }
    page.term("ccm.resources", "The resources.");
    let settings = sections["ccm"]["properties"].as_object().into_iter().flatten();
    for (setting, schema) in settings.filter(|(setting, _)| *setting != "resources") {
        page.term(&format!("ccm.{setting}"), schema["description"].as_str().unwrap_or_default());
    }
    page.section("RESOURCES");
    page.paragraph(FORMS);
    page.paragraph(TEMPLATES);
    page.section("PROPERTIES OF EVERY RESOURCE");
    let subscribes = TYPES.iter().find(|kind| kind.behavior().refreshes);
    if let Some(kind) = subscribes {
        properties(&mut page, &common_fields(*kind));
    }
    page.section("TYPES");
    for kind in TYPES {
        of_type(&mut page, *kind);
    }
    page.section("EXAMPLES");
    page.example(EXAMPLE);
    page.section("SEE ALSO");
    page.see(&[
        "ccm-apply(1)",
        "ccm-ensure(1)",
        "ccm-validate(1)",
        "ccm-checks(5)",
        "ccm-facts(7)",
        "ccm-functions(7)",
    ]);
    page.text()
}

fn of_type(page: &mut Page, kind: &dyn AnyType) {
    let schema = kind.properties_schema();
    page.part(kind.name());
    let about = schema.get("description").and_then(|about| about.as_str()).unwrap_or_default();
    about.split("\n\n").for_each(|about| page.paragraph(about));
    properties(page, &own_fields(schema));
}

/// Writes properties or keys with their defaults and types.
pub(super) fn properties(page: &mut Page, fields: &[Field]) {
    for field in fields {
        let default = field.default.as_ref().map(|value| format!(" Default: `{value}`.")).unwrap_or_default();
        page.term(&field.name, &format!("{}{default} ({})", field.description, field.type_name));
    }
}
