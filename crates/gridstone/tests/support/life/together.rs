//! Commits of several threads that share a record, and a consolidation that a commit sets off.
//!
//! Both are of several threads, and still come out the same each time: writers of a group are let go once all are in line, and nothing else is done until the
//! consolidation has ended.

use super::hand::{Hand, Sort, options, staged_cells};
use super::model::{Cells, Size, scattered};
use super::script::Script;
use super::{CELLS, Kind};
use crate::support::gate::Gate;
use gridstone::base::Result;
use gridstone::engine::{Array, At, AutoConsolidate, Context, Opened, Options, open_on};
use std::sync::mpsc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

pub(super) fn script() -> Script {
    Script { kinds, prelude: 1, ..Script::new("together") }
}

/// Cells in so many parts, each of some rows.
fn parted(cells: Cells, parts: usize) -> Vec<Cells> {
    let mut all = vec![Cells::new(); parts];
    cells.into_iter().for_each(|(place, value)| drop(all[place.0 as usize % parts].insert(place, value)));
    assert!(all.iter().all(|part| !part.is_empty()), "a part without cells");
    all
}

/// The number by which the system knows this thread.
fn thread_number() -> i64 {
    // SAFETY: asks for a number; touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// Waits until a thread sleeps: one that commits while another does sleeps in line, and nowhere else so long.
fn wait_until_asleep(thread: i64) {
    let asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    };
    let mut times = 0;
    while times < 5 {
        times = if asleep() { times + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Hand {
    fn opened(&self, context: &Context, storage: std::sync::Arc<dyn gridstone::storage::Storage>) -> Result<Array> {
        match open_on(context, storage, CELLS, true, At::Latest)? {
            Opened::Array(array) => Ok(array),
            Opened::Group(_) => panic!("{CELLS} is a group, which the script did not make"),
        }
    }

    /// Commits of as many threads in one record, after one that changes nothing.
    fn commit_together(&mut self, shares: &[Cells]) -> Result<u64> {
        let (gate, storage) = Gate::over(self.storage.clone());
        let array = self.opened(&self.context, storage)?;
        let staged = shares.iter().map(|cells| staged_cells(&array, cells)).collect::<Result<Vec<_>>>()?;
        gate.shut();
        let versions = std::thread::scope(|scope| {
            let first = scope.spawn(|| array.set_metadata(vec![("nothing".to_owned(), None)]));
            gate.wait_for_somebody();
            let mut threads = Vec::new();
            for member in staged {
                let ((started, starts), array) = (mpsc::channel(), &array);
                threads.push(scope.spawn(move || {
                    started.send(thread_number()).unwrap();
                    array.commit(vec![member], None)
                }));
                wait_until_asleep(starts.recv().unwrap());
            }
            gate.open();
            first.join().unwrap()?;
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<Vec<u64>>>()
        })?;
        assert!(versions.iter().all(|version| *version == versions[0]), "they share no record: {versions:?}");
        Ok(versions[0])
    }

    /// Cells in a context that consolidates what has two fragments, and the version of the consolidation.
    fn write_and_be_looked_after(&mut self, cells: &Cells) -> Result<u64> {
        let auto_consolidate = Some(AutoConsolidate { fragments: 2, ..AutoConsolidate::default() });
        let context = Context::new(&Options { auto_consolidate, ..options(None) })?;
        let array = self.opened(&context, self.storage.clone())?;
        // So many fragments of a size are always worth a merge.
        let parts = parted(cells.clone(), 9);
        let staged = parts.iter().map(|cells| staged_cells(&array, cells)).collect::<Result<Vec<_>>>()?;
        let made = array.commit(staged, None)?;
        self.shown = Some(made);
        if let Some(running) = array.upkeep() {
            assert!(running.wait(LONG).is_some(), "the consolidation does not end");
        }
        let merged = array.refresh()?;
        assert!(merged > made, "nothing was consolidated after version {made}");
        Ok(merged)
    }
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "an array and cells for several threads",
            act: |hand, seed| match seed % 2 {
                0 => hand.create(CELLS, Sort::Sparse, false),
                _ => hand.write_cells(CELLS, &scattered(40, Size::Small, seed)),
            },
            mean: |model, seed| match seed % 2 {
                0 => model.put_array(CELLS, Sort::Sparse),
                _ => model.cells(CELLS).extend(scattered(40, Size::Small, seed)),
            },
        },
        Kind {
            name: "commits of three threads in one record",
            act: |hand, seed| hand.commit_together(&parted(scattered(40, Size::Small, seed), 3)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(40, Size::Small, seed)),
        },
        Kind {
            name: "a commit that sets off a consolidation",
            act: |hand, seed| hand.write_and_be_looked_after(&scattered(60, Size::Small, seed)),
            mean: |model, seed| model.cells(CELLS).extend(scattered(60, Size::Small, seed)),
        },
    ]
}
