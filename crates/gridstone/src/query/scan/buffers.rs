//! Reads into buffers of the caller, as many whole cells at a time as fit, until all were given.
//!
//! A stream of batches is behind it, so the snapshot and the order are fixed by its start, and memory holds a batch. Cells that
//! did not fit wait in theirs for the next buffers.

use super::Scan;
use crate::base::{Cancel, CounterSnapshot, Error, Progress, Result};
use crate::tile::{Cells, Column, ColumnView};
use std::sync::Arc;

/// Buffers for one column.
#[derive(Debug)]
pub struct OutColumn<'a> {
    /// The name, for messages.
    pub name: &'a str,
    /// Values: fixed width side by side, or concatenated.
    pub values: &'a mut [u8],
    /// Of types of variable length: room for one offset more than cells. They count bytes of `values`, from 0.
    pub offsets: Option<&'a mut [u64]>,
    /// One byte per cell, 1 valid, 0 null; needed where a value may be null.
    pub validity: Option<&'a mut [u8]>,
}

/// A read that is given in portions.
#[derive(Debug)]
pub struct Portions {
    scan: Scan,
    /// Cells that wait, and how many of them were given.
    held: Option<(Cells, usize)>,
    ended: bool,
    failed: bool,
    /// Whether the array has no dimension to its users: the place on its one axis is not given.
    is_scalar: bool,
}

impl Portions {
    /// The cells of `scan`, of an array that has no dimension if `is_scalar`.
    pub fn new(scan: Scan, is_scalar: bool) -> Self {
        Self { scan, held: None, ended: false, failed: false, is_scalar }
    }

    /// Whether every cell was given, and none in a call that failed or was given up.
    pub fn is_complete(&self) -> bool {
        self.ended && self.held.is_none() && !self.failed
    }

    /// What the read has done so far.
    pub fn counters(&self) -> CounterSnapshot {
        self.scan.counters().snapshot()
    }

    /// From now on asks `cancel` whether to go on.
    pub fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        self.scan.set_cancel(cancel);
    }

    /// From now on reports to `progress`.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.scan.set_progress(progress);
    }

    /// Fills the buffers from their start with the next cells, as many as fit, and says how many; 0 only at the end. `outs` has
    /// an entry for each dimension and each attribute asked for, `None` for what is not wanted.
    ///
    /// # Errors
    /// Budget if a single cell does not fit: it says how large a buffer is needed, and nothing is lost; Input if offsets or validity
    /// are missing or given where there are none; those of the stream.
    pub fn fill(&mut self, outs: &mut [Option<OutColumn<'_>>]) -> Result<usize> {
        let mut filled = 0;
        loop {
            let (cells, given) = match self.held.take() {
                Some(held) => held,
                None => match self.next_cells()? {
                    Some(cells) => (cells, 0),
                    None => return Ok(filled),
                },
            };
            let count = fitting(&cells, given, filled, outs).and_then(|count| match count + filled {
                0 => Err(too_small(&cells, given, outs)),
                _ => Ok(count),
            });
            if let Ok(count) = count {
                put(&cells, (given, count), filled, outs);
            }
            let taken = *count.as_ref().unwrap_or(&0);
            filled += taken;
            if given + taken < cells.count {
                self.held = Some((cells, given + taken));
                return count.map(|_| filled);
            }
            // So that the last portion is known to be the last.
            self.held = self.next_cells()?.map(|cells| (cells, 0));
        }
    }

    /// The next cells as columns, first those that the last portion has left; `None` at the end.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn next_batch(&mut self) -> Result<Option<Cells>> {
        match self.held.take() {
            Some((cells, given)) if given > 0 => Ok(Some(cells.part(given, cells.count))),
            Some((cells, _)) => Ok(Some(cells)),
            None => self.next_cells(),
        }
    }

    /// Nothing is given any more: for who cannot know which cells the last call gave.
    pub fn give_up(&mut self) {
        (self.held, self.failed) = (None, true);
    }

    /// After an error it is not known which cells were given: there are no more.
    fn next_cells(&mut self) -> Result<Option<Cells>> {
        if self.failed {
            return Err(Error::input("an error has ended this read; begin another one"));
        }
        while !self.ended {
            match self.scan.next_batch() {
                Ok(Some(mut cells)) if cells.count > 0 => {
                    if self.is_scalar {
                        cells.dims.clear();
                    }
                    return Ok(Some(cells));
                }
                Ok(Some(_)) => {}
                Ok(None) => self.ended = true,
                Err(e) => {
                    self.failed = true;
                    return Err(e);
                }
            }
        }
        Ok(None)
    }
}

/// The columns that are wanted, with their buffers.
fn wanted<'c, 'o, 'a>(
    cells: &'c Cells,
    outs: &'o mut [Option<OutColumn<'a>>],
) -> impl Iterator<Item = (&'c Column, &'o mut OutColumn<'a>)> {
    cells.dims.iter().chain(&cells.attrs).zip(outs).filter_map(|(column, out)| Some((column, out.as_mut()?)))
}

/// How many cells from `given` on fit behind the `filled` ones.
fn fitting(cells: &Cells, given: usize, filled: usize, outs: &mut [Option<OutColumn<'_>>]) -> Result<usize> {
    let mut count = cells.count - given;
    for (column, out) in wanted(cells, outs) {
        let view = column.view();
        check_kind(view, out)?;
        count = count.min(match (view.offsets(), &out.offsets) {
            (Some(from), Some(offsets)) => {
                let used = if filled == 0 { 0 } else { offsets.get(filled).copied().unwrap_or(u64::MAX) };
                let room = (out.values.len() as u64).saturating_sub(used);
                let start = from.get(given).copied().unwrap_or(0);
                let ends = from.get(given + 1..).unwrap_or_default();
                ends.partition_point(|end| end - start <= room).min(offsets.len().saturating_sub(filled + 1))
            }
            _ => (out.values.len() / view.datatype().width().unwrap_or(1).max(1)).saturating_sub(filled),
        });
        if let Some(validity) = &out.validity {
            count = count.min(validity.len().saturating_sub(filled));
        }
    }
    Ok(count)
}

fn check_kind(view: ColumnView<'_>, out: &OutColumn<'_>) -> Result<()> {
    let wrong = |why: &str| Err(Error::input(format!("the buffers for {:?}: {why}", out.name)));
    match (view.offsets().is_some(), out.offsets.is_some()) {
        (true, false) => wrong("its values vary in length, so that it needs a buffer for offsets too"),
        (false, true) => wrong("its values are of fixed width and have no offsets"),
        _ if view.validity().is_some() && out.validity.is_none() => {
            wrong("a value may be null, so that it needs a buffer for validity too")
        }
        _ => Ok(()),
    }
}

/// The error for a cell that does not fit buffers that are empty.
fn too_small(cells: &Cells, given: usize, outs: &mut [Option<OutColumn<'_>>]) -> Error {
    let small = wanted(cells, outs).find_map(|(column, out)| {
        let needed = column.view().value(given).len();
        let offsets = out.offsets.as_ref().map_or(2, |o| o.len());
        let flags = out.validity.as_ref().map_or(1, |v| v.len());
        let short = out.values.len() < needed || offsets < 2 || flags < 1;
        short.then(|| (out.name.to_owned(), needed, out.values.len(), offsets))
    });
    let (name, needed, room, offsets) = small.unwrap_or_default();
    Error::budget(format!(
        "the next cell does not fit the buffers: {name:?} needs {needed} bytes for its value, and there is room for {room} bytes and \
         {offsets} offsets; give larger buffers and go on"
    ))
}

/// Copies cells behind the `filled` ones; they fit.
fn put(cells: &Cells, (given, count): (usize, usize), filled: usize, outs: &mut [Option<OutColumn<'_>>]) {
    for (column, out) in wanted(cells, outs) {
        let view = column.view();
        if let (Some(from), Some(offsets)) = (view.offsets(), out.offsets.as_mut()) {
            put_var(view, from, (given, count), filled, (out.values, offsets));
        } else {
            let width = view.datatype().width().unwrap_or(1);
            let cells = view.values().get(given * width..(given + count) * width);
            copy(cells, out.values.get_mut(filled * width..(filled + count) * width));
        }
        if let Some(validity) = out.validity.as_mut() {
            let slots = validity.get_mut(filled..filled + count);
            match view.validity() {
                Some(flags) => copy(flags.get(given..given + count), slots),
                None => slots.into_iter().for_each(|slots| slots.fill(1)),
            }
        }
    }
}

fn put_var(
    view: ColumnView<'_>,
    from: &[u64],
    (given, count): (usize, usize),
    filled: usize,
    (values, offsets): (&mut [u8], &mut [u64]),
) {
    if filled == 0
        && let Some(first) = offsets.first_mut()
    {
        *first = 0;
    }
    let start = from.get(given).copied().unwrap_or(0);
    let end = from.get(given + count).copied().unwrap_or(start);
    let used = offsets.get(filled).copied().unwrap_or(0);
    let bytes = view.values().get(start as usize..end as usize);
    copy(bytes, values.get_mut(used as usize..(used + end - start) as usize));
    let ends = from.get(given + 1..given + count + 1).unwrap_or_default();
    for (slot, end) in offsets.iter_mut().skip(filled + 1).zip(ends) {
        *slot = used + end - start;
    }
}

fn copy(from: Option<&[u8]>, to: Option<&mut [u8]>) {
    if let (Some(from), Some(to)) = (from, to)
        && from.len() == to.len()
    {
        to.copy_from_slice(from);
    }
}
