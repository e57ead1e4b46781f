//! `cargo xtask instructions`: counts the instructions of the workloads of `benches/core` and compares them with
//! `xtask/instructions.toml`.
//!
//! A count is no time, but it is nearly the same in every run: it reveals a change of a few per cent where a clock
//! shows noise. Each workload runs alone under callgrind, on one thread and memory storage.

mod baseline;
mod callgrind;
mod report;

use crate::child::command;
use baseline::Baseline;
use callgrind::Callgrind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Why there is no verdict.
#[derive(Debug)]
pub(crate) enum Stop {
    /// This machine cannot count, or not in the same way as the baseline.
    Unable(String),
    /// Something that should work failed.
    Broken(String),
}

/// Counts; then writes the baseline if `record`, else compares with it. Exit status 0: no count is more than allowed;
/// 1: one is, or has no baseline; 2: something is broken; 3: this machine cannot count.
pub(crate) fn run(record: bool) -> ExitCode {
    match count_and_judge(record) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Stop::Broken(message)) => {
            eprintln!("instructions: {message}");
            ExitCode::from(2)
        }
        Err(Stop::Unable(message)) => {
            eprintln!("instructions: not counted: {message}");
            ExitCode::from(3)
        }
    }
}

fn count_and_judge(record: bool) -> Result<bool, Stop> {
    let valgrind = callgrind::version()?;
    let path = root()?.join("xtask/instructions.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| Stop::Broken(format!("{}: {e}", path.display())))?;
    let old = Baseline::parse(&text).map_err(Stop::Broken)?;
    let arch = std::env::consts::ARCH;
    if !record && old.arch != arch {
        let message = format!("the baseline was counted on {}, which says nothing about {arch}", old.arch);
        return Err(Stop::Unable(message));
    }
    let new = Baseline {
        arch: arch.to_owned(),
        compiler: output(Command::new("rustc").arg("--version"))?.trim().to_owned(),
        valgrind,
        allowed_percent: old.allowed_percent.clone(),
        instructions: counted()?,
    };
    if record {
        std::fs::write(&path, new.to_text()).map_err(|e| Stop::Broken(format!("{}: {e}", path.display())))?;
        println!("{}", report::table(&old.compare(&new.instructions)));
        println!("instructions: recorded in {}", path.display());
        return Ok(true);
    }
    let rows = old.compare(&new.instructions);
    println!("{}", report::table(&rows));
    println!("{}", report::summary(&rows, &old, &new));
    Ok(!rows.iter().any(|row| row.verdict.fails()))
}

/// Instructions per workload.
fn counted() -> Result<BTreeMap<String, u64>, Stop> {
    let program = build()?;
    let listed = output(&mut Command::new(&program))?;
    let callgrind = Callgrind::new(program)?;
    let mut counts = BTreeMap::new();
    for name in listed.lines() {
        counts.insert(name.to_owned(), callgrind.count(name)?);
    }
    Ok(counts)
}

/// The program of the workloads, in the profile of the wheel; it is beside this one.
fn build() -> Result<PathBuf, Stop> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = command(cargo);
    // With the whole workspace, so that the engine is the one that the tests have compiled.
    build.args(["build", "--release", "--quiet", "--workspace", "--bin", "workloads"]);
    let status = build.status().map_err(|e| Stop::Broken(format!("cannot run cargo: {e}")))?;
    if !status.success() {
        return Err(Stop::Broken("the workloads do not compile".into()));
    }
    let own = std::env::current_exe().map_err(|e| Stop::Broken(format!("where is this program? {e}")))?;
    let program = own.with_file_name("workloads");
    if !program.is_file() {
        let message = format!("{} was not built; run this as `cargo xtask instructions`", program.display());
        return Err(Stop::Broken(message));
    }
    Ok(program)
}

fn root() -> Result<PathBuf, Stop> {
    let top = output(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
    Ok(PathBuf::from(top.trim_end()))
}

/// The output of a program that must succeed.
fn output(command: &mut Command) -> Result<String, Stop> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| Stop::Broken(format!("cannot run {name}: {e}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Stop::Broken(format!("{name}: {}: {said}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
