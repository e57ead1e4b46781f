//! Group commit: threads of one process that commit to the same store at the same time share records.
//!
//! 1. A commit that arrives while no other is under way starts at once: a lone writer never waits, and there is no
//!    timer.
//! 2. A commit that arrives during another waits in line. When that one ends, the first in line becomes the leader. The
//!    leader writes one record for itself and for those behind it that may share it (at most [`MEMBERS_MAX`], about
//!    [`BYTES_MAX`]), in the order of their arrival.
//! 3. Each member is checked alone against every version that came first. A member that no longer applies leaves the
//!    group.
//! 4. Once the record is committed, all members get its snapshot. If its outcome is unknown, or the leader panics, all
//!    members get that error. If it was certainly not committed, nothing has happened to the members; the same holds
//!    for a member that left the group. Each of these commits by itself then, and gets its own error.
//!
//! A commit whose key a version has, or an earlier member, leaves the group as well: by itself it finds that it is done.
//!
//! Only changes that cannot conflict with each other share a record: fragments added, metadata set (of nodes, attributes
//! and dimensions), and domains grown, without a message, since a message belongs to one commit. Others wait for their turn and commit alone ([`Queueing::InTurn`]).
//! No lock is held while a storage is used or a signal raised, so a scheduler may replace threads.

use super::commit_key::CommitKey;
use super::committed::Committed;
use super::conflict::{Queueing, Rebase, StandardRules};
use super::handle::{CommitQueue, Store};
use super::operation::{Changes, Operation};
use super::record::Record;
use super::snapshot::Snapshot;
use super::state::ArrayState;
use crate::base::{Error, ErrorKind, Id, Result, Signal, Signals};
use crate::storage::patiently;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest number of commits that share a record.
const MEMBERS_MAX: usize = 64;

/// The approximate maximum size of a shared record in bytes. A larger one would make the first members wait for the
/// last.
const BYTES_MAX: usize = 1 << 20;

/// The approximate bytes that an operation and a fragment take in a record's line.
const LINE_BYTES: usize = 512;

/// Commits in line; see the module.
#[derive(Debug)]
pub struct GroupCommit {
    line: Mutex<Line>,
    signals: Arc<dyn Signals>,
}

#[derive(Debug, Default)]
struct Line {
    /// Whether a commit is under way.
    busy: bool,
    /// The snapshot of the last commit. A commit that waited for it need not read it again, nor lose its slot to it.
    last: Option<Arc<Snapshot>>,
    waiting: VecDeque<Arc<Entry>>,
}

/// One commit in line.
#[derive(Debug)]
struct Entry {
    base: Arc<Snapshot>,
    /// Its changes, if it may share a record.
    shared: Option<Changes>,
    bytes: usize,
    verdict: Mutex<Option<Verdict>>,
    signal: Arc<dyn Signal>,
}

/// The outcome of a commit in line.
#[derive(Debug)]
enum Verdict {
    /// It commits now, for itself and for these.
    Lead(Vec<Arc<Entry>>),
    /// Another member committed it, in the version of this snapshot.
    Committed(Arc<Snapshot>),
    /// Nothing has happened; it is to commit by itself.
    Alone,
    /// It is not known whether it was committed; the text says why.
    Unknown(String),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn tell(&self, verdict: Verdict) {
        *locked(&self.verdict) = Some(verdict);
        self.signal.raise();
    }

    /// Whether it may share a record with `leader`. Another store may have replaced a deleted one.
    fn joins(&self, leader: &Self) -> bool {
        self.shared.is_some() && leader.shared.is_some() && self.base.store() == leader.base.store()
    }
}

impl GroupCommit {
    /// An empty line, in which threads wait for `signals`.
    pub fn new(signals: Arc<dyn Signals>) -> Self {
        Self { line: Mutex::default(), signals }
    }

    /// The snapshot of the last commit, if it is of the same store as `base` and newer.
    fn newer_than(&self, base: &Snapshot) -> Option<Arc<Snapshot>> {
        let last = locked(&self.line).last.clone()?;
        (last.store() == base.store() && last.version() > base.version()).then_some(last)
    }

    /// Waits for the entry's verdict.
    fn enter(&self, entry: &Arc<Entry>) -> Verdict {
        {
            let mut line = locked(&self.line);
            if !line.busy {
                line.busy = true;
                return Verdict::Lead(Vec::new());
            }
            line.waiting.push_back(Arc::clone(entry));
        }
        entry.signal.wait();
        // The thread that raises the signal has set the verdict; without one nothing has happened.
        locked(&entry.verdict).take().unwrap_or(Verdict::Alone)
    }

    /// Ends a turn; the first in line leads next.
    fn pass_on(&self) {
        let (leader, followers) = {
            let mut line = locked(&self.line);
            let Some(leader) = line.waiting.pop_front() else {
                line.busy = false;
                return;
            };
            let (mut followers, mut bytes) = (Vec::new(), leader.bytes);
            while let Some(next) = line.waiting.pop_front() {
                bytes = bytes.saturating_add(next.bytes);
                if followers.len() + 1 >= MEMBERS_MAX || bytes > BYTES_MAX || !next.joins(&leader) {
                    line.waiting.push_front(next);
                    break;
                }
                followers.push(next);
            }
            (leader, followers)
        };
        leader.tell(Verdict::Lead(followers));
    }
}

impl CommitQueue for GroupCommit {
    /// Commits `changes` to `store` as [`Store::commit_once`] does, now or when its turn comes, perhaps together with others.
    fn commit(
        &self,
        store: &Store,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Committed> {
        let may_share = rebase.queueing() == Queueing::Shared && is_shareable(&changes);
        let bytes = if may_share { size_bytes(&changes) } else { 0 };
        let shared = may_share.then(|| changes.clone());
        let (verdict, signal) = (Mutex::new(None), self.signals.signal());
        let entry = Arc::new(Entry { base: Arc::clone(base), shared, bytes, verdict, signal });
        match self.enter(&entry) {
            Verdict::Committed(snapshot) => {
                store.saw(snapshot.version());
                Ok(Committed { version: snapshot.version(), snapshot, is_repeat: false })
            }
            Verdict::Unknown(why) => Err(Error::commit_unknown(why)),
            Verdict::Alone => store.commit_alone(base.version(), base, changes, rebase),
            Verdict::Lead(followers) => {
                let mut turn = Turn { queue: self, followers };
                // A check for cancellation may run a signal handler, which may commit and wait for the end of this
                // turn.
                if turn.followers.is_empty() {
                    let outcome = patiently(|| turn.single(store, base, changes, rebase));
                    turn.note(&outcome);
                    return outcome;
                }
                if let Some(outcome) = patiently(|| turn.lead(store, &entry)) {
                    return outcome;
                }
                drop(turn);
                store.commit_alone(base.version(), base, changes, rebase)
            }
        }
    }
}

/// A turn to commit. However it ends, no thread is left waiting.
struct Turn<'a> {
    queue: &'a GroupCommit,
    /// The members that have no verdict yet.
    followers: Vec<Arc<Entry>>,
}

impl Turn<'_> {
    /// Commits `changes` of one commit, after the snapshot of the last commit if that is newer and the rules can decide
    /// by it.
    fn single(
        &self,
        store: &Store,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Committed> {
        if let Some(last) = self.queue.newer_than(base).filter(|_| rebase.newest_suffices()) {
            let mut adapted = changes.clone();
            if rebase.rebase_past_floor(&last, &mut adapted).is_ok() {
                return store.commit_alone(base.version(), &last, adapted, rebase);
            }
        }
        // Changes that no longer apply fail with their own error.
        store.commit_alone(base.version(), base, changes, rebase)
    }

    fn note(&self, outcome: &Result<Committed>) {
        let Ok(done) = outcome else { return };
        let mut line = locked(&self.queue.line);
        let is_newer =
            |last: &Arc<Snapshot>| last.store() != done.snapshot.store() || last.version() <= done.snapshot.version();
        // A commit that was done before has the snapshot in which it was found.
        if line.last.as_ref().is_none_or(is_newer) {
            line.last = Some(Arc::clone(&done.snapshot));
        }
    }

    /// Commits for `leader` and the followers, and gives the followers their verdicts. `None`: the leader must commit
    /// by itself.
    fn lead(&mut self, store: &Store, leader: &Arc<Entry>) -> Option<Result<Committed>> {
        let entries: Vec<&Arc<Entry>> = std::iter::once(leader).chain(&self.followers).collect();
        let read = entries.iter().map(|e| &e.base).max_by_key(|base| base.version())?;
        let newest = self.queue.newer_than(read).unwrap_or_else(|| Arc::clone(read));
        let mut members = Members { changes: entries.iter().filter_map(|e| e.shared.clone()).map(Some).collect() };
        let mut changes = Changes::default();
        let outcome = members
            .settle(&newest, &mut changes)
            .and_then(|()| store.commit_alone(read.version(), &newest, std::mem::take(&mut changes), &mut members));
        self.note(&outcome);
        let stands = |place: usize| members.changes.get(place).is_some_and(Option::is_some);
        let verdict = |place: usize| match &outcome {
            Ok(done) if stands(place) => Verdict::Committed(Arc::clone(&done.snapshot)),
            Err(e) if e.kind() == ErrorKind::CommitUnknown && stands(place) => Verdict::Unknown(e.message().to_owned()),
            _ => Verdict::Alone,
        };
        for (follower, place) in std::mem::take(&mut self.followers).into_iter().zip(1..) {
            follower.tell(verdict(place));
        }
        match verdict(0) {
            Verdict::Alone | Verdict::Lead(_) => None,
            Verdict::Committed(_) | Verdict::Unknown(_) => Some(outcome),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        for follower in self.followers.drain(..) {
            follower.tell(Verdict::Unknown(
                "the thread that was writing a record for several commits stopped in the middle of it, so whether this one \
                 was committed is not known, and nothing was deleted; look at the history"
                    .to_owned(),
            ));
        }
        self.queue.pass_on();
    }
}

/// The members of a group, as the rules of their one commit: a member that no longer applies leaves.
struct Members {
    /// The changes of each; `None` once it has left.
    changes: Vec<Option<Changes>>,
}

impl Members {
    /// Sets `all` to the changes of the members that apply after `newest`.
    fn settle(&mut self, newest: &Snapshot, all: &mut Changes) -> Result<()> {
        let mut keys: HashSet<CommitKey> = HashSet::new();
        let mut grown = Grown { newest, arrays: HashMap::new() };
        for member in &mut self.changes {
            let stands = |changes: &Changes| StandardRules::check(newest, changes).is_ok() && is_new(newest, changes);
            let is_first = |changes: &Changes| changes.keys.iter().all(|keyed| keys.insert(keyed.key.clone()));
            *member = member.take().filter(stands).filter(is_first).filter(|changes| grown.reach(changes).is_ok());
        }
        let standing: Vec<&Changes> = self.changes.iter().flatten().collect();
        if standing.is_empty() {
            return Err(Error::conflict("none of the commits that were to share a record still stands"));
        }
        all.keys = standing.iter().flat_map(|changes| changes.keys.iter().cloned()).collect();
        all.operations = standing.into_iter().flat_map(|changes| changes.operations.iter().cloned()).collect();
        Ok(())
    }
}

/// The arrays whose domains grow in a shared record.
struct Grown<'a> {
    newest: &'a Snapshot,
    arrays: HashMap<Id, ArrayState>,
}

impl Grown<'_> {
    /// Lets the domains reach as far as `changes` say, after those before; an error, and nothing, if one cannot.
    fn reach(&mut self, changes: &Changes) -> Result<()> {
        let mut reached: HashMap<Id, ArrayState> = HashMap::new();
        for operation in &changes.operations {
            let Operation::Grow { array, dimension, range } = operation else { continue };
            if !reached.contains_key(array) {
                let state = match self.arrays.get(array) {
                    Some(state) => state.clone(),
                    None => ArrayState::clone(&*self.newest.array_by_id(*array)?),
                };
                reached.insert(*array, state);
            }
            reached.get_mut(array).map_or(Ok(()), |state| state.grow(*dimension, *range))?;
        }
        self.arrays.extend(reached);
        Ok(())
    }
}

/// Whether no commit has a key of `changes`. One that cannot be looked up is looked up by its own commit.
fn is_new(newest: &Snapshot, changes: &Changes) -> bool {
    changes.keys.iter().all(|keyed| newest.keyed_commit(&keyed.key).is_ok_and(|found| found.is_none()))
}

impl Rebase for Members {
    fn newest_suffices(&self) -> bool {
        true
    }

    fn is_of_many(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.settle(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.settle(newest, changes)
    }
}

/// Whether the changes may share a record with others of their kind. Kinds that are not named here commit alone.
fn is_shareable(changes: &Changes) -> bool {
    let beside = |op: &Operation| {
        matches!(
            op,
            Operation::AddFragments { .. }
                | Operation::SetMetadata { .. }
                | Operation::SetFieldMetadata { .. }
                | Operation::Grow { .. }
        )
    };
    changes.message.is_none() && changes.operations.iter().all(beside) && size_bytes(changes) <= BYTES_MAX
}

/// The approximate bytes that the changes take in a record.
fn size_bytes(changes: &Changes) -> usize {
    let text = |(key, value): &(String, Option<String>)| key.len() + value.as_ref().map_or(0, String::len);
    let of = |operation: &Operation| match operation {
        Operation::AddFragments { fragments, .. } => {
            fragments.iter().map(|f| LINE_BYTES + f.body.as_ref().map_or(0, bytes::Bytes::len)).sum()
        }
        Operation::SetMetadata { changes, .. } | Operation::SetFieldMetadata { changes, .. } => {
            changes.iter().map(text).sum()
        }
        _ => 0,
    };
    changes.operations.iter().map(|op| LINE_BYTES + of(op)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::schema::Schema;
    use crate::store::tests::world::{cells, fresh, memory, store_in};

    /// Members that grow one array: the one whose growth makes a tile too large leaves, and the others stand.
    #[test]
    fn only_the_growth_that_passes_a_limit_leaves_a_group() {
        let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]},{"name":"y","dtype":"int64","domain":["0","9"]}],
            "attrs":[{"name":"v","dtype":"int8"}]}"#;
        let (store, id) = (store_in(memory()), fresh());
        let (path, schema) = ("/".to_owned(), Schema::from_json(text).unwrap());
        let newest = store.create(Changes::new(vec![Operation::CreateArray { id, path, schema, ext: None }])).unwrap();
        let grow = |array: Id, dimension: u32, hi: i64| {
            let range = cells(0, hi).ranges()[0];
            Some(Changes::new(vec![Operation::Grow { array, dimension, range }]))
        };
        // A tile holds 2^31 cells; each of the first two fits alone, and so do the others beside the first.
        let changes = vec![
            grow(id, 0, (1 << 20) - 1),
            grow(id, 1, (1 << 20) - 1),
            grow(id, 1, 2_047),
            grow(id, 7, 1),
            grow(id, 0, 99),
        ];
        let mut members = Members { changes };
        let mut all = Changes::default();
        members.settle(&newest, &mut all).unwrap();
        assert_eq!(members.changes.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true, false, true]);
        let done = store.commit(&newest, all, &mut StandardRules).unwrap();
        assert_eq!(done.array_by_id(id).unwrap().schema().domain().shape(), [1 << 20, 2_048]);
    }
}
