//! Arrays of other producers as columns of an array of ours: each type takes what it can hold without loss, as in the Python package.

use super::convert::{number, number_type, put, tick, time_type};
use super::given::Given;
use crate::field::Field;
use crate::status::{Failure, Outcome};
use gridstone::base::Cancel;
use gridstone::engine::ColumnView;
use gridstone::schema::calendar::in_months;
use gridstone::schema::{Categories, Datatype, Primitive, bytes_to_text};
use std::borrow::Cow;

/// Values of a type, where the producer has them or made anew.
pub(super) struct Values<'a> {
    datatype: Datatype,
    bytes: Cow<'a, [u8]>,
    offsets: Option<Vec<u64>>,
    /// A byte for each value, 0: null; `None`: none is.
    validity: Option<Vec<u8>>,
}

impl Values<'_> {
    /// The values as the engine takes them, checked.
    pub(super) fn view(&self, title: &str, cancel: &dyn Cancel) -> gridstone::base::Result<ColumnView<'_>> {
        let (offsets, validity) = (self.offsets.as_deref(), self.validity.as_deref());
        let view = ColumnView::checked(self.datatype, &self.bytes, offsets, validity, cancel);
        view.map_err(|e| e.context(format!("{title:?}")))
    }
}

/// The error for a column of another type than its field's.
fn unfit(datatype: Datatype, given: &Given<'_>) -> Failure {
    let (title, format) = (given.title, given.format);
    Failure::input(format!("{title:?} is {datatype}, found an Arrow column of format {format:?}; cast it first"))
}

/// The error for a value that a type cannot hold.
fn lost(datatype: Datatype, given: &Given<'_>, row: usize, value: &str) -> Failure {
    let row = given.first_row + row as u64;
    Failure::input(format!(
        "{:?} is {datatype}, found {value} in row {row}, which {datatype} cannot hold; convert the values first",
        given.title
    ))
}

fn is_valid(validity: Option<&[u8]>, row: usize) -> bool {
    validity.is_none_or(|flags| flags.get(row) == Some(&1))
}

/// The column that an array makes for a field.
pub(super) fn column_of<'a>(field: &Field, given: &Given<'a>, cancel: &dyn Cancel) -> Outcome<Values<'a>> {
    let wanted = field.categories.as_ref().map_or(field.datatype, Categories::datatype);
    let values = match given.dictionary()? {
        None => plain(wanted, given)?,
        Some(entries) => decoded(&plain(wanted, &entries)?, given, cancel)?,
    };
    let values = without_nulls(field, given, values)?;
    match &field.categories {
        None => Ok(values),
        Some(known) => coded(field, known, given, &values, cancel),
    }
}

/// Refuses nulls where none may be; such a time is NaT.
fn without_nulls<'a>(field: &Field, given: &Given<'_>, values: Values<'a>) -> Outcome<Values<'a>> {
    let Some(validity) = values.validity.as_deref().filter(|_| !field.nullable) else { return Ok(values) };
    if field.datatype.is_time() && field.categories.is_none() {
        let mut bytes = values.bytes.into_owned();
        let ticks = bytes.chunks_exact_mut(8).zip(validity).filter(|(_, flag)| **flag == 0);
        ticks.for_each(|(tick, _)| tick.copy_from_slice(&i64::MIN.to_ne_bytes()));
        return Ok(Values { bytes: Cow::Owned(bytes), validity: None, ..values });
    }
    match validity.iter().position(|flag| *flag == 0) {
        None => Ok(values),
        Some(row) => Err(Failure::input(format!(
            "{:?} is not nullable, but row {} is null; drop the row or fill it",
            field.name,
            given.first_row + row as u64
        ))),
    }
}

/// The values that indices into a dictionary stand for.
fn decoded<'a>(entries: &Values<'_>, given: &Given<'a>, cancel: &dyn Cancel) -> Outcome<Values<'a>> {
    let entries = entries.view(given.title, cancel)?;
    let index_type = number_type(given.format).filter(|datatype| !datatype.is_float());
    let Some(index_type) = index_type else { return Err(given.unfit("a dictionary, and its values are no indices")) };
    let width = index_type.width().unwrap_or(1);
    let (validity, indices) = (given.validity()?, given.fixed(width)?);
    let (mut flags, mut bytes, mut offsets) = (Vec::with_capacity(given.count), Vec::new(), vec![0u64]);
    let blank = vec![0; entries.datatype().width().unwrap_or(0)];
    for (row, index) in indices.chunks_exact(width).enumerate() {
        let entry = match is_valid(validity.as_deref(), row) {
            false => None,
            true => {
                let found = match number(index_type, index) {
                    Some(super::convert::Number::Whole(index)) => usize::try_from(index).ok(),
                    _ => None,
                };
                let entry = found.filter(|entry| *entry < entries.len()).ok_or_else(|| {
                    let row = given.first_row + row as u64;
                    given.unfit(&format!(
                        "an index in row {row} that is none of the {} entries of its dictionary",
                        entries.len()
                    ))
                })?;
                Some(entry).filter(|entry| entries.is_valid(*entry))
            }
        };
        bytes.extend_from_slice(entry.map_or(&blank, |entry| entries.value(entry)));
        offsets.push(bytes.len() as u64);
        flags.push(u8::from(entry.is_some()));
    }
    Ok(Values {
        datatype: entries.datatype(),
        bytes: Cow::Owned(bytes),
        offsets: entries.offsets().is_some().then_some(offsets),
        validity: flags.contains(&0).then_some(flags),
    })
}

/// Values as the codes of their categories.
fn coded<'a>(
    field: &Field,
    known: &Categories,
    given: &Given<'_>,
    values: &Values<'_>,
    cancel: &dyn Cancel,
) -> Outcome<Values<'a>> {
    let view = values.view(given.title, cancel)?;
    let width = field.datatype.width().unwrap_or(1);
    let mut bytes = Vec::with_capacity(view.len() * width);
    for row in 0..view.len() {
        let code = match view.is_valid(row) {
            false => 0,
            true => known.code_of(view.value(row)).ok_or_else(|| {
                let (shown, row) = (bytes_to_text(known.datatype(), view.value(row)), given.first_row + row as u64);
                Failure::input(format!(
                    "{:?}, row {row}: {shown:?} is none of its {} categories; write one of these, or add it first",
                    field.name,
                    known.len()
                ))
            })?,
        };
        bytes.extend(code.to_le_bytes().into_iter().take(width));
    }
    let validity = values.validity.clone();
    Ok(Values { datatype: field.datatype, bytes: Cow::Owned(bytes), offsets: None, validity })
}

/// Values of a type without categories, of an array without a dictionary.
fn plain<'a>(datatype: Datatype, given: &Given<'a>) -> Outcome<Values<'a>> {
    if given.format == "n" {
        given.check_made(datatype.width().unwrap_or(0))?;
        return Ok(nulls(datatype, given.count));
    }
    let validity = given.validity()?;
    let (bytes, offsets) = match datatype {
        Datatype::String | Datatype::Bytes => texts(datatype, given, validity.as_deref())?,
        Datatype::FixedBytes(width) => (fixed_bytes(datatype, width as usize, given, validity.as_deref())?, None),
        Datatype::Bool if given.format == "b" => (Cow::Owned(given.bools()?), None),
        Datatype::Datetime(_) | Datatype::Timedelta(_) => (times(datatype, given, validity.as_deref())?, None),
        Datatype::List(primitive) => lists(datatype, primitive, given, validity.as_deref())?,
        Datatype::Vector(primitive, shape) => {
            (vectors(datatype, (primitive.datatype(), shape.sides()), given, validity.as_deref())?, None)
        }
        Datatype::Complex64 => (vectors(datatype, (Datatype::Float32, &[2]), given, validity.as_deref())?, None),
        Datatype::Complex128 => (vectors(datatype, (Datatype::Float64, &[2]), given, validity.as_deref())?, None),
        _ => (numbers(datatype, given, validity.as_deref())?, None),
    };
    Ok(Values { datatype, bytes, offsets, validity })
}

/// So many nulls.
fn nulls<'a>(datatype: Datatype, count: usize) -> Values<'a> {
    let bytes = vec![0; datatype.width().unwrap_or(0).saturating_mul(count)];
    let offsets = datatype.is_var().then(|| vec![0; count + 1]);
    Values { datatype, bytes: Cow::Owned(bytes), offsets, validity: (count > 0).then(|| vec![0; count]) }
}

/// Bytes of values, and where each begins.
type Texts<'a> = (Cow<'a, [u8]>, Option<Vec<u64>>);

fn texts<'a>(datatype: Datatype, given: &Given<'a>, validity: Option<&[u8]>) -> Outcome<Texts<'a>> {
    let (short, long, view) = if datatype == Datatype::String { ("u", "U", "vu") } else { ("z", "Z", "vz") };
    let (bytes, offsets) = match given.format {
        format if format == short => given.texts(4)?,
        format if format == long => given.texts(8)?,
        format if format == view => {
            let (bytes, offsets) = given.viewed(validity)?;
            return Ok((Cow::Owned(bytes), Some(offsets)));
        }
        format => match format.strip_prefix("w:").and_then(|width| width.parse::<usize>().ok()) {
            Some(width) if datatype == Datatype::Bytes => {
                if width == 0 {
                    given.check_made(0)?;
                }
                (given.fixed(width)?, (0..=given.count as u64).map(|row| row * width as u64).collect())
            }
            _ => return Err(unfit(datatype, given)),
        },
    };
    Ok((Cow::Borrowed(bytes), Some(offsets)))
}

fn fixed_bytes<'a>(
    datatype: Datatype,
    width: usize,
    given: &Given<'a>,
    validity: Option<&[u8]>,
) -> Outcome<Cow<'a, [u8]>> {
    if given.format == format!("w:{width}") {
        return Ok(Cow::Borrowed(given.fixed(width)?));
    }
    let (bytes, offsets) = match given.format {
        "z" => given.texts(4)?,
        "Z" => given.texts(8)?,
        _ => return Err(unfit(datatype, given)),
    };
    let mut made = Vec::with_capacity(given.count * width);
    for (row, ends) in offsets.windows(2).enumerate() {
        let value = match ends {
            [from, to] => bytes.get(*from as usize..*to as usize).unwrap_or_default(),
            _ => &[],
        };
        match is_valid(validity, row) {
            true if value.len() != width => {
                return Err(lost(datatype, given, row, &format!("{} bytes", value.len())));
            }
            true => made.extend_from_slice(value),
            false => made.resize(made.len() + width, 0),
        }
    }
    Ok(Cow::Owned(made))
}

fn numbers<'a>(datatype: Datatype, given: &Given<'a>, validity: Option<&[u8]>) -> Outcome<Cow<'a, [u8]>> {
    let source = number_type(given.format).ok_or_else(|| unfit(datatype, given))?;
    let width = source.width().unwrap_or(1);
    if source == datatype {
        return Ok(Cow::Borrowed(given.fixed(width)?));
    }
    if [source, datatype].iter().any(|one| matches!(one, Datatype::Float16 | Datatype::Bool)) {
        return Err(unfit(datatype, given));
    }
    let (bytes, blank) = (given.fixed(width)?, vec![0; datatype.width().unwrap_or(1)]);
    let mut made = Vec::with_capacity(given.count * blank.len());
    for (row, bytes) in bytes.chunks_exact(width).enumerate() {
        if !is_valid(validity, row) {
            made.extend_from_slice(&blank);
            continue;
        }
        let number = number(source, bytes).ok_or_else(|| unfit(datatype, given))?;
        put(datatype, number, &mut made).ok_or_else(|| lost(datatype, given, row, &number.to_string()))?;
    }
    Ok(Cow::Owned(made))
}

fn times<'a>(datatype: Datatype, given: &Given<'a>, validity: Option<&[u8]>) -> Outcome<Cow<'a, [u8]>> {
    if given.format == "l" {
        return Ok(Cow::Borrowed(given.fixed(8)?));
    }
    let (step, is_span) = match datatype {
        Datatype::Datetime(step) => (step, false),
        Datatype::Timedelta(step) => (step, true),
        _ => return Err(unfit(datatype, given)),
    };
    let found = time_type(given.format).filter(|(.., span)| *span == is_span && !(is_span && in_months(step.unit())));
    let (width, unit, _) = found.ok_or_else(|| unfit(datatype, given))?;
    let bytes = given.fixed(width)?;
    if unit.step() == step && width == 8 {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut made = Vec::with_capacity(given.count * 8);
    for (row, bytes) in bytes.chunks_exact(width).enumerate() {
        let ticks = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            _ if !is_valid(validity, row) => i64::MIN,
            (Some(long), _) => i64::from_ne_bytes(*long),
            (None, Some(short)) => i32::from_ne_bytes(*short).into(),
            (None, None) => i64::MIN,
        };
        let found = tick(ticks, (unit.step(), step), is_span);
        made.extend_from_slice(
            &found.ok_or_else(|| lost(datatype, given, row, "a time between two steps, or beyond all"))?.to_ne_bytes(),
        );
    }
    Ok(Cow::Owned(made))
}

/// The items of lists or vectors. One that is null is an error, unless what it belongs to is null; a time that is null is NaT.
fn items<'a>(
    (datatype, whole): (Datatype, Datatype),
    given: &Given<'a>,
    belongs: impl Fn(usize) -> bool,
) -> Outcome<Cow<'a, [u8]>> {
    let Values { bytes, validity, .. } = plain(datatype, given)?;
    let Some(validity) = validity else { return Ok(bytes) };
    if datatype.is_time() {
        let field = Field { name: String::new(), datatype, nullable: false, categories: None };
        return Ok(
            without_nulls(&field, given, Values { datatype, bytes, offsets: None, validity: Some(validity) })?.bytes
        );
    }
    match validity.iter().enumerate().position(|(item, flag)| *flag == 0 && belongs(item)) {
        None => Ok(bytes),
        Some(item) => Err(Failure::input(format!(
            "{:?} is {whole}: item {item} of what begins at row {} is null; fill such items",
            given.title, given.first_row
        ))),
    }
}

fn lists<'a>(
    datatype: Datatype,
    primitive: Primitive,
    given: &Given<'a>,
    validity: Option<&[u8]>,
) -> Outcome<Texts<'a>> {
    let (child, ends) = match given.format {
        "+l" | "+L" => {
            given.expect_buffers(2)?;
            let ends = given.offsets(if given.format == "+l" { 4 } else { 8 })?;
            let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
            let child = given.child(0, given.title, first, last - first)?;
            (child, ends.iter().map(|end| end - first).collect::<Vec<usize>>())
        }
        format => {
            let side = format.strip_prefix("+w:").and_then(|side| side.parse::<usize>().ok());
            let side = side.ok_or_else(|| unfit(datatype, given))?;
            given.expect_buffers(1)?;
            if side == 0 {
                given.check_made(0)?;
            }
            (given.items(side)?, (0..=given.count).map(|row| row * side).collect())
        }
    };
    let belongs = |item: usize| is_valid(validity, ends.partition_point(|end| *end <= item).saturating_sub(1));
    let bytes = items((primitive.datatype(), datatype), &child, belongs)?;
    let width = primitive.width();
    Ok((bytes, Some(ends.iter().map(|end| (end * width) as u64).collect())))
}

/// Fixed-size lists in each other, from the outermost axis to the innermost.
fn vectors<'a>(
    datatype: Datatype,
    (item, sides): (Datatype, &[u32]),
    given: &Given<'a>,
    validity: Option<&[u8]>,
) -> Outcome<Cow<'a, [u8]>> {
    let (mut child, mut count) = (*given, 1usize);
    for side in sides {
        if child.format != format!("+w:{side}") {
            return Err(unfit(datatype, given));
        }
        child.expect_buffers(1)?;
        let inner_nulls = if count == 1 { None } else { child.validity()? };
        let bad = |(row, flag): (usize, &u8)| *flag == 0 && is_valid(validity, row / count);
        if inner_nulls.as_deref().unwrap_or_default().iter().enumerate().any(bad) {
            return Err(given.unfit("a null within a vector; fill such items"));
        }
        child = child.items(*side as usize)?;
        count = count.saturating_mul(*side as usize);
    }
    items((item, datatype), &child, |item| is_valid(validity, item / count))
}
