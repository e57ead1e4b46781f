//! Dense arrays in memory: loads, boxes, single cells, single-cell updates.

use super::case::{Case, Work, work};
use super::input::{places, slope};
use super::world::{CELL_BYTES, Rows, create, holds, longs, reopen, texts};
use gridstone::base::Result;
use gridstone::engine::{Array, At, Call, ReadOrder};
use gridstone::schema::Order;
use gridstone::storage::MemoryStorage;
use std::sync::Arc;

/// A square of int64 cells, its square tiles, its filters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    /// Cells along a side.
    pub(crate) side: i64,
    /// Cells along a tile's side.
    pub(crate) tile: i64,
    pub(crate) filters: &'static str,
}

impl Grid {
    fn empty(self) -> Result<(MemoryStorage, Array)> {
        let (storage, last) = (MemoryStorage::new(), self.side - 1);
        let dim = |name: &str| {
            format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{last}"],"tile":"{}"}}"#, self.tile)
        };
        let attr = format!(r#"{{"name":"v","dtype":"int64","filters":"{}"}}"#, self.filters);
        let json = format!(r#"{{"dims":[{},{}],"attrs":[{attr}]}}"#, dim("y"), dim("x"));
        let array = create(Arc::new(storage.clone()), &json)?;
        Ok((storage, array))
    }

    fn full(self) -> Result<(MemoryStorage, Array)> {
        let (storage, array) = self.empty()?;
        let values = longs(self.cells((0, self.side - 1), (0, self.side - 1), ReadOrder::Row))?;
        let staged = array.stage_dense(None, &vec![("v".to_owned(), values.view())], Order::Row, &Call::default())?;
        array.commit(vec![staged], None)?;
        Ok((storage, array))
    }

    fn cells(self, rows: (i64, i64), columns: (i64, i64), order: ReadOrder) -> Vec<i64> {
        let (ys, xs) = (rows.0..=rows.1, columns.0..=columns.1);
        if order == ReadOrder::Col {
            return xs.flat_map(|x| ys.clone().map(move |y| slope(y, x))).collect();
        }
        ys.flat_map(|y| xs.clone().map(move |x| slope(y, x))).collect()
    }

    fn named(self, what: &str) -> String {
        format!("dense/{what}/{}", self.filters)
    }

    /// One write of everything, and its commit.
    pub(crate) fn load(self) -> Case {
        Case::once(self.named("load"), (self.side * self.side) as u64 * CELL_BYTES, move || {
            let (_, array) = self.empty()?;
            let expected = self.cells((0, self.side - 1), (0, self.side - 1), ReadOrder::Row);
            let (values, written) = (longs(expected.iter().copied())?, array.clone());
            work(
                move || {
                    let data = vec![("v".to_owned(), values.view())];
                    written.commit(vec![written.stage_dense(None, &data, Order::Row, &Call::default())?], None)
                },
                move |version| {
                    let array = array.at(At::Version(*version))?;
                    Ok(holds(&array.read(None, None, ReadOrder::Row, &Call::default())?.0, &expected))
                },
            )
        })
    }

    /// Boxes: a tile, an unaligned box, a row, a column, a transposed box.
    pub(crate) fn reads(self) -> Vec<Case> {
        let (tile, half, last) = (self.tile, self.tile / 2, self.side - 1);
        let odd = (half + 1, half + tile);
        let asked = [
            ("tile", (tile, 2 * tile - 1), (tile, 2 * tile - 1), ReadOrder::Row),
            ("box", odd, odd, ReadOrder::Row),
            ("row", (half, half), (0, last), ReadOrder::Row),
            ("column", (0, last), (half, half), ReadOrder::Row),
            ("transposed", odd, odd, ReadOrder::Col),
        ];
        let case = |(name, rows, columns, order): (&str, _, _, _)| {
            self.read(self.named(&format!("read/{name}")), rows, columns, order)
        };
        asked.into_iter().map(case).collect()
    }

    /// A box of a few cells in the middle: finding it is most of the work.
    pub(crate) fn plan(self) -> Case {
        let (from, to) = (self.side / 2 - 2, self.side / 2 + 1);
        self.read(format!("plan/tiles/{}", (self.side / self.tile).pow(2)), (from, to), (from, to), ReadOrder::Row)
    }

    fn read(self, name: String, rows: (i64, i64), columns: (i64, i64), order: ReadOrder) -> Case {
        let cells = (rows.1 - rows.0 + 1) * (columns.1 - columns.0 + 1);
        Case::repeated(name, cells as u64 * CELL_BYTES, move || {
            let array = reopen(&self.full()?.0)?;
            let (sub, expected) = (texts(&[rows, columns]), self.cells(rows, columns, order));
            work(
                move || Ok(array.read(Some(&sub), None, order, &Call::default())?.0),
                move |cells| Ok(holds(cells, &expected)),
            )
        })
    }

    /// Random cells in one call.
    pub(crate) fn points(self, count: usize) -> Case {
        Case::repeated(format!("points/{count}/{}", self.filters), 0, move || {
            let array = reopen(&self.full()?.0)?;
            let rows = Rows::new(&places(count, self.side, self.side), slope)?;
            let expected = rows.values();
            work(move || rows.read(&array), move |cells| Ok(holds(cells, &expected)))
        })
    }

    /// Random cells changed in one commit.
    pub(crate) fn update(self, count: usize) -> Case {
        Case::once(self.named(&format!("update/{count}")), 0, move || self.updated(count))
    }

    fn updated(self, count: usize) -> Result<Box<dyn Work>> {
        let array = reopen(&self.full()?.0)?;
        let places = places(count, self.side, self.side);
        let (rows, again) = (Rows::new(&places, |y, x| y - x)?, Rows::new(&places, |y, x| y - x)?);
        let written = array.clone();
        work(
            move || rows.write(&written),
            move |version| {
                let array = array.at(At::Version(*version))?;
                Ok(holds(&again.read(&array)?, &again.values()))
            },
        )
    }
}
