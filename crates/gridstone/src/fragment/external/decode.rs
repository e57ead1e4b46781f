//! The cells of a field from a decoded page: gathered from its records, put into this machine's order of bytes, and led
//! through the steps of the field.

use super::value::{DecodingStep, FloatBits, ForeignField, StoredValue, TextPadding, ValueKind};
use crate::base::{AlignedBuf, Error, Result};
use crate::schema::Datatype;
use crate::tile::Column;
use half::f16;

/// A field with the numbers in its steps read.
#[derive(Debug)]
pub(super) struct FieldDecoder {
    field: ForeignField,
    datatype: Datatype,
    nullable: bool,
    /// The bits of stored values that are null, and whether every NaN is.
    nulls: Vec<u64>,
    nan_is_null: bool,
}

impl FieldDecoder {
    /// The decoder of a field whose attribute has this type.
    ///
    /// # Errors
    /// As [`ForeignField::check`]; Input for a null value that is no number in hexadecimal digits.
    pub(super) fn new(field: ForeignField, datatype: Datatype, nullable: bool) -> Result<Self> {
        field.check(datatype, nullable)?;
        let (mut nulls, mut nan_is_null) = (Vec::new(), false);
        for step in &field.steps {
            let DecodingStep::Null { values } = step else { continue };
            for text in values {
                let bits = u64::from_str_radix(text, 16);
                let bits = bits.map_err(|_| Error::input(format!("the null value {text:?} is no number")))?;
                if field.value.kind == ValueKind::Float && float_of(field.value.width, bits).is_nan() {
                    nan_is_null = true;
                } else {
                    nulls.push(bits);
                }
            }
        }
        Ok(Self { field, datatype, nullable, nulls, nan_is_null })
    }

    /// The field.
    pub(super) fn field(&self) -> &ForeignField {
        &self.field
    }

    /// Bytes of a decoded value of fixed width; 0 of others.
    pub(super) fn width(&self) -> usize {
        self.datatype.width().unwrap_or(0)
    }

    /// Copies the values of all cells of a decoded page into `out`, which is as long, if there is nothing else to be done with them.
    /// `false`, and nothing, if there is.
    pub(super) fn copy_plain(&self, page: &[u8], out: &mut [u8]) -> Result<bool> {
        let only_moved = self.field.steps.is_empty() && !self.nullable && !self.datatype.holds_bools();
        if !only_moved {
            return Ok(false);
        }
        let cells = out.len() / self.field.value.size().max(1);
        self.gather(page, cells, out)?;
        Ok(true)
    }

    /// The cells of a decoded page. What lies outside of the array's box (`inside`, if not all of it) may be anything, and becomes blank.
    ///
    /// # Errors
    /// Corruption: the page has too few bytes. Input: a value that has no place in the attribute's type.
    pub(super) fn column(&self, page: &[u8], cells: usize, inside: Option<&[bool]>) -> Result<Column> {
        let size = self.field.value.size();
        let len =
            cells.checked_mul(size).ok_or_else(|| Error::corruption("a page claims more cells than memory has"))?;
        let mut raw = AlignedBuf::try_zeroed(len)?;
        self.gather(page, cells, raw.as_mut_slice())?;
        let outside = |row: usize| inside.is_some_and(|inside| inside.get(row) == Some(&false));
        for (_, cell) in raw.as_mut_slice().chunks_exact_mut(size).enumerate().filter(|(row, _)| outside(*row)) {
            cell.fill(0);
        }
        let validity = if self.nullable { Some(self.validity(raw.as_slice())) } else { None };
        let step = self.field.steps.iter().find(|step| !matches!(step, DecodingStep::Null { .. }));
        if let Some(DecodingStep::Text { padding }) = step {
            let (values, offsets) = texts(raw.as_slice(), size, *padding);
            return self.checked(values, Some(offsets), validity);
        }
        if let Some(DecodingStep::CodePoints) = step {
            let (values, offsets) = texts_of_code_points(raw.as_slice(), size)?;
            return self.checked(values, Some(offsets), validity);
        }
        let mut values = match step {
            None | Some(DecodingStep::Null { .. } | DecodingStep::Text { .. } | DecodingStep::CodePoints) => raw,
            Some(DecodingStep::Scale { factor, add, width }) => self.scaled(raw.as_slice(), (*factor, *add), *width)?,
            Some(DecodingStep::Time { factor, add }) => {
                self.times(raw.as_slice(), (*factor, *add), validity.as_deref())?
            }
            Some(DecodingStep::Codes { values }) => {
                let is_blank =
                    |row: usize| outside(row) || validity.as_ref().is_some_and(|flags| flags.get(row) == Some(&0));
                self.codes(raw.as_slice(), values, is_blank)?
            }
            Some(DecodingStep::Truth) => {
                let truth = |cell: &[u8]| u8::from(cell.iter().any(|byte| *byte != 0));
                AlignedBuf::from_slice(&raw.as_slice().chunks_exact(size).map(truth).collect::<Vec<u8>>())
            }
        };
        clear_nulls(values.as_mut_slice(), validity.as_deref());
        self.checked(values, None, validity)
    }

    fn checked(&self, values: AlignedBuf, offsets: Option<Vec<u64>>, validity: Option<Vec<u8>>) -> Result<Column> {
        Column::new(self.datatype, values, offsets, validity).map_err(|e| Error::input(e.to_string()))
    }

    /// The stored values of all cells, side by side, least significant bytes first.
    fn gather(&self, page: &[u8], cells: usize, out: &mut [u8]) -> Result<()> {
        let ForeignField { offset, step, value, .. } = &self.field;
        let (offset, step, size) = (*offset as usize, *step as usize, value.size());
        let end = cells.checked_sub(1).map_or(0, |last| last.saturating_mul(step).saturating_add(offset + size));
        if page.len() < end || out.len() != cells.saturating_mul(size) {
            return Err(Error::corruption(format!("{cells} cells do not fit the {} bytes of a page", page.len())));
        }
        if offset == 0 && step == size {
            out.copy_from_slice(page.get(..out.len()).unwrap_or_default());
        } else {
            let records = page.get(offset..).unwrap_or_default().chunks(step.max(1));
            for (to, record) in out.chunks_exact_mut(size).zip(records) {
                to.copy_from_slice(record.get(..size).unwrap_or_default());
            }
        }
        if value.big_endian {
            swap(out, value.width);
        }
        Ok(())
    }

    fn validity(&self, raw: &[u8]) -> Vec<u8> {
        let StoredValue { kind, width, .. } = self.field.value;
        let zero_is_null = self.nulls.contains(&0) && kind == ValueKind::Float;
        let sign = 1u64 << (width * 8 - 1).min(63);
        let is_null = |cell: &[u8]| {
            let bits = bits_of(cell);
            self.nulls.contains(&bits)
                || (kind == ValueKind::Float && self.nan_is_null && float_of(width, bits).is_nan())
                || (zero_is_null && bits == sign)
        };
        raw.chunks_exact(self.field.value.size()).map(|cell| u8::from(!is_null(cell))).collect()
    }

    fn scaled(&self, raw: &[u8], by: (Option<FloatBits>, Option<FloatBits>), width: u32) -> Result<AlignedBuf> {
        let value = self.field.value;
        let count = raw.len() / value.size();
        let mut out = AlignedBuf::try_zeroed(count.saturating_mul(width as usize))?;
        let numbers = raw.chunks_exact(value.size()).map(|cell| number(value, bits_of(cell)));
        if width == 4 {
            for (to, x) in out.as_mut_slice().chunks_exact_mut(4).zip(numbers) {
                to.copy_from_slice(&scale_32(x.to_f32(), by).to_le_bytes());
            }
        } else {
            for (to, x) in out.as_mut_slice().chunks_exact_mut(8).zip(numbers) {
                to.copy_from_slice(&scale_64(x.to_f64(), by).to_le_bytes());
            }
        }
        Ok(out)
    }

    fn times(&self, raw: &[u8], (factor, add): (i64, i64), validity: Option<&[u8]>) -> Result<AlignedBuf> {
        let value = self.field.value;
        let mut out = AlignedBuf::try_zeroed((raw.len() / value.size()).saturating_mul(8))?;
        let cells = raw.chunks_exact(value.size()).zip(out.as_mut_slice().chunks_exact_mut(8));
        for (row, (cell, to)) in cells.enumerate() {
            let is_null = validity.is_some_and(|flags| flags.get(row) == Some(&0));
            let steps = if is_null { Some(0) } else { time_of(number(value, bits_of(cell)), factor, add) };
            let steps = steps.ok_or_else(|| {
                Error::input("a time lies outside of what 64 bits of its unit hold; attach with decode=False for the stored numbers")
            })?;
            to.copy_from_slice(&steps.to_le_bytes());
        }
        Ok(out)
    }

    fn codes(&self, raw: &[u8], known: &[i64], is_blank: impl Fn(usize) -> bool) -> Result<AlignedBuf> {
        let (value, width) = (self.field.value, self.datatype.width().unwrap_or(1));
        let mut out = AlignedBuf::try_zeroed((raw.len() / value.size()).saturating_mul(width))?;
        let cells = raw.chunks_exact(value.size()).zip(out.as_mut_slice().chunks_exact_mut(width));
        for (row, (cell, to)) in cells.enumerate() {
            let stored = number(value, bits_of(cell)).to_i128();
            let code = known.iter().position(|of| i128::from(*of) == stored);
            let code = match code {
                None if is_blank(row) => 0,
                code => code.ok_or_else(|| {
                    Error::input(format!(
                        "the value {stored} is none of the enumeration's; attach with decode=False for the stored numbers"
                    ))
                })?,
            };
            to.copy_from_slice((code as u64).to_le_bytes().get(..width).unwrap_or_default());
        }
        Ok(out)
    }
}

/// A stored number, exact.
#[derive(Debug, Clone, Copy)]
enum Number {
    Whole(i128),
    Float32(f32),
    Float64(f64),
}

impl Number {
    fn to_f32(self) -> f32 {
        match self {
            Self::Whole(x) => x as f32,
            Self::Float32(x) => x,
            Self::Float64(x) => x as f32,
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Self::Whole(x) => x as f64,
            Self::Float32(x) => f64::from(x),
            Self::Float64(x) => x,
        }
    }

    fn to_i128(self) -> i128 {
        match self {
            Self::Whole(x) => x,
            Self::Float32(x) => x as i128,
            Self::Float64(x) => x as i128,
        }
    }
}

fn number(value: StoredValue, bits: u64) -> Number {
    let shift = 64 - 8 * value.width.min(8);
    match (value.kind, value.width) {
        (ValueKind::Int, _) => Number::Whole(i128::from((bits << shift) as i64 >> shift)),
        (ValueKind::UInt | ValueKind::Bytes, _) => Number::Whole(i128::from(bits)),
        (ValueKind::Float, 8) => Number::Float64(f64::from_bits(bits)),
        (ValueKind::Float, width) => Number::Float32(float_of(width, bits) as f32),
    }
}

fn float_of(width: u32, bits: u64) -> f64 {
    match width {
        2 => f16::from_bits(bits as u16).to_f64(),
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The little-endian number in at most eight bytes.
fn bits_of(cell: &[u8]) -> u64 {
    cell.iter().take(8).rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// Each operation is done in the wider of both types and rounded to float32, as NumPy does in place.
fn scale_32(mut x: f32, (factor, add): (Option<FloatBits>, Option<FloatBits>)) -> f32 {
    let step = |x: f32, by: FloatBits, wide: fn(f64, f64) -> f64, narrow: fn(f32, f32) -> f32| match by.width {
        4 => narrow(x, by.value() as f32),
        _ => wide(f64::from(x), by.value()) as f32,
    };
    if let Some(by) = factor {
        x = step(x, by, |a, b| a * b, |a, b| a * b);
    }
    if let Some(by) = add {
        x = step(x, by, |a, b| a + b, |a, b| a + b);
    }
    x
}

fn scale_64(x: f64, (factor, add): (Option<FloatBits>, Option<FloatBits>)) -> f64 {
    let x = factor.map_or(x, |by| x * by.value());
    add.map_or(x, |by| x + by.value())
}

/// The least number of 64 bits: no time, as in NumPy.
const NOT_A_TIME: i64 = i64::MIN;

/// The steps since 1970 of a stored time; `None` if they pass 64 bits. A NaN is no time.
fn time_of(stored: Number, factor: i64, add: i64) -> Option<i64> {
    let exact = |x: i128| x.checked_mul(i128::from(factor))?.checked_add(i128::from(add));
    let steps = match stored {
        // Writers of times store NaT as it is, whatever their numbers count.
        Number::Whole(x) if x == i128::from(NOT_A_TIME) => return Some(NOT_A_TIME),
        Number::Whole(x) => exact(x)?,
        other => {
            let x = other.to_f64();
            if x.is_nan() {
                return Some(NOT_A_TIME);
            }
            // The whole part is exact; the rest is less than one stored unit.
            let whole = x.floor();
            if whole.abs() >= 2f64.powi(63) {
                return None;
            }
            exact(whole as i128)? + ((x - whole) * factor as f64).round_ties_even() as i128
        }
    };
    i64::try_from(steps).ok().filter(|steps| *steps != NOT_A_TIME)
}

/// Swaps the bytes of each number of `width` bytes.
fn swap(bytes: &mut [u8], width: u32) {
    match width {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|n| n.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|n| n.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|n| n.reverse()),
        _ => {}
    }
}

/// Zeros in place of what is null, as native blocks have there.
fn clear_nulls(values: &mut [u8], validity: Option<&[u8]>) {
    let Some(flags) = validity.filter(|flags| !flags.is_empty()) else { return };
    let width = values.len() / flags.len();
    for (cell, _) in values.chunks_exact_mut(width.max(1)).zip(flags).filter(|(_, flag)| **flag == 0) {
        cell.fill(0);
    }
}

/// The texts of little-endian code points in places of `size` bytes, one after the other, and where each begins.
///
/// # Errors
/// Input: a number is no code point.
fn texts_of_code_points(raw: &[u8], size: usize) -> Result<(AlignedBuf, Vec<u64>)> {
    let (mut values, mut offsets) = (AlignedBuf::default(), vec![0]);
    for cell in raw.chunks_exact(size.max(4)) {
        let points = cell.as_chunks::<4>().0;
        let len = points.iter().rposition(|point| *point != [0; 4]).map_or(0, |last| last + 1);
        for point in points.iter().take(len) {
            let number = u32::from_le_bytes(*point);
            let letter = char::from_u32(number);
            let letter =
                letter.ok_or_else(|| Error::input(format!("the number {number:#x} in a text is no code point")))?;
            values.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        offsets.push(values.len() as u64);
    }
    Ok((values, offsets))
}

/// The texts in places of `size` bytes, one after the other, and where each begins.
fn texts(raw: &[u8], size: usize, padding: TextPadding) -> (AlignedBuf, Vec<u64>) {
    let (mut values, mut offsets) = (AlignedBuf::default(), vec![0]);
    for cell in raw.chunks_exact(size.max(1)) {
        let len = match padding {
            TextPadding::Terminated => cell.iter().position(|byte| *byte == 0).unwrap_or(cell.len()),
            TextPadding::Zeros => cell.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1),
            TextPadding::Spaces => cell.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1),
        };
        values.extend_from_slice(cell.get(..len).unwrap_or_default());
        offsets.push(values.len() as u64);
    }
    (values, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::schema::TimeUnit;

    fn field(kind: ValueKind, width: u32, steps: Vec<DecodingStep>) -> ForeignField {
        let value = StoredValue { kind, width, count: 1, big_endian: false };
        ForeignField { attr: 0, list: 0, offset: 0, step: width, value, steps }
    }

    fn decoded(field: ForeignField, datatype: Datatype, nullable: bool, page: &[u8], cells: usize) -> Result<Column> {
        FieldDecoder::new(field, datatype, nullable)?.column(page, cells, None)
    }

    fn floats(column: &Column) -> Vec<f32> {
        column.view().values().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    fn whole(column: &Column) -> Vec<i64> {
        column.view().values().as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect()
    }

    #[test]
    fn members_of_big_endian_records_are_gathered() {
        let page = [9, 0x01, 0x02, 9, 9, 9, 0xff, 0xfe, 9, 9];
        let mut of = field(ValueKind::Int, 2, vec![]);
        (of.offset, of.step, of.value.big_endian) = (1, 5, true);
        let column = decoded(of.clone(), Datatype::Int16, false, &page, 2).unwrap();
        assert_eq!(column.view().values(), [0x02, 0x01, 0xfe, 0xff]);
        // The record of the last cell may end with its value.
        assert!(decoded(of.clone(), Datatype::Int16, false, &page[..8], 2).is_ok());
        let error = decoded(of.clone(), Datatype::Int16, false, &page[..7], 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let mut out = [0; 4];
        assert!(FieldDecoder::new(of, Datatype::Int16, false).unwrap().copy_plain(&page, &mut out).unwrap());
        assert_eq!(out, [0x02, 0x01, 0xfe, 0xff]);
    }

    #[test]
    fn fill_values_are_null_and_the_others_are_scaled_as_numpy_does() {
        let steps = vec![
            DecodingStep::Null { values: vec!["fc19".into()] },
            DecodingStep::Scale {
                factor: Some(FloatBits::new(0.01, 8)),
                add: Some(FloatBits::new(273.15, 8)),
                width: 4,
            },
        ];
        let page: Vec<u8> = [-999i16, 0, 1234].iter().flat_map(|n| n.to_le_bytes()).collect();
        let column = decoded(field(ValueKind::Int, 2, steps.clone()), Datatype::Float32, true, &page, 3).unwrap();
        let expected = [0.0, 273.15f32, ((1234.0 * 0.01) as f32 as f64 + 273.15) as f32];
        assert_eq!((floats(&column).as_slice(), column.view().validity()), (&expected[..], Some(&[0, 1, 1][..])));
        let refused = decoded(field(ValueKind::Int, 2, steps), Datatype::Float32, false, &page, 3).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Input, "{refused}");
    }

    #[test]
    fn every_nan_and_both_zeros_are_null_where_one_is() {
        let nan = vec![DecodingStep::Null { values: vec![format!("{:x}", f32::NAN.to_bits())] }];
        let zero = vec![DecodingStep::Null { values: vec!["0".into()] }];
        let odd_nan = f32::from_bits(0xffc1_2345);
        let page: Vec<u8> = [1.0, odd_nan, -0.0, 0.0].iter().flat_map(|n: &f32| n.to_le_bytes()).collect();
        let valid = |steps| {
            let column = decoded(field(ValueKind::Float, 4, steps), Datatype::Float32, true, &page, 4).unwrap();
            column.view().validity().unwrap().to_vec()
        };
        assert_eq!(valid(nan), [1, 0, 1, 1]);
        assert_eq!(valid(zero), [1, 1, 0, 0]);
    }

    #[test]
    fn times_are_exact_and_never_wrap() {
        let time = Datatype::Datetime(TimeUnit::Second.step());
        let hours = |kind, width| field(kind, width, vec![DecodingStep::Time { factor: 3_600, add: 86_400 }]);
        let page: Vec<u8> = [-1i32, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(whole(&decoded(hours(ValueKind::Int, 4), time, false, &page, 2).unwrap()), [82_800, 93_600]);
        let page: Vec<u8> = [0.5f64, f64::NAN, -0.25].iter().flat_map(|n| n.to_le_bytes()).collect();
        let column = decoded(hours(ValueKind::Float, 8), time, false, &page, 3).unwrap();
        assert_eq!(whole(&column), [88_200, i64::MIN, 85_500]);
        let none = decoded(hours(ValueKind::Int, 8), time, false, &i64::MIN.to_le_bytes(), 1).unwrap();
        assert_eq!(whole(&none), [i64::MIN]);
        for beyond in [i64::MAX, i64::MAX / 3_600 + 1, i64::MIN + 1].map(i64::to_le_bytes) {
            let error = decoded(hours(ValueKind::Int, 8), time, false, &beyond, 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        }
        let huge = decoded(hours(ValueKind::Float, 8), time, false, &1e300f64.to_le_bytes(), 1).unwrap_err();
        assert_eq!(huge.kind(), ErrorKind::Input, "{huge}");
    }

    #[test]
    fn enumerations_become_codes_and_an_unknown_value_is_named() {
        let steps = vec![DecodingStep::Codes { values: vec![-1, 7, 3] }];
        let of = field(ValueKind::Int, 1, steps);
        let column = decoded(of.clone(), Datatype::UInt16, false, &[7, 0xff, 3], 3).unwrap();
        assert_eq!(column.view().values(), [1, 0, 0, 0, 2, 0]);
        let error = decoded(of, Datatype::UInt16, false, &[9], 1).unwrap_err();
        assert!(error.to_string().contains("the value 9"), "{error}");
    }

    #[test]
    fn cells_outside_of_the_box_may_hold_anything() {
        let of = |field, datatype, page: &[u8]| {
            let decoder = FieldDecoder::new(field, datatype, false).unwrap();
            assert!(decoder.column(page, 2, None).is_err());
            decoder.column(page, 2, Some(&[true, false])).unwrap()
        };
        let codes = field(ValueKind::Int, 1, vec![DecodingStep::Codes { values: vec![5, 7] }]);
        assert_eq!(of(codes, Datatype::UInt8, &[7, 9]).view().values(), [1, 0]);
        let time = field(ValueKind::Float, 8, vec![DecodingStep::Time { factor: 86_400, add: 0 }]);
        let page: Vec<u8> = [1.0f64, 9.97e36].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(whole(&of(time, Datatype::Datetime(TimeUnit::Second.step()), &page)), [86_400, 0]);
        let text = field(ValueKind::Bytes, 1, vec![DecodingStep::Text { padding: TextPadding::Zeros }]);
        assert_eq!(of(text, Datatype::String, &[b'a', 0xff]).view().values(), b"a");
    }

    #[test]
    fn texts_end_where_their_padding_begins() {
        let cut = |padding, page: &[u8]| {
            let of = field(ValueKind::Bytes, 4, vec![DecodingStep::Text { padding }]);
            let column = decoded(of, Datatype::String, false, page, page.len() / 4).unwrap();
            (0..column.len()).map(|n| column.view().value(n).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(cut(TextPadding::Terminated, b"a\0b\0abcd\0\0\0\0"), [&b"a"[..], b"abcd", b""]);
        assert_eq!(cut(TextPadding::Zeros, b"a\0b\0ab\0\0"), [&b"a\0b"[..], b"ab"]);
        assert_eq!(cut(TextPadding::Spaces, b" a  a\0  "), [&b" a"[..], b"a\0"]);
        let of = field(ValueKind::Bytes, 1, vec![DecodingStep::Text { padding: TextPadding::Zeros }]);
        let error = decoded(of, Datatype::String, false, &[0xff], 1).unwrap_err();
        assert!(error.kind() == ErrorKind::Input && error.to_string().contains("UTF-8"), "{error}");
    }

    #[test]
    fn code_points_become_utf_8_and_zeros_end_them() {
        let of = |big_endian| ForeignField {
            value: StoredValue { kind: ValueKind::UInt, width: 4, count: 3, big_endian },
            step: 12,
            ..field(ValueKind::UInt, 4, vec![DecodingStep::CodePoints])
        };
        let page = |to: fn(u32) -> [u8; 4], points: [u32; 6]| points.into_iter().flat_map(to).collect::<Vec<u8>>();
        for (big, to) in [(false, u32::to_le_bytes as fn(u32) -> [u8; 4]), (true, u32::to_be_bytes)] {
            let cells = page(to, [0x61, 0, 0x1f600, 0xe4, 0, 0]);
            let column = decoded(of(big), Datatype::String, false, &cells, 2).unwrap();
            assert_eq!(column.view().value(0), "a\0\u{1f600}".as_bytes());
            assert_eq!(column.view().value(1), "\u{e4}".as_bytes());
            let wrong = page(to, [0xd800, 0, 0, 0, 0, 0]);
            let error = decoded(of(big), Datatype::String, false, &wrong, 2).unwrap_err();
            assert!(error.kind() == ErrorKind::Input && error.to_string().contains("0xd800"), "{error}");
        }
        assert!(decoded(of(false), Datatype::Bytes, false, &[0; 12], 1).is_err());
    }

    #[test]
    fn what_is_not_0_is_true_and_types_that_do_not_fit_are_refused() {
        let truth = field(ValueKind::UInt, 1, vec![DecodingStep::Truth]);
        assert_eq!(decoded(truth.clone(), Datatype::Bool, false, &[0, 1, 9], 3).unwrap().view().values(), [0, 1, 1]);
        assert!(decoded(truth, Datatype::Int8, false, &[0], 1).is_err());
        assert!(decoded(field(ValueKind::UInt, 1, vec![]), Datatype::Bool, false, &[9], 1).is_err());
        assert!(decoded(field(ValueKind::Int, 3, vec![]), Datatype::Int32, false, &[0; 3], 1).is_err());
        let mut past = field(ValueKind::Int, 4, vec![]);
        past.offset = 1;
        assert!(decoded(past, Datatype::Int32, false, &[0; 8], 1).is_err());
    }
}
