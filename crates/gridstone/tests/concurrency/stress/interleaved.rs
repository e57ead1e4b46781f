//! The same writes and keepers in one thread, one of them inside the other: before an operation on the storage of a write, a
//! consolidation or a vacuum, others do whole ones of theirs. What threads meet once in hours is met in seconds, and again from the
//! same seed.

use super::writes::{Order, commit, read, replayed};
use super::{Made, WRITERS, World, is_expired, writes};
use crate::support::store::options;
use gridstone::engine::{Array, Call, Keep, Strategy, VacuumOptions};
use gridstone::storage::{HookedStorage, Storage};
use gridstone_testkit::Dice;
use std::sync::{Arc, Mutex};

/// Steps of a run, others' work inside of them not counted.
const STEPS: usize = 60;
/// How much others do inside of one step, at most.
const INSIDE_MAX: usize = 14;

/// Everybody who works on a store.
struct Crowd {
    world: World,
    arrays: [Array; 2],
    dice: Dice,
    /// The number of each writer's next write.
    next: [u64; WRITERS as usize],
    made: Vec<Made>,
    /// How many may still do something inside of this step, and the writer whose step it is.
    left: usize,
    busy: Option<u64>,
    /// How much others have done inside of steps.
    inside: usize,
}

impl Crowd {
    fn new(world: World, seed: u64) -> Self {
        let arrays = world.arrays(true);
        let next = [0; WRITERS as usize];
        Self { world, arrays, dice: Dice::new(seed), next, made: Vec::new(), left: 0, busy: None, inside: 0 }
    }

    /// Somebody else does something, now and then.
    fn interrupt(&mut self) {
        if self.left == 0 || !self.dice.chance(8) {
            return;
        }
        self.left -= 1;
        self.inside += 1;
        let what = self.dice.below(100);
        let (world, arrays) = (self.world.clone(), self.arrays.clone());
        self.step(what, &world, &arrays);
    }

    fn writer(&mut self) -> u64 {
        loop {
            let writer = self.dice.below(WRITERS as usize) as u64;
            if Some(writer) != self.busy {
                return writer;
            }
        }
    }

    /// Does one thing on handles of `world`.
    fn step(&mut self, what: usize, world: &World, arrays: &[Array; 2]) {
        match what {
            0..12 => {
                let (array, strategy) = self.merge();
                merge(world, &arrays[array], &strategy);
            }
            12..17 => {
                let keep = self.keep();
                vacuum(world, &arrays[0], keep);
            }
            _ => {
                let (writer, number) = self.begin();
                let version = commit(world, arrays, writer, number);
                self.made.push((version, writer, number));
            }
        }
    }

    fn merge(&mut self) -> (usize, Strategy) {
        let strategy = if self.dice.chance(15) { Strategy::All } else { Strategy::Tiered };
        (self.dice.below(2), strategy)
    }

    fn keep(&mut self) -> Keep {
        [Keep::Versions(1), Keep::Versions(12), Keep::AgeUs(0)][self.dice.below(3)]
    }

    /// A writer, and the number of his write.
    fn begin(&mut self) -> (u64, u64) {
        let writer = self.writer();
        let number = self.next[writer as usize];
        self.next[writer as usize] += 1;
        (writer, number)
    }
}

fn merge(world: &World, array: &Array, strategy: &Strategy) {
    let version = array.refresh().unwrap();
    let outcome = array.consolidate(strategy, 100_000, false, &Call::default());
    if !is_expired(world, version, &outcome) {
        outcome.unwrap();
    }
}

fn vacuum(world: &World, array: &Array, keep: Keep) {
    array.vacuum(&VacuumOptions { safety_us: world.safety_us, ..options(keep) }, &Call::default()).unwrap();
}

/// One run: steps on a storage that lets others in. Gives how much they did.
fn run(seed: u64, doubled: bool) -> usize {
    let world = World::in_memory().with_doubles(doubled);
    world.create();
    let crowd = Arc::new(Mutex::new(Crowd::new(world.clone(), seed)));
    let others = Arc::clone(&crowd);
    let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(world.storage.clone(), move |_, _| {
        // Whoever is inside lets nobody in.
        if let Ok(mut others) = others.try_lock() {
            others.interrupt();
        }
    }));
    let open = World { storage: hooked, context: World::in_memory().context, ..world.clone() };
    let arrays = open.arrays(true);
    let mut dice = Dice::new(!seed);
    for step in 0..STEPS {
        let what = dice.below(100);
        // Nothing is held while the step goes on.
        match what {
            0..45 => {
                let (array, strategy) = crowd.lock().unwrap().merge();
                crowd.lock().unwrap().left = INSIDE_MAX;
                merge(&open, &arrays[array], &strategy);
            }
            45..53 => {
                let keep = crowd.lock().unwrap().keep();
                crowd.lock().unwrap().left = INSIDE_MAX;
                vacuum(&open, &arrays[0], keep);
            }
            _ => {
                let (writer, number) = crowd.lock().unwrap().begin();
                crowd.lock().unwrap().busy = Some(writer);
                crowd.lock().unwrap().left = INSIDE_MAX;
                let version = commit(&open, &arrays, writer, number);
                crowd.lock().unwrap().made.push((version, writer, number));
            }
        }
        let mut crowd = crowd.lock().unwrap();
        (crowd.left, crowd.busy) = (0, None);
        let (contents, _) = replayed(&Order::of(crowd.made.clone()), doubled);
        for (array, expected) in world.arrays(false).iter().zip(contents) {
            assert_eq!(read(array), expected, "seed {seed}, step {step} ({what}), {}", array.path().unwrap());
        }
    }
    crowd.lock().unwrap().inside
}

#[test]
fn others_work_inside_of_every_step() {
    let runs = writes(40);
    let inside: usize = (0..runs).map(|seed| run(seed, seed % 3 == 2)).sum();
    assert!(inside > 50 * runs as usize, "others did {inside} things inside of {runs} runs");
}
