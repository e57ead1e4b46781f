//! What a commit tells the caller's log: that it is done, that a slot was lost, that it failed.

use super::handle::Store;
use super::operation::Recorded;
use super::outcome::{Draft, Fate};
use super::record::Record;
use super::snapshot::Snapshot;
use crate::base::{Detail, Error, ErrorKind, Event, Events, Id, Level};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Store {
    /// The same store, whose events go to `events`.
    #[must_use]
    pub fn with_events(mut self, events: Option<Arc<dyn Events>>) -> Self {
        self.events = events;
        self
    }

    /// Tells of something that happened to the store, if that is wanted. `details` is called only then.
    pub fn tell(
        &self,
        (level, topic, what): (Level, &'static str, &'static str),
        details: impl FnOnce() -> Vec<(&'static str, Detail)>,
    ) {
        let Some(events) = self.events.as_ref().filter(|events| events.wants(level)) else { return };
        let mut all = vec![("uri", Detail::Text(self.storage().describe()))];
        all.extend(details());
        events.take(Event { level, topic, what, details: all });
    }

    /// When work begins, if the log wants to know of its end: the clock of a store is not asked for nothing.
    pub fn begun_us(&self) -> Option<i64> {
        let is_wanted = self.events.as_ref().is_some_and(|events| events.wants(Level::Info));
        is_wanted.then(|| self.clock.now_us())
    }

    /// Seconds since then.
    pub fn seconds_since(&self, begun_us: Option<i64>) -> f64 {
        begun_us.map_or(0.0, |begun_us| self.clock.now_us().saturating_sub(begun_us).max(0) as f64 / 1e6)
    }

    /// Tells of a commit that failed: of a conflict, or of an outcome that is not known.
    pub(super) fn tell_failed(&self, read_version: u64, error: &Error) {
        let what = match error.kind() {
            ErrorKind::Conflict => "conflict",
            ErrorKind::CommitUnknown => "outcome unknown",
            _ => return,
        };
        let level = if what == "conflict" { Level::Info } else { Level::Warning };
        self.tell((level, "commit", what), || {
            vec![("read_version", Detail::Number(read_version)), ("reason", Detail::Text(error.message().to_owned()))]
        });
    }

    /// Tells that a record whose put was in doubt was found in its slot.
    pub(super) fn tell_found(&self, version: u64) {
        self.tell((Level::Info, "commit", "recovered"), || vec![("version", Detail::Number(version))]);
    }
}

/// The tries of one commit.
pub(super) struct Tries {
    tries: u64,
    /// When it began; `None` where nobody wants to know.
    begun_us: Option<i64>,
}

impl Tries {
    pub(super) fn begun(store: &Store) -> Self {
        Self { tries: 0, begun_us: store.begun_us() }
    }

    /// Tells of the fate of a record; `next` is the state that it makes.
    pub(super) fn tell(&mut self, store: &Store, draft: &Draft, next: &Snapshot, fate: Fate) {
        self.tries += 1;
        if self.begun_us.is_none() {
            return;
        }
        let version = draft.record.version;
        match fate {
            Fate::Committed => store.tell((Level::Info, "commit", "committed"), || {
                let seconds = store.seconds_since(self.begun_us);
                let mut details = described(&draft.record, next);
                details.extend([("tries", Detail::Number(self.tries)), ("seconds", Detail::Seconds(seconds))]);
                details
            }),
            Fate::Lost | Fate::BelowFloor => {
                let what = if matches!(fate, Fate::Lost) { "slot lost" } else { "overtaken by a vacuum" };
                store.tell((Level::Debug, "commit", what), || {
                    vec![("version", Detail::Number(version)), ("tries", Detail::Number(self.tries))]
                });
            }
        }
    }
}

/// What a record did: its arrays, its operations, and what it added and removed.
fn described(record: &Record, next: &Snapshot) -> Vec<(&'static str, Detail)> {
    let (mut fragments, mut cells, mut bytes, mut taken) = (0, 0, 0, 0);
    let mut arrays: BTreeSet<Id> = BTreeSet::new();
    let mut names: Vec<&str> = Vec::new();
    for operation in &record.operations {
        arrays.extend(operation.node());
        if !names.contains(&operation.name()) {
            names.push(operation.name());
        }
        if let Recorded::ReplaceFragments { removed, .. } = operation {
            taken += removed.len() as u64;
        }
    }
    for d in record.added() {
        fragments += 1;
        bytes += d.location.len;
        cells += if d.kind.holds_cells() { d.cells } else { 0 };
    }
    let path = |id: &Id| next.node_by_id(*id).ok().flatten().map(|node| node.path().to_owned());
    let paths: Vec<String> = arrays.iter().filter_map(path).collect();
    let mut details = vec![
        ("version", Detail::Number(record.version)),
        ("path", Detail::Text(paths.join(", "))),
        ("operations", Detail::Text(names.join(", "))),
        ("fragments", Detail::Number(fragments)),
        ("removed", Detail::Number(taken)),
        ("cells", Detail::Number(cells)),
        ("bytes", Detail::Number(bytes)),
    ];
    details.extend(record.message.clone().map(|message| ("message", Detail::Text(message))));
    details
}
