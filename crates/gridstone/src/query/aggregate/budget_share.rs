//! Memory of a budget that is held for what grows and shrinks.

use crate::base::Budget;
use std::sync::Arc;

/// Bytes of a budget, given back when this goes.
#[derive(Debug)]
pub struct BudgetShare {
    budget: Arc<Budget>,
    bytes: u64,
}

impl BudgetShare {
    /// Nothing is held yet.
    pub fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From now on so many bytes are held.
    pub fn set(&mut self, bytes: u64) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.budget.take(more),
            None => self.budget.give(self.bytes - bytes),
        }
        self.bytes = bytes;
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}
