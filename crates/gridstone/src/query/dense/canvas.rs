//! A region of one attribute being painted, from the oldest fragment to the newest.
//!
//! Fixed-width values are painted in place. Variable-length ones are painted as picks (which source, which row) and
//! gathered at the end, so that a value that is painted over is never copied.

use crate::base::{AlignedBuf, Error, Result};
use crate::query::cells::layout::{for_each_run, move_cells};
use crate::schema::Attribute;
use crate::tile::{Column, ColumnView, Strided, try_vec};
use std::sync::Arc;

/// The pick of a cell that nothing was painted on.
const UNPAINTED: (u32, u32) = (u32::MAX, 0);

enum Paint {
    Fixed(Column),
    Picks { picks: Vec<(u32, u32)>, sources: Vec<Arc<Column>> },
}

/// A buffer of cells of one attribute.
pub(in crate::query) struct Canvas<'a> {
    attr: &'a Attribute,
    paint: Paint,
}

impl<'a> Canvas<'a> {
    /// `len` cells of fill; a Budget error if there is no memory for them.
    pub(in crate::query) fn new(attr: &'a Attribute, len: usize) -> Result<Self> {
        let paint = if attr.datatype().is_var() {
            Paint::Picks { picks: try_vec(UNPAINTED, len)?, sources: Vec::new() }
        } else {
            Paint::Fixed(Column::filled(attr, len)?)
        };
        Ok(Self { attr, paint })
    }

    /// The attribute that is painted.
    pub(in crate::query) fn attr(&self) -> &'a Attribute {
        self.attr
    }

    /// Paints a box of `shape` from `column`, laid out as `from`, to where `to` says.
    pub(in crate::query) fn paint_box(&mut self, column: &Arc<Column>, shape: &[u64], from: &Strided, to: &Strided) {
        match &mut self.paint {
            Paint::Fixed(target) => {
                let width = self.attr.datatype().width().unwrap_or(1);
                let view = column.view();
                let (values, validity) = target.parts_mut();
                move_cells(shape, width, view.values(), from, values, to);
                if let Some(validity) = validity {
                    match view.validity() {
                        Some(theirs) => move_cells(shape, 1, theirs, from, validity, to),
                        None => set_validity(shape, from, to, validity),
                    }
                }
            }
            Paint::Picks { picks, sources } => {
                let source = sources.len() as u32;
                sources.push(column.clone());
                for_each_run(shape, from, to, |run| {
                    for i in 0..run.len {
                        if let Some(pick) = picks.get_mut((run.to + i * run.to_step) as usize) {
                            *pick = (source, (run.from + i * run.from_step) as u32);
                        }
                    }
                });
            }
        }
    }

    /// Paints single cells: `places` are pairs of a cell of the canvas and a row of `column`.
    pub(in crate::query) fn paint_cells(&mut self, column: &Arc<Column>, places: impl Iterator<Item = (u64, u32)>) {
        match &mut self.paint {
            Paint::Fixed(target) => {
                let view = column.view();
                let width = self.attr.datatype().width().unwrap_or(1);
                let (values, mut validity) = target.parts_mut();
                for (cell, row) in places {
                    let at = cell as usize * width;
                    if let Some(slot) = values.get_mut(at..at + width) {
                        slot.copy_from_slice(view.value(row as usize));
                    }
                    if let Some(flag) = validity.as_deref_mut().and_then(|v| v.get_mut(cell as usize)) {
                        *flag = u8::from(view.is_valid(row as usize));
                    }
                }
            }
            Paint::Picks { picks, sources } => {
                let source = sources.len() as u32;
                sources.push(column.clone());
                for (cell, row) in places {
                    if let Some(pick) = picks.get_mut(cell as usize) {
                        *pick = (source, row);
                    }
                }
            }
        }
    }

    /// Makes a box of `shape`, laid out as `to`, unwritten again.
    pub(in crate::query) fn clear_box(&mut self, shape: &[u64], to: &Strided) {
        for_each_run(shape, to, to, |run| self.clear_cells((0..run.len).map(|i| run.to + i * run.to_step)));
    }

    /// Makes cells unwritten again.
    pub(in crate::query) fn clear_cells(&mut self, cells: impl Iterator<Item = u64>) {
        match &mut self.paint {
            Paint::Fixed(target) => {
                let fill = self.attr.fill();
                let (values, mut validity) = target.parts_mut();
                for cell in cells {
                    let at = cell as usize * fill.len();
                    if let Some(slot) = values.get_mut(at..at + fill.len()) {
                        slot.copy_from_slice(fill);
                    }
                    if let Some(flag) = validity.as_deref_mut().and_then(|v| v.get_mut(cell as usize)) {
                        *flag = 0;
                    }
                }
            }
            Paint::Picks { picks, .. } => {
                for cell in cells {
                    if let Some(pick) = picks.get_mut(cell as usize) {
                        *pick = UNPAINTED;
                    }
                }
            }
        }
    }

    /// The painted cells.
    pub(in crate::query) fn finish(self) -> Result<Column> {
        match self.paint {
            Paint::Fixed(column) => Ok(column),
            Paint::Picks { picks, sources } => gather_picks(self.attr, &picks, &sources),
        }
    }
}

fn set_validity(shape: &[u64], from: &Strided, to: &Strided, validity: &mut [u8]) {
    for_each_run(shape, from, to, |run| {
        for i in 0..run.len {
            if let Some(flag) = validity.get_mut((run.to + i * run.to_step) as usize) {
                *flag = 1;
            }
        }
    });
}

fn gather_picks(attr: &Attribute, picks: &[(u32, u32)], sources: &[Arc<Column>]) -> Result<Column> {
    let views: Vec<ColumnView<'_>> = sources.iter().map(|s| s.view()).collect();
    let unwritten: &[u8] = if attr.nullable() { &[] } else { attr.fill() };
    let value = |(source, row): (u32, u32)| views.get(source as usize).map_or(unwritten, |v| v.value(row as usize));
    let total: usize = picks.iter().map(|p| value(*p).len()).sum();
    let mut values = AlignedBuf::zeroed(total);
    let mut offsets = Vec::with_capacity(picks.len() + 1);
    let mut at = 0;
    offsets.push(0);
    for pick in picks {
        let bytes = value(*pick);
        if let Some(slot) = values.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
        at += bytes.len();
        offsets.push(at as u64);
    }
    let valid =
        |(source, row): &(u32, u32)| u8::from(views.get(*source as usize).is_some_and(|v| v.is_valid(*row as usize)));
    let validity = attr.nullable().then(|| picks.iter().map(valid).collect());
    Column::new(attr.datatype(), values, Some(offsets), validity)
        .map_err(|e| Error::corruption("stored strings do not fit together").with_source(e))
}
