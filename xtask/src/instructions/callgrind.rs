//! Runs a workload under callgrind and reads its count.

use super::{Stop, output};
use std::path::PathBuf;
use std::process::Command;

/// The function of the workloads' program whose instructions are counted.
const MEASURED: &str = "workloads::measured*";

/// The program of the workloads and the path of its counts.
#[derive(Debug)]
pub(super) struct Callgrind {
    program: PathBuf,
    out: PathBuf,
}

/// The output of `valgrind --version`; without valgrind nothing can be counted.
pub(super) fn version() -> Result<String, Stop> {
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => Err(Stop::Unable(format!("valgrind --version: {}", output.status))),
        Err(error) => Err(Stop::Unable(format!("valgrind is needed, and cannot be run: {error}; install it"))),
    }
}

impl Callgrind {
    pub(super) fn new(program: PathBuf) -> Result<Self, Stop> {
        let out = program.with_file_name("instructions.callgrind");
        Ok(Self { program, out })
    }

    /// The instructions of one workload, which must also return the right answer.
    pub(super) fn count(&self, workload: &str) -> Result<u64, Stop> {
        let mut command = Command::new("valgrind");
        // The environment only locates programs: it passes no options of valgrind or of the user.
        command.env_clear().env("GRIDSTONE_THREADS", "1");
        // Fast bins are emptied all at once, at any time: the workload's frees would pay for earlier ones.
        command.env("GLIBC_TUNABLES", "glibc.malloc.mxfast=0");
        for kept in ["PATH", "VALGRIND_LIB"] {
            command.envs(std::env::var_os(kept).map(|value| (kept, value)));
        }
        command.args(["--tool=callgrind", "--quiet", "--collect-atstart=no"]);
        command.arg(format!("--toggle-collect={MEASURED}"));
        command.arg(format!("--callgrind-out-file={}", self.out.display()));
        output(command.arg(&self.program).arg(workload))?;
        let text = std::fs::read_to_string(&self.out);
        let text = text.map_err(|e| Stop::Broken(format!("{}: {e}", self.out.display())))?;
        total(&text).map_err(|message| Stop::Broken(format!("{workload}: {message}")))
    }
}

impl Drop for Callgrind {
    fn drop(&mut self) {
        // Best effort: it is among other built files.
        let _ = std::fs::remove_file(&self.out);
    }
}

/// The total of executed instructions (`Ir`), from the text of callgrind's file.
fn total(text: &str) -> Result<u64, String> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::split_whitespace);
    let place = field("events:").and_then(|mut names| names.position(|name| name == "Ir"));
    let place = place.ok_or("callgrind counted no event `Ir`")?;
    let total = field("totals:").and_then(|mut counts| counts.nth(place));
    let total = total.ok_or("callgrind wrote no totals")?;
    match total.parse() {
        Ok(0) => Err(format!("nothing was counted: no function {MEASURED} was called")),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("callgrind's total {total:?}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_by_the_name_of_its_event() {
        let text =
            "version: 1\ncreator: callgrind-3.19.0\nevents: Ir\nsummary: 7\n\nfn=(1) f\n12 7\n\ntotals: 4832892\n";
        assert_eq!(total(text), Ok(4_832_892));
        assert_eq!(total("events: Dr Ir Dw\ntotals: 5 60 7\n"), Ok(60));
    }

    #[test]
    fn a_file_without_a_count_is_refused() {
        for (text, part) in [
            ("", "no event"),
            ("events: Dr\ntotals: 5\n", "no event"),
            ("events: Ir\n", "no totals"),
            ("events: Dr Ir\ntotals: 5\n", "no totals"),
            ("events: Ir\ntotals: many\n", "\"many\""),
            ("events: Ir\ntotals: 0\n", "nothing was counted"),
        ] {
            let error = total(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
