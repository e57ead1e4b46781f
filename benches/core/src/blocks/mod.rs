//! Compares block sizes on real columns: what a block costs on disk and saves in time.
//!
//! An input is written once per block size, each array of one fragment in a folder of its own, without fsync. All
//! answers are compared before anything is timed. Then every query runs on every array in turn, in another order each
//! round; the figures are medians of the rounds. See docs/design/004-blocks-and-index.md.

mod asked;
mod columns;
mod coords;
mod input;
pub(crate) mod measure;
mod rates;
mod sections;
mod stored;
mod table;

use gridstone::base::Result;
use input::Input;
pub use measure::Effort;
use measure::{Measured, measure};
use std::path::Path;

/// Compared sizes of dense blocks, in cells.
const DENSE: [u32; 7] = [2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072];
/// Compared sizes of sparse blocks, in cells.
const SPARSE: [u32; 6] = [256, 512, 1_024, 2_048, 4_096, 8_192];
/// The filters of all columns. The choice of `auto` depends on its sample, and so on the blocks; the others are fixed.
const FILTERS: [&str; 3] = ["auto", "shuffle,zstd:3", "pco:4"];

/// The comparisons to run.
#[derive(Debug)]
pub struct Choice {
    /// Names of inputs; all if there are none.
    pub only: Vec<String>,
    /// Whether block sizes are compared.
    pub sizes: bool,
    /// Whether the pipelines of the columns are compared.
    pub columns: bool,
    /// Whether the pipelines of coordinates are compared more closely.
    pub coords: bool,
    /// Whether all pipelines that `auto` may choose are rated on every column.
    pub rates: bool,
    /// Whether the sections of indexes are measured, and packed.
    pub index: bool,
}

/// Compares the inputs of `folder`; passes each table to `show` as soon as it is ready.
///
/// # Errors
/// Input if the folder was not prepared or answers differ; those of the engine.
pub fn compare(folder: &Path, choice: &Choice, effort: Effort, mut show: impl FnMut(&str)) -> Result<()> {
    let (mut all, mut packed): (Vec<Measured>, Vec<_>) = (Vec::new(), Vec::new());
    let (mut coords, mut rated, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for input in Input::all(folder, &choice.only)? {
        let input = input?;
        let sizes: &[u32] = if input.is_sparse() { &SPARSE } else { &DENSE };
        let chosen = FILTERS.iter().filter(|filters| choice.sizes && input.accepts(filters));
        for filters in chosen {
            let measured = measure(&input, filters, sizes, effort)?;
            show(&table::of_input(&measured));
            all.push(measured);
        }
        if choice.columns {
            packed.extend(columns::pack(&input, effort)?);
        }
        if choice.coords && input.is_sparse() {
            coords.push(coords::pack(&input, effort)?);
        }
        if choice.rates {
            rated.extend(rates::rate(&input, effort)?);
        }
        if choice.index {
            indexes.push(sections::look(&input, effort)?);
        }
    }
    for (sparse, filters) in [false, true].into_iter().flat_map(|s| FILTERS.map(|f| (s, f))) {
        let text = table::summary(&all, sparse, filters);
        if !text.is_empty() {
            show(&text);
        }
    }
    if choice.sizes {
        show(&table::index(&all));
    }
    if choice.columns {
        show(&table::columns(&packed));
    }
    if choice.coords {
        show(&table::coords(&coords));
    }
    if choice.rates {
        show(&table::rates(&rated));
    }
    if choice.index {
        show(&table::sections(&indexes));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Two small inputs, as the script writes them.
    fn prepare(folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        let longs = |f: fn(i64) -> i64| (0..5_000).map(f).flat_map(i64::to_le_bytes).collect::<Vec<u8>>();
        std::fs::write(folder.join("v.bin"), longs(|i| i * 7)).unwrap();
        std::fs::write(folder.join("x.bin"), longs(|i| i * 13 % 5_000)).unwrap();
        let dim = |name: &str, last: u32| {
            format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{last}"],"tile":"20"}}"#)
        };
        let attr = r#"{"name":"v","dtype":"int64"}"#;
        let dense = format!(r#"{{"sparse":false,"dims":[{},{}],"attrs":[{attr}]}}"#, dim("y", 49), dim("z", 99));
        let sparse = format!(r#"{{"sparse":true,"duplicates":true,"dims":[{}],"attrs":[{attr}]}}"#, dim("x", 9_999));
        let entry = |name: &str, schema: &str| {
            format!(
                r#"{{"name":"{name}","about":"made","cells":5000,"schema":{schema},
                "files":{{"v":"v.bin","x":"x.bin"}}}}"#
            )
        };
        let json = format!(r#"{{"inputs":[{},{}]}}"#, entry("grid", &dense), entry("cloud", &sparse));
        std::fs::write(folder.join("inputs.json"), json).unwrap();
    }

    #[test]
    fn every_size_of_a_small_input_is_measured() {
        let folder = std::env::temp_dir().join(format!("gridstone-blocks-test-{}", std::process::id()));
        prepare(&folder);
        let mut text = String::new();
        let choice = Choice { only: Vec::new(), sizes: true, columns: true, coords: true, rates: true, index: true };
        let outcome = compare(&folder, &choice, Effort { repeats: 1, threads: 1 }, |table| {
            writeln!(text, "{table}").unwrap();
        });
        std::fs::remove_dir_all(&folder).unwrap();
        outcome.unwrap();
        for size in DENSE.iter().chain(&SPARSE) {
            assert!(text.contains(&format!("\n| {size} |")), "{size}: {text}");
        }
        assert!(text.contains("| grid v | int64 | 8.000 |") && text.contains("| cloud coordinates |"), "{text}");
        assert!(text.contains("\n| cloud | 8 |"), "{text}");
        assert!(text.contains("| cloud dimension 0 | int64 |") && text.contains("| grid v | int64 | 1.764 "), "{text}");
        assert!(text.contains("| cloud | BlockBounds ") && text.contains("### Sections"), "{text}");
        assert!(compare(&folder, &choice, Effort { repeats: 1, threads: 1 }, |_| {}).is_err());
    }
}
