//! Arrays of Arrow that a test makes, and counts how often each is released.

use gridstone_capi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often schemas, arrays and streams were released.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) schemas: AtomicUsize,
    pub(crate) arrays: AtomicUsize,
    pub(crate) streams: AtomicUsize,
}

impl Counts {
    pub(crate) fn now(&self) -> (usize, usize, usize) {
        let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (load(&self.schemas), load(&self.arrays), load(&self.streams))
    }
}

/// An array as a test describes it.
#[derive(Clone, Default)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) format: String,
    pub(crate) length: i64,
    pub(crate) nulls: i64,
    pub(crate) offset: i64,
    /// `None`: a null pointer.
    pub(crate) buffers: Vec<Option<Vec<u8>>>,
    pub(crate) children: Vec<Column>,
    pub(crate) dictionary: Option<Box<Column>>,
}

pub(crate) fn flat(name: &'static str, format: &str, length: usize, buffers: Vec<Option<Vec<u8>>>) -> Column {
    Column { name, format: format.to_owned(), length: length as i64, buffers, ..Column::default() }
}

pub(crate) fn longs(name: &'static str, values: &[i64]) -> Column {
    let bytes = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    flat(name, "l", values.len(), vec![None, Some(bytes)])
}

pub(crate) fn ints(name: &'static str, values: &[i32]) -> Column {
    let bytes = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    flat(name, "i", values.len(), vec![None, Some(bytes)])
}

/// Texts with offsets of 32 bits.
pub(crate) fn texts(name: &'static str, values: &[&str]) -> Column {
    let mut offsets = vec![0i32];
    values.iter().for_each(|value| offsets.push(offsets.last().unwrap() + value.len() as i32));
    let offsets = offsets.iter().flat_map(|o| o.to_ne_bytes()).collect();
    flat(name, "u", values.len(), vec![None, Some(offsets), Some(values.concat().into_bytes())])
}

impl Column {
    /// With a bitmap, of which the lowest bit is the first value's.
    pub(crate) fn with_nulls(mut self, bitmap: &[u8], nulls: i64) -> Self {
        self.buffers[0] = Some(bitmap.to_vec());
        Self { nulls, ..self }
    }

    /// So many values from one on.
    pub(crate) fn sliced(self, offset: i64, length: i64) -> Self {
        Self { offset, length, ..self }
    }

    pub(crate) fn with_dictionary(self, entries: Column) -> Self {
        Self { dictionary: Some(Box::new(entries)), ..self }
    }
}

/// Rows with these columns.
pub(crate) fn rows(columns: Vec<Column>) -> Column {
    let length = columns.first().map_or(0, |column| column.length);
    Column { format: "+s".into(), length, buffers: vec![None], children: columns, ..Column::default() }
}

struct ArrayOwner {
    _buffers: Vec<Option<Vec<u8>>>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    counts: Arc<Counts>,
}

struct SchemaOwner {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
    counts: Arc<Counts>,
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        owner.counts.arrays.fetch_add(1, Ordering::Relaxed);
        for child in owner.children.iter().copied().chain((!owner.dictionary.is_null()).then_some(owner.dictionary)) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        owner.counts.schemas.fetch_add(1, Ordering::Relaxed);
        for child in owner.children.iter().copied().chain((!owner.dictionary.is_null()).then_some(owner.dictionary)) {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

pub(crate) fn array_of(column: &Column, counts: &Arc<Counts>) -> ArrowArray {
    let boxed = |column: &Column| Box::into_raw(Box::new(array_of(column, counts)));
    let buffers = column.buffers.clone();
    let mut owner = Box::new(ArrayOwner {
        pointers: buffers.iter().map(|b| b.as_ref().map_or(std::ptr::null(), |b| b.as_ptr().cast())).collect(),
        _buffers: buffers,
        children: column.children.iter().map(boxed).collect(),
        dictionary: column.dictionary.as_deref().map_or(std::ptr::null_mut(), boxed),
        counts: Arc::clone(counts),
    });
    ArrowArray {
        length: column.length,
        null_count: column.nulls,
        offset: column.offset,
        n_buffers: owner.pointers.len() as i64,
        n_children: owner.children.len() as i64,
        buffers: owner.pointers.as_mut_ptr(),
        children: owner.children.as_mut_ptr(),
        dictionary: owner.dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(owner).cast(),
    }
}

pub(crate) fn schema_of(column: &Column, counts: &Arc<Counts>) -> ArrowSchema {
    let boxed = |column: &Column| Box::into_raw(Box::new(schema_of(column, counts)));
    let mut owner = Box::new(SchemaOwner {
        format: CString::new(column.format.as_str()).unwrap(),
        name: CString::new(column.name).unwrap(),
        children: column.children.iter().map(boxed).collect(),
        dictionary: column.dictionary.as_deref().map_or(std::ptr::null_mut(), boxed),
        counts: Arc::clone(counts),
    });
    ArrowSchema {
        format: owner.format.as_ptr(),
        name: owner.name.as_ptr(),
        metadata: std::ptr::null(),
        flags: 2,
        n_children: owner.children.len() as i64,
        children: owner.children.as_mut_ptr(),
        dictionary: owner.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(owner).cast(),
    }
}

struct StreamOwner {
    batches: Vec<Column>,
    given: usize,
    /// Fails after the last batch.
    fails: bool,
    counts: Arc<Counts>,
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    unsafe {
        let owner = &*(*stream).private_data.cast::<StreamOwner>();
        let Some(first) = owner.batches.first() else { return 5 };
        out.write(schema_of(first, &owner.counts));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    unsafe {
        let owner = &mut *(*stream).private_data.cast::<StreamOwner>();
        owner.given += 1;
        match owner.batches.get(owner.given - 1) {
            Some(batch) => out.write(array_of(batch, &owner.counts)),
            None if owner.fails => return 5,
            None => (*out).release = None,
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    c"the line was cut".as_ptr()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    unsafe {
        let owner = Box::from_raw((*stream).private_data.cast::<StreamOwner>());
        owner.counts.streams.fetch_add(1, Ordering::Relaxed);
        (*stream).release = None;
    }
}

/// A stream of batches, which fails after the last if it is said so.
pub(crate) fn stream_of(batches: Vec<Column>, fails: bool, counts: &Arc<Counts>) -> ArrowArrayStream {
    let owner = Box::new(StreamOwner { batches, given: 0, fails, counts: Arc::clone(counts) });
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(owner).cast(),
    }
}
