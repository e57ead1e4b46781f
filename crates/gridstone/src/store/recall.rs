//! The ids of lost objects, found again by what still names them.
//!
//! A fold that is repeated gives the bytes of its objects, and so their checksums. An id is looked up
//!
//! 1. in the root that is rebuilt, if it exists: it names each object for a row, by its key;
//! 2. else in all roots and pages of rows in `_manifest/`, which name objects for the same row;
//! 3. else among the objects of that checksum that exist.
//!
//! Equal values have one checksum, and an id each. Where more than one id is possible, all choices are tried: a
//! depth-first search ([`Search`]), which the checksum of the page or root above ends. No id is used twice in a fold.

use super::inspect::damage;
use super::line;
use super::node_row::decode_page;
use super::page;
use super::root::Root;
use super::rows::key::{self, NodeRow};
use super::rows::{Entry, Inspected, Press, Role, Stored, stored};
use crate::base::{Error, Id, Result};
use crate::storage::{MANIFEST, Storage, manifest_name};
use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

/// A rebuilt object: its name and its bytes.
pub type Remade = (String, Vec<u8>);

/// Ids of objects, by their checksums.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// As a root or page names them.
    named: HashMap<(Role, u64), Vec<Id>>,
    /// Whatever they are named for; those that exist come in the order in which they were written.
    by_sum: HashMap<(Discriminant<Role>, u64), Vec<Id>>,
}

fn push_once(ids: &mut Vec<Id>, id: Id) {
    if !ids.contains(&id) {
        ids.push(id);
    }
}

impl Known {
    /// The objects that `root` names, except those that only damaged pages name.
    pub(super) fn of_root(root: &Root) -> Result<Self> {
        let mut known = Self::default();
        root.rows.inspect(&mut |inspected| {
            match inspected {
                Inspected::Page(key, object, _) => known.add_named(Role::Rows(key.clone()), object.xxh3, object.id),
                Inspected::Row(row) => known.add_row(row),
            }
            Ok(())
        })?;
        Ok(known)
    }

    /// The intact objects in `_manifest/`, and those that they name.
    ///
    /// # Errors
    /// Storage, Access.
    pub(super) fn in_storage(storage: &dyn Storage) -> Result<Self> {
        let (mut known, mut listed) = (Self::default(), Vec::new());
        storage.survey(MANIFEST, &mut |object| listed.push(object))?;
        listed.sort_by(|a, b| (a.modified_us, &a.name).cmp(&(b.modified_us, &b.name)));
        for name in listed.into_iter().map(|object| object.name) {
            let Some(Ok(id)) = name.rsplit('/').next().map(Id::parse) else { continue };
            if let Ok(bytes) = damage(storage.read_all(&name))? {
                known.add_object(id, &bytes);
            }
        }
        Ok(known)
    }

    fn add_object(&mut self, id: Id, bytes: &[u8]) {
        if let Some(sum) = page::checksum(bytes) {
            return self.add_sum(&Role::Fragments, sum, id);
        }
        let line = line::open(bytes, "a manifest root").ok();
        let object = line.map_or(Some(bytes), |line| bytes.get(line.body..)).and_then(stored);
        match object {
            Some(Stored::Rows(sum, rows)) => {
                if line.is_none() {
                    self.add_sum(&Role::Rows(bytes::Bytes::new()), sum, id);
                }
                rows.iter().for_each(|row| self.add_row(row));
            }
            Some(Stored::Value(sum)) => self.add_sum(&Role::Value(bytes::Bytes::new()), sum, id),
            None => {}
        }
    }

    /// Adds the object that a row names.
    fn add_row(&mut self, row: &Entry) {
        match row {
            Entry::Large(key, object) => self.add_named(Role::Value(key.clone()), object.xxh3, object.id),
            Entry::Page(key, child) => {
                self.add_named(Role::Rows(key.clone()), child.reference.xxh3, child.reference.id);
            }
            Entry::Skipped(key, ..) => {
                if let Some(object) = row.value_object() {
                    self.add_named(Role::Value(key.clone()), object.xxh3, object.id);
                }
            }
            Entry::Value(key, value) => {
                if let Some((_, NodeRow::Page(page))) = key::read_node(key)
                    && let Ok(page) = decode_page(page, value)
                {
                    self.add_named(Role::Fragments, page.xxh3, page.id);
                }
            }
        }
    }

    fn add_named(&mut self, role: Role, sum: u64, id: Id) {
        self.add_sum(&role, sum, id);
        push_once(self.named.entry((role, sum)).or_default(), id);
    }

    fn add_sum(&mut self, role: &Role, sum: u64, id: Id) {
        push_once(self.by_sum.entry((discriminant(role), sum)).or_default(), id);
    }
}

/// A depth-first search among choices. Each pass makes its choices anew, and [`Search::advance`] changes the last one that
/// can be changed.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The choices of the last pass: which one, of how many.
    trail: Vec<(usize, usize)>,
    /// How many of them this pass has made.
    made: usize,
}

impl Search {
    /// One of `of` possibilities.
    fn choose(&mut self, of: usize) -> usize {
        if self.made == self.trail.len() {
            self.trail.push((0, of));
        }
        let chosen = self.trail.get(self.made).map_or(0, |(chosen, _)| *chosen);
        self.made += 1;
        chosen
    }

    /// Whether the last pass had a choice.
    pub(super) fn has_choices(&self) -> bool {
        !self.trail.is_empty()
    }

    /// Prepares the next pass; false if there is none.
    pub(super) fn advance(&mut self) -> bool {
        self.made = 0;
        while let Some((chosen, of)) = self.trail.pop() {
            if chosen + 1 < of {
                self.trail.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

/// Gives the objects of a repeated fold the ids that they had before.
pub(super) struct Recall<'a> {
    /// What the root that is rebuilt names, if it exists.
    pub(super) own: Option<&'a Known>,
    pub(super) known: &'a Known,
    /// Whether that root is of GS0: it has its rows in its line.
    pub(super) is_gs0: bool,
    pub(super) search: &'a mut Search,
    pub(super) taken: HashSet<Id>,
    pub(super) remade: Vec<Remade>,
}

impl Recall<'_> {
    /// The ids that an object of this role and checksum may have had, the likeliest first.
    fn candidates(&self, role: &Role, sum: u64) -> Vec<Id> {
        let named = (role.clone(), sum);
        if let Some([id]) = self.own.and_then(|own| own.named.get(&named)).map(Vec::as_slice) {
            return vec![*id];
        }
        let likely = self.known.named.get(&named).into_iter().flatten();
        let by_sum = (discriminant(role), sum);
        let own = self.own.and_then(|own| own.by_sum.get(&by_sum)).into_iter().flatten();
        let others = self.known.by_sum.get(&by_sum).into_iter().flatten();
        let mut ids = Vec::new();
        likely.chain(own).chain(others).filter(|id| !self.taken.contains(id)).for_each(|id| push_once(&mut ids, *id));
        ids
    }
}

impl Press for Recall<'_> {
    fn object(&mut self, role: Role, bytes: &[u8], xxh3: u64) -> Result<Id> {
        if self.is_gs0 && role != Role::Fragments {
            return Ok(Id([0; 16]));
        }
        let ids = self.candidates(&role, xxh3);
        let chosen = if ids.len() > 1 { self.search.choose(ids.len()) } else { 0 };
        let id = ids.get(chosen).copied().ok_or_else(|| Error::corruption("no object has this checksum"))?;
        self.taken.insert(id);
        self.remade.push((manifest_name(id), bytes.to_vec()));
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All passes of a search in which each pass makes as many choices as its first one says.
    #[test]
    fn a_search_makes_every_choice_once() {
        let (mut search, mut seen) = (Search::default(), Vec::new());
        loop {
            let depth = search.choose(3);
            seen.push([depth].into_iter().chain((0..depth).map(|_| search.choose(2))).collect::<Vec<_>>());
            if !search.advance() {
                break;
            }
        }
        let expected: [&[usize]; 7] = [&[0], &[1, 0], &[1, 1], &[2, 0, 0], &[2, 0, 1], &[2, 1, 0], &[2, 1, 1]];
        assert_eq!(seen, expected);
        assert!(!Search::default().advance());
    }
}
