//! The cells of a result that several threads fill at once, each its own.

use super::layout::{MoveRun, for_each_run};
use crate::tile::{Strided, by_cell_width};
use std::marker::PhantomData;

/// A buffer lent to several threads for writing. It is a raw pointer and not a slice, since the cells of two boxes lie
/// among each other, so that no two threads could hold slices of them.
#[derive(Debug)]
pub(in crate::query) struct SharedResult<'a> {
    start: *mut u8,
    len: usize,
    lent: PhantomData<&'a mut [u8]>,
}

// SAFETY: the buffer is lent exclusively for as long as this lives, and nobody reads it meanwhile; the writing methods
// are unsafe, their callers see to it that no two threads write the same cell.
unsafe impl Sync for SharedResult<'_> {}
// SAFETY: as above; nothing here belongs to a thread.
unsafe impl Send for SharedResult<'_> {}

impl<'a> SharedResult<'a> {
    /// Lends `bytes`.
    pub(in crate::query) fn new(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), lent: PhantomData }
    }

    /// Moves a box of cells of `width` bytes here, as `layout::move_cells` does. Cells past the end of either side are
    /// left out.
    ///
    /// # Safety
    /// Until this returns, no other thread writes a cell of the box `shape` at `to`.
    pub(in crate::query) unsafe fn move_cells(
        &self,
        shape: &[u64],
        width: usize,
        source: &[u8],
        from: &Strided,
        to: &Strided,
    ) {
        // SAFETY: passed on to the caller.
        for_each_run(shape, from, to, |run| unsafe {
            by_cell_width!(width, N => self.move_run::<N>(source, run), else self.move_wide(width, source, run));
        });
    }

    /// As [`SharedResult::move_run`], for cells of any width.
    ///
    /// # Safety
    /// As [`SharedResult::move_cells`].
    unsafe fn move_wide(&self, width: usize, source: &[u8], run: MoveRun) {
        for i in 0..run.len {
            let from = (run.from + i * run.from_step) as usize * width;
            let Some(cell) = source.get(from..from + width) else { return };
            // SAFETY: passed on to the caller.
            unsafe { self.put(run.to + i * run.to_step.max(1), cell) };
        }
    }

    /// Writes `value` to every cell of a box.
    ///
    /// # Safety
    /// As [`SharedResult::move_cells`].
    pub(in crate::query) unsafe fn fill(&self, shape: &[u64], value: &[u8], to: &Strided) {
        let repeated = Strided { start: 0, strides: vec![0; shape.len()] };
        // SAFETY: passed on to the caller.
        unsafe { self.move_cells(shape, value.len(), value, &repeated, to) };
    }

    /// `len` bytes from byte `at` on; `None` if they are not all here.
    ///
    /// # Safety
    /// For as long as they are held nobody else holds one of them or writes there.
    #[expect(clippy::mut_from_ref, reason = "that nobody else has them is the caller's promise")]
    pub(in crate::query) unsafe fn bytes_mut(&self, at: usize, len: usize) -> Option<&mut [u8]> {
        at.checked_add(len).filter(|end| *end <= self.len)?;
        // SAFETY: the bytes lie in memory that is ours to write; the caller promises that nobody else does.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) })
    }

    /// Writes `value` to the cell number `cell`.
    ///
    /// # Safety
    /// Until this returns, no other thread writes that cell.
    pub(in crate::query) unsafe fn put(&self, cell: u64, value: &[u8]) {
        let at = (cell as usize).checked_mul(value.len()).filter(|at| *at <= self.len.saturating_sub(value.len()));
        if let Some(at) = at
            && value.len() <= self.len
        {
            // SAFETY: `at + value.len()` is at most `len`, the length of memory that is ours to write; that nobody else
            // writes there is the caller's promise. `value` is borrowed, so it lies elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), self.start.add(at), value.len()) };
        }
    }

    /// Moves single cells of `width` bytes: each of `steps` says how far from the first cell `from` of `source`, and from `to` here. Cells past
    /// the end of either side are left out.
    ///
    /// # Safety
    /// Until this returns, no other thread writes one of these cells.
    pub(in crate::query) unsafe fn move_steps(
        &self,
        width: usize,
        source: &[u8],
        (from, to): (u64, u64),
        steps: &[(u64, u64)],
    ) {
        // SAFETY: passed on to the caller.
        by_cell_width!(width, N => unsafe { self.move_each::<N>(source, (from, to), steps) }, else {
            for (on, place) in steps {
                let at = (from + on) as usize * width;
                let Some(cell) = source.get(at..at + width) else { continue };
                // SAFETY: passed on to the caller.
                unsafe { self.put(to + place, cell) };
            }
        });
    }

    /// As [`SharedResult::move_steps`].
    ///
    /// # Safety
    /// As [`SharedResult::move_steps`].
    unsafe fn move_each<const N: usize>(&self, source: &[u8], (from, to): (u64, u64), steps: &[(u64, u64)]) {
        let (cells, _) = source.as_chunks::<N>();
        let room = (self.len / N) as u64;
        for (on, place) in steps {
            if let Some(cell) = cells.get((from + on) as usize)
                && to + place < room
            {
                // SAFETY: the place is below the number of whole cells in the buffer; nobody else writes there, as the caller promises.
                unsafe { self.start.add((to + place) as usize * N).cast::<[u8; N]>().write_unaligned(*cell) };
            }
        }
    }

    unsafe fn move_run<const N: usize>(&self, source: &[u8], run: MoveRun) {
        let (from, to, step) = (run.from as usize, run.to as usize, run.to_step.max(1) as usize);
        let room = (self.len / N).checked_sub(to).map_or(0, |cells| cells.div_ceil(step));
        let len = (run.len as usize).min(room);
        let (cells, _) = source.as_chunks::<N>();
        let cells = cells.get(from..).unwrap_or_default();
        if run.from_step == 1 && step == 1 {
            let cells = cells.get(..len.min(cells.len())).unwrap_or_default();
            // SAFETY: `to + len` cells of N bytes are at most `self.len` bytes, ours to write; the caller promises that
            // nobody else does. `source` is borrowed, so it lies elsewhere.
            unsafe {
                std::ptr::copy_nonoverlapping(cells.as_ptr().cast::<u8>(), self.start.add(to * N), cells.len() * N)
            };
            return;
        }
        let write = |i: usize, cell: &[u8; N]| {
            // SAFETY: i < len, so `to + i * step` is below the number of whole cells in the buffer (`room`).
            unsafe { self.start.add((to + i * step) * N).cast::<[u8; N]>().write_unaligned(*cell) };
        };
        match cells.first() {
            Some(cell) if run.from_step == 0 => (0..len).for_each(|i| write(i, cell)),
            _ => {
                let cells = cells.iter().step_by(run.from_step.max(1) as usize).take(len);
                cells.enumerate().for_each(|(i, cell)| write(i, cell));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::move_cells;
    use super::*;
    use crate::schema::Order;
    use proptest::prelude::*;

    proptest! {
        /// The same as the safe way, whatever the box and the layouts; past the end nothing is written.
        #[test]
        fn cells_land_where_the_safe_way_puts_them(outer in prop::collection::vec(1u64..6, 1..4), seeds in any::<[u8; 8]>(),
            width in 1usize..20, cut in 0usize..20, orders in any::<(bool, bool)>()) {
            let order = |row| if row { Order::Row } else { Order::Col };
            let origin: Vec<u64> = outer.iter().zip(&seeds).map(|(n, s)| u64::from(*s) % n).collect();
            let shape: Vec<u64> = outer.iter().zip(&origin).zip(&seeds[4..]).map(|((n, o), s)| 1 + u64::from(*s) % (n - o)).collect();
            let cells = outer.iter().product::<u64>() as usize;
            let source: Vec<u8> = (0..shape.iter().product::<u64>() as usize * width).map(|i| i as u8 | 1).collect();
            let from = Strided::packed(&shape, order(orders.0));
            let to = Strided::packed(&outer, order(orders.1)).at(&origin);
            let mut expected = vec![0u8; cells * width];
            let mut found = vec![0u8; cells * width];
            move_cells(&shape, width, &source, &from, &mut expected, &to);
            let kept = found.len() - cut.min(found.len());
            // SAFETY: one thread.
            unsafe { SharedResult::new(&mut found[..kept]).move_cells(&shape, width, &source, &from, &to) };
            let whole = kept / width * width;
            prop_assert_eq!(&found[..whole], &expected[..whole]);
            prop_assert!(found[whole..].iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn fills_and_single_cells() {
        let mut bytes = [0u8; 9];
        let slots = SharedResult::new(&mut bytes);
        // SAFETY: one thread.
        unsafe {
            slots.fill(&[2], &[7, 8], &Strided { start: 1, strides: vec![1] });
            slots.put(0, &[1, 2]);
            slots.put(4, &[9, 9]);
            slots.put(u64::MAX, &[9, 9]);
            assert!(slots.bytes_mut(8, 2).is_none() && slots.bytes_mut(usize::MAX, 2).is_none());
            slots.bytes_mut(7, 2).unwrap()[1] = 5;
        }
        assert_eq!(bytes, [1, 2, 7, 8, 7, 8, 0, 0, 5]);
    }

    #[test]
    fn threads_fill_cells_that_lie_among_each_other() {
        let mut bytes = vec![0u8; 4000];
        let slots = SharedResult::new(&mut bytes);
        let column = |column: u64| {
            let to = Strided { start: column, strides: vec![10] };
            // SAFETY: each item, and so each thread, has a column of its own.
            unsafe { slots.fill(&[100], &(column as u32).to_le_bytes(), &to) };
            Ok(())
        };
        crate::runtime::Pool::new(Some(3)).unwrap().map((0..10).collect(), &crate::base::NeverCancel, column).unwrap();
        let found: Vec<u32> = bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
        assert!(found.iter().enumerate().all(|(i, v)| *v as usize == i % 10));
    }
}
