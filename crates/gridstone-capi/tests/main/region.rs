//! Regions: what their boxes mean in an array, and dates and times as they are written.

use crate::support::*;
use gridstone_capi::*;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

/// A dense array over the days of March and April 2026, in tiles of a week, whose cells are 0, 1, 2 ….
fn days(uri: &CStr) -> (Held, Held) {
    // SAFETY: null means the usual choices; the texts live through the calls.
    unsafe {
        let context = Held::of(|out| gridstone_context_create(null(), out));
        let schema = Held::of(|out| gridstone_schema_create(null(), out));
        ok(gridstone_schema_add_dimension(schema.0, &raw const *Dim::days(c"2026-03", c"2026-04", c"1 W")));
        let mut attribute: gridstone_attribute = std::mem::zeroed();
        attribute.size = size_of::<gridstone_attribute>();
        (attribute.name, attribute.r#type) = (c"v".as_ptr(), c"int64".as_ptr());
        ok(gridstone_schema_add_attribute(schema.0, &raw const attribute));
        let array = Held::of(|out| gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out));
        let values: Vec<i64> = (0..61).collect();
        let given = [column(c"v", &values)];
        ok(gridstone_array_write(array.0, 0, GRIDSTONE_ORDER_ROW, given.as_ptr(), 1, null(), null_mut()));
        (context, array)
    }
}

/// A dimension of days.
struct Dim;

impl Dim {
    fn days(low: &CStr, high: &CStr, tile: &CStr) -> Box<gridstone_dimension> {
        Self::of(c"datetime64[D]", [low.as_ptr(), high.as_ptr(), tile.as_ptr()])
    }

    fn of(kind: &CStr, [low, high, tile]: [*const c_char; 3]) -> Box<gridstone_dimension> {
        let (name, kind) = (c"t".as_ptr(), kind.as_ptr());
        let size = size_of::<gridstone_dimension>();
        Box::new(gridstone_dimension { size, name, r#type: kind, low, high, tile, text_bytes_max: 0 })
    }
}

fn written(ends: &[&CStr]) -> Held {
    let region = Held::of(|out| unsafe { gridstone_region_create(out) });
    let ends: Vec<*const c_char> = ends.iter().map(|end| end.as_ptr()).collect();
    ok(unsafe { gridstone_region_add_texts(region.0, ends.as_ptr(), ends.len()) });
    region
}

fn cells(array: &Held, region: &Held) -> u64 {
    number_of(|out| unsafe { gridstone_region_cells(array.0, region.0, out) })
}

/// The cells of a region of `v`.
fn read(array: &Held, region: &Held) -> Vec<i64> {
    let mut found = vec![-1_i64; usize::try_from(cells(array, region)).unwrap()];
    // SAFETY: all zeros are a value of it.
    let mut buffer: gridstone_buffer = unsafe { std::mem::zeroed() };
    (buffer.size, buffer.name) = (size_of::<gridstone_buffer>(), c"v".as_ptr());
    (buffer.values, buffer.values_bytes) = (found.as_mut_ptr().cast(), size_of_val(found.as_slice()));
    // SAFETY: the buffer has the room that it says.
    ok(unsafe { gridstone_array_read(array.0, region.0, GRIDSTONE_ORDER_ROW, &raw mut buffer, 1, null()) });
    found
}

#[test]
fn written_dates_are_periods() {
    let (_context, array) = days(c"mem://region-periods");
    let schema = json_of(|out| unsafe { gridstone_schema_json(array.0, out) });
    assert_eq!(schema["dims"][0]["domain"], serde_json::json!(["20513", "20573"]));
    assert_eq!(schema["dims"][0]["tile"], "7");
    let cases: [(&[&CStr], Vec<i64>); 6] = [
        (&[c"2026-03-05", c"2026-03-07"], vec![4, 5, 6]),
        (&[c"2026-04", c"2026-04"], (31..61).collect()),
        (&[c"2026-03", c"2026-03-02"], vec![0, 1]),
        (&[c"20513", c"20514"], vec![0, 1]),
        (&[c"20513 D", c"20514 D"], vec![0, 1]),
        // The days that begin within it.
        (&[c"2026-03-05T12", c"2026-03-07T12"], vec![5, 6]),
    ];
    for (ends, expected) in cases {
        assert_eq!(read(&array, &written(ends)), expected, "{ends:?}");
    }
}

#[test]
fn what_is_no_date_is_an_error_of_the_call() {
    let (_context, array) = days(c"mem://region-no-dates");
    let refused = |ends: &[&CStr], status, part| {
        let (region, mut count) = (written(ends), 7);
        fails(unsafe { gridstone_region_cells(array.0, region.0, &raw mut count) }, status, part);
        assert_eq!(count, 7);
    };
    refused(&[c"2026", c"2026-04"], GRIDSTONE_ERROR_INPUT, "\"2026\" is a year, and a number of steps");
    refused(&[c"2026-03", c"spring"], GRIDSTONE_ERROR_INPUT, "\"spring\" is no date or time");
    refused(&[c"2026-03-05T01", c"2026-03-05T02"], GRIDSTONE_ERROR_BOUNDS, "no coordinate lies from 2026-03-05T01");
    refused(&[c"2026-04", c"2026-03"], GRIDSTONE_ERROR_BOUNDS, "2026-04 is above the high end 2026-03");
    refused(&[c"4x", c"2026-04"], GRIDSTONE_ERROR_INPUT, "\"4x\" is no date or time");
    refused(&[c"2026-05", c"2026-06"], GRIDSTONE_ERROR_BOUNDS, "is not inside the domain");
    // SAFETY: all zeros are a value of the options.
    let mut options: gridstone_schema_options = unsafe { std::mem::zeroed() };
    (options.size, options.sparse) = (size_of::<gridstone_schema_options>(), 1);
    let schema = Held::of(|out| unsafe { gridstone_schema_create(&raw const options, out) });
    let add = |dim: Box<gridstone_dimension>| unsafe { gridstone_schema_add_dimension(schema.0, &raw const *dim) };
    fails(add(Dim::days(c"2026", c"2027-01", c"7")), GRIDSTONE_ERROR_INPUT, "is a year");
    fails(add(Dim::days(c"2026-01", c"2027-01", c"36 h")), GRIDSTONE_ERROR_INPUT, "begins within a step");
    let coarse = |kind, low: &CStr, high: &CStr| add(Dim::of(kind, [low.as_ptr(), high.as_ptr(), null()]));
    // A domain that begins or ends within a step would have no place for what is there.
    fails(coarse(c"datetime64[Y]", c"2026-06", c"2027-06"), GRIDSTONE_ERROR_INPUT, "\"2026-06\" begins within a step");
    fails(coarse(c"datetime64[W]", c"2026-03-01", c"2026-04"), GRIDSTONE_ERROR_INPUT, "\"2026-03-01\" begins within");
    fails(coarse(c"datetime64[M]", c"2026-03", c"2026-05-15"), GRIDSTONE_ERROR_INPUT, "\"2026-05-15\" begins within");
    fails(coarse(c"datetime64[ns]", c"1600-01", c"2026-05"), GRIDSTONE_ERROR_INPUT, "beyond what datetime64[ns] holds");
    fails(coarse(c"datetime64[ns]", c"2026-01", c"2500-12"), GRIDSTONE_ERROR_INPUT, "\"2500-12\" is beyond");
    fails(add(Dim::days(c"2026-01", c"2027-01", c"1 M")), GRIDSTONE_ERROR_INPUT, "have no length in days");
    ok(add(Dim::of(c"timedelta64[s]", [c"0 s".as_ptr(), c"1 h".as_ptr(), c"90 m".as_ptr()])));
    // SAFETY: all zeros are a value of it.
    let mut attribute: gridstone_attribute = unsafe { std::mem::zeroed() };
    attribute.size = size_of::<gridstone_attribute>();
    (attribute.name, attribute.r#type, attribute.fill) = (c"v".as_ptr(), c"datetime64[h]".as_ptr(), c"2026".as_ptr());
    fails(
        unsafe { gridstone_schema_add_attribute(schema.0, &raw const attribute) },
        GRIDSTONE_ERROR_INPUT,
        "is a year",
    );
    attribute.fill = c"1970-01-02".as_ptr();
    ok(unsafe { gridstone_schema_add_attribute(schema.0, &raw const attribute) });
    let json = json_of(|out| unsafe { gridstone_schema_json(schema.0, out) });
    assert_eq!(json["attrs"][0]["fill"], "24");
    assert!(
        json["dims"][0]["domain"] == serde_json::json!(["0", "3600"]) && json["dims"][0]["tile"] == "5400",
        "{json}"
    );
}

#[test]
fn a_region_is_cut_when_it_is_asked_for() {
    let (_context, array) = days(c"mem://region-cut");
    let region = written(&[c"2026-02", c"2026-03-02"]);
    let mut count = 7;
    let refused = unsafe { gridstone_region_cells(array.0, region.0, &raw mut count) };
    fails(refused, GRIDSTONE_ERROR_BOUNDS, "is not inside the domain");
    ok(gridstone_region_cut(region.0));
    assert_eq!((cells(&array, &region), read(&array, &region)), (2, vec![0, 1]));
    // A box that is added later is cut too.
    let more = [20_570_i64, 30_000];
    ok(unsafe { gridstone_region_add(region.0, more.as_ptr(), 2) });
    assert_eq!(cells(&array, &region), 6);
    let selected: u64 =
        number_of(|out| unsafe { gridstone_array_count(array.0, region.0, c"v >= 1".as_ptr(), null(), out) });
    assert_eq!(selected, 5);
    // One that lies outside altogether.
    let outside = written(&[c"2027-01", c"2027-02"]);
    ok(gridstone_region_cut(outside.0));
    assert_eq!(cells(&array, &outside), 0);
    let found: u64 = number_of(|out| unsafe { gridstone_array_count(array.0, outside.0, null(), null(), out) });
    assert_eq!(found, 0);
    fails(gridstone_region_cut(array.0), GRIDSTONE_ERROR_HANDLE, "a region is needed");
    assert_eq!(number_of(|out| unsafe { gridstone_region_cells(array.0, 0, out) }), 61_u64);
}

#[test]
fn a_region_means_what_it_means_in_each_array() {
    let (_one, days_array) = days(c"mem://region-two-a");
    let (_two, other) = days(c"mem://region-two-b");
    let region = written(&[c"2026-03-01", c"2026-03-01"]);
    for _ in 0..3 {
        assert_eq!(read(&days_array, &region), [0]);
        assert_eq!(read(&other, &region), [0]);
    }
    // A domain that grows is another one: an open end moves with it.
    let open = Held::of(|out| unsafe { gridstone_region_create(out) });
    let ends = [c"2026-04-29".as_ptr(), null()];
    ok(unsafe { gridstone_region_add_texts(open.0, ends.as_ptr(), 2) });
    assert_eq!(cells(&other, &open), 2);
    let evolution = c"{\"domains\": [[\"t\", \"20513\", \"20576\"]]}".as_ptr();
    ok(unsafe { gridstone_array_alter(other.0, evolution, null(), 0, null(), null_mut()) });
    assert_eq!(cells(&other, &open), 5);
    assert_eq!(cells(&days_array, &open), 2);
}

/// An array along "x" of a type and a domain, whose cells are 0, 1, 2 ….
fn along(uri: &CStr, kind: &CStr, low: &CStr, high: &CStr, cells: i64) -> (Held, Held) {
    // SAFETY: null means the usual choices; the texts live through the calls.
    unsafe {
        let context = Held::of(|out| gridstone_context_create(null(), out));
        let schema = Held::of(|out| gridstone_schema_create(null(), out));
        let dim = Dim::of(kind, [low.as_ptr(), high.as_ptr(), null()]);
        ok(gridstone_schema_add_dimension(schema.0, &raw const *dim));
        let mut attribute: gridstone_attribute = std::mem::zeroed();
        attribute.size = size_of::<gridstone_attribute>();
        (attribute.name, attribute.r#type) = (c"v".as_ptr(), c"int64".as_ptr());
        ok(gridstone_schema_add_attribute(schema.0, &raw const attribute));
        let array = Held::of(|out| gridstone_array_create(context.0, uri.as_ptr(), null(), schema.0, 0, out));
        let values: Vec<i64> = (0..cells).collect();
        let given = [column(c"v", &values)];
        ok(gridstone_array_write(array.0, 0, GRIDSTONE_ORDER_ROW, given.as_ptr(), 1, null(), null_mut()));
        (context, array)
    }
}

#[test]
fn a_cut_region_may_reach_beyond_the_type() {
    let (_context, array) = along(c"mem://region-uint8", c"uint8", c"10", c"99", 90);
    let of = |ends: [i64; 2]| {
        let region = boxed(&ends);
        ok(gridstone_region_cut(region.0));
        region
    };
    // A stencil's neighbours.
    assert_eq!(read(&array, &of([-1, 11])), [0, 1]);
    assert_eq!(read(&array, &of([98, 300])), [88, 89]);
    assert_eq!(cells(&array, &of([i64::MIN, i64::MAX])), 90);
    for outside in [[-5, -2], [-1, 5], [300, 400], [200, 210]] {
        assert_eq!(cells(&array, &of(outside)), 0, "{outside:?}");
    }
    let texts = written(&[c"-1000000000000000000000", c"12"]);
    ok(gridstone_region_cut(texts.0));
    assert_eq!(read(&array, &texts), [0, 1, 2]);
    let low_open = Held::of(|out| unsafe { gridstone_region_create(out) });
    let ends = [null(), c"5".as_ptr()];
    ok(unsafe { gridstone_region_add_texts(low_open.0, ends.as_ptr(), 2) });
    ok(gridstone_region_cut(low_open.0));
    assert_eq!(cells(&array, &low_open), 0);
    // It stays an error where it was not asked for, or where the ends are the wrong way round.
    let mut count = 7;
    let refused = |region: &Held, count: &mut u64| unsafe { gridstone_region_cells(array.0, region.0, count) };
    fails(refused(&boxed(&[-1, 11]), &mut count), GRIDSTONE_ERROR_BOUNDS, "-1 is outside dimension \"t\"");
    fails(refused(&of([20, 15]), &mut count), GRIDSTONE_ERROR_BOUNDS, "20 is above the high end 15");
    fails(refused(&written(&[c"4x", c"9"]), &mut count), GRIDSTONE_ERROR_BOUNDS, "4x is no coordinate of dimension");
}

#[test]
fn a_deletion_is_cut_as_a_read_is() {
    let (_context, array) = along(c"mem://region-delete", c"int32", c"0", c"9", 10);
    let region = boxed(&[5, 500]);
    let delete =
        |region: &Held, condition| unsafe { gridstone_array_delete(array.0, region.0, condition, null(), null_mut()) };
    fails(delete(&region, c"v >= 0".as_ptr()), GRIDSTONE_ERROR_BOUNDS, "is not inside the domain");
    ok(gridstone_region_cut(region.0));
    ok(delete(&region, c"v = 7".as_ptr()));
    ok(delete(&region, null()));
    assert_eq!(read(&array, &boxed(&[3, 6])), [3, 4, 0, 0]);
    let outside = boxed(&[100, 200]);
    ok(gridstone_region_cut(outside.0));
    ok(delete(&outside, null()));
    assert_eq!(read(&array, &boxed(&[0, 4])), [0, 1, 2, 3, 4]);
}

#[test]
fn a_region_without_a_box_is_a_wrong_argument() {
    let (_context, array) = along(c"mem://region-empty", c"int32", c"0", c"9", 10);
    let region = Held::of(|out| unsafe { gridstone_region_create(out) });
    let (mut cells, none) = (7, null());
    // SAFETY: the places are there.
    unsafe {
        let told = "the region has no box";
        fails(gridstone_region_cells(array.0, region.0, &raw mut cells), GRIDSTONE_ERROR_INPUT, told);
        fails(gridstone_array_count(array.0, region.0, none, null(), &raw mut cells), GRIDSTONE_ERROR_INPUT, told);
        fails(gridstone_array_delete(array.0, region.0, none, null(), null_mut()), GRIDSTONE_ERROR_INPUT, told);
        ok(gridstone_region_cut(region.0));
        fails(gridstone_array_delete(array.0, region.0, none, null(), null_mut()), GRIDSTONE_ERROR_INPUT, told);
    }
    assert_eq!(cells, 7);
}

#[test]
fn the_box_of_what_was_written_can_be_asked_for() {
    for (uri, kind, low, high, count) in [
        (c"mem://region-weeks", c"datetime64[W]", c"2609 W", c"2974 W", 366),
        (c"mem://region-quarters", c"datetime64[6h]", c"2020-01-01", c"2020-01-10", 40),
        (c"mem://region-numbers", c"int16", c"2000", c"2009", 10),
    ] {
        let (_context, array) = along(uri, kind, low, high, count);
        let domain = json_of(|out| unsafe { gridstone_array_nonempty_domain(array.0, out) });
        let ends = [0, 1].map(|end| c(domain[0][end].as_str().unwrap()));
        let region = written(&[&ends[0], &ends[1]]);
        assert_eq!(read(&array, &region), (0..count).collect::<Vec<i64>>(), "{domain}");
    }
}

#[test]
fn a_wrong_number_of_buffers_is_an_error() {
    let (_context, array) = along(c"mem://region-buffers", c"int32", c"0", c"9", 10);
    let mut values = [0_i64; 10];
    let mut buffers = [buffer(c"v", &mut values), unsafe { std::mem::zeroed() }];
    for count in [1_usize << 44, 2] {
        // SAFETY: the second struct has no size, which is found before anything behind it is looked at.
        let status = unsafe { gridstone_array_read(array.0, 0, 0, buffers.as_mut_ptr(), count, null()) };
        fails(status, GRIDSTONE_ERROR_INPUT, "gridstone_buffer");
    }
}

#[test]
fn periods_beyond_the_type_take_in_what_lies_before_them() {
    let (_context, array) = days(c"mem://region-beyond");
    let region = written(&[c"-9000000000000000000-01", c"9000000000000000000-12"]);
    ok(gridstone_region_cut(region.0));
    assert_eq!(cells(&array, &region), 61);
    let region = written(&[c"30000000000000000-01", c"30000000000000000-02"]);
    let mut count = 7;
    let refused = unsafe { gridstone_region_cells(array.0, region.0, &raw mut count) };
    fails(refused, GRIDSTONE_ERROR_BOUNDS, "30000000000000000-01 is outside dimension \"t\"");
}
