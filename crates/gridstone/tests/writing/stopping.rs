//! Long calls stop when they are told to, and leave nothing behind.

use crate::support::columns::{bytes_of, view};
use crate::support::writer::context;
use gridstone::base::{Cancel, ErrorKind};
use gridstone::engine::{Array, Call, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Says yes from the n-th question on.
struct After(AtomicU64);

impl Cancel for After {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err()
    }
}

fn after(questions: u64) -> Call {
    Call { cancel: Arc::new(After(AtomicU64::new(questions))), ..Call::default() }
}

fn array(storage: &Arc<dyn Storage>, sparse: bool) -> Array {
    let schema = format!(
        r#"{{"sparse":{sparse},"capacity":1000,"coord_filters":"none",
        "dims":[{{"name":"x","dtype":"int64","domain":["0","99999"],"tile":{}}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
        if sparse { "null" } else { r#""1000""# }
    );
    create_array_on(&context(), storage.clone(), "/", Schema::from_json(&schema).unwrap(), false).unwrap()
}

/// Appends 50 tiles at once, stopped after so many questions; the writer is closed and its file is gone.
fn stopped(sparse: bool, questions: u64) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = array(&storage, sparse);
    let (version, cells) = (array.version(), bytes_of(0..50_000));
    let dims = if sparse { vec![view(&cells)] } else { Vec::new() };
    let mut writer = array.writer(Some(&[("0".to_owned(), "49999".to_owned())]), None).unwrap();
    let error = writer.append(&after(questions), &dims, &[view(&cells)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(writer.append(&Call::default(), &dims, &[view(&cells)]).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(writer.finish(&Call::default()).unwrap_err().kind(), ErrorKind::Input);
    assert!(storage.list("_data").unwrap().is_empty());
    assert_eq!(array.refresh().unwrap(), version);
}

#[test]
fn a_stream_that_is_stopped_commits_nothing() {
    for sparse in [false, true] {
        for questions in [0, 1, 30, 49] {
            stopped(sparse, questions);
        }
    }
}

#[test]
fn listings_and_checks_stop() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = array(&storage, true);
    let cells = bytes_of(0..50_000);
    for _ in 0..3 {
        let mut writer = array.writer(None, None).unwrap();
        writer.append(&Call::default(), &[view(&cells)], &[view(&cells)]).unwrap();
        array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
    }
    for questions in [0, 2] {
        let call = after(questions);
        assert_eq!(array.tiles(None, &call).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(array.history(&after(questions)).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(array.verify(&after(questions)).unwrap_err().kind(), ErrorKind::Cancelled);
    }
    assert_eq!(array.tiles(None, &Call::default()).unwrap().len(), 150);
    assert_eq!(array.history(&Call::default()).unwrap().len(), 4);
}

#[test]
fn fragments_of_another_array_are_refused_before_they_are_taken() {
    let [here, there] = [(); 2].map(|()| Arc::new(MemoryStorage::new()) as Arc<dyn Storage>);
    let (mine, other) = (array(&here, false), array(&there, false));
    let cells = bytes_of(0..50_000);
    let sub = [("0".to_owned(), "49999".to_owned())];
    let data = vec![("v".to_owned(), view(&cells))];
    let staged = other.stage_dense(Some(&sub), &data, gridstone::schema::Order::Row, &Call::default()).unwrap();
    assert_eq!(mine.check_commit(&staged).unwrap_err().kind(), ErrorKind::Input);
    other.check_commit(&staged).unwrap();
    other.commit(vec![staged], None).unwrap();
}
