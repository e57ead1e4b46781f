//! Reading, streaming and listing the cells of one box or of several, all of them or those that a condition selects.
//!
//! Several boxes of a sparse array are planned as they are: blocks that touch none of them, and rows in none, are left out. Those of a dense array
//! are a condition on coordinates in the box around them.

use super::boxes::{Span, parse_box, region_of, whole_of};
use super::listing::{TileListing, tiles};
use super::{Array, Call, ReadBox};
use crate::base::{CounterSnapshot, Result};
use crate::condition::{Bound, Condition};
use crate::fragment::{FragmentKind, FragmentOrder};
use crate::query::{
    LostPage, ReadContext, ReadOrder, Request, Scan, Target, TileAnswers, is_damage, open_fragment, read_sparse,
    read_where,
};
use crate::schema::{Region, Schema, Subarray};
use crate::tile::Cells;
use std::sync::Arc;

/// A read, planned.
pub(super) struct Planned {
    pub(super) context: ReadContext,
    pub(super) target: Target,
    pub(super) request: Request,
    pub(super) bound: Bound,
    /// Whether some cell may be selected.
    pub(super) any: bool,
    /// Whether neither a condition nor several boxes were given.
    pub(super) unfiltered: bool,
    /// Manifest pages that cannot be read, and so tell of no fragment.
    pub(super) lost: Vec<LostPage>,
}

impl Planned {
    /// Whether each cell of the box is selected, and the cells are those of a read without a condition.
    fn is_plain(&self) -> bool {
        self.any && self.bound.constant() == Some(true) && self.target.schema.sparse()
    }

    /// The cells, with their coordinates.
    pub(super) fn cells(&self) -> Result<Cells> {
        let Self { context, target, request, bound, .. } = self;
        let found = if self.is_plain() {
            read_sparse(context, target, request)
        } else if self.any {
            read_where(context, target, request, bound)
        } else {
            Ok(Cells::none(&target.schema, &request.attrs))
        };
        context.explain_missing(found)
    }

    /// A stream of them in batches of about `batch_bytes`.
    pub(super) fn scan(self, batch_bytes: u64) -> Result<Scan> {
        self.scan_without(batch_bytes, None)
    }

    /// The same but for the cells of tiles that are answered for.
    pub(super) fn scan_without(self, batch_bytes: u64, answers: Option<&mut TileAnswers<'_>>) -> Result<Scan> {
        let plain = self.is_plain() || (self.any && self.unfiltered);
        let Self { context, target, request, bound, any, .. } = self;
        let again = context.clone();
        let scan = if plain {
            match answers {
                Some(answers) => Scan::without(context, target, request, batch_bytes, answers),
                None => Scan::new(context, target, request, batch_bytes),
            }
        } else if any {
            Scan::filtered(context, target, request, batch_bytes, &bound)
                .and_then(|mut scan| answers.map_or(Ok(()), |answers| scan.take_whole_tiles(answers)).map(|()| scan))
        } else {
            Ok(Scan::nothing(context, target, request))
        };
        again.explain_missing(scan)
    }
}

/// What a plan makes of manifest pages that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LostPages {
    /// An error.
    Refused,
    /// It goes on without the fragments that they tell of.
    Told,
}

/// Whether cells are picked from the box that is planned.
pub(super) fn is_filtered(region: Option<&Region>, condition: Option<&Condition>) -> bool {
    condition.is_some() || region.is_some_and(|region| region.only().is_none())
}

/// What is looked at for cells of `region` (`None`: the whole domain) that `condition` selects: the box around them, and what tells
/// which cells of it are meant.
pub(super) fn narrowed(
    schema: &Schema,
    region: Option<&Region>,
    condition: Option<&Condition>,
) -> Result<(Option<Subarray>, Bound)> {
    let bound = bound_to(schema, condition)?;
    if schema.is_without_cells() && region.is_none_or(|region| region.hull().is_none()) {
        return Ok((None, bound));
    }
    let Some(region) = region else { return Ok((bound.bounds(schema), bound)) };
    region.boxes().iter().try_for_each(|sub| schema.check_inside(sub))?;
    let Some(hull) = region.hull() else { return Ok((None, bound)) };
    let bound = if region.only().is_some() { bound } else { bound.within(region.clone()) };
    Ok((bound.reach(hull), bound))
}

fn bound_to(schema: &Schema, condition: Option<&Condition>) -> Result<Bound> {
    condition.map_or_else(|| Ok(Bound::always()), |condition| condition.bind(schema))
}

/// As [`narrowed`], for a read: of a sparse array several boxes are no part of the condition, and given beside it.
fn planned(
    schema: &Schema,
    region: Option<&Region>,
    condition: Option<&Condition>,
) -> Result<(Option<Subarray>, Bound, Option<Arc<Region>>)> {
    let Some(several) = region.filter(|region| schema.sparse() && region.only().is_none()) else {
        let (reach, bound) = narrowed(schema, region, condition)?;
        return Ok((reach, bound, None));
    };
    let bound = bound_to(schema, condition)?;
    several.boxes().iter().try_for_each(|sub| schema.check_inside(sub))?;
    let reach = several.hull().and_then(|hull| bound.reach(hull)).and_then(|sub| several.hull_within(&sub));
    Ok((reach, bound, Some(Arc::new(several.clone()))))
}

impl Array {
    /// The cells in any of `boxes`, each a span per dimension; they may overlap. Of no box: none.
    ///
    /// # Errors
    /// Bounds: a box outside the domain, or empty; Input: too many boxes.
    pub fn region(&self, boxes: &[Vec<Span>]) -> Result<Region> {
        region_of(self.schema()?.as_ref(), boxes)
    }

    /// Reads the cells of a region (`None`: the whole domain) that `condition` selects (`None`: all), each once, in `order`, their
    /// coordinates with them, of dense arrays too; gives what the read did besides. An unwritten cell of a dense array is
    /// what it reads as: fill, or null.
    ///
    /// # Errors
    /// Input (a condition that does not fit the schema, unknown attributes), Bounds, Corruption, Storage, Cancelled.
    pub fn read_region(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Cells, CounterSnapshot)> {
        let plan = self.plan_region(region, attrs, condition, order, LostPages::Refused, call)?;
        Ok((plan.cells()?, plan.context.counters.snapshot()))
    }

    /// Reads the cells of a box that `condition` selects, as [`Array::read_region`] does.
    ///
    /// # Errors
    /// As there.
    pub fn read_where(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: &Condition,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Cells, CounterSnapshot)> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.read_region(region.as_ref(), attrs, Some(condition), order, call)
    }

    /// Streams them in batches of about `batch_bytes`.
    ///
    /// # Errors
    /// As [`Array::read_region`].
    pub fn scan_region(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        batch_bytes: u64,
        call: &Call,
    ) -> Result<Scan> {
        self.plan_region(region, attrs, condition, order, LostPages::Refused, call)?.scan(batch_bytes)
    }

    /// Streams a box in batches of about `batch_bytes`, coordinates included.
    ///
    /// # Errors
    /// As [`Array::read_region`].
    pub fn scan(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        order: ReadOrder,
        batch_bytes: u64,
        call: &Call,
    ) -> Result<Scan> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.scan_region(region.as_ref(), attrs, None, order, batch_bytes, call)
    }

    /// Streams the cells of a box that `condition` selects.
    ///
    /// # Errors
    /// As [`Array::read_region`].
    pub fn scan_where(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: &Condition,
        order: ReadOrder,
        batch_bytes: u64,
        call: &Call,
    ) -> Result<Scan> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.scan_region(region.as_ref(), attrs, Some(condition), order, batch_bytes, call)
    }

    /// Narrows the box to what the condition confines coordinates to. Outside of it, and of all boxes, nothing is looked at, and a
    /// transaction that is serializable does not depend on it.
    pub(super) fn plan_region(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        pages: LostPages,
        call: &Call,
    ) -> Result<Planned> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema().clone();
        let (reach, bound, several) = planned(&schema, region, condition)?;
        let mut request = Request::new(&schema, reach.clone(), attrs, order)?;
        request.region = several;
        let (mut target, mut lost) = (Target { array: self.id(), schema, fragments: Vec::new() }, Vec::new());
        let any = reach.is_some();
        if let Some(sub) = reach {
            match region {
                Some(_) if !self.in_transaction() => {}
                Some(region) => {
                    region.touching(&sub).iter().filter_map(|b| b.intersect(&sub)).for_each(|b| self.note(&b));
                }
                None => self.note(&sub),
            }
            (target.fragments, lost) = match self.described(&snapshot, &state, Some(&sub)) {
                Err(error) if pages == LostPages::Told && is_damage(&error) => {
                    self.described_around(&snapshot, &sub)?
                }
                described => (described?, Vec::new()),
            };
            target.fragments.retain(|d| region.is_none_or(|region| region.touches(&d.bounds)));
        } else {
            // That nothing lies there is so by the ends of the domain.
            self.note_ends()?;
        }
        // Pages hold what was committed up to the root.
        let after = FragmentOrder { version: snapshot.root_version().saturating_add(1), index: 0 };
        let lost = lost.into_iter().map(|(bounds, error)| (bounds, after, error)).collect();
        let unfiltered = !is_filtered(region, condition);
        Ok(Planned { context: self.read_context(&snapshot, call), target, request, bound, any, unfiltered, lost })
    }

    /// The data tiles that touch a region (`None`: the whole domain).
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub fn tiles(&self, region: Option<&Region>, call: &Call) -> Result<Vec<TileListing>> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema();
        let whole = whole_of(schema);
        let region = region.unwrap_or(&whole);
        region.boxes().iter().for_each(|sub| self.note(sub));
        let Some(hull) = region.hull() else {
            self.note_ends()?;
            return Ok(Vec::new());
        };
        let context = self.read_context(&snapshot, call);
        let mut found = Vec::new();
        for (description, number) in self.described(&snapshot, &state, None)?.iter().zip(0u32..) {
            call.cancel.check()?;
            let stored = description.kind.holds_cells() || description.kind == FragmentKind::Tombstones;
            if stored && region.touches(&description.bounds) {
                let fragment = open_fragment(&context, schema, description)?;
                let touched = tiles(&context, number, &fragment, schema, hull)?;
                found.extend(touched.into_iter().filter(|tile| region.touches(&tile.bounds)));
            }
        }
        Ok(found)
    }
}
