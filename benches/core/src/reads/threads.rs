//! The size from which on a second thread is worth waking: boxes of growing size, by one thread and by two.

use super::ahead::{TILE, check, open_with, value, write};
use super::scratch::Folder;
use crate::blocks::measure::{median, turns};
use crate::world::texts;
use gridstone::base::Result;
use gridstone::engine::{Array, Call, ReadOrder};
use gridstone_testkit::Dice;
use std::fmt::Write as _;
use std::time::Instant;

/// Rows of the boxes, each as wide as a tile of 1,000 int32: from a quarter of a MiB on, each twice the one before.
const ROWS: [i64; 6] = [65, 131, 262, 524, 1_048, 2_097];
const FILTERS: [&str; 3] = ["none", "shuffle,zstd:3", "pco:4"];
/// Reads per requested repeat.
const READS: usize = 8;

/// The table of boxes by one thread and by two.
///
/// # Errors
/// Those of the engine; Input if an answer is wrong.
pub fn threads(repeats: usize) -> Result<String> {
    let mut text = "| filters | MiB | one thread, ms | two threads | two / one |\n|---|--:|--:|--:|--:|\n".to_owned();
    for filters in FILTERS {
        let folder = Folder::new()?;
        write(&folder, filters)?;
        let arrays = [open_with(&folder, true, Some(1))?, open_with(&folder, true, Some(2))?];
        for rows in ROWS {
            let (one, two) = compared(&arrays, rows, repeats)?;
            let (mib, ratio) = ((rows * TILE.1 * 4) as f64 / f64::from(1 << 20), two / one);
            let _ = writeln!(text, "| `{filters}` | {mib:.2} | {:.3} | {:.3} | {ratio:.2} |", 1e3 * one, 1e3 * two);
        }
    }
    Ok(text)
}

/// Typical seconds by one thread and by two, with the same boxes in turn.
fn compared(arrays: &[Array; 2], rows: i64, repeats: usize) -> Result<(f64, f64)> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=READS * repeats {
        let mut dice = Dice::new(7 + round as u64);
        let y = dice.below((TILE.0 - rows) as usize) as i64;
        for at in turns(2, round) {
            let Some((array, times)) = arrays.get(at).zip(times.get_mut(at)) else { continue };
            let sub = texts(&[(y, y + rows - 1), (0, TILE.1 - 1)]);
            let start = Instant::now();
            let cells = array.read(Some(&sub), None, ReadOrder::Row, &Call::default())?.0;
            let taken = start.elapsed().as_secs_f64();
            let expected = (y..y + rows).flat_map(|y| (0..TILE.1).map(move |x| value(y, x)));
            check(cells.attrs.first().map_or(&[], |c| c.view().values()), expected)?;
            if round > 0 {
                times.push(taken);
            }
        }
    }
    let [one, two] = times;
    Ok((median(one), median(two)))
}
