//! The recorded instruction count of each workload, and its comparison with the current count.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# Instructions of each workload of benches/core, written by `cargo xtask instructions --record`; see CONTRIBUTING.md.
# `allowed_percent` is written by hand and kept: how far a count may lie above its baseline, `default` or by workload.
";
/// The key of `allowed_percent` for workloads that it does not name.
const DEFAULT: &str = "default";

/// `xtask/instructions.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    /// The value of `std::env::consts::ARCH`.
    pub(super) arch: String,
    /// The output of `rustc --version`.
    pub(super) compiler: String,
    /// The output of `valgrind --version`.
    pub(super) valgrind: String,
    /// By workload; `default` for the others.
    pub(super) allowed_percent: BTreeMap<String, f64>,
    /// By workload.
    pub(super) instructions: BTreeMap<String, u64>,
}

/// A workload with its recorded and its current count; `None` if there is no such count.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) before: Option<u64>,
    pub(super) now: Option<u64>,
    pub(super) verdict: Verdict,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Within the allowed change, up or down.
    Same,
    /// More than allowed.
    More,
    /// So much less that the baseline no longer guards it.
    Less,
    /// Not in the baseline.
    New,
    /// Only in the baseline.
    Gone,
}

impl Verdict {
    /// Whether the run fails because of it. A baseline that does not match the workloads guards nothing, so that fails
    /// too.
    pub(super) fn fails(self) -> bool {
        matches!(self, Self::More | Self::New | Self::Gone)
    }
}

impl Row {
    /// The change in per cent of the baseline.
    pub(super) fn percent(&self) -> Option<f64> {
        let (before, now) = (self.before.filter(|n| *n > 0)? as f64, self.now? as f64);
        Some((now / before - 1.0) * 100.0)
    }
}

impl Baseline {
    /// Parses the file's text; the message says what is wrong in it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|error| format!("instructions.toml: {error}"))?;
        if !read.allowed_percent.contains_key(DEFAULT) {
            return Err("instructions.toml: [allowed_percent] has no `default`".into());
        }
        if let Some((name, percent)) = read.allowed_percent.iter().find(|(_, p)| !(p.is_finite() && **p > 0.0)) {
            return Err(format!("instructions.toml: {name:?} may deviate by {percent} per cent, which is no share"));
        }
        if let Some((name, _)) = read.instructions.iter().find(|(_, count)| **count == 0) {
            return Err(format!("instructions.toml: {name:?} took no instruction, which cannot be"));
        }
        Ok(read)
    }

    /// The file's text.
    pub(super) fn to_text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (key, value) in [("arch", &self.arch), ("compiler", &self.compiler), ("valgrind", &self.valgrind)] {
            let _ = writeln!(text, "{key} = {value:?}");
        }
        text.push_str("\n[allowed_percent]\n");
        for (name, percent) in &self.allowed_percent {
            let _ =
                writeln!(text, "{} = {percent:?}", if name == DEFAULT { name.clone() } else { format!("{name:?}") });
        }
        text.push_str("\n[instructions]\n");
        for (name, count) in &self.instructions {
            let _ = writeln!(text, "{name:?} = {count}");
        }
        text
    }

    /// A row for every workload counted now or recorded, by name.
    pub(super) fn compare(&self, now: &BTreeMap<String, u64>) -> Vec<Row> {
        let mut names: Vec<&String> = now.keys().chain(self.instructions.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let row = |name: &String| {
            let (before, now) = (self.instructions.get(name).copied(), now.get(name).copied());
            Row { name: name.clone(), before, now, verdict: verdict(before, now, self.allowed(name)) }
        };
        names.into_iter().map(row).collect()
    }

    fn allowed(&self, name: &str) -> f64 {
        let percent = self.allowed_percent.get(name).or_else(|| self.allowed_percent.get(DEFAULT));
        percent.copied().unwrap_or_default()
    }
}

fn verdict(before: Option<u64>, now: Option<u64>, allowed_percent: f64) -> Verdict {
    let (Some(before), Some(now)) = (before, now) else {
        return if before.is_some() { Verdict::Gone } else { Verdict::New };
    };
    let slack = before as f64 * allowed_percent / 100.0;
    match now as f64 - before as f64 {
        change if change > slack => Verdict::More,
        change if change < -slack => Verdict::Less,
        _ => Verdict::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "arch = \"x86_64\"\ncompiler = \"rustc 1.95.0\"\nvalgrind = \"valgrind-3.19.0\"\n\
        [allowed_percent]\ndefault = 5\n\"b/2\" = 10.5\n[instructions]\n\"a/1\" = 1000\n\"b/2\" = 2000\n";

    fn verdicts(counts: &[(&str, u64)]) -> Vec<(String, Verdict)> {
        let now = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Baseline::parse(TEXT).unwrap().compare(&now).into_iter().map(|row| (row.name, row.verdict)).collect()
    }

    #[test]
    fn the_recorded_baseline_is_sound() {
        let text = include_str!("../../instructions.toml");
        let baseline = Baseline::parse(text).unwrap();
        assert_eq!(baseline.to_text(), text, "written as `--record` writes it");
        let strays: Vec<_> = baseline.allowed_percent.keys().filter(|name| *name != DEFAULT).collect();
        assert!(strays.iter().all(|name| baseline.instructions.contains_key(*name)), "{strays:?}");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let baseline = Baseline::parse(TEXT).unwrap();
        assert_eq!(Baseline::parse(&baseline.to_text()).unwrap(), baseline);
    }

    #[test]
    fn a_file_that_guards_nothing_is_refused() {
        for (from, to, part) in [
            ("default = 5", "other = 5", "no `default`"),
            ("default = 5", "default = -1", "no share"),
            ("default = 5", "default = nan", "no share"),
            ("= 1000", "= 0", "cannot be"),
            ("= 1000", "= \"x\"", "invalid type"),
            ("arch", "ark", "ark"),
        ] {
            let error = Baseline::parse(&TEXT.replace(from, to)).unwrap_err();
            assert!(error.contains(part), "{to}: {error}");
        }
    }

    #[test]
    fn deviations_are_judged_by_what_is_allowed() {
        let (a, b) = (|v| ("a/1".to_owned(), v), |v| ("b/2".to_owned(), v));
        assert_eq!(verdicts(&[("a/1", 1050), ("b/2", 2210)]), [a(Verdict::Same), b(Verdict::Same)]);
        assert_eq!(verdicts(&[("a/1", 1051), ("b/2", 2211)]), [a(Verdict::More), b(Verdict::More)]);
        assert_eq!(verdicts(&[("a/1", 950), ("b/2", 1790)]), [a(Verdict::Same), b(Verdict::Same)]);
        assert_eq!(verdicts(&[("a/1", 949), ("b/2", 1789)]), [a(Verdict::Less), b(Verdict::Less)]);
        assert!(Verdict::More.fails() && !Verdict::Less.fails() && !Verdict::Same.fails());
    }

    #[test]
    fn workloads_that_came_or_went_fail() {
        let found = verdicts(&[("a/1", 1000), ("c/3", 5)]);
        assert_eq!(found[1..], [("b/2".to_owned(), Verdict::Gone), ("c/3".to_owned(), Verdict::New)]);
        assert!(Verdict::Gone.fails() && Verdict::New.fails());
    }
}
