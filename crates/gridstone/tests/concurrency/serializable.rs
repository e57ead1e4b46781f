//! Serializable transactions: no skew is written, which the default isolation allows; neither sells a seat twice.

use crate::support::pair::{cells, memory, one, opened};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::ErrorKind;
use gridstone::engine::{Context, Isolation, Transaction};
use gridstone::storage::Storage;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::{Barrier, Mutex};

/// Tries to take a seat: looks whether it is empty, and reserves it. Whether it was sold to this client.
fn reserve(transaction: &Transaction, seat: (i64, i64), client: i64) -> bool {
    let array = transaction.array("/sparse").unwrap();
    if !cells(&array, ((seat.0, seat.0), (seat.1, seat.1))).is_empty() {
        return false;
    }
    commit_cells(&array, &one(seat.0, seat.1, client), None).unwrap();
    match transaction.commit(None) {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::Conflict => false,
        Err(e) => panic!("{e}"),
    }
}

/// `clients` race for `seats` seats, in step, over and over: how often each seat was sold.
fn sell(clients: i64, seats: i64, isolation: Isolation) -> HashMap<(i64, i64), u64> {
    let storage: Arc<dyn Storage> = memory();
    let (sold, barrier) = (Mutex::new(HashMap::new()), Barrier::new(clients as usize));
    std::thread::scope(|scope| {
        for client in 1..=clients {
            let (storage, sold, barrier) = (&storage, &sold, &barrier);
            scope.spawn(move || {
                let context = context();
                let mut transaction = begin(&context, storage, isolation);
                for number in 0..seats {
                    let seat = (number / 40, number % 40);
                    transaction = transaction.again().unwrap();
                    barrier.wait();
                    if reserve(&transaction, seat, client) {
                        *sold.lock().unwrap().entry(seat).or_insert(0) += 1;
                    }
                    barrier.wait();
                }
            });
        }
    });
    let found = cells(&opened(&context(), &storage, "/sparse"), ((0, 39), (0, 39)));
    let sold = sold.into_inner().unwrap();
    assert_eq!(found.len(), sold.len(), "what is sold is reserved, and nothing else");
    sold
}

fn begin(context: &Context, storage: &Arc<dyn Storage>, isolation: Isolation) -> Transaction {
    Transaction::begin_on(context, storage.clone(), isolation).unwrap()
}

#[test]
fn two_clients_never_book_a_seat_twice() {
    // Ten thousand tries.
    for _ in 0..5 {
        let sold = sell(2, 1_000, Isolation::Serializable);
        assert_eq!(sold.len(), 1_000, "of two that try one succeeds");
        assert!(sold.values().all(|times| *times == 1), "{sold:?}");
    }
}

#[test]
fn eight_clients_never_book_a_seat_twice() {
    let sold = sell(8, 900, Isolation::Serializable);
    assert_eq!(sold.len(), 900);
    assert!(sold.values().all(|times| *times == 1), "{sold:?}");
}

/// Who takes a seat has looked at it: that is a lost update, which the default isolation prevents as well.
#[test]
fn the_default_isolation_books_no_seat_twice_either() {
    for (clients, seats) in [(2, 1_000), (8, 300)] {
        let sold = sell(clients, seats, Isolation::Snapshot);
        assert_eq!(sold.len(), seats as usize, "of those that try one succeeds");
        assert!(sold.values().all(|times| *times == 1), "{sold:?}");
    }
}

/// Two cells, of which one must stay 1: each of two clients looks at both and clears its own.
fn skew(isolation: Isolation) -> u64 {
    let mut broken = 0;
    for _ in 0..50 {
        let storage = memory();
        let both: CellMap = one(0, 0, 1).into_iter().chain(one(0, 30, 1)).collect();
        commit_cells(&opened(&context(), &storage, "/sparse"), &both, None).unwrap();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            for mine in [0, 30] {
                let (storage, barrier) = (&storage, &barrier);
                scope.spawn(move || {
                    let transaction = begin(&context(), storage, isolation);
                    let array = transaction.array("/sparse").unwrap();
                    let at = |x: i64| cells(&array, ((0, 0), (x, x)))[&(0, x)];
                    let on_duty = at(0) + at(30);
                    if on_duty == 2 {
                        commit_cells(&array, &one(0, mine, 0), None).unwrap();
                    }
                    barrier.wait();
                    match transaction.commit(None) {
                        Ok(_) => {}
                        Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict),
                    }
                });
            }
        });
        let left: i64 = cells(&opened(&context(), &storage, "/sparse"), ((0, 0), (0, 30))).values().sum();
        broken += u64::from(left == 0);
    }
    broken
}

#[test]
fn write_skew_happens_under_snapshot_isolation_only() {
    assert_eq!(skew(Isolation::Serializable), 0);
    assert_eq!(skew(Isolation::Snapshot), 50, "each pair reads before either commits");
}

/// One way to read.
type Read = fn(&Transaction);

/// Reads of cells by their coordinates, and of all that there is, count as well.
#[test]
fn every_way_to_read_is_remembered() {
    let reads: [(&str, Read); 5] = [
        ("points", |t| {
            let array = t.array("/sparse").unwrap();
            let five = crate::support::columns::bytes_of([5]);
            let five = crate::support::columns::view(&five);
            array.points(&[five, five], None, &gridstone::engine::Call::default()).unwrap();
        }),
        ("scan", |t| {
            let array = t.array("/sparse").unwrap();
            let order = gridstone::engine::ReadOrder::Any;
            array.scan(None, None, order, 1 << 20, &gridstone::engine::Call::default()).unwrap();
        }),
        ("domain", |t| {
            t.array("/sparse").unwrap().nonempty_domain().unwrap();
        }),
        ("fragments", |t| {
            t.array("/sparse").unwrap().fragments().unwrap();
        }),
        ("tiles", |t| {
            t.array("/sparse").unwrap().tiles(None, &gridstone::engine::Call::default()).unwrap();
        }),
    ];
    for (name, read) in reads {
        let storage = memory();
        let transaction = begin(&context(), &storage, Isolation::Serializable);
        read(&transaction);
        commit_cells(&transaction.array("/dense").unwrap(), &one(0, 0, 1), None).unwrap();
        commit_cells(&opened(&context(), &storage, "/sparse"), &one(5, 5, 5), None).unwrap();
        assert_eq!(transaction.commit(None).unwrap_err().kind(), ErrorKind::Conflict, "{name}");
    }
    let storage = memory();
    let transaction = begin(&context(), &storage, Isolation::Serializable);
    commit_cells(&transaction.array("/sparse").unwrap(), &one(5, 5, 1), None).unwrap();
    commit_cells(&opened(&context(), &storage, "/sparse"), &one(5, 5, 5), None).unwrap();
    assert_eq!(transaction.commit(None).unwrap(), 4, "who reads nothing depends on nothing");
}
