//! A cell outside its block's box, behind checksums that are right.

use super::columns::{bytes_of, numbers, view};
use super::store::{context, open};
use gridstone::base::{ErrorKind, Result, xxh3};
use gridstone::engine::{Array, At, Call, CellData, Condition, Dedup, ReadOrder, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::Storage;
use std::sync::Arc;

const CELLS: i64 = 60_000;
/// The coordinates are that far apart.
const STEP: i64 = 3;
/// The section of blocks' boxes.
const BLOCK_BOUNDS: u64 = 5;

fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut word = [0; 8];
    word[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(word)
}

fn seal(bytes: &mut [u8], at: usize, (from, len): (usize, usize)) {
    let sum = xxh3(&bytes[from..from + len]);
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Makes the box of a block of a fragment of one dimension end before its last cell; gives how many cells a block has.
fn shrink(bytes: &mut [u8], block: usize) -> i64 {
    let footer = bytes.len() - 64;
    let (root, root_len) = (number(bytes, footer, 8) as usize, number(bytes, footer + 8, 8) as usize);
    // Its last table: 40 bytes per section.
    let is_bounds = |at: &usize| number(bytes, *at, 4) == BLOCK_BOUNDS && number(bytes, *at + 8, 8) == 0;
    let section = (1..).map(|n| root + root_len - 40 * n).find(is_bounds).unwrap();
    let (offset, len) = (number(bytes, section + 16, 8) as usize, number(bytes, section + 24, 8) as usize);
    let hi = offset + 16 * block + 8;
    let shrunk = number(bytes, hi, 8) - STEP as u64;
    bytes[hi..hi + 8].copy_from_slice(&shrunk.to_le_bytes());
    seal(bytes, section + 32, (offset, len));
    seal(bytes, footer + 16, (root, root_len));
    seal(bytes, footer + 56, (footer, 56));
    number(bytes, root + 4, 4) as i64
}

/// An array whose `v` counts its cells, one of which lies outside its block's box: which.
fn damaged(storage: &Arc<dyn Storage>) -> i64 {
    let schema = r#"{"sparse":true,"capacity":20000,"dims":[{"name":"x","dtype":"int64","domain":["0","999999"]}],
        "attrs":[{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64","filters":"none"}]}"#;
    let array = create_array_on(&context(64), storage.clone(), "/line", Schema::from_json(schema).unwrap(), false);
    let array = array.unwrap();
    let (x, v) = (bytes_of((0..CELLS).map(|n| n * STEP)), bytes_of(0..CELLS));
    let w = bytes_of((0..CELLS).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)));
    let attrs = vec![("v".to_owned(), view(&v)), ("w".to_owned(), view(&w))];
    let data = CellData { dims: vec![view(&x)], attrs, sorted: true, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    let names = storage.list("_data").unwrap();
    let [name] = names.as_slice() else { panic!("one file, not {names:?}") };
    let mut bytes = storage.read_all(name).unwrap().to_vec();
    let cells = shrink(&mut bytes, 3);
    storage.put(name, &bytes).unwrap();
    4 * cells - 1
}

/// The values of `v` that are selected in a box of cells, which is told by their numbers.
fn read(array: &Array, text: &str, cells: Option<(i64, i64)>) -> Result<Vec<i64>> {
    let bounds = cells.map(|(from, to)| [((from * STEP).to_string(), (to * STEP).to_string())]);
    let (condition, sub) = (Condition::parse(text).unwrap(), bounds.as_ref().map(<[_; 1]>::as_slice));
    let (cells, _) = array.read_where(sub, None, &condition, ReadOrder::Row, &Call::default())?;
    let v = numbers(&cells.attrs[0]);
    assert!(numbers(&cells.dims[0]).iter().eq(v.iter().map(|v| v * STEP).collect::<Vec<_>>().iter()), "{text}");
    Ok(v)
}

/// What a read with a condition makes of such a coordinate, and the check.
pub(crate) fn check(storage: &Arc<dyn Storage>) {
    let astray = damaged(storage);
    let array = open(&context(64), storage, "/line", At::Latest).unwrap();
    let refused = |text: &str, cells: Option<(i64, i64)>| {
        let error = read(&array, text, cells).map(|found| found.len()).unwrap_err();
        let (kind, text) = (error.kind(), format!("{text} in {cells:?}: {error}"));
        assert!(kind == ErrorKind::Corruption && text.contains("\"x\" lies outside its block's MBR"), "{text}");
    };
    // All of the block, what it begins with, and what it ends with.
    let boxes = [None, Some((0, astray - 20)), Some((astray - 10, CELLS - 1))];
    for cells in boxes {
        refused(&format!("v between {} and {astray}", astray - 15), cells);
        // The condition looks at all coordinates.
        refused(&format!("x < 30 or v between {} and {astray}", astray - 15), cells);
        refused(&format!("x < 30 or v between {} and {}", astray - 15, astray - 1), cells);
        let (from, to) = (astray - 30, astray - 1);
        let lies_in = |v: &i64| cells.is_none_or(|(first, last)| (first..=last).contains(v));
        let expected: Vec<i64> = (from..=to).filter(lies_in).collect();
        assert!(!expected.is_empty());
        assert_eq!(read(&array, &format!("v between {from} and {to}"), cells).unwrap(), expected);
        let others = format!("x < 30 or v between {} and {}", astray + 1, astray + 9);
        // Statistics do not tell that nothing is selected in the block.
        if cells.is_none_or(|(_, last)| last > astray) {
            refused(&others, cells);
        }
    }
    // Its block is not touched.
    assert_eq!(read(&array, "v >= 0", Some((0, 5))).unwrap(), [0, 1, 2, 3, 4, 5]);
    let after = Some((astray + 1, astray + 3));
    assert_eq!(read(&array, "x < 30 or v >= 0", after).unwrap(), [astray + 1, astray + 2, astray + 3]);
    let damage = array.verify(&Call::default()).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((damage[0].tile, damage[0].column.as_deref()), (Some(0), Some("x")));
    assert!(damage[0].message.contains("outside its block's MBR"), "{damage:?}");
}
