//! Where cells lie in a buffer, and moving boxes of cells between two layouts.

use crate::query::request::ReadOrder;
use crate::schema::{Order, Schema, Subarray};
use crate::tile::{Strided, TileGrid, by_cell_width, offsets_in, try_vec};

/// A run of cells to move: places in cells, and the step from one cell to the next on both sides. A step of 0 on the
/// side moved from repeats one cell; on the side moved to it is never 0.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct MoveRun {
    pub(in crate::query) from: u64,
    pub(in crate::query) to: u64,
    pub(in crate::query) len: u64,
    pub(in crate::query) from_step: u64,
    pub(in crate::query) to_step: u64,
}

/// Calls `f` for runs that together move a box of `shape` from one layout to another. Dimensions that are contiguous
/// with each other on both sides are joined, so that runs are as long as they can be.
pub(in crate::query) fn for_each_run(shape: &[u64], from: &Strided, to: &Strided, mut f: impl FnMut(MoveRun)) {
    let mut dims: Vec<(u64, u64, u64)> =
        shape.iter().zip(&from.strides).zip(&to.strides).map(|((n, a), b)| (*b, *a, *n)).filter(|d| d.2 > 1).collect();
    dims.sort_unstable();
    let mut joined: Vec<(u64, u64, u64)> = Vec::with_capacity(dims.len());
    for (to_step, from_step, n) in dims {
        match joined.last_mut() {
            Some((b, a, m)) if to_step == *b * *m && from_step == *a * *m => *m *= n,
            _ => joined.push((to_step, from_step, n)),
        }
    }
    let (to_step, from_step, len) = if joined.is_empty() { (1, 1, 1) } else { joined.remove(0) };
    let mut counters = vec![0u64; joined.len()];
    let (mut at_from, mut at_to) = (from.start, to.start);
    loop {
        f(MoveRun { from: at_from, to: at_to, len, from_step, to_step });
        let mut carried = true;
        for (counter, (b, a, n)) in counters.iter_mut().zip(&joined) {
            *counter += 1;
            at_from += a;
            at_to += b;
            if *counter < *n {
                carried = false;
                break;
            }
            *counter = 0;
            at_from -= a * n;
            at_to -= b * n;
        }
        if carried {
            return;
        }
    }
}

/// Moves a box of cells of `width` bytes. Both sides must hold the whole box.
pub(in crate::query) fn move_cells(
    shape: &[u64],
    width: usize,
    source: &[u8],
    from: &Strided,
    target: &mut [u8],
    to: &Strided,
) {
    for_each_run(shape, from, to, |run| {
        by_cell_width!(width, N => move_run::<N>(source, target, run), else move_wide(width, source, target, run));
    });
}

/// As [`move_run`], for cells of any width.
fn move_wide(width: usize, source: &[u8], target: &mut [u8], run: MoveRun) {
    let (from, to, len) = (run.from as usize, run.to as usize, run.len as usize);
    let contiguous = run.from_step == 1 && run.to_step == 1;
    let (moves, bytes) = if contiguous { (1, len * width) } else { (len, width) };
    for i in 0..moves {
        let (from, to) = ((from + i * run.from_step as usize) * width, (to + i * run.to_step as usize) * width);
        if let (Some(cell), Some(slot)) = (source.get(from..from + bytes), target.get_mut(to..to + bytes)) {
            slot.copy_from_slice(cell);
        }
    }
}

fn move_run<const N: usize>(source: &[u8], target: &mut [u8], run: MoveRun) {
    let (from, to, len) = (run.from as usize, run.to as usize, run.len as usize);
    if run.from_step == 1 && run.to_step == 1 {
        let slice = source.get(from * N..(from + len) * N);
        if let (Some(source), Some(target)) = (slice, target.get_mut(to * N..(to + len) * N)) {
            target.copy_from_slice(source);
        }
        return;
    }
    let (cells, _) = source.as_chunks::<N>();
    let (slots, _) = target.as_chunks_mut::<N>();
    let cells = cells.get(from..).unwrap_or_default();
    let slots = slots.get_mut(to..).unwrap_or_default().iter_mut().step_by(run.to_step.max(1) as usize).take(len);
    if run.from_step == 0 {
        let Some(cell) = cells.first() else { return };
        slots.for_each(|slot| *slot = *cell);
        return;
    }
    for (slot, cell) in slots.zip(cells.iter().step_by(run.from_step as usize)) {
        *slot = *cell;
    }
}

/// The memory layout of a dense result.
#[derive(Debug)]
pub(in crate::query) enum ResultLayout {
    /// Row- or column-major over the box.
    Plain(Subarray, Strided),
    /// Global order: the tiles one after the other, each in cell order. Holds the start of every tile.
    Global(TileGrid, Vec<u64>, Order),
}

impl ResultLayout {
    /// The layout of the box `sub` in `order`.
    pub(in crate::query) fn new(schema: &Schema, sub: &Subarray, order: ReadOrder) -> crate::base::Result<Self> {
        let plain = |order| Self::Plain(sub.clone(), Strided::packed(&sub.shape(), order));
        match order {
            ReadOrder::Row => Ok(plain(Order::Row)),
            ReadOrder::Col => Ok(plain(Order::Col)),
            ReadOrder::Global | ReadOrder::Any => {
                let grid = TileGrid::new(schema, sub)?;
                let mut start = 0u64;
                let mut starts = try_vec(0, grid.len() as usize)?;
                for (tile, slot) in (0..grid.len()).zip(&mut starts) {
                    *slot = start;
                    start += grid.tile_box(tile).map_or(0, |b| b.cells() as u64);
                }
                Ok(Self::Global(grid, starts, schema.options().cell_order))
            }
        }
    }

    /// Where the cells of `region`, which lies in the box and in one space tile (numbered `tile` in the box's grid),
    /// go.
    pub(in crate::query) fn place(&self, region: &Subarray, tile: u64) -> Strided {
        match self {
            Self::Plain(sub, strided) => strided.at(&offsets_in(region, sub)),
            Self::Global(grid, starts, order) => {
                let whole = grid.tile_box(tile).unwrap_or_else(|| region.clone());
                let mut strided = Strided::packed(&whole.shape(), *order);
                strided.start = starts.get(tile as usize).copied().unwrap_or(0);
                strided.at(&offsets_in(region, &whole))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::{ravel, unravel};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn boxes_move_between_any_layouts(outer in proptest::collection::vec(1u64..6, 1..5), seeds in proptest::collection::vec(any::<u64>(), 10),
            orders in any::<(bool, bool)>(), width in 2usize..20) {
            let order = |row| if row { Order::Row } else { Order::Col };
            let origin: Vec<u64> = outer.iter().zip(&seeds).map(|(n, s)| s % n).collect();
            let shape: Vec<u64> = outer.iter().zip(&origin).zip(&seeds[5..]).map(|((n, o), s)| 1 + s % (n - o)).collect();
            let cells: u64 = outer.iter().product();
            let cell = |number: u16| number.to_le_bytes().into_iter().chain((2..width as u8).map(move |b| b ^ number as u8));
            let source: Vec<u8> = (0..cells as u16).flat_map(cell).collect();
            let inner: u64 = shape.iter().product();
            let mut target = vec![0u8; inner as usize * width];
            let from = Strided::packed(&outer, order(orders.0)).at(&origin);
            let to = Strided::packed(&shape, order(orders.1));
            move_cells(&shape, width, &source, &from, &mut target, &to);
            for i in 0..inner {
                let at = unravel(i, &shape, order(orders.1));
                let whole: Vec<u64> = at.iter().zip(&origin).map(|(a, o)| a + o).collect();
                let expected = ravel(&whole, &outer, order(orders.0)) as u16;
                prop_assert_eq!(&target[i as usize * width..][..width], &cell(expected).collect::<Vec<u8>>());
            }
        }

        /// A stride of 0 spreads the values of one dimension over a box: how coordinates of a stream are made.
        #[test]
        fn a_stride_of_zero_repeats_cells(shape in proptest::collection::vec(1u64..6, 1..5), dim in 0usize..4, row in any::<bool>()) {
            let (dim, order) = (dim % shape.len(), if row { Order::Row } else { Order::Col });
            let source: Vec<u8> = (10..10 + shape[dim] as u8).collect();
            let from = Strided { start: 0, strides: (0..shape.len()).map(|d| u64::from(d == dim)).collect() };
            let mut target = vec![0u8; shape.iter().product::<u64>() as usize];
            move_cells(&shape, 1, &source, &from, &mut target, &Strided::packed(&shape, order));
            for (i, found) in target.iter().enumerate() {
                prop_assert_eq!(u64::from(*found), 10 + unravel(i as u64, &shape, order)[dim]);
            }
        }
    }
}
