//! Promise: what lies on another base than the store itself is Unsupported, and nothing else is. No vacuum, merge or copy touches it
//! or forgets it.

use super::newer::{open_for_writing, some, store};
use crate::support::copy::{WHOLE, copied, memory};
use crate::support::line::{read, write};
use crate::support::room::{base, commit, far_fragment, file, id_of};
use crate::support::store::{context, open, store_of, vacuum};
use gridstone::base::{Error, ErrorKind, FileRef};
use gridstone::engine::{At, Call, CopyOptions, Keep, ReadOrder, Strategy, verify_on};
use gridstone::storage::{MANIFEST, Storage, data_name};
use gridstone::store::{Base, KeptFile, Operation};
use std::sync::Arc;

type Memory = Arc<dyn Storage>;

fn set(storage: &Memory, number: u32, base: Option<Base>, before: Option<Base>) -> gridstone::base::Result<u64> {
    let (base, before) = (base.map(Arc::new), before.map(Arc::new));
    commit(storage, vec![Operation::SetBase { number, base, before }])
}

/// A store whose `/grid` has cells 1,000 to 1,099 on base 3.
fn with_base() -> Memory {
    let storage = store();
    set(&storage, 3, Some(base("source")), None).unwrap();
    let fragments = vec![far_fragment(3, (1_000, 1_099))];
    commit(&storage, vec![Operation::AddFragments { array: id_of(&storage, "/grid"), fragments }]).unwrap();
    storage
}

fn read_grid(storage: &Memory, from: i64, to: i64) -> gridstone::base::Result<usize> {
    let grid = open(&context(64), storage, "/grid", At::Latest)?;
    let sub = [(from.to_string(), to.to_string())];
    let (cells, ..) = grid.read(Some(&sub), None, ReadOrder::Row, &Call::default())?;
    Ok(cells.attrs[0].len())
}

fn is_far(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let words = ["base 3", "\"source\"", "s3://far/away", "use a newer"];
    assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
}

fn far_fragments(storage: &Memory) -> usize {
    let newest = store_of(storage).latest().unwrap();
    let all = newest.array("/grid").unwrap().fragments(None).unwrap();
    all.iter().filter(|d| matches!(d.location.file, FileRef::OnBase(3, _)) && d.extra.len() == 3).count()
}

#[test]
fn only_what_lies_there_is_unsupported() {
    let storage = with_base();
    let check = |what: &str| {
        is_far(&read_grid(&storage, 990, 1_000).unwrap_err());
        assert_eq!(read_grid(&storage, 0, 999).unwrap(), 1_000, "{what}");
        assert_eq!(read_grid(&storage, 1_100, 19_999).unwrap(), 18_900, "{what}");
        assert!(read(&open(&context(64), &storage, "/line", At::Latest).unwrap()).unwrap().len() >= 40, "{what}");
        let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
        assert_eq!(report.damage, Vec::new(), "{what}");
        assert_eq!(report.unchecked, ["a fragment of array /grid on base 3 was not checked"], "{what}");
        assert_eq!(far_fragments(&storage), 1, "{what}");
    };
    check("committed");
    let store = store_of(&storage);
    store.pack(&store.latest().unwrap()).unwrap();
    check("folded");
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    check("vacuumed");
    let grid = open(&context(64), &storage, "/grid", At::Latest).unwrap();
    for at in 0..12 {
        write(&grid, &some(2_000 + 20 * at)).unwrap();
    }
    let before = grid.fragments().unwrap().len();
    grid.consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    assert!(grid.fragments().unwrap().len() < before - 6, "those of the store are merged");
    check("merged");
    let far = grid.fragments().unwrap().into_iter().map(|f| f.id).find(|id| {
        let newest = store_of(&storage).latest().unwrap();
        let all = newest.array("/grid").unwrap().fragments(None).unwrap();
        all.iter().any(|d| d.id == *id && matches!(d.location.file, FileRef::OnBase(..)))
    });
    let named = Strategy::Fragments(vec![far.unwrap()]);
    let error = grid.consolidate(&named, 1 << 20, false, &Call::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn copies_of_one_version_are_refused_and_others_keep_it() {
    let storage = with_base();
    for path in ["/", "/grid"] {
        let target = memory();
        is_far(&copied(&storage, &target, &CopyOptions { path, ..WHOLE }).unwrap_err());
        assert!(target.list(MANIFEST).unwrap().is_empty() && target.list("_data").unwrap().is_empty());
    }
    copied(&storage, &memory(), &CopyOptions { path: "/line", ..WHOLE }).unwrap();
    let target = memory();
    copied(&storage, &target, &CopyOptions { history: true, ..WHOLE }).unwrap();
    is_far(&read_grid(&target, 1_000, 1_000).unwrap_err());
    assert_eq!(far_fragments(&target), 1);
    assert_eq!(*store_of(&target).latest().unwrap().bases().get(3).unwrap().unwrap(), base("source"));
}

#[test]
fn bases_are_set_by_who_knows_what_they_were() {
    let storage = with_base();
    let other = base("a kind of later");
    let conflict = set(&storage, 0, Some(other.clone()), None).unwrap_err();
    assert_eq!(conflict.kind(), ErrorKind::Input, "{conflict}");
    set(&storage, 3, Some(other.clone()), Some(base("source"))).unwrap();
    set(&storage, u32::MAX, Some(other.clone()), None).unwrap();
    let error = read_grid(&storage, 1_000, 1_000).unwrap_err();
    assert!(error.message().contains("\"a kind of later\""), "{error}");
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    let all = store_of(&storage).latest().unwrap().bases().all().unwrap();
    assert_eq!(
        all.into_iter().map(|(number, base)| (number, (*base).clone())).collect::<Vec<_>>(),
        [(3, other.clone()), (u32::MAX, other.clone())]
    );
    set(&storage, 3, None, Some(other)).unwrap();
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    let error = read_grid(&storage, 1_000, 1_000).unwrap_err();
    assert!(error.message().contains("base 3, which the store does not describe"), "{error}");
    assert_eq!(store_of(&storage).latest().unwrap().bases().all().unwrap().len(), 1);
}

/// A base may be this store under another address. Then a vacuum finds its files here, where only fragments on that base name them.
#[test]
fn a_vacuum_keeps_a_file_that_a_fragment_on_a_base_names() {
    let storage = store();
    set(&storage, 3, Some(base("own")), None).unwrap();
    let [folded, recent, orphan] = ["folded", "recent", "orphan"].map(|text| file(&storage, text));
    let add = |file: &KeptFile, at: i64| {
        let mut far = far_fragment(3, (at, at + 9));
        far.description.location.file = FileRef::OnBase(3, file.id);
        let array = id_of(&storage, "/grid");
        commit(&storage, vec![Operation::AddFragments { array, fragments: vec![far] }]).unwrap();
    };
    add(&folded, 1_000);
    let store = store_of(&storage);
    store.pack(&store.latest().unwrap()).unwrap();
    add(&recent, 1_100);
    let is_there = |file: &KeptFile| storage.exists(&data_name(file.id)).unwrap();
    for keep in [100, 1] {
        vacuum(&open_for_writing(&storage), Keep::Versions(keep)).unwrap();
        assert_eq!([&folded, &recent, &orphan].map(is_there), [true, true, false], "{keep} versions are kept");
    }
}
