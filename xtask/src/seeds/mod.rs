//! `cargo xtask seeds`: runs the models of the tests with new seeds until the time is over; `--kept` runs those that failed once.
//!
//! 1. A round draws one seed, and runs the models of the core and then those of the Python package with it.
//! 2. What fails is shown as the test shows it, shrunk where the test shrinks, with the command that repeats it.
//! 3. Seed and tests are written into `xtask/seeds.toml`. From then on the gate runs them: a fault that was found once stays looked for.

mod kept;
mod part;

use kept::{Kept, Seed};
use part::{PARTS, Part};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a run takes that is not told otherwise.
const MINUTES: u64 = 10;

/// Runs the chore; `None` if it is asked for in a way that it does not know.
pub(crate) fn run(arguments: &[&str]) -> Option<ExitCode> {
    let outcome = match arguments {
        [] => explore(MINUTES),
        ["--minutes", minutes] => explore(minutes.parse().ok()?),
        ["--kept"] => repeat(),
        _ => return None,
    };
    Some(outcome.unwrap_or_else(|message| {
        eprintln!("seeds: {message}");
        ExitCode::from(2)
    }))
}

/// Rounds with new seeds for so many minutes, at least one.
fn explore(minutes: u64) -> Result<ExitCode, String> {
    let (start, length) = (Instant::now(), Duration::from_secs(minutes * 60));
    let (mut rounds, mut failures) = (0, 0);
    while rounds == 0 || start.elapsed() < length {
        let seed = RandomState::new().build_hasher().finish() % 1_000_000_000;
        rounds += 1;
        for part in &PARTS {
            println!("seeds: round {rounds}, seed {seed}: {}", part.name);
            let failed = part.run(seed, &[])?;
            if failed.is_empty() {
                continue;
            }
            failures += failed.len();
            println!("seeds: to repeat it: {}", part.command(seed, &failed));
            Kept::read()?.add(Seed { seed, part: part.name.to_owned(), tests: failed })?;
        }
    }
    println!("seeds: {rounds} rounds, {failures} tests failed");
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs what failed once, with the seeds that it failed with.
fn repeat() -> Result<ExitCode, String> {
    let (kept, mut failures) = (Kept::read()?, 0);
    for Seed { seed, part, tests } in &kept.seed {
        let part = Part::named(part).ok_or_else(|| format!("seeds.toml: there is no part {part:?}"))?;
        println!("seeds: seed {seed}: {}", tests.join(" "));
        failures += part.run(*seed, tests)?.len();
    }
    println!("seeds: {} kept, {failures} tests failed", kept.seed.len());
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
