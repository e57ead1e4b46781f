//! Versions of a store: a history with messages, a tag, several arrays in one commit, and what a conflict looks like.
//!
//! `cargo run --release --example time_travel -- station.gs` makes the store `station.gs`.

use gridstone::engine::{open_tagged, tag};
use gridstone::{
    Array, At, Attribute, Call, ColumnView, Context, Datatype, Dimension, ErrorKind, Isolation, Options, Order,
    ReadOrder, Result, Schema, SchemaOptions, Transaction,
};

fn main() -> Result<()> {
    run(&std::env::args().nth(1).unwrap_or_else(|| "mem://station".to_owned()))
}

pub(crate) fn run(uri: &str) -> Result<()> {
    let context = Context::new(&Options::default())?;
    let station = gridstone::create_group(&context, uri, "/")?;

    // Two arrays and their cells in one version: a reader sees all of it, or nothing.
    let begin = Transaction::begin(&context, uri, Isolation::Snapshot)?;
    for (path, values) in [("/rain", [0.0_f32; 31]), ("/wind", [3.5; 31])] {
        let array = begin.create_array(path, schema()?, false)?;
        write(&array, &values, "")?;
    }
    let first = begin.commit(Some("January".to_owned()))?;
    tag(&context, uri, "as delivered", Some(first), false)?;

    let rain = station.refreshed()?.open("rain", true, false)?.into_array()?;
    write(&rain, &[1.25; 31], "corrected")?;
    for version in rain.history(&Call::default())? {
        println!("{} {}", version.version, version.message.unwrap_or_default());
    }

    // By number and by tag.
    let delivered = open_tagged(&context, uri, "/rain", "as delivered")?.into_array()?;
    assert_eq!((values(&delivered)?[0], values(&rain)?[0]), (0.0, 1.25));
    assert_eq!(values(&rain.at(At::Version(first))?)?, values(&delivered)?);

    // Two that read and write the same cells: the one that commits later is refused, and nothing of it stays.
    let (one, other) = (
        Transaction::begin(&context, uri, Isolation::Snapshot)?,
        Transaction::begin(&context, uri, Isolation::Snapshot)?,
    );
    for transaction in [&one, &other] {
        let wind = transaction.array("/wind")?;
        let higher: Vec<f32> = values(&wind)?.iter().map(|knots| knots + 1.0).collect();
        write(&wind, &higher, "")?;
    }
    one.commit(None)?;
    let refused = match other.commit(None) {
        Err(error) if error.kind() == ErrorKind::Conflict => error,
        outcome => return outcome.map(|_| ()),
    };
    println!("refused: {refused}");
    let wind = gridstone::open(&context, uri, "/wind", false, At::Latest)?.into_array()?;
    assert_eq!(values(&wind)?, [4.5; 31]);
    Ok(())
}

fn schema() -> Result<Schema> {
    let day = Dimension::new("day", Datatype::Int64, "1", "31", None)?;
    let value = Attribute::new("value", Datatype::Float32, true, None, "auto")?;
    Schema::new(vec![day], vec![value], SchemaOptions::default())
}

fn write(array: &Array, values: &[f32], message: &str) -> Result<u64> {
    let data = vec![("value".to_owned(), ColumnView::of(values))];
    let staged = array.stage_box(None, &data, Order::Row, &Call::default())?;
    array.commit(vec![staged], (!message.is_empty()).then(|| message.to_owned()))
}

fn values(array: &Array) -> Result<Vec<f32>> {
    let (cells, _, _) = array.read_box(None, None, ReadOrder::Row, &Call::default())?;
    Ok(cells.attrs[0].numbers::<f32>()?.to_vec())
}
