//! Dimensions of texts: words as axes, texts that begin alike, deletions of intervals, a merge.

use super::super::case::Case;
use super::super::world::World;
use super::{ints, noise, signed};
use gridstone::base::Result;
use gridstone::fragment::FragmentKind;
use gridstone::schema::text::{interval_boxes, word, word_count, word_interval};
use gridstone::schema::{KeyRange, Subarray};
use std::ops::Bound;

pub(super) fn cases() -> Result<Vec<Case>> {
    Ok(vec![genes()?])
}

const LONGEST: usize = 20;

fn words(text: &str) -> Vec<u64> {
    (0..word_count(LONGEST)).map(|number| word(text.as_bytes(), number)).collect()
}

fn genes() -> Result<Case> {
    let schema = r#"{"sparse":true,"capacity":7,"tile_order":"row","cell_order":"col","dims":[
        {"name":"sample","dtype":"int16","domain":["-5","94"],"tile":"10"},
        {"name":"gene","dtype":"string","domain":null,"tile":null,"max_bytes":20}],
        "attrs":[{"name":"count","dtype":"int32"}]}"#;
    let about = "a dimension of texts of up to 20 bytes: empty, around whole words, beginnings of others, beyond ASCII; \
                 deletions of cells and of an interval; a merge";
    let mut world = World::with_array("text_dimension", about, schema)?;
    let texts = [
        "",
        "A",
        "BRCA1",
        "BRCA2",
        "ABCDEFG",
        "ABCDEFGH",
        "ABCDEFGHI",
        "ABCDEFGHIJKLMNOP",
        "ABCDEFGHIJKLMNOPQRST",
        "é",
        "häfen-östlich",
        "漢字漢字漢字",
        "\u{1}",
        "\u{7f}",
        "\u{10ffff}",
        "zzzzzzzé",
    ];
    let place =
        |i: u64| [vec![signed((noise(i) % 100) as i64 - 5)], words(texts[(noise(i + 7) % 16) as usize])].concat();
    for version in 0..3u64 {
        let mut places: Vec<Vec<u64>> = (0..20).map(|i| place(i * 2 + i % 3 * version)).collect();
        places.sort_by_key(|p| noise(p.iter().fold(0, |a, k| a ^ k)));
        places.dedup();
        let values = ints(4, (0..places.len() as i64).map(|i| version as i64 * 1000 + i));
        world.write_cells("/", &places, vec![("count", values)])?;
        world.commit_and_expect(None)?;
    }
    world.delete("/", &(0..20).step_by(3).map(place).collect::<Vec<_>>())?;
    world.commit_and_expect(Some("deletions, some of them of nothing"))?;
    let (low, high) =
        word_interval(Bound::Included(b"ABCDEFGH"), Bound::Excluded(b"BRCA2"), word_count(LONGEST)).unwrap_or_default();
    for along in interval_boxes(&low, &high) {
        let sample = KeyRange::new(signed(-5), signed(60));
        world.delete_sub("/", Subarray::new([vec![sample], along].concat()))?;
    }
    world.commit_and_expect(Some("an interval of texts is several boxes"))?;
    world.merge("/", FragmentKind::Sparse)?;
    world.commit_and_expect(Some("merged"))?;
    Ok(world.finish())
}
