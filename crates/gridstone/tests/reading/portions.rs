//! Promise: a read into the caller's buffers gives every cell once, in order, or says that it does not: none is passed over.

use crate::support::columns::{longs, numbers};
use crate::support::line::{Cells, create, write};
use crate::support::store::context;
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, Call, CancelFlag, Column, OutColumn, Portions, PortionsOf, ReadOrder, create_array_on};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

const CELLS: i64 = 1_000;

fn array() -> Array {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create(&context(8), &storage, "/line", false);
    write(&array, &(0..CELLS).map(|x| (x, 3 * x)).collect::<Cells>()).unwrap();
    array
}

fn begin(array: &Array, bytes: u64) -> Portions {
    let attrs = ["v".to_owned()];
    let wanted = PortionsOf { region: None, attrs: &attrs, condition: None, order: ReadOrder::Row, bytes };
    array.portions(&wanted, &Call::default()).unwrap()
}

/// The next cells, as many as `room`.
fn fill(portions: &mut Portions, room: usize) -> gridstone::base::Result<Vec<i64>> {
    let mut values = vec![0u8; room * 8];
    let out = OutColumn { name: "v", values: &mut values, offsets: None, validity: None };
    let count = portions.fill(&mut [None, Some(out)])?;
    let bytes = gridstone::base::AlignedBuf::from_slice(&values[..count * 8]);
    Ok(numbers(&Column::new(Datatype::Int64, bytes, None, None).unwrap()))
}

#[test]
fn portions_of_any_size_are_the_whole_read() {
    let array = array();
    for (bytes, room) in [(1 << 20, 1_000), (1 << 20, 999), (1 << 20, 7), (1_000, 100), (1, 13), (1, 5_000)] {
        let (mut portions, mut found) = (begin(&array, bytes), Vec::new());
        while !portions.is_complete() {
            found.extend(fill(&mut portions, room).unwrap());
        }
        assert_eq!(found, (0..CELLS).map(|x| 3 * x).collect::<Vec<_>>(), "{bytes} bytes, {room} cells");
        assert!(fill(&mut portions, room).unwrap().is_empty(), "at the end there is nothing more");
    }
}

/// Whether cells wait, are still to be read, or were all given in the call whose result was lost.
#[test]
fn a_read_that_was_given_up_gives_nothing_more_and_is_not_complete() {
    let array = array();
    for (bytes, room) in [(1 << 20, 100), (1_000, 100), (1 << 20, 1_000)] {
        let mut portions = begin(&array, bytes);
        assert_eq!(fill(&mut portions, room).unwrap().len(), room);
        portions.give_up();
        assert!(!portions.is_complete(), "{bytes} bytes, {room} cells");
        for _ in 0..2 {
            let error = fill(&mut portions, room).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input, "{error}");
            assert!(error.message().contains("begin another"), "{error}");
        }
    }
}

/// A read that is stopped within a call has given cells of which its caller does not know.
#[test]
fn a_read_that_was_stopped_gives_nothing_more() {
    let array = array();
    let mut portions = begin(&array, 1_000);
    fill(&mut portions, 100).unwrap();
    let flag = CancelFlag::new();
    flag.cancel();
    portions.set_cancel(Arc::new(flag));
    assert_eq!(fill(&mut portions, 500).unwrap_err().kind(), ErrorKind::Cancelled);
    portions.set_cancel(Arc::new(CancelFlag::new()));
    assert_eq!(fill(&mut portions, 500).unwrap_err().kind(), ErrorKind::Input);
    assert!(!portions.is_complete());
}

/// Its axis, which users do not see, takes no buffer from an attribute.
#[test]
fn the_cell_of_an_array_without_dimensions_is_given() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema =
        r#"{"dims":[],"attrs":[{"name":"w","dtype":"int8","fill":"-7"},{"name":"v","dtype":"int64","fill":"-1"}]}"#;
    let schema = Schema::from_json(schema).unwrap();
    let array = create_array_on(&context(8), storage, "/", schema, false).unwrap();
    let attrs = ["v".to_owned()];
    let wanted = PortionsOf { region: None, attrs: &attrs, condition: None, order: ReadOrder::Row, bytes: 100 };
    for (written, expected) in [(None, -1), (Some(42), 42)] {
        if let Some(v) = written {
            let (v, w) = (longs([v]), gridstone::base::AlignedBuf::from_slice(&[3]));
            let w = Column::new(Datatype::Int8, w, None, None).unwrap();
            let data = vec![("w".to_owned(), w.view()), ("v".to_owned(), v.view())];
            let staged = array.stage_box(None, &data, Order::Row, &Call::default()).unwrap();
            array.commit(vec![staged], None).unwrap();
        }
        let mut portions = array.portions(&wanted, &Call::default()).unwrap();
        let mut values = [0u8; 16];
        let out = OutColumn { name: "v", values: &mut values, offsets: None, validity: None };
        assert_eq!(portions.fill(&mut [Some(out)]).unwrap(), 1);
        assert!(portions.is_complete());
        assert_eq!(values[..8], i64::to_le_bytes(expected));
    }
}
