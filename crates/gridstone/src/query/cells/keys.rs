//! Keys of the global order, made by all threads.

use crate::base::{Cancel, Result};
use crate::runtime::Pool;
use crate::schema::Schema;
use crate::tile::{CellKeys, KeyLayout};

/// The cells' keys in global order, made by all threads, asking between portions whether to go on.
pub(in crate::query) fn order_keys(
    pool: &Pool,
    cancel: &dyn Cancel,
    schema: &Schema,
    given: &[Vec<u64>],
) -> Result<CellKeys> {
    let layout = KeyLayout::new(schema);
    let cells = given.first().map_or(0, Vec::len);
    let portion = |from: usize| {
        let to = (from + SHARE).min(cells);
        Ok(layout.keys(&given.iter().map(|column| column.get(from..to).unwrap_or_default()).collect::<Vec<_>>()))
    };
    let mut order = layout.keys(&vec![&[][..]; given.len()]);
    order.reserve(cells);
    let starts: Vec<usize> = (0..cells).step_by(SHARE).collect();
    // Few at a time: little is held twice, and still in a core's cache when it is copied.
    for some in starts.chunks(pool.threads()) {
        pool.map(some.to_vec(), cancel, portion)?.iter().for_each(|keys| order.append(keys));
    }
    Ok(order)
}

/// Cells whose keys one thread makes at once: about a millisecond of work.
const SHARE: usize = 1 << 16;
