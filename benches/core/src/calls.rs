//! Small calls of the engine, and the same through the C interface: what the way through it costs.

use super::case::{Case, work};
use gridstone::base::{Error, Result};
use gridstone::engine::{self, Array, Call, Context, Options, ReadOrder};
use gridstone::schema::Schema;
use gridstone_capi::{
    GRIDSTONE_OK, GRIDSTONE_ORDER_ROW, gridstone_array, gridstone_array_open, gridstone_array_read,
    gridstone_array_version, gridstone_buffer, gridstone_context, gridstone_context_create, gridstone_region,
    gridstone_region_add, gridstone_region_create, gridstone_status,
};
use std::ffi::{CString, c_char};
use std::ptr;

/// Calls of each workload.
const CALLS: usize = 100;
/// A box of 8 x 8 cells, in the middle of a tile.
const BOX: [(i64, i64); 2] = [(20, 27), (36, 43)];
const CELLS: usize = 64;
const SIDE: i64 = 256;

/// An array in the memory of this process, whose cells are written.
fn filled(uri: &str) -> Result<Array> {
    let dim = |name: &str| format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","255"],"tile":"128"}}"#);
    let attr = r#"{"name":"v","dtype":"int64","filters":"none"}"#;
    let schema = Schema::from_json(&format!(r#"{{"dims":[{},{}],"attrs":[{attr}]}}"#, dim("y"), dim("x")))?;
    let context = Context::new(&Options::default())?;
    let array = engine::create_array(&context, uri, "/", schema, true)?;
    let values: Vec<i64> = (0..SIDE * SIDE).collect();
    let data = vec![("v".to_owned(), engine::ColumnView::of(&values))];
    array.commit(vec![array.stage_box(None, &data, gridstone::schema::Order::Row, &Call::default())?], None)?;
    Ok(array)
}

/// The sum of the cells of the box.
fn expected() -> i64 {
    let [(top, bottom), (left, right)] = BOX;
    (top..=bottom).flat_map(|y| (left..=right).map(move |x| y * SIDE + x)).sum()
}

/// The error of a call of the C interface that should work.
fn done(status: gridstone_status) -> Result<()> {
    if status == GRIDSTONE_OK { Ok(()) } else { Err(Error::input(format!("a call of C gave the status {status}"))) }
}

/// The array at a URI, opened through the C interface, and the region of the box.
fn opened(uri: &str) -> Result<(gridstone_array, gridstone_region)> {
    let (mut context, mut array, mut region): (gridstone_context, gridstone_array, gridstone_region) = (0, 0, 0);
    let uri = CString::new(uri).map_err(|_| Error::input("a zero in a URI"))?;
    let ends: Vec<i64> = BOX.iter().flat_map(|(lo, hi)| [*lo, *hi]).collect();
    // SAFETY: the pointers are those of values here, and null where nothing is given.
    unsafe {
        done(gridstone_context_create(ptr::null(), &mut context))?;
        done(gridstone_array_open(context, uri.as_ptr(), ptr::null(), &mut array))?;
        done(gridstone_region_create(&mut region))?;
        done(gridstone_region_add(region, ends.as_ptr(), ends.len()))?;
    }
    Ok((array, region))
}

/// Asks for the version of an array.
pub(crate) fn version(through_c: bool) -> Case {
    let (name, uri) = named("version", through_c);
    Case::repeated(name, 0, move || {
        let array = filled(&uri)?;
        let newest = array.version();
        let (handle, _) = opened(&uri)?;
        let ask = move || {
            let mut last = 0;
            for _ in 0..CALLS {
                if through_c {
                    // SAFETY: the pointer is that of a value here.
                    done(unsafe { gridstone_array_version(handle, &mut last) })?;
                } else {
                    last = array.version();
                }
            }
            Ok(last)
        };
        work(ask, move |version| Ok(*version == newest))
    })
}

/// Reads a small box into a buffer.
pub(crate) fn read(through_c: bool) -> Case {
    let (name, uri) = named("read", through_c);
    Case::repeated(name, 0, move || {
        let array = filled(&uri)?;
        let (handle, region_in_c) = opened(&uri)?;
        let spans = BOX.iter().map(|(lo, hi)| (*lo..=*hi).into()).collect();
        let (region, names) = (array.region(&[spans])?, ["v".to_owned()]);
        let once = move |cells: &mut [i64; CELLS]| {
            if through_c {
                return read_through_c(handle, region_in_c, cells);
            }
            let mut bytes: [&mut [u8]; 1] = [cells_as_bytes(cells)];
            let read = array.read_box_into(Some(&region), Some(&names), ReadOrder::Row, &mut bytes, &Call::default());
            read.map(drop)
        };
        // The first read of an array opens its fragments.
        once(&mut [0; CELLS])?;
        let ask = move || {
            let mut cells = [0_i64; CELLS];
            (0..CALLS).try_for_each(|_| once(&mut cells))?;
            Ok(cells)
        };
        work(ask, |cells| Ok(cells.iter().sum::<i64>() == expected()))
    })
}

fn cells_as_bytes(cells: &mut [i64; CELLS]) -> &mut [u8] {
    // SAFETY: numbers have no padding, and any bytes are some.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast(), size_of_val(cells)) }
}

fn read_through_c(handle: gridstone_array, region: gridstone_region, cells: &mut [i64; CELLS]) -> Result<()> {
    let name: *const c_char = c"v".as_ptr();
    let mut buffer = gridstone_buffer {
        size: size_of::<gridstone_buffer>(),
        name,
        r#type: ptr::null(),
        values: cells.as_mut_ptr().cast(),
        values_bytes: size_of_val(cells),
        offsets: ptr::null_mut(),
        offset_count: 0,
        validity: ptr::null_mut(),
        validity_count: 0,
        filled_bytes: 0,
    };
    // SAFETY: the buffer has room for the box.
    done(unsafe { gridstone_array_read(handle, region, GRIDSTONE_ORDER_ROW, &mut buffer, 1, ptr::null()) })
}

/// The name of a workload, and the place of its array.
fn named(what: &str, through_c: bool) -> (String, String) {
    let way = if through_c { "c" } else { "rust" };
    (format!("call/{what}/{way}"), format!("mem://calls-{what}-{way}"))
}
