//! An object store that counts its requests and fails some of them, before or after they take effect.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Barrier;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It reports a time-out and has no effect.
    Before,
    /// It reports a time-out but takes effect.
    After,
    /// It takes effect, is sent again by a proxy, and the second answer is returned.
    Twice,
    /// It and all later ones fail without effect.
    Dead,
    /// It reports a time-out, and takes effect when the plan lets late writes [land](Plan::land).
    Late,
    /// Access is refused; it has no effect.
    Denied,
    /// It reports that the condition does not hold; it has no effect.
    Refused,
}

/// A write in flight.
type LateWrite = (Path, PutPayload, PutOptions);

#[derive(Debug, Default)]
struct State {
    seen: Vec<&'static str>,
    armed: Option<(&'static str, usize, Trouble)>,
    dead: bool,
    /// The troubles of the next writes, one after the other.
    writes: VecDeque<Option<Trouble>>,
    late: Vec<LateWrite>,
    /// Whether writes wait.
    held: bool,
    /// How long each request takes.
    delay: Duration,
    under_way: usize,
    rounds: usize,
    gather: Option<Arc<Barrier>>,
    /// Suffixes of the paths whose reads wait; none: all do.
    gathered: Vec<String>,
    gather_writes: Option<Arc<Barrier>>,
    ignores_conditions: bool,
    refuses_conditions: bool,
    forgets_marks: bool,
}

/// The planned faults, and the requests seen.
#[derive(Debug, Default)]
pub(super) struct Plan(Mutex<State>, Arc<InMemory>);

impl Plan {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything succeed from now on, and forgets the requests seen.
    pub(super) fn clear(&self) {
        *self.state() = State::default();
    }

    /// Makes the `n`-th request (from 1) of one kind from now fail; of any kind, if `what` is empty.
    pub(super) fn fail(&self, what: &'static str, n: usize, trouble: Trouble) {
        self.state().armed = Some((what, n, trouble));
    }

    pub(super) fn seen(&self) -> Vec<&'static str> {
        self.state().seen.clone()
    }

    /// Lets reads wait for each other until `n` have been requested.
    pub(super) fn gather(&self, n: usize) {
        self.state().gather = Some(Arc::new(Barrier::new(n)));
    }

    /// Lets reads of objects of these names wait for each other until all have been requested; one that waits for long
    /// fails.
    pub(super) fn gather_these(&self, names: Vec<String>) {
        self.gather(names.len());
        self.state().gathered = names;
    }

    /// Lets writes wait for each other until `n` have been requested.
    pub(super) fn gather_writes(&self, n: usize) {
        self.state().gather_writes = Some(Arc::new(Barrier::new(n)));
    }

    /// Sets the troubles of the next writes, one after the other.
    pub(super) fn write_so(&self, writes: &[Option<Trouble>]) {
        self.state().writes.extend(writes);
    }

    /// Lets writes wait, or continue.
    pub(super) fn hold(&self, held: bool) {
        self.state().held = held;
    }

    /// Lets the late writes take effect.
    pub(super) fn land(&self) {
        let late = std::mem::take(&mut self.state().late);
        for (path, payload, options) in late {
            let _ = self.1.put_opts(&path, payload, options).now_or_never().unwrap();
        }
    }

    /// Gives each request this duration, and counts rounds: how often a request started while none was in flight.
    pub(super) fn slow(&self, delay: Duration) {
        self.state().delay = delay;
    }

    pub(super) fn rounds(&self) -> usize {
        self.state().rounds
    }

    /// Waits for the duration of a request.
    async fn wait(&self) {
        let delay = {
            let mut state = self.state();
            state.rounds += usize::from(state.under_way == 0);
            state.under_way += 1;
            state.delay
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let mut state = self.state();
        state.under_way = state.under_way.saturating_sub(1);
    }

    /// The barrier that a read of `path` waits at.
    fn barrier(&self, path: &Path) -> Option<Arc<Barrier>> {
        let state = self.state();
        let waits = state.gathered.is_empty() || state.gathered.iter().any(|name| path.as_ref().ends_with(name));
        state.gather.clone().filter(|_| waits)
    }

    pub(super) fn ignore_conditions(&self) {
        self.state().ignores_conditions = true;
    }

    pub(super) fn refuse_conditions(&self) {
        self.state().refuses_conditions = true;
    }

    pub(super) fn forget_marks(&self) {
        self.state().forgets_marks = true;
    }

    /// Whether no fault is planned any more.
    pub(super) fn struck(&self) -> bool {
        self.state().armed.is_none()
    }

    fn next(&self, what: &'static str) -> Option<Trouble> {
        let mut state = self.state();
        state.seen.push(what);
        if state.dead {
            return Some(Trouble::Before);
        }
        if what == "put"
            && let Some(trouble) = state.writes.pop_front()
        {
            return trouble;
        }
        let (kind, left, trouble) = state.armed?;
        if !kind.is_empty() && kind != what {
            return None;
        }
        state.armed = (left > 1).then_some((kind, left - 1, trouble));
        if left > 1 {
            return None;
        }
        state.dead = trouble == Trouble::Dead;
        Some(if state.dead { Trouble::Before } else { trouble })
    }
}

fn timed_out() -> Error {
    Error::Generic { store: "faulty", source: "operation timed out".into() }
}

/// A store in memory that fails by plan.
#[derive(Debug)]
pub(super) struct Faulty {
    inner: Arc<InMemory>,
    plan: Arc<Plan>,
}

impl Faulty {
    pub(super) fn planned() -> (Arc<dyn ObjectStore>, Arc<Plan>) {
        let plan = Arc::<Plan>::default();
        (Arc::new(Self { inner: Arc::clone(&plan.1), plan: plan.clone() }), plan)
    }
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let trouble = self.plan.next("put");
        self.plan.wait().await;
        while self.plan.state().held {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let gathered = self.plan.state().gather_writes.clone();
        if let Some(barrier) = gathered {
            let together = tokio::time::timeout(Duration::from_secs(20), barrier.wait());
            together.await.map_err(|_| timed_out())?;
        }
        match trouble {
            Some(Trouble::Before) => return Err(timed_out()),
            Some(Trouble::Denied) => {
                return Err(Error::PermissionDenied { path: path.to_string(), source: "403".into() });
            }
            Some(Trouble::Refused) => {
                return Err(Error::AlreadyExists { path: path.to_string(), source: "412".into() });
            }
            Some(Trouble::Late) => {
                self.plan.state().late.push((path.clone(), payload, options));
                return Err(timed_out());
            }
            _ => {}
        }
        let (ignores, refuses, forgets) = {
            let state = self.plan.state();
            (state.ignores_conditions, state.refuses_conditions, state.forgets_marks)
        };
        if refuses && options.mode != PutMode::Overwrite {
            return Err(Error::NotImplemented { operation: "conditions".to_owned(), implementer: "Faulty".to_owned() });
        }
        if ignores {
            options.mode = PutMode::Overwrite;
        }
        if forgets {
            options.attributes = object_store::Attributes::default();
        }
        let answer = self.inner.put_opts(path, payload.clone(), options.clone()).await;
        match trouble {
            None => answer,
            Some(Trouble::Twice) => self.inner.put_opts(path, payload, options).await,
            Some(_) => Err(timed_out()),
        }
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        match self.plan.next("begin") {
            Some(_) => Err(timed_out()),
            None => {
                let attributes = options.attributes.clone();
                let inner = self.inner.put_multipart_opts(path, options).await?;
                Ok(Box::new(FaultyUpload { inner, plan: self.plan.clone(), attributes }))
            }
        }
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let trouble = self.plan.next(if options.head { "head" } else { "get" });
        self.plan.wait().await;
        if trouble.is_some() {
            return Err(timed_out());
        }
        if let Some(barrier) = self.plan.barrier(path).filter(|_| !options.head) {
            let together = tokio::time::timeout(Duration::from_secs(20), barrier.wait());
            together.await.map_err(|_| timed_out())?;
        }
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (plan, mut seen) = (self.plan.clone(), 0);
        // Stores accept a thousand names in a request.
        let paths = paths.inspect(move |_| {
            if seen > 0 && seen % 1_000 == 0 {
                plan.state().seen.push("delete");
            }
            seen += 1;
        });
        let paths = paths.boxed();
        match self.plan.next("delete") {
            None => self.inner.delete_stream(paths),
            Some(Trouble::Before) => futures_util::stream::iter([Err(timed_out())]).boxed(),
            Some(_) => {
                let after = futures_util::stream::iter([Err(timed_out())]);
                self.inner.delete_stream(paths).filter(|_| futures_util::future::ready(false)).chain(after).boxed()
            }
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.plan.next("list") {
            None => {
                let (plan, listed) = (self.plan.clone(), self.inner.list(prefix));
                let wait = async move {
                    plan.wait().await;
                    listed
                };
                futures_util::stream::once(wait).flatten().boxed()
            }
            Some(_) => futures_util::stream::iter([Err(timed_out())]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    plan: Arc<Plan>,
    attributes: object_store::Attributes,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        match self.plan.next("part") {
            Some(_) => Box::pin(async { Err(timed_out()) }),
            None => self.inner.put_part(payload),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        match self.plan.next("complete") {
            Some(Trouble::Before) => Err(timed_out()),
            None => self.inner.complete().await,
            Some(_) => {
                self.inner.complete().await?;
                assert!(!self.attributes.is_empty(), "an upload has its writer's mark");
                Err(timed_out())
            }
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.plan.next("abort");
        self.inner.abort().await
    }
}
