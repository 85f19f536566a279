//! The program as a whole: each test runs it in a world of its own and looks at what it printed and left behind.
//!
//! Tests pass as root and as an ordinary user. What only root can show is passed over otherwise, which with `CI=true`
//! in the environment is a failure. `KEEP=1` keeps the folders of tests that fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::disallowed_methods, reason = "tests look at the machine themselves")]
#![allow(
    clippy::format_collect,
    clippy::type_complexity,
    reason = "tables and texts that are read, not run often"
)]

mod account_crashes;
mod account_undo;
mod accounts;
mod agent;
mod agent_confirm;
mod agent_faults;
mod agent_fleet;
mod agent_health;
mod agent_nats;
mod agent_network;
mod agent_secrets;
mod agent_sources;
mod agent_systemd;
mod architecture;
mod archive;
mod attacker;
mod bad_input;
mod batching;
mod bundles;
mod canaries;
mod checks;
mod children;
mod coming_from_go;
mod confirm;
mod confirm_systemd;
mod crash;
mod cron;
mod data;
mod deploy;
mod diagnostics;
mod diff;
mod diffs;
mod edit;
mod editor;
mod encrypted;
mod engine;
mod english;
mod ensure;
mod escapes;
mod exec;
mod exec_prediction;
mod exec_processes;
mod exec_refresh;
mod exec_running;
mod exec_secrets;
mod explain;
mod fact;
mod facts;
mod faults;
mod file_downloads;
mod file_reading;
mod file_rules;
mod file_states;
mod file_strangers;
mod golden;
mod guides;
mod help;
mod hierarchy;
mod history;
mod inputs;
mod installation;
mod inventory;
mod jinja;
mod joint_validation;
mod lab;
mod links;
mod loops;
mod manifest;
mod messages;
mod mistakes;
mod mount;
mod nats;
mod nats_hostile;
mod nats_logins;
mod other_tools;
mod overlap;
mod package;
mod package_apt;
mod package_dnf;
mod package_prediction;
mod package_undo;
mod passphrases;
mod patterns;
mod pending_refreshes;
mod plans;
mod prediction;
mod progress;
mod purge;
mod push;
mod readme;
mod registration;
mod remembered_files;
mod report;
mod roles;
mod scaffold;
mod secrets;
mod service;
mod service_bus;
mod service_cost;
mod service_failures;
mod service_refresh;
mod service_systemctl;
mod service_vanishing;
mod session;
mod session_folders;
mod signed_bundles;
mod standard_streams;
mod state_directory;
mod subsets;
mod support;
mod sysctl;
mod templates;
mod undo;
mod undo_random;
mod validation;
mod without_key;

#[test]
fn every_file_of_the_tests_is_part_of_them() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name);
        assert!(
            ["main", "fixtures", "failed_cases"].contains(&module)
                || main.contains(&format!("mod {module};")),
            "tests/{name} is never compiled"
        );
    }
}
