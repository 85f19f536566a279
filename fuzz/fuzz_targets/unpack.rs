//! Any bytes as an archive: unpacked below its target or refused whole, never a panic and nothing left behind.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ccm::fuzzing::unpack(bytes));
