//! The process that owns a value: the child of a fork has copies of its parent's values, and must not clean up what the
//! parent still uses.

/// The process that made a value.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    pid: u32,
}

impl Owner {
    /// This process.
    pub fn here() -> Self {
        Self { pid: std::process::id() }
    }

    /// Whether this process is the owner, not a child forked from it.
    pub fn is_here(self) -> bool {
        self.pid == std::process::id()
    }

    /// The parent of this process, as seen in the child of a fork: for tests, which cannot fork.
    #[cfg(test)]
    pub(crate) fn elsewhere() -> Self {
        Self { pid: std::process::id().wrapping_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_the_process_that_made_it() {
        assert!(Owner::here().is_here());
        assert!(!Owner::elsewhere().is_here());
    }
}
