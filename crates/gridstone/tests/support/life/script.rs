//! Scripts: which kinds of work are done on which ground, and what a rehearsal of them finds.

use super::Kind;
use super::check::Outcome;
use super::hand::{Hand, Objects, context, objects};
use super::model::Model;
use gridstone::base::Keys;
use gridstone::engine::Context;
use gridstone::storage::Storage;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Where a script is done: the store that is cut short, and one beside it, from which is copied.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Storage>,
    pub(crate) source: Arc<dyn Storage>,
}

/// What is done to what a crash left before it is looked at, while so many steps had been acknowledged.
type Heal = fn(&Ground, &Life, usize) -> Outcome<()>;

/// Kinds of work, and the store that they are done on.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) kinds: fn() -> Vec<Kind>,
    /// Chapters at the beginning in which nothing is cut short: the others need what they do.
    pub(crate) prelude: usize,
    /// Whether it is gone over several times with `GRIDSTONE_TEST_DEEP`.
    pub(crate) again: bool,
    /// Whether processes die before operations that only read, too: what they leave is what they leave at the next that changes
    /// something.
    pub(crate) reads: bool,
    /// The keys of a store that is sealed.
    pub(crate) keys: Option<fn() -> Arc<dyn Keys>>,
    /// The life of the store that is copied from.
    pub(crate) source: Option<fn() -> Script>,
    /// Whether the first step brings all versions of the source at once.
    pub(crate) past: bool,
    /// Whether it damages what is stored: then what each step leaves is remembered byte for byte, and a past version may be lost for good.
    pub(crate) damages: bool,
    pub(crate) heal: Option<Heal>,
}

/// One step of a script.
pub(crate) struct Step {
    pub(crate) kind: usize,
    pub(crate) seed: u64,
}

/// One in so many points at which work is cut short is tried, unless `GRIDSTONE_TEST_DEEP` asks for each.
const SHARE: u64 = 4;

/// The seed that says which points are tried.
pub(crate) fn seed() -> u64 {
    std::env::var("GRIDSTONE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2_016)
}

/// Whether a point is tried.
pub(crate) fn is_tried(point: impl Hash) -> bool {
    let mut hasher = DefaultHasher::new();
    (seed(), point).hash(&mut hasher);
    is_deep() || hasher.finish().is_multiple_of(SHARE)
}

fn is_deep() -> bool {
    std::env::var_os("GRIDSTONE_TEST_DEEP").is_some()
}

impl Script {
    /// Whether it is asked for: `GRIDSTONE_TEST_SCRIPT` names the only one that is.
    pub(crate) fn is_wanted(&self) -> bool {
        std::env::var("GRIDSTONE_TEST_SCRIPT").map_or(true, |name| name == self.name)
    }

    /// A script of nothing on a plain store.
    pub(crate) fn new(name: &'static str) -> Self {
        let (keys, source, heal) = (None, None, None);
        let (again, reads, past, damages) = (false, is_deep(), false, false);
        Self { name, kinds: Vec::new, prelude: 0, again, reads, keys, source, past, damages, heal }
    }

    /// A context of its own, so that nothing is answered from a cache.
    pub(crate) fn context(&self) -> Context {
        context(self.keys.map(|keys| keys()))
    }

    /// A chapter for each kind, with two steps of it, the first with an even seed and the second with the odd one after it.
    pub(crate) fn chapters(&self, kinds: &[Kind]) -> Vec<Vec<Step>> {
        let laps = if self.again && is_deep() { 4 } else { 1 };
        let steps = |n: usize| [0, 1].map(|step| Step { kind: n % kinds.len(), seed: 2 * n as u64 + step }).into();
        (0..kinds.len() * laps).map(steps).collect()
    }

    /// What its first steps come to; all that it does, if there are not so many.
    pub(crate) fn comes_to(&self, steps: usize) -> Model {
        let (kinds, mut model) = ((self.kinds)(), Model::default());
        let chapters = self.chapters(&kinds);
        chapters.iter().flatten().take(steps).for_each(|step| (kinds[step.kind].mean)(&mut model, step.seed));
        model
    }
}

/// A script, and the store at every version of it, as the rehearsal found it.
pub(crate) struct Life {
    pub(crate) script: Script,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) chapters: Vec<Vec<Step>>,
    /// What the store holds, by version; at 0 there is none.
    pub(crate) models: Vec<Arc<Model>>,
    /// The version that each step ends at.
    pub(crate) ends: Vec<u64>,
    /// All objects after each step, if the script damages any.
    pub(crate) left: Vec<Objects>,
    /// The life of the store that is copied from, and its objects.
    pub(crate) source: Option<(Box<Life>, Objects)>,
}

impl Life {
    /// Does the whole script; `between` is told the number of each chapter before it begins, and that of the last when all is
    /// done; `said` each version that was acknowledged.
    pub(crate) fn rehearsed_on(
        script: Script,
        ground: &Ground,
        mut between: impl FnMut(usize),
        mut said: impl FnMut(u64),
    ) -> Self {
        let source = script.source.map(|source| {
            let beside = Ground { store: ground.source.clone(), source: ground.source.clone() };
            let life = Self::rehearsed(source(), &beside, &mut |_| {}, &mut |_| {}, None);
            (Box::new(life), objects(&ground.source))
        });
        Self::rehearsed(script, ground, &mut between, &mut said, source)
    }

    fn rehearsed(
        script: Script,
        ground: &Ground,
        between: &mut dyn FnMut(usize),
        said: &mut dyn FnMut(u64),
        source: Option<(Box<Self>, Objects)>,
    ) -> Self {
        let kinds = (script.kinds)();
        let chapters = script.chapters(&kinds);
        let (mut models, mut model) = (vec![Arc::new(Model::default())], Model::default());
        let (mut ends, mut left) = (Vec::new(), Vec::new());
        for (number, chapter) in chapters.iter().enumerate() {
            between(number);
            perform(&script, &kinds, chapter, ground, |step, shown, version| {
                let before: Arc<Model> = models.last().unwrap().clone();
                (kinds[step.kind].mean)(&mut model, step.seed);
                if script.past && ends.is_empty() {
                    models.extend(source.iter().flat_map(|(life, _)| life.models.iter().skip(1).cloned()));
                    assert!(
                        models.len() as u64 == version + 1 && *models[version as usize] == model,
                        "{}",
                        script.name
                    );
                } else if version as usize >= models.len() {
                    models.resize(shown as usize, before);
                    models.resize(version as usize + 1, Arc::new(model.clone()));
                } else {
                    assert!(version as usize == models.len() - 1 && model == *before, "{}", kinds[step.kind].name);
                }
                ends.push(version);
                left.extend(script.damages.then(|| objects(&ground.store)));
                said(version);
            });
        }
        between(chapters.len());
        Self { script, kinds, chapters, models, ends, left, source }
    }

    /// The versions that may be found when so many steps were acknowledged: that of the last, and those of the one under way.
    pub(crate) fn possible(&self, steps: usize) -> RangeInclusive<u64> {
        let end = |steps: usize| steps.checked_sub(1).map_or(0, |step| self.ends[step]);
        end(steps)..=end((steps + 1).min(self.ends.len()))
    }

    pub(crate) fn last(&self) -> u64 {
        self.models.len() as u64 - 1
    }

    /// The name of the kind of work that was under way when so many steps were acknowledged.
    pub(crate) fn under_way(&self, steps: usize) -> &'static str {
        let step = self.chapters.iter().flatten().nth(steps).or(self.chapters.last().and_then(|c| c.last()));
        step.map_or("nothing", |step| self.kinds[step.kind].name)
    }
}

/// Does a chapter by a hand of its own; `done` is told each step, the first version that shows what it means, and the version that it
/// ended at.
pub(crate) fn perform(
    script: &Script,
    kinds: &[Kind],
    chapter: &[Step],
    ground: &Ground,
    mut done: impl FnMut(&Step, u64, u64),
) {
    let mut hand = Hand::new(script, ground);
    for step in chapter {
        let kind = &kinds[step.kind];
        let version = (kind.act)(&mut hand, step.seed).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
        let shown = hand.shown.take().unwrap_or(version);
        done(step, shown, version);
    }
}
