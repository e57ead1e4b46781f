//! What an array tells its transaction of the cells and metadata that are read through it.

use super::Array;
use crate::base::Result;
use crate::query::Points;
use crate::schema::Subarray;

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
        if self.in_transaction() && self.session().check_open().is_ok() {
            let beyond = self.state()?.1.domain().beyond();
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
