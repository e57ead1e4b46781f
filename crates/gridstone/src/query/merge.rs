//! The k-way merge of sorted sources: newest order wins per cell.
//!
//! Sources stand in a heap by the key of their first unread cell. Cells of the first source that lie below every other
//! source's head are taken as one stretch, found by galloping, so that only places held by several sources are looked
//! at cell by cell. In an array with duplicates all cells of a place survive, except those older than a tombstone.

use super::run::{Chunk, Queue, Segment};
use crate::fragment::FragmentOrder;
use crate::tile::CellKeys;
use std::cmp::Ordering;
use std::sync::Arc;

/// Where a merge stops: before the cell `row` of `keys`.
pub(super) struct Frontier<'a> {
    pub(super) keys: &'a CellKeys,
    pub(super) row: usize,
}

/// Merges what lies before `frontier` (`None`: everything); gives live cells in ascending global order, ties of
/// duplicates in order of writing, and how many cells took part in ties.
pub(super) fn merge(queues: &mut [Queue], frontier: Option<&Frontier<'_>>, duplicates: bool) -> (Vec<Segment>, u64) {
    let mut heap = Heap::new(queues);
    let mut out = Output { segments: Vec::new() };
    let mut tied = 0;
    while let Some(first) = heap.first() {
        let Some((chunk, from)) = queues.get(first).and_then(Queue::head).map(|(c, r)| (c.clone(), r)) else { break };
        let mut end = match frontier {
            Some(f) => chunk.keys.lower_bound(from, f.keys, f.row),
            None => chunk.len(),
        };
        if end == from {
            break;
        }
        if let Some((other, row)) = heap.second(queues) {
            end = end.min(chunk.keys.lower_bound(from, &other.keys, row));
        }
        if end > from {
            out.take_stretch(&chunk, from, end);
            advance(queues, first, end);
            heap.sift_first(queues);
        } else {
            tied += resolve_tie(queues, &mut heap, &mut out, duplicates);
        }
    }
    (out.segments, tied)
}

fn advance(queues: &mut [Queue], queue: usize, row: usize) {
    if let Some(queue) = queues.get_mut(queue) {
        queue.advance_to(row);
    }
}

/// Takes all cells at the place of the first head from every source and keeps the ones that live.
fn resolve_tie(queues: &mut [Queue], heap: &mut Heap, out: &mut Output, duplicates: bool) -> u64 {
    let Some((place, place_row)) = heap.first().and_then(|q| queues.get(q)?.head()).map(|(c, r)| (c.clone(), r)) else {
        return 0;
    };
    let mut group: Vec<(FragmentOrder, Arc<Chunk>, usize)> = Vec::new();
    while let Some(first) = heap.first() {
        let Some((chunk, row)) = queues.get(first).and_then(Queue::head).map(|(c, r)| (c.clone(), r)) else { break };
        if chunk.keys.compare(row, &place.keys, place_row) != Ordering::Equal {
            break;
        }
        group.push((chunk.order(row), chunk, row));
        advance(queues, first, row + 1);
        heap.sift_first(queues);
    }
    let tied = group.len() as u64;
    let deleted = group.iter().filter(|(_, c, row)| c.is_tombstone(*row)).map(|(order, ..)| *order).max();
    group.retain(|(order, chunk, row)| !chunk.is_tombstone(*row) && deleted.is_none_or(|d| *order > d));
    // Stable: cells of one fragment came from one queue, in order of writing; rows count within a chunk only.
    group.sort_by_key(|(order, ..)| *order);
    let skip = if duplicates { 0 } else { group.len().saturating_sub(1) };
    for (_, chunk, row) in group.into_iter().skip(skip) {
        out.push(&chunk, row, row + 1);
    }
    tied
}

struct Output {
    segments: Vec<Segment>,
}

impl Output {
    /// A stretch that no other source reaches into: tombstones in it delete nothing any more and are dropped.
    fn take_stretch(&mut self, chunk: &Arc<Chunk>, from: usize, to: usize) {
        let mut start = from;
        for row in if chunk.is_all_cells() { to..to } else { from..to } {
            if chunk.is_tombstone(row) {
                self.push(chunk, start, row);
                start = row + 1;
            }
        }
        self.push(chunk, start, to);
    }

    fn push(&mut self, chunk: &Arc<Chunk>, from: usize, to: usize) {
        if from >= to {
            return;
        }
        match self.segments.last_mut() {
            Some(last) if Arc::ptr_eq(&last.chunk, chunk) && last.to == from => last.to = to,
            _ => self.segments.push(Segment { chunk: chunk.clone(), from, to }),
        }
    }
}

/// A binary heap of source numbers by the key of their head.
struct Heap {
    sources: Vec<usize>,
}

impl Heap {
    fn new(queues: &[Queue]) -> Self {
        let sources = (0..queues.len()).filter(|q| queues.get(*q).is_some_and(|q| q.head().is_some())).collect();
        let mut heap = Self { sources };
        for place in (0..heap.sources.len() / 2).rev() {
            heap.sift(queues, place);
        }
        heap
    }

    fn first(&self) -> Option<usize> {
        self.sources.first().copied()
    }

    /// The least head besides the first: one of the root's two children.
    fn second<'q>(&self, queues: &'q [Queue]) -> Option<(&'q Arc<Chunk>, usize)> {
        let place = match (self.sources.get(1), self.sources.get(2)) {
            (Some(_), Some(_)) if self.less(queues, 2, 1) => 2,
            (Some(_), _) => 1,
            (None, _) => return None,
        };
        queues.get(*self.sources.get(place)?)?.head()
    }

    fn less(&self, queues: &[Queue], a: usize, b: usize) -> bool {
        let head = |place: usize| self.sources.get(place).and_then(|q| queues.get(*q)?.head());
        match (head(a), head(b)) {
            (Some((x, i)), Some((y, j))) => x.keys.compare(i, &y.keys, j) == Ordering::Less,
            (found, _) => found.is_some(),
        }
    }

    /// Puts the first source where it belongs after it was read from.
    fn sift_first(&mut self, queues: &[Queue]) {
        let exhausted = self.first().is_some_and(|q| queues.get(q).is_none_or(|q| q.head().is_none()));
        if exhausted {
            self.sources.swap_remove(0);
        }
        self.sift(queues, 0);
    }

    fn sift(&mut self, queues: &[Queue], mut place: usize) {
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let mut least = place;
            if left < self.sources.len() && self.less(queues, left, least) {
                least = left;
            }
            if right < self.sources.len() && self.less(queues, right, least) {
                least = right;
            }
            if least == place {
                return;
            }
            self.sources.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::Standing;
    use super::*;
    use crate::fragment::FragmentKind;

    /// Chunks of one fragment with these keys, told apart by the coordinate `mark`.
    fn queue(version: u64, chunks: &[&[(u64, u64)]]) -> Queue {
        let mut queue = Queue::default();
        for cells in chunks {
            queue.push(Chunk {
                keys: CellKeys::Narrow(cells.iter().map(|(key, _)| *key).collect()),
                coords: vec![cells.iter().map(|(_, mark)| *mark).collect()],
                columns: Vec::new(),
                standing: Standing::Fragment(FragmentOrder { version, index: 0 }, FragmentKind::Sparse),
                sifted: None,
            });
        }
        queue
    }

    fn marks(queues: &mut [Queue], duplicates: bool) -> Vec<u64> {
        let (segments, _) = merge(queues, None, duplicates);
        segments.iter().flat_map(|s| s.chunk.coords[0][s.from..s.to].to_vec()).collect()
    }

    #[test]
    fn duplicates_keep_their_order_across_chunks() {
        let queues = || {
            [queue(2, &[&[(7, 20)], &[(9, 30)]]), queue(1, &[&[(5, 1), (7, 2)], &[(7, 3), (7, 4)], &[(7, 5), (8, 6)]])]
        };
        assert_eq!(marks(&mut queues(), true), [1, 2, 3, 4, 5, 20, 6, 30]);
        assert_eq!(marks(&mut queues(), false), [1, 20, 6, 30]);
    }
}
