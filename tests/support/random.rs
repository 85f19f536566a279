//! Random cases: how many there are, and where those that failed are kept.

use proptest::test_runner::{Config, FileFailurePersistence};

/// Returns how a property is tried: with so many cases unless `PROPTEST_CASES` asks for others, after those that failed once.
///
/// The seed of a case that fails is printed and kept in the file, below the folder of the project, which belongs into the
/// commit that mends it.
pub(crate) fn random(cases: u32, kept: &'static str) -> Config {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = Config::default();
    Config {
        cases: if asked { config.cases } else { cases },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(kept))),
        max_shrink_iters: 2_000,
        ..config
    }
}
