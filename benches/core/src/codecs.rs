//! Floor `codec`: every filter and `auto` on blocks of a few kinds of values, encoding and decoding.

use super::case::{Case, work};
use super::input::{below, walk};
use gridstone::base::Element;
use gridstone::codec::{Effort, Pipeline, choose};
use std::rc::Rc;

const PIPELINES: [&str; 11] = [
    "auto",
    "delta",
    "for",
    "delta,for",
    "shuffle",
    "bitshuffle",
    "shuffle,zstd:1",
    "lz4",
    "zstd:3",
    "gzip:6",
    "pco:4",
];

/// A block's name, its element and its bytes.
type Block = (&'static str, Element, Vec<u8>);

fn blocks(cells: usize) -> [Block; 4] {
    let small = |values: Vec<usize>| values.into_iter().flat_map(|v| (v as i32).to_le_bytes()).collect();
    [
        ("walk-i64", Element::signed(8), walk(cells).flat_map(i64::to_le_bytes).collect()),
        ("walk-f64", Element::float(8), walk(cells).flat_map(|v| (v as f64 / 100.0).to_le_bytes()).collect()),
        ("below-1000-i32", Element::signed(4), small(below(1_000, cells).collect())),
        ("random-i32", Element::signed(4), small(below(1 << 32, cells).collect())),
    ]
}

/// The cases for blocks of this many cells.
pub(crate) fn cases(cells: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, element, bytes) in blocks(cells) {
        let bytes = Rc::new(bytes);
        for name in PIPELINES {
            let accepted = |p: Pipeline| p.check(element).is_ok();
            if name == "auto" || Pipeline::parse(name).is_ok_and(accepted) {
                cases.push(encode(name, &format!("{kind}/{cells}"), element, &bytes));
                cases.push(decode(name, &format!("{kind}/{cells}"), element, &bytes));
            }
        }
    }
    cases
}

fn pipeline(name: &str, sample: &[u8], element: Element) -> gridstone::base::Result<Pipeline> {
    if name == "auto" { Ok(choose(&[sample], element, Effort::Full)) } else { Pipeline::parse(name) }
}

/// With `auto`, the choice is part of the work.
fn encode(name: &'static str, of: &str, element: Element, raw: &Rc<Vec<u8>>) -> Case {
    let (size, raw) = (raw.len() as u64, raw.clone());
    Case::repeated(format!("codec/encode/{name}/{of}"), size, move || {
        let (given, expected) = (raw.clone(), raw.clone());
        work(
            move || {
                let pipeline = pipeline(name, &given, element)?;
                pipeline.encode(&given, element).map(|stored| (pipeline, stored))
            },
            move |(pipeline, stored)| Ok(pipeline.decode(stored, element, expected.len())? == *expected),
        )
    })
}

fn decode(name: &'static str, of: &str, element: Element, raw: &Rc<Vec<u8>>) -> Case {
    let (size, raw) = (raw.len() as u64, raw.clone());
    Case::repeated(format!("codec/decode/{name}/{of}"), size, move || {
        let (expected, len) = (raw.clone(), raw.len());
        let pipeline = pipeline(name, &raw, element)?;
        let stored = pipeline.encode(&raw, element)?;
        work(move || pipeline.decode(&stored, element, len), move |found| Ok(*found == *expected))
    })
}
