//! Promise: a repeated call with a commit key asks for the same, and finds the same, whatever others have committed meanwhile.

use super::commit_keys::{Statement, call, key, many, stage, write};
use crate::support::columns::{bytes_of, view};
use crate::support::pair::{cells, memory, one, opened, schema};
use crate::support::scratch::Folder;
use crate::support::writer::{context, version_of};
use gridstone::engine::{
    Array, At, Call, Condition, Context, End, Isolation, Naming, Opened, Options, Span, Transaction, create_array, open,
};
use gridstone::schema::Evolution;
use gridstone::storage::Durability;
use std::collections::BTreeMap;
use std::sync::Barrier;

/// Another member of a shared record may have read a later version. A transaction with a key has a record of its own, so that it finds
/// again what it had read.
#[test]
fn a_transaction_with_a_key_that_commits_beside_others_finds_the_same_when_it_is_run_again() {
    let folder = Folder::new("keyed-beside");
    let uri = folder.path().join("store").to_string_lossy().into_owned();
    let context =
        Context::new(&Options { threads: Some(1), durability: Durability::Full, ..Options::default() }).unwrap();
    for path in ["/dense", "/sparse"] {
        create_array(&context, &uri, path, schema(path == "/sparse"), false).unwrap();
    }
    let opened = |path: &str| match open(&context, &uri, path, true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group"),
    };
    let staged = |number: i64| {
        let begun = Transaction::begin(&context, &uri, Isolation::Snapshot).unwrap();
        let tx = begun.with_key(key(&format!("run {number}")).unwrap(), Naming::Id).unwrap();
        let array = tx.array("/dense").unwrap();
        let read = cells(&array, ((5, 5), (5, 5))).get(&(5, 5)).copied().unwrap_or(0);
        array.commit(vec![stage(&array, &one(6, number, read), &Call::default()).unwrap()], None).unwrap();
        tx
    };
    for number in 0..10 {
        let tx = staged(number);
        // What it has only read is changed by others, whose later commits begin after that.
        write(&opened("/dense"), &one(5, 5, 7 + number), &format!("changed {number}")).unwrap();
        let others: Vec<Array> = (0..6).map(|_| opened("/sparse")).collect();
        let begun = Barrier::new(others.len() + 1);
        let first = std::thread::scope(|scope| {
            for (y, array) in (0i64..).zip(&others) {
                let begun = &begun;
                scope.spawn(move || {
                    begun.wait();
                    (0..8).for_each(|x| _ = write(array, &one(y, x, number), &format!("{number} {y} {x}")).unwrap());
                });
            }
            begun.wait();
            tx.commit(None).unwrap()
        });
        assert_eq!(staged(number).commit(None).unwrap(), first, "run {number}");
    }
}

/// An end that was left open is open, wherever others have made the domain reach by the time the call is repeated.
#[test]
fn what_was_asked_for_up_to_the_end_of_the_domain_is_the_same_after_it_grew() {
    let span = |lo: Option<i64>, hi: Option<i64>| {
        let end = |at: Option<i64>| at.map(|at| End::Int(at.into()));
        Span { lo: end(lo), hi: end(hi), below: false }
    };
    let asked: [(&str, Vec<Vec<Span>>); 5] = [
        ("everything", vec![vec![span(None, None), span(None, None)]]),
        ("from 1 on", vec![vec![span(Some(1), None), span(None, None)]]),
        ("up to 5", vec![vec![span(None, Some(5)), span(Some(1), Some(7))]]),
        ("two boxes", vec![vec![span(Some(2), None), span(None, None)], vec![span(None, Some(0)), span(None, None)]]),
        ("the domain of then", vec![vec![span(Some(0), Some(149)), span(Some(0), Some(149))]]),
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
