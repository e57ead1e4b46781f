//! Earthquakes as a sparse array: cells at coordinates, found by boxes and conditions, streamed, and deleted.
//!
//! `cargo run --release --example sparse_points -- quakes.gs` makes the store `quakes.gs`.

use gridstone::{
    Array, At, Attribute, Call, CellData, Column, ColumnView, Condition, Context, Datatype, Dedup, Dimension, Options,
    ReadOrder, Result, Schema, SchemaOptions,
};

const COUNT: usize = 20_000;

fn main() -> Result<()> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "mem://quakes".to_owned()))
}

pub(crate) fn run(uri: &str) -> Result<()> {
    let context = Context::new(&Options::default())?;
    let quakes = gridstone::create_array(&context, uri, "/", schema()?, false)?;
    let written = write(&quakes)?;

    // A box of coordinates; both ends belong to it.
    let call = Call::default();
    let west = quakes.region(&[vec![(100.0..=180.0).into(), (-60.0..=60.0).into()]])?;
    let (cells, _) = quakes.read_region(Some(&west), None, None, ReadOrder::Row, &call)?;
    assert!(cells.dims[0].numbers::<f64>()?.iter().all(|lon| *lon >= 100.0));
    println!("{} of {COUNT} in the west of the ring", cells.count);

    // A condition rules out most blocks by their statistics, before they are read.
    let strong = Condition::parse("magnitude > 7.9 and kind = 'earthquake'")?;
    let attrs = ["magnitude".to_owned(), "kind".to_owned()];
    let (cells, counters) = quakes.read_region(None, Some(&attrs), Some(&strong), ReadOrder::Row, &call)?;
    let (magnitudes, kinds) = (cells.attrs[0].numbers::<f32>()?, cells.attrs[1].texts()?);
    assert!(magnitudes.iter().all(|magnitude| *magnitude > 7.9) && kinds.iter().all(|kind| *kind == "earthquake"));
    println!("{} strong ones, found in {} blocks", cells.count, counters.blocks_decoded);

    // All of them in batches: memory is bounded, whatever the array holds.
    let mut scan = quakes.scan_region(None, Some(&attrs), None, ReadOrder::Any, 64 << 10, &call)?;
    let (mut batches, mut seen) = (0, 0);
    while let Some(batch) = scan.next_batch()? {
        batches += 1;
        seen += batch.count;
    }
    assert_eq!(seen, COUNT);
    println!("{seen} cells in {batches} batches");

    // What does not belong there goes, by condition. The version before still has it.
    let blasts = Condition::parse("kind = 'explosion'")?;
    quakes.delete_region_where(None, &blasts, Some("no explosions".to_owned()), &call)?;
    assert_eq!(count(&quakes, &blasts)?, 0);
    assert_eq!(count(&quakes.at(At::Version(written))?, &blasts)?, COUNT / 20);
    Ok(())
}

fn schema() -> Result<Schema> {
    let dims = vec![
        Dimension::new("lon", Datatype::Float64, "-180", "180", Some("30"))?,
        Dimension::new("lat", Datatype::Float64, "-90", "90", Some("30"))?,
    ];
    let attrs = vec![
        Attribute::new("magnitude", Datatype::Float32, false, None, "auto")?,
        Attribute::new("depth_km", Datatype::Float32, true, None, "auto")?,
        Attribute::new("kind", Datatype::String, false, None, "auto")?,
    ];
    Schema::new(dims, attrs, SchemaOptions { sparse: true, ..SchemaOptions::default() })
}

/// Writes made-up earthquakes along a ring, in one commit; gives its version.
fn write(quakes: &Array) -> Result<u64> {
    let angles: Vec<f64> = (0..COUNT).map(|i| i as f64 / COUNT as f64 * std::f64::consts::TAU).collect();
    let (lon, lat): (Vec<f64>, Vec<f64>) = angles.iter().map(|a| (170.0 * a.cos(), 60.0 * a.sin())).unzip();
    let magnitude: Vec<f32> = (0..COUNT).map(|i| 4.0 + (i * 7_919 % 4_000) as f32 / 1_000.0).collect();
    let depth: Vec<Option<f32>> = (0..COUNT).map(|i| (i % 10 != 0).then_some((i % 600) as f32)).collect();
    let kind = Column::of_texts((0..COUNT).map(|i| if i % 20 == 0 { "explosion" } else { "earthquake" }));
    let depth = Column::of_options(&depth);
    let data = CellData {
        dims: vec![ColumnView::of(&lon), ColumnView::of(&lat)],
        attrs: vec![
            ("magnitude".to_owned(), ColumnView::of(&magnitude)),
            ("depth_km".to_owned(), depth.view()),
            ("kind".to_owned(), kind.view()),
        ],
        sorted: false,
        dedup: Dedup::Error,
    };
    quakes.commit(vec![quakes.stage_cells(data, &Call::default())?], None)
}

fn count(quakes: &Array, condition: &Condition) -> Result<usize> {
    let attrs = ["kind".to_owned()];
    let (cells, _) = quakes.read_region(None, Some(&attrs), Some(condition), ReadOrder::Any, &Call::default())?;
    Ok(cells.count)
}
