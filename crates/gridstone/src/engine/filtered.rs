//! Reading the cells that a condition selects.

use super::boxes::parse_box;
use super::{Array, Call, ReadBox};
use crate::base::{CounterSnapshot, Result};
use crate::query::condition::{Bound, Condition};
use crate::query::{Cells, ReadContext, ReadOrder, Request, Scan, Target, read_sparse, read_where};

/// A read with a condition, planned.
struct Filtered {
    context: ReadContext,
    target: Target,
    request: Request,
    bound: Bound,
    /// Whether some cell may be selected.
    any: bool,
}

impl Filtered {
    /// Whether each cell is selected, and the cells are those of a read without a condition.
    fn is_plain(&self) -> bool {
        self.bound.constant() == Some(true) && self.target.schema.sparse()
    }
}

impl Array {
    /// Reads the cells of a box that `condition` selects, in `order`, their coordinates with them, of dense arrays too; gives
    /// what the read did besides. An unwritten cell of a dense array is what it reads as: fill, or null.
    ///
    /// # Errors
    /// Input (a condition that does not fit the schema, unknown attributes), Bounds, Corruption, Storage, Cancelled.
    pub fn read_where(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: &Condition,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Cells, CounterSnapshot)> {
        let plan = self.plan_where(sub, attrs, condition, order, call)?;
        let Filtered { context, target, request, bound, .. } = &plan;
        let found = if plan.is_plain() {
            read_sparse(context, target, request)
        } else if plan.any {
            read_where(context, target, request, bound)
        } else {
            Ok(Cells::none(&target.schema, request))
        };
        Ok((context.explained(found)?, context.counters.snapshot()))
    }

    /// Streams them in batches of about `batch_bytes`.
    ///
    /// # Errors
    /// As [`Array::read_where`].
    pub fn scan_where(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: &Condition,
        order: ReadOrder,
        batch_bytes: u64,
        call: &Call,
    ) -> Result<Scan> {
        let plan = self.plan_where(sub, attrs, condition, order, call)?;
        let (plain, context) = (plan.is_plain(), plan.context.clone());
        let Filtered { target, request, bound, any, .. } = plan;
        let scan = if plain {
            Scan::new(context.clone(), target, request, batch_bytes)
        } else if any {
            Scan::filtered(context.clone(), target, request, batch_bytes, &bound)
        } else {
            Ok(Scan::nothing(context.clone(), target, request))
        };
        context.explained(scan)
    }

    /// Narrows the box to what the condition confines coordinates to. Outside of it nothing is looked at, and a transaction
    /// that is serializable does not depend on it.
    fn plan_where(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: &Condition,
        order: ReadOrder,
        call: &Call,
    ) -> Result<Filtered> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema()?.clone();
        let mut request = Request::new(&schema, parse_box(&schema, sub)?, attrs, order)?;
        let bound = condition.bind(&schema)?;
        let reach = bound.bounds(&schema).and_then(|reach| reach.intersect(&request.sub));
        let mut target = Target { array: self.id(), schema, fragments: Vec::new() };
        let any = reach.is_some();
        if let Some(sub) = reach {
            self.note(&sub);
            target.fragments = self.described(&snapshot, &state, Some(&sub))?;
            request.sub = sub;
        }
        Ok(Filtered { context: self.read_context(&snapshot, call), target, request, bound, any })
    }
}
