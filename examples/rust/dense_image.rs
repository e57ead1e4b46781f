//! An image as a dense array: written, corrected in a box, read in part, and as it was before.
//!
//! `cargo run --release --example dense_image -- image.gs` makes the store `image.gs`.

use gridstone::{
    Array, At, Attribute, Call, ColumnView, Context, Datatype, Dimension, Options, Order, ReadOrder, Result, Schema,
    SchemaOptions, Span,
};

const ROWS: usize = 1_000;
const COLUMNS: usize = 1_500;

fn main() -> Result<()> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "mem://image".to_owned()))
}

pub(crate) fn run(uri: &str) -> Result<()> {
    let context = Context::new(&Options::default())?;
    let image = gridstone::create_array(&context, uri, "/", schema()?, false)?;
    let picture: Vec<u8> = (0..ROWS * COLUMNS).map(|at| ((at / COLUMNS + at % COLUMNS) / 10 % 256) as u8).collect();
    let written = write(&image, None, &picture)?;

    // A box, aligned to nothing. Each commit is a version.
    let patch = [(100..=199).into(), (50..=79).into()];
    let corrected = write(&image, Some(&patch), &[255; 100 * 30])?;

    let around = [(90..=209).into(), (40..=89).into()];
    println!("version {corrected}: the mean of the box is {:.2}", mean(&image, &around)?);
    println!("version {written}: the mean of the box is {:.2}", mean(&image.at(At::Version(written))?, &around)?);
    assert_eq!(pixels(&image, &patch)?, [255; 100 * 30]);

    // A reader's handle stays at its version until it is refreshed.
    let reader = gridstone::open(&context, uri, "/", false, At::Latest)?.into_array()?;
    write(&image, Some(&[(0..=0).into(), (0..=0).into()]), &[9])?;
    let corner = [(0..=0).into(), (0..=0).into()];
    assert_eq!((pixels(&reader, &corner)?, pixels(&image, &corner)?), (vec![0], vec![9]));
    reader.refresh()?;
    assert_eq!(pixels(&reader, &corner)?, [9]);
    Ok(())
}

/// Rows and columns in tiles of 256 x 256, a byte in each cell.
fn schema() -> Result<Schema> {
    let last = |length: usize| (length - 1).to_string();
    let dims = vec![
        Dimension::new("row", Datatype::Int64, "0", &last(ROWS), Some("256"))?,
        Dimension::new("column", Datatype::Int64, "0", &last(COLUMNS), Some("256"))?,
    ];
    let brightness = Attribute::new("brightness", Datatype::UInt8, false, None, "auto")?;
    Schema::new(dims, vec![brightness], SchemaOptions::default())
}

/// Writes a box (`None`: all), row by row, in one commit; gives its version.
fn write(image: &Array, spans: Option<&[Span]>, values: &[u8]) -> Result<u64> {
    let region = spans.map(|spans| image.region(&[spans.to_vec()])).transpose()?;
    let data = vec![("brightness".to_owned(), ColumnView::of(values))];
    let staged = image.stage_box(region.as_ref(), &data, Order::Row, &Call::default())?;
    image.commit(vec![staged], None)
}

/// The pixels of a box, row by row.
fn pixels(image: &Array, spans: &[Span]) -> Result<Vec<u8>> {
    let region = image.region(&[spans.to_vec()])?;
    let (cells, _, _) = image.read_box(Some(&region), None, ReadOrder::Row, &Call::default())?;
    Ok(cells.attrs[0].numbers::<u8>()?.to_vec())
}

fn mean(image: &Array, spans: &[Span]) -> Result<f64> {
    let pixels = pixels(image, spans)?;
    Ok(pixels.iter().map(|pixel| f64::from(*pixel)).sum::<f64>() / pixels.len() as f64)
}
