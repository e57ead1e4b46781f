//! Small commits: with bytes in the log's record, and with bytes in a data file.

use super::scratch::Folder;
use crate::blocks::measure::{median, turns};
use crate::input::scattered;
use crate::world::longs;
use gridstone::base::{Error, Result};
use gridstone::engine::{Array, At, Call, CellData, Column, Context, Dedup, Durability, Options, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::LocalStorage;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Commits per requested repeat: a commit is quick, and every 64th does more.
const COMMITS: usize = 14;
/// Cells of a commit, and whether its bytes (40 per cell, not packed) are in the record, whose body takes 128 KiB.
const BATCHES: [(u32, bool); 3] = [(1_000, true), (3_100, true), (3_300, false)];
const ATTRS: [&str; 3] = ["a", "b", "c"];

/// The table of small commits.
///
/// # Errors
/// Those of the engine; Input if bytes are elsewhere than expected.
pub fn inline(repeats: usize) -> Result<String> {
    let mut text =
        "| cells | bytes lie in | durability | commit, ms | microseconds per cell |\n|--:|---|---|--:|--:|\n"
            .to_owned();
    for (durability, name) in [(Durability::Full, "full"), (Durability::Close, "close")] {
        let folders = BATCHES.iter().map(|_| Folder::new()).collect::<Result<Vec<_>>>()?;
        let arrays = folders.iter().map(|f| empty(f, durability)).collect::<Result<Vec<_>>>()?;
        let mut times = vec![Vec::new(); BATCHES.len()];
        for round in 0..COMMITS * repeats {
            for at in turns(BATCHES.len(), round) {
                let Some((((cells, inline), array), times)) =
                    BATCHES.get(at).zip(arrays.get(at)).zip(times.get_mut(at))
                else {
                    continue;
                };
                times.push(commit(array, *cells, round as u32)?);
                if round == 0 && !array.at(At::Latest)?.fragments()?.iter().all(|f| f.inline == *inline) {
                    return Err(Error::input(format!("the bytes of {cells} cells lie elsewhere than expected")));
                }
            }
        }
        for ((cells, inline), times) in BATCHES.iter().zip(times) {
            let place = if *inline { "the record" } else { "a data file" };
            let seconds = median(times);
            let (ms, each) = (1e3 * seconds, 1e6 * seconds / f64::from(*cells));
            let _ = writeln!(text, "| {cells} | {place} | {name} | {ms:.2} | {each:.2} |");
        }
    }
    Ok(text)
}

fn empty(folder: &Folder, durability: Durability) -> Result<Array> {
    let dim = |name: &str| format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","8191"],"tile":"1024"}}"#);
    let attr = |name: &str| format!(r#"{{"name":"{name}","dtype":"int64","filters":"none"}}"#);
    let json = format!(
        r#"{{"sparse":true,"capacity":10000,"coord_filters":"none","dims":[{},{}],"attrs":[{}]}}"#,
        dim("x"),
        dim("y"),
        ATTRS.map(attr).join(",")
    );
    let context = Context::new(&Options { durability, ..Options::default() })?;
    let storage = Arc::new(LocalStorage::new(folder.path().join("array"), durability)?);
    create_array_on(&context, storage, "/", Schema::from_json(&json)?, false)
}

/// Seconds of staging and committing cells, which differ in every round.
fn commit(array: &Array, cells: u32, round: u32) -> Result<f64> {
    let places = scattered(round * cells..(round + 1) * cells);
    let (xs, ys) = (longs(places.iter().map(|p| p.0))?, longs(places.iter().map(|p| p.1))?);
    let values: Vec<Column> =
        (1..=3).map(|n| longs(places.iter().map(move |(x, y)| n * x + y))).collect::<Result<_>>()?;
    let attrs = ATTRS.iter().zip(&values).map(|(name, column)| ((*name).to_owned(), column.view())).collect();
    let data = CellData { dims: vec![xs.view(), ys.view()], attrs, sorted: false, dedup: Dedup::Error };
    let start = Instant::now();
    let staged = array.stage_cells(data, &Call::default())?;
    array.commit(vec![staged], None)?;
    Ok(start.elapsed().as_secs_f64())
}
