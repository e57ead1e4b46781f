//! Seeds with which a test has failed: `xtask/seeds.toml`.

use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;

const HEAD: &str =
    "# Seeds with which tests failed once; the gate runs them again. `cargo xtask seeds` writes here.\n\n";

/// All kept seeds, oldest first.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    #[serde(default)]
    pub(super) seed: Vec<Seed>,
}

/// A seed, and the tests that failed with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seed {
    pub(super) seed: u64,
    /// The name of the tests' part.
    pub(super) part: String,
    pub(super) tests: Vec<String>,
}

fn place() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds.toml")
}

impl Kept {
    pub(super) fn read() -> Result<Self, String> {
        match std::fs::read_to_string(place()) {
            Ok(text) => Self::parse(&text),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(format!("{}: {e}", place().display())),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| format!("seeds.toml: {e}"))
    }

    /// Adds a seed, and writes the file.
    pub(super) fn add(mut self, seed: Seed) -> Result<(), String> {
        self.seed.push(seed);
        std::fs::write(place(), self.text()).map_err(|e| format!("{}: {e}", place().display()))
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for Seed { seed, part, tests } in &self.seed {
            let _ = writeln!(text, "[[seed]]\nseed = {seed}\npart = {part:?}\ntests = {tests:?}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let seed = Seed { seed: 7, part: "core".to_owned(), tests: vec!["a::b".to_owned()] };
        let kept = Kept { seed: vec![seed] };
        assert_eq!(Kept::parse(&kept.text()).unwrap(), kept);
        assert_eq!(Kept::parse("").unwrap(), Kept::default());
        assert!(Kept::parse("[[seed]]\nseed = 1\n").is_err());
    }

    #[test]
    fn the_seeds_of_this_repository_can_be_repeated() {
        for seed in Kept::read().unwrap().seed {
            assert!(super::super::Part::named(&seed.part).is_some() && !seed.tests.is_empty(), "{seed:?}");
        }
    }
}
