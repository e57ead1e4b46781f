//! What an array tells its transaction of the cells and metadata that are read through it.

use super::Array;
use crate::base::Result;
use crate::query::Points;
use crate::schema::{Coordinate, Subarray};

impl Array {
    /// Tells the transaction, if there is one, that cells in `sub` are read. A box up to an end of the domain may have been
    /// chosen by that end: all beyond it counts as read, since it would have been if others had made the domain grow before.
    pub(super) fn note(&self, sub: &Subarray) {
        if self.in_transaction() {
            let open = self.state().map_or_else(|_| sub.without_ends(), |(_, state)| sub.open_at(state.domain()));
            self.session().note(&mut |reads| reads.note_box(self.id(), &open));
        }
    }

    /// Tells the transaction, if there is one, that an end of the domain was looked at, as a shape or a negative position does:
    /// cells beyond it count as read.
    ///
    /// # Errors
    /// Those of a lookup of the array. An ended transaction notes nothing.
    pub fn note_ends(&self) -> Result<()> {
        self.note_ends_of(&[])
    }

    /// The same of the low and the high end of some dimensions, as a position does that counts from one of them; of dimensions that
    /// `ends` does not reach, of both.
    ///
    /// # Errors
    /// As [`Array::note_ends`].
    pub fn note_ends_of(&self, ends: &[(bool, bool)]) -> Result<()> {
        if self.in_transaction() && self.session().check_open().is_ok() {
            let (_, state) = self.state()?;
            let of = |(place, dim): (usize, Coordinate<'_>)| {
                let used = ends.get(place).copied().unwrap_or((true, true));
                std::iter::repeat_n(used, dim.axes().len())
            };
            let used: Vec<(bool, bool)> = state.schema().coordinates().enumerate().flat_map(of).collect();
            let beyond = state.domain().beyond_ends(|axis| used.get(axis).copied().unwrap_or((true, true)));
            self.session().note(&mut |reads| beyond.iter().for_each(|sub| reads.note_box(self.id(), sub)));
        }
        Ok(())
    }

    /// The same of single cells, which lie in `bounds`.
    pub(super) fn note_cells(&self, bounds: &Subarray, points: &Points) {
        self.session().note(&mut |reads| reads.note_cells(self.id(), bounds, points.cells()));
    }

    pub(super) fn note_key(&self, key: Option<&str>) {
        self.session().note(&mut |reads| reads.note_key(self.id(), key));
    }
}
