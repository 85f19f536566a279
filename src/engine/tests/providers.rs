//! Choice of providers.

use super::*;

#[test]
fn unknown_provider_is_reported_at_its_property() {
    let kind: &dyn AnyType = &TypeOf::<Part>::NEW;
    let error = kind.provider(Some("tail"), &host()).err().unwrap();
    assert_eq!(
        (error.property, error.help.as_deref()),
        (Some("provider"), Some("known providers of part: left, right"))
    );
}

#[test]
fn provider_expects_only_resources_that_it_serves() {
    let parts = [part("a", ""), part("b", "provider: right"), part("c", "provider: left"), part("d", "")];
    apply(parts, RunMode::Noop);
    let told = shelf(|shelf| std::mem::take(&mut shelf.log));
    assert_eq!(told, ["left expects a d", "right expects b", "left expects a c d"]);
}
