//! Any bytes as a manifest: resources, or problems at places that exist.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| ccm::fuzzing::manifest(text));
