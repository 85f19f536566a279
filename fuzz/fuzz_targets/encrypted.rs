//! Any bytes as an encrypted document, a file in age format, an identity and a file of Ansible Vault: errors, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ccm::fuzzing::encrypted(bytes));
