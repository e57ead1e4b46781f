//! The rows of a batch that a condition selects: a bitmap, as in Arrow.

use arrow_buffer::{BooleanBuffer, Buffer};

/// The selected rows; for the others the condition is false or, because of a null, unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    bits: BooleanBuffer,
}

impl Selection {
    /// All of `rows`, or none.
    pub(super) fn all_or_none(rows: usize, all: bool) -> Self {
        Self { bits: if all { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) } }
    }

    /// The rows among `rows` whose bits are set, the lowest bit of the first word first; a missing word is 0.
    pub(super) fn of_words(mut words: Vec<u64>, rows: usize) -> Self {
        words.resize(rows.div_ceil(64), 0);
        words.iter_mut().for_each(|word| *word = word.to_le());
        Self { bits: BooleanBuffer::new(Buffer::from_vec(words), 0, rows) }
    }

    /// These of `rows` rows.
    pub(super) fn of_rows(chosen: impl Iterator<Item = usize>, rows: usize) -> Self {
        let mut words = vec![0u64; rows.div_ceil(64)];
        for row in chosen {
            words.get_mut(row / 64).into_iter().for_each(|word| *word |= 1 << (row % 64));
        }
        Self::of_words(words, rows)
    }

    pub(super) fn and(&self, other: &Self) -> Self {
        Self { bits: &self.bits & &other.bits }
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Self { bits: &self.bits | &other.bits }
    }

    pub(super) fn not(&self) -> Self {
        Self { bits: !&self.bits }
    }

    /// The rows of the batch.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether the batch has no row.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// How many rows are selected.
    pub fn count(&self) -> usize {
        self.bits.count_set_bits()
    }

    /// Whether row `row` is selected; false past the end.
    pub fn contains(&self, row: usize) -> bool {
        row < self.len() && self.bits.value(row)
    }

    /// The selected rows, ascending.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        self.bits.set_indices()
    }

    /// The runs `from..to` of selected rows, ascending, no two adjacent.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.bits.set_slices()
    }

    /// The bitmap: lowest bit first, from bit 0, bits past the end 0.
    pub fn bitmap(&self) -> &BooleanBuffer {
        &self.bits
    }
}
