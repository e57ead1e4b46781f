//! Labels that several arrays share: those of a coordinate such as time, in the arrays of one group.
//!
//! 1. They lie in an ordinary array of the store, which a schema names by its id. So the array can be moved and written as any.
//! 2. It has a life of its own. Once it is removed, or has another form, the dimensions that named it have no labels.
//! 3. A block that is appended writes its labels there. Labels that are there already have to be the same.

use super::labels::{LabelParts, check_type, dim_at, place_of};
use super::{Array, Call};
use crate::base::{Error, Id, Result};
use crate::query::ReadOrder;
use crate::schema::{Dimension, Evolution, KeyRange, Labels, Region, Subarray, key};
use crate::store::{ArrayState, Node, Snapshot, check_label_form};
use crate::tile::ColumnView;
use std::sync::Arc;

/// The array with this id, if the labels of `dim` can lie in it.
pub(super) fn shared_state(snapshot: &Snapshot, dim: &Dimension, id: Id) -> Result<Option<Arc<ArrayState>>> {
    let can = |state: &Arc<ArrayState>| state.owner().is_none() && check_label_form(dim, state.schema()).is_ok();
    Ok(snapshot.find_array(id)?.filter(can))
}

impl Array {
    /// The id of the array at `path`, in which the labels of a dimension can lie as [`Labels::Shared`].
    ///
    /// # Errors
    /// NotFound, Input (a group, or this array), Schema (not dense, of one dimension of the same type and one attribute).
    pub fn shared_labels(&self, dimension: &str, path: &str) -> Result<Id> {
        self.session().note_nodes(&|reads, base| reads.note_node(base, path))?;
        let look = |snapshot: &Snapshot| {
            let state = snapshot.array_by_id(self.id())?;
            let dim = dim_at(state.schema(), place_of(state.schema(), dimension)?)?;
            let wrong = format!("the labels of dimension {dimension:?} cannot lie in {path}");
            match snapshot.node(path)? {
                Node::Group(_) => Err(Error::input(format!("{wrong}, which is a group; name an array"))),
                Node::Array(found) if found.id() == self.id() => {
                    Err(Error::input(format!("{wrong}, which is the array itself; name another, or give the labels")))
                }
                Node::Array(found) => {
                    let form = check_label_form(dim, found.schema());
                    form.map_err(|why| Error::schema(format!("{wrong}: it is {why}"))).map(|()| found.id())
                }
            }
        };
        Ok(self.looked_in(look)?.1)
    }

    /// The array that labels of the dimension at a place share, if it is there.
    pub(super) fn shared(&self, place: usize, id: Id) -> Result<Option<Self>> {
        let look = |snapshot: &Snapshot| {
            let state = snapshot.array_by_id(self.id())?;
            shared_state(snapshot, dim_at(state.schema(), place)?, id)
        };
        Ok(self.looked_in(look)?.1.map(|_| self.with_id(id)))
    }

    /// A Conflict error if labels should lie in an array that is not there, or cannot have them.
    pub(super) fn check_shared(&self, snapshot: &Snapshot, state: &ArrayState, evolution: &Evolution) -> Result<()> {
        for (name, labels) in &evolution.labels {
            let Some(id) = labels.as_ref().and_then(Labels::shared) else { continue };
            self.session().note(&mut |reads| reads.note_id(id));
            let dim = dim_at(state.schema(), place_of(state.schema(), name)?)?;
            if id == self.id() || shared_state(snapshot, dim, id)?.is_none() {
                return Err(Error::conflict(format!(
                    "the labels of dimension {name:?} should lie in the array with the id {id}, which was removed or changed \
                     meanwhile; name it again"
                )));
            }
        }
        Ok(())
    }

    /// What the labels of a block need that is appended in `range` along a dimension with shared labels.
    ///
    /// # Errors
    /// Input: labels are missing, of another type, or others than those that are there already.
    pub(super) fn append_shared(
        &self,
        (snapshot, dim, id): (&Snapshot, &Dimension, Id),
        range: KeyRange,
        given: Option<ColumnView<'_>>,
        call: &Call,
    ) -> Result<LabelParts> {
        self.session().note(&mut |reads| reads.note_id(id));
        let count = range.hi - range.lo + 1;
        let Some(state) = shared_state(snapshot, dim, id)? else {
            return match given {
                None => Ok(LabelParts::default()),
                Some(_) => Err(Error::input(format!(
                    "dimension {:?} had its labels in an array that was removed, so those of a block have no place; leave labels= out, or \
                     set labels for all positions first: alter(labels={{{:?}: …}})",
                    dim.name(),
                    dim.name()
                ))),
            };
        };
        let there = state.domain().ranges().first().copied().unwrap_or(KeyRange::EMPTY);
        let common = KeyRange { lo: range.lo.max(there.lo), hi: range.hi.min(there.hi) };
        let has_all = !there.is_empty() && common == range;
        let Some(given) = given else {
            return match has_all {
                true => Ok(LabelParts::default()),
                false => Err(Error::input(format!(
                    "dimension {:?} has its labels in {}, which has none for the {count} positions that were appended: give them with \
                     labels=, or append to that array first",
                    dim.name(),
                    state.path()
                ))),
            };
        };
        if given.len() as u64 != count {
            return Err(Error::input(format!(
                "dimension {:?}: {count} positions were appended with {} labels; each needs one",
                dim.name(),
                given.len()
            )));
        }
        check_type(dim, state.schema().attrs().first().map(|attr| attr.datatype()), given)?;
        let is_known = !there.is_empty()
            && common.lo <= common.hi
            && self.have_these(dim, &state, (range, common), given, call)?;
        match is_known && has_all {
            true => Ok(LabelParts::default()),
            false => self.list_more(snapshot, dim, id, range, given, call),
        }
    }

    /// Whether the labels of `common` are there, those of a block in `range` that has them too.
    ///
    /// # Errors
    /// Input: there are others.
    fn have_these(
        &self,
        dim: &Dimension,
        state: &ArrayState,
        (range, common): (KeyRange, KeyRange),
        given: ColumnView<'_>,
        call: &Call,
    ) -> Result<bool> {
        let region = Region::new(vec![Subarray::new(vec![common])]);
        let (cells, ..) = self.with_id(state.id()).read_box(Some(&region), None, ReadOrder::Row, call)?;
        let Some(held) = cells.attrs.first() else {
            return Err(Error::corruption(format!("the labels in {} have no values", state.path())));
        };
        let held = held.view();
        let from = (common.lo - range.lo) as usize;
        let mut has_all = true;
        for row in 0..held.len() {
            let is_same = held.value(row) == given.value(from + row);
            match (is_missing(held, row), is_missing(given, from + row)) {
                (true, true) => {}
                (true, false) => has_all = false,
                (false, false) if is_same => {}
                (false, _) => {
                    return Err(Error::input(format!(
                        "dimension {:?}: the block has another label for position {} than {}, where its labels lie; append the labels that \
                         are there, or set others in that array first",
                        dim.name(),
                        dim.text(common.lo + row as u64),
                        state.path()
                    )));
                }
            }
        }
        Ok(has_all)
    }
}

/// Whether a label is missing: null, NaN or NaT.
fn is_missing(labels: ColumnView<'_>, row: usize) -> bool {
    let is_fixed = labels.datatype().width().is_some();
    !labels.is_valid(row) || (is_fixed && key::encode(labels.datatype(), labels.value(row)).is_err())
}
