//! Handles that are freed at the end, columns, stores in memory, and checks of statuses.

use gridstone_capi::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

/// The error of the last call of this thread.
pub(crate) fn last_error() -> String {
    // SAFETY: the text is the library's and lives until the next call.
    unsafe { CStr::from_ptr(gridstone_last_error()) }.to_str().unwrap().to_owned()
}

/// The call succeeded.
#[track_caller]
pub(crate) fn ok(status: gridstone_status) {
    assert_eq!(status, GRIDSTONE_OK, "{}", last_error());
}

/// The call failed with this status, and its message has this part.
#[track_caller]
pub(crate) fn fails(status: gridstone_status, wanted: gridstone_status, part: &str) {
    let message = last_error();
    assert_eq!(status, wanted, "{message}");
    assert!(message.contains(part), "{message:?} has no {part:?}");
    assert_eq!(gridstone_last_status(), wanted);
}

/// A handle that is freed once, at the end.
#[derive(Debug)]
pub(crate) struct Held(pub(crate) gridstone_handle);

impl Held {
    /// The handle that a call puts; it must have succeeded.
    #[track_caller]
    pub(crate) fn of(call: impl FnOnce(*mut gridstone_handle) -> gridstone_status) -> Self {
        let mut handle = 0;
        ok(call(&raw mut handle));
        assert_ne!(handle, 0);
        Self(handle)
    }

    /// Frees it now; the number is known as freed.
    #[track_caller]
    pub(crate) fn free(self) -> gridstone_handle {
        let handle = self.0;
        drop(self);
        handle
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let status = gridstone_free(self.0);
        if !std::thread::panicking() {
            assert_eq!(status, GRIDSTONE_OK);
        }
    }
}

/// The text that a call puts.
#[track_caller]
pub(crate) fn text_of(call: impl FnOnce(*mut gridstone_text) -> gridstone_status) -> String {
    read_text(&Held::of(call))
}

/// The characters of a text.
#[track_caller]
pub(crate) fn read_text(text: &Held) -> String {
    let (mut characters, mut length) = (null(), 0);
    // SAFETY: both places are there.
    ok(unsafe { gridstone_text_get(text.0, &raw mut characters, &raw mut length) });
    // SAFETY: the characters live as long as the handle.
    let found = unsafe { CStr::from_ptr(characters) }.to_str().unwrap().to_owned();
    assert_eq!(found.len(), length);
    found
}

/// The JSON that a call puts.
#[track_caller]
pub(crate) fn json_of(call: impl FnOnce(*mut gridstone_text) -> gridstone_status) -> serde_json::Value {
    serde_json::from_str(&text_of(call)).unwrap()
}

/// The number that a call puts.
#[track_caller]
pub(crate) fn number_of<T: Default>(call: impl FnOnce(*mut T) -> gridstone_status) -> T {
    let mut number = T::default();
    ok(call(&raw mut number));
    number
}

/// A text for C.
pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// Pointers to texts for C.
pub(crate) fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

/// A column of values of fixed width.
pub(crate) fn column<T>(name: &CStr, values: &[T]) -> gridstone_column {
    gridstone_column {
        size: size_of::<gridstone_column>(),
        name: name.as_ptr(),
        r#type: null(),
        values: values.as_ptr().cast(),
        values_bytes: size_of_val(values),
        offsets: null(),
        offset_count: 0,
        validity: null(),
        validity_count: 0,
    }
}

/// Nothing that goes with a call.
pub(crate) fn call() -> gridstone_call {
    // SAFETY: all zeros are a value of it.
    let mut call: gridstone_call = unsafe { std::mem::zeroed() };
    call.size = size_of::<gridstone_call>();
    call
}

pub(crate) fn context() -> Held {
    context_of(0)
}

/// A context with a memory budget.
pub(crate) fn context_of(memory_budget: u64) -> Held {
    // SAFETY: all zeros are a value of the options, which live through the call.
    unsafe {
        let mut options: gridstone_context_options = std::mem::zeroed();
        (options.size, options.memory_budget) = (size_of::<gridstone_context_options>(), memory_budget);
        Held::of(|out| gridstone_context_create(&raw const options, out))
    }
}

/// A schema of one integer attribute "v" along "x" from 0 to 9 with tiles of 5.
pub(crate) fn schema(sparse: bool) -> Held {
    schema_to(9, 5, sparse)
}

/// As [`schema`], from 0 to `high`, with tiles of `tile`.
pub(crate) fn schema_to(high: i64, tile: u64, sparse: bool) -> Held {
    // SAFETY: all zeros are a value of both structs; pointers live through the calls.
    unsafe {
        let mut options: gridstone_schema_options = std::mem::zeroed();
        (options.size, options.sparse) = (size_of::<gridstone_schema_options>(), u32::from(sparse));
        let schema = Held::of(|out| gridstone_schema_create(&raw const options, out));
        ok(gridstone_schema_add_axis(schema.0, c"x".as_ptr(), c"int64".as_ptr(), 0, high, tile));
        let mut attribute: gridstone_attribute = std::mem::zeroed();
        attribute.size = size_of::<gridstone_attribute>();
        (attribute.name, attribute.r#type) = (c"v".as_ptr(), c"int32".as_ptr());
        ok(gridstone_schema_add_attribute(schema.0, &raw const attribute));
        schema
    }
}

/// An array of a store of its own in memory, and what it was made with.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) array: Held,
    pub(crate) context: Held,
    pub(crate) uri: CString,
}

/// A store in memory with an array at "/": dense along "x", or sparse.
pub(crate) fn store(name: &str, sparse: bool) -> Store {
    let (context, schema, uri) = (context(), schema(sparse), c(&format!("mem://capi-{name}")));
    // SAFETY: the texts live through the call.
    let array = Held::of(|out| unsafe { gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out) });
    Store { array, context, uri }
}

impl Store {
    /// Opens the array again, for reading.
    pub(crate) fn again(&self) -> Held {
        // SAFETY: the texts live through the call.
        Held::of(|out| unsafe { gridstone_array_open(self.context.0, self.uri.as_ptr(), null(), out) })
    }
}

/// A region of one box.
pub(crate) fn boxed(ends: &[i64]) -> Held {
    // SAFETY: the ends live through the calls.
    let region = Held::of(|out| unsafe { gridstone_region_create(out) });
    // SAFETY: as above.
    ok(unsafe { gridstone_region_add(region.0, ends.as_ptr(), ends.len()) });
    region
}

/// Writes the whole of a dense array "v" along "x".
pub(crate) fn write_dense(array: &Held, values: &[i32]) -> u64 {
    let given = [column(c"v", values)];
    // SAFETY: the column lives through the call.
    number_of(|out| unsafe { gridstone_array_write(array.0, 0, 0, given.as_ptr(), 1, null(), out) })
}

/// Writes cells of a sparse array along "x".
pub(crate) fn write_sparse(array: &Held, at: &[i64], values: &[i32]) -> u64 {
    let given = [column(c"x", at), column(c"v", values)];
    // SAFETY: the columns live through the call.
    number_of(|out| unsafe { gridstone_array_write_cells(array.0, given.as_ptr(), 2, null(), null(), out) })
}

/// Stages cells of a sparse array along "x".
pub(crate) fn stage_sparse(array: &Held, at: &[i64], values: &[i32]) -> Held {
    let given = [column(c"x", at), column(c"v", values)];
    // SAFETY: the columns live through the call.
    Held::of(|out| unsafe { gridstone_stage_cells(array.0, given.as_ptr(), 2, null(), null(), out) })
}

pub(crate) fn buffer<T>(name: &CStr, values: &mut [T]) -> gridstone_buffer {
    // SAFETY: all zeros are a value of it.
    let mut buffer: gridstone_buffer = unsafe { std::mem::zeroed() };
    (buffer.size, buffer.name) = (size_of::<gridstone_buffer>(), name.as_ptr());
    (buffer.values, buffer.values_bytes) = (values.as_mut_ptr().cast(), size_of_val(values));
    buffer
}

/// All values of a dense array of 10 cells.
#[track_caller]
pub(crate) fn dense(array: &Held) -> Vec<i32> {
    dense_of(array, 10)
}

/// All values of a dense array of so many cells.
#[track_caller]
pub(crate) fn dense_of(array: &Held, cells: usize) -> Vec<i32> {
    let mut values = vec![0; cells];
    let mut buffers = [buffer(c"v", &mut values)];
    // SAFETY: the buffer lives through the call.
    ok(unsafe { gridstone_array_read(array.0, 0, 0, buffers.as_mut_ptr(), 1, null()) });
    values
}

/// All cells of a sparse array along "x", in order.
#[track_caller]
pub(crate) fn sparse(array: &Held) -> Vec<(i64, i32)> {
    let (mut at, mut values, mut cells, mut complete) = ([0_i64; 100], [0_i32; 100], 0, 0);
    let mut buffers = [buffer(c"x", &mut at), buffer(c"v", &mut values)];
    // SAFETY: the buffers live through the calls.
    unsafe {
        let read = Held::of(|out| gridstone_read_create(array.0, null(), null(), out));
        let (cells, complete) = (&raw mut cells, &raw mut complete);
        ok(gridstone_read_next(read.0, buffers.as_mut_ptr(), 2, null(), cells, complete));
    }
    assert_eq!(complete, 1, "there are more cells than the test reads");
    at.into_iter().zip(values).take(cells as usize).collect()
}

/// Moves an array on, and gives its version.
#[track_caller]
pub(crate) fn refresh(array: &Held) -> u64 {
    // SAFETY: the place is there.
    number_of(|out| unsafe { gridstone_array_refresh(array.0, out) })
}

/// The version that an array shows.
#[track_caller]
pub(crate) fn version(array: &Held) -> u64 {
    // SAFETY: the place is there.
    number_of(|out| unsafe { gridstone_array_version(array.0, out) })
}

/// A folder that is deleted at the end.
#[derive(Debug)]
pub(crate) struct Folder(std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridstone-capi-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn uri(&self) -> CString {
        c(self.0.join("store").to_str().unwrap())
    }

    /// Files of cells in it, also half-written ones.
    pub(crate) fn data_files(&self) -> usize {
        std::fs::read_dir(self.0.join("store").join("_data")).map_or(0, Iterator::count)
    }

    /// Damages the newest record of the log, in its middle.
    pub(crate) fn flip_a_byte_of_the_newest_record(&self) {
        let log = self.0.join("store").join("_log");
        let records = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path());
        let is_record = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with('0');
        let newest = records.filter(is_record).max().unwrap();
        let mut bytes = std::fs::read(&newest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        let mut permissions = std::fs::metadata(&newest).unwrap().permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "a file of a test")]
        permissions.set_readonly(false);
        std::fs::set_permissions(&newest, permissions).unwrap();
        std::fs::write(&newest, bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store in a folder with an array at "/".
pub(crate) fn store_in(folder: &Folder, sparse: bool) -> Store {
    let (context, schema, uri) = (context(), schema(sparse), folder.uri());
    // SAFETY: the texts live through the call.
    let array = Held::of(|out| unsafe { gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out) });
    Store { array, context, uri }
}
