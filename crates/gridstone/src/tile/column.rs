//! A column: the cells of one attribute or dimension, contiguous in memory.

use super::by_cell_width;
use crate::base::{AlignedBuf, Cancel, Error, NeverCancel, Result};
use crate::codec::Rounding;
use crate::schema::{Attribute, Datatype};

/// Owned values: fixed width and contiguous, or concatenated with offsets; one validity byte per cell if nullable.
#[derive(Debug, Clone)]
pub struct Column {
    pub(super) datatype: Datatype,
    pub(super) len: usize,
    pub(super) values: AlignedBuf,
    pub(super) offsets: Option<Vec<u64>>,
    pub(super) validity: Option<Vec<u8>>,
}

/// Values borrowed from a [`Column`] or from the caller, in the same layout.
#[derive(Debug, Clone, Copy)]
pub struct ColumnView<'a> {
    pub(super) datatype: Datatype,
    pub(super) len: usize,
    pub(super) values: &'a [u8],
    pub(super) offsets: Option<&'a [u64]>,
    pub(super) validity: Option<&'a [u8]>,
}

impl<'a> ColumnView<'a> {
    /// A checked view of `values` (and, for variable-length types, of `offsets`, from 0, one more than cells). An Input
    /// error says which length does not fit, which offset decreases, or which string is not UTF-8.
    pub fn new(
        datatype: Datatype,
        values: &'a [u8],
        offsets: Option<&'a [u64]>,
        validity: Option<&'a [u8]>,
    ) -> Result<Self> {
        Self::checked(datatype, values, offsets, validity, &NeverCancel)
    }

    /// Like [`ColumnView::new`], checking `cancel` between portions of texts, whose validation takes a while.
    pub fn checked(
        datatype: Datatype,
        values: &'a [u8],
        offsets: Option<&'a [u64]>,
        validity: Option<&'a [u8]>,
        cancel: &dyn Cancel,
    ) -> Result<Self> {
        cancel.check()?;
        let bad = |message: String| Err(Error::input(message));
        let len = match (datatype.width(), offsets) {
            (Some(width), None) if values.len().is_multiple_of(width) => values.len() / width,
            (None, Some(offsets)) => check_offsets(datatype, values, offsets, cancel)?,
            _ => return bad(format!("{} bytes are no column of {datatype}", values.len())),
        };
        if let Some(validity) = validity {
            if validity.len() != len {
                return bad(format!("{} validity bytes were given for {len} cells", validity.len()));
            }
            if let Some(row) = validity.iter().position(|v| *v > 1) {
                return bad(format!("row {row}: a validity byte is 0 or 1"));
            }
        }
        if datatype.holds_bools()
            && let Some(place) = values.iter().position(|v| *v > 1)
        {
            let row = match (datatype.width(), offsets) {
                (None, Some(offsets)) => offsets.partition_point(|end| *end <= place as u64).saturating_sub(1),
                (width, _) => place / width.unwrap_or(1),
            };
            return bad(format!("row {row}: a bool is stored as 0 or 1"));
        }
        Ok(Self { datatype, len, values, offsets, validity })
    }

    /// The type of the values.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All value bytes.
    pub fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Offsets into the value bytes, one more than cells, for variable-length types.
    pub fn offsets(&self) -> Option<&'a [u64]> {
        self.offsets
    }

    /// One byte per cell, 1 valid, 0 null; `None`: all valid.
    pub fn validity(&self) -> Option<&'a [u8]> {
        self.validity
    }

    /// Whether cell `row` has a value.
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.is_none_or(|v| v.get(row) == Some(&1))
    }

    /// The cells `from..to`, of a type of fixed width; `None` of others.
    pub fn part(&self, from: usize, to: usize) -> Option<Self> {
        let width = self.datatype.width()?;
        let values = self.values.get(from * width..to * width)?;
        let validity = self.validity.map(|validity| validity.get(from..to).unwrap_or_default());
        Some(Self { len: to - from, values, validity, ..*self })
    }

    /// The bytes of cell `row`; empty past the end.
    pub fn value(&self, row: usize) -> &'a [u8] {
        let (from, to) = match (self.offsets, self.datatype.width()) {
            (Some(offsets), _) => match (offsets.get(row), offsets.get(row + 1)) {
                (Some(from), Some(to)) => (*from as usize, *to as usize),
                _ => return &[],
            },
            (None, width) => {
                let width = width.unwrap_or(1);
                (row * width, row * width + width)
            }
        };
        self.values.get(from..to).unwrap_or_default()
    }

    /// The cells `from..to` as an owned column.
    pub fn copy_range(&self, from: usize, to: usize) -> Column {
        let mut column = Column::empty(self.datatype, self.validity.is_some());
        column.append(*self, from, to);
        column
    }

    /// The cells `rows`, in that order, as an owned column.
    pub fn gather(&self, rows: &[u32]) -> Column {
        let validity = self.validity.map(|v| rows.iter().map(|r| v.get(*r as usize).copied().unwrap_or(0)).collect());
        let (values, offsets) = match self.datatype.width() {
            Some(width) => {
                let mut values = AlignedBuf::zeroed(rows.len() * width);
                gather_into(self.values, rows, width, values.as_mut_slice());
                (values, None)
            }
            None => {
                let (values, offsets) = self.gather_var(rows);
                (values, Some(offsets))
            }
        };
        Column { datatype: self.datatype, len: rows.len(), values, offsets, validity }
    }

    fn gather_var(&self, rows: &[u32]) -> (AlignedBuf, Vec<u64>) {
        let mut offsets = Vec::with_capacity(rows.len() + 1);
        let mut end = 0u64;
        offsets.push(0);
        for row in rows {
            end += self.value(*row as usize).len() as u64;
            offsets.push(end);
        }
        let mut values = AlignedBuf::zeroed(end as usize);
        let mut rest = values.as_mut_slice();
        for row in rows {
            let value = self.value(*row as usize);
            let (head, tail) = rest.split_at_mut(value.len().min(rest.len()));
            head.copy_from_slice(value);
            rest = tail;
        }
        (values, offsets)
    }
}

/// `len` copies of `value`; a Budget error if there is no memory for them.
pub fn try_vec<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(|e| {
        Error::budget(format!("no memory for {len} cells; ask for a smaller box, or stream it with scan()"))
            .with_source(e)
    })?;
    all.resize(len, value);
    Ok(all)
}

/// How many cells are validated between two checks for cancellation: a few milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 8 } else { 1 << 16 };

fn check_offsets(datatype: Datatype, values: &[u8], offsets: &[u64], cancel: &dyn Cancel) -> Result<usize> {
    let bad = |message: String| Err(Error::input(message));
    if offsets.first() != Some(&0) || offsets.last() != Some(&(values.len() as u64)) {
        return bad(format!("offsets must start at 0 and end at the {} bytes of values", values.len()));
    }
    // Portions overlap by one offset, so that every cell is in one of them.
    for from in (0..offsets.len() - 1).step_by(PORTION) {
        cancel.check()?;
        let portion = offsets.get(from..(from + PORTION + 1).min(offsets.len())).unwrap_or_default();
        if let Some(row) = portion.windows(2).position(|w| matches!(w, [a, b] if a > b)) {
            return bad(format!("row {}: offsets must not decrease", from + row));
        }
        let item = datatype.item_width() as u64;
        if item > 1
            && let Some(row) = portion.iter().position(|offset| !offset.is_multiple_of(item))
        {
            let (row, end) = (from + row - 1, portion.get(row).copied().unwrap_or(0));
            return bad(format!("row {row}: a value of {datatype} ends at byte {end}, within an item of {item} bytes"));
        }
        if datatype == Datatype::String && !all_utf8(values, portion) {
            let row = portion.windows(2).position(|w| !all_utf8(values, w)).unwrap_or(0);
            return bad(format!("row {}: a string is not UTF-8", from + row));
        }
    }
    Ok(offsets.len() - 1)
}

/// Whether each string between these non-decreasing offsets is UTF-8 by itself.
fn all_utf8(values: &[u8], offsets: &[u64]) -> bool {
    let (Some(start), Some(end)) = (offsets.first(), offsets.last()) else { return true };
    let text = values.get(*start as usize..*end as usize).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.is_some_and(|text| text.is_ascii() || offsets.iter().all(|o| text.is_char_boundary((o - start) as usize)))
}

/// Copies the cells `rows`, of `width` bytes each, side by side into `out`, which has room for them.
pub fn gather_into(values: &[u8], rows: &[u32], width: usize, out: &mut [u8]) {
    by_cell_width!(width, N => pick::<N>(values, rows, out), else {
        for (slot, row) in out.chunks_exact_mut(width.max(1)).zip(rows) {
            let at = *row as usize * width;
            if let Some(cell) = values.get(at..at + width) {
                slot.copy_from_slice(cell);
            }
        }
    });
}

fn pick<const N: usize>(values: &[u8], rows: &[u32], out: &mut [u8]) {
    let (cells, _) = values.as_chunks::<N>();
    let (slots, _) = out.as_chunks_mut::<N>();
    for (slot, row) in slots.iter_mut().zip(rows) {
        if let Some(cell) = cells.get(*row as usize) {
            *slot = *cell;
        }
    }
}

/// The column and row of a cell; those of `blank` if they do not exist.
fn cell_of<'a>(
    sources: &[Option<ColumnView<'a>>],
    (source, row): (u32, u32),
    blank: ColumnView<'a>,
) -> (ColumnView<'a>, usize) {
    let found = sources.get(source as usize).copied().flatten().filter(|view| (row as usize) < view.len());
    found.map_or((blank, 0), |view| (view, row as usize))
}

/// Like [`gather_from`], for cells of any width.
fn gather_wide(
    sources: &[Option<ColumnView<'_>>],
    cells: &[(u32, u32)],
    blank: ColumnView<'_>,
    width: usize,
) -> AlignedBuf {
    let mut out = AlignedBuf::zeroed(cells.len() * width);
    for (slot, cell) in out.as_mut_slice().chunks_exact_mut(width.max(1)).zip(cells) {
        let (view, row) = cell_of(sources, *cell, blank);
        slot.copy_from_slice(view.value(row));
    }
    out
}

fn gather_from<const N: usize>(
    sources: &[Option<ColumnView<'_>>],
    cells: &[(u32, u32)],
    blank: ColumnView<'_>,
) -> AlignedBuf {
    let runs: Vec<&[[u8; N]]> = sources.iter().map(|s| s.map_or(&[][..], |view| view.values.as_chunks().0)).collect();
    let blank = blank.values.first_chunk::<N>().copied().unwrap_or([0; N]);
    let mut out = AlignedBuf::zeroed(cells.len() * N);
    for (slot, (source, row)) in out.as_mut_slice().as_chunks_mut().0.iter_mut().zip(cells) {
        *slot = runs.get(*source as usize).and_then(|run| run.get(*row as usize)).copied().unwrap_or(blank);
    }
    out
}

impl Column {
    /// A column without cells.
    pub fn empty(datatype: Datatype, nullable: bool) -> Self {
        let offsets = datatype.is_var().then(|| vec![0]);
        Self { datatype, len: 0, values: AlignedBuf::default(), offsets, validity: nullable.then(Vec::new) }
    }

    /// A column of these parts; the same checks as [`ColumnView::new`].
    pub fn new(
        datatype: Datatype,
        values: AlignedBuf,
        offsets: Option<Vec<u64>>,
        validity: Option<Vec<u8>>,
    ) -> Result<Self> {
        let len = ColumnView::new(datatype, &values, offsets.as_deref(), validity.as_deref())?.len();
        Ok(Self { datatype, len, values, offsets, validity })
    }

    /// The same cells, with floats rounded.
    #[must_use]
    pub fn rounded(mut self, rounding: Rounding) -> Self {
        rounding.round(self.values.as_mut_slice(), self.datatype.element());
        self
    }

    /// `len` cells of a fixed-width attribute's fill, or of null where it is nullable. A Budget error if there is no
    /// memory for them.
    pub fn filled(attr: &Attribute, len: usize) -> Result<Self> {
        let fill = attr.fill();
        let bytes = fill
            .len()
            .checked_mul(len)
            .ok_or_else(|| Error::budget(format!("{len} cells pass this machine's memory")))?;
        let mut values = AlignedBuf::try_zeroed(bytes)?;
        if fill.iter().any(|b| *b != 0) {
            values.as_mut_slice().chunks_exact_mut(fill.len()).for_each(|cell| cell.copy_from_slice(fill));
        }
        let validity = if attr.nullable() { Some(try_vec(0, len)?) } else { None };
        Ok(Self { datatype: attr.datatype(), len, values, offsets: None, validity })
    }

    /// One cell for a row without a value: null where nullable, else the fill.
    pub fn blank(attr: &Attribute) -> Self {
        let fill = if attr.nullable() && attr.datatype().is_var() { &[] } else { attr.fill() };
        let offsets = attr.datatype().is_var().then(|| vec![0, fill.len() as u64]);
        let validity = attr.nullable().then(|| vec![0]);
        Self { datatype: attr.datatype(), len: 1, values: AlignedBuf::from_slice(fill), offsets, validity }
    }

    /// `len` cells like that of [`Column::blank`].
    pub fn blanks(attr: &Attribute, len: usize) -> Result<Self> {
        if attr.datatype().is_var() {
            return Ok(Self::blank(attr).view().gather(&try_vec(0, len)?));
        }
        Self::filled(attr, len)
    }

    /// The same values, all valid, in a nullable column; a nullable column is returned unchanged.
    #[must_use]
    pub fn into_nullable(self) -> Self {
        let validity = self.validity.unwrap_or_else(|| vec![1; self.len]);
        Self { validity: Some(validity), ..self }
    }

    /// The same values, borrowed.
    pub fn view(&self) -> ColumnView<'_> {
        ColumnView {
            datatype: self.datatype,
            len: self.len,
            values: &self.values,
            offsets: self.offsets.as_deref(),
            validity: self.validity.as_deref(),
        }
    }

    /// The type of the values.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of memory that it takes.
    pub fn size_bytes(&self) -> usize {
        self.values.len()
            + self.offsets.as_ref().map_or(0, |o| o.len() * 8)
            + self.validity.as_ref().map_or(0, Vec::len)
    }

    /// Gathers cells of several columns of one type in the requested order: `cells` has for each the index of its
    /// column in `sources` and its row. Missing cells become `blank`, a column of one cell.
    pub fn gathered(sources: &[Option<ColumnView<'_>>], cells: &[(u32, u32)], blank: ColumnView<'_>) -> Self {
        let (values, offsets) = match blank.datatype.width() {
            Some(width) => {
                let values = by_cell_width!(width, N => gather_from::<N>(sources, cells, blank),
                    else gather_wide(sources, cells, blank, width));
                (values, None)
            }
            None => {
                let mut all = Self::empty(blank.datatype, blank.validity.is_some());
                for (source, row) in cells {
                    let (view, row) = cell_of(sources, (*source, *row), blank);
                    all.append(view, row, row + 1);
                }
                return all;
            }
        };
        let validity = blank.validity.map(|_| {
            let valid = |cell: &(u32, u32)| {
                let (view, row) = cell_of(sources, *cell, blank);
                u8::from(view.is_valid(row))
            };
            cells.iter().map(valid).collect()
        });
        Self { datatype: blank.datatype, len: cells.len(), values, offsets, validity }
    }

    /// Reserves room for the values of `cells` more cells of fixed width; a Budget error if there is no memory.
    pub fn try_reserve(&mut self, cells: usize) -> Result<()> {
        self.datatype.width().map_or(Ok(()), |width| self.values.try_reserve(cells.saturating_mul(width)))
    }

    /// Appends all cells of `other`, which has the same type; a Budget error if there is no memory for its values.
    pub fn try_append(&mut self, other: ColumnView<'_>) -> Result<()> {
        self.values.try_reserve(other.values.len())?;
        self.append(other, 0, other.len);
        Ok(())
    }

    /// Appends cells `from..to` of `other`, which has the same type.
    pub fn append(&mut self, other: ColumnView<'_>, from: usize, to: usize) {
        let (from, to) = (from.min(other.len), to.min(other.len));
        if from >= to {
            return;
        }
        if let (Some(offsets), Some(theirs)) = (&mut self.offsets, other.offsets) {
            let run = theirs.get(from..=to).unwrap_or_default();
            let (start, end) = (run.first().copied().unwrap_or(0), run.last().copied().unwrap_or(0));
            let shift = self.values.len() as u64;
            offsets.extend(run.iter().skip(1).map(|o| o - start + shift));
            self.values.extend_from_slice(other.values.get(start as usize..end as usize).unwrap_or_default());
        } else {
            let width = self.datatype.width().unwrap_or(1);
            self.values.extend_from_slice(other.values.get(from * width..to * width).unwrap_or_default());
        }
        match (&mut self.validity, other.validity) {
            (Some(mine), Some(theirs)) => mine.extend_from_slice(theirs.get(from..to).unwrap_or_default()),
            (Some(mine), None) => mine.extend(std::iter::repeat_n(1, to - from)),
            (None, _) => {}
        }
        self.len += to - from;
    }

    /// The parts: values, offsets, validity.
    pub fn into_parts(self) -> (AlignedBuf, Option<Vec<u64>>, Option<Vec<u8>>) {
        (self.values, self.offsets, self.validity)
    }

    /// The values' bytes, for writing in place (fixed-width types), and the validity bytes.
    pub fn parts_mut(&mut self) -> (&mut [u8], Option<&mut [u8]>) {
        (self.values.as_mut_slice(), self.validity.as_deref_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_cells_are_those_appended_one_by_one() {
        let ints = |from: i32, n: i32| (from..from + n).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
        let (a, b) = (ints(10, 3), ints(-5, 2));
        let whole = ColumnView::new(Datatype::Int32, &a, None, None).unwrap();
        let holey = ColumnView::new(Datatype::Int32, &b, None, Some(&[0, 1])).unwrap();
        let blank = ColumnView::new(Datatype::Int32, &[7, 0, 0, 0], None, Some(&[0])).unwrap();
        let texts = ColumnView::new(Datatype::String, b"abc", Some(&[0, 1, 3]), None).unwrap();
        let none = ColumnView::new(Datatype::String, b"", Some(&[0, 0]), Some(&[0])).unwrap();
        // The third source lacks the column, and row 9 is past the end.
        let cells = [(1, 1), (0, 2), (2, 0), (1, 0), (0, 0), (0, 9), (5, 0)];
        for (sources, blank) in [([Some(whole), Some(holey), None], blank), ([Some(texts), None, None], none)] {
            let mut appended = Column::empty(blank.datatype(), true);
            for (source, row) in cells {
                let view = sources.get(source as usize).copied().flatten().filter(|v| (row as usize) < v.len());
                let (view, row) = view.map_or((blank, 0), |v| (v, row as usize));
                appended.append(view, row, row + 1);
            }
            let gathered = Column::gathered(&sources, &cells, blank);
            assert_eq!(gathered.len(), cells.len());
            let value = |c: &Column, row| (c.view().is_valid(row), c.view().value(row).to_vec());
            assert!((0..cells.len()).all(|row| value(&gathered, row) == value(&appended, row)));
        }
    }

    #[test]
    fn cells_of_any_width_are_gathered() {
        for name in
            ["uint8[3]", "uint8[5]", "bytes[7]", "float32[3]", "complex128", "int64[3]", "bytes[100]", "float16"]
        {
            let datatype = Datatype::parse(name).unwrap();
            let width = datatype.width().unwrap();
            let bytes: Vec<u8> = (0..width * 9).map(|i| (i * 7 % 251) as u8).collect();
            let view = ColumnView::new(datatype, &bytes, None, None).unwrap();
            assert_eq!(view.len(), 9);
            let rows = [8, 0, 3, 3];
            let gathered = view.gather(&rows);
            let mut appended = Column::empty(datatype, false);
            rows.iter().for_each(|row| appended.append(view, *row as usize, *row as usize + 1));
            assert_eq!(gathered.view().values(), appended.view().values(), "{name}");
            assert_eq!(gathered.view().value(1), &bytes[..width]);
            let blank = vec![0xaa; width];
            let blank = ColumnView::new(datatype, &blank, None, None).unwrap();
            let picked = Column::gathered(&[Some(view), None], &[(0, 8), (1, 0), (0, 3), (0, 99)], blank);
            assert_eq!(picked.view().value(0), view.value(8), "{name}");
            assert_eq!((picked.view().value(1), picked.view().value(3)), (blank.value(0), blank.value(0)));
            assert!(ColumnView::new(datatype, &bytes[1..], None, None).is_err());
        }
    }

    #[test]
    fn lists_are_whole_items() {
        let list = Datatype::parse("list[int32]").unwrap();
        let view = ColumnView::new(list, &[1; 12], Some(&[0, 8, 8, 12]), None).unwrap();
        assert_eq!((view.len(), view.value(0).len(), view.value(1).len()), (3, 8, 0));
        let error = ColumnView::new(list, &[1; 12], Some(&[0, 8, 10, 12]), None).unwrap_err();
        assert!(error.message().contains("row 1") && error.message().contains("byte 10"), "{error}");
        assert!(ColumnView::new(list, &[1; 10], Some(&[0, 8, 10]), None).is_err());
        let bools = |bytes: &[u8]| {
            ColumnView::new(Datatype::parse("list[bool]").unwrap(), bytes, Some(&[0, 2, 2, 4]), None).map(|v| v.len())
        };
        assert_eq!(bools(&[0, 1, 1, 0]).unwrap(), 3);
        assert!(bools(&[0, 1, 1, 2]).unwrap_err().message().contains("row 2"));
        assert!(bools(&[0, 2, 1, 0]).unwrap_err().message().contains("row 0"));
        let pairs = ColumnView::new(Datatype::parse("bool[2]").unwrap(), &[0, 1, 1, 3], None, None).unwrap_err();
        assert!(pairs.message().contains("row 1"), "{pairs}");
    }

    #[test]
    fn append_and_gather_agree_for_strings() {
        let view =
            ColumnView::new(Datatype::String, "abcdé".as_bytes(), Some(&[0, 1, 1, 4, 6]), Some(&[1, 0, 1, 1])).unwrap();
        let mut appended = Column::empty(Datatype::String, true);
        appended.append(view, 2, 4);
        appended.append(view, 0, 2);
        let gathered = view.gather(&[2, 3, 0, 1]);
        assert_eq!(appended.view().values(), gathered.view().values());
        assert_eq!(appended.view().offsets(), gathered.view().offsets());
        assert_eq!(appended.view().validity(), gathered.view().validity());
        assert_eq!(gathered.view().value(1), "é".as_bytes());
    }

    #[test]
    fn bad_columns_name_the_row() {
        let refuse = |error: Error, word: &str| assert!(error.message().contains(word), "{error}");
        refuse(ColumnView::new(Datatype::String, &[0xc3, 0xa9], Some(&[0, 1, 2]), None).unwrap_err(), "row 0");
        refuse(ColumnView::new(Datatype::String, &[b'a', 0xff], Some(&[0, 1, 2]), None).unwrap_err(), "row 1");
        let many: Vec<u64> = (0..3 * PORTION as u64).collect();
        let mut text = vec![b'a'; many.len() - 1];
        assert_eq!(ColumnView::new(Datatype::String, &text, Some(&many), None).unwrap().len(), text.len());
        // A character of two bytes in two cells, the last of one portion and the first of the next.
        text.splice(PORTION - 1..=PORTION, "é".bytes());
        let expected = format!("row {}:", PORTION - 1);
        refuse(ColumnView::new(Datatype::String, &text, Some(&many), None).unwrap_err(), &expected);
        refuse(ColumnView::new(Datatype::Bytes, &[0, 1], Some(&[0, 2, 1, 2]), None).unwrap_err(), "row 1");
        refuse(ColumnView::new(Datatype::Bytes, &[0, 1], Some(&[0, 1]), None).unwrap_err(), "2 bytes");
        refuse(ColumnView::new(Datatype::Bool, &[0, 2], None, None).unwrap_err(), "row 1");
        refuse(ColumnView::new(Datatype::Int16, &[0; 3], None, None).unwrap_err(), "int16");
        refuse(ColumnView::new(Datatype::Int16, &[0; 4], None, Some(&[1])).unwrap_err(), "validity");
    }
}
