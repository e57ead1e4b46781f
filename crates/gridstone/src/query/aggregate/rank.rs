//! Answers in the order of their columns.
//!
//! The batches of an answer are sorted where they lie: their rows are ranked by words of the values, or by texts. The columns are
//! then gathered one by one, and those of the batches go, so that never more than one column is held twice.

use super::answer::Answer;
use super::columns::join;
use super::key::{Bin, GroupKey};
use super::sort::sort_by;
use crate::base::{AlignedBuf, Cancel, Error, Result};
use crate::tile::{Column, ColumnView};
use std::cmp::Ordering;

/// Rows that are gathered between two looks at whether to go on.
const ROWS_AT_ONCE: usize = 1 << 18;

/// A row: its batch, and its number there.
type Row = (u32, u32);

/// The values of a column by which rows are ranked.
enum Values<'a> {
    Words(Vec<u64>),
    Texts(ColumnView<'a>),
}

/// What ranks the rows of a batch by one column.
struct Rank<'a> {
    values: Values<'a>,
    valid: Option<&'a [u8]>,
}

impl<'a> Rank<'a> {
    /// # Errors
    /// Input: values of this type have no order.
    fn new(name: &str, view: ColumnView<'a>) -> Result<Self> {
        let key = GroupKey { name: name.to_owned(), datatype: view.datatype(), nullable: true, bin: Bin::None };
        key.check()?;
        let values = if key.is_text() { Values::Texts(view) } else { Values::Words(key.words_of_values(view)) };
        Ok(Self { values, valid: view.validity().filter(|valid| valid.contains(&0)) })
    }

    /// The order of two rows of two batches; nulls come last.
    fn compare(&self, row: u32, (other, place): (&Self, u32), descends: bool) -> Ordering {
        let is_null = |rank: &Self, row: u32| rank.valid.is_some_and(|valid| valid.get(row as usize) == Some(&0));
        match (is_null(self, row), is_null(other, place)) {
            (false, false) => {}
            (mine, others) => return mine.cmp(&others),
        }
        let order = match (&self.values, &other.values) {
            (Values::Words(mine), Values::Words(others)) => mine.get(row as usize).cmp(&others.get(place as usize)),
            (Values::Texts(mine), Values::Texts(others)) => mine.value(row as usize).cmp(others.value(place as usize)),
            (Values::Words(_) | Values::Texts(_), _) => Ordering::Equal,
        };
        if descends { order.reverse() } else { order }
    }
}

impl Answer {
    /// The groups of batches of one answer in the order of columns, each with whether it descends; those that are equal there stay
    /// in their order, and nulls come last. At most `limit` groups are left.
    ///
    /// # Errors
    /// Input: there is no such column, or its values have no order; Cancelled.
    pub fn ordered(
        batches: Vec<Self>,
        by: &[(String, bool)],
        limit: Option<usize>,
        cancel: &dyn Cancel,
    ) -> Result<Self> {
        let rows = {
            let mut ranks = Vec::with_capacity(by.len());
            for (name, descends) in by {
                let of_batch = |batch| {
                    cancel.check()?;
                    Rank::new(name, Self::column(batch, name)?.view())
                };
                ranks.push((batches.iter().map(of_batch).collect::<Result<Vec<_>>>()?, *descends));
            }
            let mut rows: Vec<Row> = Vec::with_capacity(batches.iter().map(|batch| batch.rows).sum());
            (0u32..).zip(&batches).for_each(|(batch, held)| rows.extend((0..held.rows as u32).map(|row| (batch, row))));
            sort_by(rows, cancel, |a, b| compare(&ranks, (*a, *b)))?
        };
        gathered(batches, rows.get(..limit.unwrap_or(rows.len())).unwrap_or(&rows), cancel)
    }

    /// Bytes that [`Answer::ordered`] takes beside batches of so many rows, which have these bytes in their largest column.
    pub fn order_bytes(rows: usize, by: usize, largest: u64) -> u64 {
        // Words of the values, and a row twice, as it is sorted into another place; then a column, which grows.
        let sorting = rows as u64 * (8 * by as u64 + 2 * size_of::<Row>() as u64);
        sorting.max(rows as u64 * size_of::<Row>() as u64 + 2 * largest)
    }

    /// Bytes of its columns, one by one.
    pub fn column_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.columns.iter().map(|(_, column)| column.size_bytes() as u64)
    }

    fn column<'a>(batch: &'a Self, name: &str) -> Result<&'a Column> {
        let found = batch.columns.iter().find(|(named, _)| named.name == name).map(|(_, column)| column);
        found.ok_or_else(|| {
            let names: Vec<&str> = batch.columns.iter().map(|(named, _)| named.name.as_str()).collect();
            Error::input(format!("the answer has no column {name:?} to be ordered by; there are {}", names.join(", ")))
        })
    }
}

fn compare(ranks: &[(Vec<Rank<'_>>, bool)], (a, b): (Row, Row)) -> Ordering {
    for (of_batches, descends) in ranks {
        let (Some(mine), Some(others)) = (of_batches.get(a.0 as usize), of_batches.get(b.0 as usize)) else { continue };
        let order = mine.compare(a.1, (others, b.1), *descends);
        if order != Ordering::Equal {
            return order;
        }
    }
    a.cmp(&b)
}

/// Rows of batches as one answer.
fn gathered(batches: Vec<Answer>, rows: &[Row], cancel: &dyn Cancel) -> Result<Answer> {
    let mut named = Vec::new();
    let mut left: Vec<_> = batches.into_iter().map(|batch| batch.columns.into_iter()).collect();
    loop {
        let next: Vec<_> = left.iter_mut().filter_map(Iterator::next).collect();
        let Some((name, _)) = next.first() else { return Ok(Answer { rows: rows.len(), columns: named }) };
        let name = name.clone();
        let sources: Vec<Option<ColumnView<'_>>> = next.iter().map(|(_, column)| Some(column.view())).collect();
        named.push((name, gathered_column(&sources, rows, cancel)?));
    }
}

fn gathered_column(sources: &[Option<ColumnView<'_>>], rows: &[Row], cancel: &dyn Cancel) -> Result<Column> {
    let views = || sources.iter().flatten();
    let Some(first) = views().next() else { return Err(super::state::input::strange()) };
    let (datatype, nullable) = (first.datatype(), views().any(|view| view.validity().is_some()));
    let offsets = datatype.is_var().then(|| vec![0, 0]);
    let bytes = AlignedBuf::zeroed(datatype.width().unwrap_or(0));
    let blank = Column::new(datatype, bytes, offsets, nullable.then(|| vec![0]))?;
    let mut all = Column::empty(datatype, nullable);
    for some in rows.chunks(ROWS_AT_ONCE) {
        cancel.check()?;
        join(&mut all, &Column::gathered(sources, some, blank.view()));
    }
    Ok(all)
}
