//! Arrays of other producers: their buffers as slices, whose counts are checked against each other before they are followed.
//!
//! What cannot be checked is the producer's part of the interface: each buffer is as long as the array's length and offset say.

use super::abi::{ArrowArray, ArrowSchema};
use crate::memory::{slice, text};
use crate::status::{Failure, GRIDSTONE_ERROR_BUDGET, Outcome};
use std::ffi::c_void;

/// Bytes that are made of one column whose values take none at the producer.
const MADE_BYTES_MAX: usize = 1 << 30;

/// An array of a producer, and the values of it that are looked at.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    /// The name of the column, for messages.
    pub(super) title: &'a str,
    /// The row of its first value among all that was given before.
    pub(super) first_row: u64,
    pub(super) format: &'a str,
    pub(super) count: usize,
    /// The values in the buffers in front.
    from: usize,
    schema: &'a ArrowSchema,
    array: &'a ArrowArray,
}

/// A count of the interface, which is signed.
fn count_of(number: i64, title: &str, what: &str) -> Outcome<usize> {
    usize::try_from(number)
        .map_err(|_| Failure::input(format!("the Arrow column {title:?} has {number} as its {what}")))
}

/// The format of a schema.
///
/// # Safety
/// The producer has filled the schema as the interface says, and it stays as it is for `'a`.
pub(super) unsafe fn format_of<'a>(schema: &'a ArrowSchema, title: &str) -> Outcome<&'a str> {
    // SAFETY: passed on.
    unsafe { text(schema.format, format_args!("the format of the Arrow column {title:?}")) }
}

/// The children of a schema that are there.
///
/// # Safety
/// As [`format_of`].
pub(super) unsafe fn child_schemas<'a>(schema: &'a ArrowSchema, title: &str) -> Outcome<Vec<&'a ArrowSchema>> {
    let count = count_of(schema.n_children, title, "number of children")?;
    // SAFETY: passed on.
    let children = unsafe { slice(schema.children.cast::<*const ArrowSchema>(), count, "ArrowSchema.children") }?;
    // SAFETY: passed on.
    let child = |pointer: &*const ArrowSchema| unsafe { pointer.as_ref() }.filter(|child| child.release.is_some());
    let found: Option<Vec<&ArrowSchema>> = children.iter().map(child).collect();
    found.ok_or_else(|| Failure::input(format!("a child of the Arrow type of {title:?} was moved away")))
}

impl<'a> Given<'a> {
    /// A whole array.
    ///
    /// # Safety
    /// The producer has filled both as the interface says, and they stay as they are for `'a`.
    pub(super) unsafe fn new(
        title: &'a str,
        first_row: u64,
        schema: &'a ArrowSchema,
        array: &'a ArrowArray,
    ) -> Outcome<Self> {
        // SAFETY: passed on.
        let format = unsafe { format_of(schema, title) }?;
        let (count, from) = (count_of(array.length, title, "length")?, count_of(array.offset, title, "offset")?);
        let ends = from.checked_add(count).is_some_and(|end| isize::try_from(end).is_ok());
        let found = count_of(array.n_children, title, "number of children")?;
        if !ends || i64::try_from(found) != Ok(schema.n_children) {
            let message = format!(
                "the Arrow column {title:?} has {count} values from {from} on and {found} children, and its type has {} children",
                schema.n_children
            );
            return Err(Failure::input(message));
        }
        Ok(Self { title, first_row, format, count, from, schema, array })
    }

    /// The values `from..from + count` of a child, counted from its own first.
    pub(super) fn child(&self, place: usize, title: &'a str, from: usize, count: usize) -> Outcome<Given<'a>> {
        let children = count_of(self.array.n_children, title, "number of children")?;
        // SAFETY: the promise of `new`.
        let (schemas, arrays) = unsafe {
            let arrays = slice(self.array.children.cast::<*const ArrowArray>(), children, "ArrowArray.children")?;
            (child_schemas(self.schema, self.title)?, arrays)
        };
        // SAFETY: the promise of `new`.
        let array = arrays.get(place).and_then(|pointer| unsafe { pointer.as_ref() });
        let array = array.filter(|child| child.release.is_some());
        let (Some(schema), Some(array)) = (schemas.get(place), array) else {
            return Err(Failure::input(format!("the Arrow column {title:?} lacks a child, or it was moved away")));
        };
        // SAFETY: the promise of `new`.
        let child = unsafe { Self::new(title, self.first_row, schema, array) }?;
        if from.checked_add(count).is_none_or(|end| end > child.count) {
            return Err(Failure::input(format!(
                "the Arrow column {title:?} has {} values, and {count} from {from} on are needed",
                child.count
            )));
        }
        Ok(Self { from: child.from + from, count, ..child })
    }

    /// A column of rows.
    pub(super) fn column(&self, place: usize, title: &'a str) -> Outcome<Given<'a>> {
        self.child(place, title, self.from, self.count)
    }

    /// The items of fixed-size lists of so many.
    pub(super) fn items(&self, side: usize) -> Outcome<Given<'a>> {
        let product = |count: usize| {
            count.checked_mul(side).ok_or_else(|| self.unfit("so many items that memory cannot hold them"))
        };
        self.child(0, self.title, product(self.from)?, product(self.count)?)
    }

    /// The entries of the dictionary, if the values are indices into one.
    pub(super) fn dictionary(&self) -> Outcome<Option<Given<'a>>> {
        // SAFETY: the promise of `new`.
        let (schema, array) = unsafe { (self.schema.dictionary.as_ref(), self.array.dictionary.as_ref()) };
        match (schema, array) {
            (None, None) => Ok(None),
            // SAFETY: the promise of `new`.
            (Some(schema), Some(array)) => unsafe { Self::new(self.title, self.first_row, schema, array) }.map(Some),
            _ => Err(Failure::input(format!(
                "the Arrow column {:?} has a dictionary in its type or its values alone",
                self.title
            ))),
        }
    }

    fn buffers(&self) -> Outcome<&'a [*const c_void]> {
        let count = count_of(self.array.n_buffers, self.title, "number of buffers")?;
        // SAFETY: the promise of `new`.
        unsafe { slice(self.array.buffers.cast_const(), count, "ArrowArray.buffers") }
    }

    /// Refuses another number of buffers than the type has.
    pub(super) fn expect_buffers(&self, wanted: usize) -> Outcome<()> {
        match self.array.n_buffers == wanted as i64 {
            true => Ok(()),
            false => Err(Failure::input(format!(
                "the Arrow column {:?} of format {:?} has {} buffers, and such a column has {wanted}",
                self.title, self.format, self.array.n_buffers
            ))),
        }
    }

    /// The first bytes of a buffer.
    pub(super) fn bytes(&self, buffer: usize, count: usize) -> Outcome<&'a [u8]> {
        let pointer = self.buffers()?.get(buffer).copied().unwrap_or(std::ptr::null());
        // SAFETY: the promise of `new`.
        unsafe {
            slice(pointer.cast::<u8>(), count, format_args!("buffer {buffer} of the Arrow column {:?}", self.title))
        }
    }

    /// Values of fixed width.
    pub(super) fn fixed(&self, width: usize) -> Outcome<&'a [u8]> {
        self.expect_buffers(2)?;
        let (start, end) = (self.from.checked_mul(width), (self.from + self.count).checked_mul(width));
        let (Some(start), Some(end)) = (start, end.filter(|_| self.count > 0)) else { return Ok(&[]) };
        Ok(self.bytes(1, end)?.get(start..).unwrap_or_default())
    }

    /// A buffer of bits, a byte for each value.
    fn bits(&self, buffer: usize) -> Outcome<Vec<u8>> {
        if self.count == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.bytes(buffer, (self.from + self.count).div_ceil(8))?;
        let bit = |place: usize| bytes.get(place / 8).map_or(0, |byte| byte >> (place % 8) & 1);
        Ok((self.from..self.from + self.count).map(bit).collect())
    }

    /// Booleans, a byte each.
    pub(super) fn bools(&self) -> Outcome<Vec<u8>> {
        self.expect_buffers(2)?;
        self.bits(1)
    }

    /// Which values are there; `None`: all.
    pub(super) fn validity(&self) -> Outcome<Option<Vec<u8>>> {
        let bitmap = self.buffers()?.first().copied().unwrap_or(std::ptr::null());
        if bitmap.is_null() || self.array.null_count == 0 {
            return match self.array.null_count > 0 {
                true => Err(self.unfit(&format!("{} nulls and no validity buffer", self.array.null_count))),
                false => Ok(None),
            };
        }
        let flags = self.bits(0)?;
        Ok(flags.contains(&0).then_some(flags))
    }

    /// Where each value of variable length begins, and where the last ends; `width`: bytes of an offset.
    pub(super) fn offsets(&self, width: usize) -> Outcome<Vec<usize>> {
        if self.count == 0 {
            return Ok(vec![0]);
        }
        let end = (self.from + self.count + 1).checked_mul(width);
        let bytes = self.bytes(1, end.ok_or_else(|| self.unfit("too many values"))?)?;
        let bytes = bytes.get(self.from * width..).unwrap_or_default();
        let wrong = || self.unfit("offsets that are below 0 or decrease");
        let number = |bytes: &[u8]| match bytes.first_chunk::<8>() {
            Some(long) if width == 8 => i64::from_ne_bytes(*long),
            _ => bytes.first_chunk::<4>().map_or(-1, |short| i32::from_ne_bytes(*short).into()),
        };
        let ends: Option<Vec<usize>> =
            bytes.chunks_exact(width).map(|bytes| usize::try_from(number(bytes)).ok()).collect();
        let ends = ends.ok_or_else(wrong)?;
        match ends.is_sorted() {
            true => Ok(ends),
            false => Err(wrong()),
        }
    }

    /// The bytes of texts, and where each begins, from 0.
    pub(super) fn texts(&self, width: usize) -> Outcome<(&'a [u8], Vec<u64>)> {
        self.expect_buffers(3)?;
        let ends = self.offsets(width)?;
        let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
        let bytes = if last > first { self.bytes(2, last)?.get(first..).unwrap_or_default() } else { &[] };
        Ok((bytes, ends.iter().map(|end| (end - first) as u64).collect()))
    }

    /// Texts that lie in views of 16 bytes: those of up to 12 bytes inline, others in one of several buffers.
    pub(super) fn viewed(&self, validity: Option<&[u8]>) -> Outcome<(Vec<u8>, Vec<u64>)> {
        let buffers = self.buffers()?.len();
        let Some(variadic) = buffers.checked_sub(3) else { return Err(self.unfit(&format!("{buffers} buffers"))) };
        let end = (self.from + self.count).checked_mul(16).ok_or_else(|| self.unfit("too many values"))?;
        let views = if self.count == 0 { &[] } else { self.bytes(1, end)?.get(self.from * 16..).unwrap_or_default() };
        let sizes = self.bytes(buffers - 1, variadic * 8)?.as_chunks::<8>().0;
        let (mut bytes, mut ends) = (Vec::new(), vec![0u64]);
        for (row, view) in views.as_chunks::<16>().0.iter().enumerate() {
            if validity.is_none_or(|flags| flags.get(row) == Some(&1)) {
                let found = self.view(view, sizes)?;
                bytes.extend_from_slice(
                    found.unwrap_or_else(|| view.get(4..).unwrap_or_default()).get(..length(view)).unwrap_or_default(),
                );
            }
            ends.push(bytes.len() as u64);
        }
        Ok((bytes, ends))
    }

    /// The bytes of a view that lies in a buffer; `None`: it is inline.
    fn view(&self, view: &[u8; 16], sizes: &[[u8; 8]]) -> Outcome<Option<&'a [u8]>> {
        let number = |at: usize| {
            view.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(-1, |four| i32::from_ne_bytes(*four))
        };
        let wrong = || self.unfit("a view of bytes that are not there");
        if number(0) < 0 {
            return Err(wrong());
        }
        if number(0) <= 12 {
            return Ok(None);
        }
        let (buffer, from) =
            (usize::try_from(number(8)).map_err(|_| wrong())?, usize::try_from(number(12)).map_err(|_| wrong())?);
        let size = sizes.get(buffer).map(|size| i64::from_ne_bytes(*size)).and_then(|size| usize::try_from(size).ok());
        let bytes = self.bytes(2 + buffer, size.ok_or_else(wrong)?)?;
        bytes.get(from..from.saturating_add(length(view))).map(Some).ok_or_else(wrong)
    }

    /// Refuses more bytes than a column is given whose length no buffer of the producer bears out.
    pub(super) fn check_made(&self, bytes_each: usize) -> Outcome<()> {
        match self.count.checked_mul(bytes_each.saturating_add(size_of::<u64>() + 1)) {
            Some(bytes) if bytes <= MADE_BYTES_MAX => Ok(()),
            _ => Err(Failure::new(
                GRIDSTONE_ERROR_BUDGET,
                format!(
                    "the Arrow column {:?} of format {:?} has {} values without a byte of their own; give fewer in a batch",
                    self.title, self.format, self.count
                ),
            )),
        }
    }

    /// The error for a column that is not as the interface says.
    pub(super) fn unfit(&self, found: &str) -> Failure {
        Failure::input(format!("the Arrow column {:?} of format {:?} has {found}", self.title, self.format))
    }
}

/// The length of a view's text, which is not below 0.
fn length(view: &[u8; 16]) -> usize {
    view.first_chunk::<4>().and_then(|four| usize::try_from(i32::from_ne_bytes(*four)).ok()).unwrap_or(0)
}
