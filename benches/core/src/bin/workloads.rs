//! Runs one workload once: `workloads NAME`; without a name, lists them.
//!
//! Only instructions inside [`measured`] count: `cargo xtask instructions` has callgrind collect between its first
//! instruction and its last, so that preparation and checks are excluded.

use gridstone::base::{Error, Result};
use gridstone_bench::{Work, workloads};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(name) => run(&name),
        None => {
            workloads().iter().for_each(|case| println!("{}", case.name));
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workloads: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) -> Result<()> {
    let cases = workloads();
    let case = cases.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| Error::input(format!("there is no workload {name:?}")))?;
    let mut work = case.prepare()?;
    measured(work.as_mut())?;
    work.check().map_err(|e| e.context(format!("workload {name}")))
}

/// Callgrind looks for this name, so it must stay a function of its own.
#[inline(never)]
fn measured(work: &mut dyn Work) -> Result<()> {
    work.run()
}
