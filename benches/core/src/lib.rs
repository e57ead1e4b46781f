//! The benchmarks of the core: cases that are prepared, run and checked, for two kinds of measurement.
//!
//! [`benchmarks`] are timed by criterion (`make bench-core`). [`workloads`] are the same at sizes that valgrind runs in
//! about a second; `cargo xtask instructions` counts and compares their instructions.

#[cfg(feature = "blocks")]
pub mod blocks;
mod calls;
mod case;
mod cloud;
mod codecs;
mod commits;
mod grid;
mod input;
mod keys;
#[cfg(all(feature = "reads", target_os = "linux"))]
pub mod reads;
mod world;

pub use case::{Case, Work};
use cloud::Cloud;
use grid::Grid;
use gridstone::engine::ReadOrder;

/// The timed cases, floor by floor.
pub fn benchmarks() -> Vec<Case> {
    let grid = |filters| Grid { side: 2_048, tile: 512, filters };
    let fine = Grid { side: 2_048, tile: 16, filters: "none" };
    let (one, eight) = (Cloud { fragments: 1, cells: 1 << 20 }, Cloud { fragments: 8, cells: 1 << 17 });
    let many = Cloud { fragments: 1_000, cells: 50 };
    let blocks = [16_384, 1_024].into_iter().flat_map(codecs::cases);
    let mut cases: Vec<Case> = blocks.chain(keys::cases(1 << 20)).chain([keys::library(1 << 20)]).collect();
    cases.extend([
        eight.read("merge/row", 4_096, ReadOrder::Row),
        eight.read("merge/global", 4_096, ReadOrder::Global),
        one.read("merge/alone", 4_096, ReadOrder::Row),
        one.load(),
    ]);
    for filters in ["none", "zstd:3", "auto"] {
        cases.push(grid(filters).load());
        cases.extend(grid(filters).reads());
        cases.push(grid(filters).points(1_000));
        cases.push(grid(filters).update(1_000));
    }
    cases.extend([
        one.points(1_000),
        fine.plan(),
        many.read("plan/fragments/1000", 512, ReadOrder::Row),
        many.open(),
        commits::to_memory(1),
        commits::to_memory(1_000),
        commits::to_folder(),
    ]);
    cases
}

/// The counted cases. Their names are in `xtask/instructions.toml`.
pub fn workloads() -> Vec<Case> {
    let grid = |filters| Grid { side: 256, tile: 128, filters };
    let (one, four) = (Cloud { fragments: 1, cells: 20_000 }, Cloud { fragments: 4, cells: 5_000 });
    let many = Cloud { fragments: 1_000, cells: 4 };
    let mut cases = vec![grid("none").load(), grid("auto").load()];
    cases.extend(grid("none").reads());
    cases.extend(grid("zstd:3").reads().into_iter().filter(|case| case.name.contains("/box/")));
    cases.extend([
        grid("none").points(1_000),
        grid("none").update(1_000),
        one.load(),
        one.read("sparse/read/box", 2_048, ReadOrder::Any),
        one.read("sparse/read/row-order", 8_192, ReadOrder::Row),
        four.read("sparse/read/merged", 8_192, ReadOrder::Row),
        one.points(1_000),
        many.read("plan/fragments/1000", 512, ReadOrder::Row),
        many.open(),
        commits::to_memory(1),
        calls::version(false),
        calls::version(true),
        calls::read(false),
        calls::read(true),
    ]);
    cases.extend(keys::cases(20_000));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_workload_gives_the_right_answer() {
        for case in workloads() {
            let mut work = case.prepare().unwrap();
            assert!(work.check().is_err(), "{}: nothing was run yet", case.name);
            work.run().unwrap();
            work.check().unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
    }

    #[test]
    fn names_tell_cases_apart() {
        for cases in [workloads(), benchmarks()] {
            let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            assert_eq!(names.len(), cases.len());
        }
    }
}
