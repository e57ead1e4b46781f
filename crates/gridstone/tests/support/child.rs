//! Processes that a test starts, watches and kills: this very binary, told by its environment what to do.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// The test in which children begin.
const ENTRY: &str = "entry";
const ROLE: &str = "GRIDSTONE_TEST_ROLE";
const STORE: &str = "GRIDSTONE_TEST_STORE";
const NUMBER: &str = "GRIDSTONE_TEST_NUMBER";

/// A running child. Killed when it is dropped, so that a test that fails leaves none behind.
pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a child that plays `role` on the store in `store`.
    pub(crate) fn start(role: &str, store: &Path, number: u64) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([ENTRY, "--exact", "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(STORE, store)
            .env(NUMBER, number.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// The number in the next line `word number` that the child has said; `None` once it has ended. A line that its
    /// death cut short was not said.
    pub(crate) fn hear(&mut self, word: &str) -> Option<u64> {
        self.hear_any(&[word]).map(|(_, number)| number)
    }

    /// As [`Child::hear`], for several words: which of them it was, and its number.
    pub(crate) fn hear_any(&mut self, words: &[&str]) -> Option<(usize, u64)> {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            if !line.ends_with('\n') {
                return None;
            }
            let number_of = |word: &&str| line.trim().strip_prefix(*word)?.strip_prefix(' ');
            if let Some((which, number)) = words.iter().map(number_of).enumerate().find_map(|(i, n)| Some((i, n?))) {
                return Some((which, number.parse().unwrap()));
            }
        }
    }

    /// Ends it by SIGKILL. What it has said can still be heard.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits for it; whether all went well in it.
    pub(crate) fn succeeds(&mut self) -> bool {
        self.process.wait().unwrap().success()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Says a line to the parent, in one piece and after one that the test harness may have begun. Without a parent the
/// child ends here.
pub(crate) fn say(word: &str, number: u64) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{word} {number}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Plays the role that a parent gave this process; without a role there is nothing to do.
pub(crate) fn play(roles: impl FnOnce(&str, &Path, u64)) {
    let Ok(role) = std::env::var(ROLE) else { return };
    let store = PathBuf::from(std::env::var_os(STORE).unwrap());
    let number: u64 = std::env::var(NUMBER).unwrap().parse().unwrap();
    roles(&role, &store, number);
}

/// A folder that goes with its test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        // Tests of one process run side by side, and two of them may choose the same name.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gridstone-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
