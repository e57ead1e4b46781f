//! Reads of an array with and without read-ahead, warm and cold.

use super::scratch::Folder;
use super::told::Told;
use crate::blocks::measure::{median, turns};
use crate::input::{places, slope};
use crate::world::{longs, texts};
use gridstone::base::{AlignedBuf, Error, Result};
use gridstone::engine::{
    Array, At, Call, Column, Context, Durability, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::LocalStorage;
use gridstone_testkit::Dice;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Rows and columns of the array, of a tile, and the side of a box.
const SHAPE: (i64, i64) = (10_000, 4_000);
pub(super) const TILE: (i64, i64) = (2_500, 1_000);
const SIDE: i64 = 1_000;
const POINTS: usize = 1_000;
/// How many boxes a sample of warm boxes has.
const BOXES: usize = 5;

/// The queries, and whether the files were dropped from memory and the array opened anew before each.
const QUESTIONS: [(&str, Asked, bool); 5] = [
    ("box of 1,000 x 1,000, warm", Asked::Boxes(BOXES), false),
    ("everything, warm", Asked::Everything, false),
    ("1,000 cells, warm", Asked::Points, false),
    ("open + box of 1,000 x 1,000, cold", Asked::Boxes(1), true),
    ("open + everything, cold", Asked::Everything, true),
];

#[derive(Clone, Copy)]
enum Asked {
    Boxes(usize),
    Everything,
    Points,
}

/// The table of reads with and without read-ahead.
///
/// # Errors
/// Those of the engine; Unsupported if files cannot be made cold; Input if an answer is wrong.
pub fn ahead(repeats: usize) -> Result<String> {
    let mut text = "| array | read | on, ms | off, ms | on / off |\n|---|---|--:|--:|--:|\n".to_owned();
    for filters in ["none", "shuffle,zstd:3"] {
        let folder = Folder::new()?;
        write(&folder, filters)?;
        for (name, asked, cold) in QUESTIONS {
            let (on, off) = compared(&folder, asked, cold, repeats)?;
            let ratio = on / off;
            let _ = writeln!(text, "| `{filters}` | {name} | {:.2} | {:.2} | {ratio:.2} |", 1e3 * on, 1e3 * off);
        }
    }
    Ok(text)
}

fn context() -> Result<Context> {
    Context::new(&Options::default())
}

/// The value of a cell.
pub(super) fn value(y: i64, x: i64) -> i32 {
    slope(y, x) as i32
}

fn storage(folder: &Folder, tells: bool) -> Result<Arc<Told>> {
    Ok(Arc::new(Told { inner: LocalStorage::new(inside(folder.path()), Durability::Full)?, tells }))
}

fn inside(folder: &Path) -> std::path::PathBuf {
    folder.join("array")
}

/// Writes the array.
pub(super) fn write(folder: &Folder, filters: &str) -> Result<()> {
    let dim = |name: &str, len: i64, tile: i64| {
        format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{}"],"tile":"{tile}"}}"#, len - 1)
    };
    let dims = format!("{},{}", dim("y", SHAPE.0, TILE.0), dim("x", SHAPE.1, TILE.1));
    let json = format!(r#"{{"dims":[{dims}],"attrs":[{{"name":"v","dtype":"int32","filters":"{filters}"}}]}}"#);
    let array = create_array_on(&context()?, storage(folder, true)?, "/", Schema::from_json(&json)?, false)?;
    let bytes: Vec<u8> = (0..SHAPE.0).flat_map(|y| (0..SHAPE.1).flat_map(move |x| value(y, x).to_le_bytes())).collect();
    let column = Column::new(Datatype::Int32, AlignedBuf::from_slice(&bytes), None, None)?;
    let staged = array.stage_dense(None, &vec![("v".to_owned(), column.view())], Order::Row, &Call::default())?;
    array.commit(vec![staged], None)?;
    Ok(())
}

fn open(folder: &Folder, tells: bool) -> Result<Array> {
    open_with(folder, tells, None)
}

/// Opens it with this many threads, with or without read-ahead.
pub(super) fn open_with(folder: &Folder, tells: bool, threads: Option<usize>) -> Result<Array> {
    let context = Context::new(&Options { threads, ..Options::default() })?;
    match open_on(&context, storage(folder, tells)?, "/", false, At::Latest)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => Err(Error::input("a group where an array was created")),
    }
}

/// Typical seconds with and without read-ahead. Both run the same query in every round.
fn compared(folder: &Folder, asked: Asked, cold: bool, repeats: usize) -> Result<(f64, f64)> {
    let arrays = [open(folder, true)?, open(folder, false)?];
    let mut times = [Vec::new(), Vec::new()];
    let mut out = vec![0; (SHAPE.0 * SHAPE.1) as usize * 4];
    // The first round is not counted: it reads files into memory and allocates buffers.
    for repeat in 0..=repeats {
        for at in turns(2, repeat) {
            let Some((array, times)) = arrays.get(at).zip(times.get_mut(at)) else { continue };
            let reader = Reader { asked, round: repeat as u64 };
            let taken = if cold {
                folder.drop_pages()?;
                let start = Instant::now();
                let array = open(folder, at == 0)?;
                let opened = start.elapsed().as_secs_f64();
                opened + reader.read(&array, &mut out)?
            } else {
                reader.read(array, &mut out)?
            };
            if repeat > 0 {
                times.push(taken);
            }
        }
    }
    let [on, off] = times;
    Ok((median(on), median(off)))
}

struct Reader {
    asked: Asked,
    round: u64,
}

impl Reader {
    /// Seconds of one read; the result is checked afterwards.
    fn read(&self, array: &Array, out: &mut [u8]) -> Result<f64> {
        let call = Call::default();
        match self.asked {
            Asked::Boxes(count) => {
                let mut dice = Dice::new(31 + self.round);
                let mut taken = 0.0;
                for _ in 0..count {
                    let corner = (SHAPE.0 - SIDE, SHAPE.1 - SIDE);
                    let (y, x) = (dice.below(corner.0 as usize) as i64, dice.below(corner.1 as usize) as i64);
                    let sub = texts(&[(y, y + SIDE - 1), (x, x + SIDE - 1)]);
                    let start = Instant::now();
                    let cells = array.read(Some(&sub), None, ReadOrder::Row, &call)?.0;
                    taken += start.elapsed().as_secs_f64();
                    let expected = (y..y + SIDE).flat_map(|y| (x..x + SIDE).map(move |x| value(y, x)));
                    check(cells.attrs.first().map_or(&[], |c| c.view().values()), expected)?;
                }
                Ok(taken / count as f64)
            }
            Asked::Everything => {
                let start = Instant::now();
                array.read_into(None, None, ReadOrder::Row, &mut [&mut *out], &call)?;
                let taken = start.elapsed().as_secs_f64();
                let expected = (0..SHAPE.0).flat_map(|y| (0..SHAPE.1).map(move |x| value(y, x)));
                check(out, expected)?;
                out.fill(0);
                Ok(taken)
            }
            Asked::Points => {
                let cells = places(POINTS, SHAPE.0, SHAPE.1);
                let dims = [longs(cells.iter().map(|c| c.0))?, longs(cells.iter().map(|c| c.1))?];
                let dims: Vec<_> = dims.iter().map(Column::view).collect();
                let start = Instant::now();
                let found = array.points(&dims, None, &call)?.0;
                let taken = start.elapsed().as_secs_f64();
                let expected = cells.iter().map(|(y, x)| value(*y, *x));
                check(found.attrs.first().map_or(&[], |c| c.view().values()), expected)?;
                Ok(taken)
            }
        }
    }
}

/// Compares the result with the expected one.
pub(super) fn check(found: &[u8], expected: impl Iterator<Item = i32>) -> Result<()> {
    let (words, _) = found.as_chunks::<4>();
    if words.iter().map(|word| i32::from_le_bytes(*word)).eq(expected) {
        return Ok(());
    }
    Err(Error::input("wrong values were read"))
}
