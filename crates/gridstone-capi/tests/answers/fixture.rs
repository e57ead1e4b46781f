//! Arrays in memory, columns of them, and handles that are freed.

use gridstone_capi::*;
use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A handle, freed when it goes.
pub(crate) struct Handle(pub(crate) u64);

impl Drop for Handle {
    fn drop(&mut self) {
        gridstone_free(self.0);
    }
}

/// What a call that puts a handle gives.
pub(crate) fn made(call: impl FnOnce(*mut u64) -> gridstone_status) -> Handle {
    let mut handle = 0;
    ok(call(&mut handle));
    Handle(handle)
}

pub(crate) fn message() -> String {
    unsafe { CStr::from_ptr(gridstone_last_error()) }.to_str().unwrap().to_owned()
}

#[track_caller]
pub(crate) fn ok(status: gridstone_status) {
    assert_eq!(status, GRIDSTONE_OK, "{}", message());
}

/// Checks the status and a part of the message.
#[track_caller]
pub(crate) fn fails(status: gridstone_status, wanted: gridstone_status, part: &str) {
    assert_eq!(status, wanted, "{}", message());
    assert!(message().contains(part), "{:?} is not in {:?}", part, message());
}

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// What a call that puts a text gives.
pub(crate) fn told(call: impl FnOnce(*mut u64) -> gridstone_status) -> String {
    let text = made(call);
    let (mut start, mut length) = (std::ptr::null::<c_char>(), 0);
    ok(unsafe { gridstone_text_get(text.0, &mut start, &mut length) });
    let found = unsafe { CStr::from_ptr(start) }.to_str().unwrap().to_owned();
    assert_eq!(found.len(), length);
    found
}

/// An array of a schema in a store of its own.
pub(crate) fn array(schema: &str) -> Handle {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let context = made(|out| unsafe { gridstone_context_create(std::ptr::null(), out) });
    let json = c(schema);
    let schema = made(|out| unsafe { gridstone_schema_from_json(json.as_ptr(), out) });
    let uri = c(&format!("mem://capi-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    made(|out| unsafe { gridstone_array_create(context.0, uri.as_ptr(), std::ptr::null(), schema.0, 0, out) })
}

/// A column that a test gives.
pub(crate) struct Given {
    name: CString,
    values: Vec<u8>,
    offsets: Option<Vec<u64>>,
    validity: Option<Vec<u8>>,
}

pub(crate) fn numbers<const N: usize, T: Copy>(name: &str, values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Given {
    Given { name: c(name), values: values.iter().flat_map(|v| bytes(*v)).collect(), offsets: None, validity: None }
}

pub(crate) fn longs(name: &str, values: &[i64]) -> Given {
    numbers(name, values, i64::to_ne_bytes)
}

pub(crate) fn bytes(name: &str, values: &[u8]) -> Given {
    Given { name: c(name), values: values.to_vec(), offsets: None, validity: None }
}

pub(crate) fn texts(name: &str, values: &[&str]) -> Given {
    let mut offsets = vec![0];
    values.iter().for_each(|value| offsets.push(offsets.last().unwrap() + value.len() as u64));
    Given { name: c(name), values: values.concat().into_bytes(), offsets: Some(offsets), validity: None }
}

impl Given {
    pub(crate) fn with_offsets(self, offsets: &[u64]) -> Self {
        Self { offsets: Some(offsets.to_vec()), ..self }
    }

    pub(crate) fn with_nulls(self, validity: &[u8]) -> Self {
        Self { validity: Some(validity.to_vec()), ..self }
    }

    pub(crate) fn raw(&self) -> gridstone_column {
        let null = std::ptr::null;
        gridstone_column {
            size: size_of::<gridstone_column>(),
            name: self.name.as_ptr(),
            r#type: std::ptr::null(),
            values: self.values.as_ptr().cast(),
            values_bytes: self.values.len(),
            offsets: self.offsets.as_ref().map_or(null(), |o| o.as_ptr()),
            offset_count: self.offsets.as_ref().map_or(0, Vec::len),
            validity: self.validity.as_ref().map_or(std::ptr::null(), |v| v.as_ptr()),
            validity_count: self.validity.as_ref().map_or(0, Vec::len),
        }
    }
}

pub(crate) fn raws(given: &[Given]) -> Vec<gridstone_column> {
    given.iter().map(Given::raw).collect()
}

/// Writes cells.
pub(crate) fn write(array: &Handle, given: &[Given]) {
    let raw = raws(given);
    let (none, call) = (std::ptr::null(), std::ptr::null());
    ok(unsafe { gridstone_array_write_cells(array.0, raw.as_ptr(), raw.len(), none, call, std::ptr::null_mut()) });
}

/// A column of a result, copied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) values: Vec<u8>,
    pub(crate) offsets: Option<Vec<u64>>,
    pub(crate) validity: Option<Vec<u8>>,
}

impl Found {
    pub(crate) fn longs(&self) -> Vec<i64> {
        self.values.as_chunks::<8>().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect()
    }

    pub(crate) fn floats(&self) -> Vec<f64> {
        self.values.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
    }

    /// Each value, or none for a null.
    pub(crate) fn cells(&self) -> Vec<Option<Vec<u8>>> {
        let count = self.validity.as_ref().map_or_else(|| self.count(), Vec::len);
        let width = if self.offsets.is_none() && count > 0 { self.values.len() / count } else { 0 };
        let cell = |row: usize| match &self.offsets {
            Some(offsets) => self.values[offsets[row] as usize..offsets[row + 1] as usize].to_vec(),
            None => self.values[row * width..(row + 1) * width].to_vec(),
        };
        (0..count).map(|row| self.validity.as_ref().is_none_or(|v| v[row] == 1).then(|| cell(row))).collect()
    }

    /// The cells of a column without validity, by its type.
    fn count(&self) -> usize {
        match (&self.offsets, gridstone::schema::Datatype::parse(&self.kind).unwrap().width()) {
            (Some(offsets), _) => offsets.len() - 1,
            (None, width) => self.values.len() / width.unwrap(),
        }
    }
}

pub(crate) fn slice<T: Copy>(pointer: *const T, count: usize) -> Vec<T> {
    if count == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec() }
}

pub(crate) const BLANK: gridstone_column = gridstone_column {
    size: size_of::<gridstone_column>(),
    name: std::ptr::null(),
    r#type: std::ptr::null(),
    values: std::ptr::null(),
    values_bytes: 0,
    offsets: std::ptr::null(),
    offset_count: 0,
    validity: std::ptr::null(),
    validity_count: 0,
};

/// All columns of a result.
pub(crate) fn columns(result: &Handle) -> Vec<Found> {
    let mut count = 0;
    ok(unsafe { gridstone_result_columns(result.0, &mut count) });
    let column = |index| {
        let mut out = BLANK;
        ok(unsafe { gridstone_result_column(result.0, index, &mut out) });
        let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned();
        Found {
            name: text(out.name),
            kind: text(out.r#type),
            values: slice(out.values.cast(), out.values_bytes),
            offsets: (!out.offsets.is_null()).then(|| slice(out.offsets, out.offset_count)),
            validity: (!out.validity.is_null()).then(|| slice(out.validity, out.validity_count)),
        }
    };
    (0..count).map(column).collect()
}

pub(crate) fn rows(result: &Handle) -> u64 {
    let mut rows = 0;
    ok(unsafe { gridstone_result_rows(result.0, &mut rows) });
    rows
}

pub(crate) fn shape(result: &Handle) -> Vec<u64> {
    let (mut sides, mut count) = (std::ptr::null(), 0);
    ok(unsafe { gridstone_result_shape(result.0, &mut sides, &mut count) });
    slice(sides, count)
}

/// All cells of an array.
pub(crate) fn read_all(array: &Handle) -> Handle {
    made(|out| unsafe { gridstone_array_read_all(array.0, std::ptr::null(), std::ptr::null(), out) })
}

/// A sparse array of one dimension `x` of 1000 places.
pub(crate) fn sparse(attrs: &str) -> Handle {
    array(&format!(
        r#"{{"sparse":true,"dims":[{{"name":"x","dtype":"int64","domain":["0","999"],"tile":"100"}}],"attrs":[{attrs}]}}"#
    ))
}
