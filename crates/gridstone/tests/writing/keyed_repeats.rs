//! Promise: a repeated call with a commit key asks for the same, and finds the same, whatever others have committed meanwhile.

use super::commit_keys::{Statement, call, key, many, stage, write};
use crate::support::columns::{bytes_of, view};
use crate::support::gate::Gate;
use crate::support::pair::{cells, memory, one, opened};
use crate::support::writer::{context, version_of};
use gridstone::engine::{Call, Condition, End, Isolation, Naming, Span, Transaction};
use gridstone::schema::Evolution;
use std::collections::BTreeMap;

/// Another member of a shared record may have read a later version. A transaction with a key has a record of its own, so that it finds
/// again what it had read.
#[test]
fn a_transaction_with_a_key_that_commits_beside_others_finds_the_same_when_it_is_run_again() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let inner = memory();
        let (gate, storage) = Gate::over(inner.clone());
        let stage_run = || {
            let begun = Transaction::begin_on(&context(), storage.clone(), isolation).unwrap();
            let tx = begun.with_key(key("run").unwrap(), Naming::Id).unwrap();
            let array = tx.array("/dense").unwrap();
            let read = cells(&array, ((5, 5), (5, 5))).get(&(5, 5)).copied().unwrap_or(0);
            array.commit(vec![stage(&array, &one(6, 6, read + 1), &Call::default()).unwrap()], None).unwrap();
            tx
        };
        let tx = stage_run();
        // What it has only read is changed by others, whose later commits begin after that.
        let dense = opened(&context(), &storage, "/dense");
        if isolation == Isolation::Snapshot {
            dense.commit(vec![stage(&dense, &one(5, 5, 7), &Call::default()).unwrap()], None).unwrap();
        }
        let late = opened(&context(), &storage, "/sparse");
        gate.shut();
        let first = std::thread::scope(|scope| {
            let held = scope.spawn(|| write(&late, &one(0, 0, 1), "held"));
            gate.wait_for_somebody();
            let mine = scope.spawn(|| tx.commit(None));
            let beside: Vec<_> = (1..4)
                .map(|n| {
                    let late = &late;
                    scope.spawn(move || write(late, &one(n, n, 1), &format!("beside {n}")))
                })
                .collect();
            std::thread::sleep(std::time::Duration::from_millis(200));
            gate.open();
            held.join().unwrap().unwrap();
            beside.into_iter().for_each(|thread| _ = thread.join().unwrap().unwrap());
            mine.join().unwrap().unwrap()
        });
        let newest = version_of(&inner);
        for _ in 0..2 {
            assert_eq!(stage_run().commit(None).unwrap(), first, "{isolation:?}");
        }
        assert_eq!(version_of(&inner), newest);
        assert_eq!(cells(&opened(&context(), &inner, "/dense"), ((6, 6), (6, 6))), one(6, 6, 1));
    }
}

/// An end that was left open is open, wherever others have made the domain reach by the time the call is repeated.
#[test]
fn what_was_asked_for_up_to_the_end_of_the_domain_is_the_same_after_it_grew() {
    let open = |lo: Option<i64>, hi: Option<i64>| {
        let end = |at: Option<i64>| at.map(|at| End::Int(at.into()));
        Span { lo: end(lo), hi: end(hi), below: false }
    };
    let asked: [(&str, Vec<Vec<Span>>); 5] = [
        ("everything", vec![vec![open(None, None), open(None, None)]]),
        ("from 1 on", vec![vec![open(Some(1), None), open(None, None)]]),
        ("up to 5", vec![vec![open(None, Some(5)), open(Some(1), Some(7))]]),
        ("two boxes", vec![vec![open(Some(2), None), open(None, None)], vec![open(None, Some(0)), open(None, None)]]),
        ("the domain of then", vec![vec![open(Some(0), Some(149)), open(Some(0), Some(149))]]),
    ];
    let condition = Condition::parse("v > 3").unwrap();
    let mut all: BTreeMap<String, Statement> = BTreeMap::new();
    for (name, spans) in asked {
        for filtered in [false, true] {
            let (spans, condition) = (spans.clone(), condition.clone());
            all.insert(
                format!("delete {name}, filtered: {filtered}"),
                Box::new(move |storage, text| {
                    let array = opened(&context(), storage, "/sparse");
                    let region = array.region(&spans)?;
                    if filtered {
                        return array.delete_region_where(Some(&region), &condition, None, &call(text));
                    }
                    array.commit(vec![array.stage_deletion(&region, &call(text))?], None)
                }),
            );
        }
    }
    all.insert(
        "delete where".to_owned(),
        Box::new(move |storage, text| {
            opened(&context(), storage, "/sparse").delete_where(None, &condition, None, &call(text))
        }),
    );
    all.insert(
        "stream of the whole domain".to_owned(),
        Box::new(|storage, text| {
            let array = opened(&context(), storage, "/dense");
            let mut writer = array.writer(None, None)?.with_key(key(text).unwrap(), Naming::Id)?;
            let values = bytes_of(0..150 * 150);
            writer.append(&Call::default(), &[], &[view(&values)])?;
            array.commit(vec![writer.finish(&Call::default())?], None)
        }),
    );
    let bodies = all.len();
    for (name, statement) in &all {
        let storage = memory();
        write(&opened(&context(), &storage, "/sparse"), &many(500), "filled").unwrap();
        let first = statement(&storage, "k").unwrap_or_else(|e| panic!("{name}: {e}"));
        for (low, high) in [("0", "199"), ("-50", "199")] {
            for path in ["/sparse", "/dense"] {
                let domains = ["y", "x"].map(|dim| (dim.to_owned(), low.to_owned(), high.to_owned())).to_vec();
                opened(&context(), &storage, path).alter(&Evolution { domains, ..Evolution::default() }, None).unwrap();
            }
            let before = version_of(&storage);
            assert_eq!(statement(&storage, "k").unwrap_or_else(|e| panic!("{name}: {e}")), first, "{name}");
            assert_eq!(version_of(&storage), before, "{name}");
        }
        let refused = all.iter().filter(|(_, other)| other(&storage, "k").is_err()).count();
        assert_eq!(refused, bodies - 1, "{name}: what is asked for is told from all else");
    }
}
