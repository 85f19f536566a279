//! A document that ccm encrypts has the same values when it is opened again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ccm::fuzzing::sealed(bytes));
