//! A case: something to measure, with a preparation that is not measured and an answer that can be checked.

use gridstone::base::{Error, Result};

/// The work that is measured.
pub trait Work {
    /// Runs once and keeps the answer.
    ///
    /// # Errors
    /// Those of the engine.
    fn run(&mut self) -> Result<()>;

    /// Compares the answer of the last run with the expected one.
    ///
    /// # Errors
    /// Input if it is wrong or there is none; those of the engine.
    fn check(&self) -> Result<()>;
}

struct Kept<T, R, C> {
    run: R,
    is_right: C,
    answer: Option<T>,
}

impl<T, R: FnMut() -> Result<T>, C: Fn(&T) -> Result<bool>> Work for Kept<T, R, C> {
    fn run(&mut self) -> Result<()> {
        self.answer = Some((self.run)()?);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.answer.as_ref().map(|answer| (self.is_right)(answer)).transpose()? {
            Some(true) => Ok(()),
            Some(false) => Err(Error::input("the answer is wrong")),
            None => Err(Error::input("there is no answer to check")),
        }
    }
}

/// The work that `run` does; `is_right` checks its answer.
pub(crate) fn work<T: 'static>(
    run: impl FnMut() -> Result<T> + 'static,
    is_right: impl Fn(&T) -> Result<bool> + 'static,
) -> Result<Box<dyn Work>> {
    Ok(Box::new(Kept { run, is_right, answer: None }))
}

type Prepare = Box<dyn Fn() -> Result<Box<dyn Work>>>;

/// A named piece of work. Everything in it is deterministic except the ids of fragments and the time.
pub struct Case {
    /// `floor/what/variant`.
    pub name: String,
    /// Whether it must be prepared anew for every run, because a run changes the state for the next one.
    pub once: bool,
    /// Raw bytes of cells that it processes; 0 where a rate would mean nothing.
    pub bytes: u64,
    prepare: Prepare,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Case({})", self.name)
    }
}

impl Case {
    /// Work that may be repeated.
    pub(crate) fn repeated(
        name: impl Into<String>,
        bytes: u64,
        prepare: impl Fn() -> Result<Box<dyn Work>> + 'static,
    ) -> Self {
        Self { name: name.into(), once: false, bytes, prepare: Box::new(prepare) }
    }

    /// Work that is prepared for each run.
    pub(crate) fn once(
        name: impl Into<String>,
        bytes: u64,
        prepare: impl Fn() -> Result<Box<dyn Work>> + 'static,
    ) -> Self {
        Self { once: true, ..Self::repeated(name, bytes, prepare) }
    }

    /// Prepares the work.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn prepare(&self) -> Result<Box<dyn Work>> {
        (self.prepare)().map_err(|e| e.context(format!("preparing {}", self.name)))
    }
}
