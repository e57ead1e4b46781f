//! Decides the fate of the files of a folder: they stay, they go, or they are too young to decide.

use super::report::Tally;
use crate::base::Id;

/// The most files that one vacuum condemns, since ids take room in the log.
const CONDEMNED_MAX: usize = 1 << 20;

/// Why a file goes or stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A kept version names it.
    Stays,
    /// It was condemned by an earlier vacuum.
    Condemned,
    /// Only forgotten versions named it, or it has been unnamed for a long time.
    Goes,
    /// It is unnamed, but was written recently.
    Young,
}

pub(super) fn fate(named: bool, condemned: bool, dropped: bool, old: bool) -> Fate {
    match (named, condemned, dropped || old) {
        (true, _, _) => Fate::Stays,
        (_, true, _) => Fate::Condemned,
        (_, _, true) => Fate::Goes,
        _ => Fate::Young,
    }
}

/// The files of one folder that go, with their bytes.
#[derive(Debug, Default)]
pub(super) struct Going {
    pub(super) fresh: Vec<(Id, u64)>,
    pub(super) condemned: Vec<(Id, u64)>,
    pub(super) young: Tally,
}

impl Going {
    pub(super) fn take(&mut self, fate: Fate, id: Id, bytes: u64) {
        match fate {
            Fate::Stays => {}
            Fate::Condemned => self.condemned.push((id, bytes)),
            Fate::Goes if self.fresh.len() < CONDEMNED_MAX => self.fresh.push((id, bytes)),
            Fate::Goes | Fate::Young => self.young.add(bytes),
        }
    }

    pub(super) fn ids(&self) -> Vec<Id> {
        self.fresh.iter().map(|(id, _)| *id).collect()
    }

    pub(super) fn tally(&self) -> Tally {
        Tally::of(&self.fresh).and(Tally::of(&self.condemned))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &(Id, u64)> {
        self.condemned.iter().chain(&self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_stays_whatever_else_is_said_of_it() {
        for bits in 0..16u8 {
            let [named, condemned, dropped, old] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let expected = match (named, condemned, dropped || old) {
                (true, _, _) => Fate::Stays,
                (false, true, _) => Fate::Condemned,
                (false, false, true) => Fate::Goes,
                (false, false, false) => Fate::Young,
            };
            assert_eq!(fate(named, condemned, dropped, old), expected);
        }
    }
}
