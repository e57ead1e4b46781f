//! What a caller should hear of although nothing failed.

use std::sync::{Mutex, PoisonError};

/// So many are kept; more would not be read.
const KEPT_MAX: usize = 16;

/// Texts for the caller, until somebody takes them.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Vec<String>>);

impl Notices {
    /// Keeps `text`, unless it waits already or too many do.
    pub fn add(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX && !kept.contains(&text) {
            kept.push(text);
        }
    }

    /// Gives all that wait.
    pub fn take(&self) -> Vec<String> {
        // In the child of a fork the lock may be held by a thread that is not there.
        self.0.try_lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_given_once_and_not_too_many_are_kept() {
        let notices = Notices::default();
        (0..100).for_each(|n| notices.add(format!("{}", n % 50)));
        assert_eq!(notices.take().len(), KEPT_MAX);
        assert!(notices.take().is_empty());
    }
}
