//! Programs that a task runs.

use std::ffi::OsStr;
use std::process::Command;

/// A program without what cargo has told this one of its own package. Build scripts look at these variables, so a cargo that is run with
/// them compiles anew what a cargo without them has compiled.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_package(name: &str) -> bool {
    let starts = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    starts.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows_nothing_of_this_package() {
        // Cargo tells them to tests, too.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let output = command("env").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        assert!(text.lines().any(|line| line.starts_with("PATH=")), "{text}");
        let told: Vec<&str> = text.lines().filter(|line| is_of_package(line)).collect();
        assert!(told.is_empty(), "{told:?}");
    }

    #[test]
    fn what_the_user_sets_stays() {
        let kept = ["CARGO_TARGET_DIR", "CARGO_HOME", "CARGO_BUILD_JOBS", "CARGO_INCREMENTAL", "CARGO"];
        assert!(kept.iter().all(|name| !is_of_package(name)));
    }
}
