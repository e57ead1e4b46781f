//! Consolidation, vacuum, checks, repair, copies, moves.

use crate::support::*;
use gridstone_capi::*;
use serde_json::json;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

/// A store with eight fragments.
fn scattered(name: &str) -> Store {
    let store = store(name, true);
    for at in 0..8 {
        write_sparse(&store.array, &[at], &[at as i32]);
    }
    store
}

fn cells() -> Vec<(i64, i32)> {
    (0..8).map(|at| (at, at as i32)).collect()
}

fn merging(strategy: Option<&CStr>) -> gridstone_consolidate_options {
    // SAFETY: all zeros are a value of it.
    let mut options: gridstone_consolidate_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<gridstone_consolidate_options>();
    options.strategy = strategy.map_or(null(), CStr::as_ptr);
    options
}

#[track_caller]
fn consolidate(array: &Held, options: &gridstone_consolidate_options) -> serde_json::Value {
    // SAFETY: the options live through the call.
    json_of(|out| unsafe { gridstone_array_consolidate(array.0, options, null(), out) })
}

#[track_caller]
fn fragments(array: &Held) -> Vec<serde_json::Value> {
    // SAFETY: the place is there.
    json_of(|out| unsafe { gridstone_array_fragments(array.0, out) }).as_array().unwrap().clone()
}

fn keeping(versions: u64) -> gridstone_vacuum_options {
    // SAFETY: all zeros are a value of it.
    let mut options: gridstone_vacuum_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<gridstone_vacuum_options>();
    (options.versions, options.safety_us) = (versions, GRIDSTONE_NO_AGE);
    options
}

#[test]
fn fragments_are_merged_and_the_cells_stay() {
    let store = scattered("merge");
    let mut planned = merging(Some(c"all"));
    planned.dry_run = 1;
    consolidate(&store.array, &planned);
    assert_eq!(fragments(&store.array).len(), 8, "a dry run changes nothing");
    let report = consolidate(&store.array, &merging(Some(c"all")));
    assert!(report.is_object());
    assert_eq!(fragments(&store.array).len(), 1);
    assert_eq!(sparse(&store.array), cells());
}

#[test]
fn chosen_fragments_and_those_of_a_region_are_merged() {
    let store = scattered("merge-chosen");
    let ids: Vec<_> = fragments(&store.array)[..2].iter().map(|fragment| c(fragment["id"].as_str().unwrap())).collect();
    let ids = pointers(&ids);
    let mut options = merging(None);
    (options.fragments, options.fragment_count) = (ids.as_ptr(), 2);
    consolidate(&store.array, &options);
    assert_eq!(fragments(&store.array).len(), 7);
    let region = boxed(&[4, 7]);
    let mut options = merging(None);
    options.region = region.0;
    consolidate(&store.array, &options);
    assert_eq!(fragments(&store.array).len(), 4);
    assert_eq!(sparse(&store.array), cells());
}

#[test]
fn wrong_choices_of_a_consolidation_are_refused() {
    let store = scattered("merge-wrong");
    let (region, mut out) = (boxed(&[0, 3]), 7);
    let bad = [c"no id".as_ptr()];
    let try_it = |change: &dyn Fn(&mut gridstone_consolidate_options), out: &mut u64| {
        let mut options = merging(None);
        change(&mut options);
        // SAFETY: the options live through the call.
        unsafe { gridstone_array_consolidate(store.array.0, &raw const options, null(), out) }
    };
    let refused = try_it(&|o| o.strategy = c"best".as_ptr(), &mut out);
    fails(refused, GRIDSTONE_ERROR_INPUT, "unknown strategy \"best\"");
    let refused = try_it(&|o| (o.strategy, o.region) = (c"all".as_ptr(), region.0), &mut out);
    fails(refused, GRIDSTONE_ERROR_INPUT, "give one of them");
    let refused = try_it(&|o| (o.fragments, o.fragment_count) = (bad.as_ptr(), 1), &mut out);
    fails(refused, GRIDSTONE_ERROR_INPUT, "no id");
    let refused = try_it(&|o| o.fragment_count = 1, &mut out);
    fails(refused, GRIDSTONE_ERROR_INPUT, "fragments is a null pointer");
    let refused = try_it(&|o| o.region = store.array.0, &mut out);
    fails(refused, GRIDSTONE_ERROR_HANDLE, "a region is needed");
    let reading = store.again();
    // SAFETY: null pointers are refused.
    unsafe {
        let refused = gridstone_array_consolidate(reading.0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "");
    }
    assert_eq!((out, fragments(&store.array).len()), (7, 8));
    // SAFETY: a null report is none.
    unsafe {
        ok(gridstone_array_consolidate(store.array.0, null(), null(), null_mut()));
        ok(gridstone_vacuum(store.array.0, null(), null(), null_mut()));
    }
}

#[test]
fn a_consolidation_goes_on_in_the_background() {
    let store = scattered("merge-background");
    let options = merging(Some(c"all"));
    let options = &raw const options;
    // SAFETY: the options live through the calls.
    unsafe {
        let upkeep = Held::of(|out| gridstone_array_consolidate_begin(store.array.0, options, out));
        let (mut done, mut report) = (0, 0);
        ok(gridstone_upkeep_wait(upkeep.0, u64::MAX, &raw mut done, &raw mut report));
        assert_eq!(done, 1);
        assert!(read_text(&Held(report)).starts_with('{'));
        // Looking again gives the same.
        ok(gridstone_upkeep_wait(upkeep.0, 0, &raw mut done, null_mut()));
        assert_eq!(done, 1);
        ok(gridstone_upkeep_cancel(upkeep.0));
        assert_eq!(fragments(&store.array).len(), 8, "the handle stays at its version");
        refresh(&store.array);
        assert_eq!((fragments(&store.array).len(), sparse(&store.array)), (1, cells()));

        assert_eq!(number_of(|out| gridstone_array_upkeep(store.array.0, out)), 0, "no policy started any");
        let freed = upkeep.free();
        fails(gridstone_upkeep_cancel(freed), GRIDSTONE_ERROR_HANDLE, "freed");
        let (mut out, mut dry) = (7, merging(None));
        dry.dry_run = 1;
        let refused = gridstone_array_consolidate_begin(store.array.0, &raw const dry, &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "leave dry_run 0");
        let refused = gridstone_upkeep_wait(store.array.0, 0, &raw mut done, null_mut());
        fails(refused, GRIDSTONE_ERROR_HANDLE, "an upkeep is needed");
        fails(gridstone_upkeep_wait(freed, 0, null_mut(), null_mut()), GRIDSTONE_ERROR_INPUT, "done is a null");
        assert_eq!(out, 7);
    }
}

#[test]
fn a_vacuum_forgets_versions_but_not_tagged_ones() {
    let folder = Folder::new("vacuum");
    let store = store_in(&folder, false);
    let kept = write_dense(&store.array, &[1; 10]);
    write_dense(&store.array, &[2; 10]);
    let mut options = keeping(1);
    options.dry_run = 1;
    let vacuum = |node: &Held, options: &gridstone_vacuum_options| {
        // SAFETY: the options live through the call.
        json_of(|out| unsafe { gridstone_vacuum(node.0, options, null(), out) })
    };
    let shows = |version: u64, out: &mut u64| {
        // SAFETY: all zeros are a value of the options, which live through the call.
        unsafe {
            let mut options: gridstone_open_options = std::mem::zeroed();
            (options.size, options.version) = (size_of::<gridstone_open_options>(), version);
            gridstone_array_at(store.array.0, &raw const options, out)
        }
    };
    let mut out = 0;
    vacuum(&store.array, &options);
    vacuum(&store.again(), &options);
    ok(shows(kept, &mut out));
    drop(Held(out));
    // SAFETY: the texts live through the call.
    ok(unsafe { gridstone_store_tag(store.context.0, store.uri.as_ptr(), c"kept".as_ptr(), kept, 0, null_mut()) });
    vacuum(&store.array, &keeping(1));
    ok(shows(kept, &mut out));
    drop(Held(out));
    // SAFETY: the texts live through the call.
    ok(unsafe { gridstone_store_untag(store.context.0, store.uri.as_ptr(), c"kept".as_ptr(), null_mut()) });
    vacuum(&store.array, &keeping(1));
    out = 7;
    fails(shows(kept, &mut out), GRIDSTONE_ERROR_SNAPSHOT_EXPIRED, "");
    assert_eq!((out, dense(&store.array)), (7, vec![2; 10]));
}

#[test]
fn impossible_options_of_a_vacuum_are_refused() {
    let store = scattered("vacuum-wrong");
    let mut out = 7;
    let try_it = |change: &dyn Fn(&mut gridstone_vacuum_options), out: &mut u64| {
        let mut options = keeping(0);
        change(&mut options);
        // SAFETY: the options live through the call.
        unsafe { gridstone_vacuum(store.array.0, &raw const options, null(), out) }
    };
    let refused = try_it(&|o| (o.keep_us, o.versions) = (5, 5), &mut out);
    fails(refused, GRIDSTONE_ERROR_INPUT, "give one of them");
    fails(try_it(&|o| o.keep_us = -2, &mut out), GRIDSTONE_ERROR_INPUT, "keep_us is -2");
    fails(try_it(&|o| o.safety_us = i64::MIN, &mut out), GRIDSTONE_ERROR_INPUT, "safety_us is");
    fails(try_it(&|o| o.size = 0, &mut out), GRIDSTONE_ERROR_INPUT, "sizeof(gridstone_vacuum_options)");
    let uri = c"mem://capi-vacuum-group".as_ptr();
    // SAFETY: the texts live through the calls; null pointers are refused.
    unsafe {
        fails(gridstone_vacuum(store.again().0, null(), null(), &raw mut out), GRIDSTONE_ERROR_INPUT, "");
        let refused = gridstone_vacuum(store.context.0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_HANDLE, "an array or a group is needed");
        let group = Held::of(|out| gridstone_group_create(store.context.0, uri, null(), out));
        drop(text_of(|out| gridstone_vacuum(group.0, null(), null(), out)));
        let reading = Held::of(|out| gridstone_group_open(store.context.0, uri, null(), out));
        let refused = gridstone_vacuum(reading.0, null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "GRIDSTONE_OPEN_WRITE");
        let mut dry = keeping(1);
        dry.dry_run = 1;
        drop(text_of(|out| gridstone_vacuum(reading.0, &raw const dry, null(), out)));
    }
    assert_eq!(out, 7);
}

#[test]
fn damage_is_found_and_told() {
    let folder = Folder::new("verify");
    let store = store_in(&folder, false);
    write_dense(&store.array, &(0..10).collect::<Vec<i32>>());
    let (context, uri) = (store.context.0, store.uri.as_ptr());
    // SAFETY: the texts live through the calls.
    unsafe {
        let verify = || json_of(|out| gridstone_store_verify(context, uri, null(), out));
        let sound = verify();
        let of_array = json_of(|out| gridstone_array_verify(store.array.0, null(), out));
        assert_eq!(of_array["damage"], json!([]));
        drop(json_of(|out| gridstone_store_repair(context, uri, 1, 0, null(), out)));
        drop(json_of(|out| gridstone_store_repair(context, uri, 0, 0, null(), out)));
        folder.flip_a_byte_of_the_newest_record();
        assert_ne!(verify(), sound);
        let mut out = 7;
        let nowhere = c"mem://capi-no-verify".as_ptr();
        fails(gridstone_store_verify(context, nowhere, null(), &raw mut out), GRIDSTONE_ERROR_NOT_FOUND, "");
        let refused = gridstone_store_repair(context, null(), 0, 0, null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "uri is a null pointer");
        fails(gridstone_store_verify(0, uri, null(), &raw mut out), GRIDSTONE_ERROR_HANDLE, "a context is needed");
        fails(gridstone_array_verify(0, null(), &raw mut out), GRIDSTONE_ERROR_HANDLE, "an array is needed");
        assert_eq!(out, 7);
    }
}

fn copying() -> gridstone_copy_options {
    // SAFETY: all zeros are a value of it.
    let mut options: gridstone_copy_options = unsafe { std::mem::zeroed() };
    options.size = size_of::<gridstone_copy_options>();
    options
}

#[test]
fn a_store_is_copied_whole_or_at_a_version_or_with_its_history() {
    let store = scattered("copy");
    let other = context();
    let open = |uri: &CStr| {
        // SAFETY: the text lives through the call.
        Held::of(|out| unsafe { gridstone_array_open(store.context.0, uri.as_ptr(), null(), out) })
    };
    let copy = |target: &CStr, options: *const gridstone_copy_options, to: gridstone_handle, out: &mut u64| {
        let (context, uri) = (store.context.0, store.uri.as_ptr());
        // SAFETY: the texts live through the call.
        unsafe { gridstone_store_copy(context, uri, to, target.as_ptr(), options, null(), out) }
    };
    let mut out = 0;
    let whole = c"mem://capi-copy-whole";
    ok(copy(whole, null(), 0, &mut out));
    assert!(read_text(&Held(out)).starts_with('{'));
    assert_eq!(sparse(&open(whole)), cells());
    out = 7;
    fails(copy(whole, null(), 0, &mut out), GRIDSTONE_ERROR_EXISTS, "");
    assert_eq!(out, 7);

    let at_version = c"mem://capi-copy-version";
    let mut options = copying();
    options.version = version(&store.array) - 6;
    ok(copy(at_version, &raw const options, other.0, &mut out));
    drop(Held(out));
    assert_eq!(sparse(&open(at_version)), cells()[..2]);

    let history = c"mem://capi-copy-history";
    let mut options = copying();
    options.history = 1;
    ok(copy(history, &raw const options, 0, &mut out));
    drop(Held(out));
    assert_eq!(version(&open(history)), version(&store.array));
    let vacuum = keeping(1);
    let (context, uri, vacuum) = (store.context.0, history.as_ptr(), &raw const vacuum);
    // SAFETY: the texts live through the calls; null pointers are refused.
    unsafe {
        drop(json_of(|out| gridstone_store_forget(context, uri, vacuum, null(), out)));
        out = 7;
        let mut both = copying();
        (both.version, both.tag) = (1, c"t".as_ptr());
        fails(copy(history, &raw const both, 0, &mut out), GRIDSTONE_ERROR_INPUT, "give one of them");
        fails(copy(history, null(), store.array.0, &mut out), GRIDSTONE_ERROR_HANDLE, "a context is needed");
        let refused = gridstone_store_copy(context, store.uri.as_ptr(), 0, null(), null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "target is a null pointer");
        let refused = gridstone_store_forget(context, null(), null(), null(), &raw mut out);
        fails(refused, GRIDSTONE_ERROR_INPUT, "uri is a null pointer");
    }
    assert_eq!((out, sparse(&open(history))), (7, cells()));
}

#[test]
fn what_lies_at_a_path_is_moved_and_handles_still_mean_it() {
    let context = context();
    let uri = c"mem://capi-move".as_ptr();
    let schema = schema(true);
    // SAFETY: the texts live through the calls; null pointers are refused.
    unsafe {
        let (a, b) = (c"/a".as_ptr(), c"/deep/b".as_ptr());
        let array = Held::of(|out| gridstone_array_create(context.0, uri, a, schema.0, 0, out));
        let moved = number_of(|out| gridstone_store_move(context.0, uri, a, b, null(), out));
        write_sparse(&array, &[1], &[10]);
        assert!(version(&array) > moved);
        assert_eq!(text_of(|out| gridstone_array_path(array.0, out)), "/deep/b");
        let mut version = 7;
        let missing = gridstone_store_move(context.0, uri, a, b, null(), &raw mut version);
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "/a");
        let refused = gridstone_store_move(context.0, uri, a, null(), null(), &raw mut version);
        fails(refused, GRIDSTONE_ERROR_INPUT, "target_path is a null pointer");
        assert_eq!(version, 7);
        // The store has the newest format: there is nothing to do.
        let newest = crate::support::version(&array);
        assert_eq!(number_of(|out| gridstone_store_upgrade(context.0, uri, out)), newest);
        let missing = gridstone_store_upgrade(context.0, c"mem://capi-no-upgrade".as_ptr(), null_mut());
        fails(missing, GRIDSTONE_ERROR_NOT_FOUND, "");
    }
}
