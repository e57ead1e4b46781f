//! Memory of the caller: pointers are checked here before anything follows them.
//!
//! What cannot be checked is the caller's part of the contract, which the header states once. A pointer that is not null points to as many
//! values as the count beside it says. They stay there during the call, and no other thread changes them.

use crate::status::{Failure, GRIDSTONE_ERROR_UNSUPPORTED, Outcome};
use smallvec::SmallVec;
use std::ffi::{CStr, c_char};
use std::fmt::Display;

/// A type of which every pattern of bits is a value.
///
/// # Safety
/// It is one.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers; and a pointer may have any value as long as nothing follows it.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl<T> Plain for *const T {}

/// A struct of C whose first member is its size, a `usize`.
///
/// # Safety
/// It is `repr(C)`, begins with `size: usize`, and every pattern of bits, also all zeros, is a value of it.
pub(crate) unsafe trait OptionStruct: Copy {
    /// Its name in C.
    const NAME: &'static str;

    /// The member that is for later, if it has one: 0.
    fn reserved(&self) -> u32 {
        0
    }
}

fn null(name: impl Display) -> Failure {
    Failure::input(format!("{name} is a null pointer"))
}

/// Refuses what is misaligned or longer than memory can be.
fn check<T>(pointer: *const T, count: usize, name: impl Display) -> Outcome<()> {
    if !pointer.is_aligned() {
        let width = align_of::<T>();
        return Err(Failure::input(format!("{name} is not aligned: its address must be a multiple of {width}")));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Failure::input(format!("{name} has {count} values, which is more than memory can hold"))),
    }
}

/// Values of the caller; a null pointer with a count of 0 is none.
///
/// # Safety
/// A `pointer` that is not null points to `count` values, which nothing changes for as long as `'a`.
pub(crate) unsafe fn slice<'a, T: Plain>(
    pointer: *const T,
    count: usize,
    name: impl Display + Copy,
) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    check(pointer, count, name)?;
    // SAFETY: not null, aligned, no longer than memory; the rest is the caller's promise. All bits are a value of a plain type.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Room of the caller to be filled.
///
/// # Safety
/// As [`slice`]; and nothing else reads the values or points into them for as long as `'a`.
pub(crate) unsafe fn slice_mut<'a, T: Plain>(
    pointer: *mut T,
    count: usize,
    name: impl Display + Copy,
) -> Outcome<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    if pointer.is_null() {
        return Err(null(name));
    }
    check(pointer.cast_const(), count, name)?;
    // SAFETY: as above; that it is alone is the caller's promise, and [`check_apart`] looks at the buffers of one call.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) })
}

/// Refuses buffers of one call that share bytes; each is its first address and its length in bytes.
pub(crate) fn check_apart(spans: impl Iterator<Item = (usize, usize)>) -> Outcome<()> {
    let mut spans: SmallVec<[(usize, usize); 12]> = spans.filter(|(first, bytes)| *first != 0 && *bytes > 0).collect();
    if spans.len() < 2 {
        return Ok(());
    }
    spans.sort_unstable();
    if spans
        .windows(2)
        .any(|pair| matches!(pair, [(first, bytes), (second, _)] if first.saturating_add(*bytes) > *second))
    {
        return Err(Failure::input("two buffers to be filled overlap; give each its own memory"));
    }
    Ok(())
}

/// A text of the caller.
///
/// # Safety
/// A `pointer` that is not null points to bytes that end with a zero, which nothing changes for as long as `'a`.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: impl Display + Copy) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null; the zero at the end is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::input(format!("{name} is no UTF-8: {}", text.to_string_lossy())))
}

/// As [`text`]; `None` for a null pointer.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(pointer: *const c_char, name: impl Display + Copy) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise is passed on.
    unsafe { text(pointer, name) }.map(Some)
}

/// Texts of the caller, of which none is null.
///
/// # Safety
/// As [`slice`] for the pointers, and as [`text`] for each.
pub(crate) unsafe fn texts<'a>(
    first: *const *const c_char,
    count: usize,
    name: impl Display + Copy,
) -> Outcome<Vec<&'a str>> {
    // SAFETY: the caller's promise is passed on.
    let pointers = unsafe { slice(first, count, name) }?;
    let text_at = |(place, pointer): (usize, &*const c_char)| {
        // SAFETY: the caller's promise is passed on.
        unsafe { text(*pointer, format_args!("{name}[{place}]")) }
    };
    pointers.iter().enumerate().map(text_at).collect()
}

/// Texts of the caller, of which each may be null.
///
/// # Safety
/// As [`texts`].
pub(crate) unsafe fn optional_texts<'a>(
    first: *const *const c_char,
    count: usize,
    name: impl Display + Copy,
) -> Outcome<Vec<Option<&'a str>>> {
    // SAFETY: the caller's promise is passed on.
    let pointers = unsafe { slice(first, count, name) }?;
    let text_at = |(place, pointer): (usize, &*const c_char)| {
        // SAFETY: the caller's promise is passed on.
        unsafe { optional_text(*pointer, format_args!("{name}[{place}]")) }
    };
    pointers.iter().enumerate().map(text_at).collect()
}

/// A place of the caller that a result is put into once the call has succeeded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place that must be there.
    ///
    /// # Safety
    /// A `pointer` that is not null points to room for a `T`, which nothing else uses until the call ends.
    pub(crate) unsafe fn new(pointer: *mut T, name: impl Display + Copy) -> Outcome<Self> {
        if pointer.is_null() {
            return Err(null(name));
        }
        check(pointer.cast_const(), 1, name)?;
        Ok(Self(pointer))
    }

    /// A place that may be a null pointer: then nothing is put there.
    ///
    /// # Safety
    /// As [`Out::new`].
    pub(crate) unsafe fn optional(pointer: *mut T, name: impl Display + Copy) -> Outcome<Self> {
        check(pointer.cast_const(), 1, name)?;
        Ok(Self(pointer))
    }

    /// Puts a value there.
    pub(crate) fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null and aligned; that there is room is the promise that `new` was given.
            unsafe { self.0.write(value) };
        }
    }
}

/// No struct of C is larger, in any version: a size beyond is one that was never set.
const STRUCT_BYTES_MAX: usize = 4096;

/// The first member of an option struct.
///
/// # Safety
/// A `pointer` that is not null points to a struct that begins with a `usize`.
unsafe fn size_of_given<T: OptionStruct>(pointer: *const T) -> Outcome<usize> {
    check(pointer, 1, T::NAME)?;
    // SAFETY: not null, as its callers have looked, and aligned; the size is the first member.
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(size_of::<usize>()..=STRUCT_BYTES_MAX).contains(&size) {
        return Err(Failure::input(format!("{0}.size is {size}; set it to sizeof({0})", T::NAME)));
    }
    Ok(size)
}

/// An option struct, as this library knows it: members that the caller's header lacks are 0, which means their usual value.
///
/// # Safety
/// `pointer` is null or points to a struct as long as its `size` says, which nothing changes during the call.
pub(crate) unsafe fn options<T: OptionStruct>(pointer: *const T) -> Outcome<Option<T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; the rest is the caller's promise.
    unsafe { options_at(pointer) }.map(Some)
}

/// As [`options`], of a pointer that is not null, as one of [`places`].
///
/// # Safety
/// As there.
pub(crate) unsafe fn options_at<T: OptionStruct>(pointer: *const T) -> Outcome<T> {
    // SAFETY: the caller's promise is passed on.
    let given = unsafe { size_of_given(pointer) }?;
    let known = size_of::<T>();
    let bytes = pointer.cast::<u8>();
    if given == known {
        // SAFETY: not null and aligned, and the caller's struct is just so long.
        return checked(unsafe { pointer.read() });
    }
    if given > known {
        // SAFETY: the caller's struct is `given` bytes long.
        let rest = unsafe { slice(bytes.wrapping_add(known), given - known, T::NAME) }?;
        if rest.iter().any(|byte| *byte != 0) {
            let message =
                format!("{} has members that this version of the library does not know; use a newer library", T::NAME);
            return Err(Failure::new(GRIDSTONE_ERROR_UNSUPPORTED, message));
        }
    }
    let mut made = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both are at least so long; all bits, and all zeros, are a value of an option struct.
    checked(unsafe {
        std::ptr::copy_nonoverlapping(bytes, made.as_mut_ptr().cast::<u8>(), given.min(known));
        made.assume_init()
    })
}

/// An option struct whose member for later is 0.
fn checked<T: OptionStruct>(given: T) -> Outcome<T> {
    match given.reserved() {
        0 => Ok(given),
        other => Err(Failure::input(format!("{}.reserved is {other}; set it to 0", T::NAME))),
    }
}

/// A struct of the caller that a call fills once it has succeeded, as far as the struct's `size` goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutStruct<T> {
    place: *mut T,
    given: usize,
}

impl<T: OptionStruct> OutStruct<T> {
    /// A struct that must be there, with its size set.
    ///
    /// # Safety
    /// A `pointer` that is not null points to a struct as long as its `size` says, which nothing else uses until the call ends.
    pub(crate) unsafe fn new(pointer: *mut T) -> Outcome<Self> {
        if pointer.is_null() {
            return Err(null(T::NAME));
        }
        // SAFETY: not null; the rest is the caller's promise.
        let given = unsafe { size_of_given(pointer.cast_const()) }?;
        Ok(Self { place: pointer, given })
    }

    /// Fills all members but the size. Those that this library does not know become 0.
    pub(crate) fn put(self, value: T) {
        let (first, known) = (size_of::<usize>(), size_of::<T>());
        let (to, from) = (self.place.cast::<u8>(), (&raw const value).cast::<u8>());
        // SAFETY: the caller's struct is `given` bytes long, this one `known`; neither begins with less than a `usize`.
        unsafe {
            std::ptr::copy_nonoverlapping(from.add(first), to.add(first), self.given.min(known) - first);
            if self.given > known {
                to.add(known).write_bytes(0, self.given - known);
            }
        }
    }
}

/// The addresses of the elements of a list of option structs, which lie as far apart as the size of the first.
///
/// # Safety
/// `first` is null or points to `count` structs, each as long as the `size` of the first says.
pub(crate) unsafe fn places<T: OptionStruct>(
    first: *const T,
    count: usize,
) -> Outcome<impl ExactSizeIterator<Item = *const T> + Clone> {
    let size = match count {
        0 => 0,
        _ if first.is_null() => return Err(null(T::NAME)),
        // SAFETY: not null; the rest is the caller's promise.
        _ => unsafe { size_of_given(first) }?,
    };
    if size % align_of::<T>() != 0 || size.checked_mul(count).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::input(format!(
            "{count} of {0} with a size of {size} bytes; set size to sizeof({0})",
            T::NAME
        )));
    }
    Ok((0..count).map(move |place| first.wrapping_byte_add(place * size)))
}

/// A list of option structs, each as [`options`] gives it.
///
/// # Safety
/// As [`places`].
pub(crate) unsafe fn list<T: OptionStruct>(first: *const T, count: usize) -> Outcome<Vec<T>> {
    // SAFETY: the caller's promise is passed on.
    let places = unsafe { places(first, count) }?;
    // SAFETY: passed on.
    places.map(|place| unsafe { options_at(place) }).collect()
}
