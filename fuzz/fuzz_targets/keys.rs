//! Any bytes as a file in age format, as identities and as an Ansible Vault file: errors, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ccm::fuzzing::keys(bytes));
