//! The k-way merge of sorted sources: newest order wins per cell.
//!
//! Sources stand in a heap by the key of their first unread cell, which stands there with them: what is compared lies close
//! together. Cells of the first source that lie below every other source's head are taken as one stretch, found by galloping,
//! so that only places held by several sources are looked at cell by cell. In an array with duplicates all cells of a place
//! survive, except those older than a tombstone.

use super::chunk::{Chunk, Queue};
use super::merged_rows::{Run, Stretches};
use crate::fragment::FragmentOrder;
use crate::tile::{CellKeys, TiedKeys};
use std::sync::Arc;

/// Where a merge stops: before the cell `row` of `keys`.
pub(in crate::query) struct Frontier<'a> {
    pub(in crate::query) keys: &'a CellKeys,
    pub(in crate::query) row: usize,
}

/// Merges what lies before `frontier` (`None`: everything); gives live cells in ascending global order, ties of
/// duplicates in order of writing, and how many cells took part in ties.
pub(in crate::query) fn merge(
    queues: &mut [Queue],
    frontier: Option<&Frontier<'_>>,
    duplicates: bool,
) -> (Stretches, u64) {
    let chunks: Vec<Arc<Chunk>> = queues.iter().flat_map(Queue::chunks).cloned().collect();
    let mut out = Output { chunks: &chunks, runs: Vec::new() };
    // Who stands alone has no keys.
    let alone = queues.len() == 1 && frontier.is_none();
    let (tied, read) = match chunks.first().map(|chunk| &chunk.keys) {
        None => (0, Vec::new()),
        Some(_) if alone => (0, out.take_all(queues.first().map_or(0, Queue::next_row))),
        Some(CellKeys::Narrow(_)) => Merge::<&[u64]>::new(queues, frontier, duplicates).run(&mut out),
        Some(CellKeys::Wide(_)) => Merge::<&[u128]>::new(queues, frontier, duplicates).run(&mut out),
        Some(CellKeys::Long { .. }) => Merge::<Words<'_>>::new(queues, frontier, duplicates).run(&mut out),
        Some(CellKeys::TiedNarrow(_)) => Merge::<&TiedKeys<u64>>::new(queues, frontier, duplicates).run(&mut out),
        Some(CellKeys::TiedWide(_)) => Merge::<&TiedKeys<u128>>::new(queues, frontier, duplicates).run(&mut out),
    };
    let runs = out.runs;
    for (queue, read) in queues.iter_mut().zip(read) {
        queue.advance(read);
    }
    (Stretches::new(chunks, runs), tied)
}

/// The keys of a chunk, ascending.
trait KeyRun<'a>: Copy {
    type Key: Copy + Ord;

    /// The keys, if they are of this kind.
    fn of(keys: &'a CellKeys) -> Option<Self>;

    /// The key of a row; `None` past the end.
    fn key(self, row: usize) -> Option<Self::Key>;
}

impl<'a> KeyRun<'a> for &'a [u64] {
    type Key = u64;

    fn of(keys: &'a CellKeys) -> Option<Self> {
        if let CellKeys::Narrow(keys) = keys { Some(keys) } else { None }
    }

    fn key(self, row: usize) -> Option<u64> {
        self.get(row).copied()
    }
}

impl<'a> KeyRun<'a> for &'a [u128] {
    type Key = u128;

    fn of(keys: &'a CellKeys) -> Option<Self> {
        if let CellKeys::Wide(keys) = keys { Some(keys) } else { None }
    }

    fn key(self, row: usize) -> Option<u128> {
        self.get(row).copied()
    }
}

/// Keys of some words each.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    words: usize,
    data: &'a [u64],
}

impl<'a> KeyRun<'a> for Words<'a> {
    type Key = &'a [u64];

    fn of(keys: &'a CellKeys) -> Option<Self> {
        if let CellKeys::Long { words, data } = keys { Some(Self { words: *words, data }) } else { None }
    }

    fn key(self, row: usize) -> Option<&'a [u64]> {
        self.data.get(row * self.words..(row + 1) * self.words)
    }
}

/// Equal words may be of different cells: the coordinates behind them are compared.
impl<'a> KeyRun<'a> for &'a TiedKeys<u64> {
    type Key = (u64, &'a [u64]);

    fn of(keys: &'a CellKeys) -> Option<Self> {
        if let CellKeys::TiedNarrow(keys) = keys { Some(keys) } else { None }
    }

    fn key(self, row: usize) -> Option<Self::Key> {
        TiedKeys::key(self, row)
    }
}

impl<'a> KeyRun<'a> for &'a TiedKeys<u128> {
    type Key = (u128, &'a [u64]);

    fn of(keys: &'a CellKeys) -> Option<Self> {
        if let CellKeys::TiedWide(keys) = keys { Some(keys) } else { None }
    }

    fn key(self, row: usize) -> Option<Self::Key> {
        TiedKeys::key(self, row)
    }
}

/// The chunks of one source, their numbers among all, and how far it is read.
struct Source<R> {
    chunks: Vec<(R, u32)>,
    at: usize,
    row: usize,
}

impl<'a, R: KeyRun<'a>> Source<R> {
    fn key(&self) -> Option<R::Key> {
        self.chunks.get(self.at).and_then(|(keys, _)| keys.key(self.row))
    }

    /// Marks the rows of the present chunk before `row` as read.
    fn advance_to(&mut self, row: usize) {
        self.row = row;
        if self.chunks.get(self.at).is_some_and(|(keys, _)| keys.key(row).is_none()) {
            (self.at, self.row) = (self.at + 1, 0);
        }
    }
}

/// A merge under way.
struct Merge<'a, R: KeyRun<'a>> {
    sources: Vec<Source<R>>,
    heap: Heap<R::Key>,
    frontier: Option<R::Key>,
    duplicates: bool,
}

impl<'a, R: KeyRun<'a>> Merge<'a, R> {
    fn new(queues: &'a [Queue], frontier: Option<&Frontier<'a>>, duplicates: bool) -> Self {
        let mut numbers = 0u32..;
        let mut source = |queue: &'a Queue| {
            let chunks = queue.chunks().zip(&mut numbers).filter_map(|(chunk, n)| Some((R::of(&chunk.keys)?, n)));
            Source { chunks: chunks.collect(), at: 0, row: queue.next_row() }
        };
        let mut sources = Vec::with_capacity(queues.len());
        for queue in queues {
            sources.push(source(queue));
        }
        let heads = sources.iter().zip(0u32..).filter_map(|(source, n)| Some((source.key()?, n)));
        let heap = Heap::new(heads.collect());
        let frontier = frontier.and_then(|f| R::of(f.keys)?.key(f.row));
        Self { sources, heap, frontier, duplicates }
    }

    /// Merges; gives how many cells took part in ties, and how many whole chunks of each queue were read, with the rows
    /// of the next.
    fn run(mut self, out: &mut Output<'_>) -> (u64, Vec<(usize, usize)>) {
        let (mut tied, mut group) = (0, Vec::new());
        while let Some((key, first)) = self.heap.first() {
            if self.frontier.is_some_and(|f| key >= f) {
                break;
            }
            let second = self.heap.second();
            if second == Some(key) {
                tied += self.resolve_tie(key, &mut group, out);
                continue;
            }
            let limit = match (second, self.frontier) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            let Some(source) = self.sources.get_mut(first as usize) else { break };
            let Some((keys, chunk)) = source.chunks.get(source.at).copied() else { break };
            let end = end_below(keys, source.row + 1, limit);
            out.take_stretch(chunk, source.row, end);
            source.advance_to(end);
            self.heap.replace_first(source.key());
        }
        (tied, self.sources.iter().map(|s| (s.at, s.row)).collect())
    }

    /// Takes all cells at `place` from every source and keeps the ones that live.
    fn resolve_tie(&mut self, place: R::Key, group: &mut Vec<Tied>, out: &mut Output<'_>) -> u64 {
        group.clear();
        while let Some((key, first)) = self.heap.first() {
            let source = self.sources.get_mut(first as usize).filter(|_| key == place);
            let Some(source) = source else { break };
            let Some((_, number)) = source.chunks.get(source.at).copied() else { break };
            let Some(chunk) = out.chunks.get(number as usize) else { break };
            let (order, deletes) = (chunk.order(source.row), chunk.is_tombstone(source.row));
            group.push(Tied { order, deletes, chunk: number, row: source.row });
            source.advance_to(source.row + 1);
            self.heap.replace_first(source.key());
        }
        let tied = group.len() as u64;
        let deleted = group.iter().filter(|cell| cell.deletes).map(|cell| cell.order).max();
        group.retain(|cell| !cell.deletes && deleted.is_none_or(|d| cell.order > d));
        // Stable: cells of one fragment came from one queue, in order of writing; rows count within a chunk only.
        group.sort_by_key(|cell| cell.order);
        let skip = if self.duplicates { 0 } else { group.len().saturating_sub(1) };
        for cell in group.iter().skip(skip) {
            out.push(cell.chunk, cell.row, cell.row + 1);
        }
        tied
    }
}

/// A cell at a place that several sources hold.
struct Tied {
    order: FragmentOrder,
    deletes: bool,
    chunk: u32,
    row: usize,
}

/// The first row from `from` on whose key is not below `limit` (`None`: the end). Gallops, so that a short stretch is found
/// in few steps.
fn end_below<'a, R: KeyRun<'a>>(keys: R, from: usize, limit: Option<R::Key>) -> usize {
    let below = |row: usize| keys.key(row).is_some_and(|key| limit.is_none_or(|limit| key < limit));
    let (mut lo, mut step) = (from, 1);
    while below(lo + step - 1) {
        lo += step;
        step *= 2;
    }
    // All rows before `lo` are below it, the row `lo + step - 1` is not.
    let mut hi = lo + step - 1;
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if below(mid) { lo = mid + 1 } else { hi = mid }
    }
    lo
}

struct Output<'c> {
    chunks: &'c [Arc<Chunk>],
    runs: Vec<Run>,
}

impl Output<'_> {
    /// A stretch that no other source reaches into: tombstones in it delete nothing any more and are dropped.
    fn take_stretch(&mut self, number: u32, from: usize, to: usize) {
        let Some(chunk) = self.chunks.get(number as usize).filter(|chunk| !chunk.is_all_cells()) else {
            return self.push(number, from, to);
        };
        let mut start = from;
        for row in from..to {
            if chunk.is_tombstone(row) {
                self.push(number, start, row);
                start = row + 1;
            }
        }
        self.push(number, start, to);
    }

    /// All chunks, of one source; gives that they were read.
    fn take_all(&mut self, first_row: usize) -> Vec<(usize, usize)> {
        let mut from = first_row;
        for (chunk, number) in self.chunks.iter().zip(0u32..) {
            self.take_stretch(number, from, chunk.len());
            from = 0;
        }
        vec![(self.chunks.len(), 0)]
    }

    fn push(&mut self, chunk: u32, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let (from, to) = (from as u32, to as u32);
        match self.runs.last_mut() {
            Some(last) if last.chunk == chunk && last.to == from => last.to = to,
            _ => self.runs.push(Run { chunk, from, to }),
        }
    }
}

/// A binary heap of keys, each with the number of its source.
struct Heap<K> {
    heads: Vec<(K, u32)>,
}

impl<K: Copy + Ord> Heap<K> {
    fn new(mut heads: Vec<(K, u32)>) -> Self {
        // What ascends is a heap.
        heads.sort_unstable_by_key(|head| head.0);
        Self { heads }
    }

    fn first(&self) -> Option<(K, u32)> {
        self.heads.first().copied()
    }

    /// The least key besides the first: of one of the root's two children.
    fn second(&self) -> Option<K> {
        match (self.heads.get(1), self.heads.get(2)) {
            (Some(a), Some(b)) => Some(a.0.min(b.0)),
            (a, _) => a.map(|a| a.0),
        }
    }

    /// Gives the first source its next key, `None` if it has none, and puts it where it belongs.
    fn replace_first(&mut self, key: Option<K>) {
        let Some(number) = self.heads.first().map(|head| head.1) else { return };
        let head = match key {
            Some(key) => (key, number),
            None => match self.heads.pop() {
                Some(last) if !self.heads.is_empty() => last,
                _ => return,
            },
        };
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            let least = match (self.heads.get(left), self.heads.get(left + 1)) {
                (Some(a), Some(b)) if b.0 < a.0 => left + 1,
                (Some(_), _) => left,
                (None, _) => break,
            };
            let Some(child) = self.heads.get(least).copied().filter(|child| child.0 < head.0) else { break };
            if let Some(slot) = self.heads.get_mut(place) {
                *slot = child;
            }
            place = least;
        }
        if let Some(slot) = self.heads.get_mut(place) {
            *slot = head;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::Precedence;
    use super::*;
    use crate::fragment::FragmentKind;
    use crate::schema::Schema;
    use crate::tile::KeyLayout;

    /// Chunks of one fragment with these keys, told apart by the coordinate `mark`.
    fn queue(version: u64, chunks: &[&[(u64, u64)]]) -> Queue {
        let mut queue = Queue::default();
        for cells in chunks {
            queue.push(Chunk {
                keys: CellKeys::Narrow(cells.iter().map(|(key, _)| *key).collect()),
                coords: vec![cells.iter().map(|(_, mark)| *mark).collect()],
                columns: Vec::new(),
                standing: Precedence::Fragment(FragmentOrder { version, index: 0 }, FragmentKind::Sparse),
                sifted: None,
            });
        }
        queue
    }

    fn marks(queues: &mut [Queue], duplicates: bool) -> Vec<u64> {
        merge(queues, None, duplicates).0.coordinate_keys(1).remove(0)
    }

    #[test]
    fn duplicates_keep_their_order_across_chunks() {
        let queues = || {
            [queue(2, &[&[(7, 20)], &[(9, 30)]]), queue(1, &[&[(5, 1), (7, 2)], &[(7, 3), (7, 4)], &[(7, 5), (8, 6)]])]
        };
        assert_eq!(marks(&mut queues(), true), [1, 2, 3, 4, 5, 20, 6, 30]);
        assert_eq!(marks(&mut queues(), false), [1, 20, 6, 30]);
    }

    /// Cells whose words are all the same: what deletes or replaces one leaves the others, and a frontier cuts between them.
    #[test]
    fn equal_words_are_not_equal_cells() {
        let schema = Schema::from_stored_json(
            r#"{"sparse":true,"cell_order":"hilbert","dims":[{"name":"x","dtype":"uint8","domain":["0","99"]}],
            "attrs":[{"name":"v","dtype":"int8"}],"frame":{"by":"key","bits":0,"sides":[["0","9"]]}}"#,
        );
        let layout = KeyLayout::new(&schema.unwrap());
        let queue = |version: u64, kind: FragmentKind, coords: &[u64]| {
            let (keys, standing) =
                (layout.keys(&[coords]), Precedence::Fragment(FragmentOrder { version, index: 0 }, kind));
            assert!(coords.iter().all(|x| layout.key(|_| *x) == Some(0)) && layout.is_tied());
            let mut queue = Queue::default();
            queue.push(Chunk { keys, coords: vec![coords.to_vec()], columns: Vec::new(), standing, sifted: None });
            queue
        };
        let queues = || {
            let deleted = queue(2, FragmentKind::Tombstones, &[2, 3, 8]);
            [queue(1, FragmentKind::Sparse, &[1, 2, 5, 8, 9]), deleted, queue(3, FragmentKind::Sparse, &[2, 4, 9])]
        };
        assert_eq!(marks(&mut queues(), true), [1, 2, 4, 5, 9, 9]);
        assert_eq!(marks(&mut queues(), false), [1, 2, 4, 5, 9]);
        let (firsts, mut queues) = (layout.keys(&[&[4, 5]]), queues());
        for (row, before) in [(0, &[1, 2][..]), (1, &[4]), (1, &[])] {
            let frontier = Frontier { keys: &firsts, row };
            assert_eq!(merge(&mut queues, Some(&frontier), false).0.coordinate_keys(1).concat(), before);
        }
        assert_eq!(marks(&mut queues, false), [5, 9]);
    }
}
