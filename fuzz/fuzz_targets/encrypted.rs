//! Any bytes as an encrypted document of each format: errors, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ccm::fuzzing::encrypted(bytes));
