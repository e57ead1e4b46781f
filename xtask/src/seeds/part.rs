//! The parts of a round: the models of the core, and those of the Python package.

use crate::child::command;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// Models that one program runs.
pub(super) struct Part {
    pub(super) name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The tests to run: modules of tests, or files.
    tests: &'static [&'static str],
    /// The name of a failed test, if a line of the output reports one.
    failed: fn(&str) -> Option<&str>,
    /// Whether the seed is an argument too.
    seed_argument: Option<&'static str>,
}

// With the whole workspace, so that nothing is compiled that `make test` has compiled already: features are those of all packages.
const CARGO: &[&str] = &["test", "--release", "--workspace", "--test", "main", "--"];
const PLANS: &[&str] = &["test", "--release", "--workspace", "--lib", "--"];

/// All parts. The planner's models, `consolidate` and the machines also draw several fragments per commit.
pub(super) const PARTS: [Part; 3] = [
    Part {
        name: "core",
        program: "cargo",
        arguments: CARGO,
        tests: &[
            "oracle",
            "crash",
            "kill",
            "power",
            "doubles",
            "covered",
            "merging",
            "consolidate",
            "patches",
            "positions",
            "points",
            "unsorted",
            "commit_schedules",
            "group_schedules",
            "protocol_schedules",
            "vacuum_schedules",
            "lost_updates",
            "serializable",
        ],
        failed: rust_failure,
        seed_argument: None,
    },
    Part {
        name: "plans",
        program: "cargo",
        arguments: PLANS,
        tests: &["maintain::plan", "condition", "query", "store"],
        failed: rust_failure,
        seed_argument: None,
    },
    Part {
        name: "machines",
        program: ".venv/bin/python",
        arguments: &["-m", "pytest", "-q", "-p", "no:cacheprovider"],
        tests: &[
            "python/tests/arrays/test_aggregates.py",
            "python/tests/arrays/test_reductions.py",
            "python/tests/arrays/test_state_machine.py",
            "python/tests/foreign/test_attached_machine.py",
            "python/tests/foreign/test_processes.py",
            "python/tests/labels/test_label_machine.py",
            "python/tests/stores/test_store_machine.py",
            "python/tests/indexing/test_fancy.py",
            "python/tests/indexing/test_points.py",
        ],
        failed: python_failure,
        seed_argument: Some("--hypothesis-seed="),
    },
];

fn rust_failure(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

fn python_failure(line: &str) -> Option<&str> {
    line.strip_prefix("FAILED ")?.split(" - ").next()
}

impl Part {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        PARTS.iter().find(|part| part.name == name)
    }

    /// Runs `tests`, or all of the part if there are none, with `seed`; returns the names of those that failed.
    pub(super) fn run(&self, seed: u64, tests: &[String]) -> Result<Vec<String>, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut child = command(self.program)
            .current_dir(root)
            .args(self.words(seed, tests))
            .env("GRIDSTONE_TEST_SEED", seed.to_string())
            .env("PROPTEST_RNG_SEED", seed.to_string())
            .env("HYPOTHESIS_PROFILE", "ci")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}; `make seeds` installs what is needed", self.program))?;
        let (mut output, mut failed) = (Vec::new(), Vec::new());
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(|e| e.to_string())?;
            failed.extend((self.failed)(&line).map(str::to_owned));
            output.push(line);
        }
        let status = child.wait().map_err(|e| e.to_string())?;
        if !status.success() {
            println!("{}", output.join("\n"));
            if failed.is_empty() {
                return Err(format!("{} ended with {status}, and no test is said to have failed", self.name));
            }
        }
        Ok(failed)
    }

    fn words(&self, seed: u64, tests: &[String]) -> Vec<String> {
        let all = || self.tests.iter().map(|test| (*test).to_owned()).collect();
        let tests: Vec<String> = if tests.is_empty() { all() } else { tests.to_vec() };
        let seed = self.seed_argument.map(|argument| format!("{argument}{seed}"));
        self.arguments.iter().map(|word| (*word).to_owned()).chain(seed).chain(tests).collect()
    }

    /// The command that runs `tests` with `seed` again.
    pub(super) fn command(&self, seed: u64, tests: &[String]) -> String {
        let words = self.words(seed, tests).join(" ");
        format!("GRIDSTONE_TEST_SEED={seed} PROPTEST_RNG_SEED={seed} {} {words}", self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_from_the_output() {
        assert_eq!(rust_failure("test durability::crash::it_lives ... FAILED"), Some("durability::crash::it_lives"));
        assert_eq!(rust_failure("test durability::crash::it_lives ... ok"), None);
        assert_eq!(
            python_failure("FAILED python/tests/test_a.py::b[memory] - assert 1"),
            Some("python/tests/test_a.py::b[memory]")
        );
        assert_eq!(python_failure("python/tests/test_a.py::b FAILED"), None);
    }

    #[test]
    fn a_failure_can_be_repeated_by_its_command() {
        let command = Part::named("machines").unwrap().command(5, &["python/tests/test_a.py::b".to_owned()]);
        assert!(command.ends_with("--hypothesis-seed=5 python/tests/test_a.py::b"), "{command}");
        assert!(
            command.starts_with("GRIDSTONE_TEST_SEED=5 PROPTEST_RNG_SEED=5 .venv/bin/python -m pytest"),
            "{command}"
        );
        assert!(Part::named("attic").is_none());
    }
}
