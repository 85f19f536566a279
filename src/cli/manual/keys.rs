//! Manual pages about files with keys, and lists: agent configuration, health checks, functions and facts.

use schemars::Schema;

use super::{DATE, SOURCE, manifest::properties, roff::Page};
use crate::{
    agent, checks::HealthCheck, facts::FACTS, resource::own_fields, template::FUNCTION_GROUPS,
    vocabulary::schema::inlined,
};

/// Returns the pages with the names of their files.
pub(super) fn pages() -> [(String, String); 4] {
    [
        ("ccm-agent.yaml.5".to_owned(), agent_configuration()),
        ("ccm-checks.5".to_owned(), health_checks()),
        ("ccm-functions.7".to_owned(), functions()),
        ("ccm-facts.7".to_owned(), facts()),
    ]
}

fn agent_configuration() -> String {
    let mut page = begin("ccm-agent.yaml", 5, "configuration of `ccm agent`");
    page.paragraph("The file is `/etc/ccm/agent.yaml`, unless `--config` names another.");
    keys(&mut page, inlined::<agent::Written>());
    end(page, &["ccm-agent(1)", "ccm-manifest(5)"])
}

fn health_checks() -> String {
    let mut page = begin("ccm-checks", 5, "health checks of resources and of `ccm check`");
    page.paragraph("The property `health_checks` of a resource is a list of checks. A file for `ccm check` has the same list, or goss rules.");
    keys(&mut page, inlined::<HealthCheck>());
    end(page, &["ccm-check(1)", "ccm-manifest(5)"])
}

fn functions() -> String {
    let mut page = begin("ccm-functions", 7, "functions of expressions");
    page.paragraph("Expressions are in the Expr language. `ccm eval` evaluates one.");
    for (title, group) in FUNCTION_GROUPS {
        page.terms(&title.to_uppercase(), group.iter().copied());
    }
    end(page, &["ccm-eval(1)", "ccm-facts(7)", "ccm-manifest(5)"])
}

fn facts() -> String {
    let mut page = begin("ccm-facts", 7, "facts of a machine");
    page.paragraph("Facts describe the machine. `ccm facts` prints them. `#` stands for the items of a list: `cpu.info.0.mhz` is one item, `cpu.info.#.mhz` a list of all.");
    page.terms("FACTS", FACTS.iter().copied());
    end(page, &["ccm-facts(1)", "ccm-functions(7)", "ccm-manifest(5)"])
}

fn begin(name: &str, section: u8, about: &str) -> Page {
    let mut page = Page::titled(name, section, DATE, SOURCE);
    page.section("NAME");
    page.paragraph(&format!("{name} - {about}"));
    page.section("DESCRIPTION");
    page
}

fn keys(page: &mut Page, schema: &Schema) {
    page.section("KEYS");
    properties(page, &own_fields(schema));
}

fn end(mut page: Page, others: &[&str]) -> String {
    page.section("SEE ALSO");
    page.see(others);
    page.text()
}
