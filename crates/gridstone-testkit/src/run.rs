//! Runs a test on random cases.

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use std::fmt::Debug;

/// Runs `test`, which fails by panicking, on `usual` random cases. That number is scaled by the ratio of
/// `PROPTEST_CASES` to proptest's own default of 256. (Proptest's macro would use the variable as the number of cases
/// of every test.)
///
/// # Panics
/// With the smallest failing case found.
pub fn on_random<V: Debug>(usual: u32, cases: impl Strategy<Value = V>, test: impl Fn(&V)) {
    let usual_of_proptest = 256;
    let asked: u32 = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual_of_proptest);
    let count = (u64::from(usual) * u64::from(asked) / u64::from(usual_of_proptest)).max(1) as u32;
    let config = ProptestConfig {
        cases: count,
        max_shrink_iters: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&cases, |case| {
        test(&case);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nof {count} random cases this fails: {case:#?}"),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}
