//! Cells of Arrow, as any producer may lay them out, into arrays.

use super::fixture::{Found, Handle, columns, fails, message, ok, read_all, sparse};
use super::producer::*;
use gridstone_capi::*;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Writes batches as a stream, and checks that everything was released once.
#[track_caller]
fn written(array: u64, batches: Vec<Column>, how: *const gridstone_cells_options) -> gridstone_status {
    let (counts, given) = (Arc::new(Counts::default()), batches.len());
    let (children, mut version) = (batches.first().map_or(0, structs), 0);
    let mut stream = stream_of(batches, false, &counts);
    let status = unsafe { gridstone_array_write_arrow(array, &mut stream, how, null(), &mut version) };
    assert!(stream.release.is_none(), "it is marked as moved");
    let (schemas, arrays, streams) = counts.now();
    assert_eq!(streams, 1);
    if status == GRIDSTONE_OK {
        assert!(version > 1);
        assert_eq!((schemas, arrays), (children, children * given));
    } else {
        assert!(schemas == 0 || schemas == children, "{schemas} of {children}");
        assert_eq!(arrays % children.max(1), 0);
    }
    status
}

fn structs(column: &Column) -> usize {
    1 + column.children.iter().chain(column.dictionary.as_deref()).map(structs).sum::<usize>()
}

#[track_caller]
fn write(array: &Handle, columns: Vec<Column>) {
    ok(written(array.0, vec![rows(columns)], null()));
}

#[track_caller]
fn refuses(array: &Handle, columns: Vec<Column>, part: &str) {
    fails(written(array.0, vec![rows(columns)], null()), GRIDSTONE_ERROR_INPUT, part);
    assert_eq!(super::fixture::rows(&read_all(array)), 0, "nothing was written");
}

fn found(array: &Handle) -> Vec<Found> {
    columns(&read_all(array))
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

#[test]
fn batches_of_a_stream_become_one_commit() {
    let array = sparse(r#"{"name":"v","dtype":"int64"},{"name":"s","dtype":"string"}"#);
    let batch = |x: &[i64], v: &[i64], s: &[&str]| rows(vec![texts("s", s), longs("v", v), longs("x", x)]);
    let batches = vec![batch(&[5, 1], &[50, 10], &["five", ""]), batch(&[], &[], &[]), batch(&[3], &[30], &["three"])];
    ok(written(array.0, batches, null()));
    let found = found(&array);
    assert_eq!((found[0].longs(), found[1].longs()), (vec![1, 3, 5], vec![10, 30, 50]));
    assert_eq!(found[2].cells(), [text(""), text("three"), text("five")]);
}

#[test]
fn slices_begin_at_their_offset() {
    let array = sparse(
        r#"{"name":"b","dtype":"bool","nullable":true},{"name":"s","dtype":"string","nullable":true},{"name":"v","dtype":"float32[2]"},
        {"name":"l","dtype":"list[int16]"}"#,
    );
    let positions = longs("x", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).sliced(2, 10);
    let bools = flat("b", "b", 10, vec![None, Some(vec![0b1010_1010, 0b1010])]).with_nulls(&[0b1111_0111, 0xff], -1);
    let mut strings = texts("s", &["-", "a", "bb", "", "c", "d", "e", "f", "g", "h", "i"]).sliced(1, 10);
    strings = strings.with_nulls(&[0b1110_1111, 0xff], 1);
    let pairs: Vec<u8> = (0..24).flat_map(|k| (k as f32).to_ne_bytes()).collect();
    let vectors =
        Column { children: vec![flat("", "f", 24, vec![None, Some(pairs)])], ..flat("v", "+w:2", 12, vec![None]) };
    let ends: Vec<u8> = (0..12i32).flat_map(|k| (k + 1).to_ne_bytes()).collect();
    let shorts: Vec<u8> = (0..12i16).flat_map(i16::to_ne_bytes).collect();
    let lists = flat("l", "+l", 11, vec![None, Some(ends)]);
    let lists = Column { children: vec![flat("", "s", 12, vec![None, Some(shorts)])], ..lists }.sliced(1, 10);
    // The rows themselves begin at their third.
    let all = Column { offset: 3, length: 4, ..rows(vec![positions, bools, strings, vectors.sliced(2, 10), lists]) };
    ok(written(array.0, vec![all], null()));
    let found = found(&array);
    assert_eq!(found[0].longs(), [5, 6, 7, 8]);
    assert_eq!(found[1].cells(), [None, Some(vec![0]), Some(vec![1]), Some(vec![0])]);
    assert_eq!(found[2].cells(), [None, text("d"), text("e"), text("f")]);
    let floats: Vec<f32> = found[3].values.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect();
    assert_eq!(floats, [10., 11., 12., 13., 14., 15., 16., 17.]);
    let shorts: Vec<i16> = found[4].values.as_chunks::<2>().0.iter().map(|b| i16::from_ne_bytes(*b)).collect();
    assert_eq!(shorts, [5, 6, 7, 8]);
}

#[test]
fn numbers_and_times_are_converted_without_loss_or_refused() {
    let array =
        sparse(r#"{"name":"v","dtype":"int8"},{"name":"f","dtype":"float64"},{"name":"t","dtype":"datetime64[h]"}"#);
    let x = || longs("x", &[1, 2]);
    let times = |seconds: &[i64]| Column { format: "tss:UTC".into(), ..longs("t", seconds) };
    let good = || vec![x(), ints("v", &[-128, 127]), ints("f", &[7, -1]), times(&[7200, i64::MIN])];
    let with = |place: usize, column: Column| {
        let mut all = good();
        all[place] = column;
        all
    };
    refuses(&array, with(1, ints("v", &[0, 128])), "\"v\" is int8, found 128 in row 1");
    refuses(&array, with(2, longs("f", &[1, (1 << 53) + 1])), "row 1");
    refuses(&array, with(3, times(&[1, 0])), "row 0");
    refuses(&array, with(1, texts("v", &["1", "2"])), "\"v\" is int8, found an Arrow column of format \"u\"");
    refuses(&array, with(3, Column { format: "tDs".into(), ..times(&[0, 0]) }), "tDs");
    refuses(&array, with(2, longs("f", &[1, 2]).with_nulls(&[0b01], 1)), "\"f\" is not nullable, but row 1 is null");
    refuses(&array, with(0, x().with_nulls(&[0b10], -1)), "\"x\" is not nullable, but row 0 is null");
    write(&array, good());
    let found = found(&array);
    assert_eq!(
        (found[1].values.clone(), found[2].floats(), found[3].longs()),
        (vec![128, 127], vec![7.0, -1.0], vec![2, i64::MIN])
    );
}

#[test]
fn a_time_that_is_null_is_nat_where_nothing_may_be_null() {
    let array = sparse(r#"{"name":"t","dtype":"datetime64[D]"}"#);
    let days = Column { format: "tdD".into(), ..ints("t", &[19_000, 7]) };
    write(&array, vec![longs("x", &[1, 2]), days.with_nulls(&[0b01], 1)]);
    assert_eq!(found(&array)[1].longs(), [19_000, i64::MIN]);
}

#[test]
fn dictionaries_become_texts_and_codes() {
    let array = sparse(
        r#"{"name":"s","dtype":"string","nullable":true},{"name":"k","dtype":"string","categories":["tug","ferry"],"nullable":true}"#,
    );
    let indices = |name, values: &[i8]| {
        flat(name, "c", values.len(), vec![None, Some(values.iter().map(|v| *v as u8).collect())])
    };
    let ships = || texts("", &["ferry", "yacht", "tug"]);
    let x = || longs("x", &[1, 2, 3]);
    let plain = || indices("s", &[1, 0, 1]).with_nulls(&[0b101], 1).with_dictionary(ships());
    let codes = |values: &[i8]| indices("k", values).with_nulls(&[0b011], 1).with_dictionary(ships());
    refuses(&array, vec![x(), plain(), codes(&[2, 1, 0])], "\"k\", row 1: \"yacht\" is none of its 2 categories");
    refuses(&array, vec![x(), plain(), codes(&[2, 3, 0])], "none of the 3 entries");
    refuses(&array, vec![x(), plain(), codes(&[2, -1, 0])], "none of the 3 entries");
    refuses(&array, vec![x(), plain(), texts("k", &["tug", "boat", "tug"])], "\"boat\" is none");
    write(&array, vec![x(), plain(), codes(&[2, 0, 99])]);
    let found = found(&array);
    assert_eq!(found[1].cells(), [text("yacht"), None, text("yacht")]);
    assert_eq!(found[2].cells(), [Some(vec![0]), Some(vec![1]), None]);
    let nullable = sparse(r#"{"name":"s","dtype":"string","nullable":true}"#);
    let entries = ships().with_nulls(&[0b101], 1);
    write(&nullable, vec![x(), indices("s", &[1, 0, 2]).with_dictionary(entries)]);
    assert_eq!(columns(&read_all(&nullable))[1].cells(), [None, text("ferry"), text("tug")]);
}

#[test]
fn views_of_texts_are_read() {
    let array = sparse(r#"{"name":"s","dtype":"string","nullable":true}"#);
    let long = "a text of more than twelve bytes";
    let mut views = Vec::new();
    let mut inline = [0u8; 16];
    inline[0] = 3;
    inline[4..7].copy_from_slice(b"abc");
    views.extend_from_slice(&inline);
    for number in [long.len() as i32, i32::from_ne_bytes(*b"a te"), 1, 2] {
        views.extend_from_slice(&number.to_ne_bytes());
    }
    views.extend_from_slice(&[0xff; 16]);
    let sizes = [4i64, 2 + long.len() as i64].iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>();
    let buffers = |views: Vec<u8>| {
        let data = format!("--{long}").into_bytes();
        vec![Some(vec![0b011]), Some(views), Some(b"none".to_vec()), Some(data), Some(sizes.clone())]
    };
    let column = |views| Column { nulls: 1, ..flat("s", "vu", 3, buffers(views)) };
    let mut beyond = views.clone();
    beyond[28] = 3;
    refuses(&array, vec![longs("x", &[1, 2, 3]), column(beyond)], "bytes that are not there");
    write(&array, vec![longs("x", &[1, 2, 3]), column(views)]);
    assert_eq!(found(&array)[1].cells(), [text("abc"), text(long), None]);
}

#[test]
fn broken_arrays_are_refused() {
    let array = sparse(r#"{"name":"v","dtype":"int64","nullable":true},{"name":"s","dtype":"string","nullable":true}"#);
    let (x, v, s) = (|| longs("x", &[1, 2]), || longs("v", &[1, 2]), || texts("s", &["a", "b"]));
    let buffers = |column: Column, buffers| Column { buffers, ..column };
    refuses(&array, vec![x(), buffers(v(), vec![None]), s()], "has 1 buffers");
    refuses(&array, vec![x(), buffers(v(), vec![None, None]), s()], "null pointer");
    refuses(&array, vec![x(), Column { nulls: 1, ..v() }, s()], "no validity buffer");
    refuses(&array, vec![x(), Column { offset: -1, ..v() }, s()], "offset");
    refuses(&array, vec![x(), Column { length: -5, ..v() }, s()], "length");
    refuses(&array, vec![x(), longs("v", &[1]), s()], "\"v\" has 1 values");
    refuses(&array, vec![x(), Column { length: i64::MAX, offset: i64::MAX, ..v() }, s()], "\"v\"");
    let ends = |ends: &[i32]| Some(ends.iter().flat_map(|e| e.to_ne_bytes()).collect());
    refuses(&array, vec![x(), v(), buffers(s(), vec![None, ends(&[0, 2, 1]), Some(b"ab".to_vec())])], "decrease");
    refuses(&array, vec![x(), v(), buffers(s(), vec![None, ends(&[-1, 0, 1]), Some(b"ab".to_vec())])], "below 0");
    refuses(&array, vec![x(), v(), buffers(s(), vec![None, ends(&[0, 1, 2]), Some(b"\xffb".to_vec())])], "\"s\"");
    refuses(&array, vec![x(), v(), s(), longs("w", &[1, 2])], "no column \"w\"");
    refuses(&array, vec![x(), v(), v()], "two columns \"v\"");
    refuses(&array, vec![v(), s()], "lacks the dimension \"x\"");
    let flat = Column { format: "l".into(), children: vec![], ..rows(vec![]) };
    fails(written(array.0, vec![flat], null()), GRIDSTONE_ERROR_INPUT, "a struct is needed");
    let nulls = Column { buffers: vec![Some(vec![0b01])], nulls: -1, ..rows(vec![x(), v(), s()]) };
    fails(written(array.0, vec![nulls], null()), GRIDSTONE_ERROR_INPUT, "row 1 of the Arrow data is null");
}

#[test]
fn a_stream_that_fails_writes_nothing_and_is_released() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let counts = Arc::new(Counts::default());
    let mut stream = stream_of(vec![rows(vec![longs("x", &[1]), longs("v", &[1])])], true, &counts);
    let status = unsafe { gridstone_array_write_arrow(array.0, &mut stream, null(), null(), null_mut()) };
    fails(status, GRIDSTONE_ERROR_INPUT, "the line was cut");
    assert_eq!(counts.now(), (3, 3, 1));
    assert_eq!(super::fixture::rows(&read_all(&array)), 0);
    fails(written(array.0, vec![], null()), GRIDSTONE_ERROR_INPUT, "the line was cut");
}

#[test]
fn streams_are_released_whatever_else_is_wrong() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let batch = || rows(vec![longs("x", &[2, 1]), longs("v", &[1, 1])]);
    fails(written(array.0 + (1 << 24), vec![batch()], null()), GRIDSTONE_ERROR_HANDLE, "freed");
    let mut how =
        gridstone_cells_options { size: size_of::<gridstone_cells_options>(), dedup: GRIDSTONE_DEDUP_LAST, sorted: 1 };
    fails(written(array.0, vec![batch()], &how), GRIDSTONE_ERROR_INPUT, "GRIDSTONE_DEDUP_ERROR");
    how.dedup = 8;
    fails(written(array.0, vec![batch()], &how), GRIDSTONE_ERROR_INPUT, "dedup is 8");
    (how.dedup, how.sorted) = (GRIDSTONE_DEDUP_ERROR, 1);
    fails(written(array.0, vec![batch()], &how), GRIDSTONE_ERROR_INPUT, "");
    unsafe {
        fails(
            gridstone_array_write_arrow(array.0, null_mut(), null(), null(), null_mut()),
            GRIDSTONE_ERROR_INPUT,
            "ArrowArrayStream is a null pointer",
        );
        let counts = Arc::new(Counts::default());
        let (mut schema, mut values) = (schema_of(&batch(), &counts), array_of(&batch(), &counts));
        let status = gridstone_array_write_arrow_batch(array.0, &mut schema, null_mut(), null(), null(), null_mut());
        fails(status, GRIDSTONE_ERROR_INPUT, "ArrowArray is a null pointer");
        assert_eq!((counts.now(), schema.release.is_none()), ((3, 0, 0), true));
        let status = gridstone_array_write_arrow_batch(array.0, &mut schema, &mut values, null(), null(), null_mut());
        fails(status, GRIDSTONE_ERROR_INPUT, "ArrowSchema was released");
        assert_eq!(counts.now(), (3, 3, 0));
    }
}

#[test]
fn one_batch_is_written_and_a_stream_staged() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let counts = Arc::new(Counts::default());
    let batch = rows(vec![longs("x", &[2, 1]), longs("v", &[20, 10])]);
    let (mut schema, mut values) = (schema_of(&batch, &counts), array_of(&batch, &counts));
    let mut version = 0;
    ok(unsafe { gridstone_array_write_arrow_batch(array.0, &mut schema, &mut values, null(), null(), &mut version) });
    assert_eq!((version, counts.now()), (2, (3, 3, 0)));
    let mut stream = stream_of(vec![rows(vec![longs("x", &[7]), longs("v", &[70])])], false, &counts);
    let mut staged = 0;
    ok(unsafe { gridstone_stage_arrow(array.0, &mut stream, null(), null(), &mut staged) });
    let staged = Handle(staged);
    assert_eq!(found(&array)[0].longs(), [1, 2]);
    ok(unsafe { gridstone_commit(array.0, &staged.0, 1, null(), &mut version) });
    assert_eq!((version, found(&array)[1].longs()), (3, vec![10, 20, 70]));
}

#[test]
fn duplicates_are_an_error_or_chosen() {
    let array = sparse(r#"{"name":"v","dtype":"int64"}"#);
    let batches =
        || vec![rows(vec![longs("x", &[1, 2]), longs("v", &[1, 2])]), rows(vec![longs("x", &[1]), longs("v", &[3])])];
    fails(written(array.0, batches(), null()), GRIDSTONE_ERROR_INPUT, "");
    let how =
        gridstone_cells_options { size: size_of::<gridstone_cells_options>(), dedup: GRIDSTONE_DEDUP_LAST, sorted: 0 };
    ok(written(array.0, batches(), &how));
    assert_eq!(found(&array)[1].longs(), [3, 2], "{}", message());
}

#[test]
fn a_commit_with_a_key_is_done_once() {
    let (array, key) = (sparse(r#"{"name":"v","dtype":"int64"}"#), b"load 7");
    let call = gridstone_call {
        size: size_of::<gridstone_call>(),
        cancel: 0,
        progress: None,
        user: null_mut(),
        message: null(),
        commit_key: key.as_ptr(),
        commit_key_bytes: key.len(),
        flags: 0,
        reserved: 0,
    };
    let counts = Arc::new(Counts::default());
    let write = |v: i64| {
        let mut version = 0;
        let mut stream = stream_of(vec![rows(vec![longs("x", &[1]), longs("v", &[v])])], false, &counts);
        let status = unsafe { gridstone_array_write_arrow(array.0, &mut stream, null(), &call, &mut version) };
        (status, version)
    };
    assert_eq!(write(5), (GRIDSTONE_OK, 2));
    assert_eq!(write(5), (GRIDSTONE_OK, 2));
    assert_eq!(write(6).0, GRIDSTONE_ERROR_CONFLICT);
}
