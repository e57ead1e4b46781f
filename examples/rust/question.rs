//! A question to a sparse array: aggregates by groups, answered block by block on all threads; and one along an axis.
//!
//! `cargo run --release --example question -- ships.gs` makes the store `ships.gs`.

use gridstone::engine::{By, Counted, Expression, Width};
use gridstone::{
    Array, Attribute, Call, CellData, Column, ColumnView, Condition, Context, Datatype, Dedup, Dimension, Options,
    Order, Question, Result, Schema, SchemaOptions,
};

const COUNT: usize = 50_000;
const KINDS: [&str; 3] = ["cargo", "ferry", "tug"];

fn main() -> Result<()> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "mem://question".to_owned()))
}

pub(crate) fn run(uri: &str) -> Result<()> {
    let context = Context::new(&Options::default())?;
    let ships = ships(&context, uri)?;
    let call = Call::default();

    let question = Question::parse(&["kind"], &["count(*)", "mean(knots * 1.852)", "quantile(knots, 0.9)"])?;
    let (answer, counters) = ships.aggregate(None, None, &question, &call)?;
    let kinds = answer.columns[0].1.texts()?;
    let (positions, km_h) = (answer.columns[1].1.numbers::<i64>()?, answer.columns[2].1.numbers::<f64>()?);
    assert_eq!((kinds.as_slice(), positions.iter().sum::<i64>()), (&KINDS[..], COUNT as i64));
    for ((kind, positions), km_h) in kinds.iter().zip(positions).zip(km_h) {
        println!("{kind:6} {positions:6} positions, {km_h:.1} km/h");
    }
    println!("{} bytes were fetched", counters.bytes_fetched);

    // Widths make bins: bands of ten degrees. A condition selects the cells.
    let bands = By { name: "lat".to_owned(), value: Expression::parse("lat")?, width: Some(Width::Float(10.0)) };
    let question = Question { by: vec![bands], ..Question::parse(&[], &["count(*)"])? };
    let tugs = Condition::parse("kind = 'tug'")?;
    let (answer, _) = ships.aggregate(None, Some(&tugs), &question, &call)?;
    let lows = answer.columns[0].1.numbers::<f64>()?;
    assert!(lows.iter().all(|low| low % 10.0 == 0.0) && lows.is_sorted());
    println!("tugs were seen in {} bands of ten degrees", answer.rows);

    // A dense array is reduced along its axes, as NumPy's are.
    let grid = grid(&context, &format!("{uri}-grid"))?;
    let (shape, answer, _) = grid.reduce(None, Counted::All, &Question::parse(&[], &["sum(v)"])?, &[0], &call)?;
    assert_eq!((shape.as_slice(), answer.columns[0].1.numbers::<i64>()?), (&[2][..], &[3, 12][..]));
    Ok(())
}

fn ships(context: &Context, uri: &str) -> Result<Array> {
    let dims = vec![
        Dimension::new("lon", Datatype::Float64, "-180", "180", None)?,
        Dimension::new("lat", Datatype::Float64, "-90", "90", None)?,
    ];
    let attrs = vec![
        Attribute::new("knots", Datatype::Float32, false, None, "auto")?,
        Attribute::new("kind", Datatype::String, false, None, "auto")?,
    ];
    let options = SchemaOptions { sparse: true, duplicates: true, ..SchemaOptions::default() };
    let ships = gridstone::create_array(context, uri, "/", Schema::new(dims, attrs, options)?, false)?;

    let degrees = |step: usize, half: i32| {
        (0..COUNT).map(move |i| f64::from((i * step) as u32 % (2 * half as u32 + 1)) - f64::from(half))
    };
    let (lon, lat): (Vec<f64>, Vec<f64>) = (degrees(31, 180).collect(), degrees(17, 80).collect());
    let knots: Vec<f32> = (0..COUNT).map(|i| (i * 37 % 250) as f32 / 10.0).collect();
    let kind = Column::of_texts((0..COUNT).map(|i| KINDS[i % KINDS.len()]));
    let data = CellData {
        dims: vec![ColumnView::of(&lon), ColumnView::of(&lat)],
        attrs: vec![("knots".to_owned(), ColumnView::of(&knots)), ("kind".to_owned(), kind.view())],
        sorted: false,
        dedup: Dedup::Error,
    };
    ships.commit(vec![ships.stage_cells(data, &Call::default())?], None)?;
    Ok(ships)
}

/// Two rows of three numbers: 0 to 5.
fn grid(context: &Context, uri: &str) -> Result<Array> {
    let axis = |name: &str, last: &str| Dimension::new(name, Datatype::Int64, "0", last, None);
    let v = Attribute::new("v", Datatype::Int32, false, None, "auto")?;
    let schema = Schema::new(vec![axis("row", "1")?, axis("column", "2")?], vec![v], SchemaOptions::default())?;
    let grid = gridstone::create_array(context, uri, "/", schema, false)?;
    let data = vec![("v".to_owned(), ColumnView::of(&[0, 1, 2, 3, 4, 5]))];
    grid.commit(vec![grid.stage_box(None, &data, Order::Row, &Call::default())?], None)?;
    Ok(grid)
}
