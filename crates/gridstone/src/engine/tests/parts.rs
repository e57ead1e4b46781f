//! Hidden arrays, growth in receipts, deletions beyond a domain, moved fragments, arrays that are kept and not used.

use crate::base::{Entropy, ErrorKind, Id, Result};
use crate::engine::{
    Array, At, Call, CommitKey, Context, CopyOptions, Field, Isolation, Naming, Opened, Options, Receipt, Strategy,
    Transaction, VacuumOptions, commit_receipts_on, copy_on, create_array_on, open_on, verify_on,
};
use crate::maintain::Keep;
use crate::query::ReadOrder;
use crate::runtime::SystemEntropy;
use crate::schema::{Evolution, KeyRange, Labels, Order, Region, Schema, Subarray, key};
use crate::storage::{MemoryStorage, Storage};
use crate::store::{Changes, Operation, StandardRules};
use crate::tile::ColumnView;
use std::sync::Arc;

fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap().with_fold_versions(5)
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn line(domain: &str) -> Schema {
    let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":DOMAIN,"tile":"10"}],
        "attrs":[{"name":"v","dtype":"int64","fill":"-1"}]}"#;
    Schema::from_stored_json(&text.replace("DOMAIN", domain)).unwrap()
}

fn made(storage: &Arc<dyn Storage>, path: &str, schema: Schema) -> Array {
    create_array_on(&context(), storage.clone(), path, schema, false).unwrap()
}

fn opened(storage: &Arc<dyn Storage>, path: &str) -> Array {
    match open_on(&context(), storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group"),
    }
}

fn span(lo: i64, hi: i64) -> Subarray {
    Subarray::new(vec![KeyRange::new(key::from_signed(lo), key::from_signed(hi))])
}

fn region(lo: i64, hi: i64) -> Region {
    Region::new(vec![span(lo, hi)])
}

fn view(bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(crate::schema::Datatype::Int64, bytes, None, None).unwrap()
}

fn staged(array: &Array, lo: i64, values: &[i64]) -> crate::engine::Staged {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let region = region(lo, lo + values.len() as i64 - 1);
    array.stage_box(Some(&region), &vec![("v".to_owned(), view(&bytes))], Order::Row, &Call::default()).unwrap()
}

fn write(array: &Array, lo: i64, values: &[i64]) -> u64 {
    array.commit(vec![staged(array, lo, values)], None).unwrap()
}

fn read(array: &Array, lo: i64, hi: i64) -> Vec<i64> {
    let (cells, ..) = array.read_box(Some(&region(lo, hi)), None, ReadOrder::Row, &Call::default()).unwrap();
    cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|v| i64::from_le_bytes(*v)).collect()
}

fn vacuumed(array: &Array) {
    let options = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
    array.vacuum(&options, &Call::default()).unwrap();
}

fn sound(storage: &Arc<dyn Storage>) {
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

fn labels_in(array: &Array, hidden: Id) {
    let labels = vec![("x".to_owned(), Some(Labels::Array(hidden)))];
    array.alter(&Evolution { labels, ..Evolution::default() }, None).unwrap();
}

#[test]
fn labels_in_a_hidden_array_are_arrays_like_all_others() {
    let storage = memory();
    let array = made(&storage, "/g/a", line(r#"["0","99"]"#));
    let id = SystemEntropy.id();
    let hidden = array.create_hidden(id, "@x", line(r#"["0","99"]"#)).unwrap();
    labels_in(&array, id);
    let labels = array.labels(0).unwrap().unwrap();
    assert_eq!((labels.id(), array.hidden_names().unwrap()), (id, vec!["@x".to_owned()]));
    assert_eq!(array.hidden("@y").unwrap_err().kind(), ErrorKind::NotFound);
    for n in 0..12 {
        write(&hidden, n * 3, &[n, n + 1, n + 2]);
        write(&array, n * 3, &[100 * n; 3]);
    }
    let before = opened(&storage, "/g/a").version();
    let expected: Vec<i64> = (0..12).flat_map(|n| [n, n + 1, n + 2]).collect();
    let fresh = || opened(&storage, "/g/a").labels(0).unwrap().unwrap();
    assert_eq!(read(&fresh(), 0, 35), expected);
    // It is merged by itself, vacuumed, and looked back at.
    let report = fresh().consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    assert_eq!((report.before, report.after), (12, 1));
    let owner = opened(&storage, "/g/a");
    assert_eq!((read(&fresh(), 0, 35), owner.fragments().unwrap().len()), (expected.clone(), 12));
    write(&fresh(), 0, &[7]);
    assert_eq!(read(&fresh().at(At::Version(before)).unwrap(), 0, 35), expected);
    vacuumed(&owner);
    assert_eq!(read(&fresh(), 0, 2), [7, 1, 2]);
    sound(&storage);
    // Nothing shows it, and no path leads to it.
    let Opened::Group(root) = open_on(&context(), storage.clone(), "/", true, At::Latest).unwrap() else { panic!() };
    assert_eq!(root.walk().unwrap(), [("/g".to_owned(), "group"), ("/g/a".to_owned(), "array")]);
    for path in ["/g/a/@x", "/g/@x", "/@x"] {
        let error = open_on(&context(), storage.clone(), path, true, At::Latest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{path}");
    }
    root.move_child("g", "/h/g", None).unwrap();
    let moved = opened(&storage, "/h/g/a");
    assert_eq!((read(&moved.labels(0).unwrap().unwrap(), 0, 2), read(&moved, 0, 0)), (vec![7, 1, 2], vec![0]));
    root.refreshed().unwrap().remove("h/g/a", None).unwrap();
    let error = fresh_by_id(&moved).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    sound(&storage);
}

fn fresh_by_id(moved: &Array) -> Result<u64> {
    let labels = moved.labels(0)?.unwrap();
    labels.refresh()
}

#[test]
fn hidden_arrays_and_metadata_of_attributes_are_copied_with_their_array() {
    let storage = memory();
    let array = made(&storage, "/a", line(r#"["0","99"]"#));
    let (first, second) = (SystemEntropy.id(), SystemEntropy.id());
    array.create_hidden(first, "@old", line(r#"["0","99"]"#)).unwrap();
    labels_in(&array, first);
    let hidden = array.create_hidden(second, "@x", line(r#"["0","99"]"#)).unwrap();
    labels_in(&array, second);
    write(&hidden, 0, &[5, 6, 7]);
    write(&array, 0, &[1, 2, 3]);
    let (v, x) = (array.field("v").unwrap(), array.field("x").unwrap());
    assert_eq!((v, x, array.field("z").is_err()), (Field::Attribute(0), Field::Dimension(0), true));
    array.set_field_metadata(v, vec![("unit".to_owned(), Some("\"m\"".to_owned()))]).unwrap();
    array.set_field_metadata(x, vec![("unit".to_owned(), Some("\"km\"".to_owned()))]).unwrap();
    assert_eq!(array.field_metadata(v, "unit").unwrap().as_deref(), Some("\"m\""));
    // One hidden array is gone, and an older schema still names it.
    let newest = array.snapshot();
    let gone = Changes::new(vec![Operation::Remove { id: first }]);
    array.store().commit(&newest, gone, &mut StandardRules).unwrap();
    array.refresh().unwrap();
    let target = memory();
    for (from, to, path, target_path) in
        [(&storage, &target, "/", "/"), (&storage, &target, "/a", "/deep/b"), (&storage, &storage, "/a", "/b")]
    {
        let options = CopyOptions { path, target_path, at: At::Latest, tag: None, history: false, overwrite: false };
        copy_on((&context(), from.clone()), (&context(), to.clone()), &options, &Call::default()).unwrap();
        let copied = opened(to, if path == "/" { "/a" } else { target_path });
        let labels = copied.labels(0).unwrap().unwrap();
        assert_ne!(labels.id(), second);
        assert_eq!((read(&copied, 0, 3), read(&labels, 0, 3)), (vec![1, 2, 3, -1], vec![5, 6, 7, -1]));
        assert_eq!(copied.hidden_names().unwrap(), ["@x"]);
        assert_eq!(copied.field_metadata(x, "unit").unwrap().as_deref(), Some("\"km\""));
        assert_eq!(copied.all_field_metadata(v).unwrap().len(), 1);
        sound(to);
    }
    let history = memory();
    let options =
        CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history: true, overwrite: false };
    copy_on((&context(), storage.clone()), (&context(), history.clone()), &options, &Call::default()).unwrap();
    assert_eq!(read(&opened(&history, "/a").labels(0).unwrap().unwrap(), 0, 3), [5, 6, 7, -1]);
}

/// Hides an array, writes to it, and puts the labels there, in one commit with a key.
fn keyed(storage: &Arc<dyn Storage>, key: &str, name: &str, values: &[i64]) -> Result<u64> {
    let begun = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot)?;
    let transaction = begun.with_key(CommitKey::new(key.as_bytes())?, Naming::Id)?;
    let (array, id) = (transaction.array("/a")?, SystemEntropy.id());
    let hidden = array.create_hidden(id, name, line(r#"["0","99"]"#))?;
    labels_in(&array, id);
    write(&hidden, 0, values);
    transaction.commit(None)
}

#[test]
fn a_keyed_transaction_that_hides_an_array_is_done_once() {
    let storage = memory();
    let array = made(&storage, "/a", line(r#"["0","99"]"#));
    let first = keyed(&storage, "k", "@x", &[1, 2]).unwrap();
    write(&array, 50, &[7]);
    // Repeated, it has the same content, though the id of the hidden array is another one.
    assert_eq!(keyed(&storage, "k", "@x", &[1, 2]).unwrap(), first);
    let array = opened(&storage, "/a");
    assert_eq!((array.hidden_names().unwrap().len(), array.version()), (1, first + 1));
    assert_eq!(read(&array.labels(0).unwrap().unwrap(), 0, 2), [1, 2, -1]);
    for (name, values) in [("@y", [1, 2]), ("@x", [1, 3])] {
        let error = keyed(&storage, "k", name, &values).unwrap_err();
        assert!(error.kind() == ErrorKind::Conflict && error.message().contains("commit key"), "{error}");
    }
    sound(&storage);
}

#[test]
fn hidden_arrays_that_differ_are_other_content_of_a_key() {
    let hide = |storage: &Arc<dyn Storage>, name: &str, schema: Schema| {
        let begun = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot)?;
        let transaction = begun.with_key(CommitKey::new(b"k")?, Naming::Id)?;
        transaction.array("/a")?.create_hidden(SystemEntropy.id(), name, schema)?;
        transaction.commit(None)
    };
    let storage = memory();
    made(&storage, "/a", line(r#"["0","9"]"#));
    let first = hide(&storage, "@x", line(r#"["0","9"]"#)).unwrap();
    assert_eq!(hide(&storage, "@x", line(r#"["0","9"]"#)).unwrap(), first);
    for (name, domain) in [("@z", r#"["0","9"]"#), ("@x", r#"["0","19"]"#)] {
        assert_eq!(hide(&storage, name, line(domain)).unwrap_err().kind(), ErrorKind::Conflict, "{name} {domain}");
    }
}

#[test]
fn a_serializable_transaction_sees_hidden_arrays_come_and_change() {
    let stands = |look: &dyn Fn(&Array), theirs: &dyn Fn(&Array)| {
        let storage = memory();
        let array = made(&storage, "/a", line(r#"["0","9"]"#));
        let other = made(&storage, "/b", line(r#"["0","9"]"#));
        let id = SystemEntropy.id();
        array.create_hidden(id, "@x", line(r#"["0","9"]"#)).unwrap();
        labels_in(&array, id);
        drop(other);
        let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
        look(&transaction.array("/a").unwrap());
        write(&transaction.array("/b").unwrap(), 0, &[1]);
        theirs(&opened(&storage, "/a"));
        match transaction.commit(None) {
            Ok(_) => true,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                false
            }
        }
    };
    let absent = |a: &Array| assert_eq!(a.hidden("@y").unwrap_err().kind(), ErrorKind::NotFound);
    let found = |a: &Array| drop(a.hidden("@x").unwrap());
    let listed = |a: &Array| assert_eq!(a.hidden_names().unwrap(), ["@x"]);
    let labels = |a: &Array| drop(a.labels(0).unwrap().unwrap());
    let creates = |a: &Array| drop(a.create_hidden(SystemEntropy.id(), "@y", line(r#"["0","9"]"#)).unwrap());
    let renames = |a: &Array| {
        let rename = vec![("v".to_owned(), "lat".to_owned())];
        a.hidden("@x").unwrap().alter(&Evolution { rename, ..Evolution::default() }, None).unwrap();
    };
    assert_eq!([stands(&absent, &creates), stands(&listed, &creates), stands(&found, &creates)], [false, false, true]);
    assert_eq!([stands(&found, &renames), stands(&labels, &renames), stands(&listed, &renames)], [false, false, true]);
}

fn sent(receipt: &Receipt) -> Receipt {
    Receipt::from_json(&receipt.to_json().unwrap()).unwrap()
}

fn grown(storage: &Arc<dyn Storage>, (lo, hi): (i64, i64), at: i64, values: &[i64]) -> Receipt {
    let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let array = transaction.array("/a").unwrap();
    let domains = vec![("x".to_owned(), lo.to_string(), hi.to_string())];
    array.alter(&Evolution { domains, ..Evolution::default() }, None).unwrap();
    write(&array, at, values);
    // Staged writes are read through the growth that was staged.
    assert_eq!(read(&array, at, at + values.len() as i64 - 1), values);
    let receipts = transaction.receipts().unwrap();
    assert!(receipts.len() == 1 && !transaction.is_open());
    sent(&receipts[0])
}

#[test]
fn receipts_commit_the_growth_that_they_need() {
    for together in [true, false] {
        for flipped in [true, false] {
            let storage = memory();
            let array = made(&storage, "/a", line(r#"["0","9"]"#));
            write(&array, 0, &[10, 11]);
            let mut receipts = [grown(&storage, (-25, 9), -24, &[1, 2]), grown(&storage, (0, 31), 30, &[3, 4])];
            assert_eq!((receipts[0].growth.len(), receipts[0].cells()), (1, 2));
            assert_eq!(opened(&storage, "/a").schema().unwrap().domain(), span(0, 9), "nothing is committed");
            if flipped {
                receipts.reverse();
            }
            let commit =
                |receipts: &[Receipt]| commit_receipts_on(&context(), storage.clone(), receipts, None).unwrap();
            if together {
                commit(&receipts);
            } else {
                let other = opened(&storage, "/a");
                commit(&receipts[..1]);
                // Another makes the domain grow meanwhile.
                let domains = vec![("x".to_owned(), "-3".to_owned(), "50".to_owned())];
                other.alter(&Evolution { domains, ..Evolution::default() }, None).unwrap();
                commit(&receipts[1..]);
            }
            let array = opened(&storage, "/a");
            assert_eq!(array.schema().unwrap().domain(), span(-25, if together { 31 } else { 50 }));
            assert_eq!(read(&array, -25, -21), [-1, 1, 2, -1, -1]);
            assert_eq!((read(&array, 0, 2), read(&array, 29, 31)), (vec![10, 11, -1], vec![-1, 3, 4]));
            let again = commit_receipts_on(&context(), storage.clone(), &receipts, None).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Conflict);
            sound(&storage);
        }
    }
}

#[test]
fn receipts_with_growth_conflict_with_the_removal_of_their_array_alone() {
    let storage = memory();
    made(&storage, "/a", line(r#"["0","9"]"#));
    let receipt = grown(&storage, (0, 31), 30, &[3, 4]);
    let renamed = Evolution { rename: vec![("x".to_owned(), "lon".to_owned())], ..Evolution::default() };
    opened(&storage, "/a").alter(&renamed, None).unwrap();
    commit_receipts_on(&context(), storage.clone(), std::slice::from_ref(&receipt), None).unwrap();
    assert_eq!(read(&opened(&storage, "/a"), 29, 31), [-1, 3, 4]);
    let storage = memory();
    made(&storage, "/a", line(r#"["0","9"]"#));
    let receipt = grown(&storage, (0, 31), 30, &[3, 4]);
    create_array_on(&context(), storage.clone(), "/a", line(r#"["0","9"]"#), true).unwrap();
    let error = commit_receipts_on(&context(), storage.clone(), std::slice::from_ref(&receipt), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let text = receipt.to_json().unwrap();
    for (from, to) in [("\"low\":\"8", "\"low\":\"f"), ("\"dimension\":0", "\"dimensions\":0")] {
        assert!(text.contains(from), "{text}");
        Receipt::from_json(&text.replace(from, to)).unwrap_err();
    }
}

#[test]
fn a_transaction_gives_receipts_only_for_what_they_can_say() {
    let storage = memory();
    made(&storage, "/a", line(r#"["0","9"]"#));
    let begin = || Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let transaction = begin();
    transaction.create_group("/g").unwrap();
    assert_eq!(transaction.receipts().unwrap_err().kind(), ErrorKind::Input);
    assert!(transaction.is_open(), "it can still be committed");
    transaction.commit(None).unwrap();
    assert_eq!(transaction.receipts().unwrap_err().kind(), ErrorKind::Input);
    assert!(begin().receipts().unwrap().is_empty());
}

#[test]
fn a_deletion_beyond_the_domain_reads_and_merges_as_one_within() {
    for sparse in [false, true] {
        let text = line(r#"["0","39"]"#).to_json().replace("\"sparse\":false", &format!("\"sparse\":{sparse}"));
        let storage = memory();
        let array = made(&storage, "/a", Schema::from_json(&text).unwrap());
        let fill = |array: &Array, lo: i64, values: &[i64]| match sparse {
            false => write(array, lo, values),
            true => {
                let (at, values) = ((lo..).take(values.len()).collect::<Vec<i64>>(), values);
                let bytes = |v: &[i64]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
                let (at, values) = (bytes(&at), bytes(values));
                let data = crate::engine::CellData {
                    dims: vec![view(&at)],
                    attrs: vec![("v".to_owned(), view(&values))],
                    sorted: false,
                    dedup: crate::query::Dedup::Error,
                };
                array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap()
            }
        };
        fill(&array, 0, &[1, 2, 3, 4, 5]);
        fill(&array, 30, &[6, 7, 8, 9, 10]);
        let description = crate::fragment::Description::deletion(SystemEntropy.id(), 0, span(32, 5_000));
        let fragments = vec![crate::fragment::Staged { description, body: None }];
        let add = Operation::AddFragments { array: array.id(), fragments };
        array.store().commit(&array.snapshot(), Changes::new(vec![add]), &mut StandardRules).unwrap();
        array.refresh().unwrap();
        fill(&array, 34, &[11, 12, 13, 14, 15]);
        let seen = |array: &Array| {
            let (cells, ..) = array.read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
            cells.attrs[0]
                .view()
                .values()
                .as_chunks::<8>()
                .0
                .iter()
                .map(|v| i64::from_le_bytes(*v))
                .filter(|v| *v > 0)
                .collect::<Vec<_>>()
        };
        let expected = [1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15];
        assert_eq!(seen(&array), expected, "sparse {sparse}");
        let listed = array.fragments().unwrap();
        assert_eq!(listed.iter().find(|f| f.kind == "deletion").unwrap().domain[0].1, "5000");
        let domains = vec![("x".to_owned(), "0".to_owned(), "6000".to_owned())];
        array.alter(&Evolution { domains, ..Evolution::default() }, None).unwrap();
        assert_eq!(seen(&array), expected, "the domain has grown over it");
        for strategy in [Strategy::Updates, Strategy::Tiered, Strategy::All] {
            array.consolidate(&strategy, 1 << 20, false, &Call::default()).unwrap();
            assert_eq!(seen(&array), expected, "sparse {sparse} {strategy:?}");
        }
        vacuumed(&array);
        assert_eq!(seen(&opened(&storage, "/a")), expected);
        sound(&storage);
    }
}

#[test]
fn a_moved_fragment_is_read_where_its_description_says() {
    let storage = memory();
    let array = made(&storage, "/a", line(r#"["0","99"]"#));
    let values: Vec<i64> = (1..=25).collect();
    let mut part = staged(&array, 13, &values);
    let mut moved = part.fragments[0].clone();
    part.keep_files();
    (moved.description.bounds, moved.description.moved) = (span(43, 67), vec![3]);
    let commit = |fragment: &crate::fragment::Staged| {
        let add = Operation::AddFragments { array: array.id(), fragments: vec![fragment.clone()] };
        array.store().commit(&array.snapshot(), Changes::new(vec![add]), &mut StandardRules).unwrap();
        array.refresh().unwrap();
    };
    commit(&moved);
    let mut expected = vec![-1; 100];
    expected[43..68].copy_from_slice(&values);
    assert_eq!(read(&array, 0, 99), expected);
    assert_eq!(read(&array, 50, 52), [8, 9, 10]);
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    // Merged, it is where it was read.
    write(&array, 60, &[0; 3]);
    expected[60..63].fill(0);
    let report = array.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    assert_eq!((report.before, report.after, read(&array, 0, 99)), (2, 1, expected));
    assert!(array.described(&array.snapshot(), &array.state().unwrap().1, None).unwrap()[0].moved.is_empty());
    // One that is said to lie elsewhere is another.
    for (by, bounds) in [(vec![2], span(43, 67)), (vec![1 << 61], span(43, 67)), (vec![0], span(43, 67))] {
        let mut wrong = moved.clone();
        (wrong.description.id, wrong.description.moved, wrong.description.bounds) = (SystemEntropy.id(), by, bounds);
        let opened = crate::fragment::Fragment::open_read(
            moved.body.clone().unwrap(),
            Arc::new(crate::fragment::Description { id: moved.description.id, ..wrong.description }),
            &array.schema().unwrap(),
        );
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Corruption);
    }
}

#[test]
fn arrays_without_a_coordinate_or_a_dimension_are_folded_vacuumed_and_copied() {
    let storage = memory();
    made(&storage, "/a", line(r#"["0","9"]"#));
    let array = opened(&storage, "/a");
    let scalar = Schema::of_scalar(line(r#"["0","9"]"#).attrs().to_vec(), Default::default()).unwrap();
    let arrays = [("/scalar", scalar, 1), ("/empty", line("[]"), 0), ("/open", line(r#"["0",null]"#), 0)];
    let create = |path: &str, schema: &Schema| {
        let (id, path, schema) = (SystemEntropy.id(), path.to_owned(), schema.clone());
        Operation::CreateArray { id, path, schema, ext: None }
    };
    let operations = arrays.iter().map(|(path, schema, _)| create(path, schema)).collect();
    array.store().commit(&array.snapshot(), Changes::new(operations), &mut StandardRules).unwrap();
    for n in 0..7 {
        write(&opened(&storage, "/a"), n, &[n]);
    }
    vacuumed(&opened(&storage, "/a"));
    sound(&storage);
    let target = memory();
    let options =
        CopyOptions { path: "/", target_path: "/", at: At::Latest, tag: None, history: false, overwrite: false };
    copy_on((&context(), storage.clone()), (&context(), target.clone()), &options, &Call::default()).unwrap();
    for place in [&storage, &target] {
        for (path, schema, count) in &arrays {
            let (cells, ..) = opened(place, path).read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
            assert_eq!(cells.count, *count, "{path}");
            let snapshot = opened(place, "/a").snapshot();
            let kept = snapshot.array(path).unwrap().schemas().get(0).unwrap().unwrap();
            assert_eq!(kept.to_stored_json(), schema.to_stored_json());
        }
    }
    let text = line(r#"["0",null]"#).to_stored_json().replace("\"sparse\":false", "\"sparse\":true");
    let sparse = made(&storage, "/sparse", Schema::from_stored_json(&text).unwrap());
    assert!(sparse.schema().unwrap().is_without_cells());
    let (cells, ..) = sparse.read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert_eq!(cells.count, 0);
}
