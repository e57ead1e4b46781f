//! Plans: the chosen merges, equal reads after them (against a model that reads cell by cell), and the time of
//! planning.

use super::{Strategy, *};
use crate::base::FileRef;
use crate::fragment::box_index::STEPS;
use crate::fragment::{EXTERNAL_PART, Location, Part, ValueBounds};
use crate::schema::KeyRange;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LIMITS: PlanLimits = PlanLimits { memory_bytes: 1 << 30, cell_bytes: 100 };

fn schema(sparse: bool, nullable: bool) -> Schema {
    let capacity = if sparse { r#""sparse":true,"# } else { "" };
    Schema::from_json(&format!(
        r#"{{{capacity}"dims":[{{"name":"x","dtype":"uint64","domain":["0","999999"],"tile":"10"}},
        {{"name":"y","dtype":"uint64","domain":["0","999999"],"tile":"10"}}],
        "attrs":[{{"name":"a","dtype":"int8","nullable":{nullable}}},{{"name":"b","dtype":"int8","nullable":{nullable}}}]}}"#
    ))
    .unwrap()
}

fn rect(x: (u64, u64), y: (u64, u64)) -> Subarray {
    Subarray::new(vec![KeyRange::new(x.0, x.1), KeyRange::new(y.0, y.1)])
}

fn described(number: u64, kind: FragmentKind, bounds: Subarray, len: u64) -> Description {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_le_bytes());
    Description {
        id: Id(id),
        kind,
        order: FragmentOrder { version: number, index: 0 },
        schema: 0,
        cells: if kind == FragmentKind::Dense { bounds.cells() as u64 } else { len / 10 + 1 },
        bounds,
        attrs: if is_clear(kind) { Vec::new() } else { vec![0, 1] },
        location: Location { file: FileRef::Data(Id(id)), offset: 0, len },
        over: None,
        stats: ValueBounds::default(),
        extra: Vec::new(),
        moved: Vec::new(),
    }
}

fn is_clear(kind: FragmentKind) -> bool {
    matches!(kind, FragmentKind::Tombstones | FragmentKind::Deletion)
}

fn fragment(number: u64, kind: FragmentKind, range: (u64, u64), len: u64) -> Arc<Description> {
    Arc::new(described(number, kind, rect(range, (0, 9)), len))
}

fn small(number: u64) -> Arc<Description> {
    fragment(number, FragmentKind::Sparse, (0, 9), 1_000)
}

fn orders(merge: &Merge) -> Vec<u64> {
    versions(&merge.inputs)
}

fn versions(all: &[Arc<Description>]) -> Vec<u64> {
    all.iter().map(|d| d.order.version).collect()
}

fn merges(fragments: &[Arc<Description>], strategy: Strategy, sparse: bool) -> Vec<Merge> {
    plan(&schema(sparse, false), fragments, &strategy, LIMITS).unwrap().merges
}

#[test]
fn tiers_merge_eight_of_a_size_and_leave_the_large_alone() {
    let mut fragments = vec![fragment(1, FragmentKind::Sparse, (0, 9), 100 << 20)];
    fragments.extend((2..9).map(small));
    assert!(merges(&fragments, Strategy::Tiered, true).is_empty(), "seven are too few");
    fragments.push(small(9));
    let tiered = merges(&fragments, Strategy::Tiered, true);
    assert_eq!(tiered.iter().map(orders).collect::<Vec<_>>(), [(2..10).collect::<Vec<u64>>()]);
    assert_eq!(tiered[0].order().version, 9);
    assert_eq!(orders(&merges(&fragments, Strategy::All, true)[0]), (1..10).collect::<Vec<u64>>());
    fragments.truncate(5);
    assert_eq!(orders(&merges(&fragments, Strategy::Updates, true)[0]), [2, 3, 4, 5]);
    assert!(merges(&fragments, Strategy::Manifest, true).is_empty());
}

#[test]
fn a_dense_fragment_stands_between_updates() {
    let mut fragments: Vec<_> = (1..9).map(small).collect();
    fragments.push(fragment(9, FragmentKind::Dense, (0, 5), 50));
    fragments.extend((10..18).map(small));
    assert_eq!(merges(&fragments, Strategy::All, false).len(), 2);
    let named = |places: &[usize]| Strategy::Fragments(places.iter().map(|p| fragments[*p].id).collect());
    assert!(plan(&schema(false, false), &fragments, &named(&[7, 9]), LIMITS).is_err());
    assert_eq!(orders(&merges(&fragments, named(&[10, 9]), false)[0]), [10, 11]);
    // If none of them touch, they need not be neighbours.
    let apart: Vec<_> = (1..5).map(|n| fragment(n, FragmentKind::Sparse, (n * 10, n * 10 + 9), 10)).collect();
    let ids = Strategy::Fragments(vec![apart[0].id, apart[3].id]);
    assert_eq!(orders(&merges(&apart, ids, true)[0]), [1, 4]);
}

#[test]
fn tombstones_stay_while_something_older_lies_under_them() {
    let tombstones = |n, range| fragment(n, FragmentKind::Tombstones, range, 10);
    let fragments = [
        fragment(1, FragmentKind::Sparse, (50, 60), 10),
        fragment(2, FragmentKind::Sparse, (0, 9), 10),
        tombstones(3, (3, 3)),
        tombstones(4, (55, 55)),
        tombstones(5, (5, 55)),
        fragment(6, FragmentKind::Sparse, (0, 9), 10),
        tombstones(7, (3, 3)),
        tombstones(8, (400, 401)),
    ];
    let named = merges(&fragments, Strategy::Fragments(vec![fragments[1].id, fragments[5].id]), true);
    assert_eq!((versions(&named[0].applied), versions(&named[0].retired)), (vec![3, 5, 7], vec![3, 7]));
    let all = plan(&schema(true, false), &fragments, &Strategy::All, LIMITS).unwrap();
    assert_eq!((orders(&all.merges[0]), versions(&all.merges[0].retired)), (vec![1, 2, 6], vec![3, 4, 5, 7]));
    assert_eq!(versions(&all.swept), [8], "nothing lies under it");
}

#[test]
fn a_single_fragment_is_purged_of_what_is_deleted() {
    let deletes = |n, len| fragment(n, FragmentKind::Tombstones, (0, 9), len);
    let few = [fragment(1, FragmentKind::Sparse, (0, 9), 10_000), deletes(2, 100)];
    assert!(merges(&few, Strategy::Tiered, true).is_empty());
    assert_eq!(versions(&merges(&few, Strategy::All, true)[0].retired), [2]);
    let many = [few[0].clone(), deletes(2, 2_000)];
    assert_eq!(versions(&merges(&many, Strategy::Tiered, true)[0].retired), [2]);
    // Over a dense fragment the tombstone must stay: there is no gain.
    let over = [fragment(0, FragmentKind::Dense, (0, 9_999), 10), many[0].clone(), many[1].clone()];
    assert!(merges(&over, Strategy::Tiered, false).is_empty());
}

#[test]
fn dense_fragments_become_their_union() {
    let dense = |n: u64, x: (u64, u64), y: (u64, u64)| {
        Arc::new(described(n, FragmentKind::Dense, rect(x, y), rect(x, y).cells() as u64))
    };
    let update = |n: u64, x: (u64, u64), y: (u64, u64)| Arc::new(described(n, FragmentKind::Sparse, rect(x, y), 10));
    // Overwrites and updates inside a base, and slabs that continue it; the last update reaches out.
    let mut fragments = vec![dense(1, (0, 99), (0, 99))];
    fragments.extend((2..20).map(|n| dense(n, (n, n + 5), (n * 2, n * 2 + 3))));
    fragments.extend((20..30).map(|n| update(n, (n, n + 5), (0, 99))));
    fragments.push(update(30, (95, 140), (0, 99)));
    fragments.extend((4..9).map(|n| dense(n + 30, (n * 50, n * 50 + 49), (0, 99))));
    let all = merges(&fragments, Strategy::All, false);
    let boxes: Vec<_> = all.iter().map(|m| m.boxes.clone()).collect();
    assert_eq!(boxes, [vec![rect((0, 99), (0, 99))], vec![rect((200, 449), (0, 99))]]);
    assert_eq!((orders(&all[0]), orders(&all[1])), ((1..30).collect(), (34..39).collect()));
    // Little of it is written twice, so `tiered` and `updates` leave the base alone.
    assert!(merges(&fragments, Strategy::Tiered, false).iter().all(|m| m.boxes.is_empty()));
    fragments.insert(1, dense(1, (0, 50), (0, 20)));
    for strategy in [Strategy::Tiered, Strategy::Updates] {
        assert_eq!(merges(&fragments, strategy, false)[0].boxes, [rect((0, 99), (0, 99))]);
    }
    let there = merges(&fragments, Strategy::Box(rect((410, 410), (5, 5))), false);
    assert_eq!(there.iter().map(|m| m.boxes.len()).sum::<usize>(), 0, "one fragment touches the box");
    let there = merges(&fragments, Strategy::Box(rect((399, 400), (5, 5))), false);
    assert_eq!(there[0].boxes, [rect((350, 449), (0, 99))]);
}

#[test]
fn deleted_boxes_are_cut_out_of_dense_fragments() {
    let dense = |n: u64, x: (u64, u64), y: (u64, u64)| {
        Arc::new(described(n, FragmentKind::Dense, rect(x, y), rect(x, y).cells() as u64))
    };
    let gone = |n: u64, x: (u64, u64), y: (u64, u64)| Arc::new(described(n, FragmentKind::Deletion, rect(x, y), 0));
    let boxes = |found: &Plan| found.merges.iter().map(|m| m.boxes.clone()).collect::<Vec<_>>();
    let planned = |all: &[Arc<Description>], strategy| plan(&schema(false, false), all, &strategy, LIMITS).unwrap();
    // One fragment with a hole in its middle; few cells, so that `tiered` ignores it.
    let base = dense(1, (0, 99), (0, 99));
    let small = [base.clone(), gone(2, (40, 49), (40, 49))];
    assert!(planned(&small, Strategy::Tiered).merges.is_empty());
    let found = planned(&small, Strategy::All);
    let sides =
        vec![rect((0, 39), (0, 99)), rect((40, 49), (0, 39)), rect((40, 49), (50, 99)), rect((50, 99), (0, 99))];
    let sorted = |mut all: Vec<Subarray>| {
        all.sort_by_key(|b| (b.ranges()[0].lo, b.ranges()[1].lo));
        all
    };
    assert_eq!(sorted(found.merges[0].boxes.clone()), sides);
    assert_eq!(versions(&found.merges[0].retired), [2]);
    // Half of it, and all of it.
    assert_eq!(
        boxes(&planned(&[base.clone(), gone(2, (0, 49), (0, 99))], Strategy::Tiered)),
        [[rect((50, 99), (0, 99))]]
    );
    let all = planned(&[base.clone(), gone(2, (0, 200), (0, 99))], Strategy::Tiered);
    assert_eq!((boxes(&all), versions(&all.merges[0].retired)), (vec![vec![]], vec![2]));
    // Between two: data written since stays, data under the hole goes; an update in the hole keeps them apart.
    let slabs = [base.clone(), gone(2, (50, 149), (0, 99)), dense(3, (60, 199), (0, 99))];
    let found = planned(&slabs, Strategy::All);
    assert_eq!(sorted(found.merges[0].boxes.clone()), [rect((0, 49), (0, 99)), rect((60, 199), (0, 99))]);
    assert_eq!((orders(&found.merges[0]), versions(&found.merges[0].retired)), (vec![1, 3], vec![2]));
    let update = Arc::new(described(4, FragmentKind::Sparse, rect((52, 70), (0, 9)), 10));
    let with = [base, slabs[1].clone(), update, dense(5, (60, 199), (0, 99))];
    assert!(planned(&with, Strategy::All).merges.iter().all(|m| m.inputs.len() == 1));
}

/// A fragment with its cells: values by cell and attribute, identified by the writer's number alone.
#[derive(Debug, Clone)]
struct Held {
    description: Arc<Description>,
    cells: BTreeMap<(u64, u64), Vec<(u32, u64)>>,
}

type Reading = BTreeMap<((u64, u64), u32), u64>;

/// The cells that a reader finds, and whether two fragments of one order have a cell in common.
fn read(held: &[Held]) -> (Reading, bool) {
    let mut sorted: Vec<&Held> = held.iter().collect();
    sorted.sort_by_key(|h| h.description.order);
    let (mut found, mut from, mut tied) = (Reading::new(), BTreeMap::new(), false);
    for h in sorted {
        for (cell, values) in &h.cells {
            if is_clear(h.description.kind) {
                found.retain(|(at, _), _| at != cell);
            }
            for (attr, value) in values {
                tied |= from.insert((*cell, *attr), h.description.order) == Some(h.description.order);
                found.insert((*cell, *attr), *value);
            }
        }
    }
    (found, tied)
}

/// Applies a plan to the model. A dense result has a deleted cell only as null, or under tombstones that are left over
/// it.
fn done(mut held: Vec<Held>, plan: &Plan, nullable: bool) -> Vec<Held> {
    for merge in &plan.merges {
        let of = |d: &Arc<Description>| held.iter().find(|h| h.description.id == d.id).unwrap().clone();
        let sources: Vec<Held> = merge.inputs.iter().chain(&merge.applied).map(of).collect();
        let (found, _) = read(&sources);
        let mut cells: BTreeMap<(u64, u64), Vec<(u32, u64)>> = BTreeMap::new();
        found.iter().for_each(|((cell, attr), value)| cells.entry(*cell).or_default().push((*attr, *value)));
        let mut left: BTreeMap<(u64, u64), Vec<(u32, u64)>> = BTreeMap::new();
        for bounds in &merge.boxes {
            let attrs = merge.inputs.iter().map(|d| &d.attrs).max_by_key(|a| a.len()).unwrap();
            for (x, y) in (bounds.ranges()[0].lo..=bounds.ranges()[0].hi)
                .flat_map(|x| (bounds.ranges()[1].lo..=bounds.ranges()[1].hi).map(move |y| (x, y)))
            {
                let there = cells.get(&(x, y)).map_or(0, Vec::len);
                if !nullable && there != attrs.len() {
                    let deletes = merge.applied.iter().any(|d| d.kind == FragmentKind::Tombstones);
                    assert!(there == 0 && deletes, "an unwritten cell in a dense result");
                    left.insert((x, y), Vec::new());
                }
            }
        }
        if !merge.is_of_cells() {
            let inside = |cell: &(u64, u64)| merge.boxes.iter().any(|b| b.contains([cell.0, cell.1]));
            assert!(cells.keys().all(inside), "a cell is lost");
        }
        let mut made = Description::clone(&merge.inputs[0]);
        made.order = merge.order();
        made.kind = if merge.is_of_cells() { FragmentKind::Sparse } else { FragmentKind::Dense };
        if merge.is_of_tombstones() {
            made.kind = FragmentKind::Tombstones;
            cells = sources.iter().flat_map(|h| h.cells.clone()).collect();
        }
        made.id.0[15] = 1;
        let mut over = Description { kind: FragmentKind::Tombstones, order: made.order.leftover(), ..made.clone() };
        over.id.0[15] = 2;
        let gone: HashSet<Id> = merge.inputs.iter().chain(&merge.retired).map(|d| d.id).collect();
        held.retain(|h| !gone.contains(&h.description.id));
        held.push(Held { description: Arc::new(made), cells });
        held.push(Held { description: Arc::new(over), cells: left });
    }
    let swept: HashSet<Id> = plan.swept.iter().map(|d| d.id).collect();
    held.retain(|h| !swept.contains(&h.description.id));
    held
}

/// The random properties of a fragment: kind, corner, extents, attributes, a mask of cells, size.
type Drawn = (u8, (u64, u64), (u64, u64), u8, u64, u64);

/// `together`: the number of them in each commit.
fn held(drawn: &[Drawn], sparse: bool, together: u64) -> Vec<Held> {
    let mut all = Vec::new();
    for (number, (kind, (x, y), (w, h), attrs, mask, len)) in (1u64..).zip(drawn) {
        let kind = match kind {
            0..=3 if !sparse => FragmentKind::Dense,
            4 => FragmentKind::Tombstones,
            5 => FragmentKind::Deletion,
            _ => FragmentKind::Sparse,
        };
        let area = rect((*x, x + w), (*y, y + h));
        let attrs: Vec<u32> =
            if sparse { vec![0, 1] } else { [vec![0], vec![1], vec![0, 1], vec![0, 1]][*attrs as usize].clone() };
        let places = (*x..=x + w).flat_map(|x| (*y..=y + h).map(move |y| (x, y)));
        let whole = matches!(kind, FragmentKind::Dense | FragmentKind::Deletion);
        let places = places.enumerate().filter(|(n, _)| whole || mask >> (n % 64) & 1 == 1);
        let places: Vec<_> = places.map(|(_, cell)| cell).collect();
        if places.is_empty() {
            continue;
        }
        let values = if is_clear(kind) { Vec::new() } else { attrs.iter().map(|a| (*a, number)).collect() };
        let mut description = described(number, kind, area, *len);
        description.order = FragmentOrder { version: number / together, index: (number % together) as u32 };
        if !is_clear(kind) {
            description.attrs = attrs;
        }
        let cells = places.into_iter().map(|cell| (cell, values.clone())).collect();
        all.push(Held { description: Arc::new(description), cells });
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn reading_is_the_same_after_every_plan(
        drawn in proptest::collection::vec((0u8..8, (0u64..12, 0u64..6), (0u64..8, 0u64..4), 0u8..4, any::<u64>(), 1u64..4_000_000), 1..24),
        sparse in any::<bool>(), nullable in any::<bool>(), which in 0u8..5, pick in any::<u32>(), memory in 1_000u64..20_000_000, together in 1u64..6,
        (far, few) in (any::<u32>(), 0u8..3), (foreign, fewer) in (any::<u32>(), 0u8..4)) {
        let far = [0, far, far & far >> 7 & far >> 13][usize::from(few)];
        let foreign = [0, foreign, foreign & foreign >> 9, foreign & foreign >> 7 & foreign >> 13][usize::from(fewer)];
        let mut whole = held(&drawn, sparse, together);
        for (place, one) in whole.iter_mut().enumerate().filter(|(place, _)| far >> place & 1 == 1) {
            if one.description.kind != FragmentKind::Deletion {
                moved_far(one, 1 + place as u32);
            }
        }
        for (_, one) in whole.iter_mut().enumerate().filter(|(place, _)| foreign >> place & 1 == 1) {
            if !sparse && one.description.kind == FragmentKind::Dense {
                made_foreign(one);
            }
        }
        let schema = schema(sparse, nullable);
        let before = shown(&schema, &whole);
        prop_assert_eq!(read(&before).0, read(&whole).0, "something was not hidden");
        let fragments: Vec<_> = before.iter().map(|h| h.description.clone()).collect();
        let named = |d: &Description| match pick >> 31 { 0 => !is_clear(d.kind), _ => d.kind == FragmentKind::Tombstones };
        let some = |d: &(usize, &Arc<Description>)| named(d.1) && pick >> d.0 & 1 == 1;
        let strategy = match which {
            0 => Strategy::Tiered,
            1 => Strategy::Updates,
            2 => Strategy::Box(rect((u64::from(pick % 9), 10), (0, u64::from(pick % 5)))),
            3 => Strategy::Fragments(fragments.iter().enumerate().filter(some).map(|(_, d)| d.id).collect()),
            _ => Strategy::All,
        };
        let limits = PlanLimits { memory_bytes: memory, cell_bytes: 1 };
        let Ok(made) = plan(&schema, &fragments, &strategy, limits) else {
            prop_assert!(which == 3, "only what was named can be refused");
            return Ok(());
        };
        let is_far = |d: &Arc<Description>| matches!(d.location.file, FileRef::OnBase(..));
        let mut seen = HashSet::new();
        for merge in &made.merges {
            prop_assert!(!merge.inputs.iter().chain(&merge.applied).any(is_far), "a merge reads what lies on another base");
            prop_assert!(merge.inputs.iter().all(|d| seen.insert(d.id)), "an input twice");
            prop_assert!(!merge.is_of_cells() || merge.inputs.iter().map(|d| runs::weight(d, limits)).sum::<u64>() <= memory);
            let comes_home = merge.inputs.iter().any(|d| d.is_external());
            prop_assert!(!comes_home || which > 1, "an automatic merge copies a foreign file");
            prop_assert!(merge.inputs.len() > merge.boxes.len() || !merge.applied.is_empty() || comes_home);
        }
        let all_own = !fragments.iter().any(is_far);
        let left = fragments.iter().filter(|d| d.is_external() && !seen.contains(&d.id)).count();
        prop_assert!(which != 4 || !all_own || left == 0, "{left} foreign files are not brought home");
        let after = done(before.clone(), &made, nullable);
        let ((expected, _), (found, tied)) = (read(&before), read(&after));
        prop_assert!(!tied, "two fragments of one order share a cell");
        prop_assert_eq!(found, expected);
    }
}

/// The same on another base.
fn moved_far(held: &mut Held, base: u32) {
    let mut moved = Description::clone(&held.description);
    moved.location.file = FileRef::OnBase(base, moved.id);
    held.description = Arc::new(moved);
}

/// The same whose cells lie in a file of another format.
fn made_foreign(held: &mut Held) {
    let mut foreign = Description::clone(&held.description);
    foreign.extra.push(Part { bit: EXTERNAL_PART, bytes: vec![0; 12] });
    held.description = Arc::new(foreign);
}

#[test]
fn what_lies_elsewhere_is_under_no_tombstones_that_a_merge_leaves_of_its_commit() {
    // A dense box, the delete of one of its cells, and new values over that, on another base; all in one commit.
    let drawn: [Drawn; 3] =
        [(0, (9, 0), (1, 2), 0, 0, 1), (4, (6, 0), (3, 2), 0, 1 << 11, 1), (0, (3, 2), (6, 0), 0, 0, 1)];
    for together in [1, 4] {
        let mut whole = held(&drawn, false, together);
        moved_far(&mut whole[2], 7);
        let fragments: Vec<_> = whole.iter().map(|h| h.description.clone()).collect();
        for strategy in [Strategy::All, Strategy::Box(rect((0, 10), (0, 0)))] {
            let made = plan(&schema(false, false), &fragments, &strategy, LIMITS).unwrap();
            assert_eq!(made.merges.is_empty(), together == 4, "{strategy:?}");
            assert_eq!(read(&done(whole.clone(), &made, false)).0, read(&whole).0, "{strategy:?}");
        }
    }
}

/// The fragments that are not hidden; the hidden ones must be those that a check of every cell finds.
fn shown(schema: &Schema, whole: &[Held]) -> Vec<Held> {
    let fragments: Vec<_> = whole.iter().map(|h| h.description.clone()).collect();
    let gone: HashSet<Id> = hidden(schema, &fragments, &mut { usize::MAX }).iter().map(|d| d.id).collect();
    let hides = |by: &Description, cell: (u64, u64), attr: u32| match by.kind {
        FragmentKind::Dense => by.attrs.contains(&attr) && by.bounds.contains([cell.0, cell.1]),
        FragmentKind::Deletion => by.bounds.contains([cell.0, cell.1]),
        _ => false,
    };
    for d in &fragments {
        let (x, y) = (d.bounds.ranges()[0], d.bounds.ranges()[1]);
        let mut cells = (x.lo..=x.hi).flat_map(|x| (y.lo..=y.hi).map(move |y| (x, y)));
        let attrs = if is_clear(d.kind) { vec![0, 1] } else { d.attrs.clone() };
        let newer: Vec<_> = fragments.iter().filter(|by| by.order > d.order).collect();
        let is_hidden = cells.all(|cell| attrs.iter().all(|attr| newer.iter().any(|by| hides(by, cell, *attr))));
        assert_eq!(gone.contains(&d.id), is_hidden, "{d:?} under {newer:?}");
    }
    whole.iter().filter(|h| !gone.contains(&h.description.id)).cloned().collect()
}

#[test]
fn what_is_hidden_goes_with_its_masks_and_what_shows_through_stays() {
    let ids = |all: &[Arc<Description>], sparse| {
        hidden(&schema(sparse, false), all, &mut { usize::MAX }).iter().map(|d| d.order.version).collect::<Vec<_>>()
    };
    let dense = |n: u64, x: (u64, u64)| fragment(n, FragmentKind::Dense, x, 900);
    let deletion = |n, x| fragment(n, FragmentKind::Deletion, x, 0);
    let slabs: Vec<_> = (0..300u64).map(|n| dense(n + 2, (n * 10, n * 10 + 9))).collect();
    let mut all = vec![dense(1, (0, 2_999))];
    all.extend(slabs.clone());
    assert_eq!(ids(&all, false), [1], "slabs lie over the whole of it");
    all.remove(150);
    assert!(ids(&all, false).is_empty(), "a slab is missing");
    all.push(deletion(400, (1_400, 1_600)));
    let under = (142..=161).filter(|version| *version != 151);
    assert_eq!(ids(&all, false), [1].into_iter().chain(under).collect::<Vec<u64>>(), "a deletion lies in the gap");
    // With absent cells, as a later format may have them, it hides nothing; nor does it with one attribute of two.
    let some = |cells: u64, attrs: Vec<u32>| {
        let whole = Description::clone(&dense(2, (0, 9)));
        Arc::new(Description { cells, attrs, ..whole })
    };
    assert!(ids(&[dense(1, (0, 9)), some(99, vec![0, 1])], false).is_empty());
    assert!(ids(&[dense(1, (0, 9)), some(100, vec![1])], false).is_empty());
    assert_eq!(ids(&[dense(1, (0, 9)), some(100, vec![0, 1])], false), [1]);
    // As many as a record has room for.
    let heap: Vec<_> = (1..=9).map(|n| dense(n, (0, 9))).collect();
    let mut room = 3 * 200 + 199;
    assert_eq!((hidden(&schema(false, false), &heap, &mut room).len(), room), (3, 199));
    let mask = Description { over: Some(small(1).id), ..described(2, FragmentKind::Mask, rect((0, 9), (0, 9)), 5) };
    let other = Description { over: Some(small(3).id), ..described(4, FragmentKind::Mask, rect((0, 9), (0, 9)), 5) };
    let masked = [small(1), Arc::new(mask), small(3), Arc::new(other), deletion(5, (0, 9)), small(6)];
    assert_eq!(ids(&masked, true), [1, 3, 2, 4]);
    assert_eq!(ids(&masked[..4], true), [0; 0]);
    let later = [small(6), deletion(5, (0, 9)), deletion(7, (0, 8))];
    assert!(ids(&later, true).is_empty(), "a deletion of part of another one's box");
}

/// The steps of planning, per fragment.
fn steps(fragments: &[Arc<Description>], strategy: &Strategy, sparse: bool) -> u64 {
    STEPS.with(|steps| steps.set(0));
    let limits = PlanLimits { memory_bytes: 128 << 20, cell_bytes: 40 };
    let schema = schema(sparse, false);
    hidden(&schema, fragments, &mut { usize::MAX });
    plan(&schema, fragments, strategy, limits).unwrap();
    STEPS.with(|steps| steps.get()) / fragments.len() as u64
}

/// Whether the array is sparse, and its n-th fragment.
type Layout = (bool, Box<dyn Fn(u64) -> Description>);

/// Layouts: all fragments over each other, with tombstones; slabs; patches on a base; cells far apart; patches
/// overwritten in turn, one of them deleted once.
#[test]
fn choosing_among_a_hundred_thousand_is_near_linear() {
    let every =
        |count: u64, one: &dyn Fn(u64) -> Description| (1..=count).map(|n| Arc::new(one(n))).collect::<Vec<_>>();
    let kind = |n: u64| if n.is_multiple_of(10) { FragmentKind::Tombstones } else { FragmentKind::Sparse };
    let layouts: [Layout; 6] = [
        (true, Box::new(move |n| described(n, kind(n), rect((n % 7, 900_000 - n % 5), (0, 900_000)), 900))),
        (
            true,
            Box::new(move |n| {
                described(n, kind(n), rect((n * 7 % 900_000, n * 7 % 900_000 + 3), (n % 1_000, n % 1_000)), 900)
            }),
        ),
        (false, Box::new(|n| described(n, FragmentKind::Dense, rect((n * 9, n * 9 + 8), (0, 99)), 900))),
        (
            false,
            Box::new(|n| {
                let (x, y) = (n * 7_919 % 900_000, n * 104_729 % 900_000);
                let size = if n == 1 { 999_999 } else { 9 };
                let at = if n == 1 { (0, 0) } else { (x, y) };
                described(n, FragmentKind::Dense, rect((at.0, at.0 + size), (at.1, at.1 + size)), 900)
            }),
        ),
        (
            false,
            Box::new(|n| {
                let kind = [FragmentKind::Dense, FragmentKind::Sparse, FragmentKind::Tombstones][(n % 3) as usize];
                described(n, kind, rect((n % 50 * 1_000, n % 50 * 1_000 + 900), (0, 900)), 900)
            }),
        ),
        (
            false,
            Box::new(|n| {
                let kind = if n == 500 { FragmentKind::Deletion } else { FragmentKind::Dense };
                described(n, kind, rect((n % 499 * 1_000, n % 499 * 1_000 + 900), (0, 900)), 900)
            }),
        ),
    ];
    let sub = Strategy::Box(rect((0, 50_000), (0, 50_000)));
    for (number, (sparse, one)) in layouts.iter().enumerate() {
        for strategy in [Strategy::Tiered, Strategy::All, Strategy::Updates, sub.clone()] {
            let most = if strategy == Strategy::Tiered && number == 0 { 100_000 } else { 10_000 };
            let (few, many) = (every(most / 10, one.as_ref()), every(most, one.as_ref()));
            let (a, b) = (steps(&few, &strategy, *sparse), steps(&many, &strategy, *sparse));
            assert!(
                b < 3 * a + 100,
                "layout {number}, {strategy:?}: {a} steps per fragment, {b} with ten times as many"
            );
        }
    }
}
