//! Any bytes as a request to the API: a resource, or what is wrong with it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| ccm::fuzzing::request(text));
