//! Converts coordinates from the users' form, a column per dimension, to ordered keys, a column per axis. All code that
//! stores and orders cells uses keys alone. A column of texts has a column of keys per word (`schema::text`).

use super::{Column, ColumnView};
use crate::base::{AlignedBuf, Cancel, Error, NeverCancel, Result};
use crate::schema::text::{append_text, word};
use crate::schema::{Coordinate, Datatype, Dimension, KeyRange, Schema, Subarray, key};

/// How many rows are processed between two checks for cancellation: a few milliseconds of work.
pub const PORTION: usize = 1 << 18;
/// How many rows have their keys made at a time if they are only checked.
const CHECKED: usize = 16_384;

/// The coordinates as checked ordered keys, a column per axis. The checks: one column per dimension of the right type
/// and equal length, no null, no NaN, inside the domain, no text that is too long.
pub fn coordinate_keys(cancel: &dyn Cancel, schema: &Schema, dims: &[ColumnView<'_>]) -> Result<Vec<Vec<u64>>> {
    let count = schema.coordinates().count();
    if dims.len() != count {
        return Err(Error::input(format!(
            "coordinates of {} dimensions were given, the array has {count}",
            dims.len()
        )));
    }
    let cells = dims.first().map_or(0, ColumnView::len);
    if u32::try_from(cells).is_err() {
        return Err(Error::input(format!("{cells} cells in one write are too many; write at most 2^32 - 1 at once")));
    }
    let mut all = Vec::with_capacity(schema.ndim());
    for (dim, view) in schema.coordinates().zip(dims) {
        cancel.check()?;
        let named = |what: String| Error::input(format!("dimension {:?}: {what}", dim.name()));
        if view.datatype() != dim.datatype() {
            return Err(named(format!("coordinates of {} were given, it has {}", view.datatype(), dim.datatype())));
        }
        if view.len() != cells {
            return Err(named(format!("{} coordinates were given, other dimensions have {cells}", view.len())));
        }
        if let Some(row) = view.validity().and_then(|v| v.iter().position(|b| *b == 0)) {
            return Err(named(format!("row {row}: a null is no coordinate; drop such rows or fill them")));
        }
        let Some(axis) = dim.number() else {
            check_texts(cancel, dim, *view)?;
            all.extend(words_of(cancel, *view, dim.axes().len())?);
            continue;
        };
        let keys = encode_polled(cancel, dim.datatype(), view.values())
            .map_err(|e| e.context(format!("dimension {:?}", dim.name())))?;
        check_domain(cancel, axis, &keys)?;
        all.push(keys);
    }
    Ok(all)
}

/// How many cells these coordinates are for, checked as [`coordinate_keys`] does, in little memory: the keys of all
/// would take as much as the coordinates.
pub fn check_coordinates(cancel: &dyn Cancel, schema: &Schema, dims: &[ColumnView<'_>]) -> Result<usize> {
    let cells = dims.first().map_or(0, ColumnView::len);
    let whole = || coordinate_keys(cancel, schema, dims).map(|_| cells);
    if cells <= CHECKED || dims.len() != schema.coordinates().count() || dims.iter().any(|dim| dim.len() != cells) {
        return whole();
    }
    for from in (0..cells).step_by(CHECKED) {
        let portion: Vec<Column> = dims.iter().map(|dim| dim.copy_range(from, (from + CHECKED).min(cells))).collect();
        let portion: Vec<ColumnView<'_>> = portion.iter().map(Column::view).collect();
        if coordinate_keys(cancel, schema, &portion).is_err() {
            // Runs over all rows again, to find the row's number.
            return whole();
        }
    }
    Ok(cells)
}

/// The domain of `schema` made to reach to these coordinates, in little memory. They are checked as [`coordinate_keys`]
/// does, but they may lie anywhere in `reachable`.
pub fn reached_domain(
    cancel: &dyn Cancel,
    schema: &Schema,
    reachable: &Subarray,
    dims: &[ColumnView<'_>],
) -> Result<Subarray> {
    let widest = schema.reaching(reachable);
    let cells = dims.first().map_or(0, ColumnView::len);
    let step = if dims.iter().any(|dim| dim.len() != cells) { cells } else { CHECKED };
    let mut ranges = schema.domain().ranges().to_vec();
    for from in (0..cells.max(1)).step_by(step.max(1)) {
        let portion: Vec<Column> =
            dims.iter().map(|dim| dim.copy_range(from.min(dim.len()), (from + step).min(dim.len()))).collect();
        let portion: Vec<ColumnView<'_>> = portion.iter().map(Column::view).collect();
        let Ok(keys) = coordinate_keys(cancel, &widest, &portion) else {
            // Runs over all rows again, to find the row's number.
            coordinate_keys(cancel, &widest, dims)?;
            continue;
        };
        for (range, keys) in ranges.iter_mut().zip(&keys) {
            if let (Some(lo), Some(hi)) = (keys.iter().min(), keys.iter().max()) {
                *range = range.joined(KeyRange::new(*lo, *hi));
            }
        }
    }
    Ok(Subarray::new(ranges))
}

fn check_domain(cancel: &dyn Cancel, dim: &Dimension, keys: &[u64]) -> Result<()> {
    let range = dim.range();
    for (number, portion) in keys.chunks(PORTION).enumerate() {
        cancel.check()?;
        // All are compared, without a branch per cell; the row is searched only if one fails.
        if portion.iter().fold(true, |inside, k| inside & range.contains(*k)) {
            continue;
        }
        let at = portion.iter().position(|k| !range.contains(*k)).unwrap_or(0);
        let found = portion.get(at).map(|k| dim.shown(*k)).unwrap_or_default();
        let ends = match range.is_empty() {
            true => ", which has no coordinate yet".to_owned(),
            false => format!(" {}", dim.shown_domain()),
        };
        return Err(Error::bounds(format!(
            "row {}: coordinate {found} of dimension {:?} is outside its domain{ends}; let it grow with the write (grow=True), \
             or leave the row out",
            number * PORTION + at,
            dim.name()
        )));
    }
    Ok(())
}

/// An Input error names the first row whose text is no valid coordinate.
fn check_texts(cancel: &dyn Cancel, dim: Coordinate<'_>, view: ColumnView<'_>) -> Result<()> {
    for from in (0..view.len()).step_by(PORTION) {
        cancel.check()?;
        for row in from..(from + PORTION).min(view.len()) {
            dim.check_text(view.value(row)).map_err(|e| e.context(format!("dimension {:?}: row {row}", dim.name())))?;
        }
    }
    Ok(())
}

/// The words of a column of texts, a column per word.
fn words_of(cancel: &dyn Cancel, view: ColumnView<'_>, count: usize) -> Result<Vec<Vec<u64>>> {
    let mut all: Vec<Vec<u64>> = (0..count).map(|_| Vec::with_capacity(view.len())).collect();
    for from in (0..view.len()).step_by(PORTION) {
        cancel.check()?;
        for row in from..(from + PORTION).min(view.len()) {
            let text = view.value(row);
            all.iter_mut().enumerate().for_each(|(number, words)| words.push(word(text, number)));
        }
    }
    Ok(all)
}

/// Like [`key::encode`], with checks for cancellation between portions.
pub fn encode_polled(cancel: &dyn Cancel, datatype: Datatype, values: &[u8]) -> Result<Vec<u64>> {
    let width = datatype.width().unwrap_or(1);
    let mut keys = Vec::with_capacity(values.len() / width);
    for portion in values.chunks(PORTION * width) {
        cancel.check()?;
        match key::encode(datatype, portion) {
            Ok(some) => keys.extend_from_slice(&some),
            // Runs over all rows again, to find the row's number.
            Err(_) => return key::encode(datatype, values),
        }
    }
    Ok(keys)
}

/// The keys of coordinates from a read, a column per axis.
pub fn axis_keys(schema: &Schema, dims: &[Column]) -> Result<Vec<Vec<u64>>> {
    let mut all = Vec::with_capacity(schema.ndim());
    for (dim, column) in schema.coordinates().zip(dims) {
        match dim.number() {
            Some(axis) => all.push(key::encode(axis.datatype(), column.view().values())?),
            None => all.extend(words_of(&NeverCancel, column.view(), dim.axes().len())?),
        }
    }
    Ok(all)
}

/// The values of these ordered keys as a column.
pub fn coordinate_column(datatype: Datatype, keys: &[u64]) -> Result<Column> {
    let mut values = Vec::with_capacity(keys.len() * datatype.width().unwrap_or(8));
    key::decode(datatype, keys.iter().copied(), &mut values);
    Column::new(datatype, AlignedBuf::from_slice(&values), None, None)
}

/// The columns of coordinates, one per dimension, of these ordered keys, a column per axis. Corruption if words form no
/// text.
pub fn coordinate_columns(schema: &Schema, keys: &[Vec<u64>]) -> Result<Vec<Column>> {
    let column = |dim: Coordinate<'_>| {
        let keys = keys.get(dim.axes()).unwrap_or_default();
        match (dim.number(), keys) {
            (Some(axis), [keys]) => coordinate_column(axis.datatype(), keys),
            _ => text_column(keys).map_err(|e| e.context(format!("dimension {:?}", dim.name()))),
        }
    };
    schema.coordinates().map(column).collect()
}

/// The texts of these words, given as a column per word, as a column.
pub fn text_column(words: &[Vec<u64>]) -> Result<Column> {
    let rows = words.first().map_or(0, Vec::len);
    let (mut values, mut offsets) = (Vec::with_capacity(rows * 8), Vec::with_capacity(rows + 1));
    offsets.push(0);
    for row in 0..rows {
        append_text(words.iter().filter_map(|column| column.get(row).copied()), &mut values);
        offsets.push(values.len() as u64);
    }
    Column::new(Datatype::String, AlignedBuf::from_slice(&values), Some(offsets), None)
        .map_err(|e| Error::corruption("stored coordinates are no text").with_source(e))
}

/// The same coordinates, in which the word columns of each text dimension are joined to a column of texts.
pub fn joined_texts(schema: &Schema, axes: Vec<Column>) -> Result<Vec<Column>> {
    if schema.coordinates().all(|dim| dim.number().is_some()) {
        return Ok(axes);
    }
    let mut axes = axes.into_iter();
    let mut all = Vec::with_capacity(axes.len());
    for dim in schema.coordinates() {
        let mine: Vec<Column> = axes.by_ref().take(dim.axes().len()).collect();
        if dim.number().is_some() {
            all.extend(mine);
            continue;
        }
        let words =
            mine.iter().map(|c| key::encode(Datatype::UInt64, c.view().values())).collect::<Result<Vec<_>>>()?;
        all.push(text_column(&words).map_err(|e| e.context(format!("dimension {:?}", dim.name())))?);
    }
    Ok(all)
}

/// Empty columns of coordinates, one per dimension.
pub fn no_coordinates(schema: &Schema) -> Vec<Column> {
    schema.coordinates().map(|dim| Column::empty(dim.datatype(), false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_late_nan_is_named_by_its_row() {
        let mut values: Vec<u8> = vec![0; (PORTION + 9) * 4];
        values[(PORTION + 3) * 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = encode_polled(&NeverCancel, Datatype::Float32, &values).unwrap_err();
        assert!(error.message().contains(&format!("row {}", PORTION + 3)), "{error}");
    }

    fn genes(max_bytes: usize) -> Schema {
        let text = format!(
            r#"{{"sparse":true,"dims":[{{"name":"gene","dtype":"string","max_bytes":{max_bytes}}},{{"name":"x","dtype":"int16",
            "domain":["0","9"]}}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        );
        Schema::from_json(&text).unwrap()
    }

    fn texts(all: &[&str]) -> Column {
        let mut offsets = vec![0];
        all.iter().for_each(|t| offsets.push(offsets.last().unwrap() + t.len() as u64));
        Column::new(Datatype::String, AlignedBuf::from_slice(all.concat().as_bytes()), Some(offsets), None).unwrap()
    }

    #[test]
    fn texts_become_words_and_come_back() {
        let (schema, given) = (genes(20), texts(&["", "abcdefgh", "漢字漢字漢字", "a"]));
        let x = coordinate_column(Datatype::Int16, &[3, 4, 5, 6].map(key::from_signed)).unwrap();
        let keys = coordinate_keys(&NeverCancel, &schema, &[given.view(), x.view()]).unwrap();
        assert_eq!((keys.len(), keys[1][2]), (4, word("漢字漢字漢字".as_bytes(), 1)));
        let back = coordinate_columns(&schema, &keys).unwrap();
        assert_eq!(
            (back[0].view().values(), back[0].view().offsets()),
            (given.view().values(), given.view().offsets())
        );
        assert_eq!(axis_keys(&schema, &back).unwrap(), keys);
        let axes = schema.dims().iter().zip(&keys).map(|(d, k)| coordinate_column(d.datatype(), k).unwrap()).collect();
        assert_eq!(joined_texts(&schema, axes).unwrap()[0].view().offsets(), given.view().offsets());
    }

    #[test]
    fn texts_that_cannot_be_coordinates_are_named() {
        let schema = genes(9);
        let x = coordinate_column(Datatype::Int16, &[key::from_signed(1); 2]).unwrap();
        let refused = |second: &str| {
            let given = texts(&["abc", second]);
            let error = coordinate_keys(&NeverCancel, &schema, &[given.view(), x.view()]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            error.to_string()
        };
        let long = refused("0123456789");
        assert!(
            long.contains("row 1") && long.contains("10 bytes") && long.contains("max_bytes") && long.contains("gene")
        );
        assert!(refused("a\0b").contains("row 1") && refused("a\0").contains("NUL"));
        let broken = text_column(&[vec![0xff << 56]]).unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn the_last_text_of_a_portion_is_looked_at() {
        let schema = genes(4);
        for at in [PORTION - 1, PORTION, PORTION + 1] {
            let mut all = vec!["a"; PORTION + 3];
            all[at] = "abcdefghi";
            let x = coordinate_column(Datatype::Int16, &vec![key::from_signed(1); all.len()]).unwrap();
            let given = texts(&all);
            let error = coordinate_keys(&NeverCancel, &schema, &[given.view(), x.view()]).unwrap_err();
            assert!(error.to_string().contains(&format!("row {at}")), "{error}");
        }
    }
}
