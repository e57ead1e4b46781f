//! Each target for a second or so, half of it from a seed that is always the same. `GRIDSTONE_FUZZ_SECONDS` asks for
//! more, `GRIDSTONE_TEST_SEED` for a certain seed in the other half.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use gridstone_fuzz::{TARGETS, drive};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn withstands(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let half = Duration::from_millis(500 * number("GRIDSTONE_FUZZ_SECONDS").unwrap_or(1));
    let fresh = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    for seed in [2_016, number("GRIDSTONE_TEST_SEED").unwrap_or(fresh)] {
        match drive(target, half, seed, None) {
            Ok(summary) => {
                println!("{name}, seed {seed}: {summary:?}");
                assert!(summary.tries > 5 && summary.accepted > 5, "{name}: {summary:?}");
            }
            Err(found) => {
                panic!("GRIDSTONE_TEST_SEED={seed} {name}: {}; the input is in {}", found.what, found.file.display())
            }
        }
    }
}

#[test]
fn codec() {
    withstands("codec");
}

#[test]
fn foreign() {
    withstands("foreign");
}

#[test]
fn foreign_file() {
    withstands("foreign_file");
}

#[test]
fn fragment() {
    withstands("fragment");
}

#[test]
fn log_record() {
    withstands("log_record");
}

#[test]
fn manifest_root() {
    withstands("manifest_root");
}

#[test]
fn manifest_rows() {
    withstands("manifest_rows");
}

#[test]
fn manifest_value() {
    withstands("manifest_value");
}

#[test]
fn manifest_page() {
    withstands("manifest_page");
}

#[test]
fn mask() {
    withstands("mask");
}

#[test]
fn condition() {
    withstands("condition");
}

#[test]
fn floor() {
    withstands("floor");
}

#[test]
fn schema() {
    withstands("schema");
}

#[test]
fn operations() {
    withstands("operations");
}

#[test]
fn lease() {
    withstands("lease");
}

#[test]
fn receipt() {
    withstands("receipt");
}

#[test]
fn sealed() {
    withstands("sealed");
}

#[test]
fn sorted_copy() {
    withstands("sorted_copy");
}

#[test]
fn hint() {
    withstands("hint");
}
