//! A hash table of groups: the words of a key, and the number of its group, in the order in which keys came first.
//!
//! ```text
//! slots   [ 0 | 3 | 0 | 1 | 2 | 0 | 0 | 0 ]      group + 1, or 0; open addressing, a power of two, at most half full
//! words   [ k0 k1 | k0 k1 | k0 k1 ]              the keys of groups 0, 1, 2, side by side
//! ```

use crate::base::{Cancel, Result};
use std::convert::Infallible;
use std::result;

/// Groups at which a table begins to be sized for.
const SLOTS_MIN: usize = 64;
/// A table of so many groups grows before rows are taken in, not between two of them: then it can be stopped.
const LARGE_GROUPS: usize = if cfg!(test) { 1 << 8 } else { 1 << 19 };

/// A table of keys of so many words each.
#[derive(Debug, Clone)]
pub(super) struct GroupTable {
    width: usize,
    words: Vec<u64>,
    slots: Vec<u32>,
    groups: usize,
}

/// Mixes the words of a key (folded multiplication, as in wyhash).
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| folded(hash ^ word, 0xa076_1d64_78bd_642f))
}

fn folded(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl GroupTable {
    /// An empty table of keys of `width` words. Without words there is one group.
    pub(super) fn new(width: usize) -> Self {
        let groups = usize::from(width == 0);
        Self { width, words: Vec::new(), slots: vec![0; SLOTS_MIN], groups }
    }

    /// How many words a key has.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.groups
    }

    /// The words of a group.
    pub(super) fn key(&self, group: usize) -> &[u64] {
        self.words.get(group * self.width..(group + 1) * self.width).unwrap_or_default()
    }

    /// Bytes that it takes.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.words.capacity() * 8 + self.slots.capacity() * 4) as u64
    }

    /// The group of one key, which is made where it is new.
    pub(super) fn group_of(&mut self, key: &[u64]) -> u32 {
        let mut found = Vec::with_capacity(1);
        self.groups_of(key, 1, &mut found);
        found.first().copied().unwrap_or(0)
    }

    /// Appends the groups of `rows` keys, whose words lie side by side; those that are new are made.
    pub(super) fn groups_of(&mut self, keys: &[u64], rows: usize, out: &mut Vec<u32>) {
        out.reserve(rows);
        match self.width {
            0 => out.extend(std::iter::repeat_n(0, rows)),
            1 => self.find::<1>(keys, out),
            2 => self.find::<2>(keys, out),
            3 => self.find::<3>(keys, out),
            width => {
                for key in keys.chunks_exact(width) {
                    let group = self.probe(hash(key), |held| held == key, key);
                    out.push(group);
                }
            }
        }
    }

    fn find<const W: usize>(&mut self, keys: &[u64], out: &mut Vec<u32>) {
        let mut last: Option<(&[u64; W], u32)> = None;
        for key in keys.as_chunks::<W>().0 {
            // Neighbours are often of one group, as cells are sorted.
            let group = match last {
                Some((before, group)) if before == key => group,
                _ => self.probe(hash(key), |held| held == key, key),
            };
            last = Some((key, group));
            out.push(group);
        }
    }

    fn probe(&mut self, hash: u64, is_same: impl Fn(&[u64]) -> bool, key: &[u64]) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            match self.slots.get(at).copied().unwrap_or(0).checked_sub(1) {
                None => return self.add(at, key),
                Some(group) if is_same(self.key(group as usize)) => return group,
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// Adds a group whose key is new, without a slot: it is not found before [`GroupTable::index`].
    pub(super) fn push(&mut self, key: &[u64]) -> u32 {
        let group = self.groups as u32;
        self.groups += 1;
        self.words.extend_from_slice(key);
        group
    }

    /// Gives each group its slot.
    pub(super) fn index(&mut self) {
        self.refill((self.groups * 4).next_power_of_two().max(SLOTS_MIN));
    }

    /// Grows a large table that an eighth more groups would have grow.
    ///
    /// # Errors
    /// Cancelled: it is as it was.
    pub(super) fn make_room(&mut self, cancel: &dyn Cancel) -> Result<()> {
        let is_roomy = (self.groups + self.groups / 8) * 2 <= self.slots.len();
        if self.groups >= LARGE_GROUPS && !is_roomy {
            self.slots = self.filled(self.slots.len() * 4, || cancel.check())?;
        }
        Ok(())
    }

    fn add(&mut self, slot: usize, key: &[u64]) -> u32 {
        let group = self.push(key);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = group + 1;
        }
        if self.groups * 2 > self.slots.len() {
            self.refill(self.slots.len() * 4);
        }
        group
    }

    /// Takes so many slots, a power of two, and fills them.
    fn refill(&mut self, count: usize) {
        let Ok(slots) = self.filled::<Infallible>(count, || Ok(()));
        self.slots = slots;
    }

    /// So many slots, a power of two, with all groups; `look` is asked now and then whether to go on.
    fn filled<E>(&self, count: usize, look: impl Fn() -> result::Result<(), E>) -> result::Result<Vec<u32>, E> {
        let mask = count - 1;
        let mut slots = vec![0u32; count];
        for (group, key) in (0u32..).zip(self.words.chunks_exact(self.width.max(1))) {
            if (group as usize).is_multiple_of(LARGE_GROUPS) {
                look()?;
            }
            let mut at = (hash(key) >> 32) as usize & mask;
            while slots.get(at).is_some_and(|held| *held != 0) {
                at = (at + 1) & mask;
            }
            if let Some(slot) = slots.get_mut(at) {
                *slot = group + 1;
            }
        }
        Ok(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;
    use proptest::prelude::*;
    use std::collections::HashMap;

    struct Stopped;

    impl Cancel for Stopped {
        fn cancelled(&self) -> bool {
            true
        }
    }

    proptest! {
        #[test]
        fn a_key_has_one_group(width in 0usize..6, keys in prop::collection::vec(prop::collection::vec(0u64..9, 6), 0..900)) {
            let mut table = GroupTable::new(width);
            let flat: Vec<u64> = keys.iter().flat_map(|key| key[..width].to_vec()).collect();
            let mut found = Vec::new();
            table.groups_of(&flat, keys.len(), &mut found);
            prop_assert_eq!(found.len(), keys.len());
            let mut model: HashMap<&[u64], u32> = HashMap::new();
            for (key, group) in keys.iter().zip(&found) {
                let next = model.len() as u32;
                prop_assert_eq!(*model.entry(&key[..width]).or_insert(next), *group);
                prop_assert_eq!(table.key(*group as usize), &key[..width]);
            }
            prop_assert_eq!(table.len(), model.len().max(usize::from(width == 0)));
        }

        #[test]
        fn a_table_that_grows_beforehand_is_the_same_and_can_be_stopped(keys in prop::collection::vec(any::<u16>(), 0..3_000), step in 1usize..700) {
            let keys: Vec<u64> = keys.into_iter().map(u64::from).collect();
            let (mut plain, mut roomy) = (GroupTable::new(1), GroupTable::new(1));
            for part in keys.chunks(step) {
                let before = roomy.slots.clone();
                if roomy.make_room(&Stopped).is_err() {
                    prop_assert!(roomy.len() >= LARGE_GROUPS && roomy.slots == before);
                }
                roomy.make_room(&NeverCancel).unwrap();
                prop_assert!(roomy.len() < LARGE_GROUPS || (roomy.len() + roomy.len() / 8) * 2 <= roomy.slots.len());
                let (mut one, mut other) = (Vec::new(), Vec::new());
                plain.groups_of(part, part.len(), &mut one);
                roomy.groups_of(part, part.len(), &mut other);
                prop_assert_eq!(one, other);
            }
        }
    }
}
