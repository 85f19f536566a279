//! Service registrations that resources report.

use super::{parts::Shelf, *};

/// Counts what each resource registers.
#[derive(Default)]
struct Registrar(Vec<(String, usize)>);

impl Observer for Registrar {
    fn finished(&mut self, report: &Report) {
        self.0.push((report.event.name.clone(), report.registrations.len()));
    }
}

const REGISTERS: &str =
    "register_when_stable: [{ cluster: prod, service: web, protocol: http, address: 10.0.0.1 }]";

#[test]
fn only_resources_in_the_desired_state_register_and_only_if_registrations_are_wanted() {
    let registered = |settings| {
        shelf(|shelf| *shelf = Shelf { jams_at: Some("jam".to_owned()), ..Shelf::default() });
        let parts = vec![
            part("well", REGISTERS),
            part("silent", ""),
            part("jam", REGISTERS),
            part("excluded", &format!("control: {{ if: false }}, {REGISTERS}")),
            part("unmet", &format!("require: [ part#jam ], {REGISTERS}")),
        ];
        let mut registrar = Registrar::default();
        apply_watched(vec![parts], settings, OnFailure::Continue, &host(), &mut registrar);
        let who = registrar.0.into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name);
        who.collect::<Vec<_>>()
    };
    assert_eq!(registered(settings(RunMode::Real)), ["well"]);
    assert_eq!(registered(settings(RunMode::Noop)), [""; 0]);
    let unwanted = Settings { registrations: Registrations::Unwanted, ..settings(RunMode::Real) };
    assert_eq!(registered(unwanted), [""; 0]);
}
