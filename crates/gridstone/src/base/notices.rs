//! Notices: texts for the user about operations that did not fail.

use std::sync::{Mutex, PoisonError};

/// The largest number of notices kept; more would not be read.
const KEPT_MAX: usize = 16;

/// Texts for the caller, kept until they are taken.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Vec<String>>);

impl Notices {
    /// Keeps `text`, unless it is kept already or there are too many.
    pub fn add(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX && !kept.contains(&text) {
            kept.push(text);
        }
    }

    /// Returns and removes all notices.
    pub fn take(&self) -> Vec<String> {
        // In the child of a fork the lock may be held by a thread that does not exist there.
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
