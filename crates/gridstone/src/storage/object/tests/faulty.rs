//! An object store that counts its requests and fails some of them, before or after they took effect.

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Barrier;

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It reports a time-out; nothing happened.
    Before,
    /// It reports a time-out; it took effect.
    After,
    /// It takes effect, is sent again by something in between, and the answer to that is given.
    Twice,
    /// It and all later ones fail without effect.
    Dead,
}

#[derive(Debug, Default)]
struct State {
    seen: Vec<&'static str>,
    armed: Option<(&'static str, usize, Trouble)>,
    dead: bool,
    gather: Option<Arc<Barrier>>,
    /// Ends of the paths whose reads wait; none: all do.
    gathered: Vec<String>,
    ignores_conditions: bool,
    refuses_conditions: bool,
    forgets_marks: bool,
}

/// What is to fail, and what was asked.
#[derive(Debug, Default)]
pub(super) struct Plan(Mutex<State>);

impl Plan {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything succeed from now on, and forgets what was seen.
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

    /// Lets reads wait for each other until `n` have been asked for.
    pub(super) fn gather(&self, n: usize) {
        self.state().gather = Some(Arc::new(Barrier::new(n)));
    }

    /// Lets reads of objects of these names wait for each other until all have been asked for; one that waits for long fails.
    pub(super) fn gather_these(&self, names: Vec<String>) {
        self.gather(names.len());
        self.state().gathered = names;
    }

    /// What a read of `path` waits for.
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

    /// Whether nothing is armed any more.
    pub(super) fn struck(&self) -> bool {
        self.state().armed.is_none()
    }

    fn next(&self, what: &'static str) -> Option<Trouble> {
        let mut state = self.state();
        state.seen.push(what);
        if state.dead {
            return Some(Trouble::Before);
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
    inner: InMemory,
    plan: Arc<Plan>,
}

impl Faulty {
    pub(super) fn planned() -> (Arc<dyn ObjectStore>, Arc<Plan>) {
        let plan = Arc::<Plan>::default();
        (Arc::new(Self { inner: InMemory::new(), plan: plan.clone() }), plan)
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
        if trouble == Some(Trouble::Before) {
            return Err(timed_out());
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
            None => self.inner.list(prefix),
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
