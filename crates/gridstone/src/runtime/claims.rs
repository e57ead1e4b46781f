//! Claims: things that at most one thread of this process does at a time. Each thing has a key; the first thread to
//! claim it does it.
//!
//! The child of a fork starts without claims: its parent's claims stay with the parent.

use super::PerProcess;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The keys that are claimed now.
#[derive(Debug)]
pub struct Claims<T> {
    taken: PerProcess<Mutex<HashSet<T>>>,
}

/// A claim; dropping it frees the key.
#[derive(Debug)]
pub struct Claim<T: Copy + Eq + Hash + Send + 'static> {
    claims: &'static Claims<T>,
    key: T,
}

impl<T: Send> Claims<T> {
    /// Starts without claims.
    pub const fn new() -> Self {
        Self { taken: PerProcess::new() }
    }
}

impl<T: Send> Default for Claims<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + Eq + Hash + Send> Claims<T> {
    /// Claims `key`; `None` if it is claimed already.
    pub fn take(&'static self, key: T) -> Option<Claim<T>> {
        // No claim is made that is not held: its drop would wait for this lock, and free another's claim.
        let new = self.taken()?.insert(key);
        new.then(|| Claim { claims: self, key })
    }

    fn taken(&self) -> Option<MutexGuard<'_, HashSet<T>>> {
        let taken = self.taken.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        Some(taken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Copy + Eq + Hash + Send> Drop for Claim<T> {
    fn drop(&mut self) {
        if let Some(mut taken) = self.claims.taken() {
            taken.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_claimed_once_until_it_is_let_go() {
        static CLAIMS: Claims<u32> = Claims::new();
        let (one, two) = (CLAIMS.take(1).unwrap(), CLAIMS.take(2).unwrap());
        assert!(CLAIMS.take(1).is_none() && CLAIMS.take(2).is_none());
        drop(one);
        assert!(CLAIMS.take(2).is_none());
        assert!(CLAIMS.take(1).is_some());
        drop(two);
        assert!(CLAIMS.take(2).is_some());
    }
}
