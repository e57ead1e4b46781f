//! Results, reads and answers as arrays of Arrow, and back.

use super::fixture::*;
use gridstone_capi::*;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

fn no_schema() -> ArrowSchema {
    unsafe { std::mem::zeroed() }
}

fn no_array() -> ArrowArray {
    unsafe { std::mem::zeroed() }
}

fn no_stream() -> ArrowArrayStream {
    unsafe { std::mem::zeroed() }
}

fn format(schema: &ArrowSchema) -> String {
    let mut text = unsafe { CStr::from_ptr(schema.format) }.to_str().unwrap().to_owned();
    for child in slice(schema.children, schema.n_children as usize) {
        text = format!("{text}<{}>", format(unsafe { &*child }));
    }
    if !schema.dictionary.is_null() {
        text = format!("{text}[{}]", format(unsafe { &*schema.dictionary }));
    }
    text
}

fn release(array: &mut ArrowArray, schema: &mut ArrowSchema) {
    unsafe {
        array.release.unwrap()(array);
        schema.release.unwrap()(schema);
    }
    assert!(array.release.is_none() && schema.release.is_none());
}

fn exported(result: &Handle) -> (ArrowSchema, ArrowArray) {
    let (mut schema, mut array) = (no_schema(), no_array());
    ok(unsafe { gridstone_result_to_arrow(result.0, &mut schema, &mut array) });
    (schema, array)
}

fn child(array: &ArrowArray, place: usize) -> &ArrowArray {
    unsafe { &**array.children.add(place) }
}

fn buffer<T: Copy>(array: &ArrowArray, place: usize, count: usize) -> Vec<T> {
    slice(slice(array.buffers, array.n_buffers as usize)[place].cast(), count)
}

/// Each type of attributes with four values, and the format that it has.
fn kinds() -> Vec<(&'static str, Given, &'static str)> {
    let whole = |width: usize| bytes("a", &(0..4 * width).map(|k| (k * 37 % 251) as u8).collect::<Vec<u8>>());
    let times = || longs("a", &[0, -5, i64::MIN, 1_000]);
    vec![
        ("bool", bytes("a", &[1, 0, 1, 1]), "b"),
        ("int8", whole(1), "c"),
        ("uint8", whole(1), "C"),
        ("int16", whole(2), "s"),
        ("uint16", whole(2), "S"),
        ("int32", whole(4), "i"),
        ("uint32", whole(4), "I"),
        ("int64", whole(8), "l"),
        ("uint64", whole(8), "L"),
        ("float16", bytes("a", &[0, 60, 0, 64, 0, 0, 1, 2]), "e"),
        ("float32", whole(4), "f"),
        ("float64", whole(8), "g"),
        ("complex64", whole(8), "+w:2<f>"),
        ("complex128", whole(16), "+w:2<g>"),
        ("string", texts("a", &["", "wave", "é", "long text of many bytes"]), "U"),
        ("bytes", texts("a", &["x", "", "yy", "\u{1}"]), "Z"),
        ("bytes[3]", whole(3), "w:3"),
        ("float32[3]", whole(12), "+w:3<f>"),
        ("int16[2,3]", whole(12), "+w:2<+w:3<s>>"),
        ("list[int32]", bytes("a", &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]).with_offsets(&[0, 4, 4, 8, 12]), "+L<i>"),
        ("datetime64[s]", times(), "tss:"),
        ("datetime64[ns]", times(), "tsn:"),
        ("datetime64[D]", times(), "tss:"),
        ("datetime64[W]", times(), "tss:"),
        ("datetime64[M]", times(), "tss:"),
        ("datetime64[Y]", times(), "tss:"),
        ("datetime64[6h]", times(), "tss:"),
        ("datetime64[15us]", times(), "tsu:"),
        ("datetime64[ps]", times(), "l"),
        ("timedelta64[ms]", times(), "tDm"),
        ("timedelta64[W]", times(), "tDs"),
        ("timedelta64[M]", times(), "l"),
    ]
}

#[test]
fn each_type_survives_the_way_to_arrow_and_back() {
    for (kind, given, wanted) in kinds() {
        let attr = format!(r#"{{"name":"a","dtype":"{kind}","nullable":true}}"#);
        let (from, to) = (sparse(&attr), sparse(&attr));
        write(&from, &[longs("x", &[3, 50, 200, 999]), given.with_nulls(&[1, 1, 1, 0])]);
        let result = read_all(&from);
        let before = columns(&result);
        let (mut schema, mut array) = exported(&result);
        drop((result, from));
        assert_eq!(format(unsafe { &**schema.children.add(1) }), wanted, "{kind}");
        ok(unsafe { gridstone_array_write_arrow_batch(to.0, &mut schema, &mut array, null(), null(), null_mut()) });
        let after = columns(&read_all(&to));
        assert_eq!(before[0].longs(), after[0].longs());
        // NaT is null in Arrow.
        let is_time = kind.starts_with("datetime") || kind.starts_with("timedelta");
        let nat = Some(i64::MIN.to_ne_bytes().to_vec());
        let cells = |found: &Found| {
            let cells = found.cells().into_iter();
            cells.map(|cell| if is_time && cell == nat { None } else { cell }).collect::<Vec<_>>()
        };
        assert_eq!(cells(&before[1]), cells(&after[1]), "{kind}");
        assert!(before[1].cells()[0].is_some() && before[1].cells()[3].is_none(), "{kind}");
    }
}

#[test]
fn buffers_are_as_the_interface_says() {
    let array = sparse(r#"{"name":"b","dtype":"bool","nullable":true},{"name":"s","dtype":"string"}"#);
    let places: Vec<i64> = (0..11).collect();
    let flags = bytes("b", &[1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1]).with_nulls(&[1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0]);
    let names: Vec<String> = places.iter().map(|k| "a".repeat(*k as usize)).collect();
    write(&array, &[longs("x", &places), flags, texts("s", &names.iter().map(String::as_str).collect::<Vec<_>>())]);
    let (mut schema, mut exported) = exported(&read_all(&array));
    assert_eq!((format(&schema), exported.length, exported.n_buffers), ("+s<l><b><U>".to_owned(), 11, 1));
    let bools = child(&exported, 1);
    assert_eq!((bools.null_count, bools.offset, bools.n_buffers), (2, 0, 2));
    assert_eq!(buffer::<u8>(bools, 0, 2), [0b1111_1011, 0b011]);
    assert_eq!(buffer::<u8>(bools, 1, 2)[0] & 0b1111_1011, 0b1000_1001);
    let strings = child(&exported, 2);
    assert_eq!(buffer::<i64>(strings, 1, 12), (0..12).map(|k| k * (k - 1) / 2).collect::<Vec<i64>>());
    assert_eq!((strings.null_count, slice(strings.buffers, 3)[0].is_null()), (0, true));
    let names: Vec<String> = (0..3)
        .map(|k| unsafe { CStr::from_ptr((**schema.children.add(k)).name) }.to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["x", "b", "s"]);
    let flags: Vec<i64> = (0..3).map(|k| unsafe { (**schema.children.add(k)).flags }).collect();
    assert_eq!(flags, [0, 2, 0]);
    release(&mut exported, &mut schema);
}

#[test]
fn the_metadata_of_a_column_keeps_its_type() {
    let array = sparse(r#"{"name":"t","dtype":"datetime64[D]"}"#);
    let (mut schema, mut exported) = exported(&read_all(&array));
    let metadata = unsafe { (**schema.children.add(1)).metadata }.cast::<u8>();
    let mut wanted = 2i32.to_ne_bytes().to_vec();
    for text in ["gridstone.dtype", "datetime64[D]", "gridstone.nullable", "false"] {
        wanted.extend_from_slice(&(text.len() as i32).to_ne_bytes());
        wanted.extend_from_slice(text.as_bytes());
    }
    assert_eq!(slice(metadata, wanted.len()), wanted);
    release(&mut exported, &mut schema);
}

#[test]
fn an_empty_result_is_an_empty_array() {
    let (mut schema, mut exported) = exported(&read_all(&sparse(r#"{"name":"s","dtype":"string"}"#)));
    assert_eq!((exported.length, child(&exported, 1).length), (0, 0));
    assert_eq!(buffer::<i64>(child(&exported, 1), 1, 1), [0]);
    release(&mut exported, &mut schema);
}

#[test]
fn a_child_that_was_moved_outlives_its_parent() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    write(&array, &[longs("x", &[1, 2]), longs("v", &[10, 20])]);
    let (mut schema, mut exported) = exported(&read_all(&array));
    let mut moved = unsafe {
        let place = *exported.children.add(1);
        let moved = place.read();
        (*place).release = None;
        moved
    };
    release(&mut exported, &mut schema);
    assert_eq!(buffer::<i64>(&moved, 1, 2), [10, 20]);
    unsafe { moved.release.unwrap()(&mut moved) };
    assert!(moved.release.is_none());
}

#[test]
fn categories_are_a_dictionary() {
    let attr = r#"{"name":"k","dtype":"string","categories":["tug","ferry","yacht"],"ordered":true,"nullable":true}"#;
    let (from, to) = (sparse(attr), sparse(&attr.replace(r#""tug","ferry","yacht""#, r#""yacht","tug","ferry""#)));
    write(&from, &[longs("x", &[1, 2, 3]), bytes("k", &[2, 9, 0]).with_nulls(&[1, 0, 1])]);
    let (mut schema, mut exported) = exported(&read_all(&from));
    let codes = child(&exported, 1);
    assert_eq!(buffer::<u8>(codes, 1, 3), [2, 0, 0]);
    let kind = unsafe { &**schema.children.add(1) };
    assert_eq!((format(kind).as_str(), kind.flags), ("C[U]", 3));
    ok(unsafe { gridstone_array_write_arrow_batch(to.0, &mut schema, &mut exported, null(), null(), null_mut()) });
    // The other array numbers them in another way.
    assert_eq!(columns(&read_all(&to))[1].cells(), [Some(vec![0]), None, Some(vec![1])]);
}

/// The longs of the second column of all batches of a stream, and the rows of the largest.
fn drained(stream: &mut ArrowArrayStream) -> (Vec<i64>, usize) {
    let (mut found, mut largest) = (Vec::new(), 0);
    loop {
        let mut batch = no_array();
        assert_eq!(unsafe { stream.get_next.unwrap()(stream, &mut batch) }, 0);
        let Some(release) = batch.release else { return (found, largest) };
        let rows = batch.length as usize;
        assert!(rows > 0);
        found.extend(buffer::<i64>(child(&batch, 1), 1, rows));
        largest = largest.max(rows);
        unsafe { release(&mut batch) };
    }
}

#[test]
fn a_read_becomes_a_stream_that_needs_no_handle() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let all: Vec<i64> = (0..1000).collect();
    write(&array, &[longs("x", &all), longs("v", &all)]);
    let options = gridstone_read_options {
        size: size_of::<gridstone_read_options>(),
        region: 0,
        attributes: null(),
        attribute_count: 0,
        condition: null(),
        order: GRIDSTONE_ORDER_ROW,
        reserved: 0,
        batch_bytes: 3200,
    };
    let read = made(|out| unsafe { gridstone_read_create(array.0, &options, null(), out) });
    // Seven cells go into a buffer; the stream has the others.
    let (mut room, name, mut cells) = ([0i64; 7], c("v"), 0);
    let mut buffer = gridstone_buffer {
        size: size_of::<gridstone_buffer>(),
        name: name.as_ptr(),
        r#type: null(),
        values: room.as_mut_ptr().cast(),
        values_bytes: 56,
        offsets: null_mut(),
        offset_count: 0,
        validity: null_mut(),
        validity_count: 0,
        filled_bytes: 0,
    };
    ok(unsafe { gridstone_read_next(read.0, &mut buffer, 1, null(), &mut cells, null_mut()) });
    assert_eq!((cells, room), (7, [0, 1, 2, 3, 4, 5, 6]));
    let mut stream = no_stream();
    ok(unsafe { gridstone_read_to_arrow(read.0, &mut stream) });
    let status = unsafe { gridstone_read_next(read.0, &mut buffer, 1, null(), &mut cells, null_mut()) };
    fails(status, GRIDSTONE_ERROR_HANDLE, "");
    let mut again = no_stream();
    fails(unsafe { gridstone_read_to_arrow(read.0, &mut again) }, GRIDSTONE_ERROR_HANDLE, "");
    assert!(again.release.is_none());
    drop((read, array));
    let mut schema = no_schema();
    assert_eq!(unsafe { stream.get_schema.unwrap()(&mut stream, &mut schema) }, 0);
    assert_eq!(format(&schema), "+s<l><l>");
    unsafe { schema.release.unwrap()(&mut schema) };
    let (found, largest) = drained(&mut stream);
    assert_eq!(found, all[7..]);
    assert!(largest < 900, "{largest} rows in one batch");
    assert_eq!(drained(&mut stream).0, [0i64; 0]);
    unsafe {
        assert_ne!(stream.get_next.unwrap()(&mut stream, null_mut()), 0);
        assert!(CStr::from_ptr(stream.get_last_error.unwrap()(&mut stream)).to_str().unwrap().contains("null pointer"));
        stream.release.unwrap()(&mut stream);
    }
    assert!(stream.release.is_none());
}

#[test]
fn a_stream_that_was_released_unread_leaves_nothing() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    write(&array, &[longs("x", &[1]), longs("v", &[1])]);
    let read = made(|out| unsafe { gridstone_read_create(array.0, null(), null(), out) });
    let mut stream = no_stream();
    ok(unsafe { gridstone_read_to_arrow(read.0, &mut stream) });
    unsafe { stream.release.unwrap()(&mut stream) };
    fails(unsafe { gridstone_read_to_arrow(read.0, null_mut()) }, GRIDSTONE_ERROR_INPUT, "stream");
    fails(unsafe { gridstone_read_to_arrow(array.0, &mut stream) }, GRIDSTONE_ERROR_HANDLE, "a read is needed");
}

#[test]
fn a_stream_of_ours_is_written_by_ourselves() {
    let attrs = r#"{"name":"v","dtype":"int64"},{"name":"s","dtype":"string","nullable":true}"#;
    let (from, to) = (sparse(attrs), sparse(attrs));
    let all: Vec<i64> = (0..500).collect();
    let names: Vec<String> = all.iter().map(|k| format!("n{k}")).collect();
    let validity: Vec<u8> = all.iter().map(|k| u8::from(k % 3 != 0)).collect();
    let names = texts("s", &names.iter().map(String::as_str).collect::<Vec<_>>()).with_nulls(&validity);
    write(&from, &[longs("x", &all), longs("v", &all), names]);
    let read = made(|out| unsafe { gridstone_read_create(from.0, null(), null(), out) });
    let mut stream = no_stream();
    ok(unsafe { gridstone_read_to_arrow(read.0, &mut stream) });
    ok(unsafe { gridstone_array_write_arrow(to.0, &mut stream, null(), null(), null_mut()) });
    let (before, after) = (columns(&read_all(&from)), columns(&read_all(&to)));
    let cells = |found: &[Found]| found.iter().map(Found::cells).collect::<Vec<_>>();
    assert_eq!(cells(&before), cells(&after));
}

#[test]
fn answers_become_a_stream() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let all: Vec<i64> = (0..300).collect();
    write(&array, &[longs("x", &all), longs("v", &all)]);
    let (key, text) = (c("x"), c("sum(v)"));
    let mut question: gridstone_question = unsafe { std::mem::zeroed() };
    let mut keys: gridstone_group_key = unsafe { std::mem::zeroed() };
    let mut aggregate: gridstone_aggregate = unsafe { std::mem::zeroed() };
    (keys.size, keys.expression) = (size_of_val(&keys), key.as_ptr());
    (aggregate.size, aggregate.text) = (size_of_val(&aggregate), text.as_ptr());
    (question.size, question.keys, question.key_count) = (size_of_val(&question), &keys, 1);
    (question.aggregates, question.aggregate_count) = (&aggregate, 1);
    let answers = made(|out| unsafe { gridstone_answers_create(array.0, &question, null(), out) });
    let mut stream = no_stream();
    ok(unsafe { gridstone_answers_to_arrow(answers.0, &mut stream) });
    fails(unsafe { gridstone_answers_next(answers.0, null(), &mut 0) }, GRIDSTONE_ERROR_INPUT, "moved");
    drop((answers, array));
    assert_eq!(drained(&mut stream).0, all);
    unsafe { stream.release.unwrap()(&mut stream) };
}

#[test]
fn times_beyond_the_units_of_arrow_are_an_error() {
    let array = sparse(r#"{"name":"t","dtype":"datetime64[Y]"}"#);
    write(&array, &[longs("x", &[1]), longs("t", &[1 << 60])]);
    let (mut schema, mut values, result) = (no_schema(), no_array(), read_all(&array));
    let status = unsafe { gridstone_result_to_arrow(result.0, &mut schema, &mut values) };
    fails(status, GRIDSTONE_ERROR_INPUT, "datetime64[Y]");
    assert!(schema.release.is_none() && values.release.is_none());
    fails(unsafe { gridstone_result_to_arrow(result.0, null_mut(), &mut values) }, GRIDSTONE_ERROR_INPUT, "schema");
    let read = made(|out| unsafe { gridstone_read_create(array.0, null(), null(), out) });
    let mut stream = no_stream();
    ok(unsafe { gridstone_read_to_arrow(read.0, &mut stream) });
    unsafe {
        let status = stream.get_next.unwrap()(&mut stream, &mut values);
        assert_eq!(status, 22);
        assert!(
            CStr::from_ptr(stream.get_last_error.unwrap()(&mut stream)).to_str().unwrap().contains("datetime64[Y]")
        );
        assert_eq!(stream.get_next.unwrap()(&mut stream, &mut values), status);
        stream.release.unwrap()(&mut stream);
    }
}
